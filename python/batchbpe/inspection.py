"""What is in a vocabulary, and in chunk counts."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from .chunks import ChunkCounts
from .tokenizer import Tokenizer


def shown(token: bytes) -> str:
    """Give a token as text that stays on a line, within quotes.

    >>> shown(b" the"), shown(b"\\n\\xff"), shown("né".encode())
    ("' the'", "'\\\\n\\\\xff'", "'né'")
    """
    try:
        return repr(token.decode("utf-8"))
    except UnicodeDecodeError:
        return repr(token)[1:]


def describe(tokenizer: Tokenizer) -> dict[str, Any]:
    """Say what a vocabulary consists of.

    >>> describe(Tokenizer.train("aaabdaaabac", 259))["longest token"]
    "'aaab' (4 bytes)"
    """
    model = tokenizer.model
    longest = max(model.merges.values(), key=lambda token: len(model.vocab[token]), default=model.byte_ids[0])
    mean = sum(len(model.vocab[token]) for token in model.merges.values()) / max(1, len(model.merges))
    return {
        "tokens": len(model.vocab),
        "largest id": model.n_vocab - 1,
        "merges": len(model.merges),
        "stop words": len(model.stop_words),
        "special tokens": dict(model.special_tokens),
        "pattern": model.pattern,
        "longest token": f"{_short(model.vocab[longest])} ({len(model.vocab[longest])} bytes)",
        "mean bytes of a merge": round(mean, 3),
        "training": dict(model.training),
    }


def tokens(tokenizer: Tokenizer, *, longest: int = 0, search: str | None = None) -> list[dict[str, Any]]:
    """List tokens: the longest, or those that have `search` in them, or all.

    >>> tokens(Tokenizer.train("aaabdaaabac", 259), search="ab")
    [{'id': 257, 'token': "'ab'", 'bytes': 2}, {'id': 258, 'token': "'aaab'", 'bytes': 4}]
    """
    rows = tokenizer.vocab.items()
    if search is not None:
        rows = [(token, value) for token, value in rows if search.encode() in value]  # type: ignore[assignment]
    if longest:
        rows = sorted(rows, key=lambda row: (-len(row[1]), row[0]))[:longest]  # type: ignore[assignment]
    return [{"id": token, "token": shown(value), "bytes": len(value)} for token, value in rows]


def describe_counts(counts: ChunkCounts, n: int = 10) -> dict[str, Any]:
    """Say how many chunks there are, which are the commonest and rarest, and how counts and lengths are distributed.

    >>> described = describe_counts(ChunkCounts.count("to be or not to be"), n=1)
    >>> described["commonest"], described["distribution"]
    ([("' be'", 2)], {'1': 4, '2 to 9': 1})
    """
    total = counts.total
    last = max(0, counts.unique - n)
    rarest = ChunkCounts(counts.data, counts.offsets[last:], counts.counts[last:], counts.pattern)
    lengths = np.diff(counts.offsets)
    shares = {size: int(counts.counts[:size].sum(dtype=object)) / max(1, total) for size in (100, 10_000)}
    distribution = {}
    edges = [1, 2, *(10**power for power in range(1, 20))]
    for low, high in pairwise(edges):
        seen = counts.at_least(low).unique - counts.at_least(high).unique
        if seen:
            distribution[str(low) if high == low + 1 else f"{low:,} to {high - 1:,}"] = seen
    named = [(_shown(chunk), count) for chunk, count in counts.most_common(n)]
    return {
        "total": total,
        "unique": counts.unique,
        "pattern": counts.pattern,
        "share of the commonest": {f"{size:,}": round(share, 4) for size, share in shares.items()},
        "longest chunk": int(lengths.max(initial=0)),
        "commonest": named,
        "rarest": [(_shown(chunk), count) for chunk, count in rarest.most_common()],
        "distribution": distribution,
    }


def _short(token: bytes) -> str:
    """Give the beginning of a token, which may have megabytes."""
    return shown(token) if len(token) <= 60 else f"{shown(token[:60])}…"


def _shown(chunk: str) -> str:
    return _short(chunk[:100].encode("utf-8", "surrogateescape"))

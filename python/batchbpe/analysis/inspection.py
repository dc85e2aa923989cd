"""What is in a vocabulary, and in chunk counts: as values for machines, which `shown` puts into words for people."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from ..counts import ChunkCounts
from ..model import MergeTree
from ..tokenizer import Tokenizer


def shown(token: bytes) -> str:
    """Give a token as text that stays on a line, within quotes, and of one that may have megabytes the beginning.

    >>> shown(b" the"), shown(b"\\n\\xff"), shown("né".encode())
    ("' the'", "'\\\\n\\\\xff'", "'né'")
    """
    if len(token) > 60:
        return shown(token[:60]) + "…"
    try:
        return repr(token.decode("utf-8"))
    except UnicodeDecodeError:
        return repr(token)[1:]


def spelled(token: bytes) -> dict[str, Any]:
    """Give the bytes of a token, in hexadecimal, and as text if they are one.

    >>> spelled(b" be")
    {'text': ' be', 'hex': '206265', 'bytes': 3}
    """
    try:
        text: str | None = token.decode("utf-8")
    except UnicodeDecodeError:
        text = None
    return {"text": text, "hex": token.hex(), "bytes": len(token)}


def describe(tokenizer: Tokenizer) -> dict[str, Any]:
    """Say what a vocabulary consists of.

    >>> describe(Tokenizer.train("aaabdaaabac", 259))["longest_merge"]
    {'id': 258, 'text': 'aaab', 'hex': '61616162', 'bytes': 4}
    """
    model = tokenizer.model
    longest = max(model.merges.values(), key=lambda token: len(model.vocab[token]), default=None)
    mean = sum(len(model.vocab[token]) for token in model.merges.values()) / max(1, len(model.merges))
    return {
        "tokens": len(model.vocab),
        "largest_id": model.n_vocab - 1,
        "merges": len(model.merges),
        "stop_words": len(model.stop_words),
        "special_tokens": dict(model.special_tokens),
        "pattern": model.pattern,
        "longest_merge": None if longest is None else {"id": longest, **spelled(model.vocab[longest])},
        "mean_bytes_of_a_merge": round(mean, 3),
        "training": dict(model.training),
    }


def tokens(tokenizer: Tokenizer, *, longest: int = 0, search: str | None = None) -> list[dict[str, Any]]:
    """List tokens: the longest, or those that have `search` in them, or all.

    >>> tokens(Tokenizer.train("aaabdaaabac", 258), search="ab")
    [{'id': 257, 'text': 'ab', 'hex': '6162', 'bytes': 2}]
    """
    rows = tokenizer.vocab.items()
    if search is not None:
        rows = [(token, value) for token, value in rows if search.encode() in value]  # type: ignore[assignment]
    if longest:
        rows = sorted(rows, key=lambda row: (-len(row[1]), row[0]))[:longest]  # type: ignore[assignment]
    return [{"id": token, **spelled(value)} for token, value in rows]


def tree(root: MergeTree) -> Iterator[dict[str, Any]]:
    """List a token and all that it is built of, each before its two parts.

    >>> [(token["id"], token["parts"]) for token in tree(Tokenizer.train("aab aab", 258).merge_tree(256))]
    [(256, [97, 97]), (97, []), (97, [])]
    """
    todo = [root]
    while todo:
        token = todo.pop()
        yield {"id": token.token, **spelled(token.value), "parts": [part.token for part in token.parts]}
        todo += reversed(token.parts)


def describe_counts(counts: ChunkCounts, n: int = 10) -> dict[str, Any]:
    """Say how many chunks there are, which are the commonest and rarest, and how counts and lengths are distributed.

    >>> described = describe_counts(ChunkCounts.count("to be or not to be"), n=1)
    >>> described["commonest"]
    [{'count': 2, 'text': ' be', 'hex': '206265', 'bytes': 3}]
    >>> described["distribution"]
    [{'least': 1, 'most': 1, 'unique': 4}, {'least': 2, 'most': 9, 'unique': 1}]
    """
    total = counts.total
    last = max(0, counts.unique - n)
    rarest = ChunkCounts(counts.data, counts.offsets[last:], counts.counts[last:], counts.pattern)
    edges = [1, 2, *(10**power for power in range(1, 20)), 1 << 64]
    seen = [counts.at_least(low).unique - counts.at_least(high).unique for low, high in pairwise(edges)]
    return {
        "total": total,
        "unique": counts.unique,
        "pattern": counts.pattern,
        "share_of_the_commonest": {
            str(size): round(int(counts.counts[:size].sum(dtype=object)) / max(1, total), 4) for size in (100, 10_000)
        },
        "longest_chunk": int(np.diff(counts.offsets).max(initial=0)),
        "commonest": list(map(_counted, counts.most_common(n))),
        "rarest": list(map(_counted, rarest.most_common())),
        "distribution": [
            {"least": low, "most": high - 1, "unique": unique}
            for (low, high), unique in zip(pairwise(edges), seen, strict=True)
            if unique
        ],
    }


def _counted(row: tuple[str, int]) -> dict[str, Any]:
    return {"count": row[1], **spelled(row[0].encode("utf-8", "surrogateescape"))}

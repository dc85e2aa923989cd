"""Rank files of tiktoken: a line for each token, its bytes in base64 and its rank."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from .._core import merges_of_ranks, patterns
from ..errors import short
from ..model import Model
from ..storage.atomic import replacing

_END = "<|endoftext|>"
_FIM = ("<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>")
KNOWN: dict[str, tuple[str, int, dict[str, int]]] = {
    "r50k_base": ("gpt2", 50256, {_END: 50256}),
    "p50k_base": ("gpt2", 50280, {_END: 50256}),
    "cl100k_base": (
        "cl100k",
        100256,
        {_END: 100257, _FIM[0]: 100258, _FIM[1]: 100259, _FIM[2]: 100260, "<|endofprompt|>": 100276},
    ),
    "o200k_base": ("o200k", 199998, {_END: 199999, "<|endofprompt|>": 200018}),
}
"""Pattern, number of ranks and special tokens of the encodings that OpenAI publishes, by their file names."""


def load(source: Any, pattern: str | None = None, special_tokens: Mapping[str, int] | None = None) -> Model:
    """Read a rank file, or take a `tiktoken.Encoding`. What is not given is known from that, or the file's name."""
    if hasattr(source, "_mergeable_ranks"):
        given = source._special_tokens if special_tokens is None else special_tokens
        return from_ranks(source._mergeable_ranks, pattern or source._pat_str, given)
    path = Path(source)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {source}")
    known, size, known_special = KNOWN.get(path.stem, (None, 0, {}))
    if pattern is None and known is None:
        raise ValueError(
            f"{path} does not say which pattern it was trained with, and is none of {', '.join(KNOWN)}: "
            "load it by Tokenizer.from_tiktoken(path, pattern)"
        )
    if special_tokens is not None and not isinstance(special_tokens, Mapping):
        raise TypeError(f"special_tokens={short(special_tokens)}: give a dict of texts and their ids")
    try:
        ranks = _ranks(path.read_bytes())
        if pattern is None and len(ranks) != size:
            raise ValueError(f"it has {len(ranks)} ranks, not {size}: it is damaged, or another file of that name")
        return from_ranks(
            ranks,
            pattern if pattern is not None else dict(patterns())[known or ""],
            known_special if special_tokens is None else special_tokens,
        )
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def is_rank(line: bytes) -> bool:
    """Whether a line is one of a rank file.

    >>> is_rank(b"IHRoZQ== 262"), is_rank(b"the 262")
    (True, False)
    """
    try:
        token, rank = line.split()
        return bool(base64.b64decode(token, validate=True)) and rank.isdigit()
    except (ValueError, binascii.Error):
        return False


def _ranks(content: bytes) -> dict[bytes, int]:
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(content.splitlines(), start=1):
        if not line:
            continue
        if not is_rank(line):
            raise ValueError(f"line {number}: {short(line[:80])} is no token in base64 and its rank")
        token, rank = line.split()
        value = base64.b64decode(token)
        if value in ranks:
            raise ValueError(
                f"line {number}: {short(line[:80])}: the token {short(value)} has the rank {ranks[value]} already"
            )
        ranks[value] = int(rank)
    return ranks


def save(model: Model, path: Path, *, allow_inexact: bool = False) -> None:
    """Write a rank file. It has no place for the pattern and the special tokens, which the reader must be told."""
    lines = [b"%s %d\n" % (base64.b64encode(token), rank) for token, rank in ranks_of(model, allow_inexact).items()]
    with replacing(path) as temporary:
        temporary.write_bytes(b"".join(lines))


_REMEDY = 'choose format="batchbpe" or "transformers", which keep them, or say allow_inexact=True to lose them'


def ranks_of(model: Model, allow_inexact: bool = False, remedy: str = _REMEDY) -> dict[bytes, int]:
    """Give the rank of each token; it is an error if these do not mean the same as the merges."""
    ranks: dict[bytes, int] = {}
    for token in sorted({*model.byte_ids, *model.merges.values()}):
        ranks.setdefault(model.vocab[token], token)
    if allow_inexact:
        return ranks
    if model.stop_words:
        raise ValueError(f"tiktoken has no stop words, as {short(next(iter(model.stop_words)))} is: {remedy}")
    try:
        explained: Mapping[tuple[int, int], int] = from_ranks(ranks, model.pattern, {}).merges
    except ValueError:
        explained = {}
    if list(explained.items()) != list(model.merges.items()):
        wrong = next((item for item in model.merges.items() if item not in explained.items()), None)
        raise ValueError(
            f"the ranks of the tokens would not give the same encodings as the merges: {_unexplained(model, wrong)}; "
            f"{remedy}"
        )
    return ranks


def _unexplained(model: Model, merge: tuple[tuple[int, int], int] | None) -> str:
    if merge is None:
        return "the ids are not in the order of the merges"
    (first, last), token = merge
    vocab = model.vocab
    made = f"{short(vocab[token])} = {short(vocab[first])} + {short(vocab[last])}"
    return f"its bytes do not lead to the token {token}, {made}"


def from_ranks(ranks: Mapping[bytes, int], pattern: str, special_tokens: Mapping[str, int]) -> Model:
    """Recover the merges from ranks: a token is merged from the two that its bytes encode to without it."""
    tokens = sorted(ranks, key=ranks.__getitem__)
    if len(set(ranks.values())) < len(ranks):
        twice = next(token for token, other in pairwise(tokens) if ranks[token] == ranks[other])
        raise ValueError(f"the rank {ranks[twice]} of {short(twice)} is there twice")
    missing = [byte for byte in range(256) if bytes([byte]) not in ranks]
    if missing:
        raise ValueError(f"the byte {missing[0]} has no rank: only byte-level vocabularies can be loaded")
    merges = {
        (ranks[first], ranks[last]): ranks[token]
        for token, first, last in merges_of_ranks([token for token in tokens if len(token) > 1])
    }
    return Model(
        pattern=pattern,
        merges=merges,
        special_tokens=dict(special_tokens),
        byte_ids=tuple(ranks[bytes([byte])] for byte in range(256)),
    )

"""Rank files of tiktoken: a line for each token, its bytes in base64 and its rank."""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping
from pathlib import Path

from .._core import merges_of_ranks, patterns
from ..model import Model

_END = "<|endoftext|>"
_FIM = ("<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>")
KNOWN: dict[str, tuple[str, dict[str, int]]] = {
    "r50k_base": ("gpt2", {_END: 50256}),
    "cl100k_base": (
        "cl100k",
        {_END: 100257, _FIM[0]: 100258, _FIM[1]: 100259, _FIM[2]: 100260, "<|endofprompt|>": 100276},
    ),
    "o200k_base": ("o200k", {_END: 199999, "<|endofprompt|>": 200018}),
}
"""Pattern and special tokens of the encodings that OpenAI publishes, by their file names."""


def load(
    path: str | os.PathLike[str], pattern: str | None = None, special_tokens: Mapping[str, int] | None = None
) -> Model:
    """Read a rank file. What is not given is taken from `KNOWN` by the file's name."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    known, known_special = KNOWN.get(path.stem, (None, {}))
    if pattern is None and known is None:
        raise ValueError(f"{path.name} is none of {', '.join(KNOWN)}: say which pattern it was trained with")
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        if not line:
            continue
        try:
            token, rank = line.split()
            ranks[base64.b64decode(token, validate=True)] = int(rank)
        except (ValueError, binascii.Error):
            raise ValueError(f"{path}, line {number}: {line[:80]!r} is no token in base64 and its rank") from None
    return from_ranks(
        ranks,
        pattern if pattern is not None else dict(patterns())[known or ""],
        known_special if special_tokens is None else special_tokens,
    )


def from_ranks(ranks: Mapping[bytes, int], pattern: str, special_tokens: Mapping[str, int]) -> Model:
    """Recover the merges from ranks: a token is merged from the two that its bytes encode to without it."""
    tokens = sorted(ranks, key=ranks.__getitem__)
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

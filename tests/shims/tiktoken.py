"""tiktoken's names for batchbpe, so that its own tests can run against this package; see CONTRIBUTING.md.

Rank files are read from the folder in the environment variable BATCHBPE_TEST_TIKTOKEN.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from batchbpe import Tokenizer

NAMES = {"gpt2": "r50k_base"}
"""Encodings that are read from the file of another one."""


class Encoding(Tokenizer):
    """A tokenizer with the constructor and the private attributes that the tests use."""

    def __init__(
        self, name: str, *, pat_str: str, mergeable_ranks: Mapping[bytes, int], special_tokens: Mapping[str, int]
    ) -> None:
        """Create a tokenizer from ranks."""
        ranks = SimpleNamespace(_pat_str=pat_str, _mergeable_ranks=mergeable_ranks, _special_tokens=special_tokens)
        super().__init__(Tokenizer.from_tiktoken(ranks).model, name)

    def __reduce__(self) -> Any:
        """Pickle the model."""
        return _of, (Tokenizer(self.model, self.name),)

    @property
    def _pat_str(self) -> str:
        return self.pattern

    @property
    def _special_tokens(self) -> Mapping[str, int]:
        return self.special_tokens

    @property
    def _mergeable_ranks(self) -> dict[bytes, int]:
        special = set(self.special_tokens.values())
        return {value: token for token, value in self.vocab.items() if token not in special}

    def _encode_bytes(self, text: bytes) -> list[int]:
        return self.encode_bytes(text)  # type: ignore[attr-defined,no-any-return]


def _of(tokenizer: Tokenizer) -> Encoding:
    encoding = Encoding.__new__(Encoding)
    Tokenizer.__init__(encoding, tokenizer.model, tokenizer.name)
    return encoding


@lru_cache
def get_encoding(name: str) -> Encoding:
    """Load the rank file of an encoding."""
    folder = Path(os.environ["BATCHBPE_TEST_TIKTOKEN"])
    tokenizer = Tokenizer.from_tiktoken(folder / f"{NAMES.get(name, name)}.tiktoken")
    return _of(Tokenizer(tokenizer.model, name))


def list_encoding_names() -> list[str]:
    """Return the encodings whose rank files are in the folder."""
    return sorted(path.stem for path in Path(os.environ["BATCHBPE_TEST_TIKTOKEN"]).glob("*.tiktoken"))

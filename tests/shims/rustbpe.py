"""rustbpe's class for batchbpe, so that the rustbpe and nanochat tests can run against this package.

See CONTRIBUTING.md.
"""

from __future__ import annotations

from collections.abc import Iterable

import batchbpe
from batchbpe import Model
from batchbpe.patterns import Split


class Tokenizer:
    """A tokenizer that is created first and trained later: standard BPE."""

    def __init__(self) -> None:
        """Create a tokenizer of bytes."""
        self._tokenizer = batchbpe.Tokenizer(Model(Split.of("gpt4"), merges={}))
        self.encode = self._tokenizer.encode_ordinary
        self.decode = self._tokenizer.decode

    def train_from_iterator(self, texts: Iterable[str], vocab_size: int, pattern: str | None = None) -> None:
        """Train on documents."""
        self._tokenizer = batchbpe.Tokenizer.train(
            texts=texts, vocab_size=vocab_size, pattern=pattern, policy="serial", overlapping=True
        )
        self.encode = self._tokenizer.encode_ordinary
        self.decode = self._tokenizer.decode

    @property
    def vocab_size(self) -> int:
        """The number of tokens."""
        return self._tokenizer.vocab_size

    def batch_encode(self, texts: list[str]) -> list[list[int]]:
        """Encode several texts."""
        return self._tokenizer.encode_ordinary_batch(texts)

    def get_pattern(self) -> str:
        """Return the pattern."""
        return self._tokenizer.pattern

    def get_mergeable_ranks(self) -> list[tuple[bytes, int]]:
        """Return the bytes of each token, and its id."""
        return [(value, token) for token, value in self._tokenizer.vocab.items()]

"""What engines are compared with: this core."""

from __future__ import annotations

from dataclasses import dataclass

from ..tokenizer import Tokenizer


@dataclass(frozen=True)
class Reference:
    """Encodes texts with this core, with special tokens as tokens or as text.

    >>> from ..model import Model
    >>> reference = Reference(Tokenizer(Model(r"\\w+", {}, special_tokens={"ab": 256})))
    >>> reference.encode(["ab"], True), reference.encode(["ab"], False)
    ([[256]], [[97, 98]])
    """

    tokenizer: Tokenizer
    threads: int | None = None

    def encode(self, texts: list[str], parses_special: bool) -> list[list[int]]:
        """Encode texts."""
        return self.tokenizer.encode_batch(texts, "all" if parses_special else "none", threads=self.threads)

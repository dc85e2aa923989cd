"""Metrics of a tokenizer on a text.

https://batchbpe.github.io/batchbpe/evaluation.html#metrics lists the formulas and their sources.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ..choices import Unit
from ..errors import ArgumentError
from ..util.lazy import lazy
from .tables import Table, Tabular, formatted

ALPHA = 2.5
"""Order of the Rényi entropy. This one correlates best with translation quality."""


@dataclass(frozen=True)
class Evaluation(Tabular):
    """Metrics of one tokenizer on one text.

    >>> from batchbpe import Tokenizer, evaluate
    >>> (result,) = evaluate(Tokenizer.train("to be or not to be", 258), "to be")
    >>> result.tokens, result.words, result.tokens_per_word
    (3, 2, 1.5)
    """

    name: str
    vocab_size: int
    tokens: int
    bytes: int
    characters: int
    words: int | None
    """Number of words, separated by whitespace. None if only chunk counts are known."""
    single_token_words: int | None
    """Number of words that are one token when a space precedes them."""
    dropped: int
    """Number of bytes that the pattern does not match. They are lost in encoding."""
    frequencies: npt.NDArray[np.uint64] = field(repr=False, compare=False)
    """Number of occurrences of each token, indexed by id."""

    @property
    def bytes_per_token(self) -> float | None:
        """Compression; higher is better. None if there are no tokens."""
        return self.bytes / self.tokens if self.tokens else None

    @property
    def characters_per_token(self) -> float | None:
        """Compression in characters; higher is better."""
        return self.characters / self.tokens if self.tokens else None

    @property
    def tokens_per_word(self) -> float | None:
        """Fertility; 1 is one token per word."""
        return self.tokens / self.words if self.words else None

    @property
    def single_token_word_rate(self) -> float | None:
        """Fraction of words that are one token (STRR)."""
        return None if self.single_token_words is None or not self.words else self.single_token_words / self.words

    @property
    def vocabulary_used(self) -> int:
        """Number of different tokens in the encoded text."""
        return int(np.count_nonzero(self.frequencies))

    @property
    def shannon_efficiency(self) -> float:
        """Shannon entropy of the tokens divided by its maximum; 1 if all tokens are equally frequent."""
        return renyi_entropy(self._probabilities, 1) / self._max_entropy

    @property
    def renyi_efficiency(self) -> float:
        """Rényi entropy divided by its maximum; very frequent tokens lower it more than the Shannon efficiency."""
        return renyi_entropy(self._probabilities, ALPHA) / self._max_entropy

    @property
    def average_rank(self) -> float:
        """Mean frequency rank of the tokens; higher if more of the vocabulary is used."""
        return float((self._probabilities * np.arange(1, len(self._probabilities) + 1)).sum())

    @lazy
    def _probabilities(self) -> npt.NDArray[np.float64]:
        used: npt.NDArray[np.float64] = np.sort(self.frequencies[self.frequencies > 0])[::-1].astype(np.float64)
        return used / max(1.0, float(used.sum()))

    @property
    def _max_entropy(self) -> float:
        return float(np.log(max(2, self.vocab_size)))

    def tables(self) -> list[Table]:
        """Return the metrics, except those that compare with another tokenizer."""
        values = {name: value for name, value in self.metrics(self).items() if name not in RELATIVE}
        return [(["", self.name], [[METRICS[name], *formatted([value])] for name, value in values.items()])]

    def change(self, reference: Evaluation) -> float | None:
        """Return the change in encoded length relative to another tokenizer, in percent (the paper's metric)."""
        return 100 * (self.tokens - reference.tokens) / reference.tokens if reference.tokens else None

    def normalized_length(self, reference: Evaluation) -> float | None:
        """Return the encoded length divided by that of another tokenizer (NSL)."""
        return self.tokens / reference.tokens if reference.tokens else None

    def cost(self, unit: Unit) -> float | None:
        """Return the number of tokens per byte, character or word, or of the whole text; None if there are none."""
        size = {"text": 1, "byte": self.bytes, "character": self.characters, "word": self.words}[unit]
        if size is None:
            raise ArgumentError(
                "per", unit, "must be 'text', 'byte' or 'character' for chunk counts, which contain no words"
            )
        return self.tokens / size if size and self.tokens else None

    def metrics(self, reference: Evaluation) -> dict[str, float | None]:
        """Return all metrics by name, compared with a reference."""
        relative = {"change": self.change(reference), "normalized_length": self.normalized_length(reference)}
        return {name: relative[name] if name in relative else getattr(self, name) for name in METRICS}


def total(parts: Sequence[Evaluation]) -> Evaluation:
    """Add up the metrics of one tokenizer on the parts of a text.

    >>> from batchbpe import Tokenizer, evaluate
    >>> tokenizer = Tokenizer.train("to be or not to be", 258)
    >>> total([evaluate(tokenizer, part)[0] for part in ("to be", "or not")]).tokens
    9
    """
    frequencies = np.zeros(max(len(part.frequencies) for part in parts), np.uint64)
    for part in parts:
        frequencies[: len(part.frequencies)] += part.frequencies

    def added(values: Sequence[int | None]) -> int | None:
        known = [value for value in values if value is not None]
        return sum(known) if len(known) == len(values) else None

    return Evaluation(
        name=parts[0].name,
        # That of an encoder without a known size is the number of tokens in the text.
        vocab_size=max(*(part.vocab_size for part in parts), int(np.count_nonzero(frequencies))),
        tokens=sum(part.tokens for part in parts),
        bytes=sum(part.bytes for part in parts),
        characters=sum(part.characters for part in parts),
        words=added([part.words for part in parts]),
        single_token_words=added([part.single_token_words for part in parts]),
        dropped=sum(part.dropped for part in parts),
        frequencies=frequencies,
    )


RELATIVE = ("change", "normalized_length")
"""The metrics that compare with another tokenizer."""
METRICS: Mapping[str, str] = {
    "vocab_size": "vocabulary size",
    "tokens": "tokens",
    "change": "change in length, %",
    "normalized_length": "normalized length (NSL)",
    "bytes_per_token": "bytes per token",
    "characters_per_token": "characters per token",
    "tokens_per_word": "tokens per word (fertility)",
    "single_token_word_rate": "single-token words (STRR)",
    "vocabulary_used": "vocabulary used",
    "shannon_efficiency": "Shannon efficiency",
    "renyi_efficiency": f"Rényi efficiency (α = {ALPHA})",
    "average_rank": "average rank",
    "dropped": "bytes dropped",
}
"""Labels of the metrics of an `Evaluation`, in the order of a table."""


def renyi_entropy(frequencies: npt.NDArray[np.float64], alpha: float) -> float:
    """Return the Rényi entropy of order `alpha` in nats. Order 1 is the Shannon entropy.

    >>> round(renyi_entropy(np.array([0.5, 0.25, 0.25]), 2), 6)  # log(8 / 3)
    0.980829
    """
    if alpha == 1:
        return abs(float((frequencies * np.log(frequencies)).sum()))
    return abs(float(np.log((frequencies**alpha).sum()) / (1 - alpha))) if len(frequencies) else 0.0


def parity(costs: Mapping[str, float], reference: str | None = None) -> dict[str, float]:
    """Divide the cost of each group by that of the reference group, by default the cheapest.

    >>> parity({"en": 0.25, "my": 1.0})
    {'en': 1.0, 'my': 4.0}
    """
    base = min(costs.values()) if reference is None else costs[reference]
    return {group: cost / base if base else 0.0 for group, cost in costs.items()}


def gini(costs: Sequence[float]) -> float:
    """Return the Gini coefficient of costs: 0 if all are equal, close to 1 if one group bears almost all.

    >>> gini([1, 1, 1]), gini([1, 3])
    (0.0, 0.25)
    """
    ordered = np.sort(np.asarray(costs, np.float64))
    n = len(ordered)
    if not n or not ordered.sum():
        return 0.0
    return float((2 * np.arange(1, n + 1) - n - 1) @ ordered / (n * ordered.sum()))

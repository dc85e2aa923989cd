"""How good tokenizers are on a text: how short they make it, how well they use their vocabulary, for whom.

A text is counted once, and each tokenizer then encodes each chunk of it once, however often that occurs.
docs/evaluation.md has the formulas and where they come from.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from io import BytesIO
from typing import Literal

import numpy as np
import numpy.typing as npt

from ..counting import Counter, dropped_text
from ..counts import ChunkCounts
from ..data.readers import Documents, TextFile
from ..data.tables import CountsFile, too_large
from ..errors import short
from ..tokenizer import Tokenizer

WORDS = r"\S+"
"""The pattern of words: what stands between white space."""
ALPHA = 2.5
"""The order of Rényi's entropy that goes best with how good translations are."""
Unit = Literal["text", "byte", "character", "word"]


class Text:
    """A text as counts: of its words, and of its chunks by each pattern.

    >>> text = Text(["gpt4"])
    >>> text.add(["to be or not to be"])
    >>> text.bytes, text.characters, text.words.total
    (18, 18, 6)
    """

    def __init__(self, patterns: Iterable[str], threads: int | None = None, errors: str = "strict") -> None:
        """Begin with nothing; patterns are names or regular expressions."""
        self._counters = [Counter(pattern, (), errors, threads) for pattern in (WORDS, *patterns)]

    @classmethod
    def of_counts(cls, counts: ChunkCounts, dropped: int = 0) -> Text:
        """Take a text of which only the chunks are known, and how many bytes lie between them, not its words."""
        text = cls([])
        text.words, text.chunks, text.dropped = None, {counts.pattern: counts}, {counts.pattern: dropped}
        return text

    def add(self, documents: Documents) -> None:
        """Count documents, before any question is asked."""
        if isinstance(documents, CountsFile | ChunkCounts | Mapping):
            raise ValueError("chunk counts are no text to encode: give documents")
        if isinstance(documents, TextFile) and documents.once:
            with documents.open() as stream:
                block = stream.read(documents.max_document_bytes + 1)
            if len(block) > documents.max_document_bytes:
                problem = too_large("the text is too long", documents.max_document_bytes)
                raise ValueError(f"{documents.name}: {problem}")
            documents = replace(documents, open=lambda: BytesIO(block), once=False)
        for counter in self._counters:
            counter.add(documents)

    @cached_property
    def words(self) -> ChunkCounts | None:
        """How often each word occurs; None if only chunks are known."""
        return self._counters[0].take()

    @cached_property
    def chunks(self) -> dict[str, ChunkCounts]:
        """How often each chunk occurs, by the pattern."""
        counts = [counter.take() for counter in self._counters[1:]]
        return {each.pattern: each for each in counts}

    @cached_property
    def dropped(self) -> dict[str, int]:
        """How many bytes each pattern does not match: they are in no chunk."""
        return {pattern: counter.dropped for pattern, counter in zip(self.chunks, self._counters[1:], strict=True)}

    @cached_property
    def _some(self) -> tuple[ChunkCounts, int]:
        """The chunks by the pattern that drops least, and how many bytes it drops."""
        best = min(self.chunks, key=lambda pattern: self.dropped[pattern])
        return self.chunks[best], self.dropped[best]

    @property
    def bytes(self) -> int:
        """How many bytes the text has."""
        counts, dropped = self._some
        return int((np.diff(counts.offsets) * counts.counts.astype(np.int64)).sum()) + dropped

    @property
    def characters(self) -> int:
        """How many characters the text has."""
        counts, dropped = self._some
        begins = np.concatenate([[0], np.cumsum((counts.data & 0xC0) != 0x80)])
        return int((np.diff(begins[counts.offsets]) * counts.counts.astype(np.int64)).sum()) + dropped


@dataclass(frozen=True)
class Evaluation:
    """What a tokenizer makes of a text."""

    name: str
    vocab_size: int
    tokens: int
    bytes: int
    characters: int
    words: int | None
    """What stands between white space."""
    single_token_words: int | None
    """How many of them are one token, with a space before it."""
    dropped: int
    """How many of the bytes are lost: the pattern does not match them."""
    frequencies: npt.NDArray[np.uint64] = field(repr=False, compare=False)
    """How often each token occurs, by id."""

    @property
    def bytes_per_token(self) -> float | None:
        """The more the better: the text is shorter. None if there are no tokens."""
        return self.bytes / self.tokens if self.tokens else None

    @property
    def characters_per_token(self) -> float | None:
        """The more the better: the text is shorter."""
        return self.characters / self.tokens if self.tokens else None

    @property
    def tokens_per_word(self) -> float | None:
        """Fertility: 1 would be a token for each word."""
        return self.tokens / self.words if self.words else None

    @property
    def single_token_word_rate(self) -> float | None:
        """STRR: the share of words that are one token."""
        return None if self.single_token_words is None or not self.words else self.single_token_words / self.words

    @property
    def vocabulary_used(self) -> int:
        """How many different tokens the text has."""
        return int(np.count_nonzero(self.frequencies))

    @property
    def shannon_efficiency(self) -> float:
        """Entropy of the tokens, of the most it could be: 1 if all occur equally often."""
        return renyi_entropy(self._shares, 1) / self._most

    @property
    def renyi_efficiency(self) -> float:
        """The same with Rényi's entropy, which very common tokens lower more."""
        return renyi_entropy(self._shares, ALPHA) / self._most

    @property
    def average_rank(self) -> float:
        """The mean place of a token of the text, commonest first: larger if more of the vocabulary is really used."""
        return float((self._shares * np.arange(1, len(self._shares) + 1)).sum())

    @cached_property
    def _shares(self) -> npt.NDArray[np.float64]:
        used: npt.NDArray[np.float64] = np.sort(self.frequencies[self.frequencies > 0])[::-1].astype(np.float64)
        return used / max(1.0, float(used.sum()))

    @property
    def _most(self) -> float:
        return float(np.log(max(2, self.vocab_size)))

    def change(self, reference: Evaluation) -> float | None:
        """Give the percent change in encoded length against another tokenizer, the paper's metric."""
        return 100 * (self.tokens - reference.tokens) / reference.tokens if reference.tokens else None

    def normalised_length(self, reference: Evaluation) -> float | None:
        """NSL: the encoded length as a share of another tokenizer's."""
        return self.tokens / reference.tokens if reference.tokens else None

    def cost(self, unit: Unit) -> float | None:
        """How many tokens a byte, a character or a word takes, or all of the text; None if there is none."""
        size = {"text": 1, "byte": self.bytes, "character": self.characters, "word": self.words}[unit]
        if size is None:
            raise ValueError("the words of chunk counts are not known: choose another unit than word")
        return self.tokens / size if size and self.tokens else None

    def metrics(self, reference: Evaluation) -> dict[str, float | None]:
        """Give all metrics by their names."""
        against = {"change": self.change(reference), "normalised_length": self.normalised_length(reference)}
        return {name: against[name] if name in against else getattr(self, name) for name in METRICS}


METRICS = {
    "vocab_size": "vocabulary",
    "tokens": "tokens",
    "change": "change in length, %",
    "normalised_length": "normalised length (NSL)",
    "bytes_per_token": "bytes per token",
    "characters_per_token": "characters per token",
    "tokens_per_word": "tokens per word (fertility)",
    "single_token_word_rate": "words of one token (STRR)",
    "vocabulary_used": "vocabulary used",
    "shannon_efficiency": "Shannon efficiency",
    "renyi_efficiency": f"Rényi efficiency (α = {ALPHA})",
    "average_rank": "average rank",
    "dropped": "bytes that are lost",
}
"""What each metric of an `Evaluation` is called in a table."""


def evaluate(
    tokenizers: Mapping[str, Tokenizer], documents: Iterable[Documents], *, threads: int | None = None
) -> list[Evaluation]:
    """Encode documents with each tokenizer.

    >>> from batchbpe.data.corpus import documents
    >>> plain, merged = (Tokenizer.train("to be or not to be", size) for size in (256, 258))
    >>> [it.tokens for it in evaluate({"bytes": plain, "merged": merged}, documents("to be"))]
    [5, 3]
    """
    text = Text({tokenizer.pattern: None for tokenizer in tokenizers.values()}, threads)
    for some in documents:
        text.add(some)
    return [evaluate_text(name, tokenizer, text, threads=threads) for name, tokenizer in tokenizers.items()]


def evaluate_text(name: str, tokenizer: Tokenizer, text: Text, *, threads: int | None = None) -> Evaluation:
    """Evaluate a tokenizer on a text that has been counted with its pattern.

    >>> counts = ChunkCounts.count("to be or not to be")
    >>> evaluate_text("mine", Tokenizer.train(counts, 258), Text.of_counts(counts)).tokens
    14
    """
    if tokenizer.pattern not in text.chunks:
        raise ValueError(f"the text was not counted with the pattern of {name}, {short(tokenizer.pattern)}")
    chunks = text.chunks[tokenizer.pattern]
    encoder = tokenizer._loaded.encoder
    ids, sizes = encoder.encode_chunks(chunks.data, chunks.offsets, threads)
    frequencies = np.zeros(tokenizer.n_vocab, np.uint64)
    np.add.at(frequencies, ids, np.repeat(chunks.counts, sizes))
    if dropped := text.dropped[tokenizer.pattern]:
        warnings.warn((f"{name}: " if name else "") + dropped_text(dropped, tokenizer.pattern), stacklevel=2)
    words = single = None
    if text.words is not None:
        words = text.words.total
        spaced, offsets = _after_spaces(text.words)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the encoder knows only of words, below it is said of all the text
            _, places = encoder.encode_documents(spaced, offsets, ([], []), threads)
        single = int(text.words.counts[np.diff(places) == 1].sum())
    return Evaluation(
        name=name,
        vocab_size=len(tokenizer.vocab),
        tokens=int(frequencies.sum()),
        bytes=text.bytes,
        characters=text.characters,
        words=words,
        single_token_words=single,
        dropped=dropped,
        frequencies=frequencies,
    )


def _after_spaces(words: ChunkCounts) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Give words each with a space before it, as most stand in a text."""
    spaced = np.insert(words.data, words.offsets[:-1], ord(" "))
    return spaced, words.offsets + np.arange(len(words.offsets))


def renyi_entropy(shares: npt.NDArray[np.float64], alpha: float) -> float:
    """Give Rényi's entropy of an order, in nats; that of order 1 is Shannon's.

    >>> round(renyi_entropy(np.array([0.5, 0.25, 0.25]), 2), 6)  # log(8 / 3)
    0.980829
    """
    if alpha == 1:
        return abs(float((shares * np.log(shares)).sum()))
    return abs(float(np.log((shares**alpha).sum()) / (1 - alpha))) if len(shares) else 0.0


def parity(costs: Mapping[str, float], reference: str | None = None) -> dict[str, float]:
    """Give what each group pays, of what a chosen one pays, or else the one that pays least.

    >>> parity({"en": 0.25, "my": 1.0})
    {'en': 1.0, 'my': 4.0}
    """
    least = min(costs.values()) if reference is None else costs[reference]
    return {group: cost / least if least else 0.0 for group, cost in costs.items()}


def gini(costs: Sequence[float]) -> float:
    """Give the Gini coefficient of what groups pay: 0 if all pay the same, near 1 if one pays all.

    >>> gini([1, 1, 1]), gini([1, 3])
    (0.0, 0.25)
    """
    ordered = np.sort(np.asarray(costs, np.float64))
    n = len(ordered)
    if not n or not ordered.sum():
        return 0.0
    return float((2 * np.arange(1, n + 1) - n - 1) @ ordered / (n * ordered.sum()))

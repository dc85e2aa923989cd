"""A text as counts of its words and chunks, and how the analysis reads documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from ..counts import ChunkCounts
from ..counts.counter import ChunkCounter, load_counts
from ..data.documents import ArrowTexts, Counts, Documents, TextFile, Texts
from ..errors import DataError
from ..patterns import Split
from ..util.lazy import lazy
from ..util.surrogates import Errors, combine_documents

WORDS = r"\S+"
"""Pattern of words, which whitespace separates."""


class CountedText:
    """A text as counts of its words, and of its chunks for each split.

    >>> text = CountedText(["gpt4"])
    >>> text.add(Texts(["to be or not to be"]))
    >>> text.bytes, text.characters, text.words.total
    (18, 18, 6)
    """

    def __init__(self, splits: Iterable[Split | str], threads: int | None = None, errors: Errors = "strict") -> None:
        """Start with an empty text."""
        self._words = ChunkCounter(WORDS, (), errors, threads)
        self._chunks = [ChunkCounter(split, (), errors, threads) for split in dict.fromkeys(map(Split.of, splits))]
        self._words_known = True

    @classmethod
    def from_counts(cls, counts: ChunkCounts, dropped: int = 0) -> CountedText:
        """Create a text from its chunk counts and the number of bytes between the chunks. Its words are unknown."""
        text = cls([])
        text._chunks = [ChunkCounter(None)]
        text.add(Counts(counts))
        text._chunks[0].dropped_bytes = dropped
        return text

    def add(self, documents: Documents) -> None:
        """Count documents, or add chunk counts. Call this before reading any property."""
        documents = repeatable(documents)
        if isinstance(documents, Counts):
            self._words_known = False
            for counter in self._chunks:
                split = getattr(documents.source, "split", None)
                if None not in (split, counter.split) and split != counter.split:
                    raise DataError(
                        f"chunk counts of the pattern {split} cannot be encoded by a tokenizer with the pattern "
                        f"{counter.split}",
                        remedy="evaluate on the documents instead",
                    )
                counter.add(documents)
            return
        for counter in (self._words, *self._chunks):
            counter.add(documents)

    @lazy
    def words(self) -> ChunkCounts | None:
        """Count of each word; None if the text contains chunk counts, whose words are unknown."""
        return ChunkCounts(self._words.take()) if self._words_known else None

    @lazy
    def chunks(self) -> dict[Split, ChunkCounts]:
        """Chunk counts by split."""
        return {counts.split: counts for counts in (ChunkCounts(counter.take()) for counter in self._chunks)}

    @lazy
    def dropped(self) -> dict[Split, int]:
        """Number of bytes that each split drops."""
        return {split: counter.dropped_bytes for split, counter in zip(self.chunks, self._chunks, strict=True)}

    @lazy
    def _most_complete(self) -> tuple[ChunkCounts, int]:
        """Chunk counts of the split that drops the fewest bytes, and the number of these."""
        best = min(self.chunks, key=lambda split: self.dropped[split])
        return self.chunks[best], self.dropped[best]

    @property
    def bytes(self) -> int:
        """Number of bytes."""
        counts, dropped = self._most_complete
        return int((counts.chunk_bytes * counts.arrays.counts.astype(np.int64)).sum()) + dropped

    @property
    def characters(self) -> int:
        """Number of characters."""
        counts, dropped = self._most_complete
        starts = np.concatenate([[0], np.cumsum((counts.arrays.data & 0xC0) != 0x80)])
        return int((np.diff(starts[counts.arrays.offsets]) * counts.arrays.counts.astype(np.int64)).sum()) + dropped


def repeatable(documents: Documents) -> Documents:
    """Return documents that can be read more than once: counts are loaded, standard input is buffered."""
    if isinstance(documents, Counts):
        return Counts(ChunkCounts(load_counts(documents.source)))
    return documents.in_memory() if isinstance(documents, TextFile) and documents.opens_once else documents


def texts_of(documents: Documents, errors: Errors) -> Iterator[str]:
    """Yield documents as strings."""
    match documents:
        case TextFile():
            with documents.open() as stream:
                yield stream.read().decode("utf-8", errors)
        case ArrowTexts(array):
            yield from (str(text) for text in array.to_pylist())
        case Texts(strings):
            yield from combine_documents(strings, errors) if errors == "replace" else strings

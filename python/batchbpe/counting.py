"""Counting a corpus, whatever it consists of: documents go to the core, counts are added."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from . import _core
from .counts import ChunkCounts, in_order
from .data.readers import Documents, TextFile, in_blocks
from .data.tables import CountsFile
from .errors import short
from .patterns import PATTERNS, pattern_of
from .surrogates import surrogate_error, without_surrogates


class Counter:
    """Adds up whatever a corpus consists of."""

    def __init__(
        self,
        pattern: str | None,
        special_tokens: Sequence[str] = (),
        errors: str = "strict",
        threads: int | None = None,
        max_chunk_bytes: int | None = None,
        moved: Callable[[int], object] = lambda _: None,
    ) -> None:
        """Start with nothing. `moved` is called when all that was given is counted, or surely will be.

        It gets the place in the text file that is being counted, or 0.
        """
        self.pattern = None if pattern is None else pattern_of(pattern)
        self.special_tokens, self.errors, self.threads = special_tokens, errors, threads
        self.max_chunk_bytes, self.moved = max_chunk_bytes, moved
        self.table: _core.ChunkTable | None = None
        self.only: ChunkCounts | None = None  # the counts, as long as there is nothing to add to them
        self.read = self.dropped = self.skipped = 0

    def add(self, documents: Documents, skip: int = 0) -> None:
        """Count documents, or add counts; of a text file only what follows the first `skip` bytes."""
        if isinstance(documents, CountsFile):
            documents = ChunkCounts.load(documents.path)
        if isinstance(documents, ChunkCounts):
            self._add_counts(documents)
        elif isinstance(documents, Mapping):
            self._add_counts(_from_mapping(documents, self.pattern))
        elif isinstance(documents, TextFile):
            self._add_file(documents, skip)
        elif isinstance(documents, list):
            try:
                self._started().add_strings(documents)
            except UnicodeEncodeError as error:
                if self.errors != "replace":
                    raise surrogate_error(error) from None
                self._started().add_strings(list(map(without_surrogates, documents)))
            self._moved(sum(map(len, documents)))
        else:
            from .data.arrow_strings import bytes_and_offsets  # which imports pyarrow

            data, offsets = bytes_and_offsets(documents)
            self._started().add_documents(data, offsets)
            self._moved(int(offsets[-1] - offsets[0]))

    def _started(self) -> _core.ChunkTable:
        if self.table is None:
            self.pattern = self.pattern or PATTERNS["gpt4"]
            self.table = _core.ChunkTable(self.pattern, self.special_tokens, self.threads, self.max_chunk_bytes)
            if self.only is not None:
                self.table.add_counts(self.only.data, self.only.offsets, self.only.counts)
                self.only = None
        return self.table

    def _add_counts(self, counts: ChunkCounts) -> None:
        self.pattern = self.pattern or counts.pattern
        if counts.pattern != self.pattern:
            raise ValueError(
                "counts made with different patterns do not add: "
                f"{short(counts.pattern)} is not {short(self.pattern)}; count the text again with one pattern"
            )
        if self.table is None and self.only is None:
            self.only = counts
        else:
            self._started().add_counts(counts.data, counts.offsets, counts.counts)
        self._moved(len(counts.data))

    def _add_file(self, file: TextFile, skip: int) -> None:
        before = skip
        use = lambda block, offset, last: self._started().add_block(block, offset, last)  # noqa: E731  a new table may come
        for done in in_blocks(file, self.errors, use, skip):
            self._moved(done - before, done)
            before = done

    def _moved(self, size: int, done: int = 0) -> None:
        self.read += size
        self.moved(done)

    @property
    def unique(self) -> int:
        """How many unique chunks there are so far, or more, as several threads may have met the same."""
        return self.only.unique if self.only is not None else self.table.unique if self.table else 0

    @property
    def memory(self) -> int:
        """How many bytes of memory the chunks take."""
        return self.table.memory if self.table else 0

    def take(self) -> ChunkCounts:
        """Give the counts, and start again with nothing."""
        if self.only is not None:
            counts, self.only = self.only, None
            return counts
        data, offsets, counts_, dropped, skipped = self._started().finish()
        self.table = None
        self.dropped, self.skipped = self.dropped + dropped, self.skipped + skipped
        return ChunkCounts(data, offsets, counts_, pattern=self.pattern or "")

    def finish(self) -> ChunkCounts:
        """Give the counts, and warn if any text was dropped."""
        counts = self.take()
        if self.dropped:
            warnings.warn(dropped_text(self.dropped, counts.pattern), stacklevel=3)
        return counts


def dropped_text(dropped: int, pattern: str) -> str:
    """Say what it means that text was dropped."""
    return (
        f"{dropped} bytes lie between the matches of the pattern {short(pattern)} and are dropped: "
        "what is encoded with it does not decode to the same text"
    )


def _from_mapping(mapping: Mapping[Any, int], pattern: str | None) -> ChunkCounts:
    """A dictionary of counts."""
    rows = []
    for chunk, count in mapping.items():
        if not isinstance(chunk, str | bytes):
            raise TypeError(f"the chunk {short(chunk)} is a {type(chunk).__name__}: give str or bytes")
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or not 0 <= count < 1 << 64:
            raise ValueError(f"the count {short(count)} of chunk {short(chunk)} is no whole number from 0 to 2**64 - 1")
        rows.append((chunk if isinstance(chunk, bytes) else chunk.encode("utf-8", "surrogateescape"), int(count)))
    rows = [(chunk, count) for chunk, count in rows if count]
    data = np.frombuffer(b"".join(chunk for chunk, _ in rows), np.uint8)
    offsets = np.cumsum([0, *(len(chunk) for chunk, _ in rows)], dtype=np.int64)
    counts = np.array([count for _, count in rows], np.uint64)
    return in_order(data, offsets, counts, pattern or PATTERNS["gpt4"])

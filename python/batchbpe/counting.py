"""Counting a corpus, whatever it consists of: documents go to the core, counts are added."""

from __future__ import annotations

import codecs
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from . import _core, corpus
from .chunks import BLOCK, PATTERNS, ChunkCounts, Progress, in_order, pattern_of, surrogate_error


class Counter:
    """Adds up whatever a corpus consists of."""

    def __init__(
        self,
        pattern: str | None,
        special_tokens: Sequence[str],
        errors: str,
        progress: Progress | None,
        threads: int | None,
    ) -> None:
        """Start with nothing."""
        self.pattern = None if pattern is None else pattern_of(pattern)
        self.special_tokens, self.errors, self.progress, self.threads = special_tokens, errors, progress, threads
        self.table: _core.ChunkTable | None = None
        self.only: ChunkCounts | None = None  # the counts, as long as there is nothing to add to them
        self.read = 0

    def add(self, documents: corpus.Documents) -> None:
        """Count documents, or add counts."""
        if isinstance(documents, corpus.CountsFile):
            documents = ChunkCounts.load(documents.path)
        if isinstance(documents, ChunkCounts):
            self._add_counts(documents)
        elif isinstance(documents, Mapping):
            self._add_counts(_from_mapping(documents, self.pattern))
        elif isinstance(documents, corpus.TextFile):
            self._add_file(documents)
        elif isinstance(documents, list):
            try:
                self._started().add_strings(documents)
            except UnicodeEncodeError as error:
                raise surrogate_error(error) from None
            self._report(sum(map(len, documents)))
        else:
            from .formats.counts import bytes_and_offsets  # which imports pyarrow

            data, offsets = bytes_and_offsets(documents)
            self._started().add_documents(data, offsets)
            self._report(len(data))

    def _started(self) -> _core.ChunkTable:
        if self.table is None:
            self.pattern = self.pattern or PATTERNS["gpt4"]
            self.table = _core.ChunkTable(self.pattern, self.special_tokens, self.threads)
            if self.only is not None:
                self.table.add_counts(self.only.data, self.only.offsets, self.only.counts)
                self.only = None
        return self.table

    def _add_counts(self, counts: ChunkCounts) -> None:
        self.pattern = self.pattern or counts.pattern
        if counts.pattern != self.pattern:
            raise ValueError(
                "counts made with different patterns do not add: "
                f"{counts.pattern!r} is not {self.pattern!r}; count the text again with one pattern"
            )
        if self.table is None and self.only is None:
            self.only = counts
        else:
            self._started().add_counts(counts.data, counts.offsets, counts.counts)
        self._report(len(counts.data))

    def _add_file(self, file: corpus.TextFile) -> None:
        table = self._started()
        decoder = codecs.getincrementaldecoder("utf-8")("replace") if self.errors == "replace" else None
        done, rest = 0, b""
        with file.open() as stream:
            last = False
            while not last:
                # As much again as could not be used yet: a file with no place to cut is still read in linear time.
                block = stream.read(max(BLOCK, len(rest)))
                last = not block
                self._report(len(block))
                rest += decoder.decode(block, last).encode() if decoder else block
                try:
                    used = table.add_block(rest, done, last)
                except ValueError as error:
                    raise ValueError(f"{file.name}: {error}") from None
                done, rest = done + used, rest[used:]

    def _report(self, size: int) -> None:
        self.read += size
        if self.progress:
            self.progress(self.read)

    def finish(self) -> ChunkCounts:
        """Give the counts, and warn if any text was dropped."""
        if self.only is not None:
            return self.only
        data, offsets, counts, dropped = self._started().finish()
        if dropped:
            warnings.warn(
                f"{dropped} bytes lie between the matches of the pattern {self.pattern!r} and are dropped: "
                "what is encoded with it does not decode to the same text",
                stacklevel=3,
            )
        return ChunkCounts(data, offsets, counts, pattern=self.pattern or "")


def _from_mapping(mapping: Mapping[Any, int], pattern: str | None) -> ChunkCounts:
    """A dictionary of counts."""
    rows = []
    for chunk, count in mapping.items():
        if not isinstance(chunk, str | bytes):
            raise TypeError(f"the chunk {chunk!r} is a {type(chunk).__name__}: give str or bytes")
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or not 0 <= count < 1 << 64:
            raise ValueError(f"the count {count!r} of chunk {chunk!r} is no whole number from 0 to 2**64 - 1")
        rows.append((chunk if isinstance(chunk, bytes) else chunk.encode("utf-8", "surrogateescape"), int(count)))
    rows = [(chunk, count) for chunk, count in rows if count]
    data = np.frombuffer(b"".join(chunk for chunk, _ in rows), np.uint8)
    offsets = np.cumsum([0, *(len(chunk) for chunk, _ in rows)], dtype=np.int64)
    counts = np.array([count for _, count in rows], np.uint64)
    return in_order(data, offsets, counts, pattern or PATTERNS["gpt4"])

"""`ChunkCounter`: feeds documents of any kind to the core, which splits them and counts the chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .. import _core
from ..data.documents import ArrowTexts, Counts, Documents, TextFile, Texts
from ..data.files import decompressed, split_suffix
from ..data.sampling import Sampling, Selection
from ..data.source import Source
from ..data.text_files import read_blocks
from ..data.untrusted import has_dictionary
from ..errors import ArgumentError, ArgumentTypeError, DataError, plural, short, warn
from ..patterns import PATTERNS, check_pattern, describe_pattern, resolve_pattern
from ..util.surrogates import Errors, combine_documents

FEW_ROWS = 64
"""Rows of a file of counts to read at once if each may refer to a megabyte in a dictionary."""


Arrays = tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.uint64]]
"""The bytes of all chunks, the offset of each chunk, and the counts."""


class ChunkArrays(NamedTuple):
    """Chunks and counts as the core exchanges them."""

    data: npt.NDArray[np.uint8]
    """The bytes of all chunks, concatenated."""
    offsets: npt.NDArray[np.int64]
    """The offset of each chunk in `data`, and the end of the last one."""
    counts: npt.NDArray[np.uint64]
    pattern: str
    """The regular expression that made the chunks."""


class ChunkCounter:
    """Counts the chunks of everything that is added to it.

    >>> counter = ChunkCounter("gpt4")
    >>> counter.add(Texts(["to be or not to be"]))
    >>> counter.take().counts.tolist()
    [2, 1, 1, 1, 1]
    """

    def __init__(
        self,
        pattern: str | None,
        special_tokens: Sequence[str] = (),
        errors: Errors = "strict",
        threads: int | None = None,
        max_chunk_bytes: int | None = None,
        max_counts_bytes: int | None = None,
        on_progress: Callable[[int], object] = lambda _: None,
    ) -> None:
        """Start with no chunks.

        Parameters
        ----------
        pattern: name or regular expression; None for the pattern of the first counts, or gpt4.
        special_tokens: removed from the text before it is split.
        errors: "strict", or "replace" to replace invalid UTF-8 and lone surrogates with U+FFFD.
        threads: number of threads; all cores by default.
        max_chunk_bytes: longer chunks are skipped.
        max_counts_bytes: raise if a file of counts, which is loaded as a whole, has more bytes of chunks.
        on_progress: called when everything added so far has been counted or queued, with the position in the text file
            that is being read, or 0.

        """
        self.pattern = None if pattern is None else resolve_pattern(pattern)
        self.special_tokens, self.errors, self.threads = special_tokens, errors, threads
        self.max_chunk_bytes, self.max_counts_bytes = max_chunk_bytes, max_counts_bytes
        self.on_progress = on_progress
        self.bytes_read = 0
        """Bytes of text; chunk counts are not text."""
        self.dropped_bytes = 0
        """Bytes that the pattern does not match."""
        self.skipped_chunks = 0
        """Chunks longer than `max_chunk_bytes`."""
        self._table: _core.ChunkTable | None = None
        self._only_counts: ChunkArrays | None = None  # counts that nothing has been added to yet

    def add_sources(self, sources: Iterable[Source], sampling: Sampling | None = None) -> None:
        """Count the documents of some sources, or a sample of them. Errors name the file."""
        selection = Selection(sampling or Sampling())
        for source in sources:
            with source.blamed():
                for documents in selection.of(source):
                    self.add(documents)

    def add(self, documents: Documents, skip: int = 0) -> None:
        """Count documents, or add counts. The first `skip` bytes of a text file are skipped."""
        match documents:
            case Texts(strings):
                self._add_strings(strings)
            case ArrowTexts():
                data, offsets = documents.buffers()
                self._started().add_documents(data, offsets)
                self._progress(int(offsets[-1] - offsets[0]))
            case TextFile():
                self._add_file(documents, skip)
            case Counts(source):
                self._add_counts(load_counts(source, self.pattern, self.max_counts_bytes))
            case _:
                raise ArgumentTypeError("documents", type(documents).__name__, "must be Documents")

    def _add_strings(self, strings: list[str]) -> None:
        try:
            size = self._started().add_strings(strings)
        except UnicodeEncodeError:
            size = self._started().add_strings(combine_documents(strings, self.errors))
        self._progress(size)

    def _add_file(self, file: TextFile, skip: int) -> None:
        before = skip
        for done in read_blocks(file, self.errors, self._add_block, skip):
            self._progress(done - before, done)
            before = done

    def _add_block(self, block: bytes, offset: int, last: bool) -> int:
        return self._started().add_block(block, offset, last)

    def _add_counts(self, counts: ChunkArrays) -> None:
        self.pattern = self.pattern or counts.pattern
        if counts.pattern != self.pattern:
            made, expected = describe_pattern(counts.pattern), describe_pattern(self.pattern)
            remedy = f"use {made}, or count the text again with {expected}"
            raise DataError(f"counted with the pattern {made}, expected {expected}", remedy=remedy)
        if self._table is None and self._only_counts is None:
            self._only_counts = counts
        else:
            self._started().add_counts(counts.data, counts.offsets, counts.counts)
        self._progress(0)  # `bytes_read` is about text

    def _started(self) -> _core.ChunkTable:
        if self._table is None:
            self.pattern = self.pattern or PATTERNS["gpt4"]
            self._table = _core.ChunkTable(self.pattern, self.special_tokens, self.threads, self.max_chunk_bytes)
            if self._only_counts is not None:
                self._table.add_counts(*self._only_counts[:3])
                self._only_counts = None
        return self._table

    def _progress(self, size: int, position: int = 0) -> None:
        self.bytes_read += size
        self.on_progress(position)

    @property
    def total(self) -> int:
        """Number of chunks counted so far; exact with one thread."""
        return self._table.total if self._table else 0

    @property
    def unique(self) -> int:
        """Upper bound of the number of unique chunks so far: threads may have found the same ones."""
        if self._only_counts is not None:
            return len(self._only_counts.counts)
        return self._table.unique if self._table else 0

    @property
    def memory(self) -> int:
        """Bytes of memory that the chunks take."""
        return self._table.memory if self._table else 0

    def take(self) -> ChunkArrays:
        """Return the counts, and start again with no chunks."""
        if self._only_counts is not None:
            counts, self._only_counts = self._only_counts, None
            return counts
        data, offsets, counts_, dropped, skipped = self._started().finish()
        self._table = None
        self.dropped_bytes, self.skipped_chunks = self.dropped_bytes + dropped, self.skipped_chunks + skipped
        return ChunkArrays(data, offsets, counts_, self.pattern or "")

    def finish(self) -> ChunkArrays:
        """Return the counts, and warn if the pattern did not match all of the text."""
        counts = self.take()
        if self.dropped_bytes:
            warn(dropped_text(self.dropped_bytes, counts.pattern))
        return counts


def dropped_text(dropped_bytes: int, pattern: str) -> str:
    """Return a warning about text that a pattern does not match.

    >>> dropped_text(3, "a+")
    "the pattern 'a+' does not match 3 bytes of the text; decoding will not restore them"
    """
    size = plural(dropped_bytes, "byte")
    return f"the pattern {describe_pattern(pattern)} does not match {size} of the text; decoding will not restore them"


def load_counts(
    source: Path | Mapping[Any, int], pattern: str | None = None, max_bytes: int | None = None, freq_cutoff: int = 1
) -> ChunkArrays:
    """Load counts from a file, a folder or a mapping. A plain mapping has no pattern of its own and takes `pattern`.

    Of a folder, only chunks that occur at least `freq_cutoff` times are loaded.

    >>> load_counts({"to": 2, b" be": 3}).counts.tolist()
    [3, 2]
    """
    if isinstance(source, Path):
        return _load_folder(source, max_bytes, freq_cutoff) if source.is_dir() else _load_file(source, max_bytes)
    arrays = getattr(source, "arrays", None)  # of a ChunkCounts
    return arrays if isinstance(arrays, ChunkArrays) else _from_mapping(source, pattern or PATTERNS["gpt4"])


def _load_file(path: Path, max_bytes: int | None) -> ChunkArrays:
    from ..formats.counts_csv import read_csv
    from ..formats.file_errors import locate_errors

    if not path.is_file():
        raise FileNotFoundError(f"file not found: {path}")
    with locate_errors(path):
        suffix, compression = split_suffix(path)
        with decompressed(path, compression) as plain:
            if suffix == ".csv":
                (data, offsets, counts), pattern = read_csv(plain, max_bytes)
                total = None
            else:
                from ..formats import counts_parquet as parquet  # imports pyarrow

                rows = FEW_ROWS if has_dictionary(plain) else parquet.ROWS
                (data, offsets, counts), pattern, total = parquet.read(plain, max_bytes, rows)
        _check_counted_with(pattern)
        arrays = ChunkArrays(data, offsets, counts, pattern)
        # Only in files that store a total is each chunk known to occur once.
        if total is None or not _core.is_in_order(data, offsets, counts):
            arrays = sorted_counts(arrays)
        found = total_of(arrays.counts)
        if total not in (None, found):
            raise DataError(
                f"the file is damaged: its counts add up to {found}, expected {total}", remedy="count again"
            )
    return arrays


def _load_folder(folder: Path, max_bytes: int | None, freq_cutoff: int) -> ChunkArrays:
    from ..formats import counts_folder  # imports pyarrow
    from ..formats.file_errors import locate_errors

    pattern = counts_folder.read_metadata(folder, "chunk").get("pattern")
    rows = counts_folder.ROWS
    for part in counts_folder.parts(folder):
        with locate_errors(part):
            rows = FEW_ROWS if has_dictionary(part) else rows
    with locate_errors(folder):
        _check_counted_with(pattern)
    arrays = added_up(counts_folder.read(folder, "chunk", freq_cutoff, max_bytes, rows))
    return ChunkArrays(*arrays, pattern=str(pattern))


def _check_counted_with(pattern: object) -> None:
    if not isinstance(pattern, str):
        raise DataError(f"the pattern must be a string, got {short(pattern)}")
    if not pattern:
        raise DataError("the pattern is empty", remedy="set it to the one that the chunks were made with")
    check_pattern(pattern)


def _from_mapping(mapping: Mapping[Any, int], pattern: str) -> ChunkArrays:
    rows: list[tuple[bytes, int]] = []
    for chunk, count in mapping.items():
        if not isinstance(chunk, str | bytes):
            raise ArgumentTypeError("data", chunk, "must map str or bytes to counts")
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or not 0 <= count < 1 << 64:
            reason = f"must map chunk {short(chunk)} to an integer from 0 to 2**64 - 1"
            remedy = f"for rows of a table, pass [row[{short(chunk)}] for row in rows] or a data frame"
            raise ArgumentError("data", count, reason, remedy=remedy if isinstance(count, str | list) else "")
        if count:
            rows.append((chunk if isinstance(chunk, bytes) else _chunk_bytes(chunk), int(count)))
    data = np.frombuffer(b"".join(chunk for chunk, _ in rows), np.uint8)
    offsets = np.cumsum([0, *(len(chunk) for chunk, _ in rows)], dtype=np.int64)
    return sorted_counts(ChunkArrays(data, offsets, np.array([count for _, count in rows], np.uint64), pattern))


def _chunk_bytes(chunk: str) -> bytes:
    try:
        return chunk.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise ArgumentError("data", chunk, "must not contain a chunk with a lone surrogate") from None


def sorted_counts(arrays: ChunkArrays) -> ChunkArrays:
    """Sort counts by frequency and add up those of equal chunks.

    >>> arrays = load_counts({"to": 1, " be": 2})
    >>> sorted_counts(arrays._replace(counts=arrays.counts[::-1].copy())).data.tobytes()
    b'to be'
    """
    return ChunkArrays(*added_up([arrays[:3]]), pattern=arrays.pattern)


def added_up(parts: Iterable[Arrays]) -> Arrays:
    """Add up counts of chunks, or of anything else that is bytes, and sort them by frequency.

    >>> arrays = load_counts({"to": 1})[:3]
    >>> added_up([arrays, arrays])[2].tolist()
    [2]
    """
    table = _core.ChunkTable(PATTERNS["gpt4"], [], None)  # the pattern is not used
    for part in parts:
        table.add_counts(*part)
    return table.finish()[:3]


def total_of(counts: npt.NDArray[np.uint64]) -> int:
    """Add up counts whose sum may exceed 64 bits.

    >>> total_of(np.array([1 << 63, 1 << 63], np.uint64)) == 1 << 64
    True
    """
    block = 1 << 22
    parts = np.array_split(counts, len(counts) // block + 1)
    return sum((int((part >> 32).sum()) << 32) + int((part & 0xFFFF_FFFF).sum()) for part in parts)

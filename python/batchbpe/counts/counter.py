"""`ChunkCounter`: counts the chunks of documents of any kind, including chunk counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .. import _core
from ..data.documents import Counts, Documents
from ..data.files import decompressed, split_suffix
from ..data.untrusted import has_dictionary
from ..errors import ArgumentError, ArgumentTypeError, DataError, SplitMismatchError, plural, short, warn
from ..patterns import Split
from ..util.surrogates import Errors
from .arrays import added_up, total_of
from .text_counter import TextCounter

FEW_ROWS = 64
"""Rows of a file of counts to read at once if each may refer to a megabyte in a dictionary."""


class ChunkArrays(NamedTuple):
    """Chunks and counts as the core exchanges them."""

    data: npt.NDArray[np.uint8]
    """The bytes of all chunks, concatenated."""
    offsets: npt.NDArray[np.int64]
    """The offset of each chunk in `data`, and the end of the last one."""
    counts: npt.NDArray[np.uint64]
    split: Split
    """How the chunks were made."""


class ChunkCounter(TextCounter):
    """Counts the chunks of everything that is added to it, which may be chunk counts.

    >>> from batchbpe.data.documents import Texts
    >>> counter = ChunkCounter("gpt4")
    >>> counter.add(Texts(["to be or not to be"]))
    >>> counter.take().counts.tolist()
    [2, 1, 1, 1, 1]
    """

    def __init__(
        self,
        split: Split | str | None,
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
        split: how text becomes chunks; None for the split of the first counts, or gpt4.
        special_tokens: removed from the text before it is split.
        threads: number of threads; all cores by default.
        max_chunk_bytes: longer chunks are skipped.
        max_counts_bytes: raise if a file of counts, which is loaded as a whole, has more bytes of chunks.
        errors, on_progress: as for `TextCounter`.

        """
        super().__init__(self._start, errors, on_progress)
        self.split = None if split is None else Split.of(split)
        self.special_tokens, self.threads = special_tokens, threads
        self.max_chunk_bytes, self.max_counts_bytes = max_chunk_bytes, max_counts_bytes
        self._only_counts: ChunkArrays | None = None  # counts that nothing has been added to yet

    def add(self, documents: Documents, skip: int = 0) -> None:
        """Count documents, or add counts. The first `skip` bytes of a text file are skipped."""
        if isinstance(documents, Counts):
            self._add_counts(load_counts(documents.source, self.split, self.max_counts_bytes))
        else:
            super().add(documents, skip)

    def _add_counts(self, counts: ChunkArrays) -> None:
        self.split = self.split or counts.split
        if counts.split != self.split:
            remedy = f"use {counts.split}, or count the text again with {self.split}"
            problem = f"counted with the pattern {counts.split}, expected {self.split}"
            raise SplitMismatchError(problem, remedy=remedy)
        if self._table is None and self._only_counts is None:
            self._only_counts = counts
        else:
            self.table.add_counts(counts.data, counts.offsets, counts.counts)
        self._progress(0)  # `bytes_read` is about text

    def _start(self) -> _core.ChunkTable:
        self.split = self.split or Split.of("gpt4")
        table = _core.ChunkTable(self.split, self.special_tokens, self.threads, self.max_chunk_bytes)
        if self._only_counts is not None:
            table.add_counts(*self._only_counts[:3])
            self._only_counts = None
        return table

    @property
    def unique(self) -> int:
        """Upper bound of the number of unique chunks so far: threads may have found the same ones."""
        return super().unique if self._only_counts is None else len(self._only_counts.counts)

    def take(self) -> ChunkArrays:
        """Return the counts, and start again with no chunks."""
        if self._only_counts is not None:
            counts, self._only_counts = self._only_counts, None
            return counts
        arrays = self.take_arrays()
        assert self.split is not None  # it is known once there is a table
        return ChunkArrays(*arrays, self.split)

    def finish(self) -> ChunkArrays:
        """Return the counts, and warn if the pattern did not match all of the text."""
        counts = self.take()
        if self.dropped_bytes:
            warn(dropped_text(self.dropped_bytes, counts.split))
        return counts


def dropped_text(dropped_bytes: int, split: Split) -> str:
    """Return a warning about text that a pattern does not match.

    >>> dropped_text(3, Split("a+"))
    "the pattern 'a+' does not match 3 bytes of the text; decoding will not restore them"
    """
    size = plural(dropped_bytes, "byte")
    return f"the pattern {split} does not match {size} of the text; decoding will not restore them"


def load_counts(
    source: Path | Mapping[Any, int], split: Split | None = None, max_bytes: int | None = None, freq_cutoff: int = 1
) -> ChunkArrays:
    """Load counts from a file, a folder or a mapping. A plain mapping was not made by a split and takes `split`.

    Of a folder, only chunks that occur at least `freq_cutoff` times are loaded.

    >>> load_counts({"to": 2, b" be": 3}).counts.tolist()
    [3, 2]
    """
    if isinstance(source, Path):
        return _load_folder(source, max_bytes, freq_cutoff) if source.is_dir() else _load_file(source, max_bytes)
    arrays = getattr(source, "arrays", None)  # of a ChunkCounts
    return arrays if isinstance(arrays, ChunkArrays) else _from_mapping(source, split or Split.of("gpt4"))


def _load_file(path: Path, max_bytes: int | None) -> ChunkArrays:
    from ..formats.counts_csv import read_csv
    from ..formats.file_errors import locate_errors

    if not path.is_file():
        raise FileNotFoundError(f"file not found: {path}")
    with locate_errors(path):
        suffix, compression = split_suffix(path)
        with decompressed(path, compression) as plain:
            if suffix == ".csv":
                (data, offsets, counts), text = read_csv(plain, max_bytes)
                split, total = Split.from_text(text), None
            else:
                from ..formats import counts_parquet as parquet  # imports pyarrow

                rows = FEW_ROWS if has_dictionary(plain) else parquet.ROWS
                (data, offsets, counts), stored, total = parquet.read(plain, max_bytes, rows)
                split = Split.from_json(stored)
        arrays = ChunkArrays(data, offsets, counts, split)
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
        split = Split.from_json(pattern)
    arrays = added_up(counts_folder.read(folder, "chunk", freq_cutoff, max_bytes, rows))
    return ChunkArrays(*arrays, split)


def _from_mapping(mapping: Mapping[Any, int], split: Split) -> ChunkArrays:
    rows: list[tuple[bytes, int]] = []
    for chunk, count in mapping.items():
        if not isinstance(chunk, str | bytes):
            raise ArgumentTypeError("data", chunk, "must map str or bytes to counts")
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or not 0 <= count < 1 << 64:
            reason = f"must map chunk {short(chunk)} to an integer from 0 to 2**64 - 1"
            remedies = {
                str | list: f"for rows of a table, pass [row[{short(chunk)}] for row in rows] or a data frame",
                Mapping | list: "for groups, such as languages, use train(groups=…)",
            }
            remedy = "; ".join(text for kinds, text in remedies.items() if isinstance(count, kinds))
            raise ArgumentError("data", count, reason, remedy=remedy)
        if count:
            rows.append((chunk if isinstance(chunk, bytes) else _chunk_bytes(chunk), int(count)))
    data = np.frombuffer(b"".join(chunk for chunk, _ in rows), np.uint8)
    offsets = np.cumsum([0, *(len(chunk) for chunk, _ in rows)], dtype=np.int64)
    return sorted_counts(ChunkArrays(data, offsets, np.array([count for _, count in rows], np.uint64), split))


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
    return ChunkArrays(*added_up([arrays[:3]]), arrays.split)

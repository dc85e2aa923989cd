"""`SpilledCounts`: chunk counts on disk, for counts that exceed memory or must survive a crash, and their sum.

Counts are written in parts, each with the counts of some of the data. Within a part, chunks are divided into ranges by
their first bytes. All parts have the same ranges, so they are added up range by range, never all at once. The sums of
the ranges are then merged, highest count first.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..counts import ChunkCounts
from ..counts.arrays import added_up
from ..counts.counter import ChunkArrays
from ..errors import DataError
from ..formats import counts_parquet as files
from ..patterns import Split
from ..storage.atomic import replacing, writing
from ..util.arrow import bytes_and_offsets, int64_array
from ..util.memory import release_memory

RANGES = 64
_ROWS = files.ROWS
_SUMS = "sums-"
_STRETCH = np.dtype([("count", np.uint64), ("table", np.int64), ("start", np.int64), ("rows", np.int64)])
"""Rows of a table that have the same count."""


class Totals(NamedTuple):
    """What `SpilledCounts.save_sum` has written."""

    total: int = 0
    unique: int = 0
    longest_chunk: int = 0


class SpilledCounts:
    """The parts in a folder, with a checksum for each.

    Parts are read back later, perhaps by another process. A damaged part would give wrong counts, so the checksums are
    verified before parts are added up.
    """

    def __init__(self, folder: Path, checksums: Mapping[str, str] | None = None, bounds: Sequence[int] = ()) -> None:
        """Continue with existing parts, if there are any. `bounds` are the prefixes that separate their ranges."""
        self.folder, self.checksums, self.bounds = folder, dict(checksums or {}), list(bounds)

    def add(self, counts: ChunkCounts) -> None:
        """Write a part: one record batch for each range."""
        prefixes = _prefixes(counts)
        if not self.bounds and len(prefixes):
            quantiles = np.linspace(0, len(prefixes) - 1, RANGES + 1).astype(np.int64)[1:-1]
            self.bounds = np.sort(prefixes)[quantiles].tolist()
        ranges = np.searchsorted(np.array(self.bounds, np.uint64), prefixes, side="right")
        table = files.table(*counts.arrays[:3])
        name = f"part-{len(self.checksums):06}.counts"
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        with replacing(self.folder / name) as temporary:
            with pa.ipc.new_file(str(temporary), files.SCHEMA, options=options) as writer:
                for rows in _grouped(ranges, RANGES):
                    batches = table.take(int64_array(rows)).combine_chunks().to_batches()
                    writer.write_batch(batches[0] if batches else pa.record_batch([[], []], schema=files.SCHEMA))
            checksum = _checksum(temporary)
        self.checksums[name] = checksum

    def check(self, poll: Callable[[], object] = lambda: None) -> None:
        """Raise if a part is missing or damaged. `poll` is called between parts, and may raise."""
        remedy = f"remove {self.folder} to start again"
        for name, known in self.checksums.items():
            poll()
            path = self.folder / name
            if not path.exists():
                raise FileNotFoundError(f"{path} is missing; {remedy}")
            if _checksum(path) != known:
                raise DataError("the file is damaged (wrong checksum)", where=str(path), remedy=remedy)

    def remove_unrecorded(self) -> None:
        """Remove what a killed job left behind: parts that are not in the record, and temporary files."""
        for path in self.folder.iterdir():
            if path.is_dir() and path.name.startswith(_SUMS):
                shutil.rmtree(path, ignore_errors=True)
            elif path.name not in self.checksums and path.name.endswith((".counts", ".tmp")):
                path.unlink(missing_ok=True)

    def save_sum(
        self, path: Path, split: Split, threads: int | None, poll: Callable[[], object] = lambda: None
    ) -> Totals:
        """Write the sum of all parts as a file of counts. `poll` is called regularly, and may raise."""
        self.check(poll)
        totals = Totals()
        # Windows does not remove files that are mapped. They are removed with the folder of the job.
        with tempfile.TemporaryDirectory(dir=self.folder, prefix=_SUMS, ignore_cleanup_errors=True) as folder:
            sums = []
            for number in range(RANGES):
                poll()
                counts = ChunkCounts(ChunkArrays(*added_up(self._read_range(number), threads), split))
                longest = max(totals.longest_chunk, int(counts.chunk_bytes.max(initial=0)))
                totals = Totals(totals.total + counts.total, totals.unique + counts.unique, longest)
                sums.append(Path(folder) / f"{number:03}.counts")
                with writing(sums[-1]), pa.ipc.new_file(str(sums[-1]), files.SCHEMA) as writer:
                    writer.write_table(files.table(*counts.arrays[:3]))
            poll()
            tables = [pa.ipc.open_file(pa.memory_map(str(each))).read_all().combine_chunks() for each in sums]
            with replacing(path) as temporary:
                as_csv = path.suffix.lower() == ".csv"
                files.write(_merged(tables), split, totals.total, totals.unique, temporary, as_csv=as_csv)
        return totals

    def _read_range(self, number: int) -> Iterator[Any]:
        """Yield the counts of one range, from each part."""
        for name in self.checksums:
            with pa.OSFile(str(self.folder / name), "rb") as source:
                batch = pa.ipc.open_file(source).get_batch(number)
            yield *bytes_and_offsets(batch["chunk"]), np.asarray(batch["count"])


def _checksum(path: Path) -> str:
    checksum = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            checksum.update(block)
    return checksum.hexdigest()


def _prefixes(counts: ChunkCounts) -> npt.NDArray[np.uint64]:
    """Return the first eight bytes of each chunk as a number; the numbers are in the order of the bytes."""
    prefixes = np.zeros((counts.unique, 8), np.uint8)
    for first in range(0, counts.unique, _ROWS):  # in blocks, to bound the memory
        offsets = counts.arrays.offsets[first : first + _ROWS + 1]
        for index in range(8):
            positions = offsets[:-1] + index
            long_enough = np.flatnonzero(positions < offsets[1:])
            prefixes[first + long_enough, index] = counts.arrays.data[positions[long_enough]]
    return prefixes.view(">u8").ravel().astype(np.uint64)


def _grouped(groups: npt.NDArray[np.int64], n: int) -> list[npt.NDArray[np.int64]]:
    """Return the rows of each of n groups, in order; `groups` has the group of each row.

    >>> [rows.tolist() for rows in _grouped(np.array([1, 0, 1]), 3)]
    [[1], [0, 2], []]
    """
    rows = np.argsort(groups, kind="stable")
    bounds = np.searchsorted(groups[rows], np.arange(n + 1))
    return [rows[start:end] for start, end in pairwise(bounds)]


def _merged(tables: Sequence[pa.Table]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of all tables, highest count first; rows with the same count stay in the order of the tables.

    Each table is sorted already. It consists of stretches of rows with the same count, and because most chunks are
    rare, there are few stretches: they are sorted in memory, and the rows are not.
    """
    stretches = np.concatenate([_stretches(table, number) for number, table in enumerate(tables)])
    # `~` reverses the order of unsigned integers. The sort is stable, so the order of the tables is kept.
    stretches = stretches[np.argsort(~stretches["count"], kind="stable")]
    ends = np.cumsum(stretches["rows"])
    n = int(stretches["rows"].sum())
    for first in range(0, n, _ROWS):
        output_rows = np.arange(first, min(first + _ROWS, n))
        index = np.searchsorted(ends, output_rows, side="right")
        stretch = stretches[index]
        rows = stretch["start"] + stretch["rows"] - (ends[index] - output_rows)
        yield from _take(tables, stretch["table"], rows).to_batches()
        release_memory()


def _stretches(table: pa.Table, number: int) -> npt.NDArray[Any]:
    counts = np.asarray(cast(Any, table["count"]).combine_chunks())
    starts = np.flatnonzero(np.diff(counts, prepend=counts[:1] + np.uint64(1)))
    stretches = np.empty(len(starts), _STRETCH)
    stretches["count"], stretches["table"], stretches["start"] = counts[starts], number, starts
    stretches["rows"] = np.diff(starts, append=len(counts))
    return stretches


def _take(tables: Sequence[pa.Table], numbers: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]) -> pa.Table:
    """Return rows of several tables, given the number of its table for each row.

    Taking rows from the concatenated tables would copy all of them first.
    """
    by_table = _grouped(numbers, len(tables))
    taken = pa.concat_tables(
        table.take(int64_array(rows[group])) for table, group in zip(tables, by_table, strict=True) if len(group)
    )
    original_order = np.argsort(np.concatenate(by_table))
    return taken.take(int64_array(original_order)).combine_chunks()

"""Runs: chunk counts on disk, for counts that exceed memory or must survive a crash, and their sum.

A run holds the counts of a part of the data. Its chunks are divided into ranges by their first bytes. All runs have the
same ranges, so they are added up range by range, never all at once. The order of the ranges is the order of the chunks,
so the sums are sorted by count by copying stretches of equal counts, range after range.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .._core import ChunkTable
from ..counts import ChunkCounts
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


class Runs:
    """The runs in a folder, with a checksum for each.

    Runs are read back later, perhaps by another process. A damaged run would give wrong counts, so the checksums are
    verified before runs are added up.
    """

    def __init__(self, folder: Path, checksums: Mapping[str, str] | None = None, bounds: Sequence[int] = ()) -> None:
        """Continue with existing runs, if there are any."""
        self.folder, self.checksums, self.bounds = folder, dict(checksums or {}), list(bounds)

    def add(self, counts: ChunkCounts) -> None:
        """Write a run."""
        prefixes = _prefixes(counts)
        if not self.bounds and len(prefixes):
            places = np.linspace(0, len(prefixes) - 1, RANGES + 1).astype(np.int64)[1:-1]
            self.bounds = np.sort(prefixes)[places].tolist()
        ranges = np.searchsorted(np.array(self.bounds, np.uint64), prefixes, side="right")
        order = np.argsort(ranges, kind="stable")
        ends = np.searchsorted(ranges[order], np.arange(RANGES + 1))
        table = files.table(*counts.arrays[:3])
        name = f"run-{len(self.checksums):06}.counts"
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        with (
            replacing(self.folder / name) as temporary,
            _Hashed(temporary.open("wb")) as file,
            pa.ipc.new_file(cast(Any, file), files.SCHEMA, options=options) as writer,
        ):
            for start, end in pairwise(ends):
                part = table.take(int64_array(order[start:end])).combine_chunks().to_batches()
                writer.write_batch(part[0] if part else pa.record_batch([[], []], schema=files.SCHEMA))
        self.checksums[name] = file.checksum

    def check(self) -> Iterator[None]:
        """Raise if a run is missing or damaged. Yields between runs, so that the caller can stop."""
        remedy = f"remove {self.folder} to start again"
        for name, known in self.checksums.items():
            yield
            path, found = self.folder / name, hashlib.sha256()
            try:
                with path.open("rb") as file:
                    while block := file.read(1 << 20):
                        found.update(block)
            except FileNotFoundError:
                raise FileNotFoundError(f"{path} is missing; {remedy}") from None
            if found.hexdigest() != known:
                raise DataError("the file is damaged (wrong checksum)", where=str(path), remedy=remedy)

    def remove_unrecorded(self) -> None:
        """Remove what a killed job left behind: runs that are not in the record, and temporary files."""
        for path in self.folder.iterdir():
            if path.is_dir() and path.name.startswith(_SUMS):
                shutil.rmtree(path, ignore_errors=True)
            elif path.name not in self.checksums and path.name.endswith((".counts", ".tmp")):
                path.unlink(missing_ok=True)

    def save_sum(self, path: Path, split: Split, threads: int | None) -> Iterator[None]:
        """Write the sum of all runs as a file of counts. Yields regularly, so that the caller can stop."""
        self.total = self.unique = self.longest = 0
        yield from self.check()
        with tempfile.TemporaryDirectory(dir=self.folder, prefix=_SUMS) as folder:
            sums = []
            for part in range(RANGES):
                yield
                table = ChunkTable(split.pattern, [], threads)
                for name in self.checksums:
                    with pa.OSFile(str(self.folder / name), "rb") as source:
                        batch = pa.ipc.open_file(source).get_batch(part)
                    table.add_counts(*bytes_and_offsets(batch["chunk"]), np.asarray(batch["count"]))
                counts = ChunkCounts(ChunkArrays(*table.finish()[:3], split))
                self.total, self.unique = self.total + counts.total, self.unique + counts.unique
                self.longest = max(self.longest, int(counts.chunk_bytes.max(initial=0)))
                sums.append(Path(folder) / f"{part:03}.counts")
                with writing(sums[-1]), pa.ipc.new_file(str(sums[-1]), files.SCHEMA) as writer:
                    writer.write_table(files.table(*counts.arrays[:3]))
            yield
            with replacing(path) as temporary:
                as_csv = path.suffix.lower() == ".csv"
                files.write(_in_order(sums), split.to_json(), self.total, self.unique, temporary, as_csv=as_csv)


class _Hashed:
    """A file that computes the checksum of what is written to it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._hash = file, hashlib.sha256()
        self.closed = False

    def __enter__(self) -> _Hashed:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self.closed = True

    def write(self, data: Any) -> int:
        self._hash.update(data)
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()

    @property
    def checksum(self) -> str:
        return self._hash.hexdigest()


def _prefixes(counts: ChunkCounts) -> npt.NDArray[np.uint64]:
    """Return the first eight bytes of each chunk as a number; the numbers are in the order of the bytes."""
    prefixes = np.zeros((counts.unique, 8), np.uint8)
    for start in range(0, counts.unique, _ROWS):
        offsets = counts.arrays.offsets[start : start + _ROWS + 1]
        for place in range(8):
            at = offsets[:-1] + place
            there = np.flatnonzero(at < offsets[1:])
            prefixes[start + there, place] = counts.arrays.data[at[there]]
    return prefixes.view(">u8").ravel().astype(np.uint64)


def _in_order(sums: Sequence[Path]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of all sums, highest count first, and those of equal count in the order of the sums."""
    parts: list[Any] = [pa.ipc.open_file(pa.memory_map(str(path))).read_all().combine_chunks() for path in sums]
    stretches: list[npt.NDArray[np.uint64]] = []  # of equal counts: the count, the sum, and its rows
    for part, table in enumerate(parts):
        counts = np.asarray(table["count"].combine_chunks())
        starts = np.flatnonzero(np.diff(counts, prepend=counts[:1] + np.uint64(1)))
        places = np.stack([np.full(len(starts), part), starts, np.append(starts[1:], len(counts))[: len(starts)]])
        stretches.append(np.vstack([counts[starts], places.astype(np.uint64)]))
    every = np.concatenate(stretches, axis=1)
    which, starts, ends = every[1:, np.lexsort((every[1], ~every[0]))].astype(np.int64)
    before = np.concatenate([[0], np.cumsum(ends - starts)])  # rows before each stretch
    for first in range(0, int(before[-1]), _ROWS):
        places = np.arange(first, min(first + _ROWS, int(before[-1])))
        stretch = np.searchsorted(before, places, side="right") - 1
        part_of, row_of = which[stretch], starts[stretch] + places - before[stretch]
        # Take the rows of each sum at once, then restore the order of the counts.
        order = np.argsort(part_of, kind="stable")
        bounds = np.searchsorted(part_of[order], np.arange(len(parts) + 1))
        taken = [
            parts[part].take(int64_array(row_of[order[start:end]]))
            for part, (start, end) in enumerate(pairwise(bounds))
            if start < end
        ]
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        yield from pa.concat_tables(taken).take(int64_array(back)).combine_chunks().to_batches()
        del taken
        release_memory()

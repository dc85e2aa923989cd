"""Counts of byte strings in arrays of the core: what `ChunkCounts` and `RunCounts` have in common."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from .. import _core
from ..formats.counts_csv import Arrays

T = TypeVar("T", bound="ArrayCounts")


class ArrayCounts:
    """How often each chunk, or each run of chunks, occurs in a dataset."""

    arrays: Any
    """A named tuple: `data`, `offsets` and `counts`, which are `Arrays`, and what else must agree for equality."""

    @property
    def total(self) -> int:
        """Number of chunks or runs, with repetition."""
        return total_of(self.arrays.counts)

    @property
    def unique(self) -> int:
        """Number of different chunks or runs."""
        return len(self.arrays.counts)

    def __len__(self) -> int:
        """Return the number of different chunks or runs."""
        return self.unique

    def __radd__(self: T, other: object) -> T:
        """Support `sum`, which starts with 0.

        >>> from batchbpe import ChunkCounts
        >>> sum([ChunkCounts.count("to be"), ChunkCounts.count("or not to be")])[" be"]
        2
        """
        return self if other == 0 else NotImplemented

    def __eq__(self, other: object) -> bool:
        """Compare the counts, and what they were counted with."""
        if not isinstance(other, type(self)):
            return super().__eq__(other)
        ours, theirs = self.arrays, other.arrays
        return (
            ours[3:] == theirs[3:]
            and np.array_equal(ours.counts, theirs.counts)
            and np.array_equal(ours.offsets, theirs.offsets)
            # Unused bytes may follow; see `ChunkCounts.at_least`.
            and np.array_equal(ours.data[: ours.offsets[-1]], theirs.data[: theirs.offsets[-1]])
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Show the sizes."""
        return f"{type(self).__name__}(total={self.total}, unique={self.unique})"


def added_up(parts: Iterable[Arrays], threads: int | None = None) -> Arrays:
    """Add up counts, and sort them by frequency.

    >>> part = np.frombuffer(b"tobe", np.uint8), np.array([0, 2, 4]), np.array([1, 3], np.uint64)
    >>> data, _, counts = added_up([part, part])
    >>> data.tobytes(), counts.tolist()
    (b'beto', [6, 2])
    """
    table = _core.ChunkTable(".", [], threads)  # nothing is split
    for part in parts:
        table.add_counts(*part)
    return table.finish()[:3]


def total_of(counts: npt.NDArray[np.uint64], sizes: npt.NDArray[np.int64] | None = None) -> int:
    """Add up counts, each multiplied by its size if sizes are given. The sum may exceed 64 bits.

    >>> total_of(np.array([1 << 63, 1 << 63], np.uint64)) == 1 << 64
    True
    >>> total_of(np.array([1 << 63, 1], np.uint64), np.array([4, 3])) == (1 << 65) + 3
    True
    """
    total, block = 0, 1 << 22
    for start in range(0, len(counts), block):
        part = counts[start : start + block]
        factor = 1 if sizes is None else sizes[start : start + block].astype(np.uint64)
        total += (int(((part >> 32) * factor).sum()) << 32) + int(((part & 0xFFFF_FFFF) * factor).sum())
    return total

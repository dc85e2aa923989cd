"""What parquet files of counts have in common: JSON metadata, a checksum, and errors, which do not name the file.

Parquet's page checksums do not cover page headers and the footer, where a flipped bit can silently change what is read.
Our checksum covers the metadata, the rows and their counts as they are read.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import DataError, parse_json
from .file_errors import check_version

CHECKSUM_KEY = b"batchbpe_checksum"
"""Metadata key of the checksum."""


def open_parquet(path: Path) -> pq.ParquetFile:
    """Open a file whose pages may have checksums."""
    try:
        return pq.ParquetFile(path, pre_buffer=False, page_checksum_verification=True)
    except (pa.ArrowException, OSError) as error:
        raise DataError("not a parquet file, or damaged") from error


def parse_metadata(
    schema: pa.Schema, key: bytes, *path: str | int, versions: tuple[int, ...], otherwise: DataError
) -> dict[str, Any]:
    """Return the object at `path` in the JSON under `key`, without its version. If there is none, raise `otherwise`."""
    try:
        found = parse_json((schema.metadata or {})[key])
        for part in path:
            found = found[part]
        stated = found.pop("version")
    except (KeyError, IndexError, ValueError, TypeError, AttributeError):
        raise otherwise from None
    check_version(stated, *versions)
    return dict(found)


def read_columns(file: pq.ParquetFile, columns: list[str], rows: int, **options: Any) -> Iterator[Any]:
    """Yield batches of binary columns, followed by counts as a numpy array. `options` are those of `iter_batches`."""
    try:
        for batch in file.iter_batches(rows, columns=columns, **options):
            if any(column.null_count for column in batch.columns):
                raise DataError("the columns contain nulls", remedy="count again")
            *others, counts = batch.columns
            yield *(other.cast(pa.large_binary()) for other in others), counts.cast(pa.uint64()).to_numpy()
    except (pa.ArrowException, OSError) as error:
        raise DataError("the columns are damaged or contain invalid numbers") from error


class Checksum:
    """A checksum of metadata and rows that does not depend on how the rows are divided into batches.

    >>> checksum = Checksum(b"{}")
    >>> checksum.add(np.frombuffer(b"tobe", np.uint8), np.array([0, 2, 4]), np.array([7, 5], np.uint64))
    >>> str(checksum)
    'a3a6bf43ec81f838293e694b59a2bd44'
    """

    def __init__(self, metadata: bytes) -> None:
        """Start with no rows."""
        self._metadata, self._rows = zlib.crc32(metadata), (0, 0, 0)

    def add(self, data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], counts: npt.NDArray[np.uint64]) -> None:
        """Add the next rows."""
        chunks, sizes, numbers = self._rows
        self._rows = (
            zlib.crc32(data[offsets[0] : offsets[-1]].data, chunks),
            zlib.crc32(np.diff(offsets).data, sizes),
            zlib.crc32(counts.data, numbers),
        )

    def __str__(self) -> str:
        """Return the checksum as it is stored."""
        return "".join(f"{crc:08x}" for crc in (self._metadata, *self._rows))

    def check(self, expected: bytes | None) -> None:
        """Raise unless a file has this checksum or, like files of earlier versions, none."""
        if expected is not None and expected != str(self).encode():
            raise damaged()


def checksum_of_file(path: Path) -> int:
    """Return the checksum of a whole file, read block by block."""
    crc = 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            crc = zlib.crc32(block, crc)
    return crc


def damaged() -> DataError:
    """Return the error for a file that has changed since it was written."""
    return DataError("the file is damaged (wrong checksum)", remedy="count again")

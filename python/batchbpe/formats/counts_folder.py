"""Count folders that Spark writes: parquet files, and an empty file `_SUCCESS` when all of them are complete.

The columns are `chunk` or `run` (binary) and `count` (int64). Spark stores column metadata in each parquet file; for
the first column, it has an object under the key `batchbpe`. `batchbpe count` also writes the number of rows and the
checksum of each file to `_batchbpe.json`, so that missing and damaged files are detected.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import ArgumentError, DataError, parse_json, short
from ..util.arrow import bytes_and_offsets, mask_array
from .counts_csv import Arrays, check_size
from .file_errors import locate_errors
from .parquet_files import checksum_of_file, damaged, open_parquet, parse_metadata, read_columns

VERSIONS = (1, 2)
"""Version 2 has a pattern with normalization or steps: an object."""
ROWS = 1 << 18
"""Number of rows to read at once."""
TOTALS = "_batchbpe.json"
KEY = b"org.apache.spark.sql.parquet.row.metadata"


def read_metadata(folder: Path, column: str) -> dict[str, Any]:
    """Return the settings a folder was counted with, or raise if it is incomplete or its files disagree."""
    if not (folder / "_SUCCESS").is_file():
        remedy = "wait for the job that writes it, or count again"
        raise DataError("the folder is incomplete: it has no file _SUCCESS", file=str(folder), remedy=remedy)
    unique = _check_files(folder)
    metadata: dict[str, Any] | None = None
    rows = 0
    for path in parts(folder):
        with locate_errors(path), open_parquet(path) as file:
            rows += file.metadata.num_rows
            found = _metadata_of(file.schema_arrow, column)
            if metadata not in (None, found):
                reason = "counted with different settings than the other files"
                raise DataError(reason, remedy="count again into a new folder")
            metadata = found
    if metadata is None:
        raise DataError("the folder has no parquet files", file=str(folder), remedy="count again")
    if unique not in (None, rows):
        reason = f"the files have {rows} rows, expected {short(unique)}"
        remedy = "copy the missing files, or remove files that belong to other folders"
        raise DataError(reason, file=str(folder / TOTALS), remedy=remedy)
    return metadata


def _check_files(folder: Path) -> Any:
    """Raise if the checksum of a file differs from that in `TOTALS`, and return the expected number of rows."""
    path = folder / TOTALS
    if not path.is_file():
        return None
    with locate_errors(path):
        try:
            totals = parse_json(path.read_bytes())
            unique, files = totals["unique"], dict(totals.get("files", {}))
        except (ValueError, KeyError, TypeError, AttributeError):
            raise DataError('expected a JSON object with "unique" and "files"', remedy="count again") from None
    for part in parts(folder):
        with locate_errors(part):
            if files and files.get(part.name) != checksum_of_file(part):
                raise damaged()
    return unique


def read(
    folder: Path, column: str, freq_cutoff: int = 1, max_bytes: int | None = None, rows_at_once: int = ROWS
) -> Iterator[Arrays]:
    """Yield the counts that are at least `freq_cutoff`, in batches. Call `read_metadata` first: it checks the folder.

    Chunks of row groups without such counts are not read, which makes a cutoff cheap if rows are sorted by count. If
    several jobs have written to the folder, all counts are yielded, because each of them can have counted a chunk.
    """
    if len({re.sub(r"^part-\d+-|-c\d+\..*", "", path.name) for path in parts(folder)}) > 1:
        freq_cutoff = 1
    size = largest = 0
    for path in parts(folder):
        with locate_errors(path), open_parquet(path) as file:
            for chunks, numbers in _batches(file, column, freq_cutoff, rows_at_once):
                largest = max(largest, int(numbers.max(initial=0)))
                if chunks is None:
                    continue
                is_kept = numbers >= freq_cutoff
                data, offsets = bytes_and_offsets(chunks.filter(mask_array(is_kept)))
                size += len(data)
                check_size(size, max_bytes)
                yield data, offsets, numbers[is_kept]
    if largest and size == 0:
        reason = f"must be at most {largest}, the count of the most frequent chunk"
        raise ArgumentError("freq_cutoff", freq_cutoff, reason)


def parts(folder: Path) -> list[Path]:
    """Return the parquet files of a folder, except hidden ones."""
    return sorted(path for path in folder.glob("*.parquet") if path.name[0] not in "._")


def _metadata_of(schema: pa.Schema, column: str) -> dict[str, Any]:
    """Return the settings that a file was counted with."""
    otherwise = DataError(f"not a file of {column} counts that batchbpe.spark has made")
    path = ("fields", 0, "metadata", "batchbpe")
    metadata = parse_metadata(schema, KEY, *path, versions=VERSIONS, otherwise=otherwise)
    types = [(field.name, str(field.type)) for field in schema]
    if types != [(column, "binary"), ("count", "int64")]:
        raise DataError(f"expected the columns {column} (binary) and count (int64), got {types}")
    return metadata


def _batches(
    file: pq.ParquetFile, column: str, freq_cutoff: int, rows: int
) -> Iterator[tuple[Any, npt.NDArray[np.uint64]]]:
    """Yield chunks and counts; None instead of the chunks if their row group has no count of at least `freq_cutoff`."""
    # Row group statistics are not used: pyarrow crashes if they are malformed.
    for group in range(file.num_row_groups):
        if freq_cutoff > 1:
            batches = read_columns(file, ["count"], rows, row_groups=[group])
            largest = [numbers.max(initial=0) for (numbers,) in batches]
            if max(largest, default=0) < freq_cutoff:
                yield None, np.array(largest, np.uint64)
                continue
        yield from read_columns(file, [column, "count"], rows, row_groups=[group])

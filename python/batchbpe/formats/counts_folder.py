"""Folders of counts that Spark writes: parquet files, and an empty file `_SUCCESS` when all of them are complete.

Their columns are `chunk` or `run` (binary) and `count` (int64). Spark stores the metadata of its columns in each
parquet file; that of the first column has an object under the key `batchbpe`. `batchbpe count` also writes the number
of rows and the checksum of each file to `_batchbpe.json`, so that missing and damaged files are noticed.
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
from .checksums import checksum_of_file, damaged
from .counts_csv import Arrays, check_size
from .file_errors import locate_errors

VERSION = 1
ROWS = 1 << 18
"""Number of rows to read at once."""
TOTALS = "_batchbpe.json"
KEY = b"org.apache.spark.sql.parquet.row.metadata"


def read_metadata(folder: Path, column: str) -> dict[str, Any]:
    """Return how the counts of a folder were made, or raise if it is incomplete or its files disagree."""
    if not (folder / "_SUCCESS").is_file():
        remedy = "wait for the job that writes it, or count again"
        raise DataError("the folder is incomplete: it has no file _SUCCESS", file=str(folder), remedy=remedy)
    unique = _check_files(folder)
    metadata: dict[str, Any] | None = None
    rows = 0
    for path in parts(folder):
        with locate_errors(path), _open(path) as file:
            rows += file.metadata.num_rows
            found = _metadata_of(file.schema_arrow, column)
            if metadata not in (None, found):
                raise DataError("counted in another way than the other files", remedy="count again into a new folder")
            metadata = found
    if metadata is None:
        raise DataError("the folder has no parquet files", file=str(folder), remedy="count again")
    if unique not in (None, rows):
        reason = f"the files have {rows} rows, expected {short(unique)}"
        remedy = "copy the missing files, or remove those of other folders"
        raise DataError(reason, file=str(folder / TOTALS), remedy=remedy)
    return metadata


def _check_files(folder: Path) -> Any:
    """Raise if a file has another checksum than `TOTALS` states, and return how many rows there should be."""
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
    """Yield batches of the counts of at least `freq_cutoff`. Call `read_metadata` first, which checks the folder.

    The chunks of row groups without such counts are not read, which makes a cutoff cheap if rows are sorted by count.
    If several jobs have written to the folder, all counts are yielded: a chunk can be in files of each of them.
    """
    if len({re.sub(r"^part-\d+-|-c\d+\..*", "", path.name) for path in parts(folder)}) > 1:
        freq_cutoff = 1
    size = largest = 0
    for path in parts(folder):
        with locate_errors(path), _open(path) as file:
            for chunks, numbers in _batches(file, column, freq_cutoff, rows_at_once):
                largest = max(largest, int(numbers.max(initial=0)))
                if chunks is None:
                    continue
                is_kept = numbers >= freq_cutoff
                data, offsets = bytes_and_offsets(chunks.filter(mask_array(is_kept)).cast(pa.large_binary()))
                size += len(data)
                check_size(size, max_bytes)
                yield data, offsets, numbers[is_kept]
    if largest and size == 0:
        reason = f"must be at most {largest}, the count of the most frequent chunk"
        raise ArgumentError("freq_cutoff", freq_cutoff, reason)


def parts(folder: Path) -> list[Path]:
    """Return the parquet files of a folder, without hidden ones."""
    return sorted(path for path in folder.glob("*.parquet") if path.name[0] not in "._")


def _metadata_of(schema: pa.Schema, column: str) -> dict[str, Any]:
    """Return what a file of counts says about how they were counted."""
    try:
        described = parse_json((schema.metadata or {})[KEY])
        metadata = described["fields"][0]["metadata"]["batchbpe"]
        version = metadata.pop("version")
    except (KeyError, IndexError, ValueError, TypeError, AttributeError):
        raise DataError(f"not a file of {column} counts that batchbpe.spark has made") from None
    if version != VERSION:
        remedy = "upgrade batchbpe" if type(version) is int and version > VERSION else ""
        raise DataError(f"version must be {VERSION}, got {short(version)}", remedy=remedy)
    types = [(field.name, str(field.type)) for field in schema]
    if types != [(column, "binary"), ("count", "int64")]:
        raise DataError(f"expected the columns {column} (binary) and count (int64), got {types}")
    return dict(metadata)


def _open(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path, pre_buffer=False, page_checksum_verification=True)
    except (pa.ArrowException, OSError) as error:
        raise DataError("not a parquet file, or damaged") from error


def _batches(
    file: pq.ParquetFile, column: str, freq_cutoff: int, rows: int
) -> Iterator[tuple[Any, npt.NDArray[np.uint64]]]:
    """Yield chunks and counts; None instead of the chunks if their row group has no count of at least `freq_cutoff`."""
    # Not with the statistics of row groups: pyarrow crashes if they are malformed.
    for group in range(file.num_row_groups):
        if freq_cutoff > 1:
            largest = [numbers.max(initial=0) for (numbers,) in _columns(file, group, rows, ["count"])]
            if max(largest, default=0) < freq_cutoff:
                yield None, np.array(largest, np.uint64)
                continue
        yield from _columns(file, group, rows, [column, "count"])


def _columns(file: pq.ParquetFile, group: int, rows: int, columns: list[str]) -> Iterator[Any]:
    """Yield batches of some columns of a row group, the last of which is the counts, as a numpy array."""
    try:
        for batch in file.iter_batches(rows, row_groups=[group], columns=columns):
            if any(each.null_count for each in batch.columns):
                raise DataError("the columns contain nulls", remedy="count again")
            yield *batch.columns[:-1], batch.columns[-1].cast(pa.uint64()).to_numpy()
    except (pa.ArrowException, OSError) as error:
        raise DataError("the columns are damaged or contain invalid numbers") from error

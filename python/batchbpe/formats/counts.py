"""Files of chunk counts: parquet, and the two-column csv of the paper's program.

Parquet has the columns `chunk` (binary) and `count` (uint64). The file's metadata has the version, the pattern and the
totals as JSON under the key `batchbpe`. Csv has the header `text_chunk,count` (or `str,int`), a row for each chunk, and
a last row with the pattern and the count 0; a file without that row is truncated.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from .._core import read_counts_csv
from ..arrow import bytes_and_offsets
from ..errors import DataError, Setting, listed, short

VERSION = 1
KEY = b"batchbpe"
HEADER = ["text_chunk", "count"]
ROWS = 1 << 18
"""Number of rows in a row group."""
SCHEMA = pa.schema([("chunk", pa.large_binary()), ("count", pa.uint64())])  # type: ignore[arg-type]


Arrays = tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.uint64]]
"""The bytes of all chunks, the offset of each chunk, and the counts."""


def read(path: Path, max_bytes: int | None = None, rows_at_once: int = ROWS) -> tuple[Arrays, str, int | None]:
    """Read counts, their pattern and, if the file states it, their total. Errors do not name the file.

    Chunks of more than `max_bytes` in total are an error. `rows_at_once` is for parquet.
    """
    if path.suffix.lower() != ".csv":
        return _read_parquet(path, max_bytes, rows_at_once)
    _check_size(path.stat().st_size, max_bytes)
    try:
        data, offsets, counts, pattern = read_counts_csv(path)
    except ValueError as error:
        if str(error).startswith("expected the header"):
            remedy = "if these are documents, save them as parquet or jsonl"
            raise DataError(f"not a file of chunk counts: {error}", remedy=remedy) from None
        line, separator, reason = str(error).partition(": ")
        is_located = separator and line.startswith("line ")
        raise DataError(reason if is_located else str(error), where=line if is_located else "") from None
    return (data, offsets, counts), pattern, None


def table(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], counts: npt.NDArray[np.uint64]) -> pa.Table:
    """Return counts as an arrow table that shares their memory."""
    buffers = [None, pa.py_buffer(offsets.data), pa.py_buffer(data.data)]
    chunks = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(counts), buffers)
    # Not from a numpy array, because pyarrow would import pandas to find out whether it is a pandas object.
    numbers = pa.UInt64Array.from_buffers(pa.uint64(), len(counts), [None, pa.py_buffer(counts.data)])
    return pa.Table.from_arrays([chunks, numbers], schema=SCHEMA)


def write(
    batches: Iterable[pa.RecordBatch], pattern: str, total: int, unique: int, path: Path, *, as_csv: bool
) -> None:
    """Write counts as csv, or as parquet with one row group per batch."""
    if as_csv:
        _write_csv(batches, pattern, path)
        return
    metadata = {"version": VERSION, "pattern": pattern, "total": total, "unique": unique}
    schema = SCHEMA.with_metadata({KEY: json.dumps(metadata)})
    # Chunks are unique and not sorted, so a dictionary or statistics of them would be useless.
    options: dict[str, Any] = {"use_dictionary": ["count"], "write_statistics": ["count"], "compression": "zstd"}
    with pq.ParquetWriter(path, schema, write_page_checksum=True, **options) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _read_parquet(path: Path, max_bytes: int | None, rows_at_once: int) -> tuple[Arrays, str, int | None]:
    try:
        file = pq.ParquetFile(path, pre_buffer=False, page_checksum_verification=True)
    except (pa.ArrowException, OSError) as error:
        raise DataError("not a parquet file, or damaged") from error
    with file:
        try:
            metadata = json.loads((file.schema_arrow.metadata or {})[KEY])
            version = metadata["version"]
        except (KeyError, ValueError, TypeError):
            remedy = "create one with batchbpe count"
            reason = "not a file of chunk counts: the metadata has no valid key 'batchbpe'"
            raise DataError(reason, remedy=remedy) from None
        if version != VERSION:
            remedy = "upgrade batchbpe" if type(version) is int and version > VERSION else ""
            raise DataError(f"version must be {VERSION}, got {short(version)}", remedy=remedy)
        pattern = metadata.get("pattern")
        if metadata.get("unique") not in (None, file.metadata.num_rows):
            unique = short(metadata["unique"])
            raise DataError(f"expected {unique} chunks, got {file.metadata.num_rows}; the file is damaged")
        if not isinstance(pattern, str):
            raise DataError(f"the pattern must be a string, got {short(pattern)}")
        columns = [f"{field.name} ({field.type})" for field in file.schema_arrow]
        if not re.match(r"chunk \((large_)?(binary|string)\) count \(u?int\d+\)", " ".join(columns)):
            expected = "expected the columns chunk (binary) and count (uint64)"
            raise DataError(f"not a file of chunk counts: {expected}, got {listed(columns)}")
        # Reading batch by batch into preallocated arrays takes a third of the memory of reading the whole table.
        rows = file.metadata.num_rows
        offsets, counts = np.zeros(rows + 1, np.int64), np.zeros(rows, np.uint64)
        data, row, size = [], 0, 0
        try:
            for batch in file.iter_batches(rows_at_once, columns=["chunk", "count"]):
                part, ends = bytes_and_offsets(batch["chunk"].cast(pa.large_binary()))
                size += len(part)
                _check_size(size, max_bytes)
                data.append(part[ends[0] : ends[-1]].copy())
                offsets[row + 1 : row + len(ends)] = ends[1:] - ends[0] + offsets[row]
                if batch["count"].null_count:
                    raise DataError("column 'count' contains nulls")
                counts[row : row + len(ends) - 1] = batch["count"].cast(pa.uint64()).to_numpy()
                row += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            raise DataError("the columns are damaged or contain invalid numbers") from error
    return (np.concatenate([*data, np.zeros(0, np.uint8)]), offsets, counts), pattern, metadata.get("total")


def _check_size(size: int, max_bytes: int | None) -> None:
    if max_bytes is not None and size > max_bytes:
        raise DataError(
            f"the counts have more than {max_bytes} bytes, and are loaded as a whole",
            remedy=("raise ", Setting("max_memory"), " or add them up later"),
        )


def _write_csv(batches: Iterable[pa.RecordBatch], pattern: str, path: Path) -> None:
    # The csv module does not support zero bytes before Python 3.11.
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            file.write(f"{','.join(HEADER)}\r\n")
            for batch in batches:
                chunks = (bytes(chunk or b"").decode("utf-8") for chunk in batch["chunk"].to_pylist())
                rows = zip(chunks, batch["count"].to_pylist(), strict=True)
                file.writelines(f"{_quoted(chunk)},{count}\r\n" for chunk, count in rows)
            file.write(f"{_quoted(pattern)},0\r\n")
    except UnicodeDecodeError as error:
        raise DataError(
            f"chunk {short(error.object)} is not valid UTF-8, which csv does not support", remedy="save as .parquet"
        ) from None


def _quoted(field: str) -> str:
    """Quote a field if necessary.

    >>> print(_quoted(" to"), _quoted('a "b" c'))
     to "a ""b"" c"
    """
    return f'"{field.replace(chr(34), chr(34) * 2)}"' if re.search('[,"\r\n]', field) else field

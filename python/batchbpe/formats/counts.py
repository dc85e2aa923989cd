"""Chunk counts as files: parquet, and the two-column csv of the paper's program.

Parquet: columns `chunk` (binary) and `count` (uint64), and under the key `batchbpe` of the file's metadata, as JSON,
the version, the pattern and the totals. Csv: the header `text_chunk,count` (or `str,int`), a row for each chunk, and
last the pattern with the count 0: a file without that row has been cut off.
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
from ..data.arrow_strings import bytes_and_offsets
from ..errors import listed, short

VERSION = 1
KEY = b"batchbpe"
HEADER = ["text_chunk", "count"]
ROWS = 1 << 18
"""Rows in a row group."""
SCHEMA = pa.schema([("chunk", pa.large_binary()), ("count", pa.uint64())])  # type: ignore[arg-type]


Arrays = tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.uint64]]
"""Chunks in a row, where each begins, and their counts."""


def read(path: Path) -> tuple[Arrays, str, int | None]:
    """Read counts, their pattern, and the total that the file says they have, if it does. Errors do not name it."""
    if path.suffix.lower() != ".csv":
        return _read_parquet(path)
    data, offsets, counts, pattern = read_counts_csv(path)
    return (data, offsets, counts), pattern, None


def table(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], counts: npt.NDArray[np.uint64]) -> pa.Table:
    """Give counts as a table. Nothing is copied."""
    buffers = [None, pa.py_buffer(offsets.data), pa.py_buffer(data.data)]
    chunks = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(counts), buffers)
    # Of a numpy array pyarrow asks whether it is pandas', and imports that to find out.
    numbers = pa.UInt64Array.from_buffers(pa.uint64(), len(counts), [None, pa.py_buffer(counts.data)])
    return pa.Table.from_arrays([chunks, numbers], schema=SCHEMA)


def write(
    batches: Iterable[pa.RecordBatch], pattern: str, total: int, unique: int, path: Path, *, as_csv: bool
) -> None:
    """Write counts as parquet, each batch a row group, or as csv."""
    if as_csv:
        _write_csv(batches, pattern, path)
        return
    described = {"version": VERSION, "pattern": pattern, "total": total, "unique": unique}
    schema = SCHEMA.with_metadata({KEY: json.dumps(described)})
    # Chunks are unique and not sorted: a dictionary of them, or the least and greatest, would be found in vain.
    options: dict[str, Any] = {"use_dictionary": ["count"], "write_statistics": ["count"], "compression": "zstd"}
    with pq.ParquetWriter(path, schema, write_page_checksum=True, **options) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _read_parquet(path: Path) -> tuple[Arrays, str, int | None]:
    try:
        file = pq.ParquetFile(path, pre_buffer=False, page_checksum_verification=True)
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"it is no parquet file, or a damaged one: {error}") from None
    with file:
        try:
            described = json.loads((file.schema_arrow.metadata or {})[KEY])
            version, pattern = described["version"], described["pattern"]
        except (KeyError, ValueError, TypeError):
            raise ValueError("it holds no chunk counts: its metadata has no valid key 'batchbpe'") from None
        if version != VERSION:
            raise ValueError(f"it has version {short(version)}, this program reads {VERSION}; use a newer one")
        if described.get("unique") not in (None, file.metadata.num_rows):
            raise ValueError(f"it is damaged: it has {file.metadata.num_rows} chunks, not {described['unique']}")
        if not isinstance(pattern, str):
            raise ValueError(f"its pattern is {short(pattern)}, not a string")
        if {"chunk", "count"} - set(file.schema_arrow.names):
            raise ValueError(f"it holds no chunk counts: its columns are {listed(file.schema_arrow.names)}")
        # Batch by batch into arrays of the right size: the table as a whole would take three times the memory.
        rows = file.metadata.num_rows
        offsets, counts = np.zeros(rows + 1, np.int64), np.zeros(rows, np.uint64)
        data, row = [], 0
        try:
            for batch in file.iter_batches(1 << 18, columns=["chunk", "count"]):
                part, ends = bytes_and_offsets(batch["chunk"].cast(pa.large_binary()))
                data.append(part[ends[0] : ends[-1]].copy())
                offsets[row + 1 : row + len(ends)] = ends[1:] - ends[0] + offsets[row]
                counts[row : row + len(ends) - 1] = batch["count"].cast(pa.uint64()).to_numpy()
                row += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"it is damaged, or its columns are no chunks and counts: {error}") from None
    return (np.concatenate([*data, np.zeros(0, np.uint8)]), offsets, counts), pattern, described.get("total")


def _write_csv(batches: Iterable[pa.RecordBatch], pattern: str, path: Path) -> None:
    # Not by the csv module: before Python 3.11 it has no place for a zero byte.
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            file.write(f"{','.join(HEADER)}\r\n")
            for batch in batches:
                chunks = (bytes(chunk or b"").decode("utf-8") for chunk in batch["chunk"].to_pylist())
                rows = zip(chunks, batch["count"].to_pylist(), strict=True)
                file.writelines(f"{_quoted(chunk)},{count}\r\n" for chunk, count in rows)
            file.write(f"{_quoted(pattern)},0\r\n")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"the chunk {short(error.object)} is no UTF-8, which a csv cannot hold: save as parquet"
        ) from None


def _quoted(field: str) -> str:
    """Quote a field where that is needed.

    >>> print(_quoted(" to"), _quoted('a "b" c'))
     to "a ""b"" c"
    """
    return f'"{field.replace(chr(34), chr(34) * 2)}"' if re.search('[,"\r\n]', field) else field

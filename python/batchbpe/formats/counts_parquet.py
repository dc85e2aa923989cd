"""Parquet files of chunk counts.

They have the columns `chunk` (binary) and `count` (uint64). The metadata key `batchbpe` has the version, the pattern
(`Split.to_json`) and the totals as JSON.
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

from ..errors import DataError, listed, short
from ..patterns import Split
from ..util.arrow import bytes_and_offsets
from .counts_csv import Arrays, check_size, write_csv
from .parquet_files import CHECKSUM_KEY, Checksum, open_parquet, parse_metadata, read_columns

VERSIONS = (1, 2)
"""Version 2 has a pattern with normalization or steps: an object."""
KEY = b"batchbpe"
ROWS = 1 << 18
"""Number of rows in a row group."""
SCHEMA = pa.schema([("chunk", pa.large_binary()), ("count", pa.uint64())])  # type: ignore[arg-type]


def table(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], counts: npt.NDArray[np.uint64]) -> pa.Table:
    """Return counts as an arrow table that shares their memory."""
    buffers = [None, pa.py_buffer(offsets.data), pa.py_buffer(data.data)]
    chunks = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(counts), buffers)
    # Not from a numpy array, because pyarrow would import pandas to find out whether it is a pandas object.
    numbers = pa.UInt64Array.from_buffers(pa.uint64(), len(counts), [None, pa.py_buffer(counts.data)])
    return pa.Table.from_arrays([chunks, numbers], schema=SCHEMA)


def split_metadata(split: Split) -> dict[str, Any]:
    """Return what metadata contains about a split.

    >>> split_metadata(Split("a+")), split_metadata(Split("a+", prefix_space=True))["version"]
    ({'version': 1, 'pattern': 'a+'}, 2)
    """
    return {"version": VERSIONS[0] if split.is_bare else VERSIONS[1], "pattern": split.to_json()}


def write(
    batches: Iterable[pa.RecordBatch], split: Split, total: int, unique: int, path: Path, *, as_csv: bool
) -> None:
    """Write counts as csv, or as parquet with one row group per batch."""
    if as_csv:
        write_csv(batches, split.to_text(), path)
        return
    metadata = json.dumps(split_metadata(split) | {"total": total, "unique": unique})
    schema, checksum = SCHEMA.with_metadata({KEY: metadata}), Checksum(metadata.encode())
    # Chunks are unique and not sorted, so a dictionary or statistics for them would be useless.
    options: dict[str, Any] = {"use_dictionary": ["count"], "write_statistics": ["count"], "compression": "zstd"}
    with pq.ParquetWriter(path, schema, write_page_checksum=True, **options) as writer:
        for batch in batches:
            writer.write_batch(batch)
            checksum.add(*bytes_and_offsets(batch["chunk"]), np.asarray(batch["count"]))
        if hasattr(writer, "add_key_value_metadata"):  # since pyarrow 17
            writer.add_key_value_metadata({CHECKSUM_KEY.decode(): str(checksum)})


def read(path: Path, max_bytes: int | None, rows_at_once: int = ROWS) -> tuple[Arrays, object, int | None]:
    """Read a parquet file: the counts, how their split is stored and, if the file has it, their total.

    Errors do not name the file. Raise if the chunks have more than `max_bytes` in total.
    """
    with open_parquet(path) as file:
        reason = "not a file of chunk counts: the metadata has no valid key 'batchbpe'"
        otherwise = DataError(reason, remedy="create one with batchbpe count")
        metadata = parse_metadata(file.schema_arrow, KEY, versions=VERSIONS, otherwise=otherwise)
        rows = file.metadata.num_rows
        pattern = metadata.get("pattern")
        if metadata.get("unique") not in (None, rows):
            raise DataError(f"expected {short(metadata['unique'])} chunks, got {rows}; the file is damaged")
        columns = [f"{field.name} ({field.type})" for field in file.schema_arrow]
        if not re.match(r"chunk \((large_)?(binary|string)\) count \(u?int\d+\)", " ".join(columns)):
            expected = "expected the columns chunk (binary) and count (uint64)"
            raise DataError(f"not a file of chunk counts: {expected}, got {listed(columns)}")
        # Reading batch by batch into preallocated arrays takes a third of the memory of a whole table.
        offsets, counts = np.zeros(rows + 1, np.int64), np.zeros(rows, np.uint64)
        data, row, size, checksum = [], 0, 0, Checksum(file.schema_arrow.metadata[KEY])
        for chunks, numbers in read_columns(file, ["chunk", "count"], rows_at_once):
            part, ends = bytes_and_offsets(chunks)
            size += len(part)
            check_size(size, max_bytes)
            data.append(part.copy())
            offsets[row + 1 : row + len(ends)] = ends[1:] + offsets[row]
            counts[row : row + len(numbers)] = numbers
            checksum.add(part, ends, numbers)
            row += len(numbers)
        checksum.check((file.metadata.metadata or {}).get(CHECKSUM_KEY))
    return (np.concatenate([*data, np.zeros(0, np.uint8)]), offsets, counts), pattern, metadata.get("total")

"""Parquet files of run counts: the columns `run` (list of uint32) and `count` (uint64), and JSON metadata."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import DataError
from .counts_csv import Arrays
from .parquet_files import CHECKSUM_KEY, Checksum, open_parquet, parse_metadata

VERSION = 1
KEY = b"batchbpe_runs"
SCHEMA = pa.schema([("run", pa.large_list(pa.uint32())), ("count", pa.uint64())])
_TYPES = {"model_id": str, "kind": str, "min_count": int}


def write(
    data: npt.NDArray[np.uint8],
    offsets: npt.NDArray[np.int64],
    counts: npt.NDArray[np.uint64],
    metadata: dict[str, Any],
    path: Path,
) -> None:
    """Write runs. `data` has the ids, four bytes each."""
    ids = pa.array(data.view(np.uint32), pa.uint32())
    runs = pa.LargeListArray.from_arrays(pa.array(offsets // 4, pa.int64()), ids)
    text = json.dumps({"version": VERSION, "unique": len(counts)} | metadata)
    checksum = Checksum(text.encode())
    checksum.add(data, offsets, counts)
    schema = SCHEMA.with_metadata({KEY: text, CHECKSUM_KEY: str(checksum)})
    table = pa.Table.from_arrays([runs, pa.array(counts, pa.uint64())], schema=schema)
    pq.write_table(table, path, compression="zstd", write_page_checksum=True)


def read(path: Path) -> tuple[Arrays, dict[str, Any]]:
    """Read runs and the settings they were counted with. Errors do not name the file."""
    with open_parquet(path) as file:
        otherwise = DataError("not a file of runs", remedy="create one with RunCounts.save")
        metadata = parse_metadata(file.schema_arrow, KEY, versions=(VERSION,), otherwise=otherwise)
        stored = file.schema_arrow.metadata
        try:
            table = file.read()
        except (pa.ArrowException, OSError) as error:
            raise DataError("not a parquet file, or damaged") from error
    is_whole = metadata.pop("unique", None) == table.num_rows and table.schema.equals(SCHEMA)
    checked(metadata)
    if not is_whole or any(column.null_count for column in table.columns):
        raise DataError("not a file of runs, or damaged", remedy="count again")
    columns: list[Any] = [column.combine_chunks() for column in table.columns]
    runs, counts = columns
    if runs.values.null_count:
        raise DataError("a run contains a null", remedy="count again")
    offsets = runs.offsets.to_numpy()
    ids = runs.values.to_numpy()[offsets[0] : offsets[-1]]
    if np.diff(offsets).min(initial=2) < 2:
        raise DataError("a run must have two or more ids", remedy="count again")
    arrays = (ids.view(np.uint8), 4 * (offsets - offsets[0]), counts.to_numpy())
    checksum = Checksum(stored[KEY])
    checksum.add(*arrays)
    checksum.check(stored.get(CHECKSUM_KEY))
    return arrays, metadata


def checked(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that runs were counted with, or raise unless they are complete."""
    is_complete = metadata.keys() == _TYPES.keys() and all(type(metadata[name]) is _TYPES[name] for name in _TYPES)
    if not is_complete or not 1 <= metadata["min_count"] < 1 << 32:
        raise DataError("not a file of runs, or damaged", remedy="count again")
    return metadata

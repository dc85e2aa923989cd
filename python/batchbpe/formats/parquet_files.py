"""What parquet files of counts have in common: JSON metadata, and errors about damage, which do not name the file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import DataError, parse_json
from .file_errors import check_version


def open_parquet(path: Path) -> pq.ParquetFile:
    """Open a file whose pages may have checksums."""
    try:
        return pq.ParquetFile(path, pre_buffer=False, page_checksum_verification=True)
    except (pa.ArrowException, OSError) as error:
        raise DataError("not a parquet file, or damaged") from error


def parse_metadata(
    schema: pa.Schema, key: bytes, *path: str | int, version: int, otherwise: DataError
) -> dict[str, Any]:
    """Return the object at `path` in the JSON under `key`, without its version. If there is none, raise `otherwise`."""
    try:
        found = parse_json((schema.metadata or {})[key])
        for part in path:
            found = found[part]
        stated = found.pop("version")
    except (KeyError, IndexError, ValueError, TypeError, AttributeError):
        raise otherwise from None
    check_version(stated, version)
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

"""Chunk counts as csv, the format of the paper's program. Unlike parquet, this does not need pyarrow.

The header is `text_chunk,count` (or `str,int`), each chunk has a row, and the last row has the pattern and the count 0.
A file without that row is truncated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from .._core import read_counts_csv
from ..errors import DataError, Setting, short
from .file_errors import line_error

if TYPE_CHECKING:
    import pyarrow as pa

HEADER = "text_chunk,count"

Arrays = tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64], npt.NDArray[np.uint64]]
"""The bytes of all chunks, the offset of each chunk, and the counts."""


def read_csv(path: Path, max_bytes: int | None) -> tuple[Arrays, str]:
    """Read counts and their pattern. Errors do not name the file. Raise if it has more than `max_bytes`."""
    check_size(path.stat().st_size, max_bytes)
    try:
        data, offsets, counts, pattern = read_counts_csv(path)
    except ValueError as error:
        if str(error).startswith("expected the header"):
            remedy = "if these are documents, save them as parquet or jsonl"
            raise DataError(f"not a file of chunk counts: {error}", remedy=remedy) from None
        raise line_error(error) from None
    return (data, offsets, counts), pattern


def write_csv(batches: Iterable[pa.RecordBatch], pattern: str, path: Path) -> None:
    """Write counts."""
    # The csv module does not support zero bytes before Python 3.11.
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            file.write(f"{HEADER}\r\n")
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
    return f'"{field.replace(chr(34), chr(34) * 2)}"' if re.search('[,"\r\n]', field) else field


def check_size(size: int, max_bytes: int | None) -> None:
    """Raise if counts are too large to be loaded."""
    if max_bytes is not None and size > max_bytes:
        raise DataError(
            f"the counts have more than {max_bytes} bytes, and are loaded as a whole",
            remedy=("raise ", Setting("max_memory"), " or add them up later"),
        )

"""Tables, parquet or arrow: what they hold, and batches of some of their columns.

Nothing heavy is imported before there is a table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from .files import decompressed, kind

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

TABLES = (".parquet", ".arrow")
BATCH_CHARACTERS = 2_000_000
BATCH_DOCUMENTS = 4096
"""A batch has no more than so many documents, and about so many characters."""


@dataclass(frozen=True)
class CountsFile:
    """A file of saved chunk counts: a csv, or a parquet file with the columns chunk and count.

    >>> CountsFile(Path("counts.csv")).path.name
    'counts.csv'
    """

    path: Path


class Watched(Protocol):
    """Somebody who wants to know how far reading has come, of so many bytes."""

    size: int

    def moved(self, at: int) -> None:
        """Note it."""


def record_batches(place: Path | str, columns: Sequence[str], by: Watched) -> Iterator[pa.RecordBatch | CountsFile]:
    """Give some columns of a table, of which the first is the text; or the one thing that it is, a file of counts."""
    import pyarrow as pa

    parquet = kind(place)[0] == ".parquet"
    try:
        yield from (_parquet if parquet else _arrow)(place, columns, by)
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{place}: cannot be read as {'parquet' if parquet else 'arrow'}: {error}") from error


def _parquet(place: Path | str, columns: Sequence[str], by: Watched) -> Iterator[pa.RecordBatch | CountsFile]:
    import pyarrow.parquet as pq

    # By default all row groups are fetched ahead, a whole file in memory.
    with (
        decompressed(place, kind(place)[1]) as plain,
        pq.ParquetFile(plain, pre_buffer=False, buffer_size=1 << 20) as file,
    ):
        schema = file.schema_arrow
        types = types_of(schema, str(place))
        counts = re.fullmatch("chunk (large_)?binary count u?int64", " ".join(chain(*types.items())))
        if isinstance(place, Path) and (counts or b"batchbpe" in (schema.metadata or {})):
            yield CountsFile(place)
            return
        _check(types, columns, str(place))
        size = sum(file.metadata.row_group(i).total_byte_size for i in range(file.num_row_groups))
        rows = min(BATCH_CHARACTERS * file.metadata.num_rows // (size or 1), BATCH_DOCUMENTS) or 1
        done = 0
        for batch in file.iter_batches(rows, columns=[*columns], use_threads=False):
            yield batch
            done += len(batch)
            by.moved(by.size * done // file.metadata.num_rows)


def _arrow(place: Path | str, columns: Sequence[str], by: Watched) -> Iterator[pa.RecordBatch]:
    """Read an arrow file or stream, as `datasets` keeps them."""
    import pyarrow as pa

    with (
        decompressed(place, kind(place)[1]) as plain,
        plain.open("rb") if isinstance(plain, Path) else nullcontext(plain) as file,
    ):
        is_file = file.read(6) == b"ARROW1"
        file.seek(0)
        reader: Any = pa.ipc.open_file(file) if is_file else pa.ipc.open_stream(file)
        _check(types_of(reader.schema, str(place)), columns, str(place))
        for batch in map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader:
            yield batch.select([*columns])
            by.moved(file.tell())


def arrays(array: pa.Array[Any] | pa.ChunkedArray[Any]) -> Iterator[pa.Array[Any]]:
    """Yield the array's documents batch by batch, without nulls; other encodings of strings are cast."""
    import pyarrow as pa

    plain = str(array.type) in ("string", "large_string")
    for chunk in array.chunks if isinstance(array, pa.ChunkedArray) else [array]:
        step = len(chunk) if plain else BATCH_DOCUMENTS
        for start in range(0, len(chunk), step or 1):
            piece = chunk.slice(start, step)
            piece = piece if plain else piece.cast(pa.large_string())
            piece = piece.drop_null() if piece.null_count else piece  # which would import pyarrow's compute
            yield from _cut(piece)


def _cut(array: pa.Array[Any]) -> Iterator[pa.Array[Any]]:
    """Cut an array that has far more text than a batch: a few long documents among many short ones may make it so."""
    from .formats.counts import bytes_and_offsets

    ends = bytes_and_offsets(array)[1]
    start = 0
    while ends[-1] - ends[start] > 2 * BATCH_CHARACTERS:
        end = int(ends.searchsorted(ends[start] + BATCH_CHARACTERS, "right")) - 1
        end = max(end, start + 1)
        yield array.slice(start, end - start)
        start = end
    if start < len(array):
        yield array.slice(start)


def those(documents: Any, taken: npt.NDArray[np.bool_]) -> Any:
    """Give those documents of a batch, or rows of a table, that are taken.

    >>> import numpy as np
    >>> those(["one", "two", "three"], np.array([True, False, True]))
    ['one', 'three']
    """
    if isinstance(documents, list):
        return [text for text, wanted in zip(documents, taken, strict=True) if wanted]
    import numpy as np
    import pyarrow as pa

    bits = pa.py_buffer(np.packbits(taken, bitorder="little").data)  # pa.array would import pandas
    return documents.filter(pa.BooleanArray.from_buffers(pa.bool_(), len(taken), [None, bits]))


def types_of(schema: pa.Schema, where: str) -> dict[str, str]:
    """Give the type of each column by its name, which must be one column's alone."""
    types = {field.name: str(field.type) for field in schema}
    if len(types) < len(schema):
        twice = sorted({name for name in schema.names if schema.names.count(name) > 1})
        raise ValueError(f"{where}: more than one column has the name {twice[0]!r}; rename all but one")
    return types


def check(types: Mapping[str, Any], column: str, where: str) -> None:
    """Raise unless `column` is there and its type, known by its name, is a string's."""
    if column not in types:
        raise ValueError(f"{where}: no {column!r} among {sorted(types)}; choose by text_column")
    if not re.match(r"(dictionary<values=)?(large_)?string(_view)?\b", str(types[column])):
        raise ValueError(f"{where}: {column!r} is of type {types[column]}, not string; choose by text_column")


def _check(types: Mapping[str, Any], columns: Sequence[str], where: str) -> None:
    check(types, columns[0], where)
    for column in columns[1:]:
        if column not in types:
            raise ValueError(f"{where}: no {column!r} among {sorted(types)}")

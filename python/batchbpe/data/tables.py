"""Tables, parquet or arrow: what they hold, and batches of some of their columns.

Nothing heavy is imported before there is a table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from . import arrow_ipc
from .files import decompressed, kind

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

TABLES = (".parquet", ".arrow")
BATCH_CHARACTERS = 2_000_000
BATCH_DOCUMENTS = 4096
"""A batch has no more than so many documents, and about so many characters."""
MAX_DOCUMENT_BYTES = 1 << 30
"""The most bytes that a document has by default."""


@dataclass(frozen=True)
class ReadOptions:
    """How files are read."""

    column: str = "text"
    """The column of a table, or the field of a jsonl file, that holds the text."""
    errors: str = "strict"
    max_document_bytes: int = MAX_DOCUMENT_BYTES
    """The most bytes of a row, of a line, or of a stretch of a text file that cannot be cut."""

    def __post_init__(self) -> None:
        """Check the values."""
        if self.max_document_bytes < 1:
            raise ValueError(f"max_document_bytes must be at least 1, got {self.max_document_bytes}")


def default_max_document_bytes(max_memory: int | None) -> int:
    """Give the most bytes of a document for a job that may use so much memory.

    >>> default_max_document_bytes(None), default_max_document_bytes(1 << 30)
    (1073741824, 67108864)
    """
    return MAX_DOCUMENT_BYTES if max_memory is None else max(1, min(MAX_DOCUMENT_BYTES, max_memory // 16))


@dataclass(frozen=True)
class CountsFile:
    """A file of saved chunk counts: a csv, or a parquet file with the columns chunk and count.

    >>> CountsFile(Path("counts.csv")).path.name
    'counts.csv'
    """

    path: Path


def too_large(what: str, max_document_bytes: int) -> str:
    """Say that a document is too large, and what to do."""
    return f"{what}, more than max_document_bytes={max_document_bytes}; raise the limit, or split the document"


class Watched(Protocol):
    """Somebody who wants to know how far reading has come, of so many bytes."""

    size: int

    def moved(self, at: int) -> None:
        """Note it."""


@contextmanager
def reading(place: Path | str) -> Iterator[None]:
    """Name the file in whatever pyarrow and our own checks find wrong with a table."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        if str(place) in str(error):
            raise
        format = "parquet" if kind(place)[0] == ".parquet" else "arrow"
        raise ValueError(f"{place}: cannot be read as {format}: {error}") from error


def record_batches(
    place: Path | str, columns: Sequence[str], by: Watched, max_document_bytes: int = MAX_DOCUMENT_BYTES
) -> Iterator[pa.RecordBatch | CountsFile]:
    """Give some columns of a table, of which the first is the text; or the one thing that it is, a file of counts.

    What is in the columns is not checked yet, except for its size. Errors may not name the file: use `reading`.
    """
    read = _parquet if kind(place)[0] == ".parquet" else _arrow
    yield from read(place, columns, by, max_document_bytes)


def _parquet(
    place: Path | str, columns: Sequence[str], by: Watched, max_document_bytes: int
) -> Iterator[pa.RecordBatch | CountsFile]:
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
        done = 0
        for groups, rows in _row_groups(file, plain, columns, max_document_bytes):
            for batch in file.iter_batches(rows, row_groups=groups, columns=[*columns], use_threads=False):
                yield batch
                done += len(batch)
                by.moved(by.size * done // max(1, file.metadata.num_rows))


def _row_groups(
    file: pq.ParquetFile, plain: Any, columns: Sequence[str], max_document_bytes: int
) -> Iterator[tuple[list[int], int]]:
    """Give row groups to be read together, since small ones are read slowly, and how many rows at once."""
    from . import parquet_pages

    metadata, groups, found, total = file.metadata, [], [], 0
    leaves = [metadata.schema.column(i).path.partition(".")[0] for i in range(metadata.num_columns)]
    wanted = [i for i, name in enumerate(leaves) if name in columns]
    # The headers of pages in files that are not local would be fetched one by one: there the metadata is believed.
    with plain.open("rb") if isinstance(plain, Path) else nullcontext(None) as local:
        places = parquet_pages.row_groups(local) if local else repeat([], file.num_row_groups)
        for number, chunks in zip(range(file.num_row_groups), places, strict=True):
            group = metadata.row_group(number)
            groups.append(number)
            total += group.num_rows
            if local and len(chunks) != len(leaves):
                raise ValueError(f"row group {number} has {len(chunks)} columns, not {len(leaves)}")
            if local:
                found += [parquet_pages.read_pages(local, chunks[i]) for i in wanted]
            else:
                found.append([parquet_pages.Page(parquet_pages.DATA, group.total_byte_size, group.num_rows, 0)])
            size = sum(page.size for each in found for page in each)
            rows = min(BATCH_CHARACTERS * total // max(1, size), BATCH_DOCUMENTS) or 1
            if total >= rows or number == file.num_row_groups - 1:
                most = max(max_document_bytes, parquet_pages.BATCH_BYTES)
                for each in found if local else []:
                    parquet_pages.check_pages(each, max(max_document_bytes, arrow_ipc.SMALL), max_document_bytes)
                    longest = partial(_longest_entry, plain, columns, groups)
                    rows = parquet_pages.rows_at_once(each, rows, most, longest)
                yield groups, rows
                groups, found, total = [], [], 0


def _longest_entry(plain: Path, columns: Sequence[str], groups: list[int]) -> int:
    """Give the size of the longest entry of the dictionaries."""
    import pyarrow.parquet as pq

    from .arrow_strings import sizes

    longest = 0
    with pq.ParquetFile(plain, pre_buffer=False, buffer_size=1 << 20, read_dictionary=[*columns]) as file:
        for group in groups:
            batch = next(file.iter_batches(1, row_groups=[group], columns=[*columns], use_threads=False), None)
            column: Any
            for column in batch.columns if batch else []:
                if str(column.type).startswith("dictionary"):
                    longest = max(longest, int(sizes(column.dictionary).max(initial=0)))
    return longest


def _arrow(place: Path | str, columns: Sequence[str], by: Watched, max_document_bytes: int) -> Iterator[pa.RecordBatch]:
    """Read an arrow file or stream, as `datasets` keeps them."""
    import pyarrow as pa

    # Not as a memory map: if the file is cut off meanwhile, that would end the process.
    with (
        decompressed(place, kind(place)[1]) as plain,
        plain.open("rb") if isinstance(plain, Path) else nullcontext(plain) as file,
    ):
        is_file = file.read(6) == arrow_ipc.MAGIC
        file.seek(0)
        open_: Any = pa.ipc.open_file if is_file else pa.ipc.open_stream
        schema: pa.Schema = open_(file).schema
        _check(types_of(schema, str(place)), columns, str(place))
        bounds = arrow_ipc.Bounds(file, schema, columns, max_document_bytes)
        file.seek(0)
        reader = open_(file, options=pa.ipc.IpcReadOptions(included_fields=[*map(schema.get_field_index, columns)]))
        for batch in _checked_file(reader, bounds) if is_file else _checked_stream(reader, bounds):
            yield batch.select([*columns])
            by.moved(file.tell())


def _checked_file(reader: pa.ipc.RecordBatchFileReader, bounds: arrow_ipc.Bounds) -> Iterator[pa.RecordBatch]:
    for number, _ in enumerate(bounds.check_footer()):
        yield reader.get_batch(number)


def _checked_stream(reader: pa.ipc.RecordBatchStreamReader, bounds: arrow_ipc.Bounds) -> Iterator[pa.RecordBatch]:
    while True:
        bounds.check_next()
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            return
        yield batch


def types_of(schema: pa.Schema, where: str) -> dict[str, str]:
    """Give the type of each column by its name, which must be one column's alone."""
    types = {field.name: str(field.type) for field in schema}
    if len(types) < len(schema):
        twice = sorted({name for name in schema.names if schema.names.count(name) > 1})
        raise ValueError(f"{where}: more than one column has the name {twice[0]!r}; rename all but one")
    return types


def is_string(type_: Any) -> bool:
    """Say whether a type, or its name, is that of strings, however they are encoded.

    >>> is_string("dictionary<values=string, indices=int32, ordered=0>"), is_string("int64")
    (True, False)
    """
    return bool(re.match(r"(dictionary<values=)?(large_)?string(_view)?\b", str(type_)))


def check(types: Mapping[str, Any], column: str, where: str) -> None:
    """Raise unless `column` is there and its type, known by its name, is a string's."""
    if column not in types:
        raise ValueError(f"{where}: no {column!r} among {sorted(types)}; choose by text_column")
    if not is_string(types[column]):
        raise ValueError(f"{where}: {column!r} is of type {types[column]}, not string; choose by text_column")


def _check(types: Mapping[str, Any], columns: Sequence[str], where: str) -> None:
    check(types, columns[0], where)
    for column in columns[1:]:
        if column not in types:
            raise ValueError(f"{where}: no {column!r} among {sorted(types)}")

"""Read parquet and arrow tables: check their columns, and yield batches of some of them.

pyarrow is imported only when there is a table to read.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import chain, islice, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import DataError, Setting, opening, short
from . import arrow_ipc, limits
from .documents import Counts
from .files import decompressed, kind

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

TABLES = (".parquet", ".arrow")


class Watched(Protocol):
    """A source whose position is updated while it is read."""

    size: int

    def move(self, position: int) -> None:
        """Record how many bytes have been read."""


@contextmanager
def reading(place: Path | str) -> Iterator[None]:
    """Add the name of the file to errors from pyarrow and from the checks before it."""
    import pyarrow as pa

    format = "a parquet" if kind(place)[0] == ".parquet" else "an arrow"
    try:
        with opening(place):
            yield
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        if str(place) in str(error) or str(error).startswith("cannot write"):  # a temporary copy
            raise
        if isinstance(error, DataError):
            error.where = f"{place}, {error.where}" if error.where else str(place)
            raise
        unsupported = isinstance(error, pa.ArrowNotImplementedError)
        problem = f"unsupported: {error}" if unsupported else f"not {format} file, or damaged"
        raise DataError(problem, where=str(place)) from error


def record_batches(
    place: Path | str, columns: Sequence[str], source: Watched, max_document_bytes: int = limits.MAX_DOCUMENT_BYTES
) -> Iterator[pa.RecordBatch | Counts]:
    """Yield batches of some columns of a table, the text column first; or `Counts` if it is a file of chunk counts.

    The sizes of the batches are bounded, but their content is not validated yet. Wrap the loop in `reading`, which adds
    the name of the file to errors.
    """
    read = _parquet if kind(place)[0] == ".parquet" else _arrow
    yield from read(place, columns, source, max_document_bytes)


def _parquet(
    place: Path | str, columns: Sequence[str], source: Watched, max_document_bytes: int
) -> Iterator[pa.RecordBatch | Counts]:
    import pyarrow.parquet as pq

    # By default, pyarrow buffers all row groups in advance: the whole file.
    with (
        decompressed(place, kind(place)[1]) as plain,
        pq.ParquetFile(plain, pre_buffer=False, buffer_size=1 << 20) as file,
    ):
        schema = file.schema_arrow
        types = types_of(schema, str(place))
        if isinstance(place, Path) and (_are_counts(types) or b"batchbpe" in (schema.metadata or {})):
            yield Counts(place)
            return
        _check_columns(types, columns, str(place))
        done = 0
        for groups, rows in _row_groups(file, plain, columns, max_document_bytes):
            for batch in file.iter_batches(rows, row_groups=groups, columns=[*columns], use_threads=False):
                yield batch
                done += len(batch)
                source.move(source.size * done // max(1, file.metadata.num_rows))


def _are_counts(types: Mapping[str, str]) -> bool:
    return bool(re.fullmatch("chunk (large_)?binary count u?int64", " ".join(chain(*types.items()))))


def is_counts_folder(path: Path) -> bool:
    """Return whether a path is a folder of chunk counts that Spark has written completely.

    >>> is_counts_folder(Path(__file__).parent)
    False
    """
    if not os.path.isfile(path / "_SUCCESS"):  # noqa: PTH113  which does not fail if the folder is not accessible
        return False
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        schemas = (pq.read_schema(part) for part in sorted(path.glob("part-*.parquet")))
        return any(_are_counts(types_of(schema, str(path))) for schema in islice(schemas, 1))
    except (pa.ArrowException, OSError, DataError):  # which reading the file raises as well
        return False


def _row_groups(
    file: pq.ParquetFile, plain: Any, columns: Sequence[str], max_document_bytes: int
) -> Iterator[tuple[list[int], int]]:
    """Yield row groups to read together, and the number of rows to read at once. Reading small groups alone is slow."""
    from . import parquet_pages

    metadata, groups, found, total = file.metadata, [], [], 0
    leaves = [metadata.schema.column(i).path.partition(".")[0] for i in range(metadata.num_columns)]
    selected = [i for i, name in enumerate(leaves) if name in columns]
    # Page headers of remote files would be fetched one by one. There, the metadata is trusted.
    with plain.open("rb") if isinstance(plain, Path) else nullcontext(None) as local:
        places = parquet_pages.row_groups(local) if local else repeat([], file.num_row_groups)
        for number, chunks in zip(range(file.num_row_groups), places, strict=True):
            group = metadata.row_group(number)
            groups.append(number)
            total += group.num_rows
            if local and len(chunks) != len(leaves):
                raise DataError(f"row group {number} has {len(chunks)} columns, expected {len(leaves)}")
            if local:
                found += [parquet_pages.read_pages(local, chunks[i]) for i in selected]
            else:
                found.append([parquet_pages.Page(parquet_pages.DATA, group.total_byte_size, group.num_rows, 0)])
            size = sum(page.size for each in found for page in each)
            rows = min(limits.BATCH_CHARACTERS * total // max(1, size), limits.BATCH_DOCUMENTS) or 1
            if total >= rows or number == file.num_row_groups - 1:
                max_bytes = max(max_document_bytes, parquet_pages.BATCH_BYTES)
                for each in found if local else []:
                    parquet_pages.check_pages(each, max(max_document_bytes, arrow_ipc.SMALL), max_document_bytes)
                    longest = partial(_longest_entry, plain, columns, groups)
                    rows = parquet_pages.rows_at_once(each, rows, max_bytes, longest)
                yield groups, rows
                groups, found, total = [], [], 0


def _longest_entry(plain: Path, columns: Sequence[str], groups: list[int]) -> int:
    """Return the size of the longest entry of the dictionaries."""
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


def _arrow(
    place: Path | str, columns: Sequence[str], source: Watched, max_document_bytes: int
) -> Iterator[pa.RecordBatch]:
    """Read an arrow file or stream, such as the files of a `datasets` cache."""
    import pyarrow as pa

    # Not memory-mapped: truncating the file while it is read would kill the process.
    with (
        decompressed(place, kind(place)[1]) as plain,
        plain.open("rb") if isinstance(plain, Path) else nullcontext(plain) as file,
    ):
        is_file = file.read(6) == arrow_ipc.MAGIC
        file.seek(0)
        open_: Any = pa.ipc.open_file if is_file else pa.ipc.open_stream
        schema: pa.Schema = open_(file).schema
        _check_columns(types_of(schema, str(place)), columns, str(place))
        checker = arrow_ipc.SizeChecker(file, schema, columns, max_document_bytes)
        file.seek(0)
        reader = open_(file, options=pa.ipc.IpcReadOptions(included_fields=[*map(schema.get_field_index, columns)]))
        for batch in _checked_file(reader, checker) if is_file else _checked_stream(reader, checker):
            yield batch.select([*columns])
            source.move(file.tell())


def _checked_file(reader: pa.ipc.RecordBatchFileReader, checker: arrow_ipc.SizeChecker) -> Iterator[pa.RecordBatch]:
    for number, _ in enumerate(checker.check_footer()):
        yield reader.get_batch(number)


def _checked_stream(reader: pa.ipc.RecordBatchStreamReader, checker: arrow_ipc.SizeChecker) -> Iterator[pa.RecordBatch]:
    while True:
        checker.check_next()
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            return
        yield batch


def types_of(schema: pa.Schema, where: str) -> dict[str, str]:
    """Return the type of each column. A name that two columns share is an error."""
    types = {field.name: str(field.type) for field in schema}
    if len(types) < len(schema):
        repeated = min(name for name, times in Counter(schema.names).items() if times > 1)
        raise DataError(f"several columns are named {repeated!r}", where=where, remedy="rename all but one")
    return types


def is_string(type_: Any) -> bool:
    """Return whether an arrow type, or the name of one, is a string type in any encoding.

    >>> is_string("dictionary<values=string, indices=int32, ordered=0>"), is_string("int64")
    (True, False)
    """
    return bool(re.match(r"(dictionary<values=)?(large_)?string(_view)?\b", str(type_)))


def has_fixed_size(type_: Any) -> bool:
    """Return whether the values of an arrow type, or of its name, are numbers, booleans, dates or nulls.

    >>> has_fixed_size("int64"), has_fixed_size("list<item: int64>")
    (True, False)
    """
    return bool(re.match(r"(bool|null|u?int|halffloat|float|double|decimal|date|time|duration)", str(type_)))


def check_text_column(types: Mapping[str, Any], column: str, where: str, noun: str = "column") -> None:
    """Raise unless there is a column (or whatever `noun` says) of that name and its type is a string type.

    >>> check_text_column({"id": "int64", "body": "string"}, "text", "a.parquet")
    Traceback (most recent call last):
    ...
    batchbpe.errors.DataError: a.parquet: no column 'text' among ['body', 'id']; choose one with text_column
    """
    remedy = ("choose one with ", Setting("text_column"))
    if column not in types:
        raise DataError(f"no {noun} {column!r} among {short(sorted(types))}", where=where, remedy=remedy)
    if not is_string(types[column]):
        raise DataError(f"{noun} {column!r} must be of type string, got {types[column]}", where=where, remedy=remedy)


def check_group_column(types: Mapping[str, Any], column: str, where: str, noun: str = "column") -> None:
    """Raise unless there is a column (or whatever `noun` says) of that name."""
    if column not in types:
        remedy = ("choose one with ", Setting("group_column"))
        raise DataError(f"no {noun} {short(column)} among {short(sorted(types))}", where=where, remedy=remedy)


def _check_columns(types: Mapping[str, Any], columns: Sequence[str], where: str) -> None:
    check_text_column(types, columns[0], where)
    for column in columns[1:]:
        check_group_column(types, column, where)
        if not is_string(types[column]) and not has_fixed_size(types[column]):  # a list could expand to any size
            problem = f"column {column!r} must be of type string, number or boolean, got {types[column]}"
            raise DataError(problem, where=where)

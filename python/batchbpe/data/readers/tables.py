"""Tables: parquet and arrow files, arrow data in memory, and datasets. One column contains the text.

pyarrow is imported only when there is a table to read.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ...errors import DataError, Setting, short
from ..documents import Counts, Documents
from ..files import Location, decompressed, size_of, split_suffix
from ..options import ReadOptions
from ..source import Rows, Source
from ..untrusted import damaged, open_table
from ..untrusted.arrow_strings import batches_of, find_invalid, is_string, pieces, rows_of

if TYPE_CHECKING:
    import pyarrow as pa

Columns: TypeAlias = "list[pa.Array[Any]]"
"""Arrays of equal length: part of some columns of a table."""
ReadColumns: TypeAlias = "Callable[[Source, Sequence[str]], Iterable[Columns | Counts]]"
"""Reads some columns of a table, the text column first, or finds that it contains chunk counts."""


class TableSource(Source):
    """A table in a file or in memory."""

    def __init__(self, name: str, read_columns: ReadColumns, options: ReadOptions, size: int = 0) -> None:
        """Create a source. See `Source`; `read_columns` can be called more than once."""
        super().__init__(name, lambda _: self._documents(), size)
        self._read_columns, self._options = read_columns, options

    def _documents(self) -> Iterator[Documents]:
        errors, limit = self._options.errors, self._options.max_document_bytes if self.name else None
        with self._damaged():
            for row, columns in self._columns():
                if isinstance(columns, Counts):
                    yield columns
                else:
                    yield from batches_of(columns[0], errors=errors, max_document_bytes=limit, first_row=row)

    def rows(self, group_column: str) -> Iterator[Rows]:
        """Yield rows of text and group, in batches. Rows whose text is null are skipped."""
        with self._damaged():
            for row, columns in self._columns(group_column):
                if isinstance(columns, Counts):
                    raise DataError("chunk counts have no group column", remedy="use documents")
                yield from rows_of(columns[0], columns[1], self._options, row)

    def find_invalid(self) -> DataError | None:
        """Find the first row that is invalid UTF-8, by reading the table once more."""
        with self._damaged():
            arrays = (
                piece
                for row, columns in self._columns()
                if not isinstance(columns, Counts)
                for piece in pieces(columns[0], first_row=row)
            )
            return next(filter(None, (find_invalid(array, row) for row, array in arrays)), None)

    def _columns(self, *others: str) -> Iterator[tuple[int, Columns | Counts]]:
        """Yield parts of the text column and of other columns, each with the number of its first row."""
        row = 0
        for columns in self._read_columns(self, [self._options.text_column, *others]):
            yield row, columns
            row += 0 if isinstance(columns, Counts) else len(columns[0])

    def _damaged(self) -> Any:
        return damaged("the column is damaged") if self.name else nullcontext()


def table_file(location: Location, options: ReadOptions) -> Source:
    """Return a parquet or arrow file as a source."""
    return TableSource(str(location), partial(_read_file, location, options), options, size_of(location))


def _read_file(
    location: Location, options: ReadOptions, source: Source, columns: Sequence[str]
) -> Iterator[Columns | Counts]:
    suffix, compression = split_suffix(location)
    is_parquet = suffix == ".parquet"
    with decompressed(location, compression) as plain, open_table(plain, is_parquet=is_parquet) as table:
        types = types_of(table.schema)
        is_ours = _are_counts(types) or b"batchbpe" in (table.schema.metadata or {})
        if is_ours and is_parquet and isinstance(location, Path):
            yield Counts(location)
            return
        check_columns(types, columns)
        for batch, fraction in table.batches(columns, options.max_document_bytes):
            yield [batch.column(name) for name in columns]
            source.move(int(source.size * fraction))


def table_in_memory(
    schema: pa.Schema, read: Callable[[list[str]], Iterable[Any]], options: ReadOptions, where: str
) -> Source:
    """Return a source for record batches or tables, which `read` returns for a list of columns, more than once."""
    types = types_of(schema, where)
    check_columns(types, [options.text_column], where)

    def read_columns(_: Source, names: Sequence[str]) -> Iterator[Columns]:
        check_columns(types, names, where)
        for part in read([*dict.fromkeys(names)]):
            for batch in part.to_batches() if hasattr(part, "to_batches") else [part]:
                yield [batch.column(name) for name in names]

    return TableSource("", read_columns, options)


def array_in_memory(array: Any, options: ReadOptions, where: str) -> Source:
    """Return a source for strings in an array or chunked array."""
    if not is_string(array.type):
        raise DataError(f"the array must be of type string, got {array.type}", where=where)

    def read_columns(source: Source, names: Sequence[str]) -> Iterator[Columns]:
        if len(names) > 1:
            raise source.no_groups()
        yield from ([chunk] for chunk in getattr(array, "chunks", [array]))

    return TableSource("", read_columns, options)


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
        return any(_are_counts(types_of(schema)) for schema in islice(schemas, 1))
    except (pa.ArrowException, OSError, DataError):  # which reading the file raises as well
        return False


def _are_counts(types: Mapping[str, str]) -> bool:
    return bool(re.fullmatch("chunk (large_)?binary count u?int64", " ".join(chain(*types.items()))))


def types_of(schema: pa.Schema, where: str = "") -> dict[str, str]:
    """Return the type of each column. A name that two columns share is an error."""
    types = {field.name: str(field.type) for field in schema}
    if len(types) < len(schema):
        repeated = min(name for name, times in Counter(schema.names).items() if times > 1)
        raise DataError(f"several columns are named {repeated!r}", where=where, remedy="rename all but one")
    return types


def _has_fixed_size(type_: str) -> bool:
    """Return whether the values of an arrow type are numbers, booleans, dates or nulls."""
    return bool(re.match(r"(bool|null|u?int|halffloat|float|double|decimal|date|time|duration)", type_))


def check_columns(types: Mapping[str, str], columns: Sequence[str], where: str = "") -> None:
    """Raise unless the first column contains text, and the others strings, numbers or booleans."""
    check_text_column(types, columns[0], where)
    for column in columns[1:]:
        check_group_column(types, column, where)
        if not is_string(types[column]) and not _has_fixed_size(types[column]):  # a list could expand to any size
            problem = f"column {column!r} must be of type string, number or boolean, got {types[column]}"
            raise DataError(problem, where=where)


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

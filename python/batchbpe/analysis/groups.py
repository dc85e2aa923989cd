"""Documents by group, such as a language: a column of a table, a field of jsonl, or the file name gives the group."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..data import limits
from ..data.arrow_strings import check_sizes, cuts, find_invalid, plain, replace_invalid, sizes
from ..data.documents import Counts, Documents, Texts
from ..data.files import URL, kind, open_stream
from ..data.jsonl import json_lines, text_fields
from ..data.options import ReadOptions
from ..data.sampling import Sampling
from ..data.source import Source
from ..data.tables import (
    TABLES,
    check_group_column,
    check_text_column,
    has_fixed_size,
    is_string,
    reading,
    record_batches,
)
from ..errors import DataError

NO_GROUP = "(none)"
"""Name of the group of documents whose group is null or empty."""
GroupedDocuments = Iterator[tuple[Source, str, Documents]]


def by_file(sources: Iterable[Source], sampling: Sampling) -> GroupedDocuments:
    """Yield documents with their group: the file name without its suffixes, or the path if names are not unique.

    >>> source = Source("texts/en.txt", lambda _: [Texts(["to be"])])
    >>> [(group, documents) for _, group, documents in by_file([source], Sampling())]
    [('en', Texts(strings=['to be']))]
    """
    sources = list(sources)
    names = [Path(source.name).name.partition(".")[0] for source in sources]
    occurrences = Counter(names)
    for name, source in zip(names, sources, strict=True):
        group = name if name and occurrences[name] == 1 else source.name or "in memory"
        for documents in replace(sampling).of(source):  # each group starts to count bytes again
            yield source, group, documents


def by_column(sources: Iterable[Source], group_column: str, options: ReadOptions) -> GroupedDocuments:
    """Yield the documents of tables or jsonl files with their groups. Rows whose text is null are skipped.

    >>> import tempfile
    >>> from batchbpe.data.corpus import sources
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "a.jsonl"
    ...     _ = path.write_text('{"text": "to be", "language": "en"}')
    ...     [(group, documents) for _, group, documents in by_column(sources(path), "language", ReadOptions())]
    [('en', Texts(strings=['to be']))]
    """
    for source in sources:
        yield from _grouped(source, _batches(source, group_column, source.options or options))


def table_by_column(table: Any, group_column: str, options: ReadOptions) -> GroupedDocuments:
    """Yield the documents of a pyarrow table or record batch with their groups.

    >>> import pyarrow as pa
    >>> table = pa.table({"text": ["to be", "zu sein"], "language": ["en", "de"]})
    >>> [(group, documents) for _, group, documents in table_by_column(table, "language", ReadOptions())]
    [('en', Texts(strings=['to be'])), ('de', Texts(strings=['zu sein']))]
    """
    types = dict(zip(table.schema.names, table.schema.types, strict=True))
    check_text_column(types, options.text_column, "data")
    check_group_column(types, group_column, "data")
    source, row = Source("", lambda _: []), 0
    for batch in table.to_batches() if hasattr(table, "to_batches") else [table]:
        rows = _rows(batch.column(options.text_column), batch.column(group_column), options, row)
        yield from _grouped(source, rows)
        row += len(batch)


def _grouped(source: Source, batches: Iterable[Iterable[tuple[Any, Any]]]) -> GroupedDocuments:
    for batch in batches:
        groups: dict[str, list[str]] = defaultdict(list)
        for text, group in batch:
            if text is not None:
                groups[NO_GROUP if group in (None, "") else str(group)].append(text)
        yield from ((source, group, Texts(texts)) for group, texts in groups.items())


def _batches(source: Source, group_column: str, options: ReadOptions) -> Iterator[Iterable[tuple[Any, Any]]]:
    remedy = "use parquet, arrow or jsonl files, or one file per group"
    if source.name in ("", "standard input"):
        raise DataError(f"{source.name or 'text in memory'} has no group column", remedy=remedy)
    place = source.name if re.match(URL, source.name) else Path(source.name)
    suffix, codec = kind(place)
    text_column, columns = options.text_column, [options.text_column, group_column]
    if suffix in TABLES:
        with reading(place):
            row = 0
            for batch in record_batches(place, columns, source, options.max_document_bytes):
                if isinstance(batch, Counts):
                    raise DataError("chunk counts have no group column", where=source.name, remedy="use documents")
                yield from _rows(batch.column(text_column), batch.column(group_column), options, row)
                row += len(batch)
    elif suffix == ".jsonl":
        with open_stream(place, codec, source.move) as lines:
            where = f"{source.name}, line"
            for number, record in json_lines(lines, place, options):
                for text in text_fields([(number, record)], text_column, where):
                    check_group_column(record, group_column, f"{where} {number}", noun="field")
                    yield [(text, record[group_column])]
    else:
        raise DataError("this file type has no group column", where=source.name, remedy=remedy)


def _rows(texts: Any, groups: Any, options: ReadOptions, first: int) -> Iterator[Iterable[tuple[Any, Any]]]:
    """Yield the rows of two columns as Python objects, in batches of limited size."""
    size = sizes(texts)
    check_sizes(size, options.max_document_bytes, first)
    if is_string(groups.type):
        size = size + sizes(groups)
    elif has_fixed_size(groups.type):
        groups.validate(full=True)
    else:  # a list or a dictionary of binary values could expand to any size
        raise DataError(f"the group column must be of type string, number or boolean, got {groups.type}")
    for start, end in cuts(size, limits.BATCH_DOCUMENTS):
        columns = (_values(column.slice(start, end - start), options, first + start) for column in (texts, groups))
        yield zip(*columns, strict=True)


def _values(column: Any, options: ReadOptions, first: int) -> list[Any]:
    if not is_string(column.type):
        values: list[Any] = column.to_pylist()
        return values
    column = plain(column)
    if options.errors == "replace":
        column = replace_invalid(column)
    invalid = find_invalid(column, first)
    if invalid:
        raise invalid
    return list(column.to_pylist())

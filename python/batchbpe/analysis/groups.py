"""Documents by group, such as a language: a column of a table or a field of jsonl says which, or the name of a file."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ..counts import ChunkCounts
from ..data.arrow_strings import check_sizes, cuts, invalid_at, plain, replaced, sizes
from ..data.files import URL, kind, open_stream
from ..data.readers import Documents, Source, json_lines
from ..data.sampling import Selection
from ..data.tables import BATCH_DOCUMENTS, TABLES, CountsFile, ReadOptions, is_string, reading, record_batches
from ..errors import short
from .evaluation import Text


def texts(
    documents: Iterable[tuple[Source, str, Documents]],
    patterns: Iterable[str],
    threads: int | None,
    errors: str = "strict",
) -> dict[str, Text]:
    """Count the text of each group, for tokenizers with these patterns. A file of counts is a group of its own.

    >>> source = Source("", lambda _: [])
    >>> list(texts([(source, "en", ["to be"]), (source, "de", ["zu sein"])], ["gpt4"], None))
    ['de', 'en']
    """
    patterns = list(dict.fromkeys(patterns))
    found: dict[str, Text] = {}
    for source, group, some in documents:
        if isinstance(some, CountsFile):
            if group in found:
                raise ValueError(f"{some.path}: chunk counts are evaluated alone: add them up first")
            found[group] = Text.of_counts(ChunkCounts.load(some.path))
        else:
            if group not in found:
                found[group] = Text(patterns, threads, errors)
            with source.named():
                found[group].add(some)
    return dict(sorted(found.items()))


def by_file(sources: Iterable[Source], selection: Selection) -> Iterator[tuple[Source, str, Documents]]:
    """Give documents with their group: the name of their file without its ending, or all of it where others have it."""
    sources = list(sources)
    names = [Path(source.name).name.partition(".")[0] for source in sources]
    for name, source in zip(names, sources, strict=True):
        for documents in selection.of(source):
            yield source, name if name and names.count(name) == 1 else source.name, documents


def by_column(
    sources: Iterable[Source], group_column: str, options: ReadOptions
) -> Iterator[tuple[Source, str, Documents]]:
    """Give the documents of tables or jsonl with their groups. A text that is null is no document."""
    for source in sources:
        for batch in _batches(source, group_column, options):
            groups: dict[str, list[str]] = defaultdict(list)
            for text, group in batch:
                if text is not None:
                    groups["(none)" if group in (None, "") else str(group)].append(text)
            yield from ((source, group, texts) for group, texts in groups.items())


def _batches(source: Source, group_column: str, options: ReadOptions) -> Iterator[Iterable[tuple[Any, Any]]]:
    if source.name == "standard input":
        raise ValueError("standard input tells no groups by a column: save it as a file")
    place = source.name if re.match(URL, source.name) else Path(source.name)
    suffix, codec = kind(place)
    text_column, columns = options.column, [options.column, group_column]
    if suffix in TABLES:
        with reading(place):
            row = 0
            for batch in record_batches(place, columns, source, options.max_document_bytes):
                if isinstance(batch, CountsFile):
                    raise ValueError(f"{source.name} holds chunk counts, which are of no group: give documents")
                yield from _rows(batch.column(text_column), batch.column(group_column), options, row)
                row += len(batch)
    elif suffix == ".jsonl":
        with open_stream(place, codec, source.moved) as lines:
            for number, record in json_lines(lines, place, options):
                missing = [column for column in columns if not isinstance(record, dict) or column not in record]
                if missing:
                    raise ValueError(f"{source.name}, line {number}: no field {short(missing[0])}")
                if not isinstance(record[text_column], str | None):
                    kind_ = type(record[text_column]).__name__
                    raise ValueError(f"{source.name}, line {number}: {short(text_column)} is of type {kind_}, not str")
                yield [tuple(record[column] for column in columns)]
    else:
        raise ValueError(
            f"{source.name}: only parquet, arrow and jsonl tell groups by a column; or give a file for each group"
        )


def _rows(texts: Any, groups: Any, options: ReadOptions, first: int) -> Iterator[Iterable[tuple[Any, Any]]]:
    """Give the rows of two columns as Python objects, few bytes at once."""
    size = sizes(texts)
    check_sizes(size, options.max_document_bytes, first)
    if is_string(groups.type):
        size = size + sizes(groups)
    else:
        groups.validate(full=True)
    for start, end in cuts(size, BATCH_DOCUMENTS):
        columns = (_values(column.slice(start, end - start), options, first + start) for column in (texts, groups))
        yield zip(*columns, strict=True)


def _values(column: Any, options: ReadOptions, first: int) -> list[Any]:
    if not is_string(column.type):
        values: list[Any] = column.to_pylist()
        return values
    column = plain(column)
    if options.errors == "replace":
        column = replaced(column)
    problem = invalid_at(column, first)
    if problem:
        raise ValueError(problem)
    return list(column.to_pylist())

"""A file, a URL or standard input → its documents, chosen by suffix: text, jsonl, parquet, arrow, chunk counts.

One batch of a source is in memory at a time. Nothing is split or counted here.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from ..errors import DataError
from .documents import Counts, Documents, TextFile
from .files import CODECS, kind, open_stream, size_of
from .jsonl import json_lines, text_fields
from .options import ReadOptions
from .source import Source, batched
from .tables import TABLES, is_counts_folder, reading, record_batches

if TYPE_CHECKING:
    import pyarrow as pa

KNOWN = (".txt", ".md", ".parquet", ".arrow", ".jsonl", ".csv")
SUFFIXES = tuple(known + codec for known in KNOWN for codec in ("", *CODECS))


def source(place: Path | str, options: ReadOptions) -> Source:
    """Return a file, or a URL if `place` is a string, as a source. A file with an unknown suffix is read as text.

    >>> source(Path(__file__), ReadOptions()).name.endswith("readers.py")
    True
    """
    suffix, codec = kind(place)
    name, size = str(place), size_of(place)
    if isinstance(place, Path) and is_counts_folder(place):
        return Source(name, lambda _: [Counts(place)])
    if suffix == ".jsonl":
        return Source(name, partial(_read_jsonl, place, options), size, options=options)
    if suffix in TABLES:
        rows = partial(_rows, place, options)
        return Source(name, partial(_read_table, place, options), size, rows, options=options)
    if suffix == ".csv":
        if isinstance(place, str):
            raise DataError("chunk counts cannot be read from a URL", where=place, remedy="download the file first")
        return Source(name, lambda _: [Counts(place)], size)

    def read_text(source: Source) -> Iterable[Documents]:
        stream = partial(open_stream, place, codec, source.move)
        return [TextFile(name, stream, max_document_bytes=options.max_document_bytes)]

    return Source(name, read_text, size, is_rereadable=isinstance(place, str) or not _is_pipe(place))


def _is_pipe(path: Path) -> bool:
    """Return whether a path is something that can be read only once. Reading it raises the errors."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or stat.S_ISSOCK(mode)


def standard_input(stream: BinaryIO, jsonl_field: str | None, options: ReadOptions) -> Source:
    """Return standard input as a source: jsonl if a field is given, otherwise one text."""
    name = "standard input"
    if jsonl_field is None:
        file = TextFile(name, lambda: stream, opens_once=True, max_document_bytes=options.max_document_bytes)
        return Source(name, lambda _: [file], is_rereadable=False)
    lines = json_lines(stream, name, options)
    texts = text_fields(lines, jsonl_field, f"{name}, line")
    return Source(name, lambda _: batched(texts), is_rereadable=False)


def _read_jsonl(place: Path | str, options: ReadOptions, source: Source) -> Iterator[Documents]:
    with open_stream(place, kind(place)[1], source.move) as stream:
        yield from batched(text_fields(json_lines(stream, place, options), options.text_column, f"{place}, line"))


def _read_table(place: Path | str, options: ReadOptions, source: Source) -> Iterator[Documents]:
    from .arrow_strings import batches_of  # imports numpy

    limit, row = options.max_document_bytes, 0
    with reading(place):
        for batch in record_batches(place, [options.text_column], source, limit):
            if isinstance(batch, Counts):
                yield batch
                return
            column = batch.column(options.text_column)
            yield from batches_of(column, errors=options.errors, max_document_bytes=limit, first_row=row)
            row += len(column)


def _rows(place: Path | str, options: ReadOptions) -> Iterator[tuple[int, pa.Array[Any]]]:
    from .arrow_strings import pieces  # imports numpy

    row = 0
    with reading(place):
        unwatched = Source("", lambda _: [])
        for batch in record_batches(place, [options.text_column], unwatched, options.max_document_bytes):
            if not isinstance(batch, Counts):
                yield from pieces(batch.column(options.text_column), first_row=row)
                row += len(batch)

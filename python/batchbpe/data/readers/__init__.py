"""A file, a URL or standard input → a source of documents. `FORMATS` is the list of file formats.

One batch of a source is in memory at a time. Nothing is split or counted here. The command line shows the suffixes, so
importing this module must not import numpy or pyarrow.
"""

from __future__ import annotations

import stat
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ...errors import DataError
from ..files import COMPRESSIONS, Location, open_stream, size_of, split_suffix
from ..options import ReadOptions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..documents import Documents
    from ..source import Source

STANDARD_INPUT = "standard input"


def _text(location: Location, options: ReadOptions) -> Source:
    from ..documents import TextFile
    from ..source import Source
    from .texts import text_documents

    name, is_pipe = str(location), _is_pipe(location)

    def read(source: Source) -> Iterable[Documents]:
        stream = partial(open_stream, location, split_suffix(location)[1], source.move)
        return text_documents(TextFile(name, stream, is_pipe, options.max_document_bytes), options)

    return Source(name, read, size_of(location), read_once=name if is_pipe else "")


def _jsonl(location: Location, options: ReadOptions) -> Source:
    from .jsonl import JsonlSource

    return JsonlSource(location, options)


def _table(location: Location, options: ReadOptions) -> Source:
    from .tables import table_file

    return table_file(location, options)


def _counts(location: Location, options: ReadOptions) -> Source:
    from ..documents import Counts
    from ..source import Source

    if isinstance(location, str):
        raise DataError("chunk counts cannot be read from a URL", where=location, remedy="download the file first")
    return Source(str(location), lambda _: [Counts(location)], size_of(location), is_counts=True)


@dataclass(frozen=True)
class Format:
    """A file format."""

    source: Callable[[Location, ReadOptions], Source]
    """Returns a file, or a URL if the location is a string, as a source."""
    on_spark: Literal["text", "json", "parquet"] | None = None
    """How Spark reads it, if it can."""


FORMATS = {
    ".txt": Format(_text, "text"),
    ".md": Format(_text, "text"),
    ".parquet": Format(_table, "parquet"),
    ".arrow": Format(_table),
    ".jsonl": Format(_jsonl, "json"),
    ".csv": Format(_counts),
}
"""File formats by suffix. A file with another suffix is read as text."""
SUFFIXES = tuple(suffix + compression for suffix in FORMATS for compression in ("", *COMPRESSIONS))


def source(location: Location, options: ReadOptions) -> Source:
    """Return a file, a folder of chunk counts, or a URL as a source.

    >>> source(Path(__file__), ReadOptions()).name.endswith("__init__.py")
    True
    """
    from .tables import is_counts_folder

    if isinstance(location, Path) and is_counts_folder(location):
        return _counts(location, options)
    format = FORMATS.get(split_suffix(location)[0], FORMATS[".txt"])
    return format.source(location, options)


def _is_pipe(location: Location) -> bool:
    """Return whether a path is something that can be read only once. Reading it raises the errors."""
    if isinstance(location, str):
        return False
    try:
        mode = location.stat().st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or stat.S_ISSOCK(mode)


def standard_input(options: ReadOptions) -> Source:
    """Return standard input as a source: jsonl if `jsonl_field` is given, otherwise text."""
    import sys

    from ..documents import TextFile
    from ..source import Source
    from .jsonl import jsonl_documents
    from .texts import text_documents

    stream = sys.stdin.buffer
    file = TextFile(STANDARD_INPUT, lambda: stream, opens_once=True, max_document_bytes=options.max_document_bytes)
    is_text = options.jsonl_field is None
    documents = text_documents(file, options) if is_text else jsonl_documents(stream, options)
    return Source(STANDARD_INPUT, lambda _: documents, read_once=STANDARD_INPUT)

"""A file or url → its documents, by its suffix: text, jsonl, parquet, arrow, chunk counts.

One source is open at a time, and one batch of it in memory. Nothing is split or counted here.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

from .._core import InvalidUtf8, PatternError
from .files import CODECS, kind, open_stream, size_of
from .tables import (
    BATCH_CHARACTERS,
    BATCH_DOCUMENTS,
    MAX_DOCUMENT_BYTES,
    TABLES,
    CountsFile,
    ReadOptions,
    check,
    reading,
    record_batches,
    too_large,
)

if TYPE_CHECKING:
    import pyarrow as pa

KNOWN = (".txt", ".md", ".parquet", ".arrow", ".jsonl", ".csv")
SUFFIXES = tuple(known + codec for known in KNOWN for codec in ("", *CODECS))
BLOCK = 1 << 22
"""How much of a text file is read at once."""


@dataclass(frozen=True)
class TextFile:
    """One text file or url: a single document, which `open` gives as a stream of decompressed bytes.

    >>> from io import BytesIO
    >>> file = TextFile("hello.txt", lambda: BytesIO(b"hello"))
    >>> with file.open() as stream:
    ...     stream.read()
    b'hello'
    """

    name: str
    open: Callable[[], BinaryIO]
    once: bool = False
    """Whether it can be opened only once."""
    max_document_bytes: int = MAX_DOCUMENT_BYTES
    """The most bytes that are kept while there is no place to cut the text."""


Counts: TypeAlias = Mapping[bytes, int] | Mapping[str, int]
Documents: TypeAlias = "list[str] | pa.Array[Any] | TextFile | CountsFile | Counts"
"""One item of the stream. An arrow array is a string or large_string one without nulls; it may be a slice."""


class Source:
    """A file, a url, or something in memory, and its documents, which can be had once.

    >>> source = Source("", lambda _: [["one", "two"]])
    >>> list(source)
    [['one', 'two']]
    """

    def __init__(
        self,
        name: str,
        read: Callable[[Source], Iterable[Documents]],
        size: int = 0,
        rows: Callable[[], Iterable[tuple[int, pa.Array[Any]]]] | None = None,
    ) -> None:
        """Take the name of a file, or nothing, and its size in bytes, if that is known.

        `rows` reads a table again, with the row at which each batch begins: to find out where it is invalid.
        """
        self.name, self.size = name, size
        self.at = 0
        """How many of its bytes have been read."""
        self._read, self._rows = read, rows

    def __iter__(self) -> Iterator[Documents]:
        """Go through the documents."""
        yield from self._read(self)
        self.at = self.size

    def moved(self, at: int) -> None:
        """Note how far reading has come."""
        self.at = at

    @contextmanager
    def named(self) -> Iterator[None]:
        """Name the file, and the row of a table, in errors that its documents cause.

        >>> with Source("a.jsonl", lambda _: []).named():
        ...     raise ValueError("too long")
        Traceback (most recent call last):
        ...
        ValueError: a.jsonl: too long
        """
        try:
            yield
        except PatternError:  # which may be of a text before this one
            raise
        except InvalidUtf8 as error:
            raise ValueError(self._located() or self._with_name(error)) from None
        except (ValueError, OSError) as error:
            if self._with_name(error) == str(error):
                raise
            raise ValueError(self._with_name(error)) from None

    def _with_name(self, error: Exception) -> str:
        return str(error) if not self.name or self.name in str(error) else f"{self.name}: {error}"

    def _located(self) -> str | None:
        """Look for the first row that is invalid UTF-8. The file is read again, only then."""
        from .arrow_strings import invalid_at

        for first, piece in self._rows() if self._rows else []:
            problem = invalid_at(piece, first)
            if problem:
                return f"{self.name}, {problem}" if self.name else problem
        return None


def in_blocks(file: TextFile, errors: str, use: Callable[[bytes, int, bool], int], skip: int = 0) -> Iterator[int]:
    """Give a text to `use` block by block, but for its first `skip` bytes, and yield how far it has come.

    `use` gets bytes, the place where they begin, and whether they are the last, and says how many of them it has used:
    the others come again, with the next block.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace") if errors == "replace" else None
    done, rest, last, limit = 0, b"", False, file.max_document_bytes
    with file.open() as stream:
        while not last:
            # As much again as could not be used yet: a file with no place to cut is still read in linear time.
            block = stream.read(max(BLOCK, min(len(rest), limit + 1 - len(rest))))
            last = not block
            rest += decoder.decode(block, last).encode() if decoder else block
            skipping = done < skip
            try:
                used = min(len(rest), skip - done) if skipping else use(rest, done, last)
            except PatternError:  # which may be of a text before this one
                raise
            except ValueError as error:
                raise ValueError(f"{file.name}: {error}") from None
            done, rest = done + used, rest[used:]
            if len(rest) > limit:
                problem = too_large(f"there is no place to cut the {len(rest)} bytes after byte {done}", limit)
                raise ValueError(f"{file.name}: {problem}; text is never cut for a custom pattern")
            if not skipping:
                yield done


def source(place: Path | str, options: ReadOptions) -> Source:
    """Give a file, or a url if `place` is a string, to be read as its suffix says; an unknown suffix is text."""
    suffix, codec = kind(place)
    reader: Callable[[Source], Iterable[Documents]]
    rows = None
    if suffix == ".jsonl":
        reader = partial(_json, place, options)
    elif suffix in TABLES:
        reader = partial(_tables, place, options)
        rows = partial(_rows, place, options)
    elif suffix == ".csv":
        if isinstance(place, str):
            raise ValueError(f"{place}: chunk counts are not read from a url; download them first")
        path = place

        def reader(_: Source) -> Iterable[Documents]:
            return [CountsFile(path)]
    else:

        def reader(source: Source) -> Iterable[Documents]:
            stream = partial(open_stream, place, codec, source.moved)
            return [TextFile(str(place), stream, max_document_bytes=options.max_document_bytes)]

    return Source(str(place), reader, size_of(place), rows)


def in_memory(documents: Iterable[Documents]) -> Source:
    """Give documents that are in no file."""
    return Source("", lambda _: documents)


def in_arrays(columns: Callable[[], Iterable[pa.Array[Any] | pa.ChunkedArray[Any]]], errors: str) -> Source:
    """Give documents that are in arrow arrays, which `columns` can give more than once."""
    from .arrow_strings import arrays, pieces  # which imports numpy

    def rows() -> Iterator[tuple[int, pa.Array[Any]]]:
        first = 0
        for column in columns():
            yield from pieces(column, first_row=first)
            first += len(column)

    return Source("", lambda _: (some for column in columns() for some in arrays(column, errors=errors)), 0, rows)


def standard_input(stream: BinaryIO, jsonl_field: str | None, options: ReadOptions) -> Source:
    """Give a text, or jsonl if there is a field, that comes through a pipe."""
    name = "standard input"
    if jsonl_field is None:
        file = TextFile(name, lambda: stream, once=True, max_document_bytes=options.max_document_bytes)
        return Source(name, lambda _: [file])
    lines = json_lines(stream, name, options)
    return Source(name, lambda _: batches(fields(lines, jsonl_field, f"{name}, line")))


def _json(place: Path | str, options: ReadOptions, source: Source) -> Iterator[list[str]]:
    with open_stream(place, kind(place)[1], source.moved) as stream:
        yield from batches(fields(json_lines(stream, place, options), options.column, f"{place}, line"))


def json_lines(stream: BinaryIO, place: Path | str, options: ReadOptions) -> Iterator[tuple[int, Any]]:
    """Yield the number and the value of each line that is not blank; a byte order mark is none of the first."""
    offset, limit = 0, options.max_document_bytes
    for number, line in enumerate(iter(lambda: stream.readline(limit + 1), b""), 1):
        if len(line) > limit and line[-1:] != b"\n":
            problem = too_large(f"the line at byte {offset} is too long", limit)
            raise ValueError(f"{place}, line {number}: {problem}")
        try:
            if not line.isspace():
                yield number, json.loads(line.decode("utf-8" if offset else "utf-8-sig", options.errors))
        except UnicodeDecodeError as error:
            problem = f"invalid UTF-8 at byte {offset + error.start} of the file"
            problem += '; errors="replace" puts U+FFFD there and continues'
            raise ValueError(f"{place}, line {number}: {problem}") from error
        except (ValueError, RecursionError) as error:
            problem = f"not valid JSON ({error}); each line must be one object"
            raise ValueError(f"{place}, line {number}: {problem}") from error
        offset += len(line)


def fields(records: Iterable[tuple[int, Any]], column: str, where: str) -> Iterator[str]:
    """Pick the text of each numbered record; a null is no document."""
    for number, record in records:
        if not isinstance(record, dict):
            raise ValueError(f"{where} {number}: not an object with the field {column!r}")
        text = record.get(column)
        if isinstance(text, str):
            yield text
        elif text is not None or column not in record:
            types = {name: type(value).__name__ for name, value in record.items()}
            check(types, column, f"{where} {number}")


def batches(texts: Iterable[object]) -> Iterator[list[str]]:
    """Gather single documents into batches of bounded size; those before an error come before it."""
    batch: list[str] = []
    size = 0
    failure: Exception | None = None
    try:
        for index, text in enumerate(texts):
            if not isinstance(text, str):
                raise TypeError(f"document {index} is of type {type(text).__name__}, not str")
            batch.append(text)
            size += len(text)
            if size >= BATCH_CHARACTERS or len(batch) >= BATCH_DOCUMENTS:
                yield batch
                batch, size = [], 0
    except Exception as error:
        failure = error
    if batch:
        yield batch
    if failure:
        raise failure


def _tables(place: Path | str, options: ReadOptions, source: Source) -> Iterator[Documents]:
    from .arrow_strings import arrays

    limit, row = options.max_document_bytes, 0
    with reading(place):
        for batch in record_batches(place, [options.column], source, limit):
            if isinstance(batch, CountsFile):
                yield batch
                return
            column = batch.column(options.column)
            yield from arrays(column, errors=options.errors, max_document_bytes=limit, first_row=row)
            row += len(column)


def _rows(place: Path | str, options: ReadOptions) -> Iterator[tuple[int, pa.Array[Any]]]:
    from .arrow_strings import pieces

    row = 0
    with reading(place):
        for batch in record_batches(place, [options.column], Source("", lambda _: []), options.max_document_bytes):
            if not isinstance(batch, CountsFile):
                yield from pieces(batch.column(options.column), first_row=row)
                row += len(batch)

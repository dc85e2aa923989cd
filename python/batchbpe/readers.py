"""A file or url → its documents, by its suffix: text, jsonl, parquet, arrow, chunk counts.

One source is open at a time, and one batch of it in memory. Nothing is split or counted here.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

from ._core import PatternError
from .files import CODECS, kind, open_stream, size_of
from .tables import BATCH_CHARACTERS, BATCH_DOCUMENTS, TABLES, CountsFile, arrays, check, record_batches

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


Counts: TypeAlias = Mapping[bytes, int] | Mapping[str, int]
Documents: TypeAlias = "list[str] | pa.Array[Any] | TextFile | CountsFile | Counts"
"""One item of the stream. An arrow array is a string or large_string one without nulls; it may be a slice."""


class Source:
    """A file, a url, or something in memory, and its documents, which can be had once.

    >>> source = Source("", lambda _: [["one", "two"]])
    >>> list(source)
    [['one', 'two']]
    """

    def __init__(self, name: str, read: Callable[[Source], Iterable[Documents]], size: int = 0) -> None:
        """Take the name of a file, or nothing, and its size in bytes, if that is known."""
        self.name, self.size = name, size
        self.at = 0
        """How many of its bytes have been read."""
        self._read = read

    def __iter__(self) -> Iterator[Documents]:
        """Go through the documents."""
        yield from self._read(self)
        self.at = self.size

    def moved(self, at: int) -> None:
        """Note how far reading has come."""
        self.at = at


def in_blocks(file: TextFile, errors: str, use: Callable[[bytes, int, bool], int], skip: int = 0) -> Iterator[int]:
    """Give a text to `use` block by block, but for its first `skip` bytes, and yield how far it has come.

    `use` gets bytes, the place where they begin, and whether they are the last, and says how many of them it has used:
    the others come again, with the next block.
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace") if errors == "replace" else None
    done, rest, last = 0, b"", False
    with file.open() as stream:
        while not last:
            # As much again as could not be used yet: a file with no place to cut is still read in linear time.
            block = stream.read(max(BLOCK, len(rest)))
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
            if not skipping:
                yield done


def source(place: Path | str, column: str, errors: str = "strict") -> Source:
    """Give a file, or a url if `place` is a string, to be read as its suffix says; an unknown suffix is text."""
    suffix, codec = kind(place)
    reader: Callable[[Source], Iterable[Documents]]
    if suffix == ".jsonl":
        reader = partial(_json, place, column, errors)
    elif suffix in TABLES:
        reader = partial(_tables, place, column)
    elif suffix == ".csv":
        if isinstance(place, str):
            raise ValueError(f"{place}: chunk counts are not read from a url; download them first")
        path = place

        def reader(_: Source) -> Iterable[Documents]:
            return [CountsFile(path)]
    else:

        def reader(source: Source) -> Iterable[Documents]:
            return [TextFile(str(place), partial(open_stream, place, codec, source.moved))]

    return Source(str(place), reader, size_of(place))


def in_memory(documents: Iterable[Documents]) -> Source:
    """Give documents that are in no file."""
    return Source("", lambda _: documents)


def standard_input(stream: BinaryIO, jsonl_field: str | None, errors: str = "strict") -> Source:
    """Give a text, or jsonl if there is a field, that comes through a pipe."""
    if jsonl_field is None:
        return Source("standard input", lambda _: [TextFile("standard input", lambda: stream, once=True)])
    lines = json_lines(stream, "standard input", errors)
    return Source("standard input", lambda _: batches(fields(lines, jsonl_field, "standard input, line")))


def _json(place: Path | str, column: str, errors: str, source: Source) -> Iterator[list[str]]:
    with open_stream(place, kind(place)[1], source.moved) as lines:
        yield from batches(fields(json_lines(lines, place, errors), column, f"{place}, line"))


def json_lines(lines: Iterable[bytes], place: Path | str, errors: str = "strict") -> Iterator[tuple[int, Any]]:
    """Yield the number and the value of each line that is not blank; a byte order mark is none of the first."""
    offset = 0
    for number, line in enumerate(lines, 1):
        try:
            if not line.isspace():
                yield number, json.loads(line.decode("utf-8" if offset else "utf-8-sig", errors))
        except UnicodeDecodeError as error:
            problem = f"invalid UTF-8 at byte {offset + error.start} of the file"
            problem += '; errors="replace" puts U+FFFD there and goes on'
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


def _tables(place: Path | str, column: str, source: Source) -> Iterator[Documents]:
    for batch in record_batches(place, [column], source):
        if isinstance(batch, CountsFile):
            yield batch
        else:
            yield from arrays(batch.column(column))

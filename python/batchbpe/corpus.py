"""Anything → documents: files, urls, strings, arrow arrays and datasets become one lazy stream.

Nothing is split or counted here. All paths are resolved and checked first;
then one source is open at a time, and one batch in memory.

What a string is, alone or in a list or tuple:
- a url, if it begins with http:// or https:// and has no white space;
- a path or a glob, if it is one line shorter than 4096 which ends in a known suffix (.txt .md .parquet .jsonl
  .csv, also with .gz or .zst) or has a path separator and no white space; no such file is then an error;
- otherwise a text.

A `Path` is always a path, even `Path("corpus")`. The strings of any iterable but a list or tuple are always
texts, so a text that looks like a path is given as `iter([text])`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from glob import glob, has_magic
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

from .files import CODECS, decompressed, kind, open_stream

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["CountsFile", "Data", "Documents", "TextFile", "documents"]

_KNOWN = (".txt", ".md", ".parquet", ".jsonl", ".csv")
_SUFFIXES = tuple(known + codec for known in _KNOWN for codec in ("", *CODECS))
_URL = ("http://", "https://")
_BATCH_CHARACTERS = 4_000_000
_BATCH_DOCUMENTS = 4096


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


@dataclass(frozen=True)
class CountsFile:
    """A file of saved chunk counts: a csv, or a parquet file with the columns chunk and count.

    >>> CountsFile(Path("counts.csv")).path.name
    'counts.csv'
    """

    path: Path


_Counts: TypeAlias = Mapping[bytes, int] | Mapping[str, int]

Data: TypeAlias = (
    "str | os.PathLike[str] | _Counts | pa.Array[Any] | pa.ChunkedArray[Any] | pa.Table | pa.RecordBatch"
    " | Iterable[Any]"
)
"""What can be trained on: a text, path, glob, directory or url; chunk counts; arrow strings, or a table with
them; a `datasets.Dataset` or `IterableDataset`; an iterable of strings; a list or tuple of any of these."""

Documents: TypeAlias = "list[str] | pa.Array[Any] | TextFile | CountsFile | _Counts"
"""One item of the stream. An arrow array is a string or large_string one without nulls; it may be a slice."""


def documents(data: Data, *, text_column: str = "text") -> Iterator[Documents]:
    """Turn what the user gave into a stream of documents.

    `text_column` is the column of a table or dataset, or the field of a jsonl file, that holds the text.
    A missing file is an error at once; what is wrong inside a file, when the stream reaches it.

    >>> list(documents("a text to train on"))
    [['a text to train on']]
    >>> list(documents(["one", "two", {b"three": 3}]))
    [['one', 'two'], {b'three': 3}]
    >>> list(documents(word for word in ["and/or", "notes.txt"]))
    [['and/or', 'notes.txt']]
    >>> documents("notes.txt")
    Traceback (most recent call last):
    FileNotFoundError: no such file: 'notes.txt'; if it is a text and no path, pass iter([text])
    """
    return chain.from_iterable(list(_sources(data, text_column, "data")))


def _sources(data: Any, column: str, where: str) -> Iterator[Iterable[Documents]]:
    """Yield a lazy iterable of documents for each thing in `data`, which `where` names in errors."""
    # Classes by name: pyarrow and datasets must not be imported to learn that data is of neither.
    kinds = {f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in type(data).__mro__}
    if isinstance(data, str):
        if _is_text(data):
            yield _batches([data])
        elif data.startswith(_URL):
            yield _read(data, column)
        else:
            yield from _paths(data, column, "; if it is a text and no path, pass iter([text])")
    elif isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"{where} is bytes: decode it to a str, or give the path of a file as a Path")
    elif isinstance(data, os.PathLike):
        yield from _paths(os.fspath(data), column, "")
    elif isinstance(data, list | tuple):
        texts: list[str] = []
        for index, item in enumerate(data):
            if isinstance(item, str) and _is_text(item):
                texts.append(item)
            else:
                yield _batches(texts)
                texts = []
                yield from _sources(item, column, f"{where}[{index}]")
        yield _batches(texts)
    elif kinds & {"pyarrow.Array", "pyarrow.ChunkedArray"}:
        _check({column: data.type}, column, where)
        yield _arrays(data)
    elif kinds & {"pyarrow.Table", "pyarrow.RecordBatch"}:
        _check(_types(data.schema, where), column, where)
        yield _arrays(data.column(column))
    elif "datasets.Dataset" in kinds:
        _check(_types(data.features.arrow_schema, where), column, where)
        tables = data.with_format("arrow", columns=[column]).iter(batch_size=_BATCH_DOCUMENTS)
        yield chain.from_iterable(_arrays(table.column(column)) for table in tables)
    elif "datasets.IterableDataset" in kinds:
        yield _batches(_fields(enumerate(data), column, f"{where}, row"))
    elif kinds & {"datasets.DatasetDict", "datasets.IterableDatasetDict"}:
        raise TypeError(f"{where} is a {type(data).__name__}: choose one of its splits: {', '.join(data)}")
    elif isinstance(data, Mapping):
        yield [data]
    elif type(data).__name__ == "DataFrame":
        raise TypeError(f"{where} is a DataFrame, which iterates over its column names: pass one column")
    elif isinstance(data, Iterable):
        yield _batches(data)
    else:
        raise TypeError(f"{where} is of type {type(data).__name__}, which is no string, path or iterable")


def _is_text(text: str) -> bool:
    """Judge by the letters alone, cheapest first: a million documents must not cost a million stats."""
    if len(text) >= 4096 or "\n" in text or "\r" in text or "\0" in text:
        return True
    separated = ("/" in text or os.sep in text) and text.split(None, 1) == [text]
    if text.startswith(_URL):
        return not separated
    if not separated and not text[-12:].lower().endswith(_SUFFIXES):
        return True
    # Chinese and Japanese text has no spaces; but no file system has names of more than 255 bytes.
    return any(len(name.encode(errors="replace")) > 255 for name in text.split("/"))


def _paths(text: str, column: str, hint: str) -> Iterator[Iterable[Documents]]:
    """Yield a source for each file at a path, in a directory, or matched by a glob."""
    # Not Path's: its expanduser fails on an unknown user, its glob matches hidden files.
    text = os.path.expanduser(text)  # noqa: PTH111
    path = Path(text)
    if path.is_dir():
        problem = f"no file with a suffix of {' '.join(_KNOWN)} in the directory"
        found = [file for file in path.rglob("*") if kind(file)[0] in _KNOWN and file.is_file()]
        found = [file for file in found if not any(name[0] == "." for name in file.relative_to(path).parts)]
    elif path.exists():
        problem, found = "", [path]
    elif has_magic(text):
        problem = "no file matches the pattern"
        found = [file for file in map(Path, glob(text, recursive=True)) if file.is_file()]  # noqa: PTH207
    else:
        problem, found = "no such file", []
    if not found:
        raise FileNotFoundError(f"{problem}: {text!r}{hint}")
    for file in sorted(found):
        yield _read(file, column)


def _read(place: Path | str, column: str) -> Iterable[Documents]:
    """Read a file, or a url if `place` is a string, as its suffix says; an unknown suffix is text."""
    suffix, codec = kind(place)
    if suffix == ".jsonl":
        return _batches(_fields(_json_lines(place), column, f"{place}, line"))
    if suffix not in (".csv", ".parquet"):
        return [TextFile(str(place), partial(open_stream, place, codec))]
    if isinstance(place, str):
        raise ValueError(f"{place}: only text and jsonl are read from a url; download it first")
    return [CountsFile(place)] if suffix == ".csv" else _parquet(place, column)


def _json_lines(place: Path | str) -> Iterator[tuple[int, Any]]:
    """Yield the number and the value of each line that is not blank."""
    offset = 0
    with open_stream(place, kind(place)[1]) as lines:
        for number, line in enumerate(lines, 1):
            try:
                if not line.isspace():
                    yield number, json.loads(line.decode())
            except UnicodeDecodeError as error:
                problem = f"invalid UTF-8 at byte {offset + error.start} of the file"
                raise ValueError(f"{place}, line {number}: {problem}") from error
            except (ValueError, RecursionError) as error:
                problem = f"not valid JSON ({error}); each line must be one object"
                raise ValueError(f"{place}, line {number}: {problem}") from error
            offset += len(line)


def _fields(records: Iterable[tuple[int, Any]], column: str, where: str) -> Iterator[str]:
    """Pick the text of each numbered record; a null is no document."""
    for number, record in records:
        if not isinstance(record, dict):
            raise ValueError(f"{where} {number}: not an object with the field {column!r}")
        text = record.get(column)
        if isinstance(text, str):
            yield text
        elif text is not None or column not in record:
            types = {name: type(value).__name__ for name, value in record.items()}
            _check(types, column, f"{where} {number}")


def _batches(texts: Iterable[object]) -> Iterator[list[str]]:
    """Gather single documents into batches of bounded size."""
    batch: list[str] = []
    size = 0
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"document {index} is of type {type(text).__name__}, not str")
        batch.append(text)
        size += len(text)
        if size >= _BATCH_CHARACTERS or len(batch) >= _BATCH_DOCUMENTS:
            yield batch
            batch, size = [], 0
    if size:
        yield batch


def _parquet(path: Path, column: str) -> Iterator[Documents]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        # By default all row groups are fetched ahead, a whole file in memory.
        with (
            decompressed(path, kind(path)[1]) as plain,
            pq.ParquetFile(plain, pre_buffer=False, buffer_size=1 << 20) as file,
        ):
            schema = file.schema_arrow
            types = _types(schema, str(path))
            counts = re.fullmatch("chunk (large_)?binary count u?int64", " ".join(chain(*types.items())))
            if counts or b"batchbpe" in (schema.metadata or {}):
                yield CountsFile(path)
                return
            _check(types, column, str(path))
            size = sum(file.metadata.row_group(i).total_byte_size for i in range(file.num_row_groups))
            rows = min(_BATCH_CHARACTERS * file.metadata.num_rows // (size or 1), _BATCH_DOCUMENTS) or 1
            for batch in file.iter_batches(rows, columns=[column]):
                yield from _arrays(batch.column(column))
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{path}: cannot be read as parquet: {error}") from error


def _arrays(array: pa.Array[Any] | pa.ChunkedArray[Any]) -> Iterator[pa.Array[Any]]:
    """Yield the array's chunks without nulls; other encodings of strings are cast, piece by piece."""
    import pyarrow as pa

    plain = str(array.type) in ("string", "large_string")
    for chunk in array.chunks if isinstance(array, pa.ChunkedArray) else [array]:
        step = len(chunk) if plain else _BATCH_DOCUMENTS
        for start in range(0, len(chunk), step or 1):
            piece = chunk.slice(start, step)
            piece = (piece if plain else piece.cast(pa.large_string())).drop_null()
            if len(piece):
                yield piece


def _types(schema: pa.Schema, where: str) -> dict[str, str]:
    """Give the type of each column by its name, which must be one column's alone."""
    types = {field.name: str(field.type) for field in schema}
    if len(types) < len(schema):
        twice = sorted({name for name in schema.names if schema.names.count(name) > 1})
        raise ValueError(f"{where}: more than one column has the name {twice[0]!r}; rename all but one")
    return types


def _check(types: Mapping[str, Any], column: str, where: str) -> None:
    """Raise unless `column` is there and its type, known by its name, is a string's."""
    if column not in types:
        raise ValueError(f"{where}: no {column!r} among {sorted(types)}; choose by text_column")
    if not re.match(r"(dictionary<values=)?(large_)?string(_view)?\b", str(types[column])):
        raise ValueError(f"{where}: {column!r} is of type {types[column]}, not string; choose by text_column")

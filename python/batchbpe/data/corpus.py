"""Anything → documents: files, urls, strings, arrow arrays and datasets become one lazy stream.

Nothing is read here. All paths are resolved and checked first; then `readers` reads one after the other.

What a string is, alone or in a list or tuple:
- a url, if it begins with http://, https://, or another scheme that fsspec knows (s3://, hf://, …), and has no
  white space;
- a path or a glob, if it is one line shorter than 4096 which ends in a known suffix (.txt .md .parquet .arrow
  .jsonl .csv, also with .gz or .zst) or has a path separator and no white space; no such file is then an error;
- otherwise a text.

A `Path` is always a path, even `Path("corpus")`. The strings of any iterable but a list or tuple are always
texts, so a text that looks like a path is given as `iter([text])`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from glob import glob, has_magic
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

from .files import URL, kind, urls
from .readers import KNOWN, SUFFIXES, Counts, Documents, Source, TextFile, batches, fields, in_arrays, in_memory, source
from .tables import BATCH_DOCUMENTS, MAX_DOCUMENT_BYTES, CountsFile, ReadOptions, check, types_of

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["CountsFile", "Data", "Documents", "TextFile", "documents", "sources"]


Data: TypeAlias = (
    "str | os.PathLike[str] | Counts | pa.Array[Any] | pa.ChunkedArray[Any] | pa.Table | pa.RecordBatch | Iterable[Any]"
)
"""What can be trained on: a text, path, glob, directory or url; chunk counts; arrow strings, or a table with
them; a `datasets.Dataset` or `IterableDataset`; an iterable of strings; a list or tuple of any of these."""


def documents(
    data: Data, *, text_column: str = "text", errors: str = "strict", max_document_bytes: int = MAX_DOCUMENT_BYTES
) -> Iterator[Documents]:
    """Turn what the user gave into a stream of documents.

    `text_column` is the column of a table or dataset, or the field of a jsonl file, that holds the text.
    `errors` is "strict", or "replace" to replace invalid UTF-8 in tables and jsonl files with U+FFFD. A row of a table,
    a line of a jsonl file, or a stretch of a text file that cannot be cut may have at most `max_document_bytes`.
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
    return chain.from_iterable(
        sources(data, text_column=text_column, errors=errors, max_document_bytes=max_document_bytes)
    )


def sources(
    data: Data, *, text_column: str = "text", errors: str = "strict", max_document_bytes: int = MAX_DOCUMENT_BYTES
) -> list[Source]:
    """Turn what the user gave into sources of documents, each a file or something in memory.

    >>> [source.name for source in sources(["one text", Path(__file__)])][1].endswith("corpus.py")
    True
    """
    return list(_sources(data, ReadOptions(text_column, errors, max_document_bytes), "data"))


def _sources(data: Any, options: ReadOptions, where: str) -> Iterator[Source]:
    """Yield a source for each thing in `data`, which `where` names in errors."""
    column = options.column
    # Classes by name: pyarrow and datasets must not be imported to learn that data is of neither.
    kinds = {f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in type(data).__mro__}
    if isinstance(data, str):
        if _is_text(data):
            yield in_memory(batches([data]))
        else:
            yield from paths(data, options, "; if it is a text and no path, pass iter([text])")
    elif isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"{where} is bytes: decode it to a str, or give the path of a file as a Path")
    elif isinstance(data, os.PathLike):
        yield from paths(os.fspath(data), options)
    elif isinstance(data, list | tuple):
        texts: list[str] = []
        for index, item in enumerate(data):
            if isinstance(item, str) and _is_text(item):
                texts.append(item)
            else:
                yield in_memory(batches(texts))
                texts = []
                yield from _sources(item, options, f"{where}[{index}]")
        yield in_memory(batches(texts))
    elif kinds & {"pyarrow.Array", "pyarrow.ChunkedArray"}:
        check({column: data.type}, column, where)
        yield in_arrays(lambda: [data], options.errors)
    elif kinds & {"pyarrow.Table", "pyarrow.RecordBatch"}:
        check(types_of(data.schema, where), column, where)
        yield in_arrays(lambda: [data.column(column)], options.errors)
    elif "datasets.Dataset" in kinds:
        check(types_of(data.features.arrow_schema, where), column, where)
        rows = data.with_format("arrow", columns=[column])
        tables = partial(rows.iter, batch_size=BATCH_DOCUMENTS)
        yield in_arrays(lambda: (table.column(column) for table in tables()), options.errors)
    elif "datasets.IterableDataset" in kinds:
        yield in_memory(batches(fields(enumerate(data), column, f"{where}, row")))
    elif kinds & {"datasets.DatasetDict", "datasets.IterableDatasetDict"}:
        raise TypeError(f"{where} is a {type(data).__name__}: choose one of its splits: {', '.join(data)}")
    elif isinstance(data, Mapping):
        yield in_memory([data])
    elif type(data).__name__ == "DataFrame":
        raise TypeError(f"{where} is a DataFrame, which iterates over its column names: pass one column")
    elif isinstance(data, Iterable):
        yield in_memory(batches(data))
    else:
        raise TypeError(f"{where} is of type {type(data).__name__}, which is no string, path or iterable")


def _is_text(text: str) -> bool:
    """Judge by the letters alone, cheapest first: a million documents must not cost a million stats."""
    if len(text) >= 4096 or "\n" in text or "\r" in text or "\0" in text:
        return True
    separated = ("/" in text or os.sep in text) and text.split(None, 1) == [text]
    if re.match(URL, text):
        return not separated
    if not separated and not text[-12:].lower().endswith(SUFFIXES):
        return True
    # Chinese and Japanese text has no spaces; but no file system has names of more than 255 bytes.
    return any(len(name.encode(errors="replace")) > 255 for name in text.split("/"))


def paths(text: str, options: ReadOptions, hint: str = "", *, jsonl_field: str | None = None) -> Iterator[Source]:
    """Yield a source for each file at a path or url, in a directory, or matched by a glob."""
    found: list[Path | str]
    if text.startswith("file://"):
        from urllib.request import url2pathname  # which imports http

        text = url2pathname(urlsplit(text).path)
    if re.match(URL, text):
        found, problem = [*urls(text)], "no file matches the pattern"
    else:
        # Not Path's: its expanduser fails on an unknown user, its glob matches hidden files.
        text = os.path.expanduser(text)  # noqa: PTH111
        found, problem = _files(text)
    if not found:
        raise FileNotFoundError(f"{problem}: {text!r}{hint}")
    for place in sorted(found, key=str):
        is_field = jsonl_field is not None and kind(place)[0] == ".jsonl"
        yield source(place, replace(options, column=jsonl_field or "") if is_field else options)


def _files(text: str) -> tuple[list[Path | str], str]:
    """Find files, and say what it means if there are none."""
    path = Path(text)
    if path.is_dir():
        files = [file for file in path.rglob("*") if kind(file)[0] in KNOWN and file.is_file()]
        files = [file for file in files if not any(name[0] == "." for name in file.relative_to(path).parts)]
        return [*files], f"no file with a suffix of {' '.join(KNOWN)} in the directory"
    if path.exists():
        return [path], ""
    if has_magic(text):
        files = [file for file in map(Path, glob(text, recursive=True)) if file.is_file()]  # noqa: PTH207
        return [*files], "no file matches the pattern"
    return [], "no such file"

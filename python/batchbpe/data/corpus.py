"""Anything → sources of documents: files, URLs, strings, arrow data, datasets, chunk counts.

Nothing is read here. All paths are resolved and checked first, so that a missing file raises an error at once; the
readers then open one file after the other.

How a single string is understood:
- as a URL if it starts with http://, https:// or another scheme that fsspec knows (s3://, hf://, …) and contains no
  whitespace;
- as a path or glob if a file or folder of that name exists, if it ends in a known suffix (.txt .md .parquet .arrow
  .jsonl .csv, also with .gz or .zst), if it contains a path separator and no whitespace, or if it is a single word that
  could be the name of a file (`could_be_name`); a missing file is an error;
- otherwise as a text.

How a list or tuple of strings is understood:
- as files if every string in it is a URL or path with a known suffix;
- otherwise as texts, with a warning if one of them looks like a file.

A `Path` is always a path. The strings in any other iterable are always texts. Functions that take data also have the
keywords `texts=` and `files=`, which make the choice explicit.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from glob import glob, has_magic
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

from ..errors import ArgumentError, ArgumentTypeError, DataError, Setting, listed, opening, short, warn
from . import limits
from .documents import Counts, Documents
from .files import URL, kind, urls
from .jsonl import text_fields
from .options import ReadOptions
from .readers import KNOWN, SUFFIXES, source
from .source import Source, batched, flattened, in_arrays, in_memory
from .tables import check_text_column, is_counts_folder, is_string, types_of

if TYPE_CHECKING:
    import pyarrow as pa

Data: TypeAlias = (
    "str | os.PathLike[str] | Mapping[bytes, int] | Mapping[str, int] | pa.Array[Any] | pa.ChunkedArray[Any] "
    "| pa.Table | pa.RecordBatch | Source | Iterable[Any]"
)
"""Data to count or train on: a text, path, glob, folder or URL; chunk counts; arrow strings, or anything that
exports arrow data (polars, pandas, duckdb, …); a `datasets.Dataset` or `IterableDataset`; an iterable of strings or of
lists of strings; or a list or tuple of any of these."""
PathLike: TypeAlias = "str | os.PathLike[str]"


_EXPECTED_FILES = "must be paths, globs, folders or URLs"


@dataclass(frozen=True)
class _Chosen:
    """The value of `texts=` or `files=`."""

    texts: Iterable[str] | None = None
    files: Sequence[PathLike] = ()


def choose(data: Any, texts: str | Iterable[str] | None, files: PathLike | Iterable[PathLike] | None) -> Data:
    """Return whichever of `data`, `texts` and `files` was passed; exactly one must be.

    >>> [list(source) for source in sources(choose(None, ["notes.txt"], None))]
    [[Texts(strings=['notes.txt'])]]
    """
    passed = [name for name, value in {"data": data, "texts": texts, "files": files}.items() if value is not None]
    if len(passed) != 1:
        raise TypeError(f"pass exactly one of data, texts and files; got {' and '.join(passed) or 'none'}")
    if texts is not None:
        is_arrow = hasattr(texts, "__arrow_c_stream__") or hasattr(texts, "__arrow_c_array__")
        if is_arrow or type(texts).__name__ == "DataFrame" or isinstance(texts, Mapping):
            raise ArgumentTypeError("texts", type(texts).__name__, "must be strings", remedy=("use ", Setting("data")))
        if not isinstance(texts, Iterable):
            raise ArgumentTypeError("texts", texts, "must be strings")
        return _Chosen(texts=[texts] if isinstance(texts, str) else texts)  # type: ignore[return-value]
    if files is None:
        return data  # type: ignore[no-any-return]
    if isinstance(files, Mapping) or not isinstance(files, str | os.PathLike | Iterable):
        raise ArgumentTypeError("files", files, _EXPECTED_FILES)
    return _Chosen(files=[files] if isinstance(files, str | os.PathLike) else [*files])  # type: ignore[return-value]


def documents(data: Data, **options: Any) -> Iterator[Documents]:
    """Read the documents of `data`; the options are those of `sources`.

    >>> list(documents("a text to train on"))
    [Texts(strings=['a text to train on'])]
    >>> list(documents(["one", "two", {b"three": 3}]))
    [Texts(strings=['one', 'two']), Counts(source={b'three': 3})]
    """
    return chain.from_iterable(sources(data, **options))


def sources(
    data: Data,
    *,
    text_column: str = "text",
    errors: str = "strict",
    max_document_bytes: int = limits.MAX_DOCUMENT_BYTES,
) -> list[Source]:
    """Turn what a user passed into sources, each a file or something in memory.

    Parameters
    ----------
    data: see `Data`.
    text_column: column of a table or dataset, or field of a jsonl file, that holds the text.
    errors: "strict", or "replace" to replace invalid UTF-8 with U+FFFD.
    max_document_bytes: largest row of a table, line of a jsonl file, or part of a text file that cannot be cut.

    >>> sources("notes.txt")
    Traceback (most recent call last):
    ...
    FileNotFoundError: file not found: notes.txt; if this is text, pass it as texts=

    """
    return list(_sources(data, ReadOptions(text_column, errors, max_document_bytes), "data"))


def counts_folder(data: Any) -> Path | None:
    """Return the folder if the only thing in `data` is a folder of chunk counts that Spark has written.

    >>> counts_folder("a text")
    """
    if isinstance(data, _Chosen):
        data = data.files
    if isinstance(data, list | tuple) and len(data) == 1 and not isinstance(data[0], str):  # which may be a text
        data = data[0]
    place = data.name if isinstance(data, Source) else data
    if not isinstance(place, str | os.PathLike) or not _exists(os.fspath(place)):
        return None
    return Path(place) if is_counts_folder(Path(place)) else None


def read_once(data: Any) -> str:
    """Return what kind of data it is if it can be read only once, otherwise "". Items of lists are not checked.

    >>> read_once(iter(["to be"])), read_once("to be")
    ('a list_iterator', '')
    """
    if isinstance(data, _Chosen):
        data = data.texts
    if isinstance(data, Source):
        return "" if data.is_rereadable else data.name or "data in memory"
    return f"a {type(data).__name__}" if isinstance(data, Iterator) else ""


def _sources(data: Any, options: ReadOptions, where: str) -> Iterator[Source]:
    """Yield the sources in `data`, which `where` names in errors."""
    # Classes are compared by name, so that pyarrow and datasets are not imported just to rule them out.
    kinds = {f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in type(data).__mro__}
    if isinstance(data, Source):
        yield data
    elif isinstance(data, _Chosen):
        yield from _chosen(data, options)
    elif isinstance(data, str):
        if looks_like_path(data) or could_be_name(data) or _exists(data):
            yield from paths(data, options, "; if this is text, pass it as texts=")
        else:
            yield in_memory(batched([data]))
    elif isinstance(data, bytes | bytearray | memoryview):
        raise ArgumentTypeError(where, bytes(data[:50]), "must not be bytes", remedy="decode them, or pass a Path")
    elif isinstance(data, os.PathLike):
        yield from paths(os.fspath(data), options)
    elif isinstance(data, list | tuple):
        yield from _list(data, options, where)
    elif "datasets.Dataset" in kinds:
        check_text_column(types_of(data.features.arrow_schema, where), options.text_column, where)
        rows = data.with_format("arrow", columns=[options.text_column])
        tables = partial(rows.iter, batch_size=limits.BATCH_DOCUMENTS)
        yield in_arrays(lambda: (table.column(options.text_column) for table in tables()), options.errors)
    elif "datasets.IterableDataset" in kinds:
        yield in_memory(batched(text_fields(enumerate(data), options.text_column, f"{where}, row")))
    elif kinds & {"datasets.DatasetDict", "datasets.IterableDatasetDict"}:
        reason = f"must be one split of the dataset ({', '.join(data)})"
        raise ArgumentTypeError(where, type(data).__name__, reason)
    elif isinstance(data, Mapping):
        yield in_memory([Counts(data)])
    elif hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        yield _arrow(data, options, where)
    elif type(data).__name__ == "DataFrame":
        raise ArgumentTypeError(
            where, type(data).__name__, "must export arrow data", remedy="pass one column, or a newer data frame"
        )
    elif isinstance(data, Iterable):
        yield in_memory(batched(flattened(data)))
    else:
        raise ArgumentTypeError(where, data, "must be text, a path, counts, a table, or an iterable of strings")


def _chosen(chosen: _Chosen, options: ReadOptions) -> Iterator[Source]:
    if chosen.texts is not None:
        yield in_memory(batched(flattened(chosen.texts)))
    for file in chosen.files:
        if not isinstance(file, str | os.PathLike):
            raise ArgumentTypeError("files", file, _EXPECTED_FILES)
        yield from paths(os.fspath(file), options)


def _list(data: list[Any] | tuple[Any, ...], options: ReadOptions, where: str) -> Iterator[Source]:
    strings = [item for item in data if isinstance(item, str)]
    are_files = bool(strings) and all(map(has_known_suffix, strings))
    doubtful = None if are_files else next(filter(has_known_suffix, strings), None)
    if doubtful is not None:
        warn(
            f"{short(doubtful)} in a list looks like a file, but is used as a text like the other strings; "
            "pass files= or texts= to be explicit"
        )
    texts: list[str] = []
    for index, item in enumerate(data):
        if isinstance(item, str) and not are_files:
            texts.append(item)
            continue
        if texts:
            yield in_memory(batched(texts))
            texts = []
        if isinstance(item, str):
            yield from paths(item, options, "; if the strings are text, pass them as texts=")
        else:
            yield from _sources(item, options, f"{where}[{index}]")
    if texts:
        yield in_memory(batched(texts))


def _arrow(data: Any, options: ReadOptions, where: str) -> Source:
    """Return a source for an object that exports arrow data through the PyCapsule interface."""
    import pyarrow as pa

    if not isinstance(data, pa.Array | pa.ChunkedArray | pa.Table | pa.RecordBatch):
        try:
            data = _imported(data)
        except (pa.ArrowException, TypeError, ValueError) as error:
            name, is_table = type(data).__name__, hasattr(data, "columns")
            remedy = "pass only the column that holds the text" if is_table else "all values must be strings"
            detail = "" if isinstance(error, pa.ArrowException) else f": {error}"
            raise DataError(f"cannot convert the {name} to arrow data{detail}", where=where, remedy=remedy) from error
    if isinstance(data, pa.Table | pa.RecordBatch):
        check_text_column(types_of(data.schema, where), options.text_column, where)
        data = data.column(options.text_column)
    elif not is_string(data.type):
        raise DataError(f"the array must be of type string, got {data.type}", where=where)
    column = data
    return in_arrays(lambda: [column], options.errors)


def _imported(data: Any) -> Any:
    """Import arrow data without copying: a data frame as a table, a series as an array."""
    import pyarrow as pa

    is_stream = hasattr(data, "__arrow_c_stream__")
    as_table: Any = pa.table if is_stream else pa.record_batch
    as_array: Any = pa.chunked_array if is_stream else pa.array
    try:
        return as_table(data)
    except (pa.ArrowException, TypeError, ValueError):
        return as_array(data)


def has_known_suffix(text: str) -> bool:
    """Return whether a string is a URL or path that ends in a known suffix.

    >>> has_known_suffix("data/*.parquet"), has_known_suffix("/etc/hostname")
    (True, False)
    """
    return looks_like_path(text) and (kind(text) if re.match(URL, text) else kind(Path(text)))[0] in KNOWN


def looks_like_path(text: str) -> bool:
    """Return whether a string looks like a URL, path or glob, without touching the file system.

    >>> looks_like_path("notes.txt"), looks_like_path("and/or"), looks_like_path("a text")
    (True, True, False)
    """
    if len(text) >= 4096 or "\n" in text or "\r" in text or "\0" in text:
        return False
    is_separated = ("/" in text or os.sep in text) and text.split(None, 1) == [text]
    if re.match(URL, text):
        return is_separated
    if not is_separated and not text[-12:].lower().endswith(SUFFIXES):
        return False
    # Chinese and Japanese text has no spaces, but no file system has names of more than 255 bytes.
    return all(len(name.encode(errors="replace")) <= 255 for name in text.split("/"))


def could_be_name(text: str) -> bool:
    """Return whether a string is a single word, or a glob, that could be the name of a file or folder.

    >>> could_be_name("data"), could_be_name("my-corpus*"), could_be_name("data!"), could_be_name("生存")
    (True, True, False, False)
    """
    # Chinese, Japanese and Thai text has no spaces; the scripts before U+0E00 have.
    return 0 < len(text) <= 255 and max(text) < "\u0e00" and re.fullmatch(r"[\w.~+*-]+", text) is not None


def is_word(data: object) -> bool:
    """Return whether data is a string that would be a text if it could not be the name of a missing file.

    >>> is_word("aaabdaaabac"), is_word("notes.txt"), is_word("to be")
    (True, False, False)
    """
    return isinstance(data, str) and could_be_name(data) and not looks_like_path(data) and not _exists(data)


def _exists(text: str) -> bool:
    # Not with Path: its methods fail if the name is too long.
    return 0 < len(text) < 4096 and "\0" not in text and os.path.exists(text)  # noqa: PTH110


def paths(text: str, options: ReadOptions, hint: str = "", *, jsonl_field: str | None = None) -> Iterator[Source]:
    """Yield a source for each file at a path or URL, in a folder, or matching a glob."""
    if not text:  # Path("") is the current folder
        raise ArgumentError("files", text, "must not contain an empty path")
    found: list[Path | str]
    if text.startswith("file://"):
        from urllib.request import url2pathname  # imports http

        text = url2pathname(urlsplit(text).path)
    if re.match(URL, text):
        found, problem = [*urls(text)], "no file matches the pattern"
    else:
        # Not with Path: its expanduser fails for an unknown user, and its glob matches hidden files.
        text = os.path.expanduser(text)  # noqa: PTH111
        with opening(text):
            found, problem = _files(text)
    if not found:
        raise FileNotFoundError(f"{problem}: {text}{'' if Path(text).is_dir() else _similar(text) + hint}")
    for place in sorted(found, key=str):
        is_jsonl = jsonl_field is not None and kind(place)[0] == ".jsonl"
        yield source(place, replace(options, text_column=jsonl_field or "") if is_jsonl else options)


def _similar(text: str) -> str:
    """Return names in the same folder that a misspelled path may mean, for a message."""
    from difflib import get_close_matches

    folder, name = os.path.split(text)
    try:
        with os.scandir(folder or ".") as entries:
            names = [entry.name for entry in islice(entries, 10_000) if entry.name.isprintable()]
    except (OSError, ValueError):
        return ""
    found = [] if has_magic(text) else get_close_matches(name, names, cutoff=0.8)
    return f" (similar: {listed(found)})" if found else ""


def _files(text: str) -> tuple[list[Path | str], str]:
    """Return the files at a path, and what to say if there are none."""
    path = Path(text)
    if path.is_dir():
        return [*_in_folder(path)], f"no {', '.join(KNOWN)} file in the folder"
    if path.exists():
        return [path], ""
    if has_magic(text):
        files = [file for file in map(Path, glob(text, recursive=True)) if file.is_file()]  # noqa: PTH207
        return [*files], "no file matches the pattern"
    return [], "unsupported URL (use https, s3, hf, gs or az)" if "://" in text else "file not found"


def _in_folder(folder: Path) -> Iterator[Path]:
    """Yield the files with a known suffix that are not hidden, folders of counts, and folders that cannot be listed.

    Reading such a folder as a file raises the error, which names it and can be skipped like that of a file.
    """
    unreadable: list[Path] = []
    for parent, folders, names in os.walk(folder, onerror=lambda error: unreadable.append(Path(error.filename))):
        if is_counts_folder(Path(parent)):
            folders.clear()
            yield Path(parent)
            continue
        folders[:] = [name for name in folders if name[0] != "."]
        files = (Path(parent, name) for name in names if name[0] != "." and kind(Path(name))[0] in KNOWN)
        yield from filter(_is_file, files)
    yield from unreadable


def _is_file(path: Path) -> bool:
    """Return whether a path is a file, or may be one that cannot be read."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except PermissionError:
        return True
    except OSError:
        return False

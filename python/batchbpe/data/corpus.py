"""`Corpus`: the arguments `data`, `texts` and `files` of public functions → sources of documents.

All paths are resolved and checked before anything is read, so that a missing file raises an error at once. The readers
then open one file after the other.

How a single string is understood:
- as a URL if it starts with http://, https:// or another scheme that fsspec knows (s3://, hf://, …) and contains no
  whitespace;
- as a path or glob if a file or folder of that name exists, if it ends in a known suffix (`readers.SUFFIXES`), if it
  contains a path separator and no whitespace, or if it is a single word that could be the name of a file
  (`could_be_name`); a missing file is an error;
- otherwise as a text.

How a list or tuple of strings is understood:
- as files if every string in it is a URL or path with a known suffix;
- otherwise as texts, with a warning if one of them looks like a file.

A `Path` is always a path. The strings in any other iterable are always texts. The arguments `texts` and `files` make
the choice explicit. In `files`, "-" is standard input.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import ArgumentError, ArgumentTypeError, DataError, Setting, short, warn
from ..util.lazy import lazy
from .documents import Counts
from .options import Reading, ReadOptions, Sampling, from_keywords
from .paths import could_be_name, exists, files_at, has_known_suffix, looks_like_path
from .readers import source, standard_input
from .readers.jsonl import text_fields
from .readers.tables import array_in_memory, table_in_memory
from .source import Source, batched, flattened, in_memory

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
Files: TypeAlias = "PathLike | Iterable[PathLike]"


@dataclass(frozen=True, eq=False, repr=False)
class Corpus:
    """What to read, how to read it, and which of its documents to use.

    Public functions have a parameter for each part, build this value once, and pass it on.

    >>> [list(source) for source in Corpus(texts=["notes.txt"]).sources]
    [[Texts(strings=['notes.txt'])]]
    >>> Corpus("notes.txt").sources
    Traceback (most recent call last):
    ...
    FileNotFoundError: file not found: notes.txt; if this is text, pass it as texts=
    """

    data: Data | None = None
    texts: str | Iterable[str] | None = None
    files: Files | None = None
    """Exactly one of `data`, `texts` and `files` is given."""
    options: ReadOptions = field(default_factory=ReadOptions)
    sampling: Sampling = field(default_factory=Sampling)

    @classmethod
    def of(cls, data: Data | None, texts: str | Iterable[str] | None, files: Files | None, reading: Reading) -> Corpus:
        """Create a corpus from the arguments of a public function, whose keyword arguments are `reading`."""
        return cls(data, texts, files, *from_keywords(reading))

    def __post_init__(self) -> None:
        """Check that something is given, and only once."""
        given = [name for name in ("data", "texts", "files") if getattr(self, name) is not None]
        if len(given) != 1:
            raise TypeError(f"pass exactly one of data, texts and files; got {' and '.join(given) or 'none'}")

    @property
    def given(self) -> Any:
        """The one of `data`, `texts` and `files` that is given."""
        return next(value for value in (self.data, self.texts, self.files) if value is not None)

    @lazy
    def sources(self) -> list[Source]:
        """The files and other things to read. A missing file is an error."""
        if self.texts is not None:
            return [_texts(self.texts)]
        return [*_files(self.files, self.options)] if self.files is not None else sources(self.data, self.options)

    @property
    def counts_folder(self) -> Path | None:
        """The folder, if all there is to read is a folder of chunk counts that Spark has written."""
        name = self.sources[0].name if len(self.sources) == 1 and self.sources[0].is_counts else ""
        return Path(name) if name and Path(name).is_dir() else None

    @property
    def read_once(self) -> str:
        """What can be read only once, such as "a generator", or "" if everything can be read again."""
        return next((source.read_once for source in self.sources if source.read_once), "")


def sources(data: Any, options: ReadOptions | None = None) -> list[Source]:
    """Return the sources of data, each a file or something in memory."""
    return [*_sources(data, options or ReadOptions(), "data")]


def _texts(texts: Any) -> Source:
    is_arrow = hasattr(texts, "__arrow_c_stream__") or hasattr(texts, "__arrow_c_array__")
    if is_arrow or type(texts).__name__ == "DataFrame" or isinstance(texts, Mapping):
        raise ArgumentTypeError("texts", type(texts).__name__, "must be strings", remedy=("use ", Setting("data")))
    if not isinstance(texts, Iterable):
        raise ArgumentTypeError("texts", texts, "must be strings")
    return _strings([texts] if isinstance(texts, str) else texts)


def _files(files: Any, options: ReadOptions) -> Iterator[Source]:
    expected = "must be paths, globs, folders or URLs"
    if isinstance(files, Mapping) or not isinstance(files, str | os.PathLike | Iterable):
        raise ArgumentTypeError("files", files, expected)
    files = [files] if isinstance(files, str | os.PathLike) else [*files]
    for file in files:
        if not isinstance(file, str | os.PathLike):
            raise ArgumentTypeError("files", file, expected)
    if files.count("-") > 1:
        raise ArgumentError("files", files, "must contain standard input (-) only once")
    found = [[None] if file == "-" else files_at(os.fspath(file)) for file in files]
    locations = [location for each in found for location in each]
    repeated = [str(location) for location, times in Counter(locations).items() if times > 1]
    if repeated:
        warn(f"{min(repeated)} is given more than once and is read each time")
    return (standard_input(options) if each is None else source(each, options) for each in locations)


def _strings(strings: Iterable[object]) -> Source:
    read_once = f"a {type(strings).__name__}" if isinstance(strings, Iterator) else ""
    return in_memory(lambda: batched(flattened(strings)), read_once)


def _sources(data: Any, options: ReadOptions, where: str) -> Iterator[Source]:
    """Yield the sources in `data`, which `where` names in errors."""
    # Classes are compared by name, so that pyarrow and datasets are not imported just to rule them out.
    kinds = {f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in type(data).__mro__}
    if isinstance(data, Source):
        yield data
    elif isinstance(data, str):
        if looks_like_path(data) or could_be_name(data) or exists(data):
            for location in files_at(data, "; if this is text, pass it as texts="):
                yield source(location, options)
        else:
            yield _strings([data])
    elif isinstance(data, bytes | bytearray | memoryview):
        raise ArgumentTypeError(where, bytes(data[:50]), "must not be bytes", remedy="decode them, or pass a Path")
    elif isinstance(data, os.PathLike):
        for location in files_at(os.fspath(data)):
            yield source(location, options)
    elif isinstance(data, list | tuple):
        yield from _list(data, options, where)
    elif "datasets.Dataset" in kinds:

        def read(columns: list[str]) -> Any:
            return data.with_format("arrow", columns=columns).iter(batch_size=options.BATCH_DOCUMENTS)

        yield table_in_memory(data.features.arrow_schema, read, options, where)
    elif "datasets.IterableDataset" in kinds:
        yield in_memory(lambda: batched(text_fields(enumerate(data), options.text_column, f"{where}, row")))
    elif kinds & {"datasets.DatasetDict", "datasets.IterableDatasetDict"}:
        reason = f"must be one split of the dataset ({', '.join(data)})"
        raise ArgumentTypeError(where, type(data).__name__, reason)
    elif isinstance(data, Mapping):
        yield Source("", lambda _: [Counts(data)], is_counts=True)
    elif hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        yield _arrow(data, options, where)
    elif type(data).__name__ == "DataFrame":
        raise ArgumentTypeError(
            where, type(data).__name__, "must export arrow data", remedy="pass one column, or a newer data frame"
        )
    elif isinstance(data, Iterable):
        yield _strings(data)
    else:
        raise ArgumentTypeError(where, data, "must be text, a path, counts, a table, or an iterable of strings")


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
            yield _strings(texts)
            texts = []
        if isinstance(item, str):
            for location in files_at(item, "; if the strings are text, pass them as texts="):
                yield source(location, options)
        else:
            yield from _sources(item, options, f"{where}[{index}]")
    if texts:
        yield _strings(texts)


def _arrow(data: Any, options: ReadOptions, where: str) -> Source:
    """Return a source for an object that exports arrow data through the PyCapsule interface."""
    import pyarrow as pa

    if not isinstance(data, pa.Array | pa.ChunkedArray | pa.Table | pa.RecordBatch):
        try:
            data = _imported(data)
        except (pa.ArrowException, TypeError, ValueError) as error:
            name, is_table = type(data).__name__, hasattr(data, "columns")
            remedy = "pass only the column that contains the text" if is_table else "all values must be strings"
            detail = "" if isinstance(error, pa.ArrowException) else f": {error}"
            raise DataError(f"cannot convert the {name} to arrow data{detail}", where=where, remedy=remedy) from error
    if isinstance(data, pa.Table | pa.RecordBatch):
        table = data
        return table_in_memory(table.schema, lambda columns: [table.select(columns)], options, where)
    return array_in_memory(data, options, where)


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

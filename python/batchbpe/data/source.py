"""`Source`: a file, a URL or something in memory, and the documents in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from .._core import InvalidUtf8, PatternError
from ..errors import ArgumentTypeError, DataError, UserError, os_error
from . import limits
from .documents import Documents, Texts, invalid_utf8
from .options import ReadOptions

if TYPE_CHECKING:
    import pyarrow as pa

Rows: TypeAlias = "Iterable[tuple[int, pa.Array[Any]]]"
"""Arrays of strings, each with the number of its first row."""


class Source:
    """A file, a URL or something in memory. Iterating over it reads its documents, in batches.

    >>> source = Source("", lambda _: [Texts(["one", "two"])])
    >>> [batch.strings for batch in source]
    [['one', 'two']]
    """

    def __init__(
        self,
        name: str,
        read: Callable[[Source], Iterable[Documents]],
        size: int = 0,
        rows: Callable[[], Rows] | None = None,
        is_rereadable: bool = True,
        options: ReadOptions | None = None,
    ) -> None:
        """Create a source.

        Parameters
        ----------
        name: the path or URL, or "" for data in memory.
        read: reads the documents; called with the source, whose `position` it updates.
        size: the size of the file in bytes, or 0 if unknown.
        rows: reads a table once more, to find the row that an error is about.
        is_rereadable: whether the documents can be read more than once.
        options: how the rows of a table or jsonl file are read.

        """
        self.name, self.size, self.is_rereadable, self.options = name, size, is_rereadable, options
        self.position = 0
        """Number of bytes read so far."""
        self.on_move: Callable[[int], object] = lambda _: None
        """Called with the number of bytes by which the position changes."""
        self._read, self._rows = read, rows

    def __iter__(self) -> Iterator[Documents]:
        """Read the documents."""
        yield from self._read(self)
        self.move(self.size)

    def move(self, position: int) -> None:
        """Record how many bytes have been read."""
        self.on_move(position - self.position)
        self.position = position

    def is_at(self, path: Path) -> bool:
        """Return whether the source is the file at a path.

        >>> Source(__file__, lambda _: []).is_at(Path(__file__)), Source("", lambda _: []).is_at(Path(__file__))
        (True, False)
        """
        return bool(self.name) and path.exists() and Path(self.name).exists() and path.samefile(self.name)

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Add the name of the file, and the row of a table, to errors that its documents cause.

        >>> with Source("a.jsonl", lambda _: []).blamed():
        ...     raise ValueError("too long")
        Traceback (most recent call last):
        ...
        batchbpe.errors.DataError: a.jsonl: too long
        """
        try:
            yield
        except PatternError:  # may be about a text that another source queued earlier
            raise
        except InvalidUtf8 as error:
            raise self._name(self._find_invalid() or invalid_utf8(str(error))) from None
        except UserError as error:
            self._name(error)
            raise
        except (ValueError, OSError) as error:
            if not self.name or self.name in str(error):
                raise
            if isinstance(error, OSError) and error.errno is not None:
                raise os_error(error, f"cannot read {self.name}") from None
            raise DataError(str(error), where=self.name) from None

    def _name(self, error: UserError) -> UserError:
        if self.name and self.name not in str(error):
            error.where = f"{self.name}, {error.where}" if error.where else self.name
        return error

    def _find_invalid(self) -> DataError | None:
        """Find the first row that is invalid UTF-8 by reading the table once more."""
        from .arrow_strings import find_invalid  # imports pyarrow.compute

        found = (find_invalid(array, first_row) for first_row, array in (self._rows() if self._rows else []))
        return next(filter(None, found), None)


def in_memory(documents: Iterable[Documents]) -> Source:
    """Return a source for documents that are not in a file."""
    return Source("", lambda _: documents, is_rereadable=False)


def in_arrays(columns: Callable[[], Iterable[pa.Array[Any] | pa.ChunkedArray[Any]]], errors: str) -> Source:
    """Return a source for documents in arrow arrays, which `columns` can return more than once."""
    from .arrow_strings import batches_of, pieces  # imports numpy

    def rows() -> Iterator[tuple[int, pa.Array[Any]]]:
        first_row = 0
        for column in columns():
            yield from pieces(column, first_row=first_row)
            first_row += len(column)

    return Source("", lambda _: (batch for column in columns() for batch in batches_of(column, errors=errors)), 0, rows)


def flattened(items: Iterable[object]) -> Iterator[str]:
    """Yield the documents of an iterable of strings and of lists of strings, such as batches of a dataset.

    >>> list(flattened(iter(["one", ["two", "three"]])))
    ['one', 'two', 'three']
    >>> list(flattened([["one", 2]]))
    Traceback (most recent call last):
    ...
    batchbpe.errors.ArgumentTypeError: document 0[1] must be a string, got 2
    """
    for index, item in enumerate(items):
        if isinstance(item, str):
            yield item
        elif isinstance(item, Iterable) and not isinstance(item, bytes | bytearray | memoryview | Mapping):
            for position, text in enumerate(item):
                if not isinstance(text, str):
                    raise _not_a_string(f"document {index}[{position}]", text)
                yield text
        else:
            raise _not_a_string(f"document {index}", item)


def _not_a_string(place: str, value: object) -> ArgumentTypeError:
    remedy = 'pass (row["text"] for row in rows)' if isinstance(value, Mapping) else ""
    return ArgumentTypeError(place, value, "must be a string", remedy=remedy)


def batched(texts: Iterable[str]) -> Iterator[Texts]:
    """Collect single documents into batches. If reading fails, the documents before the error are yielded first.

    >>> [batch.strings for batch in batched(iter(["one", "two"]))]
    [['one', 'two']]
    """
    batch: list[str] = []
    size = 0
    failure: Exception | None = None
    try:
        for text in texts:
            batch.append(text)
            size += len(text)
            if size >= limits.BATCH_CHARACTERS or len(batch) >= limits.BATCH_DOCUMENTS:
                yield Texts(batch)
                batch, size = [], 0
    except Exception as error:
        failure = error
    if batch:
        yield Texts(batch)
    if failure:
        raise failure

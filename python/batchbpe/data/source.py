"""`Source`: a file, a URL or something in memory, and the documents in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from .._core import InvalidUtf8, PatternError
from ..errors import ArgumentTypeError, DataError, UserError, os_error
from .documents import Documents, Texts, invalid_utf8
from .options import ReadOptions

T = TypeVar("T")
Rows: TypeAlias = list[tuple[str, Any]]
"""Documents, each with its value in another column."""


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
        *,
        read_once: str = "",
        is_counts: bool = False,
    ) -> None:
        """Create a source.

        Parameters
        ----------
        name: the path or URL, or "" for data in memory.
        read: reads the documents; called with the source, whose `position` it updates.
        size: the size of the file in bytes, or 0 if unknown.
        read_once: what it is, such as "a generator", if the documents can be read only once.
        is_counts: whether it is known to contain chunk counts.

        """
        self.name, self.size, self.read_once, self.is_counts = name, size, read_once, is_counts
        self.position = 0
        """Number of bytes read so far."""
        self.on_move: Callable[[int], object] = lambda _: None
        """Called with the number of bytes by which the position changes."""
        self._read = read

    def __iter__(self) -> Iterator[Documents]:
        """Read the documents."""
        yield from self._read(self)
        self.move(self.size)

    def rows(self, group_column: str) -> Iterator[Rows]:
        """Yield rows of text and group, in batches. Tables and jsonl files override this."""
        raise self.no_groups()

    def no_groups(self) -> DataError:
        """Return the error for data that has no group column."""
        what = "this file type" if self.name and not self.read_once else self.read_once or "text in memory"
        return DataError(
            f"{what} has no group column", remedy="use parquet, arrow or jsonl files, or one file per group"
        )

    def find_invalid(self) -> DataError | None:
        """Find the document that is invalid UTF-8. Tables override this."""
        return None

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
        """Add the file name, and the row of a table, to errors that reading or using the documents causes.

        Nothing else names the file: readers only say which line or row is wrong.

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
            located = self.find_invalid() or invalid_utf8(str(error))
            located.locate(self.name)
            raise located from None
        except UserError as error:
            error.locate(self.name)
            raise
        except OSError as error:
            if not self.name or error.errno is None:  # the latter are our own, and say what cannot be read
                raise
            raise os_error(error, f"cannot read {self.name}") from None
        except ValueError as error:
            if not self.name:
                raise
            raise DataError(str(error), file=self.name) from None


def in_memory(read: Callable[[], Iterable[Documents]], read_once: str = "") -> Source:
    """Return a source for documents that are not in a file."""
    return Source("", lambda _: read(), read_once=read_once)


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


def _not_a_string(name: str, value: object) -> ArgumentTypeError:
    remedy = 'pass (row["text"] for row in rows)' if isinstance(value, Mapping) else ""
    return ArgumentTypeError(name, value, "must be a string", remedy=remedy)


def batched(texts: Iterable[str]) -> Iterator[Texts]:
    """Collect single documents into batches. If reading fails, the documents before the error are yielded first.

    >>> [batch.strings for batch in batched(iter(["one", "two"]))]
    [['one', 'two']]
    """
    return map(Texts, _batched(texts, len))


def batched_rows(rows: Iterable[tuple[str, Any]]) -> Iterator[Rows]:
    """Collect single rows into batches, like `batched`."""
    return _batched(rows, lambda row: len(row[0]))


def _batched(items: Iterable[T], size_of: Callable[[T], int]) -> Iterator[list[T]]:
    batch: list[T] = []
    size = 0
    failure: Exception | None = None
    try:
        for item in items:
            batch.append(item)
            size += size_of(item)
            if size >= ReadOptions.BATCH_CHARACTERS or len(batch) >= ReadOptions.BATCH_DOCUMENTS:
                yield batch
                batch, size = [], 0
    except Exception as error:
        failure = error
    if batch:
        yield batch
    if failure:
        raise failure

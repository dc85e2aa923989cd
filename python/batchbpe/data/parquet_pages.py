"""The pages of a parquet file: how many rows may be read at once without using too much memory.

pyarrow decompresses pages whole and reads a fixed number of rows at once. A page can be far larger than the file says
elsewhere, and a row of a few bits can stand for a megabyte in a dictionary. So the headers of the pages, which pyarrow
does not show, are read here first: a walk over a few bytes for each megabyte. Anything malformed raises `ValueError`.

https://parquet.apache.org/docs/file-format/
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

DATA, DICTIONARY, DATA_V2 = 0, 2, 3
"""Types of pages."""
DELTA_BYTE_ARRAY = 7
"""An encoding in which a value may repeat the beginning of the one before it."""
HEADER = 1 << 10
LONGEST_HEADER = 1 << 24
"""Bytes of a header that are read first, and at most."""
BATCH_BYTES = 3 << 25
"""Rows that take up to so many bytes are always read at once."""
FEW_BYTES = 1 << 16
"""If a batch would have less text than this, it is worth looking into the dictionary."""


@dataclass(frozen=True)
class Page:
    """What the header of a page says."""

    kind: int
    size: int
    """Bytes, decompressed."""
    rows: int
    encoding: int


class _Short(Exception):
    """The struct goes on after the bytes at hand."""


Wanted = dict[int, Any]
"""Which fields of a struct to read, and of those that are structs or lists of them, which fields of these."""


class _Compact:
    """Reads Thrift's compact protocol, in which the footer and the headers of pages are written."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def byte(self) -> int:
        if self.at >= len(self.data):
            raise _Short
        self.at += 1
        return self.data[self.at - 1]

    def varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise ValueError("a number of more than 64 bits")

    def integer(self) -> int:
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def fields(self) -> Iterator[tuple[int, int]]:
        """Go through a struct: give the number and the type of each field, which must be read before the next."""
        number = 0
        while byte := self.byte():
            number = number + (byte >> 4) if byte >> 4 else self.integer()
            yield number, byte & 0x0F

    def list_header(self) -> tuple[int, int]:
        """Give the number of elements that follow, and their type."""
        byte = self.byte()
        return self.varint() if byte >> 4 == 15 else byte >> 4, byte & 0x0F

    def struct(self, wanted: Wanted) -> dict[int, Any]:
        found: dict[int, Any] = {}
        for number, kind in self.fields():
            if number not in wanted:
                self.skip(kind)
            elif kind == 12:
                found[number] = self.struct(wanted[number])
            elif kind == 9:
                size, kind = self.list_header()
                if kind != 12:
                    raise ValueError(f"a list of type {kind}")
                found[number] = [self.struct(wanted[number]) for _ in range(size)]
            elif kind in (4, 5, 6):
                found[number] = self.integer()
            else:
                raise ValueError(f"field {number} of type {kind}")
        return found

    def skip(self, kind: int, *, element: bool = False) -> None:
        """Go past a value."""
        if kind in (1, 2):  # a field has no more than its type
            self.at += element
        elif kind == 3:
            self.at += 1
        elif kind in (4, 5, 6):
            while self.byte() >= 0x80:
                pass
        elif kind == 7:
            self.at += 8
        elif kind == 8:
            size = self.varint()
            self.at += size
        elif kind in (9, 10):
            size, kind = self.list_header()
            for _ in range(size):
                self.skip(kind, element=True)
        elif kind == 12:
            for _, field_kind in self.fields():
                self.skip(field_kind)
        else:
            raise ValueError(f"a value of type {kind}")


@dataclass(frozen=True)
class Chunk:
    """Where the pages of a column begin in a row group, and how many values they have."""

    at: int
    values: int


def row_groups(file: BinaryIO) -> Iterator[list[Chunk]]:
    """Read from the footer where the columns of each row group begin.

    pyarrow has this in its metadata, but ends the process if the statistics next to it are malformed.
    """
    with _malformed("the footer"):
        end = file.seek(0, 2)
        file.seek(max(0, end - 8))
        size = int.from_bytes(file.read(4), "little")
        if size > end - 8:
            raise ValueError(f"it has {size} bytes, and the file {end}")
        file.seek(end - 8 - size)
        reader = _Compact(file.read(size))
        for number, kind in reader.fields():
            if number == 4 and kind == 9:
                break
            reader.skip(kind)
        else:
            return
        left, _ = reader.list_header()
    for _ in range(left):
        with _malformed("the footer"):
            group = reader.struct({1: {3: {5: {}, 9: {}, 11: {}}}})
            chunks = [column[3] for column in group[1]]
            # Only the first pages can be a dictionary; but not every writer says so.
            places = [min(chunk[9], chunk.get(11) or chunk[9]) for chunk in chunks]
        yield [Chunk(at, chunk[5]) for at, chunk in zip(places, chunks, strict=True)]


@contextmanager
def _malformed(where: str) -> Iterator[None]:
    """Turn whatever garbage leads to into an error that says where it is."""
    try:
        yield
    except _Short:
        raise ValueError(f"{where} is malformed: it does not end") from None
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError(f"{where} is malformed: {error}") from error


def read_pages(file: BinaryIO, chunk: Chunk) -> list[Page]:
    """Read the headers of the pages of a column."""
    at, left = chunk.at, chunk.values
    pages: list[Page] = []
    while left > 0:
        with _malformed(f"the page at byte {at}"):
            header, size = _header(file, at)
            kind, data = header[1], header.get({DATA: 5, DICTIONARY: 7, DATA_V2: 8}.get(header[1], 0), {})
            page = Page(kind, header[2], data.get(1, 0), data.get(4 if kind == DATA_V2 else 2, 0))
            if header[2] < 0 or header[3] < 0 or page.rows < 0:
                raise ValueError("a size is negative")
            if kind == DICTIONARY and pages:
                raise ValueError("a dictionary must be the first page")
            pages.append(page)
            left -= page.rows if kind in (DATA, DATA_V2) else 0
            at += size + header[3]
    return pages


FIELDS: Wanted = {1: {}, 2: {}, 3: {}, 5: {1: {}, 2: {}}, 7: {1: {}, 2: {}}, 8: {1: {}, 4: {}}}
"""Of a header: type, size decompressed and compressed; and of each type of page the values and their encoding."""


def _header(file: BinaryIO, at: int) -> tuple[dict[int, Any], int]:
    """Read a header; also give its size."""
    length = HEADER
    while True:
        file.seek(at)
        data = file.read(length)
        reader = _Compact(data)
        try:
            return reader.struct(FIELDS), reader.at
        except _Short:
            if len(data) < length or length >= LONGEST_HEADER:
                raise
            length *= 16


def check_pages(pages: Sequence[Page], most: int, max_document_bytes: int) -> None:
    """Raise if a page is too large to be decompressed.

    >>> check_pages([Page(DATA, 10, 1, 0)], 5, 4)
    Traceback (most recent call last):
    ...
    ValueError: a page has 10 bytes, and max_document_bytes=4 allows 5; raise the limit, or write smaller pages
    """
    largest = max((page.size for page in pages), default=0)
    if largest > most:
        raise ValueError(
            f"a page has {largest} bytes, and max_document_bytes={max_document_bytes} allows {most}; "
            "raise the limit, or write smaller pages"
        )


def rows_at_once(pages: Sequence[Page], rows: int, most: int, longest_entry: Callable[[], int]) -> int:
    """Give the number of rows, at most `rows`, that never take more than about `most` bytes, or 1.

    `longest_entry` is called for the size of the longest entry of the dictionary, if that makes a difference.

    >>> pages = [Page(DATA, 1_000, 100, 0), Page(DATA, 1_000_000, 10, 0), Page(DATA, 1_000, 100, 0)]
    >>> rows_at_once(pages, 64, 2_000_000, lambda: 0), rows_at_once(pages * 4, 64, 500_000, lambda: 0)
    (64, 64)
    """
    data = [page for page in pages if page.kind != DICTIONARY and page.rows]
    total = max(1, sum(page.rows for page in data))
    # A row takes no more than its page, or all of the dictionary.
    repeated = max((page.size for page in pages if page.kind == DICTIONARY), default=0)
    if repeated * rows > most:
        few = most // repeated * sum(page.size for page in pages) // total < FEW_BYTES
        repeated = longest_entry() if few else repeated
    repeated = max([repeated, *(page.size for page in data if page.encoding == DELTA_BYTE_ARRAY)])
    rows = min(rows, most // max(1, repeated)) or 1
    most = max(most, 2 * max((page.size for page in data), default=0))  # as much as one page takes anyway
    if sum(page.size for page in data) <= most:
        return rows
    ends = np.cumsum([page.rows for page in data])
    sizes = np.cumsum([0, *(page.size for page in data)])
    while rows > 1:
        starts = np.arange(0, total, rows)
        first = np.searchsorted(ends, starts, "right")
        last = np.searchsorted(ends, np.minimum(starts + rows, total), "left")
        if (sizes[last + 1] - sizes[first]).max(initial=0) <= most:
            break
        rows //= 2
    return rows

"""Read the page headers of parquet files, to find how many rows fit into memory at once.

pyarrow decompresses whole pages and reads a fixed number of rows at once. A page can be far larger than the metadata
says, and a row of a few bits can refer to a megabyte in a dictionary. pyarrow does not expose the page headers, so they
are parsed here: a few bytes per megabyte. Malformed headers raise `DataError`.

https://parquet.apache.org/docs/file-format/
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ...errors import DataError
from .parsing import EndOfData, parsing, too_many_bytes

DATA, DICTIONARY, DATA_V2 = 0, 2, 3
"""Page types."""
DELTA_BYTE_ARRAY = 7
"""An encoding in which a value may share a prefix with the previous one."""
HEADER_BYTES = 1 << 10
MAX_HEADER_BYTES = 1 << 24
"""Number of bytes of a header to read at first, and at most."""
BATCH_BYTES = 3 << 25
"""Rows that take up to this many bytes are always read at once."""
FEW_BYTES = 1 << 16
"""If a batch would have less text than this, the longest entry of the dictionary is looked up."""
ELEMENT_BYTES = {1: 1, 2: 1, 3: 1, 7: 8}
"""Bytes of a list element, for the types of fixed size."""
MAX_EMPTY_PAGES = 1000


@dataclass(frozen=True)
class Page:
    """The fields of a page header that matter here."""

    kind: int
    """DATA, DICTIONARY, DATA_V2 or another page type."""
    size: int
    """Size in bytes, decompressed."""
    rows: int
    encoding: int


Fields = dict[int, Any]
"""Numbers of the fields of a struct to read; the value has the fields of a nested struct, or of a list of structs."""


class _CompactReader:
    """Reads Thrift's compact protocol, the format of the footer and the page headers."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def byte(self) -> int:
        if self.at >= len(self.data):
            raise EndOfData
        self.at += 1
        return self.data[self.at - 1]

    def varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise ValueError("an integer has more than 64 bits")

    def integer(self) -> int:
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def fields(self) -> Iterator[tuple[int, int]]:
        """Yield the number and type of each field of a struct. Read or skip a field before the next one."""
        number = 0
        while byte := self.byte():
            number = number + (byte >> 4) if byte >> 4 else self.integer()
            yield number, byte & 0x0F

    def list_header(self) -> tuple[int, int]:
        """Return the number of elements of a list, and their type."""
        byte = self.byte()
        return self.varint() if byte >> 4 == 15 else byte >> 4, byte & 0x0F

    def struct(self, fields: Fields) -> dict[int, Any]:
        """Return the values of some fields of a struct."""
        found: dict[int, Any] = {}
        for number, kind in self.fields():
            if number not in fields:
                self.skip(kind)
            elif kind == 12:
                found[number] = self.struct(fields[number])
            elif kind == 9:
                size, kind = self.list_header()
                if kind != 12:
                    raise ValueError(f"field {number} is a list of type {kind}")
                found[number] = [self.struct(fields[number]) for _ in range(size)]
            elif kind in (4, 5, 6):
                found[number] = self.integer()
            else:
                raise ValueError(f"field {number} has type {kind}")
        return found

    def skip(self, kind: int) -> None:
        """Skip a value."""
        if kind in (1, 2):
            return  # the type of a boolean field is its value
        if kind == 3:
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
            if (
                kind in ELEMENT_BYTES
            ):  # a few bytes can claim any number of elements, so these are not counted one by one
                self.at += size * ELEMENT_BYTES[kind]
            else:
                for _ in range(size):
                    self.skip(kind)
        elif kind == 12:
            for _, field_kind in self.fields():
                self.skip(field_kind)
        else:
            raise ValueError(f"a value has type {kind}")


@dataclass(frozen=True)
class ColumnChunk:
    """Where the pages of a column start in a row group, and how many values they have."""

    at: int
    values: int


def row_groups(file: BinaryIO) -> Iterator[list[ColumnChunk]]:
    """Yield the column chunks of each row group, as the footer lists them.

    pyarrow's metadata has them too, but reading it aborts the process if the statistics next to them are malformed.
    """
    end = file.seek(0, 2)
    file.seek(max(0, end - 8))
    tail = file.read(8)
    if tail[4:] != b"PAR1":
        raise DataError("not a parquet file, or damaged")
    with parsing("the footer"):
        size = int.from_bytes(tail[:4], "little")
        if size > end - 8:
            raise ValueError(f"its size is {size} bytes, but the file has {end}")
        file.seek(end - 8 - size)
        reader = _CompactReader(file.read(size))
        for number, kind in reader.fields():
            if number == 4 and kind == 9:
                break
            reader.skip(kind)
        else:
            return
        left, _ = reader.list_header()
    for _ in range(left):
        with parsing("the footer"):
            group = reader.struct({1: {3: {5: {}, 9: {}, 11: {}}}})
            chunks = [column[3] for column in group[1]]
            # A dictionary comes first, but not every writer records its offset.
            starts = [min(chunk[9], chunk.get(11) or chunk[9]) for chunk in chunks]
            columns = [ColumnChunk(at, chunk[5]) for at, chunk in zip(starts, chunks, strict=True)]
        yield columns


def read_pages(file: BinaryIO, chunk: ColumnChunk) -> list[Page]:
    """Read the page headers of a column chunk."""
    at, left, empty = chunk.at, chunk.values, 0
    pages: list[Page] = []
    while left > 0:
        with parsing(f"the page at byte {at}"):
            header, size = _header(file, at)
            kind, data = header[1], header.get({DATA: 5, DICTIONARY: 7, DATA_V2: 8}.get(header[1], 0), {})
            page = Page(kind, header[2], data.get(1, 0), data.get(4 if kind == DATA_V2 else 2, 0))
            if header[2] < 0 or header[3] < 0 or page.rows < 0:
                raise ValueError("a size is negative")
            if kind == DICTIONARY and pages:
                raise ValueError("a dictionary must be the first page")
            if page.rows or kind == DICTIONARY:
                pages.append(page)
            else:
                empty += 1
                if empty > MAX_EMPTY_PAGES:
                    raise ValueError(f"the column has more than {MAX_EMPTY_PAGES} empty pages")
            left -= page.rows if kind in (DATA, DATA_V2) else 0
            at += size + header[3]
    return pages


def has_dictionary(path: Path) -> bool:
    """Return whether the first column of a parquet file is encoded with a dictionary.

    pyarrow has this in its metadata, but may crash if that is malformed.
    """
    with path.open("rb") as file:
        for columns in row_groups(file):
            with parsing("the first page"):
                if columns and _header(file, columns[0].at)[0].get(1) == DICTIONARY:
                    return True
    return False


HEADER_FIELDS: Fields = {1: {}, 2: {}, 3: {}, 5: {1: {}, 2: {}}, 7: {1: {}, 2: {}}, 8: {1: {}, 4: {}}}
"""Page type, decompressed size and compressed size; number of values and encoding of each type of page."""


def _header(file: BinaryIO, at: int) -> tuple[dict[int, Any], int]:
    """Return the fields of a page header and its size in bytes."""
    length = HEADER_BYTES
    while True:
        file.seek(at)
        data = file.read(length)
        reader = _CompactReader(data)
        try:
            return reader.struct(HEADER_FIELDS), reader.at
        except EndOfData:
            if len(data) < length or length >= MAX_HEADER_BYTES:
                raise
            length *= 16


def check_pages(pages: Sequence[Page], limit: int, max_document_bytes: int) -> None:
    """Raise if a page has more than `limit` bytes, which follows from `max_document_bytes`.

    >>> check_pages([Page(DATA, 10, 1, 0)], 5, 4)
    Traceback (most recent call last):
    ...
    batchbpe.errors.DataError: a page has 10 bytes, more than the 5 that max_document_bytes=4 allows; raise the limit \
or write smaller pages
    """
    largest = max((page.size for page in pages), default=0)
    if largest > limit:
        raise too_many_bytes(f"a page has {largest} bytes", limit, max_document_bytes, "pages")


def rows_at_once(pages: Sequence[Page], rows: int, max_bytes: int, longest_entry: Callable[[], int]) -> int:
    """Return how many rows, at most `rows`, can be read at once in about `max_bytes` bytes of memory; at least 1.

    `longest_entry` is called for the size of the longest entry of the dictionary if it makes a difference.

    >>> pages = [Page(DATA, 1_000, 100, 0), Page(DATA, 1_000_000, 10, 0), Page(DATA, 1_000, 100, 0)]
    >>> rows_at_once(pages, 64, 2_000_000, lambda: 0), rows_at_once(pages * 4, 64, 500_000, lambda: 0)
    (64, 64)
    """
    data = [page for page in pages if page.kind != DICTIONARY and page.rows]
    total = max(1, sum(page.rows for page in data))
    # A row has at most the size of its page or of the whole dictionary.
    repeated = max((page.size for page in pages if page.kind == DICTIONARY), default=0)
    if repeated * rows > max_bytes:
        few = max_bytes // repeated * sum(page.size for page in pages) // total < FEW_BYTES
        repeated = longest_entry() if few else repeated
    repeated = max([repeated, *(page.size for page in data if page.encoding == DELTA_BYTE_ARRAY)])
    rows = min(rows, max_bytes // max(1, repeated)) or 1
    max_bytes = max(max_bytes, 2 * max((page.size for page in data), default=0))  # a page is decompressed anyway
    if sum(page.size for page in data) <= max_bytes:
        return rows
    ends = np.cumsum([page.rows for page in data])
    sizes = np.cumsum([0, *(page.size for page in data)])
    while rows > 1:
        starts = np.arange(0, total, rows)
        first = np.searchsorted(ends, starts, "right")
        last = np.searchsorted(ends, np.minimum(starts + rows, total), "left")
        if (sizes[last + 1] - sizes[first]).max(initial=0) <= max_bytes:
            break
        rows //= 2
    return rows

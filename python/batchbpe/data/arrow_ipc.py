"""Bounds for Arrow IPC files and streams, checked before pyarrow reads a message.

pyarrow decompresses a record batch as a whole, and a buffer of a few kilobytes may become gigabytes. The sizes stand in
the metadata of each message, a flatbuffer, and in the first eight bytes of each compressed buffer, so they are read
here first. Only what the bounds need is understood; anything malformed raises `ValueError`.

https://arrow.apache.org/docs/format/Columnar.html#serialization-and-interprocess-communication-ipc
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    import pyarrow as pa

MAGIC = b"ARROW1"
SMALL = 1 << 28
"""A record batch of up to this many bytes is always read: honest files have such."""
DICTIONARY, RECORDS = 2, 3
"""Types of messages."""


@dataclass(frozen=True)
class _Table:
    """A table of a flatbuffer: fields are found by number, through the offsets in its vtable."""

    data: bytes
    at: int

    def field(self, number: int) -> int | None:
        """Give the place of a field, or None if it has its default."""
        vtable = self.at - self.read("<i", self.at)
        entry = 4 + 2 * number
        offset = self.read("<H", vtable + entry) if entry < self.read("<H", vtable) else 0
        return self.at + offset if offset else None

    def read(self, form: str, at: int) -> int:
        if at < 0:
            raise ValueError("an offset is negative")
        value: int = struct.unpack_from(form, self.data, at)[0]
        return value

    def number(self, number: int, form: str) -> int:
        at = self.field(number)
        return 0 if at is None else self.read(form, at)

    def table(self, number: int) -> _Table | None:
        at = self.field(number)
        return None if at is None else _Table(self.data, at + self.read("<I", at))

    def vector(self, number: int, form: str) -> list[tuple[int, ...]]:
        """Give the structs of a vector."""
        at = self.field(number)
        if at is None:
            return []
        at += self.read("<I", at)
        size = self.read("<I", at) * struct.calcsize(form)
        if at + 4 + size > len(self.data):
            raise ValueError("a vector is longer than the message")
        return list(struct.iter_unpack(form, self.data[at + 4 : at + 4 + size]))


def _root(data: bytes) -> _Table:
    return _Table(data, struct.unpack_from("<I", data)[0])


class Bounds:
    """Checks the messages of one file: none may need more memory than `most`, nor may all dictionaries together."""

    def __init__(self, file: BinaryIO, schema: pa.Schema, columns: Sequence[str], max_document_bytes: int) -> None:
        """Take an open file that can seek, and the columns that will be read."""
        self.file = file
        self.max_document_bytes, self.most = max_document_bytes, max(max_document_bytes, SMALL)
        self.wanted = _wanted_buffers(schema, columns)
        self.dictionaries: dict[int, int] = {}
        self.end = file.seek(0, 2)

    def check_footer(self) -> Iterator[None]:
        """Check the dictionaries of a file now, and a record batch whenever the next item is asked for."""
        with _malformed("the footer"):
            tail = self._read(self.end - 10, 10)
            size = struct.unpack_from("<i", tail)[0]
            footer = _root(self._read(self.end - 10 - size, size))
            dictionaries, batches = (footer.vector(number, "<qi4xq") for number in (2, 3))
        for offset, *_ in dictionaries:
            self._check(offset, is_file=True)
        for offset, *_ in batches:
            self._check(offset, is_file=True)
            yield

    def check_next(self) -> None:
        """Check the messages of a stream up to the next record batch, and return to where the file was."""
        start = at = self.file.tell()
        kind: int | None = 0
        while kind not in (RECORDS, None):
            kind, at = self._check(at, is_file=False)
        self.file.seek(start)

    def _check(self, at: int, *, is_file: bool) -> tuple[int | None, int]:
        """Check the message at a place; give its type, None at the end, and the place of the next one."""
        with _malformed(f"the message at byte {at}"):
            prefix = self._read(at, min(8, self.end - at))
            if len(prefix) < 8:  # as pyarrow does, take an end without a mark for the end
                return None, self.end
            # Before version 0.15 there was no mark of four bytes.
            begin = 8 if prefix[:4] == b"\xff\xff\xff\xff" else 4
            size = struct.unpack_from("<i", prefix, begin - 4)[0]
            if size == 0:
                return None, self.end
            message = _root(self._read(at + begin, size))
            kind, body, length = message.number(1, "<B"), at + begin + size, message.number(3, "<q")
            if not 0 <= length <= self.end - body:
                raise ValueError(f"its body has {length} bytes, of which {self.end - body} are there")
            header = message.table(2)
            if header is not None and kind == DICTIONARY:
                batch = header.table(1)
                size = self._size(batch, body, length, None) if batch else 0
                key, is_delta = header.number(0, "<q"), header.number(2, "<B")
                self.dictionaries[key] = size + (self.dictionaries.get(key, 0) if is_delta else 0)
                size = sum(self.dictionaries.values())
            elif header is not None and kind == RECORDS:
                size = self._size(header, body, length, self.wanted)
                size = size if is_file else max(size, length)  # of a stream, all columns are read
            else:
                size = length
        if size > self.most:
            what = "dictionaries have" if kind == DICTIONARY else "a record batch has"
            raise ValueError(
                f"{what} {size} bytes, and max_document_bytes={self.max_document_bytes} allows {self.most}; "
                "raise the limit, or write smaller record batches"
            )
        return kind, body + length

    def _size(self, batch: _Table, body: int, length: int, wanted: Wanted | None) -> int:
        """Give the number of bytes that the wanted buffers of a batch have when they are decompressed."""
        buffers, total = batch.vector(2, "<qq"), 0
        is_compressed = batch.table(3) is not None
        views = [count for (count,) in batch.vector(4, "<q")]
        for number in range(len(buffers)) if wanted is None else _numbers(wanted, views, len(buffers)):
            offset, size = buffers[number]
            if not (offset >= 0 and size >= 0 and offset + size <= length):
                raise ValueError(f"its buffer {number} lies outside of its body")
            if is_compressed and size >= 8:
                # -1 is a buffer that did not become smaller.
                whole = struct.unpack("<q", self._read(body + offset, 8))[0]
                size = whole if whole >= 0 else size
            total += size
        return total

    def _read(self, at: int, size: int) -> bytes:
        if not (at >= 0 and 0 <= size <= self.end - at):
            raise ValueError(f"{size} bytes at {at} lie outside of the file, which has {self.end}")
        if size > self.most:
            raise ValueError(f"metadata of {size} bytes")
        self.file.seek(at)
        data = self.file.read(size)
        if len(data) < size:
            raise ValueError(f"the file ends {size - len(data)} bytes early")
        return data


class _malformed:
    """Turn whatever garbage leads to into an error that says where it is."""

    def __init__(self, where: str) -> None:
        self.where = where

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if isinstance(error, struct.error | ValueError | OverflowError):
            raise ValueError(f"{self.where} is malformed: {error}") from error


Layout = tuple[int, int]
"""How many buffers a column has, and how many of its arrays are views, which have more."""
Wanted = list[tuple[Layout, bool]]
"""The layouts of columns, and whether each is read."""


def _wanted_buffers(schema: pa.Schema, columns: Sequence[str]) -> Wanted | None:
    """Give the layout of the columns, or None if one of them is not known: then all buffers are taken to be read."""
    layouts = [(_layout(field.type), field.name in columns) for field in schema]
    return None if any(layout is None for layout, _ in layouts) else layouts  # type: ignore[return-value]


def _layout(type_: Any) -> Layout | None:
    """Count the buffers of a column.

    >>> import pyarrow as pa
    >>> _layout(pa.string()), _layout(pa.list_(pa.int8())), _layout(pa.string_view()), _layout(pa.null())
    ((3, 0), (4, 0), (2, 1), (0, 0))
    """
    import pyarrow.types as types

    if hasattr(type_, "storage_type"):
        return _layout(type_.storage_type)
    name = str(type_)
    if types.is_dictionary(type_):
        return 2, 0
    if types.is_null(type_):
        return 0, 0
    if name in ("string", "large_string", "binary", "large_binary"):
        return 3, 0
    if name in ("string_view", "binary_view"):
        return 2, 1
    own = 1 if types.is_struct(type_) or types.is_fixed_size_list(type_) else 2
    if own == 1 or types.is_list(type_) or types.is_large_list(type_) or types.is_map(type_):
        parts = [_layout(type_.field(i).type) for i in range(type_.num_fields)]
        known = [part for part in parts if part is not None]
        return (own + sum(n for n, _ in known), sum(n for _, n in known)) if len(known) == len(parts) else None
    return (2, 0) if types.is_primitive(type_) or types.is_fixed_size_binary(type_) or types.is_decimal(type_) else None


def _numbers(wanted: Wanted, views: list[int], known: int) -> Iterator[int]:
    """Give the numbers of the buffers that belong to the wanted columns."""
    at = 0
    for (size, view_arrays), is_wanted in wanted:
        if len(views) < view_arrays or min(views, default=0) < 0:
            raise ValueError("it does not say how many buffers its views have")
        size += sum(views[:view_arrays])
        views = views[view_arrays:]
        if size < 0 or at + size > known:
            raise ValueError(f"it has {known} buffers, fewer than its columns")
        if is_wanted:
            yield from range(at, at + size)
        at += size

"""Check the sizes in Arrow IPC files and streams before pyarrow reads a message.

pyarrow decompresses whole record batches, and a buffer of a few kilobytes may become gigabytes. The sizes are in the
metadata of each message, a flatbuffer, and in the first eight bytes of each compressed buffer. This module reads only
the fields that it needs for the sizes. Malformed metadata raises `DataError`.

https://arrow.apache.org/docs/format/Columnar.html#serialization-and-interprocess-communication-ipc
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

from .parsing import parsing, too_many_bytes

if TYPE_CHECKING:
    import pyarrow as pa

MAGIC = b"ARROW1"
SMALL = 1 << 28
"""Record batches of up to this many bytes are always read, since valid files may have them."""
DICTIONARY, RECORDS = 2, 3
"""Message types."""


@dataclass(frozen=True)
class _Table:
    """A table in a flatbuffer. Fields have numbers; the vtable has the offset of each."""

    data: bytes
    at: int

    def field(self, number: int) -> int | None:
        """Return the position of a field, or None if it has its default value."""
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
        """Return the structs in a vector."""
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


class SizeChecker:
    """Checks the messages of one file. Each record batch, and all dictionaries together, must fit into `limit`."""

    def __init__(self, file: BinaryIO, schema: pa.Schema, columns: Sequence[str], max_document_bytes: int) -> None:
        """Start with an open file that can seek, and the columns that will be read."""
        self.file = file
        self.max_document_bytes, self.limit = max_document_bytes, max(max_document_bytes, SMALL)
        self.layouts = _column_layouts(schema, columns)
        self.dictionary_sizes: dict[int, int] = {}
        self.end = file.seek(0, 2)

    def check_footer(self) -> Iterator[None]:
        """Check the dictionaries of a file, then one record batch before each item that is yielded."""
        with parsing("the footer"):
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
        """Check the messages of a stream up to the next record batch; the position in the file does not change."""
        start = at = self.file.tell()
        kind: int | None = 0
        while kind not in (RECORDS, None):
            kind, at = self._check(at, is_file=False)
        self.file.seek(start)

    def _check(self, at: int, *, is_file: bool) -> tuple[int | None, int]:
        """Check a message. Return its type, or None at the end, and the position of the next one."""
        with parsing(f"the message at byte {at}"):
            prefix = self._read(at, min(8, self.end - at))
            if len(prefix) < 8:  # like pyarrow, accept a stream without an end marker
                return None, self.end
            # Arrow before version 0.15 wrote no continuation marker of four bytes.
            begin = 8 if prefix[:4] == b"\xff\xff\xff\xff" else 4
            size = struct.unpack_from("<i", prefix, begin - 4)[0]
            if size == 0:
                return None, self.end
            message = _root(self._read(at + begin, size))
            kind, body, length = message.number(1, "<B"), at + begin + size, message.number(3, "<q")
            if not 0 <= length <= self.end - body:
                raise ValueError(f"expected a body of {length} bytes, got {self.end - body}")
            header = message.table(2)
            if header is not None and kind == DICTIONARY:
                batch = header.table(1)
                size = self._size(batch, body, length, None) if batch else 0
                key, is_delta = header.number(0, "<q"), header.number(2, "<B")
                self.dictionary_sizes[key] = size + (self.dictionary_sizes.get(key, 0) if is_delta else 0)
                size = sum(self.dictionary_sizes.values())
            elif header is not None and kind == RECORDS:
                size = self._size(header, body, length, self.layouts)
                size = size if is_file else max(size, length)  # in a stream, all columns are read
            else:
                size = length
        if size > self.limit:
            what = "dictionaries have" if kind == DICTIONARY else "a record batch has"
            raise too_many_bytes(f"{what} {size} bytes", self.limit, self.max_document_bytes, "record batches")
        return kind, body + length

    def _size(self, batch: _Table, body: int, length: int, layouts: ColumnLayouts | None) -> int:
        """Return the decompressed size of the buffers that will be read; of all buffers if the layouts are unknown."""
        buffers, total = batch.vector(2, "<qq"), 0
        is_compressed = batch.table(3) is not None
        view_buffers = [count for (count,) in batch.vector(4, "<q")]
        for number in range(len(buffers)) if layouts is None else _buffers_to_read(layouts, view_buffers, len(buffers)):
            offset, size = buffers[number]
            if not (offset >= 0 and size >= 0 and offset + size <= length):
                raise ValueError(f"buffer {number} is outside of its body")
            if is_compressed and size >= 8:
                # -1 marks a buffer that is stored uncompressed.
                whole = struct.unpack("<q", self._read(body + offset, 8))[0]
                size = whole if whole >= 0 else size
            total += size
        return total

    def _read(self, at: int, size: int) -> bytes:
        if not (at >= 0 and 0 <= size <= self.end - at):
            raise ValueError(f"{size} bytes at byte {at} are outside of the file of {self.end} bytes")
        if size > self.limit:
            raise ValueError(f"the metadata has {size} bytes")
        self.file.seek(at)
        data = self.file.read(size)
        if len(data) < size:
            raise ValueError(f"expected {size} bytes at byte {at}, got {len(data)}")
        return data


Layout = tuple[int, int]
"""Number of buffers of a column, and number of view arrays in it, each of which has more buffers."""
ColumnLayouts = list[tuple[Layout, bool]]
"""The layout of each column, and whether it will be read."""


def _column_layouts(schema: pa.Schema, columns: Sequence[str]) -> ColumnLayouts | None:
    """Return the layout of each column, or None if the type of one is unknown."""
    layouts = [(_layout(field.type), field.name in columns) for field in schema]
    return None if any(layout is None for layout, _ in layouts) else layouts  # type: ignore[return-value]


def _layout(type_: Any) -> Layout | None:
    """Return the layout of a column of some type, or None if the type is unknown.

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


def _buffers_to_read(layouts: ColumnLayouts, view_buffers: list[int], total: int) -> Iterator[int]:
    """Yield the indices of the buffers of the columns that will be read.

    `view_buffers` has the number of additional buffers of each view array, and `total` is the number of all buffers.

    >>> list(_buffers_to_read([((2, 0), False), ((2, 1), True)], [3], 7))
    [2, 3, 4, 5, 6]
    """
    first = 0
    for (size, view_arrays), is_read in layouts:
        if len(view_buffers) < view_arrays or min(view_buffers, default=0) < 0:
            raise ValueError("the number of buffers of a view array is missing")
        size += sum(view_buffers[:view_arrays])
        view_buffers = view_buffers[view_arrays:]
        if size < 0 or first + size > total:
            raise ValueError(f"{total} buffers are fewer than the columns need")
        if is_read:
            yield from range(first, first + size)
        first += size

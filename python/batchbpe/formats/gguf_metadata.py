"""The metadata of a GGUF file: named values before the tensors of a model. Tensors are neither read nor written.

All numbers are little-endian. A file starts with "GGUF", a version (uint32), the number of tensors and the number of
values (uint64). A value has a name (its length as uint64, and UTF-8), a type (uint32) and data. An array has the type
and the number (uint64) of its items. The package `gguf` takes 7 s to read the metadata of Llama 3; this takes 0.3 s.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from .._core import MAX_ID
from ..errors import DataError, short

MAGIC = b"GGUF"
VERSION = 3
_VERSIONS = (2, 3)
"""Version 3 added big-endian files, and is otherwise the same. llama.cpp does not read version 1 either."""
MAX_VALUES = 1 << 16
"""Largest number of values. Published files have fewer than a hundred."""
MAX_STRING = 1 << 26
"""Largest size of a string."""
MAX_DEPTH = 8
"""Number of arrays inside one another that are skipped."""
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_UINT32, _INT32, _BOOL, _STRING, _ARRAY = 4, 5, 7, 8, 9


def read(path: Path, prefix: str | tuple[str, ...]) -> dict[str, Any]:
    """Return the values whose names start with a prefix, or with one of several.

    No tensor is read, however large the file is.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "a.gguf"
    ...     _ = path.write_bytes(to_bytes({"general.name": "a", "tokenizer.ggml.tokens": ["a", "b"]}))
    ...     read(path, "tokenizer.")
    {'tokenizer.ggml.tokens': ['a', 'b']}
    """
    with path.open("rb") as file:
        return _Reader(file).values(prefix)


class _Reader:
    """Reads values in order. What a damaged file says about sizes is checked before anything is allocated."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.left = os.fstat(file.fileno()).st_size

    def values(self, prefix: str | tuple[str, ...]) -> dict[str, Any]:
        if self.take(4) != MAGIC:
            raise DataError("not a GGUF file")
        version = self.number(_UINT32)
        if version & 0xFFFF == 0:  # as in llama.cpp
            raise DataError("big-endian GGUF files are not supported", remedy="convert it to little-endian")
        if version not in _VERSIONS:
            raise DataError(f"GGUF version must be one of {', '.join(map(str, _VERSIONS))}, got {version}")
        self.take(8)  # number of tensors
        count = self.count(13)
        if count > MAX_VALUES:
            raise DataError(f"a GGUF file must have at most {MAX_VALUES:,} values, got {count:,}")
        found: dict[str, Any] = {}
        names: set[str] = set()
        for _ in range(count):
            name = self.string()
            if name in names:
                raise DataError(f"{short(name)} is listed twice")
            names.add(name)
            value = self.value(self.number(_UINT32), is_needed := name.startswith(prefix))
            if is_needed:
                found[name] = value
        return found

    def take(self, size: int) -> bytes:
        self.left -= size
        if self.left < 0:
            raise DataError("the GGUF file is truncated or damaged", remedy="download or write it again")
        return self.file.read(size)

    def number(self, kind: int) -> Any:
        if kind not in _NUMBERS:
            raise DataError(f"unknown GGUF value type {kind}; the file is damaged or newer")
        return self.numbers(kind, 1)[0]

    def numbers(self, kind: int, count: int) -> tuple[Any, ...]:
        size = struct.calcsize(_NUMBERS[kind])
        data = self.take(size * count)
        return struct.unpack(f"<{count}{_NUMBERS[kind]}", data)

    def count(self, item_size: int) -> int:
        """Read a number of items, which must fit into the rest of the file."""
        count: int = self.number(10)
        if count > self.left // item_size:
            self.take(self.left + 1)
        return count

    def string(self) -> str:
        size = self.count(1)
        if size > MAX_STRING:
            raise DataError(f"a string must have at most {MAX_STRING:,} bytes, got {size:,}")
        try:
            return self.take(size).decode()
        except UnicodeDecodeError as error:
            raise DataError(f"expected UTF-8, got {short(error.object)}") from None

    def value(self, kind: int, is_needed: bool, depth: int = 0) -> Any:
        """Read a value, or skip it."""
        if kind == _STRING:
            return self.string() if is_needed else self.skip(self.count(1))
        if kind != _ARRAY:
            return self.number(kind)
        items = self.number(_UINT32)
        if items not in (_STRING, _ARRAY, *_NUMBERS):
            raise DataError(f"unknown GGUF array type {items}; the file is damaged or newer")
        if items == _ARRAY and is_needed:
            raise DataError("nested arrays are not supported in the metadata of a tokenizer")
        if depth == MAX_DEPTH:
            raise DataError(f"at most {MAX_DEPTH} arrays may be nested", remedy="download or write it again")
        size = {_STRING: 8, _ARRAY: 12}.get(items) or struct.calcsize(_NUMBERS[items])
        count = self.count(size)
        if is_needed and count > MAX_ID:
            raise DataError(f"an array must have at most {MAX_ID} items, got {count}")
        if items in _NUMBERS:
            return [*self.numbers(items, count)] if is_needed else self.skip(size * count)
        if is_needed:
            return [self.string() for _ in range(count)]
        for _ in range(count):
            self.value(items, False, depth + 1)
        return None

    def skip(self, size: int) -> None:
        self.left -= size
        self.file.seek(size, os.SEEK_CUR)


def to_bytes(values: Mapping[str, Any]) -> bytes:
    """Return a file with values and without tensors. Integers are written as uint32, in arrays as int32.

    >>> to_bytes({"a": True})[-14:]
    b'\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x00a\\x07\\x00\\x00\\x00\\x01'
    """
    parts = [MAGIC, struct.pack("<IQQ", VERSION, 0, len(values))]
    for name, value in values.items():
        parts += (_string(name), *_typed(value))
    return b"".join(parts)


def _typed(value: Any) -> list[bytes]:
    """Return the type and the data of a value."""
    if isinstance(value, bool):
        return [struct.pack("<I?", _BOOL, value)]
    if isinstance(value, int):
        return [struct.pack("<II", _UINT32, value)]
    if isinstance(value, str):
        return [struct.pack("<I", _STRING), _string(value)]
    if value and isinstance(value[0], int):
        return [struct.pack(f"<IIQ{len(value)}i", _ARRAY, _INT32, len(value), *value)]
    return [struct.pack("<IIQ", _ARRAY, _STRING, len(value)), *map(_string, value)]


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data

"""Ids back to back, without an index of documents: bin, npy, llm.c and nanogpt."""

from __future__ import annotations

import os
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, ClassVar

import numpy as np

from ...errors import DataError
from ..encoded import Encoded
from .base import AnyIds, Part, TokenFile, map_ids


class BinFile(TokenFile):
    """Ids without a header."""

    mode: ClassVar[str] = "wb"

    def _open(self) -> None:
        self.file: BinaryIO = self.path.open(self.mode)  # type: ignore[assignment]
        self.file.write(self._header())  # overwritten at the end: its size does not depend on the number of ids

    def _write(self, batch: Encoded, _: int) -> None:
        is_as_large = batch.ids.itemsize == self.dtype.itemsize  # int32: ids fit, so that nothing is converted
        self.file.write((batch.ids.view(self.dtype) if is_as_large else batch.ids.astype(self.dtype)).data)

    def _finish(self) -> None:
        if header := self._header():  # pipes have none
            self.file.seek(0)
            self.file.write(header)

    def _close(self) -> None:
        self.file.close()

    def _header(self) -> bytes:
        return b""

    @classmethod
    def read(cls, path: Path, n_vocab: int) -> Iterator[AnyIds]:
        """Map the ids of a vocabulary into memory."""
        yield map_ids(path, cls.dtype_for(n_vocab))


class NanogptFile(BinFile):
    """Two files of uint16, train.bin and val.bin. Read like `BinFile`."""

    max_vocab = 1 << 16
    is_sharded = False
    mode = "ab"

    @classmethod
    def stem(cls, part: Part, number: int) -> str:
        """Return the name of a file without its suffix."""
        return "val" if part == "validation" else "train"

    def _finish(self) -> None:
        self.file.flush()
        os.fsync(self.file.fileno())  # before the position is recorded

    @classmethod
    def recognizes(cls, path: Path) -> bool:
        """Return False: it is read as a bin file."""
        return False


class NpyFile(BinFile):
    """Ids after numpy's header."""

    suffixes = (".npy",)
    MAGIC: ClassVar[bytes] = b"\x93NUMPY"

    def _header(self) -> bytes:
        header = BytesIO()
        fields = {"descr": self.dtype.str, "fortran_order": False, "shape": (self.tokens,)}
        np.lib.format.write_array_header_1_0(header, fields)
        return header.getvalue()

    @classmethod
    def read(cls, path: Path, n_vocab: int) -> Iterator[AnyIds]:
        """Map a one-dimensional array of integers into memory."""
        try:
            ids = np.load(path, mmap_mode="r", allow_pickle=False)
        except PermissionError:
            raise
        except Exception as error:  # numpy evaluates the header as Python, which fails in many ways
            is_npy = starts_with(path, cls.MAGIC)
            remedy = "encode again" if is_npy else "for OLMo's raw ids, keep the .csv.gz file next to it"
            raise DataError("not a .npy file, or damaged", where=str(path), remedy=remedy) from error
        if not isinstance(ids, np.ndarray):
            ids.close()
            raise DataError("an .npz archive instead of a .npy file", where=str(path), remedy="save one of its arrays")
        if ids.ndim != 1 or ids.dtype.kind not in "iu":
            problem = f"expected a one-dimensional array of integers, got a {ids.ndim}-dimensional array of {ids.dtype}"
            raise DataError(problem, where=str(path), remedy="pass an array of ids")
        yield np.asarray(ids)


class LlmcFile(BinFile):
    """Ids after a header of 256 int32 values: magic number, version, number of ids."""

    max_tokens = (1 << 31) - 1
    HEADERS: ClassVar[dict[int, tuple[int, int]]] = {2: (20240520, 1), 4: (20240801, 7)}
    """Magic number and version by the number of bytes per id."""
    START: ClassVar[int] = 1024
    """Size of the header in bytes."""

    def _header(self) -> bytes:
        header = np.zeros(self.START // 4, "<i4")
        header[:3] = *self.HEADERS[self.dtype.itemsize], self.tokens
        return header.tobytes()

    @classmethod
    def recognizes(cls, path: Path) -> bool:
        """Return whether a file starts with a magic number and a version."""
        headers = (np.array(header, "<i4").tobytes() for header in cls.HEADERS.values())
        return super().recognizes(path) and any(starts_with(path, header) for header in headers)

    @classmethod
    def read(cls, path: Path, n_vocab: int) -> Iterator[AnyIds]:
        """Map the ids into memory. The header tells their type and number."""
        header = np.fromfile(path, "<i4", 3)
        if path.stat().st_size < cls.START:
            problem = "the file is damaged: the header is not complete"
            raise DataError(problem, where=str(path), remedy="encode again")
        size = next(size for size, (magic, _) in cls.HEADERS.items() if magic == header[0])
        yield map_ids(path, np.dtype(f"<u{size}"), cls.START, int(header[2]))


def starts_with(path: Path, start: bytes) -> bool:
    """Return whether a file starts with some bytes.

    >>> starts_with(Path(__file__), b'\"\"\"Ids')
    True
    """
    with path.open("rb") as file:
        return file.read(len(start)) == start

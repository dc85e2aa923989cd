"""Ids back to back, and an index of documents in another file: megatron, datatrove and olmo.

Each part of a cut document counts as a document.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ...errors import DataError
from ..encoded import Encoded
from ..marks import Offsets
from .base import AnyIds, companion, map_ids
from .raw import BinFile, NpyFile, starts_with


class IndexedFile(BinFile):
    """Ids without a header. Subclasses write the index."""

    def _open(self) -> None:
        super()._open()
        self.ends: list[Offsets] = []

    def _write(self, batch: Encoded, tokens: int) -> None:
        super()._write(batch, tokens)
        self.ends.append(batch.ends + tokens)

    def _finish(self) -> None:
        if self.open_tokens:
            self.ends.append(np.array([self.tokens]))
        self._write_index(np.concatenate([[0], *self.ends]).astype("<i8", copy=False))

    def _write_index(self, offsets: Offsets) -> None:
        """Write the offset of each document, and the end of the last one."""
        raise NotImplementedError


class MegatronFile(IndexedFile):
    """Megatron's indexed dataset: an .idx file with a header, the length and the offset of each document."""

    suffixes = (".bin", ".idx")
    max_vocab = 1 << 31
    max_document = (1 << 31) - 1
    MAGIC: ClassVar[bytes] = b"MMIDIDX\x00\x00"
    HEADER: ClassVar[struct.Struct] = struct.Struct("<9sQBQQ")
    """Magic bytes, version, type of ids, number of sequences, number of documents plus one."""
    TYPES: ClassVar[dict[int, str]] = {1: "|u1", 2: "|i1", 3: "<i2", 4: "<i4", 5: "<i8", 8: "<u2"}

    @classmethod
    def dtype_for(cls, n_vocab: int) -> np.dtype[Any]:
        """Return the type that Megatron's own tools choose for a vocabulary.

        >>> MegatronFile.dtype_for(65_499), MegatronFile.dtype_for(65_500)
        (dtype('uint16'), dtype('int32'))
        """
        return np.dtype("<u2" if n_vocab < 65_500 else "<i4")

    def _write_index(self, offsets: Offsets) -> None:
        code = next(code for code, name in self.TYPES.items() if name == self.dtype.str)
        documents = len(offsets) - 1
        with self.paths[1].open("wb") as file:
            file.write(self.HEADER.pack(self.MAGIC, 1, code, documents, documents + 1))
            file.write(np.diff(offsets).astype("<i4").data)
            file.write((offsets[:-1] * self.dtype.itemsize).data)
            file.write(np.arange(documents + 1, dtype="<i8").data)  # each document is one sequence

    @classmethod
    def recognizes(cls, path: Path) -> bool:
        """Return whether there is an index next to a file."""
        return super().recognizes(path) and companion(path, *cls.suffixes).is_file()

    @classmethod
    def read(cls, path: Path, n_vocab: int) -> Iterator[AnyIds]:
        """Map the ids into memory. The index tells their type and number."""
        index = companion(path, *cls.suffixes)
        with index.open("rb") as file:
            header = file.read(cls.HEADER.size)
        size = index.stat().st_size
        if len(header) < cls.HEADER.size or not header.startswith(cls.MAGIC):
            raise DataError("not an index of Megatron, or damaged", where=str(index), remedy="encode again")
        _, version, code, sequences, documents = cls.HEADER.unpack(header)
        if version != 1 or code not in cls.TYPES or size < cls.HEADER.size + 12 * sequences + 8 * documents:
            problem = "the index is damaged, or of another version"
            raise DataError(problem, where=str(index), remedy="encode again")
        lengths = np.memmap(index, "<i4", "r", cls.HEADER.size, (sequences,)) if sequences else np.zeros(0, "<i4")
        yield map_ids(path, np.dtype(cls.TYPES[code]), expected=int(lengths.sum(dtype=np.int64)))


class DatatroveFile(IndexedFile):
    """Files of datatrove, which nanotron reads: the index has the end of each document as uint64."""

    suffixes = (".ds", ".ds.index", ".ds.metadata")

    def _write_index(self, offsets: Offsets) -> None:
        self.paths[1].write_bytes(offsets[1:].astype("<u8").data)
        tokens = int(offsets[-1])
        self.paths[2].write_text(
            f"batchbpe|{self.dtype.itemsize}\n{tokens}\n{tokens} T", encoding="ascii", newline="\n"
        )

    @classmethod
    def read(cls, path: Path, n_vocab: int) -> Iterator[AnyIds]:
        """Map the ids into memory. Their number is the last end, if there is an index."""
        index, expected = companion(path, *cls.suffixes[:2]), None
        if index.is_file():
            size = index.stat().st_size
            if size % 8:
                problem = "the index is damaged: expected values of 8 bytes"
                raise DataError(problem, where=str(index), remedy="encode again")
            expected = int(np.memmap(index, "<u8", "r")[-1]) if size else 0
        yield map_ids(path, cls.dtype_for(n_vocab), expected=expected)


class OlmoFile(IndexedFile):
    """Files of OLMo-core: .npy without a header, and a csv file with the start and the end of each document.

    Documents without ids are left out, because OLMo's reader rejects one at the end.
    """

    suffixes = (".npy", ".csv.gz")

    def _write_index(self, offsets: Offsets) -> None:
        import pyarrow as pa
        from pyarrow import csv

        from ...util.arrow import int64_array

        offsets = offsets[np.append(True, np.diff(offsets) > 0)]
        columns = [int64_array(offsets[:-1]), int64_array(offsets[1:])]
        table = pa.Table.from_arrays(columns, ["start", "end"])
        # Without a time and a name, the bytes depend only on the documents.
        stream: Any
        with self.paths[1].open("wb") as file, gzip.GzipFile("", "wb", 1, file, mtime=0) as stream:
            csv.write_csv(table, stream, csv.WriteOptions(include_header=False))

    @classmethod
    def recognizes(cls, path: Path) -> bool:
        """Return whether there is an index next to a file without numpy's header."""
        has_index = super().recognizes(path) and companion(path, *cls.suffixes).is_file()
        return has_index and not starts_with(path, NpyFile.MAGIC)

    @classmethod
    def read(cls, path: Path, n_vocab: int) -> Iterator[AnyIds]:
        """Map the ids into memory. Their number is the last end."""
        index = companion(path, *cls.suffixes)
        try:
            end = b""
            with gzip.open(index) as stream:
                while block := stream.read(1 << 20):
                    end = (end + block)[-64:]  # more than the longest line
            expected = int(end.splitlines()[-1].split(b",")[1]) if end else 0
        except (OSError, EOFError, ValueError, IndexError, zlib.error) as error:
            problem = "not an index of OLMo, or damaged"
            raise DataError(problem, where=str(index), remedy="encode again") from error
        yield map_ids(path, cls.dtype_for(n_vocab), expected=expected)

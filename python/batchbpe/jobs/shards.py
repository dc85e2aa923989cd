"""Shards of ids: the files that language models are trained from. One batch is written while the next is encoded."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
import numpy.typing as npt

ShardFormat = Literal["bin", "llm.c", "parquet"]
Ids = npt.NDArray[np.uint32]
HEADERS = {2: (20240520, 1), 4: (20240801, 7)}
"""Magic number and version of llm.c's files of uint16 and of uint32."""


class Encoded:
    """Ids of documents, and where each document ends: at `ends`, none for the part of one that goes on."""

    def __init__(self, ids: Ids, ends: npt.NDArray[np.int64]) -> None:
        """Take what the core gives."""
        self.ids, self.ends = ids, ends

    def with_end(self, end: int | None) -> Encoded:
        """Give the ids with another one after each document.

        >>> some = Encoded(np.array([7, 8, 9], np.uint32), np.array([1, 3])).with_end(0)
        >>> some.ids.tolist(), some.ends.tolist()
        ([7, 0, 8, 9, 0], [2, 5])
        """
        if end is None:
            return self
        return Encoded(np.insert(self.ids, self.ends, end), self.ends + np.arange(1, len(self.ends) + 1))


class Shard:
    """A file of ids that is being written."""

    def __init__(self, path: Path, dtype: np.dtype[Any]) -> None:
        """Begin with nothing."""
        self.path, self.dtype = path, dtype
        self.tokens = self.documents = 0

    def __enter__(self) -> Shard:
        """Open the file."""
        self.thread, self.writing = ThreadPoolExecutor(1), Future[None]()
        self.writing.set_result(None)
        self.open()
        return self

    def add(self, some: Encoded, end: int | None) -> None:
        """Have ids written, with another one after each document."""
        self.tokens += len(some.ids) + (0 if end is None else len(some.ends))
        self.documents += len(some.ends)
        self.writing.result()
        self.writing = self.thread.submit(lambda: self.write(some.with_end(end)))

    def __exit__(self, *failure: Any) -> None:
        """Close the file when all is written."""
        self.thread.shutdown()
        try:
            if not failure[0]:
                self.writing.result()
        finally:
            self.close()

    def open(self) -> None:
        """Open the file."""
        raise NotImplementedError

    def write(self, some: Encoded) -> None:
        """Write ids."""
        raise NotImplementedError

    def close(self) -> None:
        """Finish the file."""
        raise NotImplementedError


class BinShard(Shard):
    """Ids one after the other, as nanoGPT reads them."""

    def open(self) -> None:
        """Open the file."""
        self.file: BinaryIO = self.path.open("wb")

    def write(self, some: Encoded) -> None:
        """Write ids."""
        self.file.write(some.ids.astype(self.dtype, copy=False).data)

    def close(self) -> None:
        """Close the file."""
        self.file.close()


class NpyShard(BinShard):
    """Ids behind a header, as numpy reads them."""

    def open(self) -> None:
        """Leave room for the header, which has the same size for any number of ids."""
        super().open()
        self._header()

    def close(self) -> None:
        """Write the header, now that the number of ids is known."""
        self.file.seek(0)
        self._header()
        super().close()

    def _header(self) -> None:
        header = {"descr": self.dtype.str, "fortran_order": False, "shape": (self.tokens,)}
        np.lib.format.write_array_header_1_0(self.file, header)


class LlmcShard(BinShard):
    """Ids behind a header, as llm.c reads them."""

    def open(self) -> None:
        """Leave room for the header."""
        super().open()
        self.file.write(bytes(1024))

    def close(self) -> None:
        """Write the header, now that the number of ids is known."""
        header = np.zeros(256, "<i4")
        header[:3] = *HEADERS[self.dtype.itemsize], self.tokens
        self.file.seek(0)
        self.file.write(header.tobytes())
        super().close()


class ParquetShard(Shard):
    """A list of ids for each document, in the column `ids`."""

    def open(self) -> None:
        """Open the file."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.schema = pa.schema([("ids", pa.large_list(pa.from_numpy_dtype(self.dtype)))])
        self.begun: list[Ids] = []  # of a document that goes on
        self.writer = pq.ParquetWriter(self.path, self.schema, compression="zstd")

    def write(self, some: Encoded) -> None:
        """Write the documents that are whole now."""
        import pyarrow as pa

        self.begun.append(some.ids)
        if not len(some.ends):
            return
        ends = some.ends + sum(map(len, self.begun[:-1]))
        ids = np.concatenate(self.begun).astype(self.dtype)
        self.begun = []
        offsets = np.concatenate([[0], ends]).astype(np.int64)
        numbers = pa.Array.from_buffers(pa.from_numpy_dtype(self.dtype), len(ids), [None, pa.py_buffer(ids.data)])
        buffers = [None, pa.py_buffer(offsets.data)]
        lists: Any = pa.Array.from_buffers(self.schema.types[0], len(ends), buffers, children=[numbers])
        self.writer.write_table(pa.Table.from_arrays([lists], schema=self.schema))

    def close(self) -> None:
        """Close the file."""
        self.writer.close()


SHARDS: dict[ShardFormat, type[Shard]] = {"bin": BinShard, "llm.c": LlmcShard, "parquet": ParquetShard}

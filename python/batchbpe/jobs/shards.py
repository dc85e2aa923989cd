"""Shards of ids: the files that language models are trained on. A batch is written while the next one is encoded."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ..choices import ShardFormat
from .encoded import Encoded, Ids

HEADERS = {2: (20240520, 1), 4: (20240801, 7)}
"""Magic number and version of llm.c files, by the number of bytes per id."""


class Shard:
    """A file of ids, written by a separate thread. Subclasses open, write and close it."""

    def __init__(self, path: Path, dtype: np.dtype[Any]) -> None:
        """Create an empty shard."""
        self.path, self.dtype = path, dtype
        self.tokens = self.documents = 0

    def __enter__(self) -> Shard:
        """Open the file."""
        self._thread, self._writing = ThreadPoolExecutor(1), Future[None]()
        self._writing.set_result(None)
        self._open()
        return self

    def add(self, batch: Encoded, end: int | None) -> None:
        """Queue ids for writing, with `end` after each document."""
        self.tokens += len(batch.ids) + (0 if end is None else len(batch.ends))
        self.documents += len(batch.ends)
        self._writing.result()
        self._writing = self._thread.submit(lambda: self._write(batch.with_end(end)))

    def __exit__(self, *failure: Any) -> None:
        """Close the file when everything is written."""
        self._thread.shutdown()
        try:
            if not failure[0]:
                self._writing.result()
        finally:
            self._close()

    def _open(self) -> None:
        raise NotImplementedError

    def _write(self, batch: Encoded) -> None:
        raise NotImplementedError

    def _close(self) -> None:
        raise NotImplementedError


class BinShard(Shard):
    """Ids without a header, as nanoGPT reads them."""

    def _open(self) -> None:
        self.file: BinaryIO = self.path.open("wb")
        self.file.write(self._header())  # whose size does not depend on the number of ids

    def _write(self, batch: Encoded) -> None:
        self.file.write(batch.ids.astype(self.dtype, copy=False).data)

    def _close(self) -> None:
        with self.file:
            if header := self._header():  # pipes have none
                self.file.seek(0)
                self.file.write(header)

    def _header(self) -> bytes:
        return b""


class NpyShard(BinShard):
    """Ids after a header, as numpy reads them."""

    def _header(self) -> bytes:
        header = BytesIO()
        fields = {"descr": self.dtype.str, "fortran_order": False, "shape": (self.tokens,)}
        np.lib.format.write_array_header_1_0(header, fields)
        return header.getvalue()


class LlmcShard(BinShard):
    """Ids after a header, as llm.c reads them."""

    def _header(self) -> bytes:
        header = np.zeros(256, "<i4")
        header[:3] = *HEADERS[self.dtype.itemsize], self.tokens
        return header.tobytes()


class ParquetShard(Shard):
    """A list of ids for each document, in the column `ids`."""

    def _open(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.schema = pa.schema([("ids", pa.large_list(pa.from_numpy_dtype(self.dtype)))])
        self.started: list[Ids] = []  # of a document that is not complete yet
        self.writer = pq.ParquetWriter(self.path, self.schema, compression="zstd")

    def _write(self, batch: Encoded) -> None:
        import pyarrow as pa

        self.started.append(batch.ids)
        if not len(batch.ends):
            return
        ends = batch.ends + sum(map(len, self.started[:-1]))
        ids = np.concatenate(self.started).astype(self.dtype)
        self.started = []
        offsets = np.concatenate([[0], ends]).astype(np.int64)
        numbers = pa.Array.from_buffers(pa.from_numpy_dtype(self.dtype), len(ids), [None, pa.py_buffer(ids.data)])
        buffers = [None, pa.py_buffer(offsets.data)]
        lists: Any = pa.Array.from_buffers(self.schema.types[0], len(ends), buffers, children=[numbers])
        self.writer.write_table(pa.Table.from_arrays([lists], schema=self.schema))

    def _close(self) -> None:
        self.writer.close()


SHARDS: dict[ShardFormat, type[Shard]] = {"bin": BinShard, "llm.c": LlmcShard, "parquet": ParquetShard}

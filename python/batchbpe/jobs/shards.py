"""Shards of ids: the files that language models are trained on. A batch is written while the next one is encoded."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from . import ShardFormat
from .encoded import Encoded, Ids

HEADERS = {2: (20240520, 1), 4: (20240801, 7)}
"""Magic number and version of llm.c files, by the number of bytes per id."""


class Shard:
    """A file of ids, written by a separate thread."""

    def __init__(self, path: Path, dtype: np.dtype[Any]) -> None:
        """Create an empty shard."""
        self.path, self.dtype = path, dtype
        self.tokens = self.documents = 0

    def __enter__(self) -> Shard:
        """Open the file."""
        self.thread, self.writing = ThreadPoolExecutor(1), Future[None]()
        self.writing.set_result(None)
        self.open()
        return self

    def add(self, batch: Encoded, end: int | None) -> None:
        """Queue ids for writing, with `end` after each document."""
        self.tokens += len(batch.ids) + (0 if end is None else len(batch.ends))
        self.documents += len(batch.ends)
        self.writing.result()
        self.writing = self.thread.submit(lambda: self.write(batch.with_end(end)))

    def __exit__(self, *failure: Any) -> None:
        """Close the file when everything is written."""
        self.thread.shutdown()
        try:
            if not failure[0]:
                self.writing.result()
        finally:
            self.close()

    def open(self) -> None:
        """Open the file."""
        raise NotImplementedError

    def write(self, batch: Encoded) -> None:
        """Write ids."""
        raise NotImplementedError

    def close(self) -> None:
        """Finish the file."""
        raise NotImplementedError


class BinShard(Shard):
    """Ids without a header, as nanoGPT reads them."""

    def open(self) -> None:
        """Open the file."""
        self.file: BinaryIO = self.path.open("wb")

    def write(self, batch: Encoded) -> None:
        """Write ids."""
        self.file.write(batch.ids.astype(self.dtype, copy=False).data)

    def close(self) -> None:
        """Close the file."""
        self.file.close()


class NpyShard(BinShard):
    """Ids after a header, as numpy reads them."""

    def open(self) -> None:
        """Reserve space for the header, whose size does not depend on the number of ids."""
        super().open()
        self._header()

    def close(self) -> None:
        """Write the header, since the number of ids is known now."""
        self.file.seek(0)
        self._header()
        super().close()

    def _header(self) -> None:
        header = {"descr": self.dtype.str, "fortran_order": False, "shape": (self.tokens,)}
        np.lib.format.write_array_header_1_0(self.file, header)


class LlmcShard(BinShard):
    """Ids after a header, as llm.c reads them."""

    def open(self) -> None:
        """Reserve space for the header."""
        super().open()
        self.file.write(bytes(1024))

    def close(self) -> None:
        """Write the header, since the number of ids is known now."""
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
        self.started: list[Ids] = []  # of a document that is not complete yet
        self.writer = pq.ParquetWriter(self.path, self.schema, compression="zstd")

    def write(self, batch: Encoded) -> None:
        """Write the documents that are complete."""
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

    def close(self) -> None:
        """Close the file."""
        self.writer.close()


SHARDS: dict[ShardFormat, type[Shard]] = {"bin": BinShard, "llm.c": LlmcShard, "parquet": ParquetShard}

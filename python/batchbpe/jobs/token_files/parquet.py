"""Lists of ids in parquet files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ...data.options import MAX_DOCUMENT_BYTES
from ...errors import DataError
from ..encoded import Encoded
from ..marks import Offsets
from .base import AnyIds, TokenFile

ROW_GROUP = 1 << 20
"""A row group ends with the first document at which it has this many ids, so that it does not depend on batches."""
OTHER_FILES = "pass files that encode has written"


class ParquetFile(TokenFile):
    """A list of ids for each document, in the column `ids`. Each part of a cut document is a row."""

    suffixes = (".parquet",)
    max_document = 1 << 25  # a row is written at once, with which pyarrow takes about 25 bytes per id

    def _open(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.schema = pa.schema([("ids", pa.large_list(pa.from_numpy_dtype(self.dtype)))])
        self.ids: list[AnyIds] = []  # that are not written yet
        self.ends: list[Offsets] = []
        self.unwritten = 0
        # With a dictionary, writing took 15% longer and files were 20% larger. Statistics of ids would not be used.
        options: dict[str, Any] = {"compression": "zstd", "use_dictionary": False, "write_statistics": False}
        self.writer = pq.ParquetWriter(self.path, self.schema, **options)

    def _write(self, batch: Encoded, _: int) -> None:
        while self.unwritten + len(batch.ids) >= ROW_GROUP:
            needed = ROW_GROUP - self.unwritten
            documents = int(np.searchsorted(batch.ends, needed))
            if documents == len(batch.ends):
                break
            before, batch = batch.split(int(batch.ends[documents]) + documents + 1)
            self._keep(before)
            self._write_rows()
        self._keep(batch)

    def _keep(self, batch: Encoded) -> None:
        self.ids.append(batch.ids.astype(self.dtype))
        self.ends.append(batch.ends + self.unwritten)
        self.unwritten += len(batch.ids)

    def _finish(self) -> None:
        if self.open_tokens:
            self.ends.append(np.array([self.unwritten]))
        self._write_rows()

    def _write_rows(self) -> None:
        import pyarrow as pa

        offsets = np.concatenate([np.zeros(1, np.int64), *self.ends])
        ids = np.concatenate([np.zeros(0, self.dtype), *self.ids])
        self.ids, self.ends, self.unwritten = [], [], 0
        if len(offsets) == 1:
            return
        numbers = pa.Array.from_buffers(pa.from_numpy_dtype(self.dtype), len(ids), [None, pa.py_buffer(ids.data)])
        buffers = [None, pa.py_buffer(offsets.data)]
        lists: Any = pa.Array.from_buffers(self.schema.types[0], len(offsets) - 1, buffers, children=[numbers])
        self.writer.write_table(pa.Table.from_arrays([lists], schema=self.schema))

    def _close(self) -> None:
        self.writer.close()

    @classmethod
    def read(cls, path: Path, n_vocab: int) -> Iterator[AnyIds]:
        """Read the column `ids`, some rows at a time."""
        import pyarrow as pa

        from ...data.untrusted import open_table

        try:
            with open_table(path, is_parquet=True) as table:
                names = table.schema.names
                if "ids" not in names:
                    raise DataError(f"no column 'ids' among {names}", remedy=OTHER_FILES)
                kind: Any = table.schema.field("ids").type
                is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
                if not is_list or not pa.types.is_integer(kind.value_type):
                    raise DataError(f"the column 'ids' must contain lists of integers, not {kind}", remedy=OTHER_FILES)
                for batch, _ in table.batches(["ids"], MAX_DOCUMENT_BYTES):
                    lists: Any = batch.column(0)
                    ids = lists.flatten()
                    if ids.null_count:
                        raise DataError("the column 'ids' contains a null in a list", remedy=OTHER_FILES)
                    yield ids.to_numpy(zero_copy_only=True)
        except DataError as error:
            error.locate(str(path))
            raise

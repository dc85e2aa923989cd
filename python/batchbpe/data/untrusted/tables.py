"""`open_table`: parquet and arrow files as record batches, each of which takes a limited amount of memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import DataError, UserError
from ..options import ReadOptions
from . import arrow_ipc, parquet_pages

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


class BoundedTable(ABC):
    """An open table."""

    schema: pa.Schema

    @abstractmethod
    def batches(self, columns: Sequence[str], max_document_bytes: int) -> Iterator[tuple[pa.RecordBatch, float]]:
        """Yield record batches with some columns, and which fraction of the table has been read."""


@contextmanager
def open_table(file: Any, *, is_parquet: bool) -> Iterator[BoundedTable]:
    """Open a path, or a file that can seek, as a table. Errors do not name the file."""
    import pyarrow.parquet as pq

    with damaged(
        f"not {'a parquet' if is_parquet else 'an arrow'} file, or damaged", OSError, ValueError, OverflowError
    ):
        if is_parquet:
            # By default, pyarrow buffers all row groups in advance: the whole file.
            with pq.ParquetFile(file, pre_buffer=False, buffer_size=1 << 20) as opened:
                yield _ParquetTable(opened, file)
        else:
            # Not memory-mapped: truncating the file while it is read would kill the process.
            with file.open("rb") if isinstance(file, Path) else nullcontext(file) as stream:
                yield _ArrowTable(stream)


@contextmanager
def damaged(problem: str, *kinds: type[Exception]) -> Iterator[None]:
    """Turn errors from pyarrow, and errors of other kinds, into a `DataError`."""
    import pyarrow as pa

    try:
        yield
    except UserError:
        raise
    except Exception as error:
        if not isinstance(error, (pa.ArrowException, *kinds)):
            raise
        if isinstance(error, OSError) and error.errno is not None:
            raise
        unsupported = isinstance(error, pa.ArrowNotImplementedError)
        raise DataError(f"unsupported: {error}" if unsupported else problem) from error


class _ParquetTable(BoundedTable):
    def __init__(self, table: pq.ParquetFile, file: Any) -> None:
        self.schema, self._table, self._file = table.schema_arrow, table, file

    def batches(self, columns: Sequence[str], max_document_bytes: int) -> Iterator[tuple[pa.RecordBatch, float]]:
        done = 0
        for groups, rows in self._row_groups(columns, max_document_bytes):
            for batch in self._table.iter_batches(rows, row_groups=groups, columns=[*columns], use_threads=False):
                done += len(batch)
                yield batch, done / max(1, self._table.metadata.num_rows)

    def _row_groups(self, columns: Sequence[str], max_document_bytes: int) -> Iterator[tuple[list[int], int]]:
        """Yield row groups to read together, because small ones are slow, and the number of rows to read at once."""
        metadata, groups, found, total = self._table.metadata, [], [], 0
        leaves = [metadata.schema.column(i).path.partition(".")[0] for i in range(metadata.num_columns)]
        selected = [i for i, name in enumerate(leaves) if name in columns]
        with self._file.open("rb") if isinstance(self._file, Path) else nullcontext(None) as local:
            by_group = parquet_pages.row_groups(local) if local else repeat([], metadata.num_row_groups)
            for number, chunks in zip(range(metadata.num_row_groups), by_group, strict=True):
                group = metadata.row_group(number)
                groups.append(number)
                total += group.num_rows
                if local and len(chunks) != len(leaves):
                    raise DataError(f"row group {number} has {len(chunks)} columns, expected {len(leaves)}")
                if local:
                    found += [parquet_pages.read_pages(local, chunks[i]) for i in selected]
                else:
                    found.append([parquet_pages.Page(parquet_pages.DATA, group.total_byte_size, group.num_rows, 0)])
                size = sum(page.size for each in found for page in each)
                rows = min(ReadOptions.BATCH_CHARACTERS * total // max(1, size), ReadOptions.BATCH_DOCUMENTS) or 1
                if total >= rows or number == metadata.num_row_groups - 1:
                    max_bytes = max(max_document_bytes, parquet_pages.BATCH_BYTES)
                    for each in found if local else []:
                        parquet_pages.check_pages(each, max(max_document_bytes, arrow_ipc.SMALL), max_document_bytes)
                        longest = partial(self._longest_entry, columns, groups)
                        rows = parquet_pages.rows_at_once(each, rows, max_bytes, longest)
                    yield groups, rows
                    groups, found, total = [], [], 0

    def _longest_entry(self, columns: Sequence[str], groups: list[int]) -> int:
        """Return the size of the longest entry of the dictionaries."""
        import pyarrow.parquet as pq

        from .arrow_strings import sizes

        longest = 0
        with pq.ParquetFile(self._file, pre_buffer=False, buffer_size=1 << 20, read_dictionary=[*columns]) as file:
            for group in groups:
                batch = next(file.iter_batches(1, row_groups=[group], columns=[*columns], use_threads=False), None)
                column: Any
                for column in batch.columns if batch else []:
                    if str(column.type).startswith("dictionary"):
                        longest = max(longest, int(sizes(column.dictionary).max(initial=0)))
        return longest


class _ArrowTable(BoundedTable):
    """An arrow file or stream, such as the files of a `datasets` cache."""

    def __init__(self, file: Any) -> None:
        import pyarrow as pa

        self._file = file
        self._is_file = file.read(6) == arrow_ipc.MAGIC
        self._open: Any = pa.ipc.open_file if self._is_file else pa.ipc.open_stream
        file.seek(0)
        self.schema = self._open(file).schema

    def batches(self, columns: Sequence[str], max_document_bytes: int) -> Iterator[tuple[pa.RecordBatch, float]]:
        import pyarrow as pa

        checker = arrow_ipc.SizeChecker(self._file, self.schema, columns, max_document_bytes)
        self._file.seek(0)
        fields = [*map(self.schema.get_field_index, columns)]
        reader = self._open(self._file, options=pa.ipc.IpcReadOptions(included_fields=fields))
        for batch in self._checked(reader, checker):
            yield batch, self._file.tell() / max(1, checker.end)

    def _checked(self, reader: Any, checker: arrow_ipc.SizeChecker) -> Iterator[pa.RecordBatch]:
        if self._is_file:
            for number, _ in enumerate(checker.check_footer()):
                yield reader.get_batch(number)
            return
        while True:
            checker.check_next()
            try:
                batch = reader.read_next_batch()
            except StopIteration:
                return
            yield batch

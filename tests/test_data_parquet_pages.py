"""The headers of parquet pages are read correctly, and malformed ones do not cause much work."""

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from data_files import MB, texts

from batchbpe.data.untrusted import parquet_pages, parsing


def test_page_headers(tmp_path: Path) -> None:
    """The page headers agree with the metadata that pyarrow wrote."""
    words = [f"word {i} " * (i % 50) for i in range(20_000)]
    for version in ("1.0", "2.0"):
        for dictionary in (True, False):
            path = tmp_path / "a.parquet"
            options: dict[str, Any] = {"data_page_version": version, "use_dictionary": dictionary}
            pq.write_table(pa.table({"n": range(20_000), "text": words}), path, row_group_size=7000, **options)
            metadata = pq.ParquetFile(path).metadata
            for group in range(3):
                chunk = metadata.row_group(group).column(1)
                with path.open("rb") as file:
                    found = parquet_pages.read_pages(file, list(parquet_pages.row_groups(file))[group][1])
                assert sum(page.rows for page in found if page.kind != parquet_pages.DICTIONARY) == chunk.num_values
                sizes = sum(page.size for page in found)
                assert sizes <= chunk.total_uncompressed_size <= sizes + 1000 * len(found)
            assert texts(path, max_document_bytes=100_000) == words


def test_few_rows_of_large_pages_at_once() -> None:
    plain = [parquet_pages.Page(parquet_pages.DATA, 1000, 1000, 0)] * 10
    large = [parquet_pages.Page(parquet_pages.DATA, MB, 1, 0)] * 1000
    assert parquet_pages.rows_at_once(plain + large, 4096, 64 * MB, lambda: 0) == 64
    dictionary = [parquet_pages.Page(parquet_pages.DICTIONARY, 4 * MB, 3, 0)]
    assert parquet_pages.rows_at_once(dictionary + plain, 4096, 64 * MB, lambda: 10) == 4096
    assert parquet_pages.rows_at_once(dictionary + plain, 4096, 64 * MB, lambda: MB) == 64


def test_lists_of_any_size_are_skipped_at_once() -> None:
    """A page header of a few bytes can claim 2**62 booleans in a field that is not needed."""
    huge = b"\xf1" + b"\x80" * 8 + b"\x40"
    reader = parquet_pages._CompactReader(huge)
    reader.skip(9)
    with pytest.raises(parsing.EndOfData):
        reader.byte()


def test_empty_pages_are_limited() -> None:
    header = bytes([0x15, 6, 0x15, 0, 0x15, 0, 0])  # type 3, no bytes, no rows
    with pytest.raises(ValueError, match="more than 1000 empty pages"):
        parquet_pages.read_pages(io.BytesIO(header * 2000), parquet_pages.ColumnChunk(0, 5))

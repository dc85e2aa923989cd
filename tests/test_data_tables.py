"""Parquet and arrow files: their documents, in bounded batches, and their errors."""

import gzip
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from data_files import MB, arrow, documents, parquet, strings, texts


def test_columns_with_the_same_name(tmp_path: Path) -> None:
    table = pa.table([pa.array(["a"]), pa.array(["b"])], names=["text", "text"])
    pq.write_table(table, tmp_path / "a.parquet")
    for data, where in ((table, "data"), (tmp_path / "a.parquet", r"a\.parquet")):
        with pytest.raises(ValueError, match=f"{where}: several columns are named 'text'; rename"):
            texts(data)


def test_parquet_batches_are_bounded(tmp_path: Path) -> None:
    path = parquet(tmp_path / "long.parquet", text=[chr(97 + n % 26) * 400_000 + str(n) for n in range(40)])
    pq.write_table(pq.read_table(path), path, compression="none", use_dictionary=False)
    sizes = [item.array.nbytes for item in documents(path)]
    assert len(sizes) >= 4
    assert max(sizes) < 5_000_000
    path = parquet(tmp_path / "short.parquet", text=["a"] * 10_000)
    assert max(len(item) for item in documents(path)) <= 4096


def test_parquet_is_not_read_ahead(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    noise = [random.Random(n).randbytes(500_000).hex() for n in range(40)]
    pages = {"write_batch_size": 1, "data_page_size": 1000, "use_dictionary": False}
    for rows in (4, 40):
        pq.write_table(pa.table({"text": noise}), path, row_group_size=rows, **pages)
        before = pa.total_allocated_bytes()
        assert all(pa.total_allocated_bytes() - before < 16_000_000 for _ in documents(path))


def test_damaged_parquet(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", text=["some text"] * 1000)
    whole = path.read_bytes()
    for content in (b"", b"not a parquet file", whole[:-30]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"a\.parquet: not a parquet file, or damaged$"):
            texts(path)
    path.write_bytes(whole[:20] + bytes(30) + whole[50:])
    with pytest.raises(ValueError, match=r"a\.parquet: the page at byte \d+ is malformed: field 1 is missing"):
        texts(path)


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_long_documents_among_short_ones(kind: str, tmp_path: Path) -> None:
    """The rows read at once depend on their average size. Batches that turn out too large are cut between documents."""
    texts = ["tiny"] * 20_000 + ["long" * 200_000] * 30 + ["longer" * 1_000_000] + [""] * 3
    table = pa.table({"text": texts})
    path = tmp_path / f"a.{kind}"
    if kind == "parquet":
        pq.write_table(table, path)
    else:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    batches = [strings(batch) for batch in documents(path)]
    assert [text for batch in batches for text in batch] == texts
    assert max(sum(map(len, batch)) for batch in batches if len(batch) > 1) <= 4_000_000


@pytest.mark.parametrize("opened", [pa.ipc.new_file, pa.ipc.new_stream])
def test_arrow(opened: Any, tmp_path: Path) -> None:
    table = pa.table({"text": ["one", None, "zwei ü"], "n": [1, 2, 3]})
    with opened(tmp_path / "a.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    assert texts(tmp_path / "a.arrow") == ["one", "zwei ü"]
    (tmp_path / "b.arrow.gz").write_bytes(gzip.compress((tmp_path / "a.arrow").read_bytes()))
    assert texts(tmp_path / "b.arrow.gz") == ["one", "zwei ü"]
    with pytest.raises(ValueError, match=r"a\.arrow: no column 'body' among \['n', 'text'\]"):
        list(documents(tmp_path / "a.arrow", text_column="body"))
    (tmp_path / "a.arrow").write_bytes((tmp_path / "a.arrow").read_bytes()[:100])
    with pytest.raises(ValueError, match=r"a\.arrow: not an arrow file, or damaged$"):
        list(documents(tmp_path / "a.arrow"))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("compression", [None, "zstd", "lz4"])
@pytest.mark.parametrize("type_", [pa.string(), pa.large_string(), pa.string_view(), None], ids=str)
def test_all_kinds_of_arrow_files(type_: Any, compression: str | None, stream: bool, tmp_path: Path) -> None:
    """The text column is found among columns with other numbers of buffers."""
    words = ["naïve", None, "x" * 100, "", "to be"] * 20
    column: Any = pa.array(words)
    column = column.cast(type_) if type_ else column.dictionary_encode()
    others = {
        "lists": pa.array([["a", "b"], None] * 50),
        "nothing": pa.nulls(100),
        "view": pa.array(["y" * 50] * 100, pa.string_view()),
        "struct": pa.array([{"a": 1, "b": "c"}] * 100),
        "fixed": pa.array([[1.0, 2.0]] * 100, pa.list_(pa.float32(), 2)),
        "flag": pa.array([True, None] * 50),
        "names": pa.array(["k", "l"] * 50).dictionary_encode(),
    }
    path = arrow(tmp_path / "a.arrow", column, stream=stream, compression=compression, **others)
    assert texts(path) == [word for word in words if word is not None]


@pytest.mark.parametrize("stream", [False, True])
def test_other_columns_do_not_count(stream: bool, tmp_path: Path) -> None:
    """Other columns may have any size when decompressed."""
    zeros = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(36 * MB)), 36 * 1024)
    column = pa.array(["to be"] * 1024)
    path = arrow(tmp_path / "a.arrow", column, stream=stream, compression="zstd", zeros=zeros)
    assert len(texts(path, max_document_bytes=1000)) == 1024

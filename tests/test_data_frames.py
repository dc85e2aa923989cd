"""Arrow data, data frames and datasets in memory as data."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from data_files import documents, parquet, texts

from batchbpe import ChunkCounts
from batchbpe.data.documents import ArrowTexts

STRINGS = ["one", None, "", "drei ü", "four"]


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())], ids=str
)
def test_arrow_strings(kind: Any, tmp_path: Path) -> None:
    array = pa.array(STRINGS, kind)
    table = pa.table({"text": array, "n": range(5)})
    path = parquet(tmp_path / "a.parquet", text=array, n=range(5))
    chunked = pa.chunked_array([array[:1], array[1:2], array[2:2], array[2:]])
    for data in (array, chunked, table, table.to_batches()[0], path, str(path), [array]):
        items = list(documents(data))
        assert {str(item.array.type) for item in items} <= {"string", "large_string"}
        assert all(item.array.null_count == 0 and len(item) for item in items)
        assert texts(data) == ["one", "", "drei ü", "four"]
    assert texts(pa.table({"body": array}), text_column="body") == ["one", "", "drei ü", "four"]


def test_arrow_strings_are_not_copied() -> None:
    array = pa.array(["one", "two", "three"])
    (item,) = documents(array[1:])
    assert isinstance(item, ArrowTexts)
    assert item.array.buffers()[2].address == array.buffers()[2].address


def test_column_errors(tmp_path: Path) -> None:
    columns = {"text": [1, 2], "body": ["a", "b"]}
    path = parquet(tmp_path / "a.parquet", **columns)
    table = pa.table(columns)
    for data, where in (path, r"a\.parquet"), (table, "data"), ([table], r"data\[0\]"):
        with pytest.raises(ValueError, match=rf"{where}: no column 'content' among \['body', 'text'\]; .*text_column"):
            list(documents(data, text_column="content"))
        with pytest.raises(
            ValueError, match=rf"{where}: column 'text' must be of type string, got int64; .*text_column"
        ):
            list(documents(data))
    for array in (pa.array([b"bytes"]), pa.array([["a"]]), pa.chunked_array([[1.5]])):
        with pytest.raises(ValueError, match="must be of type string, got"):
            documents(array)


def test_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"text": ["one", None, "two/2"], "n": [1, 2, 3]})
    assert texts(frame) == texts(frame["text"]) == texts([frame["text"]]) == ["one", "two/2"]
    assert texts(frame.rename(columns={"text": "body"}), text_column="body") == ["one", "two/2"]
    with pytest.raises(ValueError, match=r"data\[0\]: no column 'body' among \['n', 'text'\]"):
        documents([frame], text_column="body")
    with pytest.raises(ValueError, match="data: the array must be of type string, got int64"):
        documents(frame["n"])
    mixed = frame.assign(n=["one", 2, 3.0])
    with pytest.raises(ValueError, match=r"data: cannot convert the DataFrame to arrow data; pass only the column"):
        documents(mixed)
    with pytest.raises(ValueError, match=r"data: cannot convert the Series to arrow data; all values must be strings$"):
        documents(mixed["n"])
    assert texts(mixed["text"]) == ["one", "two/2"]


class Exported:
    """Exports a table as a stream, as polars, duckdb and others do."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.data.__arrow_c_stream__(requested_schema)


class ExportedArray:
    """Exports a single array or record batch."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return self.data.__arrow_c_array__(requested_schema)


@pytest.mark.parametrize(
    "type_", [pa.string(), pa.string_view(), pa.dictionary(pa.int32(), pa.large_string())], ids=str
)
def test_exported_arrow_data(type_: Any) -> None:
    column = pa.chunked_array([pa.array(["one", None], type_), pa.array(["zwei ü"], type_)])
    table = pa.table({"n": [1, 2, 3], "text": column})
    batch = table.combine_chunks().to_batches()[0]
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
    exported = [Exported(table), Exported(column), ExportedArray(batch), ExportedArray(batch.column("text")), reader]
    for data in exported:
        assert texts(data) == ["one", "zwei ü"]
    renamed = Exported(table.rename_columns(["n", "body"]))
    assert texts([renamed], text_column="body") == ["one", "zwei ü"]
    assert ChunkCounts.count(renamed, text_column="body") == ChunkCounts.count(["one", "zwei ü"])
    with pytest.raises(ValueError, match=r"data: no column 'text' among \['body', 'n'\]; choose one with text_column"):
        documents(renamed)
    with pytest.raises(ValueError, match="data: column 'n' must be of type string, got int64"):
        documents(Exported(table), text_column="n")
    with pytest.raises(ValueError, match="data: the array must be of type string, got int64"):
        documents(Exported(table["n"]))


def test_broken_export() -> None:
    class Broken:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            raise ValueError("not today")

    with pytest.raises(ValueError, match=r"data\[1\]: cannot convert the Broken to arrow data: not today; all values"):
        documents(["a text", Broken()])


def test_polars() -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"text": ["one", None, "zwei ü"], "n": [1, 2, 3]})
    for data in (frame, frame["text"], frame.with_columns(text=polars.col("text").cast(polars.Categorical))):
        assert texts(data) == ["one", "zwei ü"]
    assert texts(frame.rename({"text": "body"}), text_column="body") == ["one", "zwei ü"]


def test_dataset() -> None:
    datasets = pytest.importorskip("datasets")
    dataset = datasets.Dataset.from_dict({"text": ["one", None, "zwei ü"], "nested": [{"a": 1}] * 3})
    for data in (dataset, dataset.with_format("numpy"), dataset.select([0, 2])):
        assert all(isinstance(item, ArrowTexts) for item in documents(data))
        assert texts(data) == ["one", "zwei ü"]
    assert texts(dataset.rename_column("text", "body"), text_column="body") == ["one", "zwei ü"]
    assert texts(dataset.select([0])["text"]) == ["one"]
    assert len(list(documents(datasets.Dataset.from_dict({"text": ["a"] * 5000})))) == 2
    with pytest.raises(ValueError, match=r"data: no column 'body' among \['nested', 'text'\]"):
        documents(dataset, text_column="body")
    with pytest.raises(ValueError, match="data: column 'nested' must be of type string, got struct"):
        documents(dataset, text_column="nested")


def test_iterable_dataset() -> None:
    datasets = pytest.importorskip("datasets")
    rows = [{"text": "one", "n": 1}, {"text": None, "n": 2}, {"text": "zwei ü", "n": 3}]
    dataset = datasets.IterableDataset.from_generator(lambda: iter(rows))
    assert texts(dataset) == ["one", "zwei ü"]
    with pytest.raises(ValueError, match=r"data, row 0: no field 'body' among \['n', 'text'\]"):
        list(documents(dataset, text_column="body"))
    with pytest.raises(ValueError, match="data, row 0: field 'n' must be of type string, got int"):
        list(documents(dataset, text_column="n"))


def test_dataset_dict() -> None:
    datasets = pytest.importorskip("datasets")
    dataset = datasets.Dataset.from_dict({"text": ["one"]})
    with pytest.raises(TypeError, match=r"data must be one split of the dataset \(train, test\), got 'DatasetDict'"):
        documents(datasets.DatasetDict(train=dataset, test=dataset))

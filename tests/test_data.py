"""Every form of data gives the same documents, and every mistake an error that names it."""

import gzip
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from batchbpe import ChunkCounts
from batchbpe.data import corpus
from batchbpe.data.corpus import CountsFile, TextFile, documents


def texts(data: Any, **options: Any) -> list[str]:
    """All documents of `data` as strings, whatever they came as."""
    found: list[str] = []
    for item in documents(data, **options):
        if isinstance(item, TextFile):
            with item.open() as stream:
                found.append(stream.read().decode())
        else:
            assert isinstance(item, list | pa.Array), item
            found += item if isinstance(item, list) else item.to_pylist()
    return found


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def zstd(path: Path, *frames: bytes) -> Path:
    with path.open("wb") as file:
        for frame in frames:
            sink = pa.BufferOutputStream()
            with pa.CompressedOutputStream(sink, "zstd") as stream:
                stream.write(frame)
            file.write(sink.getvalue())
    return path


def jsonl(path: Path, *records: object) -> Path:
    return write(path, "".join(json.dumps(record) + "\n" for record in records))


def parquet(path: Path, **columns: Any) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize(
    "text",
    [
        "hello world",
        "word",
        "one / two",
        "see a/b for more",
        "notes.txt\nis a file",
        "a/b\r",
        "one\rtwo.txt",
        "nul/\0",
        "http://host/a.txt is a url",
        "字" * 100 + "/" + "字",  # no spaces, but too long for a file's name
        "a/" * 2048,
        "What?",
    ],
)
def test_text(text: str) -> None:
    assert list(documents(text)) == [[text]]
    assert list(documents([text, text])) == [[text, text]]


@pytest.mark.parametrize("text", ["notes.txt", "my notes.md.GZ", "data/corpus", "a.jsonl.zst", "~nobody-here/x"])
def test_string_that_looks_like_a_path(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for data in (text, [text], ("a text", [text])):
        with pytest.raises(FileNotFoundError, match=r"no such file: .*pass iter\(\[text\]\)") as error:
            documents(data)
        assert repr(text) in str(error.value)
    assert list(documents(iter([text]))) == [[text]]


def test_documents_are_not_looked_up_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "paths", lambda *_: pytest.fail("looked up"))
    many = ["a short document, and/or not", "word", "two\nlines/of.txt"] * 10_000
    assert texts(many) == many


def test_nothing() -> None:
    for data in ([], (), iter([]), pa.array([], pa.string())):
        assert list(documents(data)) == []


def test_file_is_one_document(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "one\ntwo\n")
    for data in (str(path), path, [str(path)]):
        (item,) = documents(data)
        assert isinstance(item, TextFile)
        assert item.name == str(path)
        assert texts(data) == ["one\ntwo\n"]


def test_any_path_like(tmp_path: Path) -> None:
    class Place(os.PathLike[str]):
        def __fspath__(self) -> str:
            return str(write(tmp_path / "a.txt", "text"))

    assert texts(Place()) == texts([Place()]) == ["text"]


def test_text_file_can_be_opened_twice(tmp_path: Path) -> None:
    (item,) = documents(write(tmp_path / "a.md", "text"))
    assert isinstance(item, TextFile)
    for _ in range(2):
        with item.open() as stream:
            assert stream.read() == b"text"


def test_unknown_suffix_is_text(tmp_path: Path) -> None:
    assert texts(write(tmp_path / "a.log", "text")) == ["text"]
    assert texts(str(write(tmp_path / "name", "more"))) == ["more"]


def test_path_with_spaces_and_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    write(tmp_path / "my notes.TXT", "text")
    assert texts("~/my notes.TXT") == texts(Path("~/my notes.TXT")) == ["text"]


def test_glob(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", "c.md", "deep/er/d.txt", ".hidden.txt"):
        write(tmp_path / name, name)
    (tmp_path / "directory.txt").mkdir()
    assert texts(f"{tmp_path}/*.txt") == texts(tmp_path / "*.txt") == ["a.txt", "b.txt"]
    assert texts(f"{tmp_path}/**/*.txt") == ["a.txt", "b.txt", "deep/er/d.txt"]
    with pytest.raises(FileNotFoundError, match=r"no file matches the pattern: .*\*\.jsonl"):
        documents(f"{tmp_path}/*.jsonl")


def test_file_whose_name_has_glob_characters(tmp_path: Path) -> None:
    assert texts(str(write(tmp_path / "a[1].txt", "text"))) == ["text"]


def test_directory(tmp_path: Path) -> None:
    for name in ("b.txt", "a/z.md", "a.bin", ".hidden.txt", ".git/c.txt"):
        write(tmp_path / name, name)
    jsonl(tmp_path / "c.jsonl", {"text": "c.jsonl"})
    for data in (tmp_path, f"{tmp_path}/"):
        assert texts(data) == ["a/z.md", "b.txt", "c.jsonl"]


def test_directory_without_known_files(tmp_path: Path) -> None:
    write(tmp_path / "a.bin", "")
    with pytest.raises(FileNotFoundError, match=r"no file with a suffix of .txt .* in the directory"):
        documents(tmp_path)


def test_missing_last_file_fails_before_the_first_is_read(tmp_path: Path) -> None:
    good = write(tmp_path / "a.txt", "text")
    with pytest.raises(FileNotFoundError, match=r"absent\.txt'$"):
        documents([good, tmp_path / "absent.txt"])


def test_compressed_text(tmp_path: Path) -> None:
    one, two = b"one\n" * 500_000, "zwei ü".encode()
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(one) + gzip.compress(two))
    for data in (path, zstd(tmp_path / "a.txt.zst", one, two), zstd(tmp_path / "unknown.zst", one, two)):
        assert texts(data) == [(one + two).decode()]


@pytest.mark.parametrize("damage", ["cut", "header", "middle"])
@pytest.mark.parametrize("name", ["a.txt.gz", "a.txt.zst", "a.jsonl.gz"])
def test_damaged_compressed_file(name: str, damage: str, tmp_path: Path) -> None:
    path = tmp_path / name
    content = "".join(json.dumps({"text": str(n * n)}) + "\n" for n in range(10_000)).encode()
    if name.endswith("gz"):
        path.write_bytes(gzip.compress(content))
    else:
        zstd(path, content)
    whole = path.read_bytes()
    half = len(whole) // 2
    damaged = {"cut": whole[:half], "header": b"x" + whole, "middle": whole[:half] + whole[half + 99 :]}
    path.write_bytes(damaged[damage])
    with pytest.raises(OSError, match=f"cannot read .*{name}"):
        texts(path)


def test_compressed_tables(tmp_path: Path) -> None:
    counts = ChunkCounts.count("to be or not to be")
    pq.write_table(pa.table({"text": ["to be", " or not to be"]}), tmp_path / "text.parquet")
    counts.save(tmp_path / "counts.csv")
    counts.save(tmp_path / "counts.parquet")
    for plain in list(tmp_path.iterdir()):
        whole = plain.read_bytes()
        packed = tmp_path / f"{plain.name}.gz"
        packed.write_bytes(gzip.compress(whole))
        for path in (packed, zstd(tmp_path / f"{plain.name}.ZST", whole)):
            assert ChunkCounts.count(path) == counts
        packed.write_bytes(gzip.compress(whole[:-20]))
        with pytest.raises(ValueError, match=rf"{plain.name}\.gz: "):
            ChunkCounts.count(packed)


def test_columns_of_one_name(tmp_path: Path) -> None:
    table = pa.table([pa.array(["a"]), pa.array(["b"])], names=["text", "text"])
    pq.write_table(table, tmp_path / "a.parquet")
    for data, where in ((table, "data"), (tmp_path / "a.parquet", r"a\.parquet")):
        with pytest.raises(ValueError, match=f"{where}: more than one column has the name 'text'; rename"):
            texts(data)


def test_jsonl(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"text": "ü\\n"}\n\n  \r\n{"text": null}\n{"id": 1, "text": "two"}')
    assert texts(path) == ["ü\n", "two"]
    assert texts(jsonl(path, {"body": "b"}), text_column="body") == ["b"]
    assert texts(zstd(tmp_path / "a.jsonl.zst", path.read_bytes()), text_column="body") == ["b"]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b'{"text": "a"', r"a\.jsonl, line 3: not valid JSON .*each line must be one object"),
        (b"[" * 100_000, r"a\.jsonl, line 3: not valid JSON"),
        (b'"text"', r"a\.jsonl, line 3: not an object with the field 'text'"),
        (b'{"id": 1, "body": ""}', r"a\.jsonl, line 3: no 'text' among \['body', 'id'\]; .*text_column"),
        (b'{"text": 1}', r"a\.jsonl, line 3: 'text' is of type int, not string; .*text_column"),
        (b'{"text": "a\xff"}', r"a\.jsonl, line 3: invalid UTF-8 at byte 28 of the file"),
    ],
)
def test_jsonl_errors(line: bytes, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text": "abc"}\n\n' + line + b"\n")
    stream = documents(path)
    with pytest.raises(ValueError, match=problem):
        list(stream)


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
        assert {str(item.type) for item in items} <= {"string", "large_string"}
        assert all(item.null_count == 0 and len(item) for item in items)
        assert texts(data) == ["one", "", "drei ü", "four"]
    assert texts(pa.table({"body": array}), text_column="body") == ["one", "", "drei ü", "four"]


def test_arrow_strings_are_not_copied() -> None:
    array = pa.array(["one", "two", "three"])
    (item,) = documents(array[1:])
    assert item.buffers()[2].address == array.buffers()[2].address


def test_parquet_comes_in_bounded_batches(tmp_path: Path) -> None:
    path = parquet(tmp_path / "long.parquet", text=[chr(97 + n % 26) * 400_000 + str(n) for n in range(40)])
    pq.write_table(pq.read_table(path), path, compression="none", use_dictionary=False)
    sizes = [item.nbytes for item in documents(path)]
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


def test_column_errors(tmp_path: Path) -> None:
    columns = {"text": [1, 2], "body": ["a", "b"]}
    path = parquet(tmp_path / "a.parquet", **columns)
    table = pa.table(columns)
    for data, where in (path, r"a\.parquet"), (table, "data"), ([table], r"data\[0\]"):
        with pytest.raises(ValueError, match=rf"{where}: no 'content' among \['body', 'text'\]; .*text_column"):
            list(documents(data, text_column="content"))
        with pytest.raises(ValueError, match=rf"{where}: 'text' is of type int64, not string; .*text_column"):
            list(documents(data))
    for array in (pa.array([b"bytes"]), pa.array([["a"]]), pa.chunked_array([[1.5]])):
        with pytest.raises(ValueError, match="not string"):
            documents(array)


def test_damaged_parquet(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", text=["some text"] * 1000)
    whole = path.read_bytes()
    damaged = whole[:20] + bytes(30) + whole[50:]
    for content in (b"", b"no parquet at all", whole[:-30], damaged):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"a\.parquet: cannot be read as parquet"):
            texts(path)


def test_counts_files(tmp_path: Path) -> None:
    csv = write(tmp_path / "a.csv", "a,1\n")
    binary, large = pa.array([b"a"]), pa.array([b"a"], pa.large_binary())
    one = parquet(tmp_path / "1.parquet", chunk=binary, count=pa.array([1], pa.int64()))
    two = parquet(tmp_path / "2.parquet", chunk=large, count=pa.array([1], pa.uint64()))
    marked = tmp_path / "3.parquet"
    pq.write_table(pa.table({"text": ["a"]}).replace_schema_metadata({"batchbpe": "1"}), marked)
    for path in (csv, one, two, marked):
        assert list(documents(str(path))) == [CountsFile(path)]
    other = parquet(tmp_path / "4.parquet", chunk=binary, count=[1], text=["a"])
    assert texts(other) == ["a"]


def test_mapping_is_passed_through() -> None:
    counts = {b"a": 1}
    (item,) = documents(counts)
    assert item is counts


def test_iterables_of_strings_are_documents() -> None:
    strings = ["a.txt", "and/or", "http://127.0.0.1:1/", "*.md"]
    for data in (iter(strings), (text for text in strings), dict.fromkeys(strings).keys()):
        assert texts(data) == strings


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_long_documents_among_short_ones(kind: str, tmp_path: Path) -> None:
    """Rows of a table are read by their average length: what is then too much is cut, and no document is."""
    texts = ["tiny"] * 20_000 + ["long" * 200_000] * 30 + ["longer" * 1_000_000] + [""] * 3
    table = pa.table({"text": texts})
    path = tmp_path / f"a.{kind}"
    if kind == "parquet":
        pq.write_table(table, path)
    else:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    batches = [batch.to_pylist() for batch in documents(path)]
    assert [text for batch in batches for text in batch] == texts
    assert max(sum(map(len, batch)) for batch in batches if len(batch) > 1) <= 4_000_000


def test_empty_documents_are_documents(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": ""}\n' * 3)
    for data in ("", [""], [[], ""]):
        assert list(documents(data)) == [[""]]
    assert list(documents(tmp_path / "a.jsonl")) == [["", "", ""]]


def test_batches_are_bounded_and_lazy() -> None:
    def endless() -> Iterator[str]:
        while True:
            yield "a" * 1_000_000

    assert len(next(documents(endless()))) == 2
    assert [len(batch) for batch in documents(iter(["a"] * 10_000))] == [4096, 4096, 1808]


def test_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"text": ["one", "two/2"]})
    assert texts(frame["text"]) == ["one", "two/2"]
    with pytest.raises(TypeError, match=r"data is a DataFrame.*pass one column"):
        documents(frame)


def test_mixed_list_keeps_the_order(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "file")
    table = pa.table({"text": ["table"]})
    assert texts(["one", "two", str(path), "three", table, ("four", [path]), iter(["x/y"])]) == [
        *("one", "two", "file", "three", "table", "four", "file", "x/y")
    ]
    assert list(documents(["one", {b"a": 1}])) == [["one"], {b"a": 1}]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"text", "data is bytes: decode it"),
        (["a", bytearray(b"b")], r"data\[1\] is bytes: decode it"),
        (None, "data is of type NoneType"),
        (["a", ["b", 3]], r"data\[1\]\[1\] is of type int"),
        (iter(["a", 3]), "document 1 is of type int, not str"),
        (iter([Path("a")]), "document 0 is of type (Posix|Windows)Path, not str"),
    ],
)
def test_type_errors(data: Any, problem: str) -> None:
    with pytest.raises(TypeError, match=problem):
        list(documents(data))


def test_dataset() -> None:
    datasets = pytest.importorskip("datasets")
    dataset = datasets.Dataset.from_dict({"text": ["one", None, "zwei ü"], "nested": [{"a": 1}] * 3})
    for data in (dataset, dataset.with_format("numpy"), dataset.select([0, 2])):
        assert all(isinstance(item, pa.Array) for item in documents(data))
        assert texts(data) == ["one", "zwei ü"]
    assert texts(dataset.rename_column("text", "body"), text_column="body") == ["one", "zwei ü"]
    assert texts(dataset.select([0])["text"]) == ["one"]
    assert len(list(documents(datasets.Dataset.from_dict({"text": ["a"] * 5000})))) == 2
    with pytest.raises(ValueError, match=r"data: no 'body' among \['nested', 'text'\]"):
        documents(dataset, text_column="body")
    with pytest.raises(ValueError, match="data: 'nested' is of type struct"):
        documents(dataset, text_column="nested")


def test_iterable_dataset() -> None:
    datasets = pytest.importorskip("datasets")
    rows = [{"text": "one", "n": 1}, {"text": None, "n": 2}, {"text": "zwei ü", "n": 3}]
    dataset = datasets.IterableDataset.from_generator(lambda: iter(rows))
    assert texts(dataset) == ["one", "zwei ü"]
    with pytest.raises(ValueError, match=r"data, row 0: no 'body' among \['n', 'text'\]"):
        list(documents(dataset, text_column="body"))
    with pytest.raises(ValueError, match="data, row 0: 'n' is of type int"):
        list(documents(dataset, text_column="n"))


def test_dataset_dict() -> None:
    datasets = pytest.importorskip("datasets")
    dataset = datasets.Dataset.from_dict({"text": ["one"]})
    with pytest.raises(TypeError, match="DatasetDict: choose one of its splits: train, test"):
        documents(datasets.DatasetDict(train=dataset, test=dataset))


@pytest.mark.parametrize("opened", [pa.ipc.new_file, pa.ipc.new_stream])
def test_arrow(opened: Any, tmp_path: Path) -> None:
    table = pa.table({"text": ["one", None, "zwei ü"], "n": [1, 2, 3]})
    with opened(tmp_path / "a.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    assert texts(tmp_path / "a.arrow") == ["one", "zwei ü"]
    (tmp_path / "b.arrow.gz").write_bytes(gzip.compress((tmp_path / "a.arrow").read_bytes()))
    assert texts(tmp_path / "b.arrow.gz") == ["one", "zwei ü"]
    with pytest.raises(ValueError, match=r"a\.arrow: no 'body' among \['n', 'text'\]"):
        list(documents(tmp_path / "a.arrow", text_column="body"))
    (tmp_path / "a.arrow").write_bytes((tmp_path / "a.arrow").read_bytes()[:100])
    with pytest.raises(ValueError, match=r"a\.arrow: cannot be read as arrow: "):
        list(documents(tmp_path / "a.arrow"))


def test_nothing_heavy_is_imported():
    code = """if True:
        import sys
        from batchbpe.data import corpus
        list(corpus.documents(["a", {}]))
        print(sorted({"pyarrow", "datasets", "numpy", "http.client"} & set(sys.modules)))
    """
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"

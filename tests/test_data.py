"""Every kind of input yields the same documents, and every mistake raises an error that names it."""

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
from batchbpe.data.corpus import documents
from batchbpe.data.documents import ArrowTexts, Counts, Documents, TextFile, Texts


def texts(data: Any, **options: Any) -> list[str]:
    """Return all documents of `data` as strings."""
    return [text for batch in documents(data, **options) for text in strings(batch)]


def strings(batch: Documents) -> list[str]:
    match batch:
        case TextFile():
            with batch.open() as stream:
                return [stream.read().decode()]
        case ArrowTexts(array):
            return array.to_pylist()
        case Texts(found):
            return found
    raise AssertionError(batch)


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
        "字" * 100 + "/" + "字",  # no spaces, but too long for a file name
        "a/" * 2048,
        "What?",
    ],
)
def test_text(text: str) -> None:
    assert list(documents(text)) == [Texts([text])]
    assert list(documents([text, text])) == [Texts([text, text])]


@pytest.mark.parametrize("text", ["notes.txt", "my notes.md.GZ", "data/corpus", "a.jsonl.zst", "~nobody-here/x"])
def test_string_that_looks_like_a_path(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"file not found: .*; if this is text, pass it as texts=$") as error:
        documents(text)
    assert repr(text) in str(error.value)
    assert list(documents(iter([text]))) == [Texts([text])]


def test_lists_of_texts_are_not_looked_up_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "paths", lambda *_: pytest.fail("looked up on disk"))
    many = ["a short document, and/or not", "word", "two\nlines/of.txt"] * 10_000
    assert texts(many) == many


@pytest.mark.parametrize(
    "data",
    [
        ["/etc/hostname", "a text"],
        ["/etc/hostname"],
        ["http://127.0.0.1:1/page"],
        ["http://[host]/a"],
        ["/"],
        ["."],
        ["~", "and/or"],
        ["/etc/*"],
        [["/"], ("/etc/hostname",)],
    ],
    ids=str,
)
def test_strings_in_lists_are_texts(data: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "paths", lambda *_: pytest.fail("opened"))
    expected = [text for item in data for text in ([item] if isinstance(item, str) else item)]
    assert texts(data) == expected
    assert texts(tuple(data)) == expected


@pytest.mark.parametrize(
    ("data", "doubtful"),
    [
        (["a text", "notes.txt"], "notes.txt"),
        (["data/*.parquet", "and/or"], "data/*.parquet"),
        (["/etc/hostname", "http://127.0.0.1:1/a.jsonl.gz?x=y"], "http://127.0.0.1:1/a.jsonl.gz?x=y"),
    ],
)
def test_texts_in_lists_that_look_like_files(data: list[str], doubtful: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "paths", lambda *_: pytest.fail("opened"))
    problem = "in a list looks like a file, but is used as a text like the other strings; pass files= or texts="
    with pytest.warns(UserWarning, match=problem) as warned:
        assert texts(data) == data
    assert [str(warning.message).startswith(repr(doubtful)) for warning in warned] == [True]


def test_lists_of_files(tmp_path: Path) -> None:
    one, two = write(tmp_path / "my notes.txt", "one"), write(tmp_path / "b.MD", "two")
    table = parquet(tmp_path / "c.parquet", text=["three"])
    for data in ([str(one), str(two)], (str(one), f"{tmp_path}/*.MD"), [one, two], [[str(one)], [str(two)]]):
        assert texts(data) == ["one", "two"]
    assert texts([str(one), str(table), two]) == ["one", "three", "two"]  # only the strings decide
    for data in ([str(one), "absent.txt"], ["absent.txt"], [str(one), str(tmp_path / "*.csv")], [["absent.txt"]]):
        with pytest.raises(
            FileNotFoundError, match=r"'.*(absent\.txt|\*\.csv)'; if the strings are text, pass them as texts=$"
        ):
            documents(data)


def test_texts_keyword() -> None:
    names = ["notes.txt", "/", "https://127.0.0.1:1/a.txt"]
    for given in (names, tuple(names), iter(names), dict.fromkeys(names).keys()):
        assert texts(corpus.choose(None, given, None)) == names
    assert texts(corpus.choose(None, "notes.txt", None)) == ["notes.txt"]
    assert ChunkCounts.count(texts="notes.txt") == ChunkCounts.count(texts=iter(["notes.txt"]))
    assert dict(ChunkCounts.count(texts=["a.txt", "a.md"])) == {"a": 2, ".txt": 1, ".md": 1}
    for wrong in ({"a": 1}, ChunkCounts.count("a"), pa.table({"text": ["a"]})):  # iterating over them gives names
        with pytest.raises(TypeError, match=r"texts must be strings, got .*; use data"):
            ChunkCounts.count(texts=wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"document 1 must be a str, got (Posix|Windows)Path"):
        ChunkCounts.count(texts=["a", Path("b")])  # type: ignore[list-item]


def test_an_existing_file_without_a_suffix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "enwik", "one two")
    assert texts("enwik") == ["one two"] and texts(["enwik", "other"]) == ["enwik", "other"]


@pytest.mark.parametrize("files", ["", [""]])
def test_an_empty_path_is_not_the_current_folder(files: Any) -> None:
    with pytest.raises(ValueError, match="files must not contain an empty path, got ''"):
        ChunkCounts.count(files=files)


def test_files_keyword(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "notes", "one")
    write(tmp_path / "folder/a.txt", "two")
    for given in ("notes", Path("notes"), ["notes"], [Path("notes")], iter(["not*"])):
        assert ChunkCounts.count(files=given) == ChunkCounts.count("one")
    assert texts(corpus.choose(None, None, ["folder", "notes"])) == ["two", "one"]
    with pytest.raises(FileNotFoundError, match=r"^file not found: 'a text'$"):
        ChunkCounts.count(files=["notes", "a text"])
    for wrong in (3, [b"notes"], ["notes", None], [["notes"]]):
        with pytest.raises(TypeError, match="files must be paths, globs, directories or urls, got"):
            ChunkCounts.count(files=wrong)  # type: ignore[arg-type]


def test_one_of_data_texts_and_files() -> None:
    with pytest.raises(TypeError, match="pass exactly one of data, texts and files; got none"):
        ChunkCounts.count()
    with pytest.raises(TypeError, match=r"pass exactly one of data, texts and files; got data and texts$"):
        ChunkCounts.count("a", texts="b")
    with pytest.raises(TypeError, match=r"got data and texts and files$"):
        ChunkCounts.count("a", texts=[], files=[])
    assert ChunkCounts.count(texts=[]).total == ChunkCounts.count(files=[]).total == 0


def test_string_that_is_an_existing_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert texts("data") == ["data"]
    write(tmp_path / "data/a.txt", "a file")
    assert texts("data") == ["a file"]
    assert texts(["data"]) == texts(iter(["data"])) == ["data"]
    for text in ("", "\0", "a\ud800", "字" * 100, "a" * 5000):
        assert texts(text) == [text]


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


def test_path_like_object(tmp_path: Path) -> None:
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
    with pytest.raises(FileNotFoundError, match=r"no \.txt, .* file in the folder: "):
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


def test_columns_with_the_same_name(tmp_path: Path) -> None:
    table = pa.table([pa.array(["a"]), pa.array(["b"])], names=["text", "text"])
    pq.write_table(table, tmp_path / "a.parquet")
    for data, where in ((table, "data"), (tmp_path / "a.parquet", r"a\.parquet")):
        with pytest.raises(ValueError, match=f"{where}: several columns are named 'text'; rename"):
            texts(data)


def test_jsonl(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"text": "ü\\n"}\n\n  \r\n{"text": null}\n{"id": 1, "text": "two"}')
    assert texts(path) == ["ü\n", "two"]
    assert texts(jsonl(path, {"body": "b"}), text_column="body") == ["b"]
    assert texts(zstd(tmp_path / "a.jsonl.zst", path.read_bytes()), text_column="body") == ["b"]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b'{"text": "a"', r"a\.jsonl, line 3: invalid JSON .*each line must be one object"),
        (b"[" * 100_000, r"a\.jsonl, line 3: invalid JSON"),
        (b'"text"', r"a\.jsonl, line 3: expected an object with the field 'text'"),
        (b'{"id": 1, "body": ""}', r"a\.jsonl, line 3: no field 'text' among \['body', 'id'\]; .*text_column"),
        (b'{"text": 1}', r"a\.jsonl, line 3: field 'text' must be of type string, got int; .*text_column"),
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
        assert {str(item.array.type) for item in items} <= {"string", "large_string"}
        assert all(item.array.null_count == 0 and len(item) for item in items)
        assert texts(data) == ["one", "", "drei ü", "four"]
    assert texts(pa.table({"body": array}), text_column="body") == ["one", "", "drei ü", "four"]


def test_arrow_strings_are_not_copied() -> None:
    array = pa.array(["one", "two", "three"])
    (item,) = documents(array[1:])
    assert isinstance(item, ArrowTexts)
    assert item.array.buffers()[2].address == array.buffers()[2].address


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


def test_damaged_parquet(tmp_path: Path) -> None:
    path = parquet(tmp_path / "a.parquet", text=["some text"] * 1000)
    whole = path.read_bytes()
    for content in (b"", b"not a parquet file", whole[:-30]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"a\.parquet: cannot be read as parquet"):
            texts(path)
    path.write_bytes(whole[:20] + bytes(30) + whole[50:])
    with pytest.raises(ValueError, match=r"a\.parquet: the page at byte \d+ is malformed: field 1 is missing"):
        texts(path)


def test_counts_files(tmp_path: Path) -> None:
    csv = write(tmp_path / "a.csv", "a,1\n")
    binary, large = pa.array([b"a"]), pa.array([b"a"], pa.large_binary())
    one = parquet(tmp_path / "1.parquet", chunk=binary, count=pa.array([1], pa.int64()))
    two = parquet(tmp_path / "2.parquet", chunk=large, count=pa.array([1], pa.uint64()))
    marked = tmp_path / "3.parquet"
    pq.write_table(pa.table({"text": ["a"]}).replace_schema_metadata({"batchbpe": "1"}), marked)
    for path in (csv, one, two, marked):
        assert list(documents(str(path))) == [Counts(path)]
    other = parquet(tmp_path / "4.parquet", chunk=binary, count=[1], text=["a"])
    assert texts(other) == ["a"]


def test_mapping_is_passed_through() -> None:
    counts = {b"a": 1}
    (item,) = documents(counts)
    assert isinstance(item, Counts)
    assert item.source is counts


def test_iterables_of_strings_are_documents() -> None:
    strings = ["a.txt", "and/or", "http://127.0.0.1:1/", "*.md"]
    for data in (iter(strings), (text for text in strings), dict.fromkeys(strings).keys()):
        assert texts(data) == strings


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


def test_empty_documents_are_documents(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": ""}\n' * 3)
    for data in ("", [""], [[], ""]):
        assert list(documents(data)) == [Texts([""])]
    assert list(documents(tmp_path / "a.jsonl")) == [Texts(["", "", ""])]


def test_batches_are_bounded_and_lazy() -> None:
    def endless() -> Iterator[str]:
        while True:
            yield "a" * 1_000_000

    assert len(next(documents(endless()))) == 2
    assert [len(batch) for batch in documents(iter(["a"] * 10_000))] == [4096, 4096, 1808]


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
    with pytest.raises(ValueError, match=r"data: cannot import the arrow data of a DataFrame: .*pass only the column"):
        documents(mixed)
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

    with pytest.raises(ValueError, match=r"data\[1\]: cannot import the arrow data of a Broken: not today; pass only"):
        documents(["a text", Broken()])


def test_polars() -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"text": ["one", None, "zwei ü"], "n": [1, 2, 3]})
    for data in (frame, frame["text"], frame.with_columns(text=polars.col("text").cast(polars.Categorical))):
        assert texts(data) == ["one", "zwei ü"]
    assert texts(frame.rename({"text": "body"}), text_column="body") == ["one", "zwei ü"]


def test_mixed_list_keeps_the_order(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "file")
    table = pa.table({"text": ["table"]})
    assert texts(["one", "two", path, "three", table, ("four", [str(path)]), iter(["x/y"])]) == [
        *("one", "two", "file", "three", "table", "four", "file", "x/y")
    ]
    assert list(documents(["one", {b"a": 1}])) == [Texts(["one"]), Counts({b"a": 1})]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"text", "data must not be bytes, got b'text'; decode them"),
        (["a", bytearray(b"b")], r"data\[1\] must not be bytes, got b'b'; decode them"),
        (None, "data must be text, a path, counts, a table, or an iterable of strings, got None"),
        (["a", ["b", 3]], r"data\[1\]\[1\] must be text, .*, got 3"),
        (iter(["a", 3]), "document 1 must be a str, got int"),
        (iter([{"text": "a"}]), r'document 0 must be a str, got dict; pass \(row\["text"\] for row in rows\)'),
        (iter([Path("a")]), "document 0 must be a str, got (Posix|Windows)Path"),
    ],
)
def test_type_errors(data: Any, problem: str) -> None:
    with pytest.raises(TypeError, match=problem):
        list(documents(data))


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
    with pytest.raises(ValueError, match=r"a\.arrow: cannot be read as arrow: "):
        list(documents(tmp_path / "a.arrow"))


def test_nothing_heavy_is_imported(tmp_path: Path) -> None:
    code = f"""if True:
        import sys
        import batchbpe
        heavy = {{"pyarrow", "pandas", "datasets", "http.client"}}
        print(sorted((heavy | {{"numpy"}}) & set(sys.modules)))
        from batchbpe.data import corpus
        for batch in corpus.documents(["a", {{}}, corpus.Path({str(write(tmp_path / "a.txt", "text"))!r})]):
            if hasattr(batch, "open"):
                batch.open().read()
        print(sorted(heavy & set(sys.modules)))
    """
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n[]\n"

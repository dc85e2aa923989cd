"""Text files, jsonl, compressed files and files of counts: their documents and their errors."""

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from data_files import documents, jsonl, parquet, texts, write, zstd

from batchbpe import ChunkCounts
from batchbpe.data.documents import Counts, TextFile, Texts


def test_file_is_one_document(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "one\ntwo\n")
    for data in (str(path), path, [str(path)]):
        (item,) = documents(data)
        assert isinstance(item, TextFile)
        assert item.name == str(path)
        assert texts(data) == ["one\ntwo\n"]


def test_text_file_can_be_opened_twice(tmp_path: Path) -> None:
    (item,) = documents(write(tmp_path / "a.md", "text"))
    assert isinstance(item, TextFile)
    for _ in range(2):
        with item.open() as stream:
            assert stream.read() == b"text"


def test_unknown_suffix_is_text(tmp_path: Path) -> None:
    assert texts(write(tmp_path / "a.log", "text")) == ["text"]
    assert texts(str(write(tmp_path / "name", "more"))) == ["more"]


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
    codec = "gzip" if name.endswith("gz") else "zstd"
    with pytest.raises(OSError, match=f"cannot read .*{name}: not a {codec} file, or damaged$"):
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
        with pytest.raises(ValueError, match=rf"{plain.name}\.gz[:,] "):
            ChunkCounts.count(packed)


def test_jsonl(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"text": "ü\\n"}\n\n  \r\n{"text": null}\n{"id": 1, "text": "two"}')
    assert texts(path) == ["ü\n", "two"]
    assert texts(jsonl(path, {"body": "b"}), text_column="body") == ["b"]
    assert texts(zstd(tmp_path / "a.jsonl.zst", path.read_bytes()), text_column="body") == ["b"]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (
            b'{"text": "a"',
            r"line 3: invalid JSON at character 13 \(expecting ',' delimiter\); each line must be one object",
        ),
        (b'{"text": "a', r"line 3: invalid JSON at character 11 \(invalid control character\);"),
        (b"[" * 100_000, r"line 3: invalid JSON \(nested too deeply\);"),
        (b'{"text": ' + b"1" * 5000 + b"}", r"line 3: invalid JSON \(a number has too many digits\);"),
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


def test_empty_documents_are_documents(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": ""}\n' * 3)
    for data in ("", [""], [[], ""]):
        assert list(documents(data)) == [Texts([""])]
    assert list(documents(tmp_path / "a.jsonl")) == [Texts(["", "", ""])]

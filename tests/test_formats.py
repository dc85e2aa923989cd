"""Files of chunk counts: loading restores what was saved, and damaged files raise an error that says why."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchbpe import PATTERNS, ChunkCounts

CHUNKS = {
    '"': 2**64 - 1,
    '""': 2**63,
    '"a,b"': 7,
    ",": 6,
    ",,": 6,
    "\n": 5,
    "\r\n": 5,
    "\r": 5,
    " \n": 4,
    "\n\n": 4,
    "\r\n\r\n": 3,
    "\0": 3,
    "a\0b": 3,
    " lead": 3,
    "  ": 2,
    "\t": 2,
    "trail ": 2,
    "é語😀": 2,
    "NULL": 1,
    "nan": 1,
    "#": 1,
    "\\n": 1,
    "'": 1,
    "0": 1,
    "1,2": 1,
    "\ufeff": 1,
    "x" * 2_000_000: 1,
    "text_chunk": 1,
    "\u2028": 1,
}
SUFFIXES = ["csv", "parquet"]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("pattern", [PATTERNS["gpt4"], '\\w+|[,"\n\r]| (?# "a",b)'])
def test_counts(suffix: str, pattern: str, tmp_path: Path) -> None:
    counts = ChunkCounts.count(CHUNKS, pattern)
    assert counts.pattern == pattern
    path = tmp_path / f"counts.{suffix}"
    counts.save(path)
    again = ChunkCounts.load(path)
    assert again == counts
    assert again.most_common() == counts.most_common()
    assert ChunkCounts.count(str(path)) == counts
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@given(chunks=st.dictionaries(st.text(min_size=1, max_size=9), st.integers(1, 2**64 - 1), max_size=20))
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_hyp_counts(suffix: str, chunks: dict[str, int], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("counts") / f"counts.{suffix}"
    counts = ChunkCounts.count(chunks)
    counts.save(path)
    assert ChunkCounts.load(path) == counts


def test_invalid_utf8(tmp_path: Path) -> None:
    counts = ChunkCounts.count({b"\xff\xfe": 3, b"a": 1})
    counts.save(tmp_path / "a.parquet")
    assert ChunkCounts.load(tmp_path / "a.parquet") == counts
    with pytest.raises(ValueError, match=r"chunk b'\\xff\\xfe' is not valid UTF-8, .* save as \.parquet"):
        counts.save(tmp_path / "a.csv")
    assert [file.name for file in tmp_path.iterdir()] == ["a.parquet"]


@pytest.mark.parametrize("header", ["text_chunk,count", "str,int"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_csv_of_the_paper(header: str, end: str, tmp_path: Path) -> None:
    rows = [header, " the,10", "a,20", '"x,""y""",5', '"\r\n",3', " the,1", f'"{PATTERNS["gpt2"]}",0', ""]
    path = tmp_path / "a.csv"
    path.write_text(end.join(rows), newline="")
    counts = ChunkCounts.load(path)
    assert counts.most_common() == [("a", 20), (" the", 11), ('x,"y"', 5), ("\r\n", 3)]
    assert counts.pattern == PATTERNS["gpt2"]


def test_parquet_metadata(tmp_path: Path) -> None:
    ChunkCounts.count("to be or not to be").save(tmp_path / "a.parquet")
    schema = pq.read_schema(tmp_path / "a.parquet")
    assert [(field.name, str(field.type)) for field in schema] == [("chunk", "large_binary"), ("count", "uint64")]
    assert json.loads(schema.metadata[b"batchbpe"]) == {
        "version": 1,
        "pattern": PATTERNS["gpt4"],
        "total": 6,
        "unique": 5,
    }


def rows(*lines: str) -> bytes:
    return ("\n".join(["text_chunk,count", *lines]) + "\n").encode()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", 'expected the header text_chunk,count or str,int, got ""'),
        (
            b"chunk,n\na,1\nx,0\n",
            'not a file of chunk counts: expected .* got "chunk,n"; if these are documents, save',
        ),
        (b"a,1\nx,0\n", 'expected the header .* got "a,1"'),
        (rows(), "truncated: its last row must be the pattern with the count 0; add that row"),
        (rows("a,1", "b,2"), "truncated: its last row must be the pattern"),
        (rows("a,-1", "x,0"), r'line 2: the count must be an integer from 0 to 2\*\*64 - 1, got "-1"'),
        (rows("b,1", "a,18446744073709551616", "x,0"), 'line 3: the count .* got "18446744073709551616"'),
        (rows("a,1.5", "x,0"), 'the count must be an integer .* got "1.5"'),
        (rows("a,one", "x,0"), 'the count must be an integer .* got "one"'),
        (rows("a,", "x,0"), 'the count must be an integer .* got ""'),
        (rows("a,1,2", "x,0"), r"csv, line 2: expected 2 fields \(chunk and count\), got 3"),
        (rows("a", "x,0"), r"line 2: expected 2 fields .* got 1"),
        (rows("a,1", '"x,0'), r"line 3: expected 2 fields .* got 1"),
        (rows("a,1", "x,0", "b,2"), r'line 4: unexpected row after the final one \(pattern "x", count 0\)'),
        (rows(",3", "x,0"), "empty chunk"),
        (rows("a,1", "(,0"), r"""csv, field "pattern": must be a supported regular expression, got '\('"""),
        (b"text_chunk,count\na\xff,1\nx,0\n", "UTF-?8|utf-8"),
        (b"\xff\xfe,count\nx,0\n", "UTF-?8|utf-8|header"),
        (b"PAR1\0\1\2", "header"),
    ],
)
def test_damaged_csv(content: bytes, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"(?s)bad\..*({problem})"):
        ChunkCounts.load(path)


def test_truncated_csv(tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    ChunkCounts.count('some "quoted", text\r\nwith lines\n\nand 10, 20', "gpt2").save(path)
    whole = path.read_bytes()
    for size in range(len(whole) - 2):  # a file without its last newline is still complete
        path.write_bytes(whole[:size])
        with pytest.raises(ValueError, match=r"bad\.csv"):
            ChunkCounts.load(path)


def parquet(path: Path, metadata: Any, **columns: Any) -> None:
    file_metadata = metadata if isinstance(metadata, dict | type(None)) else {"batchbpe": metadata}
    pq.write_table(pa.table(columns).replace_schema_metadata(file_metadata), path)


GOOD = json.dumps({"version": 1, "pattern": "x", "total": 1, "unique": 1})
COLUMNS: dict[str, Any] = {"chunk": pa.array([b"a"]), "count": pa.array([1], pa.uint64())}


@pytest.mark.parametrize(
    ("metadata", "columns", "problem"),
    [
        (None, COLUMNS, "not a file of chunk counts: the metadata has no valid key 'batchbpe'; create one with"),
        ("{", COLUMNS, "no valid key 'batchbpe'"),
        ("[]", COLUMNS, "no valid key 'batchbpe'"),
        ("{}", COLUMNS, "no valid key 'batchbpe'; create one with batchbpe count$"),
        ('{"version": 1}', COLUMNS, "the pattern must be a string or an object, got None"),
        ('{"version": 3}', COLUMNS, "version must be from 1 to 2, got 3; upgrade batchbpe"),
        ('{"version": 1, "pattern": 3}', COLUMNS, "the pattern must be a string or an object, got 3"),
        (
            GOOD,
            {"chunk": COLUMNS["chunk"]},
            r"expected the columns chunk \(binary\) and count \(uint64\), got chunk \(",
        ),
        (GOOD, COLUMNS | {"count": pa.array([-1])}, "the columns are damaged or contain invalid numbers"),
        (GOOD, COLUMNS | {"count": pa.array(["x"])}, r"expected .*, got chunk \(binary\), count \(string\)"),
        (GOOD, COLUMNS | {"count": pa.array([1.5])}, r"got chunk \(binary\), count \(double\)"),
        (GOOD, COLUMNS | {"chunk": pa.array([3])}, r"got chunk \(int64\), count \(uint64\)"),
        (GOOD, COLUMNS | {"count": pa.array([None], pa.uint64())}, "the columns contain nulls; count again"),
        (GOOD, COLUMNS | {"chunk": pa.array([None], pa.binary())}, "damaged|null|empty chunk"),
        (GOOD, COLUMNS | {"chunk": pa.array([b""])}, "empty chunk"),
    ],
)
def test_wrong_parquet(metadata: Any, columns: dict[str, Any], problem: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.parquet"
    parquet(path, metadata, **columns)
    with pytest.raises(ValueError, match=rf"bad\.parquet.*({problem})"):
        ChunkCounts.load(path)


def test_damaged_parquet(tmp_path: Path) -> None:
    path = tmp_path / "bad.parquet"
    ChunkCounts.count({str(n): n for n in range(1, 5000)}).save(path)
    whole = path.read_bytes()
    path.write_bytes(b"text_chunk,count")
    with pytest.raises(ValueError, match=r"bad\.parquet: not a parquet file, or damaged"):
        ChunkCounts.load(path)
    for content in (b"", b"PAR1", whole[:-20], whole[: len(whole) // 2], whole[:100] + bytes(300) + whole[400:]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"bad\.parquet"):
            ChunkCounts.load(path)


def test_parquet_with_wrong_totals(tmp_path: Path) -> None:
    path = tmp_path / "bad.parquet"
    parquet(path, json.dumps({"version": 1, "pattern": "x", "total": 9, "unique": 5}), **COLUMNS)
    with pytest.raises(ValueError, match=r"bad\.parquet"):
        ChunkCounts.load(path)

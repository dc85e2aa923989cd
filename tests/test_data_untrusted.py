"""Data from outside is checked before it is used: damage, size, and UTF-8."""

import gzip
import io
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_data import strings

from batchbpe import ChunkCounts, Tokenizer
from batchbpe.analysis.groups import by_column
from batchbpe.arrow import bytes_and_offsets
from batchbpe.counting import load_counts
from batchbpe.data import arrow_strings, parquet_pages
from batchbpe.data.corpus import documents, sources
from batchbpe.data.options import ReadOptions, default_max_document_bytes
from batchbpe.jobs.count import CountOptions, count_files
from batchbpe.jobs.encode import encode_files
from batchbpe.jobs.ids import load_ids

sys.path.insert(0, str(Path(__file__).parent / "fuzz"))
from mutants import mutants

MB = 1 << 20


def arrow(path: Path, column: Any, *, stream: bool = False, compression: str | None = None, **others: Any) -> Path:
    table = pa.table({**others, "text": column})
    new: Any = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(path, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table)
    return path


def overwrite(path: Path, old: bytes, new: bytes) -> Path:
    data = path.read_bytes()
    assert data.count(old) == 1 and len(old) == len(new), data.count(old)
    path.write_bytes(data.replace(old, new))
    return path


def texts(data: Any, **options: Any) -> list[str]:
    return [text for batch in documents(data, **options) for text in strings(batch)]


def bad_offset(path: Path, nulls: bool) -> Path:
    """Write three strings, one offset of which points outside of the data."""
    middle = None if nulls else ""
    arrow(path, pa.array(["aaaa", middle, "bbbb"]))
    return overwrite(path, struct.pack("<4i", 0, 4, 4, 8), struct.pack("<4i", 0, -(2**31), 4, 8))


def bad_view(path: Path) -> Path:
    arrow(path, pa.array(["x" * 40, None, "y" * 40], pa.string_view()))
    return overwrite(path, struct.pack("<i4sii", 40, b"yyyy", 0, 40), struct.pack("<i4sii", 40, b"yyyy", 0, 2**30))


def bad_index(path: Path) -> Path:
    indices = pa.array([0, 1, None, 0, 1, 0], pa.int32())
    arrow(path, pa.DictionaryArray.from_arrays(indices, pa.array(["one", "two"])))
    return overwrite(path, struct.pack("<6i", 0, 1, 0, 0, 1, 0), struct.pack("<6i", 0, 1, 0, 0, 2**24, 0))


def bad_null_count(path: Path) -> Path:
    """Write 77 rows of which half are null, with a null count of 1."""
    column = pa.array(["a", None] * 38 + ["b"])
    return overwrite(arrow(path, column), struct.pack("<qq", 77, 38), struct.pack("<qq", 77, 1))


DAMAGE: list[Callable[[Path], Path]] = [
    lambda path: bad_offset(path, nulls=True),
    lambda path: bad_offset(path, nulls=False),
    bad_view,
    bad_index,
    bad_null_count,
]


@pytest.mark.parametrize("damage", DAMAGE, ids=["offset-null", "offset", "view", "index", "null-count"])
def test_damaged_arrow_file_is_an_error(damage: Callable[[Path], Path], tmp_path: Path) -> None:
    path = damage(tmp_path / "bad.arrow")
    good = tmp_path / "good.txt"
    good.write_text("to be")
    # In a process of its own, because the failure would be a segmentation fault.
    code = f"""if True:
        from pathlib import Path
        from batchbpe import Tokenizer
        from batchbpe.data.corpus import sources
        from batchbpe.jobs.count import CountOptions, count_files
        from batchbpe.jobs.encode import encode_files
        folder = Path({str(tmp_path)!r})
        given = [folder / "bad.arrow", folder / "good.txt"]
        for sample in (1.0, 0.9):
            report = count_files(sources(given), folder / "o.csv", CountOptions(sample=sample), skip_errors=True)
            print(report.total, report.failed)
        tokenizer = Tokenizer.train("aab", 257)
        print(encode_files(tokenizer, sources(given), folder / "shards", skip_errors=True).failed)
    """
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert child.returncode == 0, child.stderr
    lines = child.stdout.splitlines()
    assert len(lines) == 3 and all("bad.arrow: the column is damaged" in it for it in lines)
    assert lines[0].startswith("2 ")
    with pytest.raises(ValueError, match=r"bad\.arrow: the column is damaged"):
        ChunkCounts.count(path)


def test_damaged_arrays_in_memory() -> None:
    offsets = pa.py_buffer(np.array([0, -(2**31), 4, 8], np.int32))
    bits = pa.py_buffer(bytes([0b101]))
    array = pa.StringArray.from_buffers(3, offsets, pa.py_buffer(b"aaaabbbb"), bits)
    for data in (array, pa.table({"text": array}), pa.chunked_array([array])):
        with pytest.raises(ValueError, match="the column is damaged"):
            ChunkCounts.count(data)
    wrong = pa.DictionaryArray.from_arrays(pa.array([0, 5]), pa.array(["a"]), safe=False)
    with pytest.raises(ValueError, match="index 5 into a dictionary of 1 entries"):
        ChunkCounts.count(wrong)


def test_damaged_group_column(tmp_path: Path) -> None:
    path = arrow(tmp_path / "a.arrow", pa.array(["one", "two", "three"]), lang=pa.array(["aaaa", None, "bbbb"]))
    overwrite(path, struct.pack("<4i", 0, 4, 4, 8), struct.pack("<4i", 0, -(2**31), 4, 8))
    assert texts(path) == ["one", "two", "three"]  # other columns are not read
    with pytest.raises(ValueError, match=r"a\.arrow: .*the column is damaged"):
        list(by_column(sources(path), "lang", ReadOptions()))


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


CHILD = """if True:
    import re, sys
    from pathlib import Path
    from batchbpe.data.corpus import sources
    from batchbpe.jobs.count import CountOptions, count_files

    folder, path, options = Path(sys.argv[1]), Path(sys.argv[2]), CountOptions(pattern=sys.argv[3])
    given = sources(path, max_document_bytes=20_000_000)
    report = count_files(given, folder / "o.csv", options, skip_errors=True, max_memory=320_000_000)
    # Not getrusage: its peak includes the memory of the parent process before exec.
    print(1024 * int(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1]), report.failed)
"""


def gzipped(path: Path, head: bytes, middle: bytes, tail: bytes, megabytes: int) -> Path:
    block = middle * (MB // len(middle))
    with gzip.open(path, "wb", 1) as file:
        file.write(head)
        for _ in range(megabytes):
            file.write(block)
        file.write(tail)
    return path


def parquet(path: Path, column: Any, **options: Any) -> Path:
    pq.write_table(pa.table({"text": column}), path, write_statistics=False, **options)
    return path


def many_megabytes(rows: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array(["a" * MB]))


DELTA: dict[str, Any] = {"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY"}}
BOMBS: dict[str, tuple[Callable[[Path], Path], str]] = {
    "text": (lambda path: gzipped(path / "a.txt.gz", b"", b"a", b"", 600), "no place to cut the"),
    "pattern": (lambda path: gzipped(path / "a.txt.gz", b"", b"lorem i\n", b"", 600), "no place to cut the"),
    "jsonl": (lambda path: gzipped(path / "a.jsonl.gz", b'{"text": "', b"a", b'"}', 600), "line 1: the line at byte 0"),
    "parquet": (lambda path: parquet(path / "a.parquet", many_megabytes(1200), store_schema=False), ""),
    "parquet-dictionary": (lambda path: parquet(path / "a.parquet", many_megabytes(1200)), ""),
    "parquet-delta": (lambda path: parquet(path / "a.parquet", ["a" * MB] * 300, **DELTA), ""),
    "parquet-page": (
        lambda path: parquet(path / "a.parquet", ["a" * (600 * MB)], use_dictionary=False, compression="zstd"),
        "a page has 629145610 bytes",
    ),
    "arrow": (
        lambda path: arrow(path / "a.arrow", pa.array(["a" * MB] * 1000), compression="zstd"),
        "a record batch has",
    ),
    "arrow-dictionary": (lambda path: arrow(path / "a.arrow", many_megabytes(1200), stream=True), ""),
    "arrow-dictionaries": (
        lambda path: arrow(path / "a.arrow", pa.array(["a" * (600 * MB)]).dictionary_encode(), compression="zstd"),
        "dictionaries have",
    ),
}


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak memory from /proc")
@pytest.mark.parametrize("name", BOMBS)
def test_memory_is_bounded(name: str, tmp_path: Path) -> None:
    make, problem = BOMBS[name]
    pattern = r"\w+|\W" if name == "pattern" else "gpt4"
    run = [sys.executable, "-c", CHILD, str(tmp_path), str(make(tmp_path)), pattern]
    child = subprocess.run(run, capture_output=True, text=True)
    assert child.returncode == 0, child.stderr
    peak, _, failed = child.stdout.partition(" ")
    assert problem in failed if problem else failed == "{}\n", failed
    assert int(peak) < 480_000_000, failed


def test_largest_document(tmp_path: Path) -> None:
    words = ["short", None, "x" * 1000, "y" * 1001]
    dictionary = pa.array(words).dictionary_encode()
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "a"}\n\n{"text": "%s"}\n' % (b"x" * 1001))
    pq.write_table(pa.table({"text": words}), tmp_path / "a.parquet", row_group_size=1)
    pq.write_table(pa.table({"text": dictionary}), tmp_path / "b.parquet")
    arrow(tmp_path / "a.arrow", pa.array(words))
    arrow(tmp_path / "b.arrow", pa.array(words, pa.string_view()), stream=True)
    arrow(tmp_path / "c.arrow", dictionary)
    for name in ("a.parquet", "b.parquet", "a.arrow", "b.arrow", "c.arrow"):
        assert texts(tmp_path / name, max_document_bytes=1001) == [words[0], *words[2:]]
        problem = rf"{name}: row 3 has 1001 bytes, more than max_document_bytes=1000; raise the limit or split"
        with pytest.raises(ValueError, match=problem):
            texts(tmp_path / name, max_document_bytes=1000)
    ChunkCounts.count(tmp_path / "a.jsonl", max_document_bytes=1014)
    with pytest.raises(ValueError, match=r"a\.jsonl, line 3: the line at byte 15 .*max_document_bytes=1000; raise"):
        ChunkCounts.count(tmp_path / "a.jsonl", max_document_bytes=1000)
    with pytest.raises(ValueError, match=r"max_document_bytes must be at least 1, got 0"):
        documents("a", max_document_bytes=0)
    assert default_max_document_bytes(None) == default_max_document_bytes(1 << 40) == 1 << 30


@pytest.mark.parametrize("errors", ["strict", "replace"])
def test_stretch_of_text(errors: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("batchbpe.data.text_files.BLOCK", 64)
    path = tmp_path / "a.txt"
    path.write_text("one\ntwo\n" * 100 + "x" * 1000 + "\ntwo\n")
    expected = ChunkCounts.count(path.read_text())
    assert ChunkCounts.count(path, max_document_bytes=1100, errors=errors) == expected
    with pytest.raises(ValueError, match=r"a\.txt: no place to cut the \d+ bytes after byte 800 .*=500; raise"):
        ChunkCounts.count(path, max_document_bytes=500, errors=errors)
    with pytest.raises(ValueError, match=r"a\.txt: no place to cut .* after byte 0 .*custom pattern"):
        ChunkCounts.count(path, r"\S+|\s+", max_document_bytes=1100, errors=errors)
    with pytest.raises(ValueError, match=r"a\.txt: no place to cut"):
        encode_files(
            Tokenizer.train("aab", 257), sources(path, errors=errors, max_document_bytes=500), tmp_path / "shards"
        )


def test_a_count_resumes_only_with_the_same_limit(tmp_path: Path) -> None:
    """The position in a file is a number of batches, whose sizes depend on the limit."""
    pq.write_table(pa.table({"text": ["to be"] * 10}), tmp_path / "a.parquet", row_group_size=5)
    stopped = iter([False, True])
    with pytest.raises(Exception, match="stopped"):
        count_files(sources(tmp_path), tmp_path / "o.csv", stop=lambda: next(stopped))
    with pytest.raises(ValueError, match="the job was started with max_document_bytes=1073741824, got 5"):
        count_files(sources(tmp_path), tmp_path / "o.csv", CountOptions(max_document_bytes=5), resume=True)


def bad_utf8(path: Path, kind: str) -> Path:
    """Write a table whose row 5003 has an invalid byte at 6, and whose row 2 is null."""
    rows = [b"good", b"na\xc3\xafve", None, *[b"more"] * 5000, b"wrong \xff!", b"last\xfe"]
    column: Any = pa.array(rows).view(pa.string())
    if kind == "dictionary":
        indices = pa.array([None if row is None else rows.index(row) for row in rows])
        column = pa.DictionaryArray.from_arrays(indices, column.fill_null(""))
    if path.suffix == ".arrow":
        return arrow(path, column, stream=kind == "stream")
    pq.write_table(pa.table({"text": column}), path, row_group_size=1000)
    return path


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.arrow", "plain"),
        ("a.arrow", "stream"),
        ("a.arrow", "dictionary"),
        ("a.parquet", "plain"),
    ],
)
def test_invalid_utf8_in_tables(name: str, kind: str, tmp_path: Path) -> None:
    path = bad_utf8(tmp_path / name, kind)
    problem = rf'{name}, row 5003: invalid UTF-8 at byte 6 of the text; errors="replace"'
    tokenizer = Tokenizer.train("aab", 257)
    with pytest.raises(ValueError, match=problem):
        ChunkCounts.count(path)
    with pytest.raises(ValueError, match=problem):
        count_files(sources(path), tmp_path / "o.csv")
    report = count_files(sources(path), tmp_path / "o.csv", skip_errors=True)
    assert "row 5003" in report.failed[str(path)]
    with pytest.raises(ValueError, match=problem):
        encode_files(tokenizer, sources(path), tmp_path / "shards")
    whole = ["good", "naïve", *["more"] * 5000, "wrong \ufffd!", "last\ufffd"]
    assert texts(path, errors="replace") == whole
    assert ChunkCounts.count(path, errors="replace") == ChunkCounts.count(iter(whole))


def test_invalid_utf8_in_memory() -> None:
    array = pa.chunked_array([pa.array([b"a", None]), pa.array([b"b\xff"])]).cast(pa.binary())
    array = pa.chunked_array([chunk.view(pa.string()) for chunk in array.chunks])
    for data in (array, pa.table({"text": array})):
        with pytest.raises(ValueError, match=r"^row 2: invalid UTF-8 at byte 1"):
            ChunkCounts.count(data)
        assert dict(ChunkCounts.count(data, errors="replace")) == {"a": 1, "b": 1, "\ufffd": 1}


def test_invalid_utf8_in_groups(tmp_path: Path) -> None:
    lang = pa.array([b"en", b"d\xff"]).view(pa.string())
    path = arrow(tmp_path / "a.arrow", pa.array(["one", "two"]), lang=lang)
    with pytest.raises(ValueError, match=r"a\.arrow, row 1: invalid UTF-8 at byte 1"):
        list(by_column(sources(path), "lang", ReadOptions()))
    replaced = by_column(sources(path), "lang", ReadOptions(errors="replace"))
    assert [(group, strings(some)) for _, group, some in replaced] == [("en", ["one"]), ("d\ufffd", ["two"])]


def test_groups_are_read_in_parts(tmp_path: Path) -> None:
    """A dictionary entry that all rows share is not decoded for all of them at once."""
    path = arrow(tmp_path / "a.arrow", many_megabytes(50), lang=["en"] * 50)
    sizes = [len(some) for _, _, some in by_column(sources(path), "lang", ReadOptions())]
    assert sum(sizes) == 50 and max(sizes) <= 3


def test_arrow_data_is_not_copied() -> None:
    """The core copies bytes that could still change, so the view of an arrow buffer must be read-only."""
    column = pa.concat_arrays([pa.array(["to be"]), pa.array(["or not"])])  # pyarrow marks its buffer as mutable
    data, _ = bytes_and_offsets(column)
    assert np.shares_memory(data, np.frombuffer(column.buffers()[2], np.uint8)) and not data.flags.writeable


def test_misaligned_offsets() -> None:
    """Buffers in a file may start at any byte."""
    offsets = pa.py_buffer(b"\0" * 3 + np.array([0, 2, 5], np.int64).tobytes()).slice(3)
    array = pa.LargeStringArray.from_buffers(2, offsets, pa.py_buffer(b"tobe!"))
    assert dict(ChunkCounts.count(array)) == {"to": 1, "be": 1, "!": 1}


def test_slices_of_a_dictionary() -> None:
    array = pa.array(["a", None, "bb", "a"] * 30_000).dictionary_encode()
    assert arrow_strings.sizes(array.slice(2, 3)).tolist() == [2, 1, 1]
    found = [text for batch in arrow_strings.batches_of(array.slice(1)) for text in strings(batch)]
    assert found == ["bb", "a", *["a", "bb", "a"] * 29_999]
    views = pa.array(["c" * 20, "d"], pa.string_view())
    of_views = [
        pa.DictionaryArray.from_arrays(pa.array(i, pa.int8()), views[:n]) for i, n in (([1, None, 0], 2), ([None], 0))
    ]
    assert [strings(batch) for each in of_views for batch in arrow_strings.batches_of(each)] == [["d", "c" * 20]]
    with_null = pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array(["a", None]))
    assert [strings(batch) for batch in arrow_strings.batches_of(with_null)] == [["a"]]


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


def test_malformed_npy(tmp_path: Path) -> None:
    path, tokenizer = tmp_path / "a.npy", Tokenizer.train("aab", 257)
    np.save(path, np.arange(50, dtype=np.uint16))
    data = path.read_bytes()
    npz = tmp_path / "b.npy"
    with zipfile.ZipFile(npz, "w") as archive:
        archive.writestr("a.npy", data)
    with pytest.raises(ValueError, match=r"b\.npy: an \.npz archive instead"):
        load_ids(npz, tokenizer)
    broken = [
        data.replace(b"}", b" "),
        data.replace(b"(50,)", b"(9**9)"),
        data.replace(b"(50,), }      ", b"(99999999999999999999,)"[:14]),
        data.replace(b"(50,)", b"(-5,)"),
    ]
    refused = 0
    for mutant in [*broken, *mutants(data[:128], 300, seed=4)]:
        path.write_bytes(mutant)
        try:
            load_ids(path, tokenizer)
        except ValueError as error:
            assert str(path) in str(error)
            refused += 1
    assert refused > 100


def test_lists_of_any_size_are_skipped_at_once() -> None:
    """A page header of a few bytes can claim 2**62 booleans in a field that is not needed."""
    huge = b"\xf1" + b"\x80" * 8 + b"\x40"
    reader = parquet_pages._CompactReader(huge)
    reader.skip(9)
    with pytest.raises(parquet_pages._EndOfData):
        reader.byte()


def test_empty_pages_are_limited() -> None:
    header = bytes([0x15, 6, 0x15, 0, 0x15, 0, 0])  # type 3, no bytes, no rows
    with pytest.raises(ValueError, match="more than 1000 empty pages"):
        parquet_pages.read_pages(io.BytesIO(header * 2000), parquet_pages.ColumnChunk(0, 5))


def test_views_that_share_bytes_are_converted_row_by_row() -> None:
    """As a dictionary, they are far larger than the rows that refer to them. The peak is that of a new process."""
    code = """if True:
        import numpy as np, pyarrow as pa
        from batchbpe.data.arrow_strings import plain
        size = 1 << 20
        views = np.tile(np.array([size, 0x78787878, 0, 0], np.int32), 1000)
        buffers = [None, pa.py_buffer(views.data), pa.py_buffer(b"x" * size)]
        entries = pa.Array.from_buffers(pa.string_view(), 1000, buffers)
        array = pa.DictionaryArray.from_arrays(pa.array([3, None, 7], pa.int32()), entries)
        assert [text and len(text) for text in plain(array).to_pylist()] == [size, None, size]
        print(pa.default_memory_pool().max_memory() >> 20)
    """
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stderr
    assert int(child.stdout) < 100


def test_counts_with_a_dictionary(tmp_path: Path) -> None:
    """A few bits stand for a megabyte: few rows are read at once, and the total is limited."""
    path = tmp_path / "bomb.parquet"
    table = pa.table({"chunk": pa.array([b"x" * MB] * 40), "count": pa.array([1] * 40, pa.uint64())})
    metadata = {"batchbpe": '{"version": 1, "pattern": "x+"}'}
    pq.write_table(table.replace_schema_metadata(metadata), path)
    assert path.stat().st_size < MB
    with pytest.raises(ValueError, match=rf"bomb\.parquet: the counts have more than {5 * MB} bytes.*max_memory"):
        load_counts(path, max_bytes=5 * MB)
    with pytest.raises(ValueError, match=r"bomb\.parquet: the counts have more than"):
        count_files(sources(path), tmp_path / "o.csv", max_memory=20 * MB)
    assert load_counts(path).counts.tolist() == [40]


def test_group_columns_of_any_size(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": ["a"], "lang": [[0] * 1000]}), path)
    with pytest.raises(ValueError, match=r"a\.parquet: column 'lang' must be of type string, number or boolean"):
        list(by_column(sources(path), "lang", ReadOptions()))

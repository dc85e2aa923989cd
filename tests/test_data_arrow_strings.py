"""Untrusted arrow strings are validated before use: offsets, views, dictionaries and UTF-8."""

import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from data_files import arrow, grouped, overwrite, strings, texts

from batchbpe import ChunkCounts, Tokenizer
from batchbpe.data.corpus import sources
from batchbpe.data.untrusted import arrow_strings
from batchbpe.jobs.count import count_files
from batchbpe.jobs.encode import encode_files
from batchbpe.util.arrow import bytes_and_offsets


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
    # In a separate process, because the failure would be a segmentation fault.
    code = f"""if True:
        from pathlib import Path
        from batchbpe import Tokenizer
        from batchbpe.data.corpus import sources
        from batchbpe.data.options import Sampling
        from batchbpe.jobs.count import CountOptions, count_files
        from batchbpe.jobs.encode import encode_files
        folder = Path({str(tmp_path)!r})
        given = [folder / "bad.arrow", folder / "good.txt"]
        for sample in (1.0, 0.9):
            options = CountOptions(sampling=Sampling(sample))
            report = count_files(sources(given), folder / "o.csv", options, skip_errors=True)
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
        grouped(path, "lang")


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
        grouped(path, "lang")
    replaced = grouped(path, "lang", errors="replace")
    assert [(group, strings(some)) for group, some in replaced] == [("en", ["one"]), ("d\ufffd", ["two"])]


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


def test_views_that_share_bytes_are_converted_row_by_row() -> None:
    """As a dictionary, they are far larger than the rows that refer to them. The peak is that of a new process."""
    code = """if True:
        import numpy as np, pyarrow as pa
        from batchbpe.data.untrusted.arrow_strings import plain
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

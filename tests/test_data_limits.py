"""A small file cannot use much memory, and documents have a maximum size."""

import gzip
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from data_files import MB, arrow, documents, grouped, many_megabytes, texts

from batchbpe import ChunkCounts, Tokenizer
from batchbpe.counts.counter import load_counts
from batchbpe.data.corpus import sources
from batchbpe.data.options import ReadOptions, default_max_document_bytes
from batchbpe.jobs.count import CountOptions, count_files
from batchbpe.jobs.encode import encode_files

CHILD = """if True:
    import re, sys
    from pathlib import Path
    from batchbpe.data.corpus import sources
    from batchbpe.data.options import ReadOptions
    from batchbpe.jobs.count import CountOptions, count_files
    from batchbpe.patterns import Split

    folder, path, options = Path(sys.argv[1]), Path(sys.argv[2]), CountOptions(split=Split.of(sys.argv[3]))
    given = sources(path, ReadOptions(max_document_bytes=20_000_000))
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


DELTA: dict[str, Any] = {"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY"}}


BOMBS: dict[str, tuple[Callable[[Path], Path], str]] = {
    "text": (lambda path: gzipped(path / "a.txt.gz", b"", b"a", b"", 600), "cannot be split"),
    "pattern": (lambda path: gzipped(path / "a.txt.gz", b"", b"lorem i\n", b"", 600), "cannot be split"),
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
    pattern = r"\w+|\W(?<!x)" if name == "pattern" else "gpt4"
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
    with pytest.raises(ValueError, match=r"a\.txt: \d+ bytes at byte 800 cannot be split, more than .*=500; raise"):
        ChunkCounts.count(path, max_document_bytes=500, errors=errors)
    with pytest.raises(ValueError, match=r"a\.txt: \d+ bytes at byte 0 cannot be split"):
        ChunkCounts.count(path, r"\S+|\s+(?<!x)", max_document_bytes=1100, errors=errors)
    with pytest.raises(ValueError, match=r"a\.txt: \d+ bytes at byte 800 cannot be split"):
        encode_files(
            Tokenizer.train("aab", 257),
            sources(path, ReadOptions(errors=errors, max_document_bytes=500)),
            tmp_path / "shards",
        )


def test_a_count_resumes_only_with_the_same_limit(tmp_path: Path) -> None:
    """The position in a file is a number of batches, whose sizes depend on the limit."""
    pq.write_table(pa.table({"text": ["to be"] * 10}), tmp_path / "a.parquet", row_group_size=5)
    stopped = iter([False, True])
    with pytest.raises(Exception, match="stopped"):
        count_files(sources(tmp_path), tmp_path / "o.csv", stop=lambda: next(stopped))
    with pytest.raises(ValueError, match="the job was started with max_document_bytes=1073741824, got 5"):
        count_files(
            sources(tmp_path), tmp_path / "o.csv", CountOptions(reading=ReadOptions(max_document_bytes=5)), resume=True
        )


def test_groups_are_read_in_parts(tmp_path: Path) -> None:
    """A dictionary entry that all rows share is not decoded for all of them at once."""
    path = arrow(tmp_path / "a.arrow", many_megabytes(50), lang=["en"] * 50)
    sizes = [len(some) for _, some in grouped(path, "lang")]
    assert sum(sizes) == 50 and max(sizes) <= 3


def test_counts_with_a_dictionary(tmp_path: Path) -> None:
    """A few bits can refer to a megabyte, so few rows are read at once, and the total is limited."""
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
        grouped(path, "lang")

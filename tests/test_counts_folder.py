"""Folders of counts as Spark writes them, made here without Spark."""

import json
import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import TEXT, run

from batchbpe import PATTERNS, ChunkCounts, RunCounts, Tokenizer
from batchbpe.errors import ArgumentError, DataError
from batchbpe.formats.counts_folder import KEY

METADATA = {"version": 1, "pattern": PATTERNS["gpt4"]}


def part(path, chunks, counts, metadata=METADATA, **options):
    """Write a parquet file whose metadata is like that of Spark."""
    described = {"type": "struct", "fields": [{"name": "chunk", "metadata": {"batchbpe": metadata}}, {"name": "count"}]}
    schema = pa.schema([("chunk", pa.binary()), ("count", pa.int64())], metadata={KEY: json.dumps(described)})
    table = pa.Table.from_arrays([pa.array(chunks, pa.binary()), pa.array(counts, pa.int64())], schema=schema)
    pq.write_table(table, path, use_dictionary=False, **options)


@pytest.fixture
def folder(tmp_path):
    """A complete folder of two files."""
    counts = ChunkCounts.count(texts=[TEXT])
    rows = [(chunk.encode(), count) for chunk, count in counts.items()]
    (tmp_path / "counts").mkdir()
    for number in range(2):
        part(tmp_path / "counts" / f"part-0000{number}-7d1f-c000.parquet", *zip(*rows[number::2], strict=True))
    (tmp_path / "counts" / "_SUCCESS").touch()
    return tmp_path / "counts"


def test_a_folder_is_loaded_like_a_file(folder):
    counts = ChunkCounts.count(texts=[TEXT])
    assert ChunkCounts.load(folder) == counts
    assert ChunkCounts.load(folder, freq_cutoff=3) == counts.at_least(3)
    assert ChunkCounts.count(folder) == counts
    assert ChunkCounts.count(files=[str(folder)]) == counts
    assert ChunkCounts.count(folder.parent) == counts
    assert ChunkCounts.count([folder, "to be"], "gpt4").total == counts.total + 2


@pytest.mark.parametrize("freq_cutoff", [1, 3])
def test_training(folder, freq_cutoff):
    options = {"vocab_size": 400, "freq_cutoff": freq_cutoff}
    expected = Tokenizer.train(texts=[TEXT], **options).model
    assert Tokenizer.train(folder, **options).model == expected
    assert Tokenizer.train(files=[folder], **options).model == expected
    trained = run(
        ["train", str(folder), "-n", "400", "--freq-cutoff", str(freq_cutoff), "-o", str(folder.parent / "m")]
    )
    assert trained.exit_code == 0, trained.output
    assert Tokenizer.from_file(folder.parent / "m.model").model == expected
    with pytest.raises(ArgumentError, match="freq_cutoff must be at most 141, the count of the most frequent chunk"):
        Tokenizer.train(folder, 400, freq_cutoff=1000)


def test_an_incomplete_folder_is_an_error(folder):
    (folder / "_SUCCESS").unlink()
    with pytest.raises(DataError, match="counts: the folder is incomplete: it has no file _SUCCESS; wait for the job"):
        ChunkCounts.load(folder)
    with pytest.raises(DataError, match="not a file of chunk counts"):
        Tokenizer.train(folder, 400)
    (folder / "_SUCCESS").touch()
    for path in folder.glob("*.parquet"):
        path.unlink()
    with pytest.raises(DataError, match="counts: the folder has no parquet files"):
        ChunkCounts.load(folder)


@pytest.mark.parametrize(
    ("chunks", "counts", "metadata", "problem"),
    [
        ([b"a"], [1], METADATA | {"pattern": PATTERNS["gpt2"]}, "counted with different settings than the other files"),
        ([b"a"], [1], METADATA | {"version": 3}, "version must be from 1 to 2, got 3; upgrade batchbpe"),
        ([b"a"], [1], [], "not a file of chunk counts that batchbpe.spark has made"),
        ([b"a"], [-1], METADATA, "the columns are damaged or contain invalid numbers"),
        ([b"a"], [None], METADATA, "the columns contain nulls"),
    ],
)
def test_invalid_files(folder, chunks, counts, metadata, problem):
    part(folder / "part-00002.parquet", chunks, counts, metadata)
    with pytest.raises(DataError, match=f"part-00002.parquet: {problem}"):
        ChunkCounts.load(folder)


def test_damaged_files(folder):
    path = folder / "part-00001-7d1f-c000.parquet"
    content = path.read_bytes()
    path.write_bytes(content[:1000])
    with pytest.raises(DataError, match=r"part-00001-7d1f-c000.parquet: not a parquet file, or damaged"):
        ChunkCounts.load(folder)
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"expected the columns run \(binary\)"):
        RunCounts.load(folder)


def test_rows_below_the_cutoff_take_no_memory(tmp_path):
    """A million chunks that occur once, in row groups after those that occur more often, and among them."""
    rare = [f"{number:08}".encode() for number in range(1_000_000)]
    part(
        tmp_path / "part-00000-7d1f-c000.parquet",
        [b"to", b"be", *rare],
        [3, 2, *[1] * len(rare)],
        row_group_size=100_000,
    )
    part(tmp_path / "part-00001-7d1f-c000.parquet", [*rare[:1000], b"or"], [*[1] * 1000, 5])
    (tmp_path / "_SUCCESS").touch()
    tracemalloc.start()
    counts = ChunkCounts.load(tmp_path, freq_cutoff=2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert counts.most_common() == [("or", 5), ("to", 3), ("be", 2)]
    assert peak < 4_000_000  # all counts alone would take 8 MB
    assert ChunkCounts.load(tmp_path).arrays.counts.dtype == np.uint64


def test_a_cutoff_applies_to_the_sum_of_several_jobs(folder):
    """Each job has a different name in the names of its files."""
    for path in list(folder.glob("part-*")):
        path.with_name(path.name.replace("7d1f", "a90c")).write_bytes(path.read_bytes())
    counts = ChunkCounts.count(texts=[TEXT, TEXT])
    assert ChunkCounts.load(folder, freq_cutoff=5) == counts.at_least(5)
    assert counts.at_least(5).unique > ChunkCounts.count(texts=[TEXT]).at_least(5).unique


def test_a_missing_file_is_noticed(folder):
    rows = ChunkCounts.count(texts=[TEXT]).unique
    (folder / "_batchbpe.json").write_text(json.dumps({"unique": rows}))
    assert ChunkCounts.load(folder).unique == rows
    next(folder.glob("part-*")).unlink()
    with pytest.raises(DataError, match=rf"_batchbpe\.json: the files have \d+ rows, expected {rows}; copy"):
        ChunkCounts.load(folder, freq_cutoff=2)


def test_inspect(folder):
    shown = run(["inspect", str(folder), "--top", "2"])
    assert shown.exit_code == 0 and f"{ChunkCounts.load(folder).unique:,}" in shown.stdout

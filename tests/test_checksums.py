"""A flipped bit in a file of counts or runs raises an error, or does not change what is loaded."""

import json
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from test_counts_folder import part

from batchbpe import ChunkCounts, Model, RunCounts
from batchbpe.formats.counts_folder import TOTALS
from batchbpe.formats.parquet_files import CHECKSUM_KEY as KEY
from batchbpe.formats.parquet_files import Checksum

COUNTS = ChunkCounts.count(texts=["to be or not to be, that is the question"])
EMPTY = ChunkCounts.count(texts=[""])
RUNS = RunCounts.count("a b a b c a b a a", Model(split=r" ?\w", merges={(32, 97): 256, (32, 98): 257}))


def accepted_with_other_content(path: Path, load: Callable[[], object], expected: object, step: int) -> list[int]:
    """Flip every `step`th bit of a file, one at a time, and return those that change what is loaded."""
    whole = path.read_bytes()
    accepted = []
    for bit in range(0, 8 * len(whole), step):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        try:
            found = load()
        except (ValueError, OSError):
            continue
        if found != expected:
            accepted.append(bit)
    path.write_bytes(whole)
    assert load() == expected
    return accepted


@pytest.mark.parametrize("saved", [COUNTS, EMPTY, RUNS])
def test_flipped_bits_of_a_file(saved: ChunkCounts | RunCounts, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    saved.save(path)
    assert not accepted_with_other_content(path, lambda: type(saved).load(path), saved, 61)


def test_flipped_bits_of_a_folder(tmp_path: Path) -> None:
    path = tmp_path / "part-00000.parquet"
    part(path, [chunk.encode() for chunk in COUNTS], [*COUNTS.values()], write_page_checksum=True)
    (tmp_path / "_SUCCESS").touch()
    totals = {"unique": COUNTS.unique, "files": {path.name: zlib.crc32(path.read_bytes())}}
    (tmp_path / TOTALS).write_text(json.dumps(totals))
    for file, step in {path: 61, tmp_path / TOTALS: 1}.items():
        assert not accepted_with_other_content(file, lambda: ChunkCounts.load(tmp_path), COUNTS, step)
    path.write_bytes(path.read_bytes() + b"\0")
    with pytest.raises(ValueError, match=r"part-00000\.parquet: the file is damaged \(wrong checksum\); count again"):
        ChunkCounts.load(tmp_path)


@pytest.mark.parametrize("saved", [COUNTS, RUNS])
def test_the_checksum_covers_the_metadata_and_the_rows(saved: ChunkCounts | RunCounts, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    saved.save(path)
    table = pq.read_table(path)
    stored = {**table.schema.metadata, KEY: pq.read_metadata(path).metadata[KEY]}
    pattern = {key: value.replace(rb"\\p{L}", rb"\\p{M}").replace(b"letters", b"text") for key, value in stored.items()}
    for changed in (table.replace_schema_metadata(pattern), table.take([1, 0, *range(2, len(table))])):
        metadata = changed.schema.metadata if changed.schema.metadata != table.schema.metadata else stored
        pq.write_table(changed.replace_schema_metadata(metadata), path)
        with pytest.raises(ValueError, match=r"a\.parquet: the file is damaged \(wrong checksum\); count again"):
            type(saved).load(path)
    pq.write_table(table.replace_schema_metadata({key: value for key, value in stored.items() if key != KEY}), path)
    assert type(saved).load(path) == saved, "earlier versions wrote no checksum"


def test_the_checksum_does_not_depend_on_batches() -> None:
    data, offsets, counts, _ = COUNTS.arrays
    whole, parts = Checksum(b""), Checksum(b"")
    whole.add(data, offsets, counts)
    for start in range(0, len(counts), 2):
        parts.add(data, offsets[start : start + 3], counts[start : start + 2])
    assert str(parts) == str(whole) != str(Checksum(b""))
    swapped = Checksum(b"")
    swapped.add(data, offsets, np.roll(counts, 1))
    assert str(swapped) != str(whole)

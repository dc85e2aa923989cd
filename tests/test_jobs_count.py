"""Counting files into a file: the counts do not depend on interruptions, memory limits or threads."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import multilingual

from batchbpe import ChunkCounts
from batchbpe.data.corpus import sources
from batchbpe.data.options import Sampling, from_keywords
from batchbpe.errors import OutputExistsError, Stopped
from batchbpe.jobs.count import CountOptions, count_files
from batchbpe.jobs.spill import SpilledCounts
from batchbpe.storage.checked_json import sealed
from batchbpe.storage.locks import has_locks

TEXTS = [multilingual(3000, seed) for seed in range(200)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with files of several kinds."""
    data = tmp_path / "data"
    data.mkdir()
    pq.write_table(pa.table({"text": TEXTS[:80]}), data / "a.parquet", row_group_size=20)
    (data / "b.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS[80:120]))
    (data / "c.txt").write_text("\n".join(TEXTS[120:160]), encoding="utf-8")
    (data / "d.txt").write_text("\n".join(TEXTS[160:]), encoding="utf-8")
    return data


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use small batches and blocks, so that a job can stop at many positions."""
    monkeypatch.setattr("batchbpe.data.options.ReadOptions.BATCH_CHARACTERS", 20_000)
    monkeypatch.setattr("batchbpe.data.text_files.BLOCK", 20_000)


def expected(folder: Path, **options: Any) -> ChunkCounts:
    return ChunkCounts.count(folder, **options)


class StopAfter:
    """A stop function that returns True from the nth call on."""

    def __init__(self, n: int) -> None:
        self.left = n

    def __call__(self) -> bool:
        self.left -= 1
        return self.left <= 0


def test_parts_add_up_to_the_same_file(tmp_path: Path) -> None:
    for suffix in ("parquet", "csv"):
        whole = ChunkCounts.count(iter(TEXTS))
        whole.save(tmp_path / f"whole.{suffix}")
        spilled = SpilledCounts(tmp_path)
        for part in range(3):
            spilled.add(ChunkCounts.count(iter(TEXTS[part::3])))
        totals = spilled.save_sum(tmp_path / f"sum.{suffix}", whole.split, 2)
        assert (totals.total, totals.unique) == (whole.total, whole.unique)
        assert (tmp_path / f"sum.{suffix}").read_bytes() == (tmp_path / f"whole.{suffix}").read_bytes()


def test_an_empty_part(tmp_path: Path) -> None:
    spilled = SpilledCounts(tmp_path)
    spilled.add(ChunkCounts.count(""))
    spilled.add(ChunkCounts.count("to be or not to be"))
    spilled.save_sum(tmp_path / "sum.parquet", ChunkCounts.count("").split, 1)
    assert ChunkCounts.load(tmp_path / "sum.parquet") == ChunkCounts.count("to be or not to be")


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("options", [{}, {"sample": 0.5, "seed": 3}, {"limit_bytes": 300_000}, {"errors": "replace"}])
def test_stopped_again_and_again(options: Any, folder: Path, tmp_path: Path) -> None:
    reading, sampling = from_keywords(options)
    chosen = CountOptions(reading=reading, sampling=sampling)
    count_files(sources(folder), tmp_path / "whole.parquet", chosen)
    output = tmp_path / "counts.parquet"
    stops = 0
    while not output.exists():
        try:
            count_files(sources(folder), output, chosen, resume=stops > 0, stop=StopAfter(3 + 8 * stops))
        except Stopped:
            stops += 1
            assert (tmp_path / "counts.parquet.parts" / "record.json").exists()
    assert stops > 3
    assert output.read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    if not options:
        assert ChunkCounts.load(output) == expected(folder)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["counts.parquet", "data", "whole.parquet"]


@pytest.mark.usefixtures("small")
def test_bounded_memory(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts: list[int] = []
    add = SpilledCounts.add
    monkeypatch.setattr(SpilledCounts, "add", lambda self, counts: (parts.append(counts.unique), add(self, counts))[1])
    report = count_files(sources(folder), tmp_path / "counts.parquet", max_memory=1_000_000)
    assert len(parts) > 3
    counts = ChunkCounts.load(tmp_path / "counts.parquet")
    assert counts == expected(folder)
    assert (report.total, report.unique, report.files) == (counts.total, counts.unique, 4)
    assert report.longest_chunk == max(len(chunk.encode()) for chunk in counts)


@pytest.mark.usefixtures("small")
def test_killed_in_the_middle(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The job resumes from its last save and ignores later files.
    monkeypatch.setattr("batchbpe.jobs.count.SAVE_EVERY", -1.0)
    output = tmp_path / "counts.parquet"
    calls: list[int] = []

    def killed() -> bool:
        calls.append(1)
        if len(calls) == 9:
            raise SystemExit
        return False

    with pytest.raises(SystemExit):
        count_files(sources(folder), output, stop=killed)
    (tmp_path / "counts.parquet.parts" / "part-000099.counts").write_text("half")
    count_files(sources(folder), output, resume=True)
    assert ChunkCounts.load(output) == expected(folder)


@pytest.mark.usefixtures("small")
def test_full_disk(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = tmp_path / "counts.parquet"
    with monkeypatch.context() as patched:

        def full(*_: Any) -> None:
            raise OSError(28, "No space left on device")

        patched.setattr("batchbpe.jobs.count.SAVE_EVERY", -1.0)
        patched.setattr(pa.ipc.RecordBatchFileWriter, "write_batch", full)
        for skip_errors in (False, True):
            with pytest.raises(OSError, match=r"cannot write .*parquet\.parts/part-000000\.counts: no space left"):
                count_files(sources(folder), output, skip_errors=skip_errors, resume=True)
    assert not output.exists()
    count_files(sources(folder), output, resume=True)
    assert ChunkCounts.load(output) == expected(folder)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("damage", ["record.json", "part-000000.counts"])
def test_damaged_files_are_not_counted(damage: str, folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "counts.parquet"
    with pytest.raises(Stopped):
        count_files(sources(folder), output, stop=StopAfter(9))
    path = tmp_path / "counts.parquet.parts" / damage
    whole = path.read_bytes()
    for change in (whole[:-2], whole.replace(b"0", b"1", 1), b"", bytes([whole[0] ^ 1]) + whole[1:]):
        path.write_bytes(change)
        with pytest.raises(
            ValueError, match=rf"{damage}: the file is damaged.*; remove .*counts\.parquet\.parts to start again"
        ):
            count_files(sources(folder), output, resume=True)
    if damage != "record.json":
        path.unlink()
        with pytest.raises(FileNotFoundError, match=rf"{damage} is missing; remove .*parts to start again"):
            count_files(sources(folder), output, resume=True)
    path.write_bytes(whole)
    count_files(sources(folder), output, resume=True)
    assert ChunkCounts.load(output) == expected(folder)


def test_a_record_of_another_version(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        count_files(sources(folder), tmp_path / "counts.parquet", stop=StopAfter(9))
    path = tmp_path / "counts.parquet.parts" / "record.json"
    fields = json.loads(path.read_text())
    del fields["checksum"]
    path.write_text(json.dumps(fields))
    with pytest.raises(ValueError, match=r"record\.json: no checksum: the file is damaged, or from another version"):
        count_files(sources(folder), tmp_path / "counts.parquet", resume=True)
    path.write_bytes(sealed({**fields, "version": 2}))
    with pytest.raises(
        ValueError, match=r"record\.json: the file is from another version of batchbpe; remove .*parts to start"
    ):
        count_files(sources(folder), tmp_path / "counts.parquet", resume=True)


@pytest.mark.usefixtures("small")
def test_parts_damaged_while_the_job_counts(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add = SpilledCounts.add

    def damaging(self: SpilledCounts, counts: ChunkCounts) -> None:
        add(self, counts)
        path = self.folder / "part-000000.counts"
        whole = path.read_bytes()
        path.write_bytes(whole[:100] + bytes([whole[100] ^ 4]) + whole[101:])

    monkeypatch.setattr(SpilledCounts, "add", damaging)
    with pytest.raises(
        ValueError, match=r"part-000000\.counts: the file is damaged \(wrong checksum\); remove .*parts to start again"
    ):
        count_files(sources(folder), tmp_path / "counts.parquet", max_memory=1_000_000)
    assert not (tmp_path / "counts.parquet").exists()


@pytest.mark.usefixtures("small")
def test_leftovers_of_a_killed_job_are_removed(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        count_files(sources(folder), tmp_path / "counts.parquet", stop=StopAfter(9))
    parts = tmp_path / "counts.parquet.parts"
    (parts / "sums-abc").mkdir()
    (parts / "sums-abc" / "000.counts").write_text("half")
    for name in ("part-000007.counts", ".part-000008.counts.0a1b2c3d.tmp", "mine.txt"):
        (parts / name).write_text("half")
    (tmp_path / ".counts.parquet.0a1b2c3d.tmp").write_text("half")
    with pytest.raises(Stopped):
        count_files(sources(folder), tmp_path / "counts.parquet", resume=True, stop=StopAfter(2))
    recorded = ["part-000000.counts", "part-000001.counts"]
    assert sorted(path.name for path in parts.iterdir()) == ["mine.txt", *recorded, "record.json"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["counts.parquet.parts", "data"]


@pytest.mark.usefixtures("small")
def test_a_full_disk_while_parts_are_added_up(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = tmp_path / "counts.parquet"
    with pytest.raises(Stopped):
        count_files(sources(folder), output, stop=StopAfter(9))

    def full(*_: Any) -> None:
        raise OSError(28, "Error writing bytes to file")  # like the errors of pyarrow, without a file name

    for broken, name in (
        ((pa.ipc.RecordBatchFileWriter, "write_table"), r"counts\.parquet\.parts.sums-\w+.000\.counts"),
        ((pq.ParquetWriter, "write_batch"), r"counts\.parquet"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(*broken, full)
            with pytest.raises(
                OSError, match=rf"^cannot write {re.escape(str(tmp_path))}.{name}: no space left on device$"
            ):
                count_files(sources(folder), output, resume=True)
    count_files(sources(folder), output, resume=True)
    assert ChunkCounts.load(output) == expected(folder)


@pytest.mark.skipif(not has_locks(), reason="the system has no flock")
def test_two_jobs_with_one_output(folder: Path, tmp_path: Path) -> None:
    """A second process is refused, and does not disturb the first."""
    output = tmp_path / "counts.parquet"
    errors: list[str] = []

    def second() -> bool:
        if not errors:
            command = [sys.executable, "-m", "batchbpe", "count", str(folder), "-o", str(output)]
            errors.append(subprocess.run(command, capture_output=True, text=True).stderr)
        return False

    count_files(sources(folder), output, stop=second)
    message = f"error: {output} is being written by process {os.getpid()} on host "
    assert errors[0].startswith(message) and errors[0].endswith("; wait for it to finish or choose another output\n")
    assert ChunkCounts.load(output) == expected(folder)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["counts.parquet", "data"]


def test_files_that_cannot_be_read(folder: Path, tmp_path: Path) -> None:
    (folder / "c.txt").write_bytes(b"good \xff bad")
    (folder / "e.parquet").write_text("not parquet")
    output = tmp_path / "counts.parquet"
    with pytest.raises(ValueError, match=r"c\.txt: the text is invalid UTF-8 at byte 5"):
        count_files(sources(folder), output)
    report = count_files(sources(folder), output, resume=True, skip_errors=True)
    assert sorted(Path(name).name for name in report.failed) == ["c.txt", "e.parquet"]
    (folder / "c.txt").unlink()
    (folder / "e.parquet").unlink()
    assert ChunkCounts.load(output) == expected(folder)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("threads", [1, 2])
def test_skip_errors_does_not_skip_a_failing_pattern(threads: int, folder: Path, tmp_path: Path) -> None:
    """With several threads, the error may be raised in a later file, or at the end."""
    (folder / "b.txt").write_text(" ".join([*TEXTS[:100], "a" * 60, *TEXTS[:100]]), encoding="utf-8")
    options = CountOptions(r"((a|aa)+)(?!a)b\1|[\s\S]")
    for last in ("d.txt", "b.txt"):
        files = sources(sorted(path for path in folder.iterdir() if path.name <= last))
        with pytest.raises(ValueError, match=r"^pattern .* could not be matched .*a{40}.*possessive"):
            count_files(files, tmp_path / "o.csv", options, skip_errors=True, threads=threads)
    assert not (tmp_path / "o.csv").exists()


def test_resuming_with_other_options_or_files(folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "counts.parquet"
    with pytest.raises(
        Stopped, match=r"^stopped; the counts so far are in .*counts\.parquet\.parts; continue with resume=True$"
    ):
        count_files(sources(folder), output, stop=StopAfter(4))
    unfinished = r"parts contains an unfinished count; continue with resume=True or remove it$"
    with pytest.raises(OutputExistsError, match=unfinished):
        count_files(sources(folder), output)
    with pytest.raises(
        ValueError, match=r"the job was started with seed=0, got 5; use the same options and files, or remove"
    ):
        count_files(sources(folder), output, CountOptions(sampling=Sampling(seed=5)), resume=True)
    (folder / "a.parquet").write_bytes((folder / "a.parquet").read_bytes() + b" ")
    with pytest.raises(
        ValueError, match=r"a\.parquet has changed since the job was started; .*remove .*parts to start again"
    ):
        count_files(sources(folder), output, resume=True)
    with pytest.raises(ValueError, match=r"a\.parquet is missing from the given files; use the same options and files"):
        count_files(sources(folder / "d.txt"), output, resume=True)


def test_samples(folder: Path) -> None:
    def sampled(**options: Any) -> ChunkCounts:
        output = folder.parent / "sample.parquet"
        count_files(sources(folder / "a.parquet"), output, CountOptions(sampling=Sampling(**options)))
        return ChunkCounts.load(output)

    half, other = sampled(sample=0.5, seed=1), sampled(sample=0.5, seed=2)
    whole = expected(folder / "a.parquet")
    assert half == sampled(sample=0.5, seed=1) != other
    assert 0.3 < half.total / whole.total < 0.7
    limited = sampled(limit_bytes=20_000)
    assert limited == ChunkCounts.count(iter(TEXTS[: next(n for n in range(80) if size(TEXTS[:n]) >= 20_000)]))
    with pytest.raises(ValueError, match=r"sample must be greater than 0 and at most 1, got 1\.5"):
        sampled(sample=1.5)


def size(texts: list[str]) -> int:
    return sum(len(text.encode()) for text in texts)


def test_a_text_file_is_cut_at_the_limit(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("é" * 100, encoding="utf-8")
    count_files(sources(tmp_path / "a.txt"), tmp_path / "a.csv", CountOptions(sampling=Sampling(limit_bytes=7)))
    assert ChunkCounts.load(tmp_path / "a.csv") == ChunkCounts.count(["ééé"])


def test_long_chunks(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("short " + "x" * 20_000 + " short")
    report = count_files(sources(tmp_path / "a.txt"), tmp_path / "a.parquet")
    assert (report.longest_chunk, report.skipped_chunks) == (20_001, 0)
    report = count_files(sources(tmp_path / "a.txt"), tmp_path / "b.parquet", CountOptions(max_chunk_bytes=100))
    assert (report.longest_chunk, report.skipped_chunks) == (6, 1)
    assert dict(ChunkCounts.load(tmp_path / "b.parquet")) == {"short": 1, " short": 1}


def test_wrong_output(tmp_path: Path) -> None:
    ChunkCounts.count("to be").save(tmp_path / "counts.csv")
    with pytest.raises(ValueError, match=r"output must not be one of the files to count, got .*counts\.csv"):
        count_files(sources(tmp_path), tmp_path / "counts.csv")
    with pytest.raises(ValueError, match=r"output must end in \.parquet or \.csv, got .*counts\.txt"):
        count_files([], tmp_path / "counts.txt")
    with pytest.raises(FileNotFoundError, match=r"folder not found: .*absent; create it first"):
        count_files([], tmp_path / "absent" / "counts.csv")

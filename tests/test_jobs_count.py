"""Counting files into a file: the same counts however it was interrupted, resumed, spilled or sampled."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import multilingual

from batchbpe import ChunkCounts
from batchbpe.data.corpus import sources
from batchbpe.jobs.count import Options, count_files
from batchbpe.jobs.spill import Runs
from batchbpe.progress import Stopped
from batchbpe.storage.sealed import sealed

TEXTS = [multilingual(3000, seed) for seed in range(200)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files of several kinds with many batches in all."""
    data = tmp_path / "data"
    data.mkdir()
    pq.write_table(pa.table({"text": TEXTS[:80]}), data / "a.parquet", row_group_size=20)
    (data / "b.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS[80:120]))
    (data / "c.txt").write_text("\n".join(TEXTS[120:160]), encoding="utf-8")
    (data / "d.txt").write_text("\n".join(TEXTS[160:]), encoding="utf-8")
    return data


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small batches and blocks, so that there are many places to stop at."""
    monkeypatch.setattr("batchbpe.data.readers.BATCH_CHARACTERS", 20_000)
    monkeypatch.setattr("batchbpe.data.tables.BATCH_CHARACTERS", 20_000)
    monkeypatch.setattr("batchbpe.data.arrow_strings.BATCH_CHARACTERS", 20_000)
    monkeypatch.setattr("batchbpe.data.readers.BLOCK", 20_000)


def expected(folder: Path, **options: Any) -> ChunkCounts:
    return ChunkCounts.count(folder, **options)


class StopAfter:
    """Asks to stop the nth time it is asked."""

    def __init__(self, n: int) -> None:
        self.left = n

    def __call__(self) -> bool:
        self.left -= 1
        return self.left <= 0


def test_runs_add_up_to_the_same_file(tmp_path: Path) -> None:
    for suffix in ("parquet", "csv"):
        whole = ChunkCounts.count(iter(TEXTS))
        whole.save(tmp_path / f"whole.{suffix}")
        runs = Runs(tmp_path)
        for part in range(3):
            runs.add(ChunkCounts.count(iter(TEXTS[part::3])))
        list(runs.save_sum(tmp_path / f"sum.{suffix}", whole.pattern, 2))
        assert (runs.total, runs.unique) == (whole.total, whole.unique)
        assert (tmp_path / f"sum.{suffix}").read_bytes() == (tmp_path / f"whole.{suffix}").read_bytes()


def test_an_empty_run(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    runs.add(ChunkCounts.count(""))
    runs.add(ChunkCounts.count("to be or not to be"))
    list(runs.save_sum(tmp_path / "sum.parquet", ChunkCounts.count("").pattern, 1))
    assert ChunkCounts.load(tmp_path / "sum.parquet") == ChunkCounts.count("to be or not to be")


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("options", [{}, {"sample": 0.5, "seed": 3}, {"limit_bytes": 300_000}, {"errors": "replace"}])
def test_stopped_again_and_again(options: dict[str, Any], folder: Path, tmp_path: Path) -> None:
    chosen = Options(**options)
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
    runs: list[int] = []
    add = Runs.add
    monkeypatch.setattr(Runs, "add", lambda self, counts: (runs.append(counts.unique), add(self, counts))[1])
    report = count_files(sources(folder), tmp_path / "counts.parquet", max_memory=1_000_000)
    assert len(runs) > 3
    counts = ChunkCounts.load(tmp_path / "counts.parquet")
    assert counts == expected(folder)
    assert (report.total, report.unique, report.files) == (counts.total, counts.unique, 4)
    assert report.longest_chunk == max(len(chunk.encode()) for chunk in counts)


@pytest.mark.usefixtures("small")
def test_killed_in_the_middle(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # What was saved last counts, whatever came after it.
    monkeypatch.setattr("batchbpe.jobs.count.SAVE_EVERY", -1.0)
    output = tmp_path / "counts.parquet"
    asked: list[int] = []

    def killed() -> bool:
        asked.append(1)
        if len(asked) == 9:
            raise SystemExit
        return False

    with pytest.raises(SystemExit):
        count_files(sources(folder), output, stop=killed)
    (tmp_path / "counts.parquet.parts" / "run-000099.counts").write_text("half")
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
            with pytest.raises(OSError, match=r"cannot write .*parquet\.parts/run-000000\.counts: No space left"):
                count_files(sources(folder), output, skip_errors=skip_errors, resume=True)
    assert not output.exists()
    count_files(sources(folder), output, resume=True)
    assert ChunkCounts.load(output) == expected(folder)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("damage", ["record.json", "run-000000.counts"])
def test_what_is_damaged_is_not_counted(damage: str, folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "counts.parquet"
    with pytest.raises(Stopped):
        count_files(sources(folder), output, stop=StopAfter(9))
    path = tmp_path / "counts.parquet.parts" / damage
    whole = path.read_bytes()
    for change in (whole[:-2], whole.replace(b"0", b"1", 1), b"", bytes([whole[0] ^ 1]) + whole[1:]):
        path.write_bytes(change)
        with pytest.raises(ValueError, match=rf"{damage} is damaged.*; remove .*counts\.parquet\.parts to start again"):
            count_files(sources(folder), output, resume=True)
    if damage != "record.json":
        path.unlink()
        with pytest.raises(FileNotFoundError, match=rf"{damage} is gone; remove .*parts to start again"):
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
    with pytest.raises(ValueError, match=r"record\.json has no checksum: it is damaged, or from another version"):
        count_files(sources(folder), tmp_path / "counts.parquet", resume=True)
    path.write_bytes(sealed({**fields, "version": 2}))
    with pytest.raises(ValueError, match=r"record\.json is from another version of batchbpe; remove .*parts to start"):
        count_files(sources(folder), tmp_path / "counts.parquet", resume=True)


@pytest.mark.usefixtures("small")
def test_runs_that_are_damaged_while_it_counts(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add = Runs.add

    def damaging(self: Runs, counts: ChunkCounts) -> None:
        add(self, counts)
        path = self.folder / "run-000000.counts"
        whole = path.read_bytes()
        path.write_bytes(whole[:100] + bytes([whole[100] ^ 4]) + whole[101:])

    monkeypatch.setattr(Runs, "add", damaging)
    with pytest.raises(ValueError, match=r"run-000000\.counts is damaged \(checksum\); remove .*parts to start again"):
        count_files(sources(folder), tmp_path / "counts.parquet", max_memory=1_000_000)
    assert not (tmp_path / "counts.parquet").exists()


@pytest.mark.usefixtures("small")
def test_what_a_killed_job_left_is_removed(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        count_files(sources(folder), tmp_path / "counts.parquet", stop=StopAfter(9))
    parts = tmp_path / "counts.parquet.parts"
    (parts / "sums-abc").mkdir()
    (parts / "sums-abc" / "000.counts").write_text("half")
    for name in ("run-000007.counts", ".run-000008.counts.0a1b2c3d.tmp", "mine.txt"):
        (parts / name).write_text("half")
    (tmp_path / ".counts.parquet.0a1b2c3d.tmp").write_text("half")
    with pytest.raises(Stopped):
        count_files(sources(folder), tmp_path / "counts.parquet", resume=True, stop=StopAfter(2))
    runs = ["run-000000.counts", "run-000001.counts"]
    assert sorted(path.name for path in parts.iterdir()) == ["mine.txt", "record.json", *runs]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["counts.parquet.parts", "data"]


@pytest.mark.usefixtures("small")
def test_a_full_disk_while_runs_are_added_up(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = tmp_path / "counts.parquet"
    with pytest.raises(Stopped):
        count_files(sources(folder), output, stop=StopAfter(9))

    def full(*_: Any) -> None:
        raise OSError(28, "Error writing bytes to file")  # as pyarrow has it: without a name

    for broken, name in (
        ((pa.ipc.RecordBatchFileWriter, "write_table"), r"counts\.parquet\.parts/sums-\w+/000\.counts"),
        ((pq.ParquetWriter, "write_batch"), r"counts\.parquet"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(*broken, full)
            with pytest.raises(OSError, match=rf"^cannot write {tmp_path}/{name}: No space left on device$"):
                count_files(sources(folder), output, resume=True)
    count_files(sources(folder), output, resume=True)
    assert ChunkCounts.load(output) == expected(folder)


@pytest.mark.skipif(os.name != "posix", reason="locks are posix")
def test_two_jobs_with_one_output(folder: Path, tmp_path: Path) -> None:
    """In two processes: the second is refused, and does not disturb the first."""
    output = tmp_path / "counts.parquet"
    asked: list[str] = []

    def second() -> bool:
        if not asked:
            command = [sys.executable, "-m", "batchbpe", "count", str(folder), "-o", str(output)]
            asked.append(subprocess.run(command, capture_output=True, text=True).stderr)
        return False

    count_files(sources(folder), output, stop=second)
    told = f"error: {output} is being written by process {os.getpid()} on host "
    assert asked[0].startswith(told) and asked[0].endswith("; wait for it or choose another output\n")
    assert ChunkCounts.load(output) == expected(folder)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["counts.parquet", "data"]


def test_files_that_cannot_be_read(folder: Path, tmp_path: Path) -> None:
    (folder / "c.txt").write_bytes(b"good \xff bad")
    (folder / "e.parquet").write_text("no parquet")
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
def test_a_pattern_that_fails_is_no_file_to_skip(threads: int, folder: Path, tmp_path: Path) -> None:
    """With several threads it may show when all of the file is given to them: in another, or at the end."""
    (folder / "b.txt").write_text(" ".join([*TEXTS[:100], "a" * 60, *TEXTS[:100]]), encoding="utf-8")
    options = Options(r"((a|aa)+)(?!a)b\1|[\s\S]")
    for last in ("d.txt", "b.txt"):
        files = sources(sorted(path for path in folder.iterdir() if path.name <= last))
        with pytest.raises(ValueError, match=r"^pattern .* could not be matched .*a{40}.*possessive"):
            count_files(files, tmp_path / "o.csv", options, skip_errors=True, threads=threads)
    assert not (tmp_path / "o.csv").exists()


def test_changed_meanwhile(folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "counts.parquet"
    with pytest.raises(Stopped, match=r"what was counted is in .*counts\.parquet\.parts, and --resume goes on with it"):
        count_files(sources(folder), output, stop=StopAfter(4))
    with pytest.raises(FileExistsError, match=r"parts holds a count that was not finished: --resume goes on with it"):
        count_files(sources(folder), output)
    with pytest.raises(ValueError, match=r"it was begun with seed=0, not 5; give the same again, or remove"):
        count_files(sources(folder), output, Options(seed=5), resume=True)
    (folder / "a.parquet").write_bytes((folder / "a.parquet").read_bytes() + b" ")
    with pytest.raises(ValueError, match=r"a\.parquet has changed since then; .*remove .*parts to begin anew"):
        count_files(sources(folder), output, resume=True)
    with pytest.raises(ValueError, match=r"a\.parquet is not given again; "):
        count_files(sources(folder / "d.txt"), output, resume=True)


def test_samples(folder: Path) -> None:
    def sampled(**options: Any) -> ChunkCounts:
        output = folder.parent / "sample.parquet"
        count_files(sources(folder / "a.parquet"), output, Options(**options))
        return ChunkCounts.load(output)

    half, other = sampled(sample=0.5, seed=1), sampled(sample=0.5, seed=2)
    whole = expected(folder / "a.parquet")
    assert half == sampled(sample=0.5, seed=1) != other
    assert 0.3 < half.total / whole.total < 0.7
    limited = sampled(limit_bytes=20_000)
    assert limited == ChunkCounts.count(iter(TEXTS[: next(n for n in range(80) if size(TEXTS[:n]) >= 20_000)]))
    with pytest.raises(ValueError, match=r"sample=1\.5: give a share above 0"):
        sampled(sample=1.5)


def size(texts: list[str]) -> int:
    return sum(len(text.encode()) for text in texts)


def test_a_text_file_is_cut_at_the_limit(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("é" * 100, encoding="utf-8")
    count_files(sources(tmp_path / "a.txt"), tmp_path / "a.csv", Options(limit_bytes=7))
    assert ChunkCounts.load(tmp_path / "a.csv") == ChunkCounts.count("ééé")


def test_long_chunks(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("short " + "x" * 20_000 + " short")
    report = count_files(sources(tmp_path / "a.txt"), tmp_path / "a.parquet")
    assert (report.longest_chunk, report.skipped_chunks) == (20_001, 0)
    report = count_files(sources(tmp_path / "a.txt"), tmp_path / "b.parquet", Options(max_chunk_bytes=100))
    assert (report.longest_chunk, report.skipped_chunks) == (6, 1)
    assert dict(ChunkCounts.load(tmp_path / "b.parquet")) == {"short": 1, " short": 1}


def test_wrong_output(tmp_path: Path) -> None:
    ChunkCounts.count("to be").save(tmp_path / "counts.csv")
    with pytest.raises(ValueError, match=r"counts\.csv is among the files to count: give another name, or remove it"):
        count_files(sources(tmp_path), tmp_path / "counts.csv")
    with pytest.raises(ValueError, match=r"counts\.txt: give a name that ends in \.parquet or \.csv"):
        count_files([], tmp_path / "counts.txt")
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*absent; make it first"):
        count_files([], tmp_path / "absent" / "counts.csv")

"""Counting files into a file: the same counts however it was interrupted, resumed, spilled or sampled."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import multilingual

from batchbpe import ChunkCounts
from batchbpe.corpus import sources
from batchbpe.count_files import Options, count_files
from batchbpe.progress import Stopped
from batchbpe.runs import Runs

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
    monkeypatch.setattr("batchbpe.readers.BATCH_CHARACTERS", 20_000)
    monkeypatch.setattr("batchbpe.tables.BATCH_CHARACTERS", 20_000)
    monkeypatch.setattr("batchbpe.readers.BLOCK", 20_000)


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
    monkeypatch.setattr("batchbpe.count_files.SAVE_EVERY", -1.0)
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

        patched.setattr("batchbpe.count_files.SAVE_EVERY", -1.0)
        patched.setattr(pa.ipc.RecordBatchFileWriter, "write_batch", full)
        for skip_errors in (False, True):
            with pytest.raises(OSError, match=r"cannot write .*parquet\.parts/run-000000\.counts: No space left"):
                count_files(sources(folder), output, skip_errors=skip_errors, resume=True)
    assert not output.exists()
    count_files(sources(folder), output, resume=True)
    assert ChunkCounts.load(output) == expected(folder)


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

"""Files are written whole or not at all, whatever goes wrong."""

import os
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from batchbpe import ChunkCounts, train
from batchbpe.formats import native


def write_counts(path: Path) -> None:
    ChunkCounts.count("new text").save(path)


def write_model(path: Path) -> None:
    native.save(train(ChunkCounts.count("new text"), 258), path)


def fail(*_: Any, **__: Any) -> None:
    raise OSError("no space left")


@pytest.mark.parametrize(
    ("write", "name"), [(write_counts, "a.csv"), (write_counts, "a.parquet"), (write_model, "a.model")]
)
@pytest.mark.parametrize("broken", ["replace", "chmod"])
def test_nothing_is_half_written(
    write: Callable[[Path], None], name: str, broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / name
    path.write_text("old")
    monkeypatch.setattr(Path, broken, fail)
    with pytest.raises(OSError, match="no space left"):
        write(path)
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_failure_while_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.parquet").write_text("old")

    def half(self: pq.ParquetWriter, *_: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(pq.ParquetWriter, "write_batch", half)
    with pytest.raises(OSError, match="no space left"):
        write_counts(tmp_path / "a.parquet")
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("a.parquet", "old")]


def test_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "real.csv").touch()
    (tmp_path / "a.csv").symlink_to(tmp_path / "real.csv")
    write_counts(tmp_path / "a.csv")
    assert (tmp_path / "a.csv").is_symlink() and "new" in (tmp_path / "real.csv").read_text()


@pytest.mark.skipif(os.name != "posix", reason="pipes have names on posix")
def test_a_pipe_stays_one(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.csv")
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit((tmp_path / "a.csv").read_text)
        write_counts(tmp_path / "a.csv")
        assert "new" in read.result()
    assert (tmp_path / "a.csv").is_fifo()


def test_missing_folder(tmp_path: Path) -> None:
    for write in (write_counts, write_model):
        with pytest.raises(FileNotFoundError, match=r"cannot write .*absent.a\.csv: .*no folder .*; make it first"):
            write(tmp_path / "absent" / "a.csv")


def test_errors_name_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device", "/hidden/.name.tmp")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match=rf"^cannot write {tmp_path}/a\.model: No space left on device$"):
        write_model(tmp_path / "a.model")
    monkeypatch.setattr(tempfile, "mkstemp", full)
    with pytest.raises(OSError, match=rf"^cannot write {tmp_path}/a\.parquet: No space left on device$"):
        write_counts(tmp_path / "a.parquet")


@pytest.mark.skipif(os.name != "posix", reason="modes are posix")
def test_mode_of_a_new_file(tmp_path: Path) -> None:
    write_model(tmp_path / "a.model")
    (tmp_path / "plain").write_text("")
    assert (tmp_path / "a.model").stat().st_mode == (tmp_path / "plain").stat().st_mode

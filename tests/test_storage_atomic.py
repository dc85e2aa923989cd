"""Files are written whole or not at all, whichever step fails."""

import os
import re
import stat
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from batchbpe import ChunkCounts, train
from batchbpe.formats import native
from batchbpe.storage import locks
from batchbpe.storage.atomic import STALE, new_folder, replacing
from batchbpe.storage.locks import has_locks, try_lock


def write_counts(path: Path) -> None:
    ChunkCounts.count("new text").save(path)


def write_model(path: Path) -> None:
    native.save(train(ChunkCounts.count("new text"), 258), path)


def fail(*_: Any, **__: Any) -> None:
    raise OSError("no space left")


@pytest.mark.parametrize(
    ("write", "name"), [(write_counts, "a.csv"), (write_counts, "a.parquet"), (write_model, "a.model")]
)
@pytest.mark.parametrize("broken", [(Path, "replace"), (os, "fsync")])
def test_nothing_is_half_written(
    write: Callable[[Path], None], name: str, broken: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / name
    path.write_text("old")
    monkeypatch.setattr(*broken, fail)
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


@pytest.mark.skipif(os.name != "posix", reason="links need a privilege on Windows")
def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.csv").touch()
    (tmp_path / "a.csv").symlink_to(tmp_path / "real.csv")
    write_counts(tmp_path / "a.csv")
    assert (tmp_path / "a.csv").is_symlink() and "new" in (tmp_path / "real.csv").read_text()


@pytest.mark.skipif(os.name != "posix", reason="named pipes are posix")
def test_a_pipe_stays_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.csv")
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit((tmp_path / "a.csv").read_text)
        write_counts(tmp_path / "a.csv")
        assert "new" in read.result()
    assert (tmp_path / "a.csv").is_fifo()


def test_missing_folder(tmp_path: Path) -> None:
    for write in (write_counts, write_model):
        with pytest.raises(
            FileNotFoundError, match=r"cannot write .*absent.a\.csv: folder not found: .*absent; create it first"
        ):
            write(tmp_path / "absent" / "a.csv")


def test_errors_name_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "Error writing bytes to file", str(tmp_path / ".a.model.0a1b2c3d.tmp"))

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(
        OSError, match=rf"^cannot write {re.escape(str(tmp_path / 'a.model'))}: no space left on device$"
    ):
        write_model(tmp_path / "a.model")
    monkeypatch.setattr(os, "open", full)
    with pytest.raises(
        OSError, match=rf"^cannot write {re.escape(str(tmp_path / 'a.model'))}: no space left on device$"
    ):
        write_model(tmp_path / "a.model")


@pytest.mark.skipif(os.name != "posix", reason="modes are posix")
def test_permissions_of_a_new_file(tmp_path: Path) -> None:
    write_model(tmp_path / "a.model")
    (tmp_path / "plain").write_text("")
    assert (tmp_path / "a.model").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_data_is_synced_before_the_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    sync, rename = os.fsync, Path.replace

    def fsync(handle: int) -> None:
        folder = stat.S_ISDIR(os.fstat(handle).st_mode)
        done.append("folder" if folder else f"{os.fstat(handle).st_size} bytes")
        sync(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "replace", lambda self, target: (done.append("rename"), rename(self, target))[1])
    with replacing(tmp_path / "a.txt") as temporary:
        temporary.write_text("whole")
    assert done == ["5 bytes", "rename", *(["folder"] if os.name == "posix" else [])]


def test_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On Windows. Temporary files of other processes stay, since nothing tells whether they are still written."""
    monkeypatch.setattr(locks, "fcntl", None)
    other = tmp_path / ".a.csv.0a1b2c3d.tmp"
    other.write_text("half")
    os.utime(other, (0, 0))
    write_counts(tmp_path / "a.csv")
    with new_folder(tmp_path / "new") as folder:
        (folder / "b.txt").write_text("whole")
    with pytest.raises(KeyboardInterrupt), replacing(tmp_path / "a.csv"):
        raise KeyboardInterrupt
    assert {path.name for path in tmp_path.rglob("*")} == {"a.csv", other.name, "new", "b.txt"}
    assert len(ChunkCounts.load(tmp_path / "a.csv")) == 2


@pytest.mark.skipif(not has_locks(), reason="the system has no flock")
def test_stale_temporary_files_are_removed(tmp_path: Path) -> None:
    """Only old, unlocked files of the same target are removed."""
    stale, recent, held, other = (
        tmp_path / name
        for name in (".a.csv.0a1b2c3d.tmp", ".a.csv.a_recent.tmp", ".a.csv.heldheld.tmp", ".b.csv.0a1b2c3d.tmp")
    )
    for path in (stale, recent, held, other):
        path.write_text("half")
    for path in (stale, held, other):
        os.utime(path, (0, time.time() - 2 * STALE))
    with held.open("r+") as file:
        assert try_lock(file.fileno())
        write_counts(tmp_path / "a.csv")
        assert sorted(tmp_path.iterdir()) == sorted([tmp_path / "a.csv", recent, held, other])
    write_counts(tmp_path / "a.csv")
    assert not held.exists()


@pytest.mark.skipif(not has_locks(), reason="the system has no flock")
def test_a_file_is_locked_while_it_is_written(tmp_path: Path) -> None:
    with replacing(tmp_path / "a.csv") as first:
        first.write_text("first")
        os.utime(first, (0, 0))
        with replacing(tmp_path / "a.csv") as second:
            second.write_text("second")
        assert first.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]
    assert (tmp_path / "a.csv").read_text() == "first"


@pytest.mark.skipif(not has_locks(), reason="the system has no flock")
def test_stale_folders_are_removed(tmp_path: Path) -> None:
    stale = tmp_path / ".new.0a1b2c3d.tmp"
    stale.mkdir()
    (stale / "half").write_text("half")
    os.utime(stale, (0, 0))
    with new_folder(tmp_path / "new") as first:
        os.utime(first, (0, 0))
        (first / "a.txt").write_text("whole")
        message = rf"^cannot write {tmp_path}/new/b: full$"
        with pytest.raises(OSError, match=message), new_folder(tmp_path / "new") as temporary:
            raise OSError(f"cannot write {temporary}/b: full")
        assert list(tmp_path.iterdir()) == [first]
    assert [str(path.relative_to(tmp_path)) for path in sorted(tmp_path.rglob("*"))] == ["new", "new/a.txt"]


def test_errors_of_other_files_keep_their_names(tmp_path: Path) -> None:
    for error in (PermissionError(13, "Permission denied", "input.txt"), OSError("cannot read input.txt: broken")):
        with pytest.raises(OSError, match=r"input\.txt") as caught, replacing(tmp_path / "a.csv"):
            raise error
        assert caught.value is error


@pytest.mark.skipif(os.name != "posix", reason="modes are posix")
def test_the_umask_is_not_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The umask is shared by all threads."""
    monkeypatch.setattr(os, "umask", fail)
    write_model(tmp_path / "a.model")

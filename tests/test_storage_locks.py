"""One job per output: processes take locks, are killed, and race for locks."""

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from batchbpe.storage import locks
from batchbpe.storage.locks import has_locks, locked

HOLD = """
import sys
from pathlib import Path
from batchbpe.storage import locks
if sys.argv[2:]:
    locks.fcntl = None
with locks.locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(params=["flock", "existence"])
def mechanism(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Test locks of the system, and the fallback without them."""
    if request.param == "existence":
        monkeypatch.setattr(locks, "fcntl", None)
    elif not has_locks():
        pytest.skip("the system has no flock")
    return str(request.param)


@contextmanager
def holder(output: Path, mechanism: str) -> Iterator["subprocess.Popen[str]"]:
    """Start another process that holds the lock."""
    command = [sys.executable, "-c", HOLD, str(output), *(["existence"] if mechanism == "existence" else [])]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout and process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("name", ["a.parquet", "folder"])
def test_another_process_holds_the_lock(name: str, mechanism: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    output = tmp_path / name
    with holder(output, mechanism) as process:
        message = rf"{name} is being written by process {process.pid} on host .* since 20..-.*; wait for it to finish"
        with pytest.raises(BlockingIOError, match=message), locked(output):
            pass
        process.communicate("", timeout=30)
    with locked(output):
        pass
    assert [path.name for path in tmp_path.rglob("*")] == ["folder"]


@pytest.mark.skipif(os.name != "posix", reason="signals are posix")
def test_a_killed_owner_does_not_block(mechanism: str, tmp_path: Path) -> None:
    output = tmp_path / "a.parquet"
    with holder(output, mechanism) as process:
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=30)
    assert [path.name for path in tmp_path.iterdir()] == [".a.parquet.lock"]
    with locked(output):
        assert json.loads((tmp_path / ".a.parquet.lock").read_text())["pid"] == os.getpid()
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.name != "posix", reason="links need a privilege on Windows")
def test_links_to_one_file_share_a_lock(mechanism: str, tmp_path: Path) -> None:
    (tmp_path / "real.csv").touch()
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    with locked(tmp_path / "link.csv"), pytest.raises(BlockingIOError), locked(tmp_path / "real.csv"):
        pass


def test_a_lock_file_that_names_no_process(mechanism: str, tmp_path: Path) -> None:
    """A recent one may not be written yet; an old one is stale."""
    lock = tmp_path / ".a.csv.lock"
    lock.write_text("{")
    if mechanism == "existence":
        with pytest.raises(BlockingIOError, match=r"a\.csv is being written; wait for it"), locked(tmp_path / "a.csv"):
            pass
    os.utime(lock, (0, 0))
    with locked(tmp_path / "a.csv"):
        pass
    assert not lock.exists()


def test_a_process_on_another_host_may_be_alive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "fcntl", None)
    owner = {"pid": 1, "host": "elsewhere", "since": "2020-01-01 00:00:00"}
    (tmp_path / ".a.csv.lock").write_text(json.dumps(owner))
    message = r"by process 1 on host elsewhere since 2020-01-01 00:00:00; .*if it has ended, remove .*\.a\.csv\.lock"
    with pytest.raises(BlockingIOError, match=message), locked(tmp_path / "a.csv"):
        pass


@pytest.mark.skipif(not has_locks(), reason="the system has no flock")
@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_file_system_without_locks(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(locks.fcntl, "flock", unsupported)
    message = rf"by process {os.getpid()} on host .*; if it has ended, remove .*\.a\.csv\.lock"
    with locked(tmp_path / "a.csv"), pytest.raises(BlockingIOError, match=message), locked(tmp_path / "a.csv"):
        pass
    assert not list(tmp_path.iterdir())


def test_an_output_that_cannot_be_locked(tmp_path: Path) -> None:
    message = r"^cannot write .*a\.csv: folder not found: .*absent; create it first"
    with pytest.raises(FileNotFoundError, match=message), locked(tmp_path / "absent" / "a.csv"):
        pass
    (tmp_path / "file").touch()
    message = r"^cannot write .*file.a\.csv: .*file is a file$"
    with pytest.raises(NotADirectoryError, match=message), locked(tmp_path / "file" / "a.csv"):
        pass
    (tmp_path / ".a.csv.lock").mkdir()
    message = r"^cannot write .*\.a\.csv\.lock: is a directory"
    with pytest.raises(IsADirectoryError, match=message), locked(tmp_path / "a.csv"):
        pass


RACE = """
import sys
from pathlib import Path
from batchbpe.storage.locks import has_locks, locked
folder, done = Path(sys.argv[1]), 0
while done < 60:
    try:
        with locked(folder / "a"):
            before = int((folder / "number").read_text())
            (folder / "number").write_text(str(before + 1))
            done += 1
    except BlockingIOError:
        pass
"""


@pytest.mark.skipif(not has_locks(), reason="the system has no flock")
def test_only_one_process_holds_the_lock(tmp_path: Path) -> None:
    """Lock files are created and removed all the time."""
    (tmp_path / "number").write_text("0")
    racing = [subprocess.Popen([sys.executable, "-c", RACE, str(tmp_path)]) for _ in range(3)]
    assert [process.wait(timeout=60) for process in racing] == [0, 0, 0]
    assert (tmp_path / "number").read_text() == "180"

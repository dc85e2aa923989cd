"""The command line as a process: signals, closed pipes, full disks and completion."""

import io
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import HANG, TEXT, run

from batchbpe import ChunkCounts
from batchbpe.__main__ import _prepare_streams

needs_bash = pytest.mark.skipif(os.name != "posix" or not shutil.which("bash"), reason="needs bash, with posix paths")


def spawned(place: Path, command: list[str], pause_at: int = 0, **given: Any) -> "subprocess.Popen[str]":
    """Start the command in a process that saves often, and receives Ctrl-C even in the background.

    Before it renames a file for the `pause_at`-th time, it creates the file `paused` and waits for the file `continue`.
    """
    code = f"""if True:
        import itertools, signal, sys, time
        from pathlib import Path
        from batchbpe import __main__
        from batchbpe.data.options import ReadOptions
        from batchbpe.jobs import count
        signal.signal(signal.SIGINT, signal.default_int_handler)
        count.SAVE_EVERY = -1.0
        ReadOptions.BATCH_CHARACTERS = 20_000
        renames = itertools.count(1)
        def pause(event, arguments):
            if event == "os.rename" and next(renames) == {pause_at}:
                Path("paused").touch()
                while not Path("continue").exists():
                    time.sleep(0.01)
        sys.addaudithook(pause)
        __main__.main()
    """
    return subprocess.Popen(
        [sys.executable, "-c", code, *command], cwd=place, stderr=subprocess.PIPE, text=True, **given
    )


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + HANG
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def send(signal_: signal.Signals, running: "subprocess.Popen[str]", place: Path) -> str:
    """Send a signal to a process when it has paused. Return its standard error."""
    wait_until((place / "paused").exists)
    running.send_signal(signal_)
    (place / "continue").touch()
    error = running.communicate(timeout=HANG)[1]
    for name in ("paused", "continue"):
        (place / name).unlink()
    return error


def has_been_read(pipe: int) -> bool:
    import fcntl  # posix
    import termios

    unread = bytearray(4)
    fcntl.ioctl(pipe, termios.FIONREAD, unread)
    return not any(unread)


def write_parquet(place: Path) -> None:
    """Write documents that are read in several batches."""
    pq.write_table(pa.table({"text": [TEXT] * 40}), place / "one.parquet", row_group_size=10)
    (place / "two.parquet").hardlink_to(place / "one.parquet")


@pytest.mark.skipif(os.name != "posix", reason="signals are posix")
def test_interrupted_while_it_waits(place: Path) -> None:
    reading, writing = os.pipe()
    with spawned(place, ["count", "-", "-o", "all.parquet"], stdin=reading) as running:
        os.write(writing, b"to be ")
        wait_until(lambda: has_been_read(reading))
        running.send_signal(signal.SIGINT)
        assert running.communicate(timeout=HANG)[1].endswith("interrupted\n")
    os.close(writing)
    os.close(reading)
    assert running.returncode == 130


@pytest.mark.skipif(os.name != "posix", reason="signals are posix")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_interrupted_and_resumed(name: str, place: Path) -> None:
    signal_ = signal.Signals[name]
    write_parquet(place)
    command = ["count", ".", "-o", "all.parquet"]
    (place / "counts.parquet").unlink()
    with spawned(place, command, pause_at=3) as running:
        output = send(signal_, running, place)
    assert (place / "all.parquet.parts" / "record.json").exists()
    assert not (place / "all.parquet").exists()
    if name != "SIGKILL":
        assert running.returncode == 128 + signal_
        assert output.splitlines()[-1].startswith(
            "stopped; the counts so far are in all.parquet.parts; continue with --resume"
        )
    refused = run(command)
    assert refused.exit_code == 1 and "continue with --resume or remove it" in refused.stderr
    resumed = run([*command, "--resume", "-q"])
    assert resumed.exit_code == 0, resumed.stderr
    counts = ChunkCounts.load("all.parquet")
    Path("all.parquet").unlink()
    assert counts == ChunkCounts.count(place, threads=1)
    assert not (place / "all.parquet.parts").exists()


@pytest.mark.skipif(os.name != "posix", reason="signals are posix")
@pytest.mark.parametrize("output", ["all.npy", "shards"])
def test_terminated_without_leftovers(output: str, place: Path) -> None:
    write_parquet(place)
    (place / "counts.parquet").unlink()
    before = sorted(path.name for path in place.iterdir())
    with spawned(
        place, ["encode", "mine.model", *map(str, place.glob("*.parquet")), "-o", output], pause_at=1
    ) as running:
        assert send(signal.SIGTERM, running, place).splitlines()[-1] == "terminated"
    assert running.returncode == 143
    assert [path.name for path in sorted(place.iterdir())] == sorted(
        {*before, *(["shards"] if output == "shards" else [])}
    )
    assert output == "all.npy" or not list((place / output).iterdir())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is full")
@pytest.mark.parametrize("command", ["encode mine.model book.txt", "--help", "inspect counts.parquet --json"])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_standard_output_on_a_full_disk(place: Path, command: str, unbuffered: str) -> None:
    with Path("/dev/full").open("w") as full:
        env = os.environ | {"PYTHONUNBUFFERED": unbuffered}
        shell = [sys.executable, "-m", "batchbpe", *command.split()]
        done = subprocess.run(shell, cwd=place, env=env, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "no space left" in done.stderr, done.stderr


@needs_bash
def test_closed_streams(place: Path) -> None:
    script = """
        set -e
        batchbpe() { %s -m batchbpe "$@"; }
        batchbpe encode mine.model <&-
        batchbpe encode mine.model book.txt >&-
        batchbpe count book.txt -o closed.csv 2>&-
    """
    done = subprocess.run(["bash", "-c", script % sys.executable], cwd=place, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert ChunkCounts.load(place / "closed.csv") == ChunkCounts.load(place / "counts.parquet")


@needs_bash
def test_a_closed_pipe(place: Path) -> None:
    shell = f"{sys.executable} -m batchbpe inspect mine.model --longest 600 | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", shell], cwd=place, capture_output=True, text=True)
    assert (done.stderr, done.stdout.split()) == ("", ["id", "token", "bytes"])


@pytest.mark.skipif(sys.getfilesystemencoding() != "utf-8", reason="arguments must be able to have any character")
def test_pipes_receive_utf8(place: Path) -> None:
    """Windows encodes pipes as cp1252 by default, which has no Chinese characters and no arrow."""
    Path("han.txt").write_text("語 → " * 9, encoding="utf-8")
    assert run("train han.txt -n 262 -o han -q").exit_code == 0
    env = os.environ | {"PYTHONUTF8": "0", "PYTHONIOENCODING": "cp1252"}
    for command in ("inspect han.model --json", "inspect han.model --search 語", "evaluate han.model --data han.txt"):
        shell = [sys.executable, "-m", "batchbpe", *command.split()]
        done = subprocess.run(shell, cwd=place, env=env, capture_output=True)
        assert (done.returncode, done.stdout.decode("utf-8")) == (0, run(command).stdout), done.stderr
    failed = subprocess.run([*shell[:3], "inspect", "語.model"], cwd=place, env=env, capture_output=True)
    assert failed.returncode == 1 and "file not found: 語.model" in failed.stderr.decode("utf-8")


def test_a_terminal_shows_what_its_encoding_does_not_have(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.BytesIO):
        def isatty(self) -> bool:
            return True

    shown = [Terminal(), Terminal()]
    for name, terminal in zip(("stdout", "stderr"), shown, strict=True):
        monkeypatch.setattr(sys, name, io.TextIOWrapper(terminal, "cp1252", newline=""))
    _prepare_streams()
    for stream in (sys.stdout, sys.stderr):
        stream.write("é →")
        stream.flush()
    assert [terminal.getvalue() for terminal in shown] == [b"\xe9 \\u2192"] * 2


@needs_bash
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("ev", "evaluate"),
        ("train --policy ", "serial naive positional continue_search exact"),
        ("experiment st", "stop-words"),
    ],
)
def test_completion(words: str, expected: str) -> None:
    completion = {"_BATCHBPE_COMPLETE": "complete_bash", "COMP_WORDS": f"batchbpe {words}"}
    env = os.environ | completion | {"COMP_CWORD": str(words.count(" ") + 1)}
    done = subprocess.run([sys.executable, "-m", "batchbpe"], capture_output=True, text=True, env=env)
    assert done.stdout.split() == expected.split()

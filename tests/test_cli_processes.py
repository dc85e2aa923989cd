"""The command line as a process: signals, closed pipes, full disks and completion."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import TEXT, run

from batchbpe import ChunkCounts


def spawned(place: Path, command: list[str], **given: Any) -> "subprocess.Popen[str]":
    """Start the command in a process that saves often, and receives Ctrl-C even in the background."""
    code = """if True:
        import signal
        from batchbpe import __main__
        from batchbpe.jobs import count
        signal.signal(signal.SIGINT, signal.default_int_handler)
        count.SAVE_EVERY = 0.1
        __main__.main()
    """
    return subprocess.Popen(
        [sys.executable, "-c", code, *command], cwd=place, stderr=subprocess.PIPE, text=True, **given
    )


def large(place: Path) -> None:
    """A few hundred megabytes, which take a few seconds."""
    table = pa.table({"text": [TEXT * 40] * 400})
    pq.write_table(table, place / "one.parquet", row_group_size=100)
    for name in "two", "three", "four", "five", "six":
        (place / f"{name}.parquet").hardlink_to(place / "one.parquet")


@pytest.mark.skipif(os.name != "posix", reason="signals are posix")
def test_interrupted_while_it_waits(place: Path) -> None:
    reading, writing = os.pipe()
    with spawned(place, ["count", "-", "-o", "all.parquet"], stdin=reading) as running:
        os.write(writing, b"to be ")
        time.sleep(3)
        running.send_signal(signal.SIGINT)
        assert running.communicate(timeout=30)[1].endswith("interrupted\n")
    os.close(writing)
    os.close(reading)
    assert running.returncode == 130


@pytest.mark.skipif(os.name != "posix", reason="signals are posix")
@pytest.mark.parametrize("signal_", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_interrupted_and_resumed(signal_: signal.Signals, place: Path) -> None:
    large(place)
    command = ["count", ".", "-o", "all.parquet"]
    (place / "counts.parquet").unlink()
    with spawned(place, command) as running:
        deadline = time.monotonic() + 60
        while not (place / "all.parquet.parts" / "record.json").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        running.send_signal(signal_)
        _, output = running.communicate(timeout=60)
    assert not (place / "all.parquet").exists()
    if signal_ != signal.SIGKILL:
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
    large(place)
    (place / "counts.parquet").unlink()
    before = sorted(path.name for path in place.iterdir())
    with spawned(place, ["encode", "mine.model", *map(str, place.glob("*.parquet")), "-o", output]) as running:
        deadline = time.monotonic() + 60
        while not list(place.rglob(".*.tmp")) and time.monotonic() < deadline:
            time.sleep(0.01)
        running.send_signal(signal.SIGTERM)
        assert running.communicate(timeout=60)[1].splitlines()[-1] == "terminated"
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


@pytest.mark.skipif(os.name != "posix", reason="as a shell closes streams")
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


def test_a_closed_pipe(place: Path) -> None:
    shell = f"{sys.executable} -m batchbpe inspect mine.model --longest 600 | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", shell], cwd=place, capture_output=True, text=True)
    assert (done.stderr, done.stdout.split()) == ("", ["id", "token", "bytes"])


@pytest.mark.skipif(not shutil.which("bash"), reason="there is no bash")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("ev", "evaluate"),
        ("train --policy ", "serial naive positional continue_search"),
        ("experiment st", "stop-words"),
    ],
)
def test_completion(words: str, expected: str) -> None:
    completion = {"_BATCHBPE_COMPLETE": "complete_bash", "COMP_WORDS": f"batchbpe {words}"}
    env = os.environ | completion | {"COMP_CWORD": str(words.count(" ") + 1)}
    done = subprocess.run([sys.executable, "-m", "batchbpe"], capture_output=True, text=True, env=env)
    assert done.stdout.split() == expected.split()

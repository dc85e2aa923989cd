"""Processes that are killed by signals at random moments and resumed write the same bytes as uninterrupted ones.

A moment is the n-th audit event of Python, such as opening or renaming a file, so that it does not depend on speed.
`BATCHBPE_FUZZ_KILLS` sets the number of kills, 4 by default.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import FUZZ_SEED, HANG, multilingual

from batchbpe import Tokenizer

KILLS = int(os.environ.get("BATCHBPE_FUZZ_KILLS", "4"))
RUN = """if True:
    import os, signal, sys
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it in the background
    from batchbpe import __main__
    from batchbpe.data.options import ReadOptions
    from batchbpe.jobs import count
    count.SAVE_EVERY = -1.0
    ReadOptions.BATCH_CHARACTERS = 20_000
    number, moment = int(sys.argv.pop(1)), int(sys.argv.pop(1))
    events = 0
    def count_event(event, arguments):
        global events
        events += 1
        if events == moment:
            os.kill(os.getpid(), number)
    sys.addaudithook(count_event)
    try:
        __main__.main()
    finally:
        print(events)
"""
SIGNALS = ("SIGKILL", "SIGTERM", "SIGINT")

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals are posix")


def run(folder: Path, command: list[str], ended_by: str | None = None, moment: int = 0) -> tuple[int, str]:
    """Run a command that sends itself a signal at the given moment. Return its exit code and output."""
    number = getattr(signal, ended_by) if ended_by else 0
    given = [sys.executable, "-c", RUN, str(int(number)), str(moment), *command]
    done = subprocess.run(given, cwd=folder, capture_output=True, text=True, timeout=HANG, check=False)
    # During the exit of Python, a signal kills the process.
    assert done.returncode in ({0, -number, 128 + number} if ended_by else {0}), done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout


def written(folder: Path, name: str) -> dict[str, bytes]:
    """Return the files of an output, and anything else that a job has left next to it."""
    inputs = {"data.jsonl", "mine.model", "mine.vocab", f"whole{Path(name).suffix}"}
    found = (path for path in folder.rglob("*") if path.is_file())
    files = {str(path.relative_to(folder)): path.read_bytes() for path in found}
    return {path: data for path, data in files.items() if Path(path).parts[0] not in inputs}


@pytest.mark.parametrize("name", ["counts.parquet", "shards"])
def test_killed_and_resumed(name: str, tmp_path: Path) -> None:
    texts = [multilingual(3000, seed) for seed in range(40)] * 2
    (tmp_path / "data.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    Tokenizer.train(iter(texts[:9]), 500).save(tmp_path / "mine")
    command = ["count", "data.jsonl", "-q", "--threads", "1", "-o"]
    if name == "shards":
        command = ["encode", "mine.model", "data.jsonl", "-q", "--threads", "1", "--shard-tokens", "8000", "-o"]
    moments = int(run(tmp_path, [*command, name])[1])
    whole = written(tmp_path, name)
    chance = random.Random(f"{name} {FUZZ_SEED}")
    killed = 0
    while killed < KILLS // 2:
        for path in sorted(tmp_path.glob(f"*{name}*")):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        resume: list[str] = []
        for _ in range(3):  # times in a row
            code, _ = run(tmp_path, [*command, name, *resume], chance.choice(SIGNALS), chance.randint(1, moments))
            killed += code != 0
            resume = ["--resume"]
            if code == 0:
                break
        run(tmp_path, [*command, name, "--resume"])
        assert written(tmp_path, name) == whole

"""Processes that are killed by signals at random moments and resumed write the same bytes as uninterrupted ones.

`BATCHBPE_FUZZ_KILLS` sets the number of kills, 4 by default.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import multilingual

from batchbpe import Tokenizer

KILLS = int(os.environ.get("BATCHBPE_FUZZ_KILLS", "4"))
RUN = """if True:
    import signal
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it in the background
    from batchbpe import __main__
    from batchbpe.data import limits
    from batchbpe.jobs import count
    count.SAVE_EVERY = 0.02
    limits.BATCH_CHARACTERS = 20_000
    print("ready", flush=True)
    __main__.main()
"""
SIGNALS = ("SIGKILL", "SIGTERM", "SIGINT")

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals are posix")


def run(place: Path, command: list[str], ended_by: str | None = None, after: float = 0.0) -> int:
    """Run a command, and send it a signal after some seconds of work."""
    given = [sys.executable, "-c", RUN, *command]
    with subprocess.Popen(given, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout and process.stdout.readline() == "ready\n"
        if ended_by:
            time.sleep(after)
            process.send_signal(getattr(signal, ended_by))
        stderr = process.communicate(timeout=60)[1]
    # During start-up and exit of Python, a signal kills the process.
    allowed = {0, -number, 128 + number} if (number := getattr(signal, ended_by or "", 0)) else {0}
    assert process.returncode in allowed and "Traceback" not in stderr, stderr
    return process.returncode


def written(place: Path, name: str) -> dict[str, bytes]:
    """Return the files of an output, and anything else that a job has left next to it."""
    inputs = {"data.jsonl", "mine.model", "mine.vocab", f"whole{Path(name).suffix}"}
    found = (path for path in place.rglob("*") if path.is_file())
    files = {str(path.relative_to(place)): path.read_bytes() for path in found}
    return {path: data for path, data in files.items() if Path(path).parts[0] not in inputs}


@pytest.mark.parametrize("name", ["counts.parquet", "shards"])
def test_killed_and_resumed(name: str, tmp_path: Path) -> None:
    texts = [multilingual(3000, seed) for seed in range(40)] * 2
    (tmp_path / "data.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    Tokenizer.train(iter(texts[:9]), 500).save(tmp_path / "mine")
    command = ["count", "data.jsonl", "-q", "--threads", "1", "-o"]
    if name == "shards":
        command = ["encode", "mine.model", "data.jsonl", "-q", "--threads", "1", "--shard-tokens", "8000", "-o"]
    start = time.monotonic()
    run(tmp_path, [*command, name])
    seconds = time.monotonic() - start
    whole = written(tmp_path, name)
    chance = random.Random(name)
    killed = 0
    while killed < KILLS // 2:
        for path in sorted(tmp_path.glob(f"*{name}*")):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        resume: list[str] = []
        for _ in range(3):  # times in a row
            how = chance.choice(SIGNALS)
            code = run(tmp_path, [*command, name, *resume], how, chance.uniform(0, seconds))
            killed += code != 0
            resume = ["--resume"]
            if code == 0:
                break
        run(tmp_path, [*command, name, "--resume"])
        assert written(tmp_path, name) == whole

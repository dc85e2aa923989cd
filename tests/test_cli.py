"""The command line: what is printed, what is written, and the exit codes."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import multilingual
from typer.main import get_command
from typer.testing import CliRunner, Result

from batchbpe import ChunkCounts, Tokenizer, __version__
from batchbpe.cli import app

END = "<|endoftext|>"
TEXT = "To be, or not to be: that is the question. " * 20 + multilingual(2000)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a text, counts and a model, where the command runs."""
    monkeypatch.chdir(tmp_path)
    Path("book.txt").write_text(TEXT, encoding="utf-8")
    assert run("count book.txt -o counts.parquet --quiet").exit_code == 0
    assert run(["train", "counts.parquet", "-n", "600", "--special-token", END, "-o", "mine", "-q"]).exit_code == 0
    return tmp_path


def run(command: str | list[str], text: str | bytes | None = None) -> Result:
    return CliRunner().invoke(app, command.split() if isinstance(command, str) else command, input=text)


def test_help_and_version() -> None:
    assert run("--version").stdout == f"batchbpe {__version__}\n"
    assert run("").exit_code == 2
    for name in get_command(app).commands:  # type: ignore[attr-defined]
        result = run(f"{name} --help")
        assert result.exit_code == 0
        assert re.search(rf"Example: batchbpe {name} ", result.stdout)


def test_count(place: Path) -> None:
    result = run("count book.txt -o again.csv")
    counts = ChunkCounts.count(iter([TEXT]))
    assert result.stdout == ""
    assert result.stderr.startswith(f"counted {counts.total:,} chunks, {counts.unique:,} of them unique, in")
    assert result.stderr.endswith("again.csv\n")
    assert ChunkCounts.load("again.csv") == ChunkCounts.load("counts.parquet") == counts
    output = json.loads(run("count book.txt -o again.parquet --json").stdout)
    assert (output["total"], output["unique"], output["files"], output["failed"]) == (
        counts.total,
        counts.unique,
        1,
        {},
    )
    assert run("count - -o piped.csv -q", TEXT).stderr == ""
    assert ChunkCounts.load("piped.csv") == counts
    lines = "".join(json.dumps({"body": line}) + "\n" for line in TEXT.splitlines())
    assert run("count - -o lines.csv -q --jsonl-field body", lines).exit_code == 0
    Path("a.jsonl").write_text(lines)
    assert run("count a.jsonl -o file.csv -q --jsonl-field body").exit_code == 0
    assert ChunkCounts.load("lines.csv") == ChunkCounts.load("file.csv") == ChunkCounts.count(iter(TEXT.splitlines()))


def test_train(place: Path) -> None:
    result = run("train counts.parquet --vocab-size 350 --stop-list-size 5 --freq-cutoff 2 -o small")
    assert re.search(r"350 tokens: 5 stop words, 0 special tokens, 89 merges in \d+ batches", result.stderr)
    same = Tokenizer.train(ChunkCounts.load("counts.parquet"), 350, stop_list_size=5, freq_cutoff=2)
    assert Tokenizer.from_file("small.model").merges == same.merges
    assert Path("small.vocab").exists()
    for policy in ("serial", "naive", "positional"):
        assert run(f"train book.txt -n 300 --policy {policy} -o by_policy -q").exit_code == 0
    output = json.loads(run("train book.txt -n 700 --base mine.model -o longer --json").stdout)
    assert output["tokens"] == 700
    assert Tokenizer.from_file("longer.model").special_tokens == {END: 599}
    assert run("train - -n 300 -o piped -q", TEXT).exit_code == 0


def test_encode_and_decode(place: Path) -> None:
    mine = Tokenizer.from_file("mine.model")
    ids = mine.encode_ordinary(TEXT)
    assert run("encode mine.model book.txt -o book.npy -q").exit_code == 0
    assert np.load("book.npy").tolist() == ids
    assert run("decode mine.model book.npy").stdout_bytes == TEXT.encode()
    assert run("encode mine.model book.txt -o book.bin -q").exit_code == 0
    assert np.fromfile("book.bin", np.uint16).tolist() == ids
    assert run("decode mine.model book.bin -o again.txt").exit_code == 0
    assert Path("again.txt").read_bytes() == TEXT.encode()
    printed = run("encode mine.model", "to be").stdout
    assert printed == " ".join(map(str, mine.encode("to be"))) + "\n"
    assert run("decode mine.model", printed).stdout == "to be"
    assert (
        run("encode mine.model --show", "to be\n").stdout
        == "|".join(mine.decode([token]).replace("\n", "\\n") for token in mine.encode("to be\n")) + "\n"
    )
    assert run(["encode", "mine.model", "--end-of-text", END], "to be").stdout == printed.strip() + " 599\n"
    assert json.loads(run("encode mine.model --json", "to be").stdout) == mine.encode("to be")
    result = run(["encode", "mine.model", "book.txt", "book.txt", "-o", "tokens", "--end-of-text", END])
    assert "tokens of 2 documents in 1 shard" in result.stderr
    assert np.fromfile("tokens/shard_000000.bin", np.uint16).tolist() == [*ids, 599] * 2


def test_a_part_of_the_data(place: Path) -> None:
    """It is the same part for all commands; nothing is made of files that lie behind it."""
    rows = [{"body": TEXT[start : start + 90]} for start in range(0, len(TEXT), 90)]
    Path("data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    options = "--jsonl-field body --sample 0.5 --seed 3"
    assert run(f"count data.jsonl -o part.csv -q {options}").exit_code == 0
    assert run(f"train data.jsonl -n 400 -o part -q {options}").exit_code == 0
    assert run("train part.csv -n 400 -o counted -q").exit_code == 0
    assert Path("part.model").read_bytes() == Path("counted.model").read_bytes()
    assert len(run("encode mine.model book.txt book.txt --limit-bytes 5").stdout.splitlines()) == 1
    for number in range(40):  # of one name: each has luck of its own
        Path(f"all/{number}").mkdir(parents=True)
        Path(f"all/{number}/index.md").write_text(TEXT[: 9 + number], encoding="utf-8")
    assert 5 < len(run("encode mine.model all --sample 0.5").stdout.splitlines()) < 35


def test_training_goes_on(place: Path) -> None:
    """The special tokens of the base are no text, then too."""
    Path("more.txt").write_text(f"{END}{END} thou" * 9, encoding="utf-8")
    assert run("train more.txt -n 602 -o more -q --base mine.model").exit_code == 0
    assert len(Tokenizer.from_file("more.model").encode(" thou")) == 1


def test_inspect(place: Path) -> None:
    assert re.search(r"tokens\s+600\n", run("inspect mine.model").stdout)
    assert json.loads(run("inspect mine.model --json").stdout)["merges"] == 343
    tree = run(["inspect", "mine.model", "--token", " be"]).stdout
    assert tree.splitlines()[0] == f"{Tokenizer.from_file('mine.model').encode(' be')[0]} ' be'"
    first, *parts = json.loads(run("inspect mine.model --id 300 --json").stdout)
    assert first["id"] == 300 and first["parts"][0] == parts[0]["id"]
    assert bytes.fromhex(first["hex"]) == Tokenizer.from_file("mine.model").vocab[300]
    longest = json.loads(run("inspect mine.model --longest 3 --json").stdout)
    assert longest[0]["bytes"] == max(map(len, Tokenizer.from_file("mine.model").vocab.values()))
    assert "' question'" in run("inspect mine.model --search question").stdout
    assert run("inspect counts.parquet --top 0").exit_code == 0
    counts = run("inspect counts.parquet --top 3").stdout
    assert "most frequent" in counts and "unique chunks by count" in counts
    output = json.loads(run("inspect counts.parquet --json").stdout)
    assert output["total"] == ChunkCounts.load("counts.parquet").total
    assert sum(row["unique"] for row in output["distribution"]) == output["unique"]
    assert output["most_frequent"][0]["text"] == next(iter(ChunkCounts.load("counts.parquet")))


USAGE = ("--", "the file must", "mine.model is given", "mine.model is a model", "standard input (-)")
"""How errors begin that are about the arguments: their exit code is 2."""


def exit_code_of(problem: str) -> int:
    return 2 if problem.removeprefix("error: ").startswith(USAGE) else 1


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("inspect counts.parquet --token the", "--token must be omitted: counts.parquet contains chunk counts"),
        ("inspect mine.model --token the --id 3", "--id must be omitted if"),
        ("inspect mine.model --id 9999", "token id 9999 does not exist"),
    ],
)
def test_inspect_says_what_is_wrong(command: str, problem: str, place: Path) -> None:
    result = run(command)
    assert result.exit_code in (1, 2) and problem in result.stderr


def test_evaluate_and_export(place: Path) -> None:
    assert run("export mine.model --to huggingface -o tokenizer.json").stderr == "tokenizer.json\n"
    assert run("export mine.model --to tiktoken -o mine.tiktoken -q").exit_code == 0
    result = run("evaluate mine.model tokenizer.json mine.tiktoken --pattern gpt4 --data book.txt --json")
    tokens = [row["groups"]["all"]["tokens"] for row in json.loads(result.stdout)]
    assert tokens == [len(Tokenizer.from_file("mine.model").encode_ordinary(TEXT))] * 3
    table = run("evaluate mine.model tokenizer.json --data book.txt").stdout.splitlines()
    assert table[0].split() == ["mine.model", "tokenizer.json"]
    assert table[1].split() == ["vocabulary", "size", "600", "600"]


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("count absent.txt -o a.csv", "error: file not found: 'absent.txt'"),
        ("count book.txt -o a.txt", "error: --output must end in .parquet or .csv, got 'a.txt'"),
        (
            "count book.txt -o absent/a.csv",
            "error: cannot write absent/a.csv: folder not found: absent",
        ),
        (
            "count book.txt -o a.csv --pattern (",
            "error: --pattern must be a supported regular expression (Parsing error",
        ),
        ("count book.txt -o a.csv --sample 0", "error: --sample must be greater than 0 and at most 1, got 0.0"),
        (
            "train counts.parquet -n 10 -o a",
            "error: --vocab-size must be at least 256 (256 bytes + 0 special tokens), got 10",
        ),
        ("train counts.parquet -n 300 -o a --special-token a --special-token a", "error: --special-token must"),
        ("train counts.parquet -n 300 -o absent/a", "error: cannot write absent/a.model"),
        ("train book.txt -n 300 -o a --base book.txt", "error: book.txt: not a model file in any of the formats"),
        ("encode absent.model book.txt", "error: model file not found: absent.model"),
        ("encode mine.model counts.parquet -o x.npy", "error: counts.parquet: chunk counts have no documents"),
        (
            "encode mine.model book.txt -o x --end-of-text x",
            "error: --end-of-text must be one of the special tokens: <|endoftext|>, got 'x'",
        ),
        ("decode mine.model book.txt", "error: the file must end in .npy or .bin, got 'book.txt'"),
        ("inspect mine.model --token thou", "error: 'thou' is not a single token"),
        ("inspect book.txt", "error: book.txt: not a model file"),
        ("encode mine.model book.txt -o a.npy --resume", "error: --resume needs a folder of shards"),
        (
            "encode mine.model book.txt -o book.jsonl",
            "error: --output must end in .npy or .bin, or be a folder of shards, got book.jsonl",
        ),
        (
            "encode mine.model book.txt -o book.txt",
            "error: --output must end in .npy or .bin, or be a folder of shards, got book.txt",
        ),
        ("train mine.model -n 300 -o a", "error: mine.model is a model, not data; to extend a model, use --base"),
        ("encode mine.model book.txt -o absent/a", "error: cannot write absent/a: folder not found: absent"),
        ("decode mine.model absent.npy", "error: file not found: absent.npy"),
        ("evaluate mine.model mine.model --data book.txt", "error: mine.model is given more than once"),
        ("encode mine.model book.txt --show -o a.npy", "error: --show cannot be combined with --json or --output"),
        ("encode mine.model book.txt --format parquet -o a.npy", "error: --format needs a folder of shards"),
        ("encode mine.model book.txt -o .", "error: . holds other files; choose another folder"),
        ("count - - -o a.csv", "error: standard input (-) can be given only once"),
        ("export mine.model --to minbpe -o absent/x", "error: cannot write absent/x: folder not found: absent"),
    ],
)
def test_failures_are_one_line(command: str, problem: str, place: Path) -> None:
    result = run(command)
    assert (result.exit_code, result.stdout) == (exit_code_of(problem), "")
    assert result.stderr.startswith(problem) and result.stderr.count("\n") == 1, result.stderr
    with pytest.raises((ValueError, OSError, KeyError)):
        CliRunner().invoke(app, ["--debug", *command.split()], catch_exceptions=False)


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("frobnicate", "frobnicate"),
        ("count book.txt", "--output"),
        ("count book.txt -o a.csv --sample 2", "--sample"),
        ("count book.txt -o a.csv --max-memory 0.1", "--max-memory"),
        ("count book.txt -o a.csv --max-memory nan", "--max-memory"),
        ("train book.txt -o a", "--vocab-size"),
        ("train book.txt -o a -n 0", "--vocab-size"),
        ("train book.txt -o a -n 300 --policy best", "--policy"),
        ("export a --to gguf -o b", "--to"),
    ],
)
def test_wrong_usage(command: str, named: str, place: Path) -> None:
    result = run(command)
    assert (result.exit_code, result.stdout) == (2, "")
    assert named in result.stderr.splitlines()[-1]


def test_jsonl_as_it_comes(place: Path) -> None:
    """With a byte order mark, and with bytes that are no UTF-8."""
    Path("a.jsonl").write_bytes(b'\xef\xbb\xbf{"text": "to be"}\n{"text": "or \xff"}\n')
    strict = run("encode mine.model a.jsonl")
    assert strict.stderr.startswith("error: a.jsonl, line 2: invalid UTF-8 at byte 34 of the file; --replace-errors")
    mine = Tokenizer.from_file("mine.model")
    for command in ("encode mine.model a.jsonl", f"encode mine.model {(place / 'a.jsonl').as_uri()}"):
        lines = run(f"{command} --replace-errors").stdout.splitlines()
        assert [mine.decode([*map(int, line.split())]) for line in lines] == ["to be", "or \N{REPLACEMENT CHARACTER}"]
    assert run("count a.jsonl -o a.csv -q --replace-errors").exit_code == 0
    assert run("evaluate mine.model --data a.jsonl -q --replace-errors").exit_code == 0


def test_files_that_cannot_be_read(place: Path) -> None:
    Path("bad.txt").write_bytes(b"\xff")
    strict = run("count bad.txt book.txt -o a.csv -q")
    assert (strict.exit_code, Path("a.csv").exists()) == (1, False)
    result = run("count bad.txt book.txt -o a.csv --skip-errors")
    assert result.exit_code == 1
    assert "bad.txt: the text is invalid UTF-8 at byte 0; --replace-errors replaces it with U+FFFD\n" in result.stderr
    assert result.stderr.endswith(
        "error: 1 file could not be read completely; the output may include data read before the error\n"
    )
    assert ChunkCounts.load("a.csv") == ChunkCounts.load("counts.parquet")
    assert run("count bad.txt -o b.csv -q --replace-errors").exit_code == 0


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
    """Some hundred megabytes, which take a few seconds."""
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


def test_out_of_memory(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise MemoryError

    monkeypatch.setattr("batchbpe.jobs.count.count_files", fail)
    result = run("count book.txt -o a.csv")
    assert (result.exit_code, result.stderr) == (
        1,
        "error: out of memory; use --limit-bytes or --threads 1, or --max-memory for count\n",
    )


def test_error_lines_are_bounded(place: Path) -> None:
    result = run(["encode", "mine.model", "book.txt", "-o", "x", "--end-of-text", "x" * 5000])
    assert result.exit_code == 2 and len(result.stderr) <= 1001
    Path("bad.jsonl").write_text('{"text": ' + "5" * 5000)
    result = run("count bad.jsonl -o a.csv")
    assert result.exit_code == 1 and len(result.stderr) <= 1001


@pytest.mark.skipif(os.name != "posix", reason="signals are posix")
def test_lines_in_a_log(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("batchbpe.progress.LOG_EVERY", 0.0)
    result = run("count book.txt -o a.csv")
    assert re.search(r"^counting: 100 %, 0 s left, [\d.]+ kB, .*/s, ≤ \d+ unique, ", result.stderr, re.MULTILINE)
    result = run("train counts.parquet -n 300 -o a")
    assert re.search(r"^training: \d+ %, \d+ s left, \d+ of 44 merges, batch of \d+$", result.stderr, re.MULTILINE)


def test_what_is_written_over_itself(place: Path) -> None:
    assert run("encode mine.model book.txt -o a.npy -q").exit_code == 0
    assert run("decode mine.model a.npy -o a.npy").stderr.startswith("error: --output must not be the input, a.npy")
    assert run("decode mine.model -", "104 105").stdout == "hi"
    content = Path("book.txt").rename("book.bin").read_bytes()
    assert run("encode mine.model book.bin -o book.bin").stderr.startswith(
        "error: --output must not be one of the inputs"
    )
    assert Path("book.bin").read_bytes() == content


def test_ranks_by_any_name(place: Path) -> None:
    run("export mine.model --to tiktoken -o ranks -q --allow-inexact")
    assert "--pattern" in run("encode ranks book.txt").stderr
    assert run("encode ranks book.txt --pattern gpt4").stdout == run("encode mine.model book.txt").stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is full")
@pytest.mark.parametrize("command", ["encode mine.model book.txt", "--help", "inspect counts.parquet --json"])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_behind_standard_output(place: Path, command: str, unbuffered: str) -> None:
    with Path("/dev/full").open("w") as full:
        env = os.environ | {"PYTHONUNBUFFERED": unbuffered}
        shell = [sys.executable, "-m", "batchbpe", *command.split()]
        done = subprocess.run(shell, cwd=place, env=env, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "No space left" in done.stderr, done.stderr


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
def test_completion() -> None:
    env = os.environ | {"_BATCHBPE_COMPLETE": "complete_bash", "COMP_WORDS": "batchbpe ev", "COMP_CWORD": "1"}
    done = subprocess.run([sys.executable, "-m", "batchbpe"], capture_output=True, text=True, env=env)
    assert done.stdout.split() == ["evaluate"]

"""The commands `batchbpe experiment` and `batchbpe report`."""

import csv
import json
import re
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.main import get_command
from typer.testing import CliRunner

from batchbpe import Tokenizer, __version__
from batchbpe.cli import app
from batchbpe.experiments.report import TITLES, readable
from batchbpe.storage.checked_json import save_sealed

LINES = ["to be or not to be, that is the question", "whether 'tis nobler in the mind to suffer"] * 40


def test_every_experiment_has_a_title() -> None:
    commands: Any = get_command(app)
    assert set(TITLES) == set(commands.commands["experiment"].commands)


def run(*args: str, code: int | None = 0) -> str:
    """Run a command and return its output. With code=None, any failure is accepted and its message is returned."""
    done = CliRunner().invoke(app, ["experiment", *args])
    assert done.exit_code in (1, 2) if code is None else done.exit_code == code, done.output
    return done.stdout if code == 0 else done.stderr


def test_command(library: list[str], tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": library[:100]}), tmp_path / "docs.parquet")
    folder = tmp_path / "found"
    given = ["--data", str(tmp_path / "docs.parquet"), "-o", str(folder)]
    shown = run("freq-cutoff", *given, "--vocab-size", "400")
    assert "freq_cutoff" in shown and "claims of the paper, and results" in shown
    with (folder / "freq_cutoff.csv").open(newline="") as file:
        assert [row["freq_cutoff"] for row in csv.DictReader(file)] == [str(cutoff) for cutoff in range(1, 11)]
    assert (folder / "freq_cutoff.svg").read_bytes().startswith(b"<?xml")
    assert (folder / "freq_cutoff.png").read_bytes().startswith(b"\x89PNG")
    described = json.loads((folder / "experiment.json").read_text())
    assert described["parameters"]["vocab_size"] == 400
    assert described["parameters"]["data"] == [str(tmp_path / "docs.parquet")]
    assert "already exists and is not empty" in run("freq-cutoff", *given, code=1)
    few = run("stop-words", *given, "--overwrite", "--vocab-size", "200000", code=2)
    assert "no more pairs to merge" in few
    assert (folder / "freq_cutoff.csv").exists()  # a failed run keeps the old result
    again = json.loads(run("chunks", *given, "--overwrite", "--json"))
    assert sorted(map(str, folder.iterdir())) == sorted(again["files"])
    assert "file not found" in run("chunks", "--data", str(tmp_path / "absent.txt"), "-o", str(tmp_path / "o"), code=1)


def test_sweep_and_report_as_commands(library: list[str], tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": library[:60]}), tmp_path / "docs.parquet")
    plain = ["--data", str(tmp_path / "docs.parquet")]
    given = [*plain, "--vocab-size", "600"]
    shown = run("sweep", *given, "--grid", "stop_list_size=0,5", "-o", str(tmp_path / "all" / "sweep"))
    assert "shortest encoding" in shown
    mixed = run("sweep", *given, "--grid", r"pattern=\w+,gpt4", "-o", str(tmp_path / "x"), code=None)
    assert "must not combine regular expressions" in mixed
    assert "use --resume to continue it" in run(
        "sweep", *given, "--grid", "stop_list_size=0,5", "-o", str(tmp_path / "all" / "sweep"), code=1
    )
    assert "save standard input to a file" in run("chunks", "--data", "-", "-o", str(tmp_path / "x"), code=None)
    (tmp_path / "file").touch()
    wrong = run("chunks", *plain, "-o", str(tmp_path / "file"), "--overwrite", code=1)
    assert "is a file; use the path of a folder" in wrong
    few = run("stop-words", *plain, "-o", str(tmp_path / "x"), code=None)
    assert re.search(r"must be at most 1[\d,]+, since the data has no more pairs to merge, got 50304; reduce", few)
    assert not (tmp_path / "x").exists()  # none of these wrote anything
    run("stop-words", *given, "-o", str(tmp_path / "all" / "words"))
    assert CliRunner().invoke(app, ["report", str(tmp_path / "all")]).exit_code == 0
    page = (tmp_path / "all" / "report.html").read_text(encoding="utf-8")
    assert page.count("data:image/svg+xml;base64,") == len(list((tmp_path / "all").glob("*/*.svg"))) == 3
    assert not re.search(r'(src|href)="(?!data:)', page)
    assert "@media (prefers-color-scheme: dark)" in page
    text = (tmp_path / "all" / "report.md").read_text(encoding="utf-8")
    for link in re.findall(r"!\[.*?\]\((.*?)\)", text):
        assert (tmp_path / "all" / link).exists()
    assert "| pattern | gpt4 |" in text and "<th>pattern<td><code>gpt4</code>" in page
    for part in ("encoded length changes by", "stop list size"):
        assert part in page and part in text
    (tmp_path / "all" / "stopped").mkdir()
    (tmp_path / "all" / "stopped" / "runs.json").write_text("{}")
    assert CliRunner().invoke(app, ["report", str(tmp_path / "all")]).exit_code == 0
    text = (tmp_path / "all" / "report.md").read_text(encoding="utf-8")
    assert "Unfinished experiments, not included: stopped" in text
    empty = CliRunner().invoke(app, ["report", str(tmp_path)])
    assert empty.exit_code == 1 and "no experiment in" in empty.stderr
    (tmp_path / "all" / "words" / "experiment.json").write_text("{")
    assert "is damaged" in CliRunner().invoke(app, ["report", str(tmp_path / "all")]).stderr
    (tmp_path / "all" / "sweep" / "leaderboard.csv").unlink()
    gone = CliRunner().invoke(app, ["report", str(tmp_path / "all" / "sweep")])
    assert (gone.exit_code, "rerun the experiment" in gone.stderr) == (1, True)


def test_the_report_starts_with_date_version_and_data(tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("to be or not to be " * 50)
    today = {datetime.now(timezone.utc).date().isoformat()}
    for folder in ("first", "second"):
        run("chunks", "--data", str(words), "-o", str(tmp_path / "all" / folder))
    today.add(datetime.now(timezone.utc).date().isoformat())
    path = tmp_path / "all" / "first" / "experiment.json"
    described = json.loads(path.read_text())
    assert described["date"] in today
    for field in ("date", "batchbpe", "checksum"):  # as written by an earlier version
        described.pop(field)
    save_sealed({**described, "parameters": {}}, path)
    assert CliRunner().invoke(app, ["report", str(tmp_path / "all")]).exit_code == 0
    first = "| Distribution of chunks (first) | – | – | – |"
    second = [f"| Distribution of chunks (second) | {day} | {__version__} | {words} |" for day in today]
    lines = (tmp_path / "all" / "report.md").read_text(encoding="utf-8").splitlines()
    assert lines[4] == first and lines[5] in second
    page = (tmp_path / "all" / "report.html").read_text(encoding="utf-8")
    rows = re.findall(r"<tr>(.*?)(?=<tr>|</table>)", page[: page.index("<h2>")])
    assert [re.sub(r"<t[dh].*?>", " ", row).strip() for row in rows[1:]] == [
        line.strip("| ").replace(" | ", " ") for line in lines[4:6]
    ]


def test_a_rerun_changes_only_the_date(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("to be or not to be " * 50)
    contents = []
    for _ in range(2):
        run("chunks", "--data", str(tmp_path / "words.txt"), "-o", str(tmp_path / "found"), "--overwrite")
        files = {path.name: path.read_bytes() for path in (tmp_path / "found").iterdir()}
        described = json.loads(files.pop("experiment.json"))
        contents.append((files, {name: described[name] for name in described.keys() - {"date", "checksum"}}))
    assert contents[0] == contents[1]


def test_only_columns_of_numbers_are_formatted() -> None:
    rows = [["1_000", "1", "0"], ["nan", "", "0.5"]]
    assert readable(["word", "max_batch_size", "share"], rows) == (
        ["word", "max batch size", "share, %"],
        [["1_000", "1", "0.0000"], ["nan", "", "50.0000"]],
    )
    assert readable(["max_batch_size"], [["0"]])[1] == [["no limit"]]
    assert readable(["freq_cutoff"], []) == (["freq cutoff"], [])


def test_sweep_of_policies_as_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("docs.txt").write_text("\n".join(LINES))
    Path("mine.py").write_text("def first(candidates):\n    return candidates[:1]\n")
    given = ["--data", "docs.txt", "--document", "line", "-o", "out", "--json"]
    options = ["--grid", "policy=serial,mine.py:first", "--grid", "overlapping=true,false", "-n", "270"]
    found = json.loads(run("sweep", *given, *options, "--keep", "3"))
    models = sorted(Path(file).name for file in found["files"] if file.endswith(".model"))
    assert len(models) == 3 == len(list(Path("out/models").iterdir()))
    with Path("out/leaderboard.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {(row["policy"], row["overlapping"]) for row in rows} == {
        (policy, overlapping) for policy in ("serial", "mine.py:first") for overlapping in ("true", "false")
    }
    Path("mine.py").unlink()
    for file in Path("out/models").iterdir():  # a model records the name of its policy, which it does not need
        assert Tokenizer.from_file(file).model.training["policy"] in ("serial", "first")
    Tokenizer.train(LINES, 260, pattern="gpt2").save("base")
    more = ["--grid", "add_tokens=3,5", "--grid", "base=base.model", "--grid", "phrases=0,2", "--keep", "all"]
    assert len(json.loads(run("sweep", *given, *more, "--overwrite"))["files"]) == 8
    assert len(list(Path("out/models").iterdir())) == 4  # those of the previous sweep are removed
    for wrong, problem in {
        "overlapping=yes": "--grid overlapping must be a list of true and false, got 'yes'",
        "phrases=few": "--grid phrases must be a list of integers and auto, got 'few'",
        "phrase_sample=x": "--grid phrase_sample must be a list of numbers, got 'x'",
        "policy=mine.py:first": "--grid policy must name a module that can be imported (FileNotFoundError",
        "base=absent.model": "model file not found: absent.model",
    }.items():
        assert problem in run("sweep", *given[:-3], "-o", "new", "--grid", wrong, code=None)
    more[1] = "add_tokens=3"
    assert "no effect with --grid add_tokens" in run("sweep", *given, *more, "-n", "300", "--overwrite", code=None)


def test_nothing_is_started_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    (tmp_path / "a.txt").write_text("to be or not to be")
    wrong = run("chunks", "--data", str(tmp_path / "a.txt"), "-o", str(tmp_path / "x"), code=1)
    assert wrong == "error: figures require matplotlib; run pip install 'batchbpe[plots]'\n"
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(("name", "extras"), [("language-model", "lm"), ("mixture-inference", "plots,solver")])
def test_all_extras_are_named_at_once(name: str, extras: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("matplotlib", "highspy", "torch"):
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("to be or not to be")
    Tokenizer.train("to be or not to be", 257).save("mine")
    more = ["--by-file"] if name == "mixture-inference" else []
    wrong = run(name, "--data", "a.txt", "--tokenizer", "mine.model", "-o", "x", *more, code=1)
    assert wrong == f"error: figures require matplotlib; run pip install 'batchbpe[{extras}]'\n"


def test_mixture_inference_as_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("en.txt").write_text("to be or not to be, that is the question " * 20)
    Path("de.txt").write_text("Sein oder Nichtsein, das ist hier die Frage " * 20)
    Tokenizer.train(files=["en.txt", "de.txt"], vocab_size=280, policy="serial").save("mine")
    given = ["mixture-inference", "--tokenizer", "mine.model", "--data", "en.txt", "--data", "de.txt", "-o", "out"]
    assert "needs --group-column or --by-file" in run(*given, code=2)
    assert "--min-bytes" in run(*given, "--by-file", code=None) and not Path("out").exists()
    found = json.loads(run(*given, "--by-file", "--min-bytes", "1", "--order", "serial", "--json"))
    table = next(file for file in found["files"] if file.endswith(".csv"))
    with Path(table).open(newline="") as file:
        shares = {row["group"]: float(row["fraction"]) for row in csv.DictReader(file)}
    assert shares.keys() == {"en", "de"} and sum(shares.values()) == pytest.approx(1)
    assert shares["en"] == pytest.approx(41 / 85, abs=0.2)


def test_language_model_as_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("to be or not to be " * 50)
    given = ["language-model", "--data", "a.txt", "-o", "out"]
    assert "language-model needs --tokenizer, --grid or both" in run(*given, code=2)
    assert "--vocab-size has no effect without --grid" in run(*given, "-n", "300", "--tokenizer", "x", code=2)
    assert "--width must be a multiple of 64, got 65" in run(*given, "--grid", "policy=serial", "--width", "65", code=2)
    monkeypatch.setitem(sys.modules, "torch", None)
    missing = run(*given, "--grid", "policy=serial", code=1)
    assert missing == "error: training language models requires PyTorch; run pip install 'batchbpe[lm]'\n"
    assert not Path("out").exists()


@pytest.mark.parametrize("name", ["language-model", "phrases"])
def test_experiments_that_need_documents_say_so(name: str) -> None:
    assert "Documents, not chunk counts." in run(name, "--help")
    assert "Documents or chunk counts." in run("sweep", "--help")

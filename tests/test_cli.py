"""The command line: what is printed and what is written."""

import json
import os
import re
import sys
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
import typer
from helpers import END, TEXT, run
from typer.main import get_command

from batchbpe import ChunkCounts, Tokenizer, __version__
from batchbpe.cli import app
from batchbpe.cli.usage import grouped
from batchbpe.phrases.options import PhraseOptions


def test_help_and_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run("--version").stdout == f"batchbpe {__version__}\n"
    assert run("").exit_code == 2
    summaries = run("--help").stdout.partition("Commands:\n")[2].splitlines()
    commands = get_command(app).commands  # type: ignore[attr-defined]
    assert [line.split()[0] for line in summaries] == [*commands]
    assert not [line for line in summaries if line.endswith("...")]
    experiments = commands.pop("experiment").commands
    assert not [line for line in run("experiment --help").stdout.splitlines()[1:] if line.endswith("...")]
    for name in [*commands, *(f"experiment {each}" for each in experiments)]:
        result = run(f"{name} --help")
        assert result.exit_code == 0
        assert re.match(
            rf"Usage: \w+ {name} \[OPTIONS\]( [A-Z]+)?( [A-Z]+(\.\.\.)?| \[[A-Z]+(\.\.\.)?\])?\n", result.stdout
        )
        assert re.search(rf"\n\n  Example: batchbpe {name} .*\n(  .*\n)?\n", result.stdout)
        assert not re.search(r"[<{]|x>=|<=x|default:\s+\(", result.stdout)


def test_many_options_are_grouped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    groups = {title: re.findall(r"^  (?:-\w, )?(--[a-z-]+)", lines, re.M) for title, lines in sections("train").items()}
    titles = ["Output", "Vocabulary", "Splitting", "Special tokens", "Data", "Phrases", "Merging", "Execution"]
    assert list(groups) == ["Arguments", *titles]
    assert [groups[title][0] for title in titles[:4]] == ["--output", "--vocab-size", "--pattern", "--special-token"]
    assert groups["Phrases"] == [f"--{each.name.replace('_', '-')}" for each in fields(PhraseOptions)]
    assert {"--ties", "--policy", "--cap-divisor"} < {*groups["Merging"]}
    assert groups["Execution"] == ["--threads", "--help"]
    assert [*sections("encode")] == ["Arguments", "Output", "Splitting", "Special tokens", "Data", "Execution"]
    assert [*sections("evaluate")] == ["Arguments", "Options", "Output", "Splitting", "Data", "Execution"]
    assert [*sections("inspect")] == ["Arguments", "Options"], "a short list needs no groups"


def sections(command: str) -> dict[str, str]:
    """Return the sections of a command's help by title."""
    parts = re.split(r"^(\w[\w ]*):\n", run(f"{command} --help").stdout, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_option_is_in_one_group() -> None:
    commands = [each for each in get_command(app).commands.values() if not hasattr(each, "commands")]  # type: ignore[attr-defined]
    for command in commands:
        params = command.get_params(typer.Context(command))
        listed = [each for members in grouped(params).values() for each in members]
        assert sorted(each.name for each in listed) == sorted(
            each.name for each in params if each.param_type_name == "option"
        )


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


@pytest.mark.parametrize(
    ("command", "printed", "warning"),
    [
        ("count empty.txt -o a.csv", "unique, from 1 file; ", "no text found"),
        ("count book.txt -o a.csv --sample 0.000001", "unique, from 1 file; ", "no text found"),
        ("count counts.parquet -o a.csv", "unique, from 1 file; ", ""),
        ("count counts.parquet -o a.csv --special-token x", "", "special tokens have no effect on chunk counts"),
        ("count counts.parquet book.txt -o a.csv --special-token x", "of text from 2 files; ", ""),
    ],
)
def test_count_without_text(command: str, printed: str, warning: str, place: Path) -> None:
    Path("empty.txt").touch()
    result = run(command)
    assert result.exit_code == 0 and printed in result.stderr
    assert result.stderr.partition("warning: ")[2] == (f"{warning}\n" if warning else "")


def test_train(place: Path) -> None:
    result = run("train counts.parquet --vocab-size 350 --stop-list-size 5 --freq-cutoff 2 -o small")
    assert re.search(r"350 tokens: 5 stop words, 0 special tokens, 89 merges in \d+ batches", result.stderr)
    same = Tokenizer.train(ChunkCounts.load("counts.parquet"), 350, stop_list_size=5, freq_cutoff=2)
    assert Tokenizer.from_file("small.model").merges == same.merges
    assert Path("small.vocab").exists()
    result = run(["train", "counts.parquet", "-n", "259", "--stop-list-size", "1", "--special-token", END, "-o", "one"])
    assert "259 tokens: 1 stop word, 1 special token, 1 merge in 1 batch (mean size 1)" in result.stderr
    for policy in ("serial", "naive", "positional"):
        assert run(f"train book.txt -n 300 --policy {policy} -o by_policy -q").exit_code == 0
    output = json.loads(run("train book.txt -n 700 --base mine.model -o longer --json").stdout)
    assert output["tokens"] == 700
    assert Tokenizer.from_file("longer.model").special_tokens == {END: 599}
    assert run("train - -n 300 -o piped -q", TEXT).exit_code == 0


@pytest.mark.filterwarnings("default:.*is given more than once")
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
    assert run(["encode", "mine.model", "--append-eos"], "to be").stdout == printed.strip() + " 599\n"
    assert json.loads(run("encode mine.model --json", "to be").stdout) == mine.encode("to be")
    result = run(["encode", "mine.model", "book.txt", "book.txt", "-o", "tokens", "--append-eos"])
    assert "tokens of 2 documents in 1 file" in result.stderr
    assert "warning: book.txt is given more than once and is read each time\n" in result.stderr
    assert np.fromfile("tokens/shard_000000.bin", np.uint16).tolist() == [*ids, 599] * 2


def test_encode_special_tokens(place: Path) -> None:
    """Printed, in one file and in shards; by default they are plain text."""
    mine, text = Tokenizer.from_file("mine.model"), f"to be{END}or not{END}"
    Path("marked.txt").write_text(text)
    plain, ids = mine.encode_ordinary(text), mine.encode(text, "all")
    assert ids.count(599) == 2 and 599 not in plain
    encode = ["encode", "mine.model", "marked.txt"]
    assert json.loads(run([*encode, "--json"]).stdout) == plain
    assert json.loads(run([*encode, "--json", "--allow-special"]).stdout) == ids
    with_end = run([*encode, "--json", "--allow-special", "--append-eos", "--eos", END])
    assert json.loads(with_end.stdout) == [*ids, 599]
    assert f"|{END}|" in run([*encode, "--show", "--allow-special"]).stdout
    assert f"|{END}|" not in run([*encode, "--show"]).stdout
    assert run([*encode, "--allow-special", "-o", "a.npy"]).exit_code == 0
    assert np.load("a.npy").tolist() == ids
    assert run([*encode, "--allow-special", "-o", "tokens", "--format", "llm.c"]).exit_code == 0
    assert np.fromfile("tokens/shard_000000.bin", np.uint16, offset=1024).tolist() == ids
    resumed = run([*encode, "-o", "tokens", "--format", "llm.c", "--resume"])
    assert resumed.exit_code == 1
    assert "the job was started with allow_special=True, got False; use the same options" in resumed.stderr
    assert run([*encode, "--allow-special", "-o", "tokens", "--format", "llm.c", "--resume"]).exit_code == 0


@pytest.mark.filterwarnings("default:.*is given more than once")
def test_a_part_of_the_data(place: Path) -> None:
    """All commands use the same part; files after the limit are not read."""
    rows = [{"body": TEXT[start : start + 90]} for start in range(0, len(TEXT), 90)]
    Path("data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    options = "--jsonl-field body --sample 0.5 --seed 3"
    assert run(f"count data.jsonl -o part.csv -q {options}").exit_code == 0
    assert run(f"train data.jsonl -n 400 -o part -q {options}").exit_code == 0
    assert run("train part.csv -n 400 -o counted -q").exit_code == 0
    assert Path("part.model").read_bytes() == Path("counted.model").read_bytes()
    assert len(run("encode mine.model book.txt book.txt --limit-bytes 5").stdout.splitlines()) == 1
    for number in range(40):  # files with the same name are sampled independently
        Path(f"all/{number}").mkdir(parents=True)
        Path(f"all/{number}/index.md").write_text(TEXT[: 9 + number], encoding="utf-8")
    assert 5 < len(run("encode mine.model all --sample 0.5").stdout.splitlines()) < 35


def test_extending_a_model(place: Path) -> None:
    """The special tokens of the base are not counted as text either."""
    Path("more.txt").write_text(f"{END}{END} thou" * 9, encoding="utf-8")
    assert run("train more.txt -n 602 -o more -q --base mine.model").exit_code == 0
    assert len(Tokenizer.from_file("more.model").encode(" thou")) == 1


def test_adding_tokens_with_roles(place: Path) -> None:
    Path("chat.jinja").write_text("{{ messages }}", encoding="utf-8")
    options = "--base mine.model --special-token </s> --eos </s> --chat-template chat.jinja"
    assert run(f"train book.txt --add 40 -o more -q {options}").exit_code == 0
    more = Tokenizer.from_file("more.model")
    assert (len(more), dict(more.special_tokens)) == (640, {END: 599, "</s>": 639})
    assert more.roles == {"bos": END, "eos": "</s>"}
    result = run("export more.model --to transformers -o folder")
    assert (result.stdout, result.stderr) == ("", f"roles: bos {END}, eos </s>\nfolder\n")
    assert Path("folder/chat_template.jinja").read_text(encoding="utf-8") == "{{ messages }}"
    result = run(["export", "more.model", "--to", "transformers", "-o", "again", "--pad", END, "--json"])
    roles = {"bos": END, "eos": "</s>", "pad": END}
    assert json.loads(result.stdout) == {"output": "again", "format": "transformers", "roles": roles}
    assert result.stderr == "" and Tokenizer.from_file("again").roles == roles
    assert run("export mine.model --to huggingface -o a.json").stderr == "a.json\n"


def test_like(place: Path) -> None:
    assert run("train book.txt -n 300 -o source -q --normalization NFC --special-token <s>").exit_code == 0
    source = Tokenizer.from_file("source.model")
    Tokenizer(replace(source.model, added_tokens={"the": 300})).export("source", "transformers")
    result = run("train book.txt -n 310 --like source -o like")
    assert "trained 310 tokens: 0 stop words, 1 special token and 1 added token, 52 merges in " in result.stderr
    like = Tokenizer.from_file("like.model")
    assert like.model == Tokenizer.train(TEXT, 310, like="source").model
    assert run("count book.txt -o like.parquet --like source -q").exit_code == 0
    assert run("train like.parquet -n 310 --like source -o counted -q").exit_code == 0
    assert Path("counted.model").read_bytes() == Path("like.model").read_bytes()


def test_inspect(place: Path) -> None:
    summary = run("inspect mine.model").stdout
    assert re.search(r"tokens\s+600\n", summary) and re.search(r"^pattern +gpt4$", summary, re.M)
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
    assert "unique chunks by count" in counts
    assert re.search(r"^pattern +gpt4$", counts, re.M) and "fraction in the 100 most frequent chunks" in counts
    output = json.loads(run("inspect counts.parquet --json").stdout)
    assert output["total"] == ChunkCounts.load("counts.parquet").total
    assert sum(row["unique"] for row in output["distribution"]) == output["unique"]
    assert output["most_frequent"][0]["text"] == next(iter(ChunkCounts.load("counts.parquet")))


POLICIES = """
from __future__ import annotations
from dataclasses import dataclass

from batchbpe.policies import continue_search

limit = 4

def short(candidates):
    return continue_search(candidates.keep(lambda pairs: pairs.merged_length <= limit))

@dataclass
class Short:
    length: int = 4

    def __call__(self, candidates):
        return continue_search(candidates.keep(lambda pairs: pairs.merged_length <= self.length))

class NeedsArguments:
    def __init__(self, length):
        pass

shorter = Short(3)
"""


@pytest.mark.parametrize("module", ["my_policies", "my_policies.py", "folder/my_policies.py"])
def test_policies_of_the_users_own(module: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    modules = set(sys.modules)
    path = Path(module).with_suffix(".py")
    path.parent.mkdir(exist_ok=True)
    path.write_text(POLICIES)
    for attribute, length, name in (("short", 4, "short"), ("Short", 4, "Short"), ("shorter", 3, "Short")):
        done = run(f"train book.txt -n 300 --policy {module}:{attribute} -o by_policy -q")
        assert done.exit_code == 0, done.stderr
        model = Tokenizer.from_file("by_policy.model").model
        assert max(map(len, model.vocab.values())) == length and model.training["policy"] == name
    for attribute, problem in {
        "long": f"must name an attribute of {module}, which has short, Short, NeedsArguments, shorter, got",
        "limit": "must name a function or a callable object, but limit is 4",
        "NeedsArguments": "must name a class that needs no arguments (TypeError: ",
        "": "must be one of 'serial', 'naive', 'positional', 'continue_search', 'exact', or module:function",
    }.items():
        done = run(f"train book.txt -n 300 --policy {module}:{attribute} -o by_policy -q")
        assert done.exit_code == 2 and done.stderr.startswith(f"error: --policy {problem}"), done.stderr
        assert f"got '{module}:{attribute}'" in done.stderr and "continue_search" in done.stderr
    for name in set(sys.modules) - modules:
        monkeypatch.delitem(sys.modules, name)


def test_modules_of_policies_that_cannot_be_imported(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    Path("broken.py").write_text("def policy(candidates:")
    Path("leaves.py").write_text("import sys; sys.exit(3)")
    for module, problem in {
        "no_such_module": "ModuleNotFoundError: No module named 'no_such_module'",
        "no_such.py": "FileNotFoundError: file not found: no_such.py",
        "broken": "SyntaxError: ",
        "broken.py": "SyntaxError: ",
        "leaves.py": "SystemExit: 3",
        "..": "TypeError: ",
    }.items():
        done = run(f"train book.txt -n 300 --policy {module}:policy -o by_policy -q")
        assert done.exit_code == 2, done.stderr
        expected = f"error: --policy must name a module that can be imported ({problem}"
        assert done.stderr.startswith(expected), done.stderr
        assert done.stderr.endswith("the built-in policies are serial, naive, positional, continue_search, exact\n")


def test_errors_in_policies_name_the_policy_and_the_line(place: Path) -> None:
    Path("failing.py").write_text(
        "from batchbpe.policies import continue_search\n\n\n"
        "def divides(candidates):\n    return 1 / 0\n\n\n"
        "class HidesWords:\n    def __call__(self, candidates):\n        return continue_search(candidates)\n\n"
        "    def revise(self, batch):\n        batch.hide(['word'])\n"
    )
    for name, line, problem in (
        ("divides", 5, "ZeroDivisionError: division by zero"),
        ("HidesWords", 13, "ArgumentTypeError: tokens must be ids, which are integers, got ['word']"),
    ):
        done = run(f"train book.txt -n 300 --policy failing.py:{name} -o by_policy -q")
        place_of = f"{Path('failing.py').resolve()}, line {line}"
        expected = f"error: policy failing.py:{name} failed at {place_of}: {problem}; batchbpe --debug … shows"
        assert done.exit_code == 1 and done.stderr.startswith(expected), done.stderr
        done = run(f"--debug train book.txt -n 300 --policy failing.py:{name} -o by_policy -q")
        assert type(done.exception.__cause__).__name__ == problem.partition(":")[0]
    done = run("train book.txt -n 300 --policy failing.py -o by_policy -q")
    problem = "must name a function in the file, got 'failing.py'; write failing.py:function"
    assert done.stderr == f"error: --policy {problem}\n"


def test_nothing_is_imported_for_the_policy_of_a_model(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("evil.py").write_text("raise SystemExit('imported')")
    Tokenizer.train("to be or not to be", 260).save("a")
    saved = Path("a.model").read_text().replace('"continue_search"', '"evil:policy"')
    Path("a.model").write_text(saved)
    assert Tokenizer.from_file("a.model").model.training["policy"] == "evil:policy"
    for command in (
        "inspect a.model",
        "encode a.model book.txt -o ids.npy",
        "train book.txt -n 300 --like a.model -o b",
    ):
        done = run(command)
        assert done.exit_code == 0, done.stderr
    assert "evil" not in sys.modules


def test_evaluate_and_export(place: Path) -> None:
    assert run("export mine.model --to huggingface -o tokenizer.json").stderr == "tokenizer.json\n"
    assert run("export mine.model --to tiktoken -o mine.tiktoken -q").exit_code == 0
    result = run("evaluate mine.model tokenizer.json mine.tiktoken --pattern gpt4 --data book.txt --json")
    tokens = [row["groups"]["all"]["tokens"] for row in json.loads(result.stdout)]
    assert tokens == [len(Tokenizer.from_file("mine.model").encode_ordinary(TEXT))] * 3
    table = run("evaluate mine.model tokenizer.json --data book.txt").stdout.splitlines()
    assert table[0].split() == ["mine.model", "tokenizer.json"]
    assert table[1].split() == ["vocabulary", "size", "600", "600"]


def test_jsonl_with_unusual_bytes(place: Path) -> None:
    """A byte order mark, and invalid UTF-8."""
    Path("a.jsonl").write_bytes(b'\xef\xbb\xbf{"text": "to be"}\n{"text": "or \xff"}\n')
    strict = run("encode mine.model a.jsonl")
    assert strict.stderr.startswith("error: a.jsonl, line 2: invalid UTF-8 at byte 34 of the file; --replace-errors")
    mine = Tokenizer.from_file("mine.model")
    for command in ("encode mine.model a.jsonl", f"encode mine.model {(place / 'a.jsonl').as_uri()}"):
        lines = run(f"{command} --replace-errors").stdout.splitlines()
        assert [mine.decode([*map(int, line.split())]) for line in lines] == ["to be", "or \N{REPLACEMENT CHARACTER}"]
    assert run("count a.jsonl -o a.csv -q --replace-errors").exit_code == 0
    assert run("evaluate mine.model --data a.jsonl -q --replace-errors").exit_code == 0


@pytest.mark.skipif(os.name != "posix", reason="signals are posix")
def test_progress_in_a_log(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("batchbpe.util.progress.LOG_EVERY", 0.0)
    monkeypatch.setattr("batchbpe.util.progress.REFRESH_EVERY", 0.0)
    result = run("count book.txt -o a.csv")
    assert re.search(r"^counting: 100%, 0 s left, [\d.]+ kB, .*/s, ≤ \d+ unique, ", result.stderr, re.MULTILINE)
    result = run("train counts.parquet -n 300 -o a")
    assert re.search(r"^training: \d+%, \d+ s left, \d+ of 44 merges, batch of \d+$", result.stderr, re.MULTILINE)


def test_rank_file_with_any_name(place: Path) -> None:
    run("export mine.model --to tiktoken -o ranks -q --allow-inexact")
    assert "--pattern" in run("encode ranks book.txt").stderr
    assert run("encode ranks book.txt --pattern gpt4").stdout == run("encode mine.model book.txt").stdout

"""`batchbpe atlas`: files, groups, exit codes and refusals."""

import json
from pathlib import Path

import pytest
from helpers import TEXT, run

from batchbpe import Tokenizer, evaluate
from batchbpe.analysis import atlas


@pytest.fixture
def models(place: Path) -> list[str]:
    Tokenizer.train(TEXT, 300).export("other.tiktoken", "tiktoken")
    Path("en.txt").write_text(TEXT[:500], encoding="utf-8")
    Path("de.txt").write_text("Sein oder Nichtsein", encoding="utf-8")
    lines = [{"text": TEXT[:500], "language": "en"}, {"text": "Sein oder Nichtsein", "language": "de"}]
    Path("texts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return ["mine.model", "other.tiktoken"]


def test_the_command_writes_what_the_function_returns(models: list[str]) -> None:
    result = run(["atlas", *models, "--pattern", "gpt2", "--data", "texts.jsonl", "--group-column", "language"])
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.endswith("atlas.html\natlas.json\n")
    expected = atlas(models, files="texts.jsonl", group_column="language", pattern="gpt2")
    content = json.loads(Path("atlas.json").read_text())
    assert content == expected.content
    table = evaluate("mine.model", files="texts.jsonl", group_column="language")
    assert content["vocabularies"][0]["groups"]["de"]["tokens"] == table.groups.metrics("mine.model")["de"]["tokens"]
    assert "<!doctype html>" in Path("atlas.html").read_text()


def test_files_are_groups_and_json_is_printed(models: list[str]) -> None:
    options = [
        "--data",
        "en.txt",
        "--data",
        "de.txt",
        "--by-file",
        "--parity",
        "de",
        "--per",
        "byte",
        "-o",
        "a.html",
        "--json",
    ]
    result = run(["atlas", "mine.model", *options, "--threads", "1", "--quiet"])
    assert result.stderr == ""
    content = json.loads(result.stdout)
    assert content == json.loads(Path("a.json").read_text())
    assert content["text"]["groups"]["reference"] == "de"
    assert content["vocabularies"][0]["groups"]["de"]["tokens_per_byte"] > 0


def test_a_file_that_cannot_be_loaded_sets_the_exit_code(models: list[str]) -> None:
    result = run(["atlas", *models, "absent.json", "-q"])
    assert result.exit_code == 1
    lines = result.stderr.splitlines()
    assert lines[0].startswith("other.tiktoken: rank files do not store their pattern") and "absent.json" in lines[1]
    assert lines[-1] == "error: 2 files could not be loaded; the page lists them"
    content = json.loads(Path("atlas.json").read_text())
    assert [each["name"] for each in content["vocabularies"]] == ["mine.model"]
    assert [each["name"] for each in content["failures"]] == ["other.tiktoken", "absent.json"]


def test_nothing_is_written_if_no_file_can_be_loaded(models: list[str]) -> None:
    result = run("atlas absent.json gone.json")
    assert result.exit_code == 1 and "error: none of the 2 files can be loaded; the first: " in result.stderr
    assert run("atlas absent.json").stderr.startswith("error: model file not found: absent.json")
    assert not Path("atlas.html").exists() and not Path("atlas.json").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--group-column language", "--group-column needs --data"),
        ("--by-file", "--by-file needs --data"),
        ("--sample 0.5", "options for reading documents need --data"),
        ("--data en.txt --parity en", "--parity needs --group-column or --by-file"),
        ("--data en.txt --by-file --group-column a", "--group-column cannot be combined with --by-file"),
        ("-o atlas.json", "--output must end with .html"),
        ("-o texts.html", "exists and is not of an atlas"),
        ("--data en.html -o en.html", "--output must not replace an input"),
        ("--data absent.txt", "absent.txt"),
        ("-o no/folder/a.html", "no/folder"),
    ],
)
def test_refusals_write_nothing(models: list[str], options: str, message: str) -> None:
    for name in ("texts.json", "en.html"):
        Path(name).write_text(TEXT, encoding="utf-8")
    before = {path: path.read_bytes() for path in Path().iterdir()}
    result = run(f"atlas mine.model {options}")
    assert result.exit_code in (1, 2) and message in result.stderr and result.stderr.startswith("error: ")
    assert {path: path.read_bytes() for path in Path().iterdir()} == before

"""The command line: errors and exit codes."""

from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import run, slashes
from typer.testing import CliRunner

from batchbpe import Model, Tokenizer
from batchbpe.choices import TokenFormat
from batchbpe.cli import app, main
from batchbpe.formats import FORMATS

USAGE = ("--", "the file must", "mine.model is given", "mine.model is a model", "the inputs must")
"""Prefixes of argument errors, whose exit code is 2."""


def exit_code_of(problem: str) -> int:
    return 2 if problem.removeprefix("error: ").startswith(USAGE) else 1


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("count absent.txt -o a.csv", "error: file not found: absent.txt"),
        ("count book.txt -o a.txt", "error: --output must end in .parquet or .csv, got 'a.txt'"),
        (
            "count book.txt -o absent/a.csv",
            "error: cannot write absent/a.csv: folder not found: absent",
        ),
        (
            "count book.txt -o a.csv --pattern (",
            "error: --pattern must be a supported regular expression, got '('; at position 1: opening parenthesis",
        ),
        ("count book.txt -o a.csv --sample 0", "error: --sample must be greater than 0 and at most 1, got 0.0"),
        ("encode mine.model book.txt --sample 2", "error: --sample must be greater than 0 and at most 1, got 2.0"),
        (
            "train counts.parquet -n 10 -o a",
            "error: --vocab-size must be at least 256 (256 bytes + 0 special tokens), got 10",
        ),
        (
            "train counts.parquet -n 300 -o a --special-token a --special-token a",
            "error: --special-token must not repeat a token, got 'a', 'a'",
        ),
        (
            "train counts.parquet -n 300 -o a --base mine.model",
            "error: --vocab-size must be at least 600 (600 tokens of --base + 0 new special tokens), got 300",
        ),
        (
            "train counts.parquet -n 700 -o a --base mine.model --stop-list-size 3",
            "error: --stop-list-size must be 0 with --base,",
        ),
        (
            "train counts.parquet -n 700 -o a --base mine.model --pattern gpt2",
            "error: --pattern must be the pattern of --base, gpt4, got 'gpt2'",
        ),
        ("train counts.parquet -o a", "error: --vocab-size is required, or --add with --base; see"),
        (
            "train counts.parquet -o a --add 3",
            "error: --add needs --base, got 3; use --vocab-size for a new",
        ),
        (
            "train counts.parquet -o a --add 3 -n 700 --base mine.model",
            "error: --add cannot be combined with --vocab-size, got 3; use one of them",
        ),
        (
            "train counts.parquet -n 700 -o a --like mine.model --base mine.model",
            "error: --like cannot be combined with --base, got 'mine.model'; --base extends a vocabulary, --like",
        ),
        (
            "train counts.parquet -n 700 -o a --like mine.model --pattern gpt2",
            "error: --pattern must be the pattern of --like, gpt4, got 'gpt2'; leave it out",
        ),
        (
            "count book.txt -o a.csv --like mine.model --normalization NFC",
            "error: --normalization must be that of --like, none, got 'NFC'; leave it out",
        ),
        (
            "train counts.parquet -n 700 -o a --like book.txt",
            f"error: book.txt: not a model file in any of the formats {', '.join(FORMATS)}; use a byte-level "
            "tokenizer, or --pattern and --special-token",
        ),
        (
            "train book.txt -n 700 -o a --special-token <s> --eos </s>",
            "error: --eos must be a special token, got '</s>'; use <s>, or train with --special-token",
        ),
        (
            "export mine.model --to transformers -o a --pad <pad>",
            "error: --pad must be a special token, got '<pad>'; use <|endoftext|>, or train with --special-token",
        ),
        (
            "export mine.model --to huggingface -o a --bos <|endoftext|>",
            "error: --bos cannot be stored in the format huggingface, got '<|endoftext|>'; use --to transformers or",
        ),
        (
            "train book.txt -n 700 -o a --chat-template book.txt",
            "error: --chat-template must be a file with a Jinja template, got 'book.txt'",
        ),
        ("train book.txt -n 700 -o a --chat-template a.jinja", "error: cannot read a.jinja: no such file or directory"),
        ("train counts.parquet -n 300 -o absent/a", "error: cannot write absent/a.model"),
        ("train book.txt -n 300 -o a --base book.txt", "error: book.txt: not a model file in any of the formats"),
        ("encode absent.model book.txt", "error: model file not found: absent.model"),
        ("encode mine.model counts.parquet -o x.npy", "error: counts.parquet: chunk counts have no documents"),
        (
            "encode mine.model book.txt -o x --append-eos --eos x",
            "error: --eos must be a special token, got 'x'; use <|endoftext|>, or train with --special-token",
        ),
        ("encode mine.model book.txt -o x --bos <|endoftext|>", "error: --bos needs --prepend-bos"),
        (
            "encode mine.model book.txt -o x --validation 1",
            "error: --validation must be greater than 0 and less than 1",
        ),
        (
            "encode mine.model book.txt -o x --format nanogpt",
            "error: --validation is required by the format nanogpt (train.bin and val.bin), got None; "
            "set --validation 0.01",
        ),
        (
            "encode mine.model book.txt -o x --format nanogpt --validation 0.5 --split-documents",
            "error: --split-documents has no effect on the format nanogpt (train.bin and val.bin), got True; "
            "remove it, or use --format bin",
        ),
        ("encode mine.model book.txt -o x.npy --validation 0.5", "error: --validation needs a folder of shards"),
        ("encode mine.model book.txt -o x.npy --format olmo", "error: --format needs a folder of shards"),
        (
            "decode mine.model book.txt",
            "error: the file must be a folder or end in .bin, .ds, .npy, .parquet, got 'book.txt'",
        ),
        (
            "inspect mine.model --token thou",
            "error: --token must be a single token, got 'thou'; it splits into 116 't', 104 'h', 111 'o', 117 'u'",
        ),
        ("inspect mine.model --token the --id 3", "error: --token cannot be combined with --id"),
        ("inspect mine.model --id 9999", "error: token id 9999 does not exist"),
        ("inspect counts.parquet --token the", "error: --token needs a model; counts.parquet contains chunk counts"),
        ("inspect book.txt", "error: book.txt: not a model file"),
        ("report book.txt", "error: book.txt is a file; use the output folder of `batchbpe experiment`"),
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
        ("encode mine.model book.txt -o .", "error: book.txt is in the output folder, .; choose another folder"),
        ("count - - -o a.csv", "error: the inputs must contain standard input (-) only once, got '-', '-'"),
        ("export mine.model --to minbpe -o absent/x", "error: cannot write absent/x: folder not found: absent"),
        ("export mine.model --to transformers -o absent/x", "error: cannot write absent/x: folder not found: absent"),
        ("export mine.model --to tiktoken -o ./mine.model", "error: --output must not be the model, mine.model"),
        ("train book.txt -n 300 -o mine.model/x", "error: cannot write mine.model/x.model: mine.model is a file"),
        ("count book.txt -o .", "error: --output must be a file name"),
        ("encode folder book.txt", "error: folder is not a transformers folder: it has no tokenizer.json"),
        ("report absent", "error: folder not found: absent"),
        ("report folder", "error: no experiment in folder; run one with batchbpe experiment NAME -o folder"),
        ("encode mine.model book.txt -o a.npy --shard-tokens 9", "error: --shard-tokens needs a folder of shards"),
        ("inspect mine.model --top 3", "error: --top needs chunk counts; mine.model is a model"),
        ("inspect mine.model --token the --longest 3", "error: --token cannot be combined with --longest"),
        ("inspect counts.parquet --pattern gpt4", "error: --pattern needs a model; counts.parquet contains chunk"),
        ("count book.txt -o a.csv --seed 5", "error: --seed has no effect without --sample; remove it"),
        ("train book.txt -n 300 -o a --seed 5", "error: --seed has no effect without --sample; remove it"),
        ("encode mine.model book.txt --seed 5", "error: --seed has no effect without --sample; remove it"),
        ("evaluate mine.model --data book.txt --seed 5", "error: --seed has no effect without --sample; remove it"),
        (
            "count book.txt -o a.csv --pattern a|\\p{X}",
            r"error: --pattern must be a supported regular expression, got 'a|\p{X}'",
        ),
        (
            "train counts.parquet -n 300 -o a --pattern gpt2",
            "error: counts.parquet: counted with the pattern gpt4, expected gpt2; use gpt4, or count the text again",
        ),
        (
            "train counts.parquet -n 300 -o a --sample 0.5",
            "error: counts.parquet: --sample cannot be used with chunk counts; pass documents",
        ),
        (
            "count book.txt -o a.csv --max-document-bytes 10",
            "error: book.txt: 5620 bytes at byte 0 cannot be split, more than --max-document-bytes 10; raise the limit",
        ),
        ("evaluate mine.model --data empty.txt", "error: no text found in empty.txt; pass data that is not empty"),
        (
            "evaluate mine.model --data book.txt book.txt",
            f"error: book.txt: not a model file in any of the formats {', '.join(FORMATS)}; repeat --data for each",
        ),
    ],
)
def test_failures_are_one_line(command: str, problem: str, place: Path) -> None:
    Path("folder").mkdir()
    Path("empty.txt").touch()
    result = run(command)
    assert (result.exit_code, result.stdout) == (exit_code_of(problem), "")
    assert slashes(result.stderr).startswith(slashes(problem)) and result.stderr.count("\n") == 1, result.stderr
    with pytest.raises((ValueError, OSError, KeyError)):
        CliRunner().invoke(app, ["--debug", *command.split()], catch_exceptions=False)


def test_ids_that_do_not_fit_come_before_missing_options(place: Path) -> None:
    Tokenizer(Model(r"\w+", {}, special_tokens={"<s>": 70_000})).save("large")
    problem = (
        "the model has ids up to 70,000, but nanogpt files store ids up to 65,535; use --format bin or --format npy"
    )
    assert run("encode large.model book.txt -o x --format nanogpt").stderr == f"error: {problem}\n"


@pytest.mark.parametrize(
    "command",
    [
        "train gpt2.parquet --add 9 --base mine.model",
        "train gpt2.parquet -n 300 --like mine.model",
        "count gpt2.parquet --like mine.model",
    ],
)
def test_counts_for_a_model_must_be_counted_again_with_its_split(command: str, place: Path) -> None:
    run("count book.txt -o gpt2.parquet --pattern gpt2 --quiet")
    problem = "counted with the pattern gpt2, expected gpt4; count the text again with --like MODEL"
    assert run(f"{command} -o a.csv --quiet").stderr == f"error: gpt2.parquet: {problem}\n"


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (
            "train a.txt -n 300 -o a --normalization nfc",
            "--normalization must be one of 'none', 'NFC', 'NFD', 'NFKC', 'NFKD', got 'nfc'; did you mean 'NFC'?",
        ),
        ("frobnicate", "unknown command 'frobnicate'; see 'batchbpe --help'"),
        ("cuont a.txt", "unknown command 'cuont'; did you mean 'count'?"),
        ("--debug", "missing command; see 'batchbpe --help'"),
        ("count a.txt", "missing option --output; see 'batchbpe count --help'"),
        ("train -n 300 -o a", "missing argument INPUTS, or --mix; see 'batchbpe train --help'"),
        ("count a.txt --outptu a.csv", "unknown option: --outptu; did you mean --output?"),
        ("train a.txt --resume", "unknown option: --resume; see 'batchbpe train --help'"),
        ("inspect a.model --longest 0", "--longest must be at least 1, got 0"),
        ("count a.txt -x", "unknown option: -x; see 'batchbpe count --help'"),
        ("count a.txt -o", "-o requires an argument"),
        ("count a.txt --quiet=3", "--quiet does not take a value"),
        ("report a b", "unexpected argument: b; see 'batchbpe report --help'"),
        ("train a.txt -o a -n abc", "--vocab-size must be an integer, got 'abc'"),
        ("count a.txt -o a.csv --threads 70000", "--threads must be at most 65536, got 70000"),
        ("count a.txt -o a.csv --sample x", "--sample must be a number, got 'x'"),
        ("count a.txt -o a.csv --max-memory 0.1", "--max-memory must be at least 0.5, got 0.1"),
        ("count a.txt -o a.csv --max-memory nan", "--max-memory must be at least 0.5, got nan"),
        (
            "train a.txt -o a -n 300 --policy best",
            "--policy must be one of 'serial', 'naive', 'positional', 'continue_search', 'exact', or module:function, "
            "got 'best'",
        ),
        (
            "encode a a.txt --format pt",
            f"--format must be one of {', '.join(map(repr, get_args(TokenFormat)))}, got 'pt'",
        ),
        ("evaluate a --data a --per line", "--per must be one of 'text', 'byte', 'character', 'word', got 'line'"),
        ("export a --to onnx -o b", f"--to must be one of {', '.join(map(repr, FORMATS))}, got 'onnx'"),
        ("experiment all --data a -o b", "unknown command 'all'; see 'batchbpe experiment --help'"),
        ("experiment stopwords --data a -o b", "unknown command 'stopwords'; did you mean 'stop-words'?"),
        ("experiment sweep --data a -o b", "missing option --grid; see 'batchbpe experiment sweep --help'"),
        (
            "experiment batching --data a -o b --resume",
            "unknown option: --resume; see 'batchbpe experiment batching --help'",
        ),
        ("experiment sweep --data a -o b --keep best", "--keep must be a number or all, got 'best'"),
        ("experiment batching --data a -o b -n 0", "--vocab-size must be at least 256, got 0"),
    ],
)
def test_usage_errors(
    command: str, problem: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["batchbpe", *command.split()])
    assert (main(), *capsys.readouterr()) == (2, "", f"error: {problem}\n")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("sweep --grid freq_cutoff=abc", "--grid freq_cutoff must be a list of integers, got 'abc'"),
        ("sweep --grid freq_cutoff=-1", "--grid freq_cutoff must be at least 0, got -1"),
        ("sweep --grid freq-cutoff=-1", "--grid freq_cutoff must be at least 0, got -1"),
        (
            "sweep --grid policy=best",
            "--grid policy must be one of 'serial', 'naive', 'positional', 'continue_search', 'exact',",
        ),
        ("sweep --grid size=3", "--grid size is unknown; use one of vocab_size, pattern, add_tokens, stop_list_size,"),
        ("sweep --grid size", "--grid must be NAME=VALUE,…, got 'size'; for example vocab_size=8000,16000"),
        ("sweep -n 300 --grid vocab_size=300", "--vocab-size has no effect with --grid vocab_size; remove it"),
        ("sweep --pattern gpt2 --grid pattern=gpt2", "--pattern has no effect with --grid pattern; remove it"),
        ("batching --heldout a --heldout-share 0.1", "--heldout-share has no effect with --heldout; remove it"),
        ("mixture --grid pattern=gpt2 --by-file", "--grid pattern has no effect with mixture; remove it"),
        ("mixture", "mixture needs --group-column or --by-file"),
        ("chunks --data -", "experiments read the data more than once; save standard input to a file"),
    ],
)
def test_experiment_errors_name_the_option(options: str, problem: str, place: Path) -> None:
    result = run(f"experiment {options} --data book.txt -o results")
    assert result.exit_code == 2 and result.stderr.startswith(f"error: {problem}"), result.stderr
    assert not Path("results").exists()


def test_no_special_tokens(place: Path) -> None:
    assert run("train counts.parquet -n 300 -o plain -q").exit_code == 0
    result = run("encode plain.model book.txt --append-eos")
    problem = "--append-eos needs a special token with the role eos; the model has no special tokens"
    assert (result.exit_code, result.stderr) == (1, f"error: {problem}: train with --special-token\n")
    assert run("train book.txt -n 300 --special-token <x> -o plain -q").exit_code == 0
    result = run("encode plain.model book.txt --append-eos")
    assert result.stderr.endswith("; name one of the model's special tokens (<x>) with --eos TOKEN\n")


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (
            "count a.jsonl -o a.csv",
            "a.jsonl, line 1: no field 'text' among ['body', 'n']; choose one with --jsonl-field",
        ),
        ("count a.parquet -o a.csv", "a.parquet: no column 'text' among ['body', 'n']; choose one with --text-column"),
        (
            "experiment chunks --data a.jsonl -o a",
            "a.jsonl, line 1: no field 'text' among ['body', 'n']; choose one with --text-column",
        ),
        (
            "evaluate mine.model --data a.jsonl --group-column n",
            "a.jsonl, line 1: no field 'text' among ['body', 'n']; choose one with --jsonl-field",
        ),
        (
            "evaluate mine.model --data a.jsonl --jsonl-field body --group-column x",
            "a.jsonl, line 1: no field 'x' among ['body', 'n']; choose one with --group-column",
        ),
        (
            "evaluate mine.model --data a.parquet --text-column body --group-column x",
            "a.parquet: no column 'x' among ['body', 'n']; choose one with --group-column",
        ),
    ],
)
def test_missing_columns(command: str, problem: str, place: Path) -> None:
    Path("a.jsonl").write_text('{"body": "to be", "n": 1}\n')
    pq.write_table(pa.table({"body": ["to be"], "n": [1]}), "a.parquet")
    result = run(f"{command} -q")
    assert (result.exit_code, result.stderr) == (1, f"error: {problem}\n")


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
    result = run(["encode", "mine.model", "book.txt", "-o", "x", "--append-eos", "--eos", "x" * 5000])
    assert result.exit_code == 2 and len(result.stderr) <= 1001
    Path("bad.jsonl").write_text('{"text": ' + "5" * 5000)
    result = run("count bad.jsonl -o a.csv")
    assert result.exit_code == 1 and len(result.stderr) <= 1001


def test_output_that_is_also_an_input(place: Path) -> None:
    assert run("encode mine.model book.txt -o a.npy -q").exit_code == 0
    assert run("decode mine.model a.npy -o a.npy").stderr.startswith(
        "error: --output must not be the model or the input"
    )
    assert run("decode mine.model -", "104 105").stdout == "hi"
    content = Path("book.txt").rename("book.bin").read_bytes()
    assert run("encode mine.model book.bin -o book.bin").stderr.startswith(
        "error: --output must not be one of the inputs"
    )
    assert Path("book.bin").read_bytes() == content

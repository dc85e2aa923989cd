"""Reading options are declared once, in `ReadOptions` and `Sampling`. Everything that repeats them agrees."""

import inspect
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from data_files import write

from batchbpe import BatchTokenizer, ChunkCounts, RunCounts, Tokenizer, train
from batchbpe.analysis import audit, evaluate, evaluate_groups
from batchbpe.cli.count import count
from batchbpe.cli.encode import encode
from batchbpe.cli.evaluate import evaluate as evaluate_command
from batchbpe.cli.train import train as train_command
from batchbpe.data.files import COMPRESSIONS
from batchbpe.data.options import ReadOptions
from batchbpe.data.readers import FORMATS
from batchbpe.data.sampling import Sampling
from batchbpe.experiments import ExperimentData, chunks, sweep
from batchbpe.experiments.phrases import phrases
from batchbpe.jobs.count import CountOptions
from batchbpe.jobs.encode import EncodeOptions

OPTIONS = {option.name: option for option in (*fields(ReadOptions), *fields(Sampling))}
COMPLETE = [ChunkCounts.count, train, Tokenizer.train, RunCounts.count, evaluate, evaluate_groups]
PARTIAL = [BatchTokenizer.train, audit, ExperimentData.of, chunks, phrases, sweep]


@pytest.mark.parametrize("function", [*COMPLETE, *PARTIAL])
def test_signatures(function: Callable[..., Any]) -> None:
    parameters = inspect.signature(function).parameters
    found = [name for name in OPTIONS if name in parameters]
    assert found == list(OPTIONS) if function in COMPLETE else {"text_column", "errors"} <= set(found)
    for name in found:
        default, annotation = parameters[name].default, str(parameters[name].annotation)
        assert (default, annotation) == (OPTIONS[name].default, OPTIONS[name].type), name
        assert parameters[name].kind is inspect.Parameter.KEYWORD_ONLY


@pytest.mark.parametrize("kind", [CountOptions, EncodeOptions])
def test_options_of_jobs(kind: Any) -> None:
    found = {option.name: (option.default, option.type) for option in fields(kind)}
    for name, option in OPTIONS.items():
        assert name in ("text_column", "jsonl_field") or found[name] == (option.default, option.type), name
    assert kind().reading == ReadOptions() and kind().sampling == Sampling()
    both = kind(columns=["body", "content"], errors="replace", max_document_bytes=5, sample=0.5, seed=3, limit_bytes=7)
    assert both.reading == ReadOptions("body", "content", "replace", 5) and both.sampling == Sampling(0.5, 3, 7)


@pytest.mark.parametrize("command", [count, encode, evaluate_command, train_command])
def test_commands_have_all_options(command: Callable[..., Any]) -> None:
    names = {name.replace("errors", "replace_errors") for name in OPTIONS}
    assert names <= set(inspect.signature(command).parameters)


def test_documentation_lists_all_suffixes_and_options() -> None:
    page = (Path(__file__).parents[1] / "docs" / "data.md").read_text(encoding="utf-8")
    for name in (*FORMATS, *COMPRESSIONS, *OPTIONS):
        assert f"`{name}`" in page, name


def test_jsonl_field(tmp_path: Path) -> None:
    """Tables and jsonl files may have different columns."""
    write(tmp_path / "a.jsonl", '{"text": "a", "body": "b"}\n')
    write(tmp_path / "b.txt", "c")
    counted = ChunkCounts.count(files=tmp_path, text_column="text", jsonl_field="body")
    assert dict(counted) == {"b": 1, "c": 1}

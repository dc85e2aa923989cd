"""Reading options are declared once, in `ReadOptions` and `Sampling`. Everything that repeats them agrees."""

import inspect
import pydoc
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from data_files import write
from helpers import untouched

from batchbpe import ChunkCounts, Model, RunCounts, Tokenizer, train
from batchbpe.analysis import evaluate
from batchbpe.cli.count import count
from batchbpe.cli.encode import encode
from batchbpe.cli.evaluate import evaluate as evaluate_command
from batchbpe.cli.train import train as train_command
from batchbpe.data.files import COMPRESSIONS
from batchbpe.data.options import Reading, ReadKeywords, ReadOptions, Sampling, from_keywords
from batchbpe.data.readers import FORMATS
from batchbpe.experiments import ExperimentData, chunks, sweep
from batchbpe.experiments.phrases import phrases
from batchbpe.options import described

OPTIONS = {option.name: option for option in (*fields(ReadOptions), *fields(Sampling))}
COMPLETE = [ChunkCounts.count, train, Tokenizer.train, RunCounts.count, evaluate]
PARTIAL = [ExperimentData.of, chunks, phrases, sweep]


@pytest.mark.parametrize("function", [*COMPLETE, *PARTIAL])
def test_signatures(function: Callable[..., Any]) -> None:
    parameters = inspect.signature(function).parameters
    found = [name for name in OPTIONS if name in parameters]
    assert found == list(OPTIONS) if function in COMPLETE else {"text_column", "document", "errors"} <= set(found)
    for name in found:
        default, annotation = parameters[name].default, str(parameters[name].annotation)
        assert (default, annotation) == (OPTIONS[name].default, OPTIONS[name].type), name
        assert parameters[name].kind is inspect.Parameter.KEYWORD_ONLY


def test_keywords() -> None:
    names = [option.name for option in fields(ReadOptions)]
    assert list(ReadKeywords.__annotations__) == names
    annotations = get_type_hints(Reading)
    assert list(annotations) == list(OPTIONS)
    both = from_keywords({"text_column": "body", "errors": "replace", "sample": 0.5})
    assert both == (ReadOptions("body", errors="replace"), Sampling(0.5))


@pytest.mark.parametrize("function", COMPLETE)
def test_help(function: Callable[..., Any]) -> None:
    text = pydoc.render_doc(function)
    assert all(described(option) in text for option in OPTIONS.values())
    arguments = {"count": [], "train": [300], "evaluate": []}[function.__name__]
    model = [Model(r"\w+", {})] if function == RunCounts.count else []
    first = {} if function.__name__.startswith("evaluate") else untouched()
    with pytest.raises(TypeError, match="unexpected keyword argument 'text_columns'"):
        function(first, *arguments, *model, text_columns="body")


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

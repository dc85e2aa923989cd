"""Errors are data: each front end renders them, and they cross process boundaries."""

import pickle
from collections.abc import Callable

import pytest

from batchbpe import BatchTokenizer, ChunkCounts, Tokenizer, train
from batchbpe.analysis import evaluate
from batchbpe.errors import (
    ArgumentError,
    ArgumentTypeError,
    DataError,
    OutputExistsError,
    Setting,
    Stopped,
    UserError,
    listed,
    short,
)
from batchbpe.experiments import ExperimentData

ERRORS: dict[str, tuple[UserError, type[Exception]]] = {
    "vocab_size must be at least 356, got 300; count more text": (
        ArgumentError("vocab_size", 300, "must be at least 356", remedy="count more text"),
        ValueError,
    ),
    "threads must be an integer, got '3'": (ArgumentTypeError("threads", "3", "must be an integer"), TypeError),
    'a.txt: invalid UTF-8 at byte 7; use errors="replace"': (
        DataError("invalid UTF-8 at byte 7", where="a.txt", remedy=("use ", Setting("errors", "replace"))),
        ValueError,
    ),
    "o.parts exists; continue with resume=True": (
        OutputExistsError("o.parts exists", remedy=("continue with ", Setting("resume", True))),
        FileExistsError,
    ),
    "stopped; continue with resume": (Stopped("stopped", remedy=("continue with ", Setting("resume"))), UserError),
}


@pytest.mark.parametrize("message", ERRORS)
def test_errors_render_and_pickle(message: str) -> None:
    error, base = ERRORS[message]
    assert isinstance(error, base)
    assert str(error) == message
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        copy = pickle.loads(pickle.dumps(error, protocol))
        assert type(copy) is type(error)
        assert str(copy) == message
        assert copy.__dict__ == error.__dict__
        assert copy.args == error.args


def test_pickled_error_of_a_job() -> None:
    with pytest.raises(DataError) as caught:
        ChunkCounts.count(["a"]) + ChunkCounts.count(["a"], "gpt2")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_stopped_keeps_its_signal() -> None:
    stopped = Stopped("stopped")
    stopped.signal = 15
    assert pickle.loads(pickle.dumps(stopped)).signal == 15


def test_front_ends_spell_settings() -> None:
    error, _ = ERRORS["o.parts exists; continue with resume=True"]
    assert error.render(lambda setting: f"--{setting.parameter}") == "o.parts exists; continue with --resume"
    error, _ = ERRORS["threads must be an integer, got '3'"]
    assert error.render(lambda setting: f"--{setting.parameter}") == "--threads must be an integer, got '3'"
    other_function = DataError("no pattern", remedy=("use ", Setting("pattern", call="load(path, pattern=…)")))
    assert str(other_function) == "no pattern; use load(path, pattern=…)"
    assert other_function.render(lambda setting: f"--{setting.parameter}") == "no pattern; use --pattern"


def test_values_in_messages_are_short() -> None:
    message = str(ArgumentError("pattern", "x" * 10_000_000, "must be shorter"))
    assert len(message) < 300
    assert message.endswith("' (10,000,000 characters)")
    assert short(b"x" * 1000).endswith("(1,000 bytes)")
    assert len(listed([f"column {n}" * 100 for n in range(1000)])) < 1000


@pytest.mark.parametrize(
    "use",
    [
        lambda: train("a, b", 256, pattern="[a-z]+"),
        lambda: BatchTokenizer(pattern="[a-z]+").train("a, b", 256),
        lambda: evaluate({"letters": Tokenizer.train("a", 256, pattern="[a-z]+")}, "a, b"),
        lambda: ExperimentData.of(["a text", "notes.txt"], heldout="a text"),
    ],
)
def test_warnings_name_the_line_of_the_caller(use: Callable[[], object]) -> None:
    with pytest.warns(UserWarning) as warned:
        use()
    assert {warning.filename for warning in warned} == {__file__}

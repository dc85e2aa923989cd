"""Training: sizes, stop words, special tokens, and the errors for wrong options and wrong policies."""

import inspect
import os
import pydoc
import re
import subprocess
import sys
import typing
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import batchbpe
from batchbpe import Batch, ChunkCounts, Model, Tokenizer, policies, train
from batchbpe.errors import ArgumentError, ArgumentTypeError, DataError
from batchbpe.model import MAX_MERGES
from batchbpe.policies import Candidates
from batchbpe.training import TrainingOptions, train_on_counts

TEXT = """It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in want
of a wife. However little known the feelings or views of such a man may be on his first entering a neighbourhood,
this truth is so well fixed in the minds of the surrounding families, that he is considered as the rightful property
of some one or other of their daughters."""
COUNTS = ChunkCounts.count(TEXT)


def test_wikipedia_example() -> None:
    tokenizer = Tokenizer.train("aaabdaaabac", 259)
    assert tokenizer.merges == {(97, 97): 256, (97, 98): 257, (256, 257): 258}
    assert tokenizer.encode("aaabdaaabac") == [258, 100, 258, 97, 99]


def test_training_metadata() -> None:
    model = train(COUNTS, 280, stop_list_size=2, max_batch_size=5, cap_divisor=3, policy=policies.positional)
    assert model.n_vocab == 280
    assert model.training == {
        "vocab_size": 280,
        "stop_list_size": 2,
        "freq_cutoff": 1,
        "cap_divisor": 3,
        "max_batch_size": 5,
        "policy": "positional",
        "overlapping": False,
        "chunks_total": COUNTS.total,
        "chunks_unique": COUNTS.unique,
    }


def test_on_batch() -> None:
    batches: list[Batch] = []
    model = train(COUNTS, 290, on_batch=batches.append)
    assert [batch.number for batch in batches] == list(range(1, len(batches) + 1))
    assert sum(batch.size for batch in batches) == batches[-1].merges_done == batches[-1].merges_wanted == 34
    assert len(model.merges) == 34
    assert batches[0].count == TEXT.count("th")
    assert batches[0].searched == 17
    assert all(0 < batch.size <= batch.searched for batch in batches)
    assert 0 <= batches[0].seconds <= batches[-1].seconds


def test_no_pairs_left(caplog: pytest.LogCaptureFixture) -> None:
    model = train(ChunkCounts.count("ab ab"), 10_000)
    assert model.n_vocab == 258
    assert caplog.messages == ["no pairs left to merge: the vocabulary has 258 tokens, not 10000"]
    assert set(model.vocab.values()) >= {b"ab", b" ab"}
    tokenizer = Tokenizer.train("ab ab", 10_000, special_tokens=["<end>"])
    assert tokenizer.n_vocab == 259
    assert tokenizer.special_tokens == {"<end>": 258}
    assert train(ChunkCounts.count("a b c", r"\w|\s"), 300).n_vocab == 256


def test_stop_words_get_the_first_ids_and_leave_the_data() -> None:
    counts = ChunkCounts.count({"hello": 9, "é": 8, "xy": 7, "xyz": 1, "lo": 1})
    model = train(counts, 300, stop_list_size=2)
    assert model.stop_words == {b"hello": 256, b"xy": 257}
    tokens = [model.vocab[token] for token in model.merges.values()]
    assert tokens == ["é".encode(), b"lo", b"xy", b"xyz"]
    tokenizer = Tokenizer(model)
    assert tokenizer.encode("hello") == [256]
    assert tokenizer.encode("helloo") == [*b"hel", 259, *b"o"]
    assert tokenizer.encode("xy") == [257]
    assert tokenizer.encode("xyz") == [261]
    assert tokenizer.decode([256, 257, 261]) == "helloxyxyz"


def test_stop_word_below_the_cutoff() -> None:
    counts = ChunkCounts.count({"ab": 3, "c": 2, "de": 1})
    model = train(counts, 300, stop_list_size=2, freq_cutoff=2)
    assert model.stop_words == {b"ab": 256, b"de": 257}
    assert model.merges == {}


def test_freq_cutoff() -> None:
    counts = ChunkCounts.count({"ab": 3, "cd": 2, "ef": 1})
    for cutoff, tokens in ((0, ["ab", "cd", "ef"]), (1, ["ab", "cd", "ef"]), (2, ["ab", "cd"]), (3, ["ab"])):
        model = train(counts, 300, freq_cutoff=cutoff)
        assert [model.vocab[token].decode() for token in model.merges.values()] == tokens
    with pytest.raises(
        ArgumentError, match="freq_cutoff must be at most 3, the count of the most frequent chunk, got 100"
    ):
        train(counts, 300, freq_cutoff=100)


def test_special_tokens() -> None:
    names = train(COUNTS, 270, special_tokens=["<a>", "<b>"])
    assert names.special_tokens == {"<a>": 268, "<b>": 269}
    assert len(names.merges) == 12
    far = train(COUNTS, 270, special_tokens={"<a>": 500, "<b>": 268})
    assert far.special_tokens == {"<a>": 500, "<b>": 268}
    assert far.merges == names.merges


def test_overlapping_counts() -> None:
    counts = ChunkCounts.count({"aaaaa": 1, "abab": 1, "cdcd": 1, "cd": 1})
    assert next(iter(train(counts, 257).merges)) == (99, 100)
    assert next(iter(train(counts, 257, overlapping=True).merges)) == (97, 97)


@pytest.mark.parametrize(
    ("options", "error", "problem"),
    [
        (
            {"vocab_size": 255},
            ValueError,
            r"vocab_size must be at least 256 \(256 bytes \+ 0 special tokens\), got 255$",
        ),
        (
            {"vocab_size": 257, "stop_list_size": 2},
            ValueError,
            r"vocab_size must be at least 258 .*2 stop words.*, got 257$",
        ),
        (
            {"vocab_size": 259, "stop_list_size": 2, "special_tokens": ["<a>", "<b>"]},
            ValueError,
            r"vocab_size must be at least 260 \(256 bytes \+ 2 stop words \+ 2 special tokens\), got 259$",
        ),
        ({"vocab_size": None}, TypeError, "^vocab_size is required: the total number of tokens, such as 32768$"),
        ({"vocab_size": 0}, ValueError, r"vocab_size must be at least 256 \(256 bytes \+ 0 special tokens\), got 0$"),
        ({"vocab_size": -3}, ValueError, "vocab_size must be at least 256 .*, got -3$"),
        ({"vocab_size": 2**24}, ValueError, rf"vocab_size must be at most {256 + MAX_MERGES}, got 16777216"),
        ({"vocab_size": 300.0}, TypeError, r"vocab_size must be an integer, got 300\.0"),
        ({"vocab_size": "300"}, TypeError, "vocab_size must be an integer, got '300'"),
        ({"cap_divisor": 0}, ValueError, "cap_divisor must be at least 1, got 0"),
        ({"max_batch_size": -1}, ValueError, "max_batch_size must be at least 0, got -1"),
        ({"stop_list_size": -1}, ValueError, "stop_list_size must be at least 0, got -1"),
        ({"stop_list_size": 1.5}, TypeError, r"stop_list_size must be an integer, got 1\.5"),
        ({"freq_cutoff": -1}, ValueError, "freq_cutoff must be at least 0, got -1"),
        (
            {"special_tokens": {"<a>": 260}},
            ValueError,
            r"special_tokens must have ids of at least 299 \(bytes, stop words and merges have .*\), got {'<a>': 260}",
        ),
        ({"special_tokens": {"<a>": 299, "<b>": 299}}, ValueError, r"special_tokens must have different ids, got"),
        (
            {"special_tokens": {"<a>": 2**24}},
            ValueError,
            r"id of special token '<a>' must be .* 16777215, got 16777216",
        ),
        ({"special_tokens": ["<a>", "<a>"]}, ValueError, "<a>"),
        ({"special_tokens": "<a>"}, TypeError, "special_tokens"),
        ({"special_tokens": [""]}, (TypeError, ValueError), "empty"),
        ({"threads": 0}, ValueError, "threads must be at least 1, .*got 0"),
    ],
    ids=str,
)
def test_wrong_options(options: dict[str, Any], error: Any, problem: str) -> None:
    with pytest.raises(error, match=problem):
        train(COUNTS, **{"vocab_size": 300, **options})


@pytest.mark.parametrize("data", ["", [], {}, iter([""])], ids=lambda data: type(data).__name__)
def test_empty_data(data: Any) -> None:
    with pytest.raises(
        ValueError, match="nothing to train on: the data is empty, or the pattern gpt4 matches none of it"
    ):
        Tokenizer.train(data, 300)


def overlapping(found: Candidates) -> Candidates:
    found = found.more(1000)
    pairs = set(zip(found.first.tolist(), found.last.tolist(), strict=True))
    one, two = next((a, b) for a in pairs for b in pairs if a[1] == b[0] and a[0] != a[1] and b[0] != b[1])
    return found[[i for i in range(len(found)) if (found.first[i], found.last[i]) in (one, two)]]


def unknown(found: Candidates) -> Candidates:
    return replace(found[:1], last=np.array([3], np.uint32))


def out_of_range(found: Candidates) -> Candidates:
    wrong = np.array([2**31], np.uint32)
    return replace(found[:1], first=wrong, last=wrong)


BAD_POLICIES: list[tuple[Callable[[Candidates], Any], type[Exception], str]] = [
    (overlapping, ValueError, r"the pair \(\d+, \d+\) overlaps another .*leave one of them for a later batch"),
    (unknown, ValueError, r"the pair \(\d+, 3\) does not occur in the data"),
    (out_of_range, ValueError, r"the pair \(2147483648, 2147483648\) does not occur in the data"),
    (lambda found: found[[0, 0]], ValueError, r"the pair \(\d+, \d+\) is in the batch twice"),
    (
        lambda found: found.more(21),
        ValueError,
        r"chose 21 pairs, but only 20 merges remain; return at most as many as it received \(10\)",
    ),
    (lambda found: found[:0], ValueError, "chose none of 10 pairs, .*to veto pairs, use candidates.keep"),
    (lambda found: None, TypeError, "policy <lambda> must return some of its candidates, got NoneType"),
    (lambda found: [(116, 104)], TypeError, "must return some of its candidates, got list"),
]


@pytest.mark.parametrize(("policy", "error", "problem"), BAD_POLICIES)
def test_bad_policies(policy: Any, error: type[Exception], problem: str) -> None:
    with pytest.raises(error, match=problem) as raised:
        train(COUNTS, 276, policy=policy)
    assert re.search("policy|policies", str(raised.value)), "the message does not say that the policy is at fault"


def test_error_in_a_policy_or_callback_is_passed_on() -> None:
    def policy(found: Candidates) -> Candidates:
        raise ZeroDivisionError("mine")

    for options in ({"policy": policy}, {"on_batch": policy}):
        with pytest.raises(ZeroDivisionError, match="mine"):
            train(COUNTS, 276, **options)


def test_counts_too_large_to_add_up() -> None:
    counts = ChunkCounts.count({"ab": 2**64 - 1, "abc": 2**63})
    with pytest.raises(ValueError, match=r"add up to more than 2\*\*64 - 1; scale them down"):
        train(counts, 300)
    model = train(ChunkCounts.count({"ab": 2**60, "bc": 2**61}), 258)
    assert list(model.merges) == [(98, 99), (97, 98)]


def test_ten_megabytes_of_one_letter() -> None:
    text = "a" * 10_000_000
    tokenizer = Tokenizer.train(iter([text]), 270, pattern="(?s).+")
    assert tokenizer.n_vocab == 270
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert len(ids) < 10_000_000 / 4096


@pytest.mark.parametrize("overlapping", [False, True])
def test_long_run_of_one_letter(overlapping: bool) -> None:
    text = "a" * 1_000_000
    options: dict[str, Any] = {"pattern": "(?s).+", "policy": policies.serial, "overlapping": overlapping}
    tokenizer = Tokenizer.train(iter([text]), 270, **options)
    assert [len(tokenizer.vocab[token]) for token in range(256, 270)] == [2**n for n in range(1, 15)]
    whole, rest = divmod(len(text), 2**14)
    assert tokenizer.encode(text) == [269] * whole + [255 + n for n in reversed(range(1, 14)) if rest >> n & 1]


def test_fewer_stop_words_than_requested(caplog: pytest.LogCaptureFixture) -> None:
    model = train(ChunkCounts.count("ab a b cd"), 270, stop_list_size=10)
    assert len(model.stop_words) == 4
    assert "only 4 chunks can become stop words; 10 were requested" in caplog.messages
    train(ChunkCounts.count("ab"), 270, stop_list_size=2)
    assert "only 1 chunk can become stop words; 2 were requested" in caplog.messages
    with pytest.raises(ArgumentError, match=r"258 \(256 bytes \+ 1 stop word \+ 1 special token\), got 257$"):
        train(ChunkCounts.count("ab"), 257, stop_list_size=1, special_tokens=["<e>"])


def untouched() -> Iterator[str]:
    """Data that must not be read."""
    raise AssertionError("the data was read")
    yield ""


def test_train_on_any_data(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    expected = train(COUNTS, 280).merges
    for data in (TEXT, iter([TEXT]), [tmp_path / "a.txt"], pa.table({"text": [TEXT]}), dict(COUNTS)):
        assert train(data, 280).merges == expected
    assert (
        train(texts=TEXT, vocab_size=280).merges == train(files=tmp_path / "a.txt", vocab_size=280).merges == expected
    )
    assert train("text", 258).n_vocab == 258


def test_pattern_and_special_tokens_apply_to_text() -> None:
    model = train("ab<s>ab", 300, pattern=r"\w+|\W", special_tokens=["<s>"])
    assert model.pattern == r"\w+|\W"
    assert model.merges == {(97, 98): 256}


@pytest.mark.parametrize("function", [train, Tokenizer.train])
def test_options_are_spelled_out(function: Callable[..., Any]) -> None:
    """`help` shows them, a misspelled one is an error, and the defaults are the same everywhere."""
    parameters = inspect.signature(function).parameters
    assert not any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    text = pydoc.render_doc(function)
    for option in fields(TrainingOptions):
        assert f"{option.name}:" in text
        assert option.name == "vocab_size" or parameters[option.name].default == option.default
    assert [each.name for each in parameters.values() if each.kind is not each.KEYWORD_ONLY] == ["data", "vocab_size"]
    with pytest.raises(TypeError, match="unexpected keyword argument 'stop_list'"):
        function(untouched(), 300, stop_list=3)


ANNOTATED = """
from batchbpe import Tokenizer, train
tokenizer = Tokenizer.train("text", 258, progress=True, policy="serial")
Tokenizer.train("text", 258, base=tokenizer)
Tokenizer.train("text", 258, base=tokenizer.model, progress=print)
train(["text"], 258, base=tokenizer.model, progress=True, policy="naive")
train("text", 258, stop_list=3)
"""


def test_annotations(tmp_path: Path) -> None:
    """Type checkers accept what is documented, and know the options."""
    pytest.importorskip("mypy")
    (tmp_path / "snippet.py").write_text(ANNOTATED)
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir=cache", "snippet.py"]
    environment = {**os.environ, "MYPYPATH": str(Path(batchbpe.__file__).parents[1])}
    found = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True).stdout
    errors = [line for line in found.splitlines() if ": error: " in line]
    assert len(errors) == 1, found
    assert errors[0].startswith('snippet.py:7: error: Unexpected keyword argument "stop_list"')


def test_progress_and_base(capfd: pytest.CaptureFixture[str]) -> None:
    tokenizer = Tokenizer.train(TEXT, 270)
    positions: list[int] = []
    for base in (tokenizer, tokenizer.model):
        longer = Tokenizer.train(TEXT, 280, base=base, progress=positions.append)
        assert list(longer.merges)[:14] == list(tokenizer.merges) and len(longer.merges) == 24
    assert positions[-1] == len(TEXT)
    assert Tokenizer.train(TEXT, 280, base=tokenizer, progress=True).merges == longer.merges
    assert capfd.readouterr().out == ""
    with pytest.raises(ArgumentTypeError, match=r"base must be a Tokenizer or a Model, got 'mine\.model'"):
        Tokenizer.train(untouched(), 280, base="mine.model")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", list(policies.PAPER_POLICIES))
def test_policies_by_name(name: str) -> None:
    expected = train(COUNTS, 300, policy=getattr(policies, name))
    for model in (
        train(COUNTS, 300, policy=name),
        train_on_counts(COUNTS, TrainingOptions(300, policy=name)),
        Tokenizer.train(COUNTS, 300, policy=name).model,
    ):
        assert list(model.merges.items()) == list(expected.merges.items())
        assert model.training["policy"] == name


@pytest.mark.parametrize("policy", ["greedy", None, 3])
@pytest.mark.parametrize("function", [train, Tokenizer.train])
def test_unknown_policy(function: Callable[..., Any], policy: Any) -> None:
    choices = "'serial', 'naive', 'positional', 'continue_search'"
    with pytest.raises(ArgumentError if isinstance(policy, str) else ArgumentTypeError) as caught:
        function(untouched(), 300, policy=policy)
    function_or = "" if isinstance(policy, str) else "a function or "
    assert str(caught.value) == f"policy must be {function_or}one of {choices}, got {policy!r}"
    assert caught.value.parameter == "policy"


def test_a_conflicting_pattern_is_found_before_counting() -> None:
    base = train("to be or not to be", 260)
    with pytest.raises(ArgumentError, match=r"^pattern must be the pattern of base, gpt4, got 'gpt2'$"):
        train(untouched(), 270, base=base, pattern="gpt2")
    assert train("to be or not to be", 261, base=base, pattern="gpt4").pattern == base.pattern


def test_messages_name_the_pattern() -> None:
    base, counts = train("to be or not to be", 260), ChunkCounts.count(TEXT, "gpt2")
    for call in (
        lambda: train(counts, 270, base=base),
        lambda: train_on_counts(counts, TrainingOptions(270, base=base)),
    ):
        with pytest.raises(DataError, match=r"pattern gpt2.*gpt4") as caught:
            call()
        assert r"\p{L}" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"vocab_size": 257 + MAX_MERGES}, rf"vocab_size must be at most {256 + MAX_MERGES}, got"),
        ({"vocab_size": 200}, r"vocab_size must be at least 256 \(256 bytes \+ 0 special tokens\), got 200"),
        (
            {"vocab_size": 259, "base": train("to be or not to be", 260)},
            r"vocab_size must be at least 260 \(260 tokens of base \+ 0 special tokens\), got 259",
        ),
        ({"stop_list_size": 1, "base": train("to be", 258)}, "stop_list_size must be 0 with base"),
        ({"special_tokens": {"<a>": 260}}, "special_tokens must have ids of at least 299"),
        ({"pattern": "("}, "pattern must be a supported regular expression"),
        ({"cap_divisor": 0}, "cap_divisor must be at least 1"),
    ],
    ids=str,
)
def test_wrong_options_are_found_before_counting(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ArgumentError, match=problem):
        train(untouched(), **{"vocab_size": 300, **options})


def test_policies_cannot_merge() -> None:
    """They choose pairs. Only the training loop merges them."""
    sources: list[Any] = []

    def policy(found: Candidates) -> Candidates:
        sources.append(found.source)
        return found[:1]

    train(COUNTS, 260, policy=policy)
    assert len(sources) == 4
    assert not any(hasattr(source, "merge") for source in sources)


def test_counts_are_passed_on_before_training() -> None:
    seen: list[object] = []
    train("to be or not to be", 258, on_counts=seen.append, on_batch=seen.append)
    assert seen[0] == ChunkCounts.count("to be or not to be") and len(seen) == 3


@pytest.mark.parametrize(("vocab_size", "overlapping"), [(2000, False), (2000, True), (400, False)])
def test_the_built_in_serial_policy_equals_one_written_in_python(vocab_size: int, overlapping: bool) -> None:
    def first(candidates: Candidates) -> Candidates:
        return candidates[:1]

    counts = ChunkCounts.count(Path(typing.__file__).read_text(encoding="utf-8"))
    batches: dict[str, list[tuple[int, ...]]] = {"serial": [], "first": []}

    def trained(policy: policies.Policy | str, name: str) -> Model:
        def record(batch: Batch) -> None:
            batches[name].append((batch.number, batch.size, batch.merges_done, batch.merges_wanted, batch.count))

        return train(counts, vocab_size, policy=policy, overlapping=overlapping, on_batch=record)

    native, python = trained("serial", "serial"), trained(first, "first")
    assert list(native.merges.items()) == list(python.merges.items())
    assert batches["serial"] == batches["first"]
    assert len(batches["serial"]) == vocab_size - 256


def test_the_serial_policy_stops_when_no_pairs_are_left() -> None:
    assert len(train("abab", 300, policy="serial").merges) == 2

"""Training: the errors for wrong options, wrong data and wrong policies."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers import untouched

from batchbpe import ChunkCounts, Tokenizer, train
from batchbpe._core import MAX_MERGES
from batchbpe.errors import ArgumentError, ArgumentTypeError, DataError
from batchbpe.policies import Candidates
from batchbpe.training.merges import train_merges
from batchbpe.training.options import TrainingOptions

TEXT = """It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in want
of a wife. However little known the feelings or views of such a man may be on his first entering a neighbourhood,
this truth is so well fixed in the minds of the surrounding families, that he is considered as the rightful property
of some one or other of their daughters."""
COUNTS = ChunkCounts.count(TEXT)


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
    (out_of_range, ValueError, r"token 2147483648 in the pair \(2147483648, 2147483648\) does not exist"),
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
        ({"vocab_size": None}, TypeError, "^vocab_size is required: .*; or add_tokens, with base$"),
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
        ({"ties": "ffbpe"}, ValueError, "ties must be one of 'ids', 'huggingface', got 'ffbpe'$"),
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
    with pytest.raises(ValueError, match=r"add up to more than 2\*\*63 - 1; scale them down"):
        train(counts, 300)
    model = train(ChunkCounts.count({"ab": 2**60, "bc": 2**61}), 258)
    assert list(model.merges) == [(98, 99), (97, 98)]


@pytest.mark.parametrize("policy", ["greedy", None, 3])
@pytest.mark.parametrize("function", [train, Tokenizer.train])
def test_unknown_policy(function: Callable[..., Any], policy: Any) -> None:
    choices = "'serial', 'naive', 'positional', 'continue_search', 'exact'"
    with pytest.raises(ArgumentError if isinstance(policy, str) else ArgumentTypeError) as caught:
        function(untouched(), 300, policy=policy)
    function_or = "" if isinstance(policy, str) else "a function or "
    assert str(caught.value) == f"policy must be {function_or}one of {choices}, got {policy!r}"
    assert caught.value.parameter == "policy"


def test_a_conflicting_pattern_is_found_before_counting() -> None:
    base = train("to be or not to be", 260)
    with pytest.raises(ArgumentError, match=r"^pattern must be the pattern of base, gpt4, got 'gpt2'; leave it out$"):
        train(untouched(), 270, base=base, pattern="gpt2")
    assert train("to be or not to be", 261, base=base, pattern="gpt4").pattern == base.pattern


def test_messages_name_the_pattern() -> None:
    base, counts = train("to be or not to be", 260), ChunkCounts.count(TEXT, "gpt2")
    for call in (
        lambda: train(counts, 270, base=base),
        lambda: train_merges(counts, TrainingOptions(vocab_size=270, base=base)),
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
            r"vocab_size must be at least 260 \(260 tokens of base \+ 0 new special tokens\), got 259",
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

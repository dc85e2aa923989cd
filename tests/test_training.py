"""The loop: sizes, stop words, special tokens, and what it says about bad options and bad policies."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from batchbpe import Batch, ChunkCounts, Tokenizer, policies, train
from batchbpe.policies import Candidates

TEXT = """It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in want
of a wife. However little known the feelings or views of such a man may be on his first entering a neighbourhood,
this truth is so well fixed in the minds of the surrounding families, that he is considered as the rightful property
of some one or other of their daughters."""
COUNTS = ChunkCounts.count(TEXT)


def test_wikipedia_example() -> None:
    tokenizer = Tokenizer.train("aaabdaaabac", 259)
    assert tokenizer.merges == {(97, 97): 256, (97, 98): 257, (256, 257): 258}
    assert tokenizer.encode("aaabdaaabac") == [258, 100, 258, 97, 99]


def test_record_of_training() -> None:
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
    assert caplog.messages == ["no pairs are left to merge: the vocabulary has 258 tokens, not 10000"]
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
    for cutoff, tokens in ((0, ["ab", "cd", "ef"]), (1, ["ab", "cd", "ef"]), (2, ["ab", "cd"]), (3, ["ab"]), (4, [])):
        model = train(counts, 300, freq_cutoff=cutoff)
        assert [model.vocab[token].decode() for token in model.merges.values()] == tokens


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
        ({"vocab_size": 255}, ValueError, r"vocab_size=255 is too small: 256 bytes and 0 special tokens need 256"),
        (
            {"vocab_size": 257, "stop_list_size": 2},
            ValueError,
            r"vocab_size=257 is .*2 stop words.*need 258",
        ),
        (
            {"vocab_size": 259, "stop_list_size": 2, "special_tokens": ["<a>", "<b>"]},
            ValueError,
            r"vocab_size=259 is too small: 256 bytes, 2 stop words and 2 special tokens need 260",
        ),
        ({"vocab_size": 0}, ValueError, "vocab_size=0 is too small"),
        ({"vocab_size": -3}, ValueError, "vocab_size=-3 is too small"),
        ({"vocab_size": 2**24}, ValueError, r"vocab_size=16777216 is too large: ids go from 0 to"),
        ({"vocab_size": 300.0}, TypeError, r"vocab_size=300\.0 is no whole number"),
        ({"vocab_size": "300"}, TypeError, "vocab_size='300' is no whole number"),
        ({"cap_divisor": 0}, ValueError, "cap_divisor=0 is too small: give 1 or more"),
        ({"max_batch_size": -1}, ValueError, "max_batch_size=-1 is too small: give 0 or more"),
        ({"stop_list_size": -1}, ValueError, "stop_list_size=-1 is too small: give 0 or more"),
        ({"stop_list_size": 1.5}, TypeError, "stop_list_size=1.5 is no whole number"),
        ({"freq_cutoff": -1}, ValueError, "freq_cutoff=-1 is too small: give 0 or more"),
        ({"special_tokens": {"<a>": 260}}, ValueError, r"'<a>': the id 260 is needed .*choose one from 299 on"),
        ({"special_tokens": {"<a>": 299, "<b>": 299}}, ValueError, r"b?'<b>': the id 299 is taken by b?'<a>'; choose"),
        ({"special_tokens": {"<a>": 2**24}}, ValueError, "the id 16777216 .*out of range"),
        ({"special_tokens": ["<a>", "<a>"]}, ValueError, "<a>"),
        ({"special_tokens": "<a>"}, TypeError, "special_tokens"),
        ({"special_tokens": [""]}, (TypeError, ValueError), "empty"),
        ({"threads": 0}, ValueError, "threads=0: give at least 1"),
    ],
    ids=str,
)
def test_wrong_options(options: dict[str, Any], error: Any, problem: str) -> None:
    with pytest.raises(error, match=problem):
        train(COUNTS, **{"vocab_size": 300, **options})


@pytest.mark.parametrize("data", ["", [], {}, iter([""])], ids=lambda data: type(data).__name__)
def test_empty_data(data: Any) -> None:
    with pytest.raises(ValueError, match="nothing to train on: the data holds no chunks"):
        Tokenizer.train(data, 300)


def overlapping(found: Candidates) -> Candidates:
    found = found.more(1000)
    pairs = set(zip(found.first.tolist(), found.last.tolist(), strict=True))
    one, two = next((a, b) for a in pairs for b in pairs if a[1] == b[0] and a[0] != a[1] and b[0] != b[1])
    return found[[i for i in range(len(found)) if (found.first[i], found.last[i]) in (one, two)]]


def unknown(found: Candidates) -> Candidates:
    return Candidates(
        found.first[:1], np.array([3], np.uint32), found.count[:1], found.vocab, found.lengths, found.pairs
    )


def out_of_range(found: Candidates) -> Candidates:
    wrong = np.array([2**31], np.uint32)
    return replace(found[:1], first=wrong, last=wrong)


BAD_POLICIES: list[tuple[Callable[[Candidates], Any], type[Exception], str]] = [
    (overlapping, ValueError, r"the pair \(\d+, \d+\) overlaps another .*leave one of them for a later batch"),
    (unknown, ValueError, r"the pair \(\d+, 3\) does not occur in the data"),
    (out_of_range, ValueError, r"the pair \(2147483648, 2147483648\) does not occur in the data"),
    (lambda found: found[[0, 0]], ValueError, r"the pair \(\d+, \d+\) is in the batch twice"),
    (lambda found: found.more(21), ValueError, r"chose 21 pairs, but only 20 merges remain; return at most 10"),
    (lambda found: found[:0], ValueError, "chose none of 10 pairs, .*veto pairs with candidates.keep"),
    (lambda found: None, TypeError, r"policy <lambda> returned NoneType: return some of its candidates"),
    (lambda found: [(116, 104)], TypeError, "returned list: return some of its candidates"),
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


def test_fewer_stop_words_than_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    model = train(ChunkCounts.count("ab a b cd"), 270, stop_list_size=10)
    assert len(model.stop_words) == 4
    assert "only 4 chunks have more than one character, not 10" in caplog.messages

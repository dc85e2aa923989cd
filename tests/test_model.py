"""A `Model` that exists is valid: every wrong one is refused with the reason."""

import copy
import pickle
from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest

from batchbpe import ChunkCounts, Model
from batchbpe.model import MAX_ID

MODEL = Model(
    pattern=r"\w+",
    merges={(97, 97): 258, (258, 98): 259},
    stop_words={b"the": 256, b" a": 257},
    special_tokens={"<end>": 300},
    training={"vocab_size": 261},
)


def test_vocab() -> None:
    assert MODEL.vocab == {
        **{byte: bytes([byte]) for byte in range(256)},
        256: b"the",
        257: b" a",
        258: b"aa",
        259: b"aab",
        300: b"<end>",
    }
    assert list(MODEL.vocab) == sorted(MODEL.vocab)
    assert MODEL.n_vocab == 301
    assert Model(pattern=".", merges={}).n_vocab == 256
    with pytest.raises(ValueError, match="the pattern is empty"):
        Model(pattern="", merges={})


def test_other_ids_of_bytes() -> None:
    model = Model(pattern=r"\w+", merges={(158, 158): 256}, byte_ids=tuple(reversed(range(256))))
    assert model.vocab[256] == b"aa"


def test_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        MODEL.pattern = "x"  # type: ignore[misc]


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies(again: Any) -> None:
    assert again(MODEL) == MODEL
    assert again(MODEL).vocab == MODEL.vocab


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"merges": {(97, 98): 97}}, r"merge 0, \(97, 98\) -> 97: the id is taken by b'a'"),
        ({"merges": {(97, 97): 258, (97, 98): 258}}, r"merge 1, \(97, 98\) -> 258: the id is taken by b'aa'"),
        ({"merges": {(97, 400): 258}}, r"merge 0, \(97, 400\) -> 258: there is no token 400 before it; put merges in"),
        ({"merges": {(258, 97): 258}}, r"no token 258 before it"),
        ({"merges": {(259, 97): 258, (97, 97): 259}}, r"merge 0, .*no token 259 before it"),
        ({"merges": {(-1, 97): 258}}, r"no token -1 before it"),
        (
            {"merges": {(97, 97): MAX_ID + 1}},
            rf"the id {MAX_ID + 1} of b'aa' .*ids go from 0 to {MAX_ID}",
        ),
        ({"merges": {(97, 97): -1}}, r"the id -1 of b'aa' is out of range"),
        ({"stop_words": {b"the": 258}}, r"b'the': the id 258 is taken by b'aa'; choose another"),
        ({"stop_words": {b"the": 256, b"of": 256}}, r"b'of': the id 256 is taken by b'the'; choose another"),
        ({"stop_words": {b"": 256}}, r"the token 256 is empty: give it at least one byte"),
        ({"special_tokens": {"<end>": 259}}, r"b'<end>': the id 259 is taken by b'aab'; choose another"),
        ({"special_tokens": {"<a>": 300, "<b>": 300}}, r"b'<b>': the id 300 is taken by b'<a>'; choose another"),
        ({"special_tokens": {"": 300}}, r"the token 300 is empty"),
        ({"special_tokens": {"<end>": 2**40}}, r"the id 1099511627776 of b'<end>' is out of range"),
        ({"special_tokens": {"<end>": -5}}, r"the id -5 of b'<end>' is out of range"),
        ({"special_tokens": {"<end>": 300.0}}, r"the id 300\.0 of b'<end>'"),
        ({"special_tokens": {"<end>": "300"}}, r"the id '300' of b'<end>'"),
        ({"special_tokens": {"<end>": True}}, r"<end>"),
        ({"special_tokens": {"a\ud800": 300}}, r"(?s)surrogate"),
        ({"byte_ids": (0,) * 256}, r"byte_ids must be 256 different ids"),
        ({"byte_ids": tuple(range(255))}, r"byte_ids must be 256 different ids"),
        ({"byte_ids": (*range(255), 2**30)}, r"the id 1073741824 of b'\\xff' is out of range"),
    ],
)
def test_wrong_models(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        replace(MODEL, **change)


@pytest.mark.parametrize("pattern", [None, 3, b"a"])
def test_wrong_pattern(pattern: Any) -> None:
    with pytest.raises(TypeError, match=r"pattern is .*: give a regular expression as a str"):
        replace(MODEL, pattern=pattern)


def test_stop_word_of_a_merges_bytes() -> None:
    model = Model(pattern=r"\w+", merges={(97, 97): 257}, stop_words={b"aa": 256})
    assert model.vocab[256] == model.vocab[257] == b"aa"


def test_tokens_of_wrong_type() -> None:
    with pytest.raises(TypeError, match="the stop word 'the' is a str: give bytes"):
        Model(pattern="x", merges={}, stop_words={"the": 256})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="the special token b'<a>' is a bytes: give a str"):
        Model(pattern="x", merges={}, special_tokens={b"<a>": 256})  # type: ignore[dict-item]


def test_special_tokens_are_bounded() -> None:
    """Together: looking for them takes a hundred times their size."""
    at_most = {"x" * (1 << 19): 256, "y" * (1 << 19): 257}
    assert Model(pattern=r"\w+", merges={}, special_tokens=at_most).n_vocab == 258
    too_many = {**at_most, "é": 258}
    with pytest.raises(
        ValueError, match=r"special tokens may have 1,048,576 bytes in all, not 1,048,578: shorten 'xxx…"
    ):
        Model(pattern=r"\w+", merges={}, special_tokens=too_many)
    for special_tokens in (too_many, list(too_many)):
        with pytest.raises(ValueError, match="special tokens may have 1,048,576 bytes in all"):
            ChunkCounts.count("to be", special_tokens=special_tokens)


def test_values_in_errors_are_short() -> None:
    long = {b"x" * 100_000: 256, b"y" * 100_000: 256}
    with pytest.raises(ValueError, match=r"'y+…y+' \(100,000 bytes\): the id 256 is taken by b'x+…x+'") as caught:
        Model(pattern=r"\w+", merges={}, stop_words=long)
    assert len(str(caught.value)) < 1000

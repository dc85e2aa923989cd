"""A model is immutable, compares by value, and is valid: anything invalid raises an error that says why."""

import copy
import pickle
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from batchbpe import PATTERNS, ChunkCounts, Model
from batchbpe._core import MAX_ID
from batchbpe.errors import DataError

MODEL = Model(
    split=r"\w+",
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
    assert Model(split=".", merges={}).n_vocab == 256
    with pytest.raises(ValueError, match="pattern must not be empty"):
        Model(split="", merges={})


def test_byte_ids() -> None:
    model = Model(split=r"\w+", merges={(158, 158): 256}, byte_ids=tuple(reversed(range(256))))
    assert model.vocab[256] == b"aa"


def test_immutable() -> None:
    with pytest.raises(FrozenInstanceError):
        MODEL.pattern = "x"  # type: ignore[misc]
    for name in ("merges", "stop_words", "special_tokens", "training", "vocab", "token_ids"):
        with pytest.raises(AttributeError):
            getattr(MODEL, name).clear()
        with pytest.raises(TypeError):
            getattr(MODEL, name)["x"] = 3


def test_arguments_are_copied() -> None:
    given: dict[str, Any] = {
        "merges": {(97, 97): 256},
        "stop_words": {b"the": 257},
        "special_tokens": {"<e>": 258},
        "byte_ids": list(range(256)),
        "training": {"sizes": [1]},
    }
    model = Model(split=r"\w+", **given)
    expected = Model(split=r"\w+", **copy.deepcopy(given))
    given["training"]["sizes"].append(2)
    for argument in given.values():
        argument.clear()
    assert model == expected
    assert model.training == {"sizes": [1]}


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model)), lambda model: replace(model)]
)
def test_copies(copied: Any) -> None:
    assert copied(MODEL) == MODEL
    assert hash(copied(MODEL)) == hash(MODEL)
    assert copied(MODEL).vocab == MODEL.vocab
    assert copied(MODEL).training == MODEL.training
    with pytest.raises(AttributeError):
        copied(MODEL).merges.clear()


@pytest.mark.parametrize(
    "change",
    [
        {"split": r"\w"},
        {"merges": {(97, 97): 258}},
        {"merges": {(97, 97): 258, (97, 98): 259}},
        {"stop_words": {b"the": 256}},
        {"special_tokens": {}},
        {"byte_ids": (*range(255), 301)},
        {"phrases": {(97, 98): 301}},
    ],
)
def test_unequal_models(change: dict[str, Any]) -> None:
    changed = replace(MODEL, **change)
    assert changed != MODEL
    assert changed.identity != MODEL.identity
    assert hash(changed) != hash(MODEL)
    assert (changed.tokens_id == MODEL.tokens_id) == (change.keys() <= {"special_tokens", "phrases"})


@dataclass(frozen=True, repr=False, eq=False)
class Extended(Model):
    new: Mapping[str, int] = field(default_factory=dict)


def test_a_new_field_is_compared_and_pickled() -> None:
    model = Extended(split="x", merges={}, new={"a": 300})
    assert replace(model, new={}) != model
    assert replace(model, new={}).identity != model.identity
    assert pickle.loads(pickle.dumps(model)).new == {"a": 300}


def test_identities_do_not_change() -> None:
    assert MODEL.tokens_id == "3f2210f0a4f9cbd8738884e148c10d47", "files of runs contain it"
    plain = Model(split="x", merges={}, stop_words={b"to": 256}, special_tokens={"<s>": 257})
    named = {np.str_(name): token for name, token in plain.special_tokens.items()}
    assert replace(plain, split=np.str_("x"), stop_words={np.bytes_(b"to"): 256}, special_tokens=named) == plain


def test_equality_is_by_value() -> None:
    assert replace(MODEL, training={}) == MODEL
    assert hash(replace(MODEL, training={})) == hash(MODEL)
    assert replace(MODEL, stop_words={b" a": 257, b"the": 256}) == MODEL
    one, two = ({(97, 98): 256, (98, 99): 257}, {(98, 99): 257, (97, 98): 256})
    assert one == two
    assert Model(split="x", merges=one) != Model(split="x", merges=two), "the order of merges is their rank"
    assert MODEL != "model"


def test_repr() -> None:
    assert repr(MODEL) == "Model(tokens=261, merges=2, stop_words=2, special_tokens=1, pattern='\\\\w+')"
    assert repr(Model(split=PATTERNS["cl100k"], merges={})).endswith("pattern='cl100k')")
    assert len(repr(Model(split="x" * 10_000, merges={}))) < 200


def test_maximum_number_of_merges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("batchbpe.model.checks.MAX_MERGES", 1)
    with pytest.raises(ValueError, match="a model can have at most 1 merges, got 2"):
        replace(MODEL, split="x")


@pytest.mark.parametrize("merges", [{97: 256}, {(97,): 256}, {(97.0, 97): 256}, {(True, 97): 256}, {"ab": 256}])
def test_merges_of_wrong_type(merges: Any) -> None:
    with pytest.raises(TypeError, match="merges must have pairs of integers as keys, got "):
        Model(split="x", merges=merges)
    with pytest.raises(TypeError, match="merges must be a mapping, got "):
        Model(split="x", merges=list(merges))  # type: ignore[arg-type]


@pytest.mark.parametrize("token", [[1], None, "x", 1.5])
def test_ids_of_wrong_type(token: Any) -> None:
    for change in (
        {"merges": {(97, 97): token}},
        {"stop_words": {b"the": token}},
        {"special_tokens": {"<e>": token}},
        *([] if token is None else [{"byte_ids": (*range(255), token)}]),
    ):
        with pytest.raises(ValueError, match="must be an integer from 0 to"):
            replace(MODEL, **change)


def test_errors_are_structured() -> None:
    with pytest.raises(DataError) as caught:
        replace(MODEL, merges={(97, 400): 258})
    assert caught.value.where == "merge 0, (97, 400) -> 258"
    assert caught.value.remedy == "add the merge that makes it"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"merges": {(97, 98): 97}}, r"merge 0, \(97, 98\) -> 97: id 97 is already used by b'a'"),
        ({"merges": {(97, 97): 258, (97, 98): 258}}, r"merge 1, \(97, 98\) -> 258: id 258 is already used by b'aa'"),
        (
            {"merges": {(97, 400): 258}},
            r"merge 0, \(97, 400\) -> 258: token 400 is not defined; add the merge that makes it",
        ),
        ({"merges": {(258, 97): 258}}, r"merge 0, \(258, 97\) -> 258: the token is merged from itself"),
        ({"merges": {(259, 97): 258, (98, 258): 259}}, r"merge \d, .*: the token is merged from itself"),
        ({"merges": {(-1, 97): 258}}, rf"merges must have pairs of ids from 0 to {MAX_ID} as keys, got \(-1, 97\)"),
        (
            {"merges": {(97, 97): MAX_ID + 1}},
            rf"id of merge \(97, 97\) must be an integer from 0 to {MAX_ID}, got {MAX_ID + 1}",
        ),
        ({"merges": {(97, 97): -1}}, r"id of merge \(97, 97\) must be an integer from 0 to \d+, got -1"),
        ({"stop_words": {b"the": 258}}, r"id 258 of stop word b'the' is already used by b'aa'; choose another id"),
        ({"stop_words": {b"the": 256, b"of": 256}}, r"id 256 of stop word b'of' is already used by b'the'"),
        ({"stop_words": {b"": 256}}, r"stop word b'' with id 256 must not be empty"),
        ({"special_tokens": {"<end>": 259}}, r"id 259 of special token '<end>' is already used by b'aab'; choose"),
        ({"special_tokens": {"<a>": 300, "<b>": 300}}, r"id 300 of special token '<b>' is already used by b'<a>'"),
        ({"special_tokens": {"": 300}}, r"special token '' with id 300 must not be empty"),
        ({"special_tokens": {"<end>": 2**40}}, r"id of special token '<end>' must be .*, got 1099511627776"),
        ({"special_tokens": {"<end>": -5}}, r"id of special token '<end>' must be .*, got -5"),
        ({"special_tokens": {"<end>": 300.0}}, r"must be an integer .*, got 300\.0"),
        ({"special_tokens": {"<end>": "300"}}, r"must be an integer .*, got '300'"),
        ({"special_tokens": {"<end>": True}}, r"must be an integer .*, got True"),
        ({"special_tokens": {"a\ud800": 300}}, r"special token .* has a surrogate at character 1"),
        ({"byte_ids": (0,) * 256}, r"byte_ids must be 256 different ids"),
        ({"byte_ids": tuple(range(255))}, r"byte_ids must be 256 different ids"),
        ({"byte_ids": (*range(255), 2**30)}, r"id of byte 255 must be .*, got 1073741824"),
    ],
)
def test_wrong_models(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        replace(MODEL, **change)


@pytest.mark.parametrize("pattern", [None, 3, b"a"])
def test_wrong_pattern(pattern: Any) -> None:
    with pytest.raises(TypeError, match=r"pattern must be a regular expression \(str\), got "):
        replace(MODEL, split=pattern)


def test_stop_word_with_the_bytes_of_a_merge() -> None:
    model = Model(split=r"\w+", merges={(97, 97): 257}, stop_words={b"aa": 256})
    assert model.vocab[256] == model.vocab[257] == b"aa"


def test_tokens_of_wrong_type() -> None:
    with pytest.raises(TypeError, match="stop_words must have bytes as keys, got 'the'"):
        Model(split="x", merges={}, stop_words={"the": 256})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="special_tokens must have strings as keys, got b'<a>'"):
        Model(split="x", merges={}, special_tokens={b"<a>": 256})  # type: ignore[dict-item]


def test_special_tokens_are_bounded() -> None:
    """Searching for special tokens takes a hundred times their total size."""
    at_most = {"x" * (1 << 19): 256, "y" * (1 << 19): 257}
    assert Model(split=r"\w+", merges={}, special_tokens=at_most).n_vocab == 258
    too_many = {**at_most, "é": 258}
    with pytest.raises(
        ValueError, match=r"special_tokens must have at most 1,048,576 bytes in total, got 1048578; shorten 'xxx…"
    ):
        Model(split=r"\w+", merges={}, special_tokens=too_many)
    for special_tokens in (too_many, list(too_many)):
        with pytest.raises(ValueError, match="special_tokens must have at most 1,048,576 bytes in total"):
            ChunkCounts.count("to be", special_tokens=special_tokens)


def test_values_in_errors_are_short() -> None:
    long = {b"x" * 100_000: 256, b"y" * 100_000: 256}
    with pytest.raises(ValueError, match=r"b'y+…y+' \(100,000 bytes\) is already used by b'x+…x+'") as caught:
        Model(split=r"\w+", merges={}, stop_words=long)
    assert len(str(caught.value)) < 1000


def test_a_named_pattern_is_not_a_regular_expression() -> None:
    with pytest.raises(
        ValueError, match=r"must be a regular expression, not a name, got 'gpt4'; use batchbpe\.PATTERNS"
    ):
        Model(split="gpt4", merges={})

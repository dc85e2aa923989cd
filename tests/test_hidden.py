"""Hidden tokens: merges that are only steps to other tokens."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from batchbpe import Model
from batchbpe.errors import UserError

MERGES = {(97, 98): 256, (256, 99): 257, (257, 257): 300, (100, 100): 258}
"""ab, abc, abcabc, dd"""
MODEL = Model(split=r"\w+|\s+", merges=MERGES, stop_words={b"ab": 259}, special_tokens={"<s>": 260}, hidden={256, 300})


def test_hidden_tokens_are_not_in_the_vocabulary() -> None:
    assert MODEL.hidden == {256, 300}
    assert MODEL.vocab_size == len(MODEL.vocab) == 256 + 2 + 2
    assert MODEL.hidden.isdisjoint(MODEL.vocab)
    assert MODEL.hidden.isdisjoint(MODEL.token_ids.values())
    assert MODEL.vocab_with_hidden == {**MODEL.vocab, 256: b"ab", 300: b"abcabc"}
    assert dict(MODEL.visible_merges) == {(256, 99): 257, (100, 100): 258}
    assert (MODEL.n_vocab, MODEL.next_id) == (261, 301)
    assert repr(MODEL).startswith("Model(tokens=260, merges=4, stop_words=1, special_tokens=1, hidden=2, ")


def test_hidden_tokens_are_part_of_the_merge_tree() -> None:
    tree = MODEL.merge_tree(257)
    assert [part.token for part in tree.parts] == [256, 99]
    assert MODEL.merge_tree(300).value == b"abcabc"


def test_hidden_tokens_are_part_of_the_identity() -> None:
    shown = Model(split=MODEL.split, merges=MERGES, stop_words=MODEL.stop_words, special_tokens=MODEL.special_tokens)
    assert shown != MODEL
    assert shown.tokens_id != MODEL.tokens_id
    assert shown.next_id == shown.n_vocab == 301
    assert Model(split=r"\w+", merges=MERGES, hidden=frozenset()) == Model(split=r"\w+", merges=MERGES)
    for same in (pickle.loads(pickle.dumps(MODEL)), copy.deepcopy(MODEL)):
        assert same == MODEL
        assert same.hidden == MODEL.hidden


@pytest.mark.parametrize("hidden", [[256, 256], (256,), {256: "a"}, range(256, 257), iter([256])])
def test_any_collection_is_frozen(hidden: Any) -> None:
    assert Model(split=r"\w+", merges=MERGES, hidden=hidden).hidden == frozenset({256})


@pytest.mark.parametrize(
    ("hidden", "error"),
    [
        (5, "hidden must be a collection of ids, got 5"),
        ("256", "hidden must be a collection of ids, got '256'"),
        ([[256]], r"hidden must contain only integers, got \[256\]"),
        ([True], "hidden must contain only integers, got True"),
        ([256.0], "hidden must contain only integers, got 256.0"),
        ([97], "hidden must contain only ids that merges make, got 97"),
        ([-1], "hidden must contain only ids that merges make, got -1"),
        ([500], "hidden must contain only ids that merges make, got 500"),
        ([259], "hidden must contain only ids that merges make, got 259"),
        ([260], "hidden must contain only ids that merges make, got 260"),
        ([261], "hidden must contain only ids that merges make, got 261"),
        ([262], "hidden must contain only ids that merges make, got 262"),
        ([258], "hidden must not contain the id of 'dd', which is a special or added token, got 258"),
        ([257], r"hidden must not contain a token of phrase \(257, 32\), got 257"),
    ],
)
def test_errors_for_other_ids(hidden: Any, error: str) -> None:
    with pytest.raises(UserError, match=f"^{error}$"):
        Model(
            split=r"\w+|\s+",
            merges=MERGES,
            stop_words={b"the": 259},
            special_tokens={"<s>": 260},
            added_tokens={"dd": 258},
            phrases={(257, 32): 262},
            decode_only={261: b"x"},
            hidden=hidden,
        )

"""Edited models are valid, keep what they do not change, and encode as a plain computation says."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tokenizers
from helpers import END, TEXT, examples, reference_of
from hypothesis import given
from hypothesis import strategies as st

from batchbpe import ChunkCounts, Model, Tokenizer, reference
from batchbpe.errors import UserError
from batchbpe.formats.huggingface import to_json
from batchbpe.formats.tiktoken import from_ranks
from batchbpe.model import UnknownTokenError

PATTERN = r" ?[a-z]+|\s|[^\sa-z]+"
LETTERS = [*b"abc "]
ABC = Model(PATTERN, {(97, 98): 256, (98, 99): 257, (256, 99): 258})
"""ab, bc, abc"""
TEXTS = st.text("abc <s>", max_size=30)


@st.composite
def models(draw: st.DrawFn, max_hidden: int = 2, least: int = 0) -> Model:
    """Small models with all kinds of tokens and with gaps between ids, whose merges are in any order that works."""
    free = iter(draw(st.permutations(range(256, 320))))
    parts = [*LETTERS]
    merges: dict[tuple[int, int], int] = {}
    for _ in range(draw(st.integers(least, 12))):
        pair = draw(st.tuples(st.sampled_from(parts), st.sampled_from(parts)))
        if pair not in merges:
            merges[pair] = next(free)
            parts.append(merges[pair])
    made = [*merges.values()]
    hidden = draw(st.sets(st.sampled_from(made), max_size=max_hidden)) if made else set()
    visible = [part for part in parts if part not in hidden]
    stop_words = draw(st.lists(st.sampled_from([b"ab", b" ab", b"cab"]), max_size=2, unique=True))
    names = draw(st.lists(st.sampled_from(["<s>", "ab", "</s>"]), max_size=2, unique=True))
    return Model(
        PATTERN,
        merges=merges,
        hidden=frozenset(hidden),
        stop_words={word: next(free) for word in stop_words},
        special_tokens={name: next(free) for name in names[:1]},
        added_tokens={name: next(free) for name in names[1:]},
        phrases={
            pair: next(free)
            for pair in draw(st.lists(st.tuples(*[st.sampled_from(visible)] * 2), max_size=2, unique=True))
        },
        decode_only={next(free): b"x"},
    )


@st.composite
def regular_models(draw: st.DrawFn) -> Model:
    """Models of tokens in any order, of which those that cannot be reached are left out."""
    tokens = draw(st.lists(st.binary(min_size=2, max_size=5).map(to_letters), max_size=12, unique=True))
    ranks = {bytes([byte]): byte for byte in range(256)} | {value: rank for rank, value in enumerate(tokens, 256)}
    reached = from_ranks(ranks, PATTERN, {}).merges.values()
    ids = {token: number for number, token in enumerate(reached, 256)}
    return from_ranks(
        {value: ids.get(rank, rank) for value, rank in ranks.items() if rank in ids or rank < 256}, PATTERN, {}
    )


def to_letters(value: bytes) -> bytes:
    return bytes(LETTERS[byte % len(LETTERS)] for byte in value)


def pairs_of(model: Model) -> dict[int, tuple[int, int]]:
    return {token: pair for pair, token in model.merges.items()}


def depends(model: Model, token: int, on: set[int]) -> bool:
    """Return whether the merge tree of a token contains one of some tokens."""
    return token in on or any(depends(model, part, on) for part in pairs_of(model).get(token, ()))


def encode(model: Model, text: str) -> list[int]:
    """Encode with the reference, which has no phrases."""
    merges, stop_words = reference_of(model)
    return reference.encode(text, model.split, merges, stop_words, hidden=model.hidden, byte_ids=model.byte_ids)


def values(model: Model, text: str) -> list[bytes]:
    return [model.vocab[token] for token in encode(model, text)]


def check_rest(new: Model, old: Model, removed: set[int] = frozenset()) -> None:  # type: ignore[assignment]
    """Tokens that were not removed keep their ids, and everything else is as before."""
    for name in ("stop_words", "special_tokens", "added_tokens"):
        expected = {key: token for key, token in getattr(old, name).items() if token not in removed}
        assert getattr(new, name) == expected
    assert new.decode_only == {token: value for token, value in old.decode_only.items() if token not in removed}
    assert new.vocab.items() <= old.vocab.items()
    assert (new.split, new.byte_ids, new.carried) == (old.split, old.byte_ids, old.carried)
    assert new.phrases == {
        parts: token for parts, token in old.phrases.items() if token not in removed and {*parts} <= new.vocab.keys()
    }


def chosen(data: st.DataObject, model: Model) -> set[int]:
    tokens = sorted(model.vocab.keys() - {*range(256)})
    return data.draw(st.sets(st.sampled_from(tokens), max_size=3))


@examples(200)
@given(st.data(), models())
def test_hyp_dependents_are_removed(data: st.DataObject, model: Model) -> None:
    tokens = chosen(data, model)
    new = model.without(tokens, dependents="remove")
    check_rest(new, model, tokens)
    left = {pair: token for pair, token in model.merges.items() if not depends(model, token, tokens)}
    gone = {token for token in model.hidden if any(token in pair for pair in model.merges)}
    while needless := {token for token in gone & {*left.values()} if not any(token in pair for pair in left)}:
        left = {pair: token for pair, token in left.items() if token not in needless}
    assert [*new.merges.items()] == [*left.items()]
    assert new.hidden == model.hidden & {*left.values()}


@examples(200)
@given(st.data(), models(), TEXTS)
def test_hyp_needed_tokens_are_hidden(data: st.DataObject, model: Model, text: str) -> None:
    tokens = chosen(data, model)
    new = model.without(tokens)
    check_rest(new, model, tokens)
    assert new.vocab.keys() == model.vocab.keys() - tokens - ({*model.phrases.values()} - {*new.phrases.values()})
    # Without removing what is needless: leaves are removed one after the other.
    merges, hidden = dict(model.merges), model.hidden | (tokens & {*model.merges.values()})
    never_needed = {token for token in model.hidden if not any(token in pair for pair in model.merges)}
    while leaves := {
        token
        for token in merges.values()
        if token in hidden - never_needed and not any(token in pair for pair in merges)
    }:
        merges = {pair: token for pair, token in merges.items() if token not in leaves}
    stop_words = {word.decode(): token for word, token in new.stop_words.items()}
    assert encode(new, text) == reference.encode(text, model.split, merges, stop_words, hidden=hidden)
    assert all(token > max(new.vocab) for token in new.hidden - model.hidden)


@examples(200)
@given(st.data(), regular_models())
def test_hyp_dependents_are_rebuilt_as_ranks_recover_them(data: st.DataObject, model: Model) -> None:
    tokens = data.draw(st.sets(st.sampled_from([*model.merges.values()]), max_size=3)) if model.merges else set()
    new = model.without(tokens, dependents="rebuild")
    check_rest(new, model, tokens)
    ranks = {value: token for token, value in model.vocab.items() if token not in tokens}
    recovered = from_ranks(ranks, model.split, {})
    assert [*new.merges.items()] == [*recovered.merges.items()]
    assert {*model.merges.values()} == {*new.merges.values(), *tokens, *recovered.stop_words.values()}


@examples(100)
@given(st.data(), models())
def test_hyp_any_model_can_be_rebuilt(data: st.DataObject, model: Model) -> None:
    tokens = chosen(data, model)
    new = model.without(tokens, dependents="rebuild")
    check_rest(new, model, tokens)
    old, made = pairs_of(model), pairs_of(new)
    for token in made:
        if not depends(model, token, tokens):
            assert made[token] == old[token]
    kept = [token for token in model.merges.values() if token in made]
    assert kept == [*new.merges.values()]


@examples(150)
@given(st.data(), models(max_hidden=0), st.lists(TEXTS, min_size=1, max_size=5))
def test_hyp_the_rarest_leaves_are_pruned(data: st.DataObject, model: Model, texts: list[str]) -> None:
    counts = Counter(token for text in texts for token in encode(model, text))
    left = dict(model.merges)
    size = model.vocab_size
    n = data.draw(st.integers(0, size))
    while size > n:
        used = {part for pair in (*left, *model.phrases) for part in pair}
        leaves = [token for token in left.values() if token not in used]
        if not leaves:
            with pytest.raises(ValueError, match=f"^n must be at least {size}, since only merges can be removed"):
                model.pruned(n, ChunkCounts.count(texts=["".join(texts) or "a"], pattern=PATTERN))
            return
        leaf = min(leaves, key=lambda token: (counts[token], -token))
        pair = pairs_of(model)[leaf]
        for part in pair:
            counts[part] += counts[leaf]
        del left[pair]
        size -= 1
    if not any(texts):
        return
    new = model.pruned(n, ChunkCounts.count(texts=texts, pattern=PATTERN))
    assert [*new.merges.items()] == [*left.items()]
    assert new.vocab_size == n
    check_rest(new, model)


@examples(150)
@given(st.data(), models())
def test_hyp_truncated(data: st.DataObject, model: Model) -> None:
    new_merges = [token for token in model.merges.values() if token not in model.hidden]
    others = model.vocab_size - len(new_merges) - len(model.phrases)
    n = data.draw(st.integers(others, model.vocab_size))
    new = model.truncated(n)
    check_rest(new, model, {*sorted(model.phrases.values())[max(0, n - others - len(new_merges)) :]})
    assert [*new.visible_merges.values()] == new_merges[: n - others]
    assert new.merges.items() <= model.merges.items()
    assert (new.vocab_size == n) or new.phrases.keys() < model.phrases.keys()


@examples(100)
@given(models(), TEXTS)
def test_hyp_renumbered(model: Model, text: str) -> None:
    new = model.renumbered()
    assert new.n_vocab == new.vocab_size == model.vocab_size
    assert [*new.vocab] == [*range(new.n_vocab)]
    assert {*new.hidden} == {*range(new.n_vocab, new.n_vocab + len(model.hidden))}
    assert [*new.visible_merges.values()] == sorted(new.visible_merges.values())
    assert Counter(new.vocab.values()) == Counter(model.vocab.values())
    assert values(new, text) == values(model, text)
    kinds = [new.byte_ids, *(each.values() for each in (new.stop_words, new.visible_merges, new.phrases))]
    kinds += [new.decode_only, new.found_tokens.values()]
    ordered = [sorted(kind) for kind in kinds]  # type: ignore[type-var]
    assert [token for kind in ordered for token in kind] == [*range(new.n_vocab)]
    assert new.renumbered() == new


@examples(150)
@given(regular_models(), regular_models())
def test_hyp_merged_with_as_ranks_recover_it(one: Model, two: Model) -> None:
    new = one.merged_with(two)
    ranks = {value: token for token, value in one.vocab.items()}
    for value in two.vocab.values():
        ranks.setdefault(value, len(ranks))
    recovered = from_ranks(ranks, PATTERN, {})
    # Those that cannot be reached have no ids.
    ids = [token for token in recovered.merges.values() if token >= one.n_vocab]
    assert [new.vocab[token] for token in new.merges.values()] == [
        recovered.vocab[token] for token in recovered.merges.values()
    ]
    assert [*new.merges.values()][len(one.merges) :] == [*range(one.n_vocab, one.n_vocab + len(ids))]
    assert one.vocab.items() <= new.vocab.items()


@examples(150)
@given(models(), models(), TEXTS)
def test_hyp_merged_with_keeps_ids(one: Model, two: Model, text: str) -> None:
    new = one.merged_with(two)
    assert one.vocab.items() <= new.vocab.items()
    assert [new.vocab_with_hidden[token] for token in new.merges.values()][: len(one.merges)] == [
        one.vocab_with_hidden[token] for token in one.merges.values()
    ]
    assert new.found_tokens.keys() == one.found_tokens.keys() | two.found_tokens.keys()
    assert all(new.flags_of(name) == (one if name in one.found_tokens else two).flags_of(name) for name in new.flags)
    added = new.vocab.keys() - one.vocab.keys() - {*new.found_tokens.values()}
    assert {new.vocab[token] for token in added} <= {*two.token_ids}
    assert {*new.token_ids} >= {*two.stop_words}
    shown = {two.vocab[token] for token in two.visible_merges.values()} - {*one.token_ids}
    assert shown.isdisjoint(new.vocab_with_hidden[token] for token in new.hidden)
    assert one.merged_with(one) == one
    assert b"".join(values(new, text)) == b"".join(values(one, text))

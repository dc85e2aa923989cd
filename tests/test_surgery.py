"""Edited models are valid, keep what they do not change, and encode as a plain computation says."""

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
from helpers import END, TEXT, examples, reference_of, run
from hypothesis import given
from hypothesis import strategies as st

from batchbpe import ChunkCounts, Model, Tokenizer, reference
from batchbpe.analysis import changes
from batchbpe.analysis.vocab_changes import Example
from batchbpe.errors import DataError, UserError
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
    assert [token for token in model.merges.values() if token in made] == [*new.merges.values()]
    unchanged = {token for token in model.visible_merges.values() if not depends(model, token, tokens)}
    assert unchanged <= made.keys()


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


def test_every_edit_is_noted() -> None:
    edited = ABC.without([256]).truncated(257).renumbered().with_split("gpt4").merged_with(ABC.with_split("gpt4"))
    notes = edited.training["edited"]
    assert [note["operation"] for note in notes] == ["without", "truncated", "renumbered", "with_split", "merged_with"]
    assert notes[0] == {"operation": "without", "tokens": 1, "dependents": "hide"}
    assert notes[-1]["tokens"] == 2
    assert replace(ABC, training={"edited": "by hand"}).truncated(257).training["edited"] == [
        {"operation": "truncated", "n": 257}
    ]
    assert ABC.renumbered() is ABC


@pytest.mark.parametrize("tokens", [[256], [b"ab"], ["ab"], np.array([256]), (256, "ab")])
def test_tokens_have_ids_bytes_or_text(tokens: Any) -> None:
    assert ABC.without(tokens, dependents="remove") == replace(ABC, merges={(98, 99): 257})


def test_bytes_remove_every_token_that_has_them() -> None:
    model = Model(PATTERN, {(97, 98): 256}, stop_words={b"ab": 257}, special_tokens={"ab": 258})
    assert model.without([b"ab"]) == Model(PATTERN, {})
    assert model.without([257]).stop_words == {}
    shared = Model(PATTERN, {(97, 98): 256, (256, 99): 257}, added_tokens={"ab": 256})
    assert shared.without([256]) == Model(PATTERN, {(97, 98): 258, (258, 99): 257}, hidden=frozenset({258}))


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda: ABC.without([97]), "tokens must not contain a byte, such as 0x61, without which text could not be"),
        (lambda: ABC.without([300]), "token id 300 does not exist; the largest id is 258"),
        (lambda: ABC.without([b"zz"]), "token b'zz' does not exist"),
        (lambda: ABC.without("ab"), "tokens must be a list of ids, bytes or strings, got 'ab'; use .token. for a"),
        (lambda: ABC.without(b"ab"), "tokens must be a list of ids, bytes or strings, got b'ab'; use .token."),
        (lambda: ABC.without(256), "tokens must be a list of ids, bytes or strings, got 256; use .token."),
        (lambda: ABC.without([True]), "tokens must contain only ids, bytes or strings, got True"),
        (lambda: ABC.without([1.5]), "tokens must contain only ids, bytes or strings, got 1.5"),
        (
            lambda: ABC.without([], dependents="keep"),
            "dependents must be one of 'hide', 'rebuild', 'remove', got",
        ),
        (lambda: ABC.truncated(255), "n must be at least 256, since only merges and phrases can be removed, got 255"),
        (lambda: ABC.truncated(260), "n must be at most 259, the number of tokens, got 260"),
        (lambda: ABC.truncated("257"), "n must be an integer, got '257'"),
        (lambda: ABC.pruned(260, [1]), "n must be at most 259, the number of tokens, got 260"),
        (lambda: ABC.pruned(200, [1]), "n must be at least 256, since only merges can be removed, got 200"),
        (lambda: ABC.pruned(257, [-1]), "counts must be chunk counts, or how often each id occurs, as an array"),
        (lambda: ABC.pruned(257, [0.5]), "counts must be chunk counts"),
        (lambda: ABC.pruned(257, "text"), "counts must be chunk counts"),
        (lambda: ABC.pruned(257, [0] * 1000), "counts must be chunk counts"),
        (
            lambda: ABC.pruned(257, ChunkCounts.count(texts="abc")),
            "the counts were made with the pattern gpt4, but",
        ),
        (lambda: ABC.merged_with(ABC.with_split("gpt4")), "other must have the pattern of this model"),
        (lambda: ABC.merged_with("a.model"), "other must be a Model, got 'a.model'; use tokenizer.model"),
        (lambda: ABC.with_split("("), "not a valid regular expression|pattern"),
    ],
)
def test_errors(edit: Any, message: str) -> None:
    with pytest.raises((UserError, ValueError), match=message):
        edit()


def test_unknown_tokens_are_key_errors() -> None:
    with pytest.raises(UnknownTokenError):
        ABC.without(["zz"])


def test_frequencies_can_be_given() -> None:
    counts = ChunkCounts.count("abc bc bc ab", PATTERN)
    frequencies = np.bincount([token for text in ("abc", " bc", " bc", " ab") for token in encode(ABC, text)])
    assert ABC.pruned(257, frequencies) == ABC.pruned(257, frequencies.tolist()) == ABC.pruned(257, counts)


def test_hidden_tokens_pass_their_counts_on() -> None:
    """abc = h + c, where h = ab is hidden: the count of abc goes to a, b and c, and h is removed with it."""
    model = Model(PATTERN, {(97, 98): 300, (300, 99): 257, (97, 97): 258, (258, 300): 259}, hidden=frozenset({300}))
    frequencies = np.zeros(301, int)
    frequencies[[257, 258, 259]] = 1, 5, 2
    assert {*model.pruned(258, frequencies).merges.values()} == {258, 259, 300}
    assert dict(model.pruned(257, frequencies).merges) == {(97, 97): 258}


def test_a_removed_token_counts_for_its_parts() -> None:
    """abc passes its count on to ab, which is then more frequent than de."""
    model = Model(PATTERN, {(97, 98): 256, (256, 99): 257, (100, 101): 258})
    frequencies = [0] * 256 + [3, 5, 6]
    assert {*model.pruned(257, frequencies).merges.values()} == {256}


def test_parts_of_a_hidden_token_become_leaves() -> None:
    """abcd = h + d, where h = ab + c is hidden."""
    model = Model(PATTERN, {(97, 98): 256, (256, 99): 300, (300, 100): 257}, hidden=frozenset({300}))
    assert model.pruned(256, [0]) == Model(PATTERN, {})


def test_a_rebuilt_token_does_not_replace_another_with_the_same_bytes() -> None:
    """abc is both ab + c and a + bc."""
    model = Model(PATTERN, {(97, 98): 256, (256, 99): 257, (98, 99): 258, (97, 258): 259})
    assert dict(model.without([256], dependents="rebuild").merges) == {(98, 99): 258, (97, 258): 259}
    same = Model(PATTERN, {(97, 97): 256, (256, 97): 257, (97, 256): 258}, hidden=frozenset({258}))
    assert same.merged_with(same) == same


def test_a_changed_split_keeps_phrases_that_it_cuts_alike() -> None:
    model = Model(PATTERN, {(32, 97): 256, (32, 98): 257}, phrases={(256, 257): 258, (97, 98): 259})
    assert model.with_split(r" [a-z]|[a-z]").phrases == model.phrases
    assert model.with_split(r" ?[a-z]+").phrases == {(256, 257): 258}
    assert model.with_split(PATTERN) is model
    assert model.with_split("NFC > gpt4").split.normalization == "NFC"


@pytest.mark.parametrize(
    ("training", "warns"),
    [
        ({"policy": "continue_search", "max_batch_size": 0}, True),
        ({"policy": "continue_search", "max_batch_size": 1000}, True),
        ({"policy": "continue_search", "max_batch_size": 100}, False),
        ({"policy": "serial", "max_batch_size": 0}, False),
        ({"policy": "mine", "batches": {"size": [1, 1]}}, False),
        ({"policy": "mine", "batches": {"size": [1, 2]}}, True),
        ({"policy": "mine", "largest_batch": 1}, False),
        ({"policy": "mine", "largest_batch": 9}, True),
        ({}, False),
    ],
)
def test_truncating_warns_about_batches(training: dict[str, Any], warns: bool, recwarn: Any) -> None:
    model = replace(ABC, training=training)
    model.truncated(258)
    assert [str(warning.message).partition(",")[0] for warning in recwarn] == warns * [
        "the model was trained in batches"
    ]
    recwarn.clear()
    model.truncated(259)
    assert not recwarn


CARRIED = {
    "post_processor": {"type": "RobertaProcessing", "sep": ["</s>", 301], "cls": ["<s>", 300]},
    "padding": {"pad_token": "<pad>", "pad_id": 302},
    "tokenizer_config": {
        "bos_token": "<s>",
        "mask_token": {"content": "<mask>"},
        "additional_special_tokens": ["<mask>", "</s>"],
        "added_tokens_decoder": {"303": {"content": "<mask>"}, "300": {"content": "<s>"}},
    },
    "chat_template": "{{ messages }}",
}
FOUND = {"<s>": 300, "</s>": 301, "<pad>": 302, "<mask>": 303}


def test_carried_parts_get_the_new_ids() -> None:
    carried = replace(ABC, special_tokens=FOUND, carried=CARRIED).truncated(262).renumbered().carried
    assert carried["post_processor"] == {"type": "RobertaProcessing", "sep": ["</s>", 259], "cls": ["<s>", 258]}
    assert carried["padding"]["pad_id"] == 260
    assert [*carried["tokenizer_config"]["added_tokens_decoder"]] == ["258", "261"]
    assert carried["chat_template"] == CARRIED["chat_template"]


def test_carried_parts_may_name_ordinary_tokens() -> None:
    post_processor = {"type": "RobertaProcessing", "sep": ["ab", 300], "cls": ["a", 97]}
    model = Model(PATTERN, {(97, 98): 300}, carried={"post_processor": post_processor})
    assert model.renumbered().carried["post_processor"]["sep"] == ["ab", 256]
    with pytest.raises(DataError, match="names the token 'ab' with the id 300, which does not exist; keep the token"):
        model.without([300])


def test_roles_of_removed_tokens_are_removed() -> None:
    model = replace(ABC, special_tokens=FOUND, flags={"<mask>": frozenset({"lstrip"})}, carried=CARRIED)
    new = model.without(["<mask>"])
    assert new.flags == {}
    assert new.carried["tokenizer_config"] == {
        "bos_token": "<s>",
        "additional_special_tokens": ["</s>"],
        "added_tokens_decoder": {"300": {"content": "<s>"}},
    }
    assert new.carried["post_processor"] == CARRIED["post_processor"]
    for token, part in {"<s>": "post_processor", "<pad>": "padding"}.items():
        with pytest.raises(ValueError, match=f"^{part}: names the token '{token}', .*; keep the token, or remove what"):
            model.without([token])


def test_new_special_tokens_are_listed() -> None:
    model = replace(ABC, carried={"tokenizer_config": {"eos_token": "<s>"}}, special_tokens={"<s>": 300})
    new = model.merged_with(replace(ABC, special_tokens={"<s>": 259, "<t>": 260}, added_tokens={"<a>": 261}))
    assert new.special_tokens == {"<s>": 300, "<t>": 301}
    assert new.added_tokens == {"<a>": 302}
    assert new.carried["tokenizer_config"]["additional_special_tokens"] == ["<t>"]


TRAINED = Tokenizer.train(texts=[TEXT], vocab_size=600, special_tokens=[END], policy="serial").model
COUNTS = ChunkCounts.count(texts=[TEXT])
STEPS = [256, 258, 262]


@pytest.mark.parametrize(
    "edited",
    [
        TRAINED.pruned(450, COUNTS),
        TRAINED.pruned(450, COUNTS).renumbered(),
        TRAINED.truncated(450),
        TRAINED.truncated(450).renumbered(),
        TRAINED.without(STEPS, dependents="rebuild"),
        TRAINED.without(STEPS, dependents="rebuild").renumbered(),
        TRAINED.without(STEPS, dependents="remove").renumbered(),
        TRAINED.truncated(300).merged_with(TRAINED),
    ],
    ids=["pruned", "pruned, renumbered", "truncated", "truncated, renumbered", "rebuilt", "rebuilt, renumbered",
         "removed, renumbered", "merged"],
)  # fmt: skip
def test_edited_models_give_the_same_ids_in_other_tools(edited: Model) -> None:
    tokenizer = Tokenizer(edited)
    encoding = tokenizer.to_tiktoken()
    loaded = tokenizers.Tokenizer.from_str(json.dumps(to_json(edited)))
    for text in (TEXT, TEXT[::-1], f"to be{END}the question"):
        expected = tokenizer.encode(text, "all")
        assert encoding.encode(text, allowed_special="all") == expected
        assert loaded.encode(text).ids == expected
        assert tokenizer.encode_ordinary(text) == encode(edited, text)


def test_hidden_tokens_encode_as_the_reference_says() -> None:
    edited = TRAINED.without(STEPS)
    assert edited.hidden
    assert Tokenizer(edited).encode_ordinary(TEXT) == encode(edited, TEXT)


def test_changes() -> None:
    tokenizer = Tokenizer(ABC)
    found = changes(tokenizer, ABC.without(["abc"]), texts=["abc ab", "bc", "abcabc", ""])
    assert (found.unit, found.texts, found.changed) == ("document", 4, 2)
    assert (found.tokens_before, found.tokens_after) == (6, 9)
    assert found.id_map.counts == {"kept": 258, "moved": 0, "added": 0, "removed": 1}
    assert found.examples == (Example(b"abc", (b"abc",), (b"ab", b"c")),)
    counted = changes(ABC, ABC.without(["abc"]), ChunkCounts.count({"abc": 3, "bc": 4}, PATTERN))
    assert (counted.unit, counted.texts, counted.changed) == ("chunk", 7, 3)
    assert (counted.tokens_before, counted.tokens_after) == (7, 10)
    assert counted.examples == found.examples
    assert changes(ABC, ABC.without(["abc"])).texts == 0


def test_texts_of_as_many_other_tokens_are_changed() -> None:
    one, two = Model(PATTERN, {(97, 98): 256, (98, 99): 257}), Model(PATTERN, {(98, 99): 257, (97, 98): 256})
    found = changes(one, two, texts=["abc", "ab"])
    assert (found.changed, found.tokens_before, found.tokens_after) == (1, 3, 3)
    assert found.examples == (Example(b"abc", (b"ab", b"c"), (b"a", b"bc")),)


@examples(50)
@given(st.data(), regular_models(), st.lists(TEXTS, min_size=1, max_size=5))
def test_hyp_changed_texts_become_other_tokens(data: st.DataObject, model: Model, texts: list[str]) -> None:
    tokens = data.draw(st.sets(st.sampled_from([*model.merges.values()]), max_size=2)) if model.merges else set()
    new = model.without(tokens, dependents="rebuild").renumbered()
    found = changes(model, new, texts=texts)
    assert found.changed == sum(values(model, text) != values(new, text) for text in texts)
    for which, size in ((model, found.tokens_before), (new, found.tokens_after)):
        assert size == sum(len(encode(which, text)) for text in texts)
    for example in found.examples:
        assert b"".join(example.before) == b"".join(example.after) == example.text


def test_tokens_that_only_move_change_no_text() -> None:
    model = replace(ABC, special_tokens={"<s>": 500}).without(["bc"])
    found = changes(model, model.renumbered(), texts=["abc ab"])
    assert found.id_map.counts["moved"] == 2
    assert found.changed == 0
    assert changes(model, model.renumbered(), texts=["abc ab"], examples=0).examples == ()


def test_changes_errors() -> None:
    with pytest.raises(DataError, match="chunk counts of the pattern gpt4 cannot be encoded with"):
        changes(ABC, ABC, ChunkCounts.count(texts="abc"))
    with pytest.raises(DataError, match="no text found"):
        changes(ABC, ABC, texts=[])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Tokenizer(TRAINED).save("mine")
    Tokenizer(TRAINED.with_split("gpt2")).save("gpt2")
    Path("text.txt").write_text(TEXT, encoding="utf-8")
    return tmp_path


def edited(arguments: str | list[str]) -> Model:
    options = arguments.split() if isinstance(arguments, str) else arguments
    result = run(["edit", "mine.model", "-o", "new", *options])
    assert result.exit_code == 0, result.output
    return Tokenizer.from_file("new.model").model


@pytest.mark.usefixtures("folder")
def test_the_command_applies_each_operation() -> None:
    counts = ChunkCounts.count(files="text.txt", pattern=TRAINED.split)
    Tokenizer(TRAINED.truncated(300)).save("small")
    Path("remove.txt").write_text('300\n" t"\n', encoding="utf-8")
    assert edited(["--remove", " t"]) == TRAINED.without([" t"])
    assert edited(["--remove", '" t"', "--remove", "300", "--dependents", "rebuild"]) == TRAINED.without(
        [" t", 300], dependents="rebuild"
    )
    assert edited("--remove-file remove.txt --dependents remove") == TRAINED.without([300, " t"], dependents="remove")
    assert edited("--prune 400 --data text.txt") == TRAINED.pruned(400, counts)
    assert edited("--truncate 400 --renumber") == TRAINED.truncated(400).renumbered()
    assert edited("--split gpt2") == TRAINED.with_split("gpt2")
    assert edited("--merge small.model") == TRAINED
    everything = "--renumber --truncate 350 --prune 400 --data text.txt --remove 300 --merge small.model"
    assert edited(everything) == TRAINED.without([300]).pruned(400, counts).truncated(350).renumbered()


@pytest.mark.usefixtures("folder")
def test_the_command_prints_what_changes() -> None:
    result = run("edit mine.model -o new --truncate 400 --data text.txt")
    assert re.search(r"tokens +600 → 400\n", result.output)
    assert re.search(r"removed +200\n", result.output)
    assert re.search(r"documents encoded differently +1 of 1 \(100.00%\)\n", result.output)
    assert re.search(r"tokens of the data +[\d,]+ → [\d,]+ \(\+[\d.]+%\)\n", result.output)
    shown = json.loads(run("edit mine.model -o new --truncate 400 --data text.txt --json --limit 1").stdout)
    assert shown["model"] == "new.model"
    assert (shown["tokens"], shown["removed"], shown["changed"], shown["texts"]) == (400, 200, 1, 1)
    (example,) = shown["examples"]
    assert "".join(example["before"]) == "".join(example["after"])
    assert len(example["before"]) < len(example["after"])


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("options", "error"),
    [
        ("", "nothing to do; use --remove"),
        ("--prune 400", "--prune needs --data"),
        ("--truncate 400 --dependents remove", "--dependents needs --remove or --remove-file"),
        ("--truncate 40", "--truncate must be at least 257, since only merges and phrases can be removed, got 40"),
        ("--prune 40 --data text.txt", "--prune must be at least 257, since only merges can be removed, got 40"),
        ("--prune 400 --data -", "--prune reads --data twice"),
        ("--remove a", "--remove must not contain a byte"),
        ("--split (", "--split must be a supported regular expression, got '('"),
        ("--merge gpt2.model", "--merge must have the pattern of this model, gpt4, got 'gpt2'"),
        ('--remove "\\q"', "--remove: invalid JSON"),
        ("--remove 99999", "token id 99999 does not exist"),
        ("--remove-file none.txt", "cannot read none.txt: no such file"),
        ("--remove 300 --dependents keep", "must be one of 'hide', 'rebuild', 'remove', got 'keep'"),
        ("--renumber -o mine", "--output must not be the model, mine.model"),
    ],
)
def test_errors_of_the_command(options: str, error: str) -> None:
    output = [] if "-o" in options else ["-o", "new"]
    result = run(["edit", "mine.model", *output, *options.split()])
    assert result.exit_code in (1, 2)
    assert error in result.output
    assert not Path("new.model").exists()

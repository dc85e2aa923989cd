"""The union of two models."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

from ..errors import ArgumentError, ArgumentTypeError
from .surgery import Pair, mapped, noted, reached, with_carried, without_needless

if TYPE_CHECKING:
    from . import Model


def merged_with(model: Model, other: Model) -> Model:
    """Add the tokens of another model: see `Model.merged_with`."""
    if not isinstance(other, type(model)):
        raise ArgumentTypeError("other", other, "must be a Model", remedy="use tokenizer.model")
    if other.split != model.split:
        raise ArgumentError("other", str(other.split), f"must have the pattern of this model, {model.split}")
    free = count(model.next_id)
    known = _ordinary(model)
    stop_words = {word: next(free) for word in other.stop_words if word not in known}
    merges, hidden = _united(model, other, free)
    whole = replace(model, merges=merges, hidden=hidden, stop_words={**model.stop_words, **stop_words})
    known = _ordinary(whole)
    known_phrases = {model.vocab[token] for token in model.phrases.values()}
    lacking = (parts for parts, token in other.phrases.items() if other.vocab[token] not in known_phrases)
    phrases = dict.fromkeys(tuple(known.get(other.vocab[part], -1) for part in parts) for parts in lacking)
    new_phrases = {parts: next(free) for parts in phrases if min(parts) >= 0}
    new = {name: next(free) for name in other.found_tokens if name not in model.found_tokens}
    special = {name: token for name, token in new.items() if name in other.special_tokens}
    added = {name: token for name, token in new.items() if name in other.added_tokens}
    whole = replace(
        whole,
        phrases={**model.phrases, **new_phrases},
        special_tokens={**model.special_tokens, **special},
        added_tokens={**model.added_tokens, **added},
        flags={**model.flags, **{name: other.flags_of(name) for name in new}},
    )
    note = {"operation": "merged_with", "tokens": whole.vocab_size - model.vocab_size}
    return with_carried(replace(whole, training=noted(model, note)), model)


def _ordinary(model: Model) -> dict[bytes, int]:
    """Return the ids of bytes, stop words and visible merges by their bytes."""
    phrases = {*model.phrases.values()}
    return {value: token for value, token in model.token_ids.items() if token not in phrases}


def _united(model: Model, other: Model, free: Iterator[int]) -> tuple[dict[Pair, int], frozenset[int]]:
    """Return the merges of both models, and the hidden tokens, which are visible in neither."""
    vocab, known = model.vocab_with_hidden, _ordinary(model)
    theirs = dict.fromkeys(other.vocab_with_hidden[token] for token in other.merges.values())
    unknown = theirs.keys() - known.keys() - {vocab[token] for token in model.hidden}
    # Hidden tokens keep these ids, which are above those that visible tokens get.
    new = dict(zip((value for value in theirs if value in unknown), count(model.next_id + other.vocab_size)))
    ranked = [(rank, pair, token) for rank, (pair, token) in enumerate(model.merges.items())]
    merges = reached(model, ranked, [(token, token, value) for value, token in new.items()])
    shown = {other.vocab[token] for token in other.visible_merges.values()} - known.keys()
    hidden = {token for token in model.hidden if vocab[token] not in shown}
    hidden |= {token for value, token in new.items() if value not in shown}
    merges = without_needless(model, merges, hidden)
    ids = {token: token if token in model.vocab or token in hidden else next(free) for token in merges.values()}
    return mapped(merges, ids), frozenset(hidden & {*merges.values()})

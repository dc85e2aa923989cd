"""Train merges on counts: set up the training loop, and make a model of its result."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .._core import MAX_ID
from ..counts import ChunkCounts
from ..errors import ArgumentError, DataError, plural
from ..model import Model
from ..model.merges import Merges
from ..policies import GrowingVocab, PairCounts, resolve_policy, serial
from .loop import Batch, merge_in_batches, merge_serially
from .options import TrainingOptions
from .table import PairTable

logger = logging.getLogger(__name__)

MAX_LOGGED_BATCHES = 1000
"""A model carries the log of its training if there were at most this many batches; usually there are about 250."""


def train_merges(
    counts: ChunkCounts | Mapping[str, ChunkCounts],
    options: TrainingOptions,
    on_batch: Callable[[Batch], object] | None = None,
    threads: int | None = None,
) -> tuple[Model, PairCounts]:
    """Train on counts, or on groups of them. Return the model, and how often each pair occurred when it was merged.

    >>> model, merge_counts = train_merges(ChunkCounts.count(["aaabdaaabac"]), TrainingOptions(vocab_size=259))
    >>> len(model.vocab), merge_counts.tolist()
    (259, [2, 2, 2])
    """
    groups = {"": counts} if isinstance(counts, ChunkCounts) else dict(counts)
    unique = sum(each.unique for each in groups.values())
    if not unique:
        split = next(iter(groups.values())).split
        raise DataError(f"nothing to train on: the data is empty, or the pattern {split} matches none of it")
    base = options.base or _stop_words_of(groups, options.stop_list_size)
    found = {*base.found_tokens.values()}
    known = {token: value for token, value in base.vocab_with_hidden.items() if token not in found}
    wanted = options.vocab_size - base.vocab_size - len(options.new_tokens)
    _check_wanted(wanted, base.next_id, len(base.stop_words), options)
    kept = {name: each.at_least(options.freq_cutoff) for name, each in groups.items()}
    if not any(each.unique for each in kept.values()):
        most = max(int(each.arrays.counts[0]) for each in groups.values() if each.unique)
        reason = f"must be at most {most}, the count of the most frequent chunk"
        raise ArgumentError("freq_cutoff", options.freq_cutoff, reason)
    metadata = options.as_metadata() | {"chunks_total": sum(each.total for each in groups.values())}
    metadata |= {"chunks_unique": unique} | ({} if [*groups] == [""] else {"groups": [*groups]})
    table = PairTable(
        kept,
        base=base,
        overlapping=bool(options.overlapping),
        ties=options.ties,
        expected_merges=wanted,
        threads=threads,
    )
    vocab = GrowingVocab(known, base.next_id, merges_wanted=wanted)
    del counts, groups, kept  # most of the memory, unless the caller holds them

    batches: list[Batch] = []
    policy = resolve_policy(options.policy)
    policy = policy() if isinstance(policy, type) else policy
    if policy is serial:  # it searches one pair, whatever the other search options are
        merge_serially(table, vocab, on_batch)
    else:
        merge_in_batches(table, vocab, search=options, policy=policy, on_batch=both(batches.append, on_batch))
        metadata |= _log(batches) | ({"stopped": True} if vocab.is_stopped else {})
    model = replace(_extended(base, vocab, options), training=metadata)
    return options.completed(model), vocab.merge_counts


def _stop_words_of(groups: Mapping[str, ChunkCounts], stop_list_size: int) -> Model:
    """Return a model of bytes and stop words: the most frequent chunks of all groups together."""
    first, *others = groups.values()
    words = ChunkCounts.count([first, *others]).stop_words(stop_list_size) if stop_list_size else []
    if len(words) < stop_list_size:
        found = plural(len(words), "chunk")
        logger.warning("only %s can become stop words; %d were requested", found, stop_list_size)
    stop_words = {word: token for token, word in enumerate(words, start=256)}
    return Model(split=first.split, merges={}, stop_words=stop_words)


def _extended(base: Model, vocab: GrowingVocab, options: TrainingOptions) -> Model:
    """Add the new tokens to a model. Hidden tokens get the largest ids, after those of special tokens."""
    first, last = vocab.merges
    if not vocab.hidden:
        return replace(base, merges=Merges(base.ranked.extended(first, last, vocab.first_new)))
    is_hidden = np.isin(np.arange(vocab.first_new, vocab.next_id), list(vocab.hidden))
    ids = np.arange(vocab.next_id, dtype=np.uint32)
    after = vocab.first_new + int(np.count_nonzero(~is_hidden))
    ids[vocab.first_new :][~is_hidden] = np.arange(vocab.first_new, after)
    given = options.special_tokens.values() if isinstance(options.special_tokens, Mapping) else ()
    after = max([after + len(options.new_tokens), *(token + 1 for token in given)])
    ids[vocab.first_new :][is_hidden] = np.arange(after, after + len(vocab.hidden))
    pairs = zip(ids[first].tolist(), ids[last].tolist(), strict=True)
    new = ids[vocab.first_new :]
    merges = {**base.merges, **dict(zip(pairs, new.tolist(), strict=True))}
    return replace(base, merges=merges, hidden=base.hidden | {*new[is_hidden].tolist()})


def _check_wanted(wanted: int, first_merge: int, stop_words: int, options: TrainingOptions) -> None:
    """Raise unless there is room for the new tokens."""
    if wanted < 0:  # only without a base: `TrainingOptions` knows the tokens of a base
        others = plural(len(options.new_tokens), options.new_kind)
        parts = f"256 bytes + {plural(stop_words, 'stop word')} + {others}"
        reason = f"must be at least {options.vocab_size - wanted} ({parts})"
        raise ArgumentError("vocab_size", options.vocab_size, reason)
    if first_merge + wanted > MAX_ID:
        raise ArgumentError("vocab_size", options.vocab_size, f"must leave all ids below {MAX_ID}")


def _log(batches: Sequence[Batch]) -> dict[str, Any]:
    """Return what a model file records about the batches: size, pairs searched, and the count of the last pair."""
    if len(batches) > MAX_LOGGED_BATCHES:
        return {"largest_batch": max(batch.size for batch in batches)}
    names = ("size", "searched", "last_count")
    return {"batches": {name: [getattr(batch, name) for batch in batches] for name in names}}


def warn_if_smaller(model: Model, vocab_size: int) -> None:
    """Log a warning if a model has fewer tokens than requested."""
    if model.vocab_size < vocab_size:
        phrases = f" ({plural(len(model.phrases), 'phrase')})" if model.phrases else ""
        reached = f"{model.vocab_size} tokens{phrases}"
        cause = "the policy ended training" if model.training.get("stopped") else "no pairs left to merge"
        logger.warning("%s: the vocabulary has %s, not %d", cause, reached, vocab_size)


def both(
    show: Callable[[Batch], object] | None, on_batch: Callable[[Batch], object] | None
) -> Callable[[Batch], object] | None:
    """Return a function that calls both functions. Either may be None; so is the result if both are."""
    if show is None or on_batch is None:
        return show or on_batch

    def after_batch(batch: Batch) -> None:
        show(batch)
        on_batch(batch)

    return after_batch

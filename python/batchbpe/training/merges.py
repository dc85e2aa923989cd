"""Train merges on counts: set up the training loop, and make a model of its result."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .._core import MAX_ID, PairTable
from ..counts import ChunkCounts
from ..errors import ArgumentError, DataError, plural
from ..formats.byte_level import to_byte_level
from ..model import Model
from ..model.merges import Merges
from ..policies import GrowingVocab, PairCounts, resolve_policy, serial
from .loop import Batch, merge_in_batches, merge_serially
from .options import TrainingOptions

logger = logging.getLogger(__name__)

MAX_LOGGED_BATCHES = 1000
"""A model carries the log of its training if there were at most this many batches; usually there are about 250."""


def train_merges(
    counts: ChunkCounts,
    options: TrainingOptions,
    on_batch: Callable[[Batch], object] | None = None,
    threads: int | None = None,
) -> tuple[Model, PairCounts]:
    """Train on counts. Return the model, and how often each pair occurred when it was merged.

    >>> model, merge_counts = train_merges(ChunkCounts.count(["aaabdaaabac"]), TrainingOptions(vocab_size=259))
    >>> len(model.vocab), merge_counts.tolist()
    (259, [2, 2, 2])
    """
    if not counts.unique:
        raise DataError(f"nothing to train on: the data is empty, or the pattern {counts.split} matches none of it")
    base, skipped = _base_for(counts, options)
    found = {*base.found_tokens.values()}
    known = {token: value for token, value in base.vocab_with_hidden.items() if token not in found}
    vocab = GrowingVocab(known, base.next_id)
    first_merge = vocab.next_id
    wanted = options.vocab_size - base.vocab_size - len(options.new_tokens)
    _check_wanted(wanted, first_merge, len(base.stop_words), options)
    kept = counts.at_least(options.freq_cutoff).arrays
    if not len(kept.counts):
        reason = f"must be at most {counts.arrays.counts[0]}, the count of the most frequent chunk"
        raise ArgumentError("freq_cutoff", options.freq_cutoff, reason)
    encoder = base.encoder() if options.base else None
    ranks = _huggingface_ranks(vocab) if options.ties == "huggingface" else None
    table = PairTable.from_chunks(
        *kept[:3], skipped, first_merge, wanted, bool(options.overlapping), threads, encoder, ranks
    )
    metadata = options.as_metadata() | {"chunks_total": counts.total, "chunks_unique": counts.unique}
    del counts, kept  # most of the memory, unless the caller holds them

    batches: list[Batch] = []
    policy = resolve_policy(options.policy)
    if policy is serial:  # it searches one pair, whatever the other search options are
        merge_serially(table, vocab, wanted, on_batch)
    else:
        merge_in_batches(
            table,
            vocab,
            wanted,
            search=options,
            policy=policy,
            on_batch=both(batches.append, on_batch),
        )
        metadata |= _log(batches, vocab.merge_counts)
    merges = Merges(base.ranked.extended(*vocab.merges, first_merge))
    model = replace(base, merges=merges, training=metadata)
    return options.completed(model), vocab.merge_counts


def _base_for(counts: ChunkCounts, options: TrainingOptions) -> tuple[Model, list[int]]:
    """Return the model to start from, and the indices of the chunks that are stop words and need no merging."""
    if options.base is None:
        indices, words = counts.stop_words(options.stop_list_size)
        if len(words) < options.stop_list_size:
            found = plural(len(words), "chunk")
            logger.warning("only %s can become stop words; %d were requested", found, options.stop_list_size)
        stop_words = {word: token for token, word in enumerate(words, start=256)}
        return Model(split=counts.split, merges={}, stop_words=stop_words), indices
    if counts.split != options.base.split:
        raise DataError(f"the counts were made with the pattern {counts.split}, but base has {options.base.split}")
    return options.base, []


def _huggingface_ranks(vocab: Mapping[int, bytes]) -> list[int]:
    """Return the rank of each id among pairs with equal counts, up to the last single byte.

    Hugging Face's trainer compares ids as well, but its bytes have ids in the order of their byte-level characters.

    >>> _huggingface_ranks({0: b" ", 1: b"a", 2: b"b"})
    [2, 0, 1]
    """
    single = sorted(token for token, value in vocab.items() if len(value) == 1)
    ranks = list(range(single[-1] + 1))
    for rank, token in zip(single, sorted(single, key=lambda token: to_byte_level(vocab[token])), strict=True):
        ranks[token] = rank
    return ranks


def _check_wanted(wanted: int, first_merge: int, stop_words: int, options: TrainingOptions) -> None:
    """Raise unless there is room for the new tokens."""
    if wanted < 0:  # only without a base: `TrainingOptions` knows the tokens of a base
        others = plural(len(options.new_tokens), options.new_kind)
        parts = f"256 bytes + {plural(stop_words, 'stop word')} + {others}"
        reason = f"must be at least {options.vocab_size - wanted} ({parts})"
        raise ArgumentError("vocab_size", options.vocab_size, reason)
    if first_merge + wanted > MAX_ID:
        raise ArgumentError("vocab_size", options.vocab_size, f"must leave all ids below {MAX_ID}")


def _log(batches: Sequence[Batch], merge_counts: PairCounts) -> dict[str, Any]:
    """Return what a model file records about the batches: size, pairs searched, and the count of the last pair."""
    if len(batches) > MAX_LOGGED_BATCHES:
        return {}
    last = np.cumsum([batch.size for batch in batches], dtype=np.int64) - 1
    columns = {"size": [batch.size for batch in batches], "searched": [batch.searched for batch in batches]}
    return {"batches": columns | {"last_count": merge_counts[last].tolist()}}


def warn_if_smaller(model: Model, vocab_size: int) -> None:
    """Log a warning if a model has fewer tokens than requested."""
    if model.vocab_size < vocab_size:
        phrases = f" ({plural(len(model.phrases), 'phrase')})" if model.phrases else ""
        reached = f"{model.vocab_size} tokens{phrases}"
        logger.warning("no pairs left to merge: the vocabulary has %s, not %d", reached, vocab_size)


def both(
    show: Callable[[Batch], object] | None, on_batch: Callable[[Batch], object] | None
) -> Callable[[Batch], object]:
    """Return a function that calls both functions. Either may be None."""

    def after_batch(batch: Batch) -> None:
        if show:
            show(batch)
        if on_batch:
            on_batch(batch)

    return after_batch

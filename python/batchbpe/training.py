"""The paper's loop (its Listing 1): Rust counts and merges, a policy in Python chooses."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from . import policies
from ._core import PairTable
from .counts import ChunkCounts
from .errors import short
from .loaded import Loaded
from .model import MAX_ID, Model, check_special_tokens
from .policies import Candidates, Pairs, Policy, Vocab

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Batch:
    """What `on_batch` is told after each batch."""

    number: int
    """1 for the first batch."""
    size: int
    """Pairs merged in this batch."""
    searched: int
    """Pairs searched for it."""
    merges_done: int
    merges_wanted: int
    count: int
    """How often the best pair of the batch occurred."""
    seconds: float
    """Since merging began."""


@dataclass(frozen=True)
class Options:
    """How to train, checked when made: a mistake shows before anything is counted."""

    vocab_size: int
    """The total: 256 bytes, stop words, merges, and special tokens."""
    stop_list_size: int = 0
    """So many of the commonest chunks get a token of their own."""
    freq_cutoff: int = 1
    """Chunks seen fewer times are left out."""
    special_tokens: Sequence[str] | Mapping[str, int] = ()
    """Given as names they get the last ids, given as a mapping the ids it says."""
    cap_divisor: int = 2
    """One of so many of the merges that remain is searched for a batch, at most."""
    max_batch_size: int = 0
    """At most so many pairs are searched for a batch; 0 for no limit."""
    policy: Policy = policies.continue_search
    """Which of the pairs searched are merged."""
    overlapping: bool = False
    """Count a pair in a run of one token at every place, as QuickTokenizer does."""
    base: Model | None = None
    """A vocabulary to go on from: it stays as it is, but for special tokens if `special_tokens` says which."""

    def __post_init__(self) -> None:
        """Check what can be checked without the data."""
        check_special_tokens(self.special_tokens)
        needed = 256 + len(self.special_tokens)
        least = {"vocab_size": 1, "stop_list_size": 0, "freq_cutoff": 0, "cap_divisor": 1, "max_batch_size": 0}
        for name, smallest in least.items():
            _check_number(name, getattr(self, name), smallest)
        if self.vocab_size > MAX_ID:
            raise ValueError(f"vocab_size={self.vocab_size} is too large: ids go from 0 to {MAX_ID}")
        if self.vocab_size < needed and not self.base:
            raise ValueError(
                f"vocab_size={self.vocab_size} is too small: 256 bytes and {len(self.special_tokens)} special tokens "
                f"need {needed}"
            )
        if self.base is not None and not isinstance(self.base, Model):
            raise TypeError(
                f"base={short(self.base)} is no vocabulary: give a Tokenizer, which from_file loads, or a Model"
            )
        lost = [name for name in self.base.special_tokens if name not in self.special_tokens] if self.base else []
        if self.special_tokens and lost:
            raise ValueError(f"special_tokens lacks {short(lost[0])} of the base: add it, or leave special_tokens out")
        if self.base and self.stop_list_size:
            raise ValueError(f"stop_list_size={self.stop_list_size}: stop words come before merges, and base has those")
        if not callable(self.policy):
            raise TypeError(f"policy={short(self.policy)} is no function: give one of batchbpe.policies, or your own")
        if isinstance(self.special_tokens, Mapping) and not self.base:
            first = self.vocab_size - len(self.special_tokens)
            for name, token in self.special_tokens.items():
                if token < first:
                    raise ValueError(
                        f"special token {short(name)}: the id {token} is needed for another token; "
                        f"choose one from {first} on"
                    )

    @property
    def all_special_tokens(self) -> Sequence[str] | Mapping[str, int]:
        """The special tokens, or if there are none those of the base, with their ids."""
        return self.special_tokens or (self.base.special_tokens if self.base else ())

    def described(self) -> dict[str, Any]:
        """Give what a model file records of it."""
        plain = ("vocab_size", "stop_list_size", "freq_cutoff", "cap_divisor", "max_batch_size")
        numbers = {name: int(getattr(self, name)) for name in plain}
        base = {"base_vocab_size": len(self.base.vocab)} if self.base else {}
        return numbers | base | {"policy": _name(self.policy), "overlapping": bool(self.overlapping)}


def train(
    counts: ChunkCounts,
    vocab_size: int,
    *,
    on_batch: Callable[[Batch], object] | None = None,
    threads: int | None = None,
    **options: Any,
) -> Model:
    """Train a vocabulary of `vocab_size` tokens, or of as many as can be made before no pairs are left.

    `options` are those of `Options`. `on_batch` is called after each batch.

    >>> model = train(ChunkCounts.count("aaabdaaabac"), 259)
    >>> model.merges
    {(97, 97): 256, (97, 98): 257, (256, 257): 258}
    """
    return train_on(counts, Options(vocab_size, **options), on_batch=on_batch, threads=threads)


def train_on(
    counts: ChunkCounts,
    options: Options,
    *,
    on_batch: Callable[[Batch], object] | None = None,
    threads: int | None = None,
) -> Model:
    """Train with options that have been checked; see `train`."""
    if not counts.unique:
        raise ValueError(
            f"there is nothing to train on: the data holds no chunks of the pattern {short(counts.pattern)}"
        )
    base = options.base
    skip: list[int] = []
    if base is None:
        skip, words = counts.stop_words(options.stop_list_size)
        if len(words) < options.stop_list_size:
            logger.warning("only %d chunks have more than one character, not %d", len(words), options.stop_list_size)
        stop_words = {word: token for token, word in enumerate(words, start=256)}
        base = Model(pattern=counts.pattern, merges={}, stop_words=stop_words)
    elif counts.pattern != base.pattern:
        raise ValueError(
            f"the counts were made with the pattern {short(counts.pattern)}, the base has {short(base.pattern)}"
        )
    # Special tokens of the base that keep their ids come before the new tokens, others after them.
    special_tokens = options.all_special_tokens
    special_ids = set(base.special_tokens.values())
    tokens = {token: value for token, value in base.vocab.items() if token not in special_ids}
    given_ids = special_tokens.values() if isinstance(special_tokens, Mapping) else ()
    vocab = Vocab(tokens, max((*tokens, *(token for token in given_ids if token < base.n_vocab))) + 1)
    first_merge = vocab.next_id
    wanted = options.vocab_size - len(vocab) - len(special_tokens)
    if wanted < 0:
        given = "tokens of the base" if options.base else "bytes"
        raise ValueError(
            f"vocab_size={options.vocab_size} is too small: {len(vocab) - len(base.stop_words)} {given}, "
            f"{len(base.stop_words)} stop words and {len(special_tokens)} special tokens need "
            f"{options.vocab_size - wanted}"
        )
    if isinstance(special_tokens, Mapping):
        for name, token in special_tokens.items():
            if first_merge <= token < first_merge + wanted:
                raise ValueError(
                    f"special token {short(name)}: the id {token} is needed for a new token; choose another"
                )
    if first_merge + wanted > MAX_ID:
        raise ValueError(f"vocab_size={options.vocab_size} is too large: ids go from 0 to {MAX_ID}")
    kept = counts.at_least(options.freq_cutoff)
    encoder = Loaded(base).encoder if options.base else None
    table = PairTable.from_chunks(
        kept.data, kept.offsets, kept.counts, skip, first_merge, wanted, bool(options.overlapping), threads, encoder
    )
    training = options.described() | {"chunks_total": counts.total, "chunks_unique": counts.unique}
    del counts, kept  # a large part of the memory, if nobody else holds them

    merge_in_batches(
        table,
        vocab,
        wanted,
        cap_divisor=options.cap_divisor,
        max_batch_size=options.max_batch_size or options.vocab_size,
        policy=options.policy,
        on_batch=on_batch,
    )
    if len(vocab.merged) < wanted:
        reached = options.vocab_size - wanted + len(vocab.merged)
        logger.warning("no pairs are left to merge: the vocabulary has %d tokens, not %d", reached, options.vocab_size)
    if not isinstance(special_tokens, Mapping):
        special_tokens = {name: token for token, name in enumerate(special_tokens, start=vocab.next_id)}
    merges = {pair: token for token, pair in enumerate(vocab.merged, start=first_merge)}
    return replace(base, merges=dict(base.merges) | merges, special_tokens=dict(special_tokens), training=training)


def merge_in_batches(
    table: Pairs,
    vocab: Vocab,
    merges_remaining: int,
    *,
    cap_divisor: int,
    max_batch_size: int,
    policy: Policy,
    on_batch: Callable[[Batch], object] | None,
) -> None:
    """Run Listing 1 of the paper: add tokens to `vocab`, batch by batch."""
    start = time.perf_counter()
    merges_wanted = merges_remaining
    lengths = np.zeros(vocab.next_id + merges_wanted, dtype=np.int64)
    lengths[list(vocab)] = [len(token) for token in vocab.values()]
    batch_count = 0
    while merges_remaining > 0:
        num_pairs_to_search = min(merges_remaining // cap_divisor, len(vocab), max_batch_size) or 1
        top_pairs = Candidates.best(table, num_pairs_to_search, vocab, lengths)
        pairs_to_merge = _chosen(policy, top_pairs, merges_remaining)
        if not len(pairs_to_merge):
            break  # nothing left to merge
        try:
            table.merge(np.ascontiguousarray(pairs_to_merge.first), np.ascontiguousarray(pairs_to_merge.last))
        except ValueError as error:
            raise ValueError(f"the choice of policy {_name(policy)} cannot be merged: {error}") from None
        lengths[vocab.next_id : vocab.next_id + len(pairs_to_merge)] = pairs_to_merge.length
        vocab.merged += pairs_to_merge.tuples
        merges_remaining -= len(pairs_to_merge)
        batch_count += 1
        if on_batch:
            on_batch(
                Batch(
                    number=batch_count,
                    size=len(pairs_to_merge),
                    searched=len(top_pairs),
                    merges_done=len(vocab.merged),
                    merges_wanted=merges_wanted,
                    count=int(pairs_to_merge.count[0]),
                    seconds=time.perf_counter() - start,
                )
            )


def _chosen(policy: Policy, candidates: Candidates, merges_remaining: int) -> Candidates:
    """What the policy chooses, which is nothing only if there is nothing left to choose from."""
    if not len(candidates):
        return candidates
    name = _name(policy)
    batch = policy(candidates)
    if not isinstance(batch, Candidates):
        raise TypeError(f"policy {name} returned {type(batch).__name__}: return some of its candidates")
    if len(batch) > merges_remaining:
        raise ValueError(
            f"policy {name} chose {len(batch)} pairs, but only {merges_remaining} merges remain; "
            f"return at most {len(candidates)}, as many as it was given"
        )
    if not len(batch) and len(candidates.more(1)):
        raise ValueError(
            f"policy {name} chose none of {len(candidates)} pairs, so training cannot go on; "
            "veto pairs with candidates.keep, which finds others"
        )
    return batch


def _name(policy: Policy) -> str:
    return getattr(policy, "__name__", type(policy).__name__)


def _check_number(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name}={short(value)} is no whole number")
    if value < least:
        raise ValueError(f"{name}={value} is too small: give {least} or more")

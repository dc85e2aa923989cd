"""The training loop: Listing 1 of the paper. The core counts and merges, and a policy chooses."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .._core import PairTable
from ..policies import Candidates, GrowingVocab, Ids, PairCounts, PairSource, Policy, policy_name
from .options import Search


@dataclass(frozen=True)
class Batch:
    """What `on_batch` receives after each batch."""

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
    """Time since merging began."""


class _Table(PairSource, Protocol):
    """The core's `PairTable`."""

    def merge(self, first: Ids, last: Ids) -> None:
        """Merge these pairs, all at once."""


class _Searchable:
    """The part of the table that policies may use: they choose pairs, but only the loop merges them."""

    def __init__(self, table: _Table) -> None:
        self._top, self._forget = table.top, table.forget

    def top(self, n: int) -> tuple[Ids, Ids, PairCounts]:
        return self._top(n)

    def forget(self, first: Ids, last: Ids) -> None:
        self._forget(first, last)


def merge_in_batches(
    table: _Table,
    vocab: GrowingVocab,
    merges_remaining: int,
    *,
    search: Search,
    policy: Policy,
    on_batch: Callable[[Batch], object] | None,
) -> None:
    """Add `merges_remaining` tokens to `vocab`, batch by batch: Listing 1 of the paper."""
    start = time.perf_counter()
    merges_wanted = merges_remaining
    searchable = _Searchable(table)
    token_lengths = np.zeros(vocab.next_id + merges_wanted, dtype=np.int64)
    token_lengths[list(vocab)] = [len(token) for token in vocab.values()]
    batch_count = 0
    while merges_remaining > 0:
        max_batch_size = search.max_batch_size or merges_remaining
        num_pairs_to_search = min(merges_remaining // search.cap_divisor, len(vocab), max_batch_size) or 1
        top_pairs = Candidates.best(searchable, num_pairs_to_search, vocab, token_lengths)
        pairs_to_merge = _ask(policy, top_pairs, merges_remaining)
        if not len(pairs_to_merge):
            break  # no pairs are left
        try:
            table.merge(np.ascontiguousarray(pairs_to_merge.first), np.ascontiguousarray(pairs_to_merge.last))
        except ValueError as error:
            raise ValueError(f"policy {policy_name(policy)} chose pairs that cannot be merged: {error}") from None
        token_lengths[vocab.next_id : vocab.next_id + len(pairs_to_merge)] = pairs_to_merge.merged_length
        vocab.add(pairs_to_merge.first, pairs_to_merge.last, pairs_to_merge.count)
        merges_remaining -= len(pairs_to_merge)
        batch_count += 1
        if on_batch:
            on_batch(
                Batch(
                    number=batch_count,
                    size=len(pairs_to_merge),
                    searched=len(top_pairs),
                    merges_done=vocab.merges_done,
                    merges_wanted=merges_wanted,
                    count=int(pairs_to_merge.count[0]),
                    seconds=time.perf_counter() - start,
                )
            )


def merge_serially(
    table: PairTable, vocab: GrowingVocab, merges_wanted: int, on_batch: Callable[[Batch], object] | None
) -> None:
    """Do what `merge_in_batches` does with the policy `serial`, without asking it before every merge."""
    start = time.perf_counter()
    while vocab.merges_done < merges_wanted:
        done = vocab.merges_done
        first, last, counts = table.merge_serially(min(merges_wanted - done, 1000))
        if not len(first):
            break  # no pairs are left
        vocab.add(first, last, counts)
        seconds = time.perf_counter() - start
        if on_batch:
            for number, count in enumerate(counts.tolist(), start=done + 1):
                on_batch(Batch(number, 1, 1, number, merges_wanted, count, seconds))


def _ask(policy: Policy, candidates: Candidates, merges_remaining: int) -> Candidates:
    """Return what the policy chooses. It must choose something unless there is nothing to choose from."""
    if not len(candidates):
        return candidates
    name = policy_name(policy)
    batch = policy(candidates)
    if not isinstance(batch, Candidates):
        raise TypeError(f"policy {name} must return some of its candidates, got {type(batch).__name__}")
    if len(batch) > merges_remaining:
        raise ValueError(
            f"policy {name} chose {len(batch)} pairs, but only {merges_remaining} merges remain; "
            f"return at most as many as it received ({len(candidates)})"
        )
    if not len(batch) and len(candidates.more(1)):
        raise ValueError(
            f"policy {name} chose none of {len(candidates)} pairs, so training cannot continue; "
            "to veto pairs, use candidates.keep, which replaces them"
        )
    return batch

"""The training loop: Listing 1 of the paper. The core counts and merges, and a policy chooses."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, cast

from ..policies import Candidates, GrowingVocab, Ids, MergedBatch, PairCounts, PairSource, Policy, policy_name
from .options import Search
from .table import PairTable

MAX_IN_VAIN = 100
"""If this many batches in a row make no new token, training would not end."""


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
    """New tokens so far, without hidden ones."""
    merges_wanted: int
    count: int
    """How often the first pair of the batch, usually the best, occurred."""
    last_count: int
    """How often its last pair occurred."""
    seconds: float
    """Time since merging began."""


class Table(PairSource, Protocol):
    """The table that the loop merges pairs in: a `PairTable`."""

    def merge(self, pairs: Candidates) -> tuple[Ids, PairCounts]:
        """Merge these pairs, all at once. Return the token that each became, and how often."""


class _Searchable:
    """The part of the table that policies may use: they choose pairs, but only the loop merges them."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def __getattr__(self, name: str) -> Any:
        if name in PairSource.__dict__:
            return getattr(self._table, name)
        raise AttributeError(f"a policy cannot use {name!r} of the table")


def merge_in_batches(
    table: Table,
    vocab: GrowingVocab,
    *,
    search: Search,
    policy: Policy,
    on_batch: Callable[[Batch], object] | None,
) -> None:
    """Add the tokens that are wanted to `vocab`, batch by batch: Listing 1 of the paper."""
    start = time.perf_counter()
    searchable = cast(PairSource, _Searchable(table))
    batch_count = in_vain = 0
    if hasattr(policy, "start"):
        policy.start(vocab)
    while vocab.merges_remaining > 0:
        max_batch_size = search.max_batch_size or vocab.merges_remaining
        num_pairs_to_search = min(vocab.merges_remaining // search.cap_divisor, len(vocab), max_batch_size) or 1
        top_pairs = Candidates.best(searchable, num_pairs_to_search, vocab)
        pairs_to_merge = _ask(policy, top_pairs)
        if not len(pairs_to_merge):
            vocab.is_stopped = pairs_to_merge.is_last
            break  # no pairs are left
        try:
            tokens, merged = table.merge(pairs_to_merge)
        except ValueError as error:
            raise ValueError(f"policy {policy_name(policy)} chose pairs that cannot be merged: {error}") from None
        is_new = tokens >= vocab.next_id
        in_vain = 0 if is_new.any() else in_vain + 1
        if in_vain == MAX_IN_VAIN:
            raise ValueError(
                f"policy {policy_name(policy)} made no new token in {MAX_IN_VAIN} batches, because it splits the "
                "tokens that it merges; split fewer tokens"
            )
        vocab.add(pairs_to_merge.first[is_new], pairs_to_merge.last[is_new], pairs_to_merge.count[is_new])
        vocab.show(tokens[~is_new])
        if hasattr(policy, "revise"):
            first, last = pairs_to_merge.first, pairs_to_merge.last
            policy.revise(MergedBatch(first, last, merged, vocab, searchable, token=tokens))
        batch_count += 1
        if on_batch:
            on_batch(
                Batch(
                    number=batch_count,
                    size=len(pairs_to_merge),
                    searched=len(top_pairs),
                    merges_done=vocab.merges_wanted - vocab.merges_remaining,
                    merges_wanted=vocab.merges_wanted,
                    count=int(pairs_to_merge.count[0]),
                    last_count=int(pairs_to_merge.count[-1]),
                    seconds=time.perf_counter() - start,
                )
            )


def merge_serially(table: PairTable, vocab: GrowingVocab, on_batch: Callable[[Batch], object] | None) -> None:
    """Do what `merge_in_batches` does with the policy `serial`, without asking it before every merge."""
    start = time.perf_counter()
    while vocab.merges_remaining:
        done = vocab.merges_done
        first, last, counts = table.merge_serially(min(vocab.merges_remaining, 1000))
        if not len(first):
            break  # no pairs are left
        vocab.add(first, last, counts)
        seconds = time.perf_counter() - start
        if on_batch:
            for number, count in enumerate(counts.tolist(), start=done + 1):
                on_batch(Batch(number, 1, 1, number, vocab.merges_wanted, count, count, seconds))


def _ask(policy: Policy, candidates: Candidates) -> Candidates:
    """Return what the policy chooses. It must choose something unless there is nothing to choose from."""
    if not len(candidates):
        return candidates
    name = policy_name(policy)
    batch = policy(candidates)
    if not isinstance(batch, Candidates):
        raise TypeError(
            f"policy {name} must return some of its candidates, got {type(batch).__name__}; "
            "use candidates[mask] or candidates.pick(pairs)"
        )
    remaining = candidates.merges_remaining
    if len(batch) > remaining:
        raise ValueError(
            f"policy {name} chose {len(batch)} pairs, but only {remaining} merges remain; "
            f"return at most as many as it received ({len(candidates)})"
        )
    if not len(batch) and not batch.is_last and len(candidates.more(1)):
        raise ValueError(
            f"policy {name} chose none of {len(candidates)} pairs, so training cannot continue; to veto pairs, use "
            "candidates.keep, which replaces them; to end training, return candidates.stop()"
        )
    return batch

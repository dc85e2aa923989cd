"""Policies: which pairs of tokens are merged in the next batch. This is the decision that training leaves to Python.

A policy is a function that receives `Candidates` (the most frequent pairs, best first) and returns the ones to merge
now. The four policies of the paper are here; docs/policies.md shows how to write your own. Policies are pure functions
over arrays and do not depend on how pairs are counted or merged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from .arguments import check_function, check_integer
from .errors import ArgumentError, ArgumentTypeError

Ids = npt.NDArray[np.uint32]
PairCounts = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]


class PairSource(Protocol):
    """Where candidates come from: the part of the core's `PairTable` that a policy may use."""

    def top(self, n: int) -> tuple[Ids, Ids, PairCounts]:
        """Return the n most frequent pairs: first tokens, last tokens, counts."""

    def forget(self, first: Ids, last: Ids) -> None:
        """Exclude these pairs from now on."""


class GrowingVocab(Mapping[int, bytes]):
    """The bytes of each token while the vocabulary grows, built on demand because most policies never need it.

    >>> vocab = GrowingVocab({0: b"a", 1: b"b"})
    >>> vocab.add(np.array([0, 2]), np.array([1, 0]), np.array([9, 5]))
    >>> vocab[3], vocab.next_id, len(vocab)
    (b'aba', 4, 4)
    """

    def __init__(self, tokens: Mapping[int, bytes], next_id: int | None = None) -> None:
        """Start with some tokens. `next_id` is the id of the first new one, by default one more than the largest."""
        self._tokens = dict(tokens)
        self._initial = len(self._tokens)
        self._first_new = max(self._tokens) + 1 if next_id is None else next_id
        self._first: list[Ids] = []
        self._last: list[Ids] = []
        self._counts: list[PairCounts] = []
        self.merges_done = 0
        """The number of new tokens."""

    def add(self, first: Ids, last: Ids, counts: PairCounts) -> None:
        """Add the tokens that pairs become, and how often each pair occurred."""
        # Copies: a policy may return a slice, which would keep the arrays of all candidates in memory.
        self._first.append(first.copy())
        self._last.append(last.copy())
        self._counts.append(counts.copy())
        self.merges_done += len(first)

    @property
    def merges(self) -> tuple[Ids, Ids]:
        """The first and last tokens of the pairs that became the new tokens, in order."""
        none = np.zeros(0, np.uint32)
        return np.concatenate([none, *self._first]), np.concatenate([none, *self._last])

    @property
    def merge_counts(self) -> PairCounts:
        """How often each of these pairs occurred when it was merged."""
        return np.concatenate([np.zeros(0, np.uint64), *self._counts])

    @property
    def next_id(self) -> int:
        """The id of the next token."""
        return self._first_new + self.merges_done

    def __getitem__(self, token: int) -> bytes:
        """Return the bytes of a token."""
        built = len(self._tokens) - self._initial
        if built < self.merges_done and token not in self._tokens:
            pairs = (each[built:].tolist() for each in self.merges)
            for new, (first, last) in enumerate(zip(*pairs, strict=True), start=self._first_new + built):
                self._tokens[new] = self._tokens[first] + self._tokens[last]
        return self._tokens[token]

    def __len__(self) -> int:
        """Return the number of tokens."""
        return self._initial + self.merges_done

    def __iter__(self) -> Iterator[int]:
        """Iterate over the ids."""
        return chain(islice(self._tokens, self._initial), range(self._first_new, self.next_id))


@dataclass(frozen=True)
class Candidates:
    """Pairs of tokens that could be merged, as parallel arrays, best first.

    `candidates[mask]`, `candidates[indices]` and `candidates[:n]` are candidates again. This is also how a policy
    chooses: it returns some of the candidates, in the order in which they receive their ids.
    """

    first: Ids
    last: Ids
    count: PairCounts
    vocab: Mapping[int, bytes]
    """The bytes of each token, by id."""
    token_lengths: npt.NDArray[np.int64]
    """The number of bytes of each token, by id."""
    source: PairSource

    @classmethod
    def best(
        cls, source: PairSource, n: int, vocab: Mapping[int, bytes], token_lengths: npt.NDArray[np.int64]
    ) -> Candidates:
        """Return the n most frequent pairs."""
        return cls(*source.top(n), vocab=vocab, token_lengths=token_lengths, source=source)

    def __len__(self) -> int:
        """Return the number of candidates."""
        return len(self.first)

    def __getitem__(self, which: Any) -> Candidates:
        """Return some of the candidates: by slice, mask, array of indices, or one index."""
        which = [which] if isinstance(which, int | np.integer) else which
        return replace(self, first=self.first[which], last=self.last[which], count=self.count[which])

    @property
    def merged_length(self) -> npt.NDArray[np.int64]:
        """The number of bytes that each pair would have as one token."""
        return self.token_lengths[self.first] + self.token_lengths[self.last]

    @property
    def merged_bytes(self) -> list[bytes]:
        """The bytes that each pair would have as one token."""
        return [self.vocab[first] + self.vocab[last] for first, last in self.tuples]

    @property
    def tuples(self) -> list[tuple[int, int]]:
        """The pairs as tuples of Python integers."""
        return list(zip(self.first.tolist(), self.last.tolist(), strict=True))

    def more(self, n: int) -> Candidates:
        """Return the n most frequent pairs instead of these."""
        check_integer("n", n, least=0)
        return self.best(self.source, n, self.vocab, self.token_lengths)

    def keep(self, wanted: Callable[[Candidates], Mask]) -> Candidates:
        """Veto the pairs for which `wanted` is false and replace them with the next most frequent pairs.

        A veto lasts for the rest of training, so the result of `wanted` must depend only on the two tokens. It receives
        several pairs at once, and the same pair in several batches. The result is empty if no other pairs are left.
        """
        check_function("wanted", wanted)
        n = len(self)
        kept = self
        while len(kept):
            answer = wanted(kept)
            mask = np.asarray(answer, dtype=bool)
            if mask.shape != (len(kept),):
                raise ArgumentError("wanted", answer, f"must return one boolean for each pair ({len(kept)})")
            if mask.all():
                break
            self.source.forget(kept.first[~mask], kept.last[~mask])
            kept = self.more(n)
        return kept


Policy = Callable[[Candidates], Candidates]


def _earliest(tokens: npt.NDArray[Any], size: int) -> npt.NDArray[np.int32]:
    """Return the first index of each token, or `len(tokens)` for a token that does not occur.

    >>> _earliest(np.array([2, 0, 2], dtype=np.uint32), 4).tolist()
    [1, 3, 0, 3]
    """
    earliest = np.full(size, len(tokens), dtype=np.int32)
    rank = np.arange(len(tokens), dtype=np.int32)
    earliest[tokens[::-1]] = rank[::-1]  # of equal indices, the last assignment wins
    return earliest


def _safe(candidates: Candidates) -> Mask:
    """Return which pairs cannot overlap a better one.

    Two pairs can overlap if the last token of one is the first token of the other. Listing 1 loops over the candidates
    and collects the tokens of better pairs in two sets; comparing ranks gives the same result without a loop.
    """
    first, last = candidates.first.astype(np.intp), candidates.last.astype(np.intp)  # numpy's type for indices
    size = int(max(first.max(initial=0), last.max(initial=0))) + 1
    rank = np.arange(len(candidates))
    safe: Mask = (_earliest(last, size)[first] >= rank) & (_earliest(first, size)[last] >= rank)
    return safe


def _until_first_false(mask: Mask) -> slice:
    return slice(len(mask) if mask.all() else int(mask.argmin()))


def serial(candidates: Candidates) -> Candidates:
    """Merge the best pair alone: standard BPE."""
    return candidates[:1]


def naive(candidates: Candidates) -> Candidates:
    """Merge pairs until one shares a token with a better pair (the paper's first stage)."""
    tokens = np.stack([candidates.first, candidates.last], axis=1).ravel()
    rank = np.arange(len(candidates))
    earliest = _earliest(tokens, len(candidates.token_lengths)) // 2
    unused = (earliest[candidates.first] >= rank) & (earliest[candidates.last] >= rank)
    return candidates[_until_first_false(unused)]


def positional(candidates: Candidates) -> Candidates:
    """Merge pairs until one could overlap a better pair (the paper's second stage)."""
    return candidates[_until_first_false(_safe(candidates))]


def continue_search(candidates: Candidates) -> Candidates:
    """Merge every pair that cannot overlap a better pair, merged or not (the paper's third stage, the default)."""
    return candidates[_safe(candidates)]


PAPER_POLICIES: Mapping[str, Policy] = {
    policy.__name__: policy for policy in (serial, naive, positional, continue_search)
}
"""The policies of the paper by name."""


def resolve_policy(policy: Policy | str) -> Policy:
    """Return the policy with that name; a function is returned as it is.

    >>> resolve_policy("serial") is serial
    True
    """
    if isinstance(policy, str) and policy in PAPER_POLICIES:
        return PAPER_POLICIES[policy]
    names = f"one of {', '.join(map(repr, PAPER_POLICIES))}"
    if isinstance(policy, str):
        raise ArgumentError("policy", policy, f"must be {names}")
    if not callable(policy):
        raise ArgumentTypeError("policy", policy, f"must be a function or {names}")
    return policy


def policy_name(policy: Policy | str) -> str:
    """Return the name of a policy for messages and model files.

    >>> policy_name(serial), policy_name("naive")
    ('serial', 'naive')
    """
    return policy if isinstance(policy, str) else getattr(policy, "__name__", type(policy).__name__)

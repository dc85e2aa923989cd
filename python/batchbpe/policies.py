"""Which pairs make a batch: the decision that training leaves to Python.

A policy is a function from the `Candidates` (the commonest pairs of tokens, best first) to those of them that are to
be merged now. The four of the paper are here; any function of that form will do, see docs/policies.md. Pure functions
over arrays: nothing here knows how pairs are counted or merged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.uint32]
Counts = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]


class Pairs(Protocol):
    """Where candidates come from: the core's `PairTable`."""

    def top(self, n: int) -> tuple[Ids, Ids, Counts]:
        """Give the n commonest pairs: first tokens, last tokens, counts."""

    def merge(self, first: Ids, last: Ids) -> None:
        """Merge these pairs, all at once."""

    def forget(self, first: Ids, last: Ids) -> None:
        """Leave these pairs out from now on."""


class Vocab(Mapping[int, bytes]):
    """The bytes of each token, made when one asks for them: most policies never do.

    >>> vocab = Vocab({0: b"a", 1: b"b"})
    >>> vocab.merged += [(0, 1), (2, 0)]
    >>> vocab[3], vocab.next_id, len(vocab)
    (b'aba', 4, 4)
    """

    def __init__(self, tokens: Mapping[int, bytes], next_id: int | None = None) -> None:
        """Start with tokens, and the id of the next one, by default the one after theirs."""
        self._tokens = dict(tokens)
        self._given = len(self._tokens)
        self._next_id = max(self._tokens) + 1 if next_id is None else next_id
        self.merged: list[tuple[int, int]] = []
        """The pairs that made the tokens after the given ones."""

    @property
    def next_id(self) -> int:
        """The id of the next token."""
        return self._next_id + len(self.merged)

    def __getitem__(self, token: int) -> bytes:
        """Give the bytes of a token."""
        made = len(self._tokens) - self._given
        for new, (first, last) in enumerate(self.merged[made:], start=self._next_id + made):
            self._tokens[new] = self._tokens[first] + self._tokens[last]
        return self._tokens[token]

    def __len__(self) -> int:
        """Give the number of tokens."""
        return self._given + len(self.merged)

    def __iter__(self) -> Iterator[int]:
        """Go through the ids."""
        return chain(islice(self._tokens, self._given), range(self._next_id, self.next_id))


@dataclass(frozen=True)
class Candidates:
    """Pairs of tokens that could be merged, in parallel arrays, the best first.

    `candidates[mask]`, `candidates[indices]` and `candidates[:n]` are candidates again. That is also how a policy
    says what to merge: it returns some of them, in the order in which they are to get their ids.
    """

    first: Ids
    last: Ids
    count: Counts
    vocab: Mapping[int, bytes]
    """The bytes of each token."""
    lengths: npt.NDArray[np.int64]
    """The number of bytes of each token, by id."""
    pairs: Pairs

    @classmethod
    def best(cls, pairs: Pairs, n: int, vocab: Mapping[int, bytes], lengths: npt.NDArray[np.int64]) -> Candidates:
        """Give the n commonest pairs as candidates."""
        return cls(*pairs.top(n), vocab=vocab, lengths=lengths, pairs=pairs)

    def __len__(self) -> int:
        """Give the number of candidates."""
        return len(self.first)

    def __getitem__(self, which: Any) -> Candidates:
        """Give some of the candidates: by a slice, a mask, an array of places, or one place."""
        which = [which] if isinstance(which, int | np.integer) else which
        return replace(self, first=self.first[which], last=self.last[which], count=self.count[which])

    @property
    def length(self) -> npt.NDArray[np.int64]:
        """How many bytes each pair would have as one token."""
        return self.lengths[self.first] + self.lengths[self.last]

    @property
    def tuples(self) -> list[tuple[int, int]]:
        """The pairs as tuples of Python integers."""
        return list(zip(self.first.tolist(), self.last.tolist(), strict=True))

    @property
    def merged(self) -> list[bytes]:
        """The bytes that each pair would have as one token."""
        return [self.vocab[first] + self.vocab[last] for first, last in self.tuples]

    def more(self, n: int) -> Candidates:
        """Give the n commonest pairs instead of these."""
        return self.best(self.pairs, n, self.vocab, self.lengths)

    def keep(self, wanted: Callable[[Candidates], Mask]) -> Candidates:
        """Veto the pairs that are not wanted, for good, and give as many candidates as before.

        What is wanted must depend on the two tokens alone, since nobody is asked twice.
        """
        n = len(self)
        kept = self
        while len(kept):
            mask = np.asarray(wanted(kept), dtype=bool)
            if mask.shape != (len(kept),):
                raise ValueError(f"`wanted` gave {mask.shape} truth values for {len(kept)} pairs: give one for each")
            if mask.all():
                break
            self.pairs.forget(kept.first[~mask], kept.last[~mask])
            kept = self.more(n)
        return kept


Policy = Callable[[Candidates], Candidates]


def _earliest(tokens: npt.NDArray[Any], size: int) -> npt.NDArray[np.int32]:
    """For each token the first place where it stands, or a place behind the last.

    >>> _earliest(np.array([2, 0, 2], dtype=np.uint32), 4).tolist()
    [1, 3, 0, 3]
    """
    places = np.full(size, len(tokens), dtype=np.int32)
    rank = np.arange(len(tokens), dtype=np.int32)
    places[tokens[::-1]] = rank[::-1]  # of equal indices the last one assigned stays
    return places


def _safe(candidates: Candidates) -> Mask:
    """Which pairs share no token with any better one, in the position where the two would overlap."""
    first, last = candidates.first.astype(np.intp), candidates.last.astype(np.intp)  # as numpy wants indices
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
    """Merge pairs until one has a token in common with a better one (the paper's first stage)."""
    tokens = np.stack([candidates.first, candidates.last], axis=1).ravel()
    rank = np.arange(len(candidates))
    earliest = _earliest(tokens, len(candidates.lengths)) // 2
    unused = (earliest[candidates.first] >= rank) & (earliest[candidates.last] >= rank)
    return candidates[_until_first_false(unused)]


def positional(candidates: Candidates) -> Candidates:
    """Merge pairs until one could overlap a better one (the paper's second stage)."""
    return candidates[_until_first_false(_safe(candidates))]


def continue_search(candidates: Candidates) -> Candidates:
    """Merge every pair that cannot overlap a better one, merged or not (the paper's third stage, the default)."""
    return candidates[_safe(candidates)]

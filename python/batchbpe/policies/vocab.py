"""`GrowingVocab`: the vocabulary while it is trained."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, islice
from typing import Any

import numpy as np
import numpy.typing as npt

from .._core import MAX_ID
from ..errors import ArgumentError, ArgumentTypeError

Ids = npt.NDArray[np.uint32]
PairCounts = npt.NDArray[np.int64]


def as_ids(parameter: str, tokens: Any) -> Ids:
    """Return ids as an array. Raise if they are not ids.

    >>> as_ids("tokens", [256.5])
    Traceback (most recent call last):
    ...
    batchbpe.errors.ArgumentTypeError: tokens must be ids, which are integers, got [256.5]
    """
    array = np.asarray(tokens)
    array = array.astype(np.uint32) if not array.size else array
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ArgumentTypeError(parameter, tokens, "must be ids, which are integers")
    if len(array) and not 0 <= int(array.min()) <= int(array.max()) <= MAX_ID:
        raise ArgumentError(parameter, tokens, f"must be ids from 0 to {MAX_ID}")
    return np.ascontiguousarray(array, np.uint32)


class GrowingVocab(Mapping[int, bytes]):
    """The bytes of each token while the vocabulary grows, built on demand because most policies never need it.

    >>> vocab = GrowingVocab({0: b"a", 1: b"b"}, merges_wanted=2)
    >>> vocab.add(np.array([0, 2]), np.array([1, 0]), np.array([9, 5]))
    >>> vocab[3], vocab.next_id, len(vocab), vocab.merges_remaining
    (b'aba', 4, 4, 0)
    >>> vocab.hide([2])
    >>> vocab.merges_remaining
    1
    """

    def __init__(self, tokens: Mapping[int, bytes], next_id: int | None = None, *, merges_wanted: int = 0) -> None:
        """Start with some tokens. `next_id` is the id of the first new one, by default one more than the largest."""
        self._tokens = dict(tokens)
        self._initial = len(self._tokens)
        self.first_new = max(self._tokens) + 1 if next_id is None else next_id
        """The id of the first new token."""
        self.merges_wanted = merges_wanted
        """The number of new tokens that are wanted, without hidden ones."""
        self.hidden: dict[int, None] = {}
        """New tokens that are only steps to others, in the order in which they were hidden. They do not count."""
        self._first: list[Ids] = []
        self._last: list[Ids] = []
        self._counts: list[PairCounts] = []
        self._lengths = np.zeros(self.first_new + merges_wanted, np.int64)
        self._lengths[list(self._tokens)] = [len(token) for token in self._tokens.values()]
        self.merges_done = 0
        """The number of new tokens, with hidden ones."""
        self.is_stopped = False
        """Whether the policy has ended training."""

    def add(self, first: Ids, last: Ids, counts: PairCounts) -> None:
        """Add the tokens that pairs become, and how often each pair occurred."""
        lengths = self._lengths[first] + self._lengths[last]
        end = self.next_id + len(first)
        if end > len(self._lengths):
            self._lengths = np.concatenate([self._lengths, np.zeros(end, np.int64)])
        self._lengths[self.next_id : end] = lengths
        # Copies: a policy may return a slice, which would keep the arrays of all candidates in memory.
        self._first.append(first.copy())
        self._last.append(last.copy())
        self._counts.append(counts.copy())
        self.merges_done += len(first)

    def hide(self, tokens: Ids | list[int]) -> None:
        """Make new tokens steps to others: they get no id, and do not count."""
        for token in as_ids("tokens", tokens).tolist():
            if not self.first_new <= token < self.next_id:
                reason = f"must be tokens that this training made, with ids from {self.first_new} to {self.next_id - 1}"
                raise ArgumentError("tokens", token, reason, remedy="leave out ids below vocab.first_new")
            self.hidden[token] = None

    def show(self, tokens: Ids | list[int]) -> None:
        """Undo `hide`, for as many tokens as are still wanted. Tokens that are not hidden are ignored."""
        for token in as_ids("tokens", tokens).tolist():
            if self.merges_remaining > 0:
                self.hidden.pop(token, None)

    @property
    def merges_remaining(self) -> int:
        """The number of new tokens that are still to be made or shown."""
        return self.merges_wanted - self.merges_done + len(self.hidden)

    @property
    def merges(self) -> tuple[Ids, Ids]:
        """The first and last tokens of the pairs that became the new tokens, in order."""
        none = np.zeros(0, np.uint32)
        return np.concatenate([none, *self._first]), np.concatenate([none, *self._last])

    @property
    def merge_counts(self) -> PairCounts:
        """How often each of these pairs occurred when it was merged."""
        return np.concatenate([np.zeros(0, np.int64), *self._counts])

    @property
    def next_id(self) -> int:
        """The id of the next token."""
        return self.first_new + self.merges_done

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """The number of bytes of each token, by id."""
        return self._lengths

    def __getitem__(self, token: int) -> bytes:
        """Return the bytes of a token."""
        built = len(self._tokens) - self._initial
        if built < self.merges_done and token not in self._tokens:
            pairs = (each[built:].tolist() for each in self.merges)
            for new, (first, last) in enumerate(zip(*pairs, strict=True), start=self.first_new + built):
                self._tokens[new] = self._tokens[first] + self._tokens[last]
        return self._tokens[token]

    def __repr__(self) -> str:
        """Show the numbers of tokens."""
        return f"GrowingVocab(tokens={len(self)}, merges_remaining={self.merges_remaining})"

    def __len__(self) -> int:
        """Return the number of tokens."""
        return self._initial + self.merges_done

    def __iter__(self) -> Iterator[int]:
        """Iterate over the ids."""
        return chain(islice(self._tokens, self._initial), range(self.first_new, self.next_id))

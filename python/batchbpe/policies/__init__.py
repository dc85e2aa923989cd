"""Policies: which pairs of tokens are merged in the next batch. This is the decision that training leaves to Python.

A policy is a function that receives `Candidates` (the most frequent pairs, best first) and returns the ones to merge
now. The four policies of the paper are here, and one that is exact. They are pure functions over arrays and do not
depend on how pairs are counted or merged.

https://batchbpe.github.io/batchbpe/policies.html shows how to write your own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ArgumentError, ArgumentTypeError
from .candidates import Candidates, Mask, MergedBatch, PairSource
from .vocab import GrowingVocab, Ids, PairCounts

__all__ = [
    "PAPER_POLICIES",
    "POLICIES",
    "Candidates",
    "GrowingVocab",
    "Ids",
    "Mask",
    "MergedBatch",
    "PairCounts",
    "PairSource",
    "Policy",
    "continue_search",
    "exact",
    "naive",
    "policy_name",
    "positional",
    "resolve_policy",
    "serial",
]

Policy = Callable[[Candidates], Candidates]
"""A policy may also have the methods `start(vocab)` and `revise(batch)`.

See https://batchbpe.github.io/batchbpe/policies.html.
"""


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
    earliest = _earliest(tokens, int(tokens.max(initial=0)) + 1) // 2
    unused = (earliest[candidates.first] >= rank) & (earliest[candidates.last] >= rank)
    return candidates[_until_first_false(unused)]


def positional(candidates: Candidates) -> Candidates:
    """Merge pairs until one could overlap a better pair (the paper's second stage)."""
    return candidates[_until_first_false(_safe(candidates))]


def exact(candidates: Candidates) -> Candidates:
    """Merge pairs until one could overlap a better pair, or repeats a token: the vocabulary of `serial`, in batches.

    A new token t = (a, b) can only form a better pair (t, c) than the pairs after it if (b, c) is better than them. But
    (b, c) could overlap (a, b), so the batch ends before it. Only a pair (a, a) can form pairs with itself.
    """
    batch = positional(candidates)
    repeats = batch.first == batch.last
    return batch[: int(repeats.argmax()) + 1] if repeats.any() else batch


def continue_search(candidates: Candidates) -> Candidates:
    """Merge every pair that cannot overlap a better pair, merged or not (the paper's third stage, the default)."""
    return candidates[_safe(candidates)]


PAPER_POLICIES: Mapping[str, Policy] = {
    policy.__name__: policy for policy in (serial, naive, positional, continue_search)
}
"""The policies of the paper by name."""
POLICIES: Mapping[str, Policy] = {**PAPER_POLICIES, "exact": exact}
"""All policies by name."""


def resolve_policy(policy: Policy | str) -> Policy:
    """Return the policy with that name; a function is returned as it is.

    >>> resolve_policy("serial") is serial
    True
    """
    if isinstance(policy, str) and policy in POLICIES:
        return POLICIES[policy]
    names = f"one of {', '.join(map(repr, POLICIES))}"
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

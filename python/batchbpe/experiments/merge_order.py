"""What the order of merges says about the weights of groups: which merges have rivals that occur more often.

The merges are applied to text of every group, batch by batch. If the groups have the weights that they had in training,
the pairs of a batch are sorted by their number of occurrences before it, and no other pair occurs more often unless it
could overlap a better one. A vocabulary trained one pair at a time is the simple case: each batch has one pair.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import numpy.typing as npt

from ..analysis.merge_runs import run_end
from ..counts import ChunkCounts
from ..policies import Ids
from .order_program import OrderProgram, Pair, Rates
from .weighted_table import MergeList, WeightedTable

FIRST_SEARCH = 64
"""Number of pairs to search for rivals at first; twice as many each time while there may be more."""
MAX_SEARCH = 1 << 13
"""Number of pairs at which the search ends. Up to this vocabulary size, the paper's policies do not search more."""
MAX_COMPARED = 2_000
"""Number of merges up to which each is compared with others. Of more merges, half of these are the first."""
MAX_RIVALS = 10
"""Largest number of rivals of a merge that are added to the program at once, as in the publication."""
TOLERANCE = 1e-6
"""Violations of a row below this are ignored, absolute and relative to the rate of the merge."""
GAP = 1e-3
"""Rows are added until the sum of slacks is at most this fraction above its minimum."""
WINDOW, JUMP = 5, 0.3
"""A batch ends where rates rise: the median of WINDOW logarithms by at least JUMP."""
FIRST_MERGES = 500
"""Number of merges that determine the weights to start with, if there are many merges."""
MAX_PASSES = 100
"""Maximum number of times that the merges are applied for one cut into batches."""
MAX_ROUNDS = 5
"""Maximum number of cuts into batches that are tried."""

Compared = npt.NDArray[np.bool_]
Cut = list[int]
"""Where each batch starts."""
OnPass = Callable[[int, float], object]
"""Receives the number of the pass over the merges, and the fraction of it that is done."""


@dataclass(frozen=True)
class Inference:
    """The weights that explain the order of merges best."""

    weights: Rates
    merge_slacks: Mapping[int, float]
    """How much more often each merge, by position, would have to occur per million bytes."""
    rival_slacks: Mapping[Pair, float]
    """How much less often other pairs would have to occur per million bytes."""
    compared: Compared
    """Which merges were compared with others."""
    group_rates: Rates
    """The rate of each merge in each group, before its batch."""
    cut: Cut
    """Where each batch starts."""
    rows: int
    passes: int
    is_complete: bool
    """Whether the sum of slacks is at most `GAP` above its minimum for this cut."""
    is_stable: bool = True
    """Whether the weights lead to the same cut again."""

    @property
    def rates(self) -> Rates:
        """The rate of each merge in the mixture, before its batch."""
        return np.asarray(self.group_rates @ self.weights)


def compared_merges(merges: int) -> Compared:
    """Return which merges to compare with others: all, or of many merges the first and some of the rest.

    >>> np.flatnonzero(compared_merges(8192))[[0, 999, 1000, 1001, -1]].tolist()
    [0, 999, 1007, 1014, 8191]
    """
    compared = np.ones(merges, bool)
    if merges > MAX_COMPARED:
        first = MAX_COMPARED // 2
        compared[first:] = False
        compared[np.linspace(first, merges - 1, MAX_COMPARED - first + 1).astype(int)[1:]] = True
    return compared


def infer(
    counts: Mapping[str, ChunkCounts], pairs: MergeList, cut: Cut, weights: Rates, *, on_pass: OnPass = lambda *_: None
) -> Inference:
    """Find the weights for a given cut into batches, starting from some weights.

    Each solution is a lower bound of the minimum. Raising the slack of each merge by its largest violation is an upper
    bound.
    """
    program = OrderProgram(len(counts))
    compared = compared_merges(len(pairs.merges))
    known: set[tuple[int, Pair]] = set()
    found: Rates = weights
    for passes in range(1, MAX_PASSES + 1):
        table = WeightedTable(counts, pairs, found)
        differences: list[Rates] = []
        keys: list[tuple[int, Pair]] = []
        missing: dict[int, float] = {}  # the largest violation of each merge
        group_rates: list[Rates] = []
        merge_slacks, rival_slacks = program.merge_slacks, program.rival_slacks
        for start, end in zip(cut, [*cut[1:], len(pairs.merges)], strict=True):
            on_pass(passes, start / len(pairs.merges))
            batch = pairs.merges[start:end]
            rates = table.rates(batch)
            group_rates.append(rates)
            slacks = np.array([merge_slacks.get(merge, 0.0) for merge in range(start, end)])
            is_used = compared[start:end] & rates.any(axis=1)  # the text says nothing about merges that do not occur
            for merge, rival, rival_rates in _rivals(table, batch, rates, slacks, is_used, rival_slacks, start, known):
                differences.append(rates[merge] - rival_rates)
                keys.append((start + merge, rival))
                slack = slacks[merge] + rival_slacks.get(rival, 0.0)
                violation = -float(table.mixed(differences[-1])) - slack
                missing[start + merge] = max(violation, missing.get(start + merge, 0.0))
            table.merge(batch)
        total = sum(merge_slacks.values()) + sum(rival_slacks.values())
        is_complete = not keys or sum(missing.values()) <= GAP * total
        if is_complete or passes == MAX_PASSES:
            break
        known.update(keys)
        program.add(np.array(differences), [merge for merge, _ in keys], [rival for _, rival in keys])
        program.solve()
        found = program.weights
    rates = np.concatenate(group_rates)
    return Inference(found, merge_slacks, rival_slacks, compared, rates, cut, program.rows, passes, is_complete)


def _rivals(
    table: WeightedTable,
    batch: Sequence[Pair],
    rates: Rates,
    slacks: Rates,
    is_used: Compared,
    rival_slacks: Mapping[Pair, float],
    start: int,
    known: set[tuple[int, Pair]],
) -> list[tuple[int, Pair, Rates]]:
    """Return new rivals of some merges of a batch that occur more often: the merge, the pair, and its rates.

    The search ends when each merge has enough of them, since a merge that hardly occurs has countless rivals.
    """
    found: list[tuple[int, Pair, Rates]] = []
    used = np.flatnonzero(is_used).tolist()
    if not used:
        return found
    needed = table.mixed(rates) + slacks
    needed += TOLERANCE * (1 + needed)
    n = FIRST_SEARCH
    while True:
        first, last, rival_rates = table.above(float(needed[used].min()), n)
        rivals: list[Pair] = list(zip(first.tolist(), last.tolist(), strict=True))
        until = _rival_until(batch, rivals, first, last)
        excess = table.mixed(rival_rates) - np.array([rival_slacks.get(rival, 0.0) for rival in rivals])
        best_first = np.argsort(-excess, kind="stable")
        found.clear()
        for merge in used:
            at = best_first[(excess[best_first] > needed[merge]) & (until[best_first] >= merge)]
            new = (index for index in at.tolist() if (start + merge, rivals[index]) not in known)
            found += [(merge, rivals[index], rival_rates[index]) for index in islice(new, MAX_RIVALS)]
        if len(rivals) < n or len(found) == MAX_RIVALS * len(used) or n >= MAX_SEARCH:
            return found
        n *= 2


def _rival_until(batch: Sequence[Pair], rivals: Sequence[Pair], first: Ids, last: Ids) -> npt.NDArray[np.intp]:
    """Return for each pair, best first, the last merge of the batch that must occur at least as often.

    This is the merge before the pair itself if it is in the batch; otherwise the first merge that it could overlap, or
    the last one of the batch. If the pair could overlap a better pair that is not in the batch, it is only a rival of
    the first merge, which is the best of all.
    """
    merged = np.array(batch)
    size = int(max(merged.max(), first.max(initial=0), last.max(initial=0))) + 1
    overlapped = np.minimum(
        _earliest(merged[:, 1], size, len(batch) - 1)[first], _earliest(merged[:, 0], size, len(batch) - 1)[last]
    )
    rank = np.arange(len(rivals))
    is_safe = (_earliest(last, size, len(rivals))[first] >= rank) & (_earliest(first, size, len(rivals))[last] >= rank)
    position = {pair: index for index, pair in enumerate(batch)}
    member = np.array([position.get(rival, -1) for rival in rivals], np.intp)
    return np.where(member >= 0, member - 1, np.where(is_safe, overlapped, 0))


def _earliest(tokens: npt.NDArray[np.integer], size: int, default: int) -> npt.NDArray[np.intp]:
    """Return the first index of each token below `size`."""
    earliest = np.full(size, default, np.intp)
    earliest[tokens[::-1]] = np.arange(len(tokens))[::-1]  # of equal indices, the last assignment wins
    return earliest


def find_batches(
    counts: Mapping[str, ChunkCounts], pairs: MergeList, weights: Rates, *, on_pass: OnPass = lambda *_: None
) -> Cut:
    """Cut merges into the batches in which they were probably made, given the weights of the groups.

    A batch ends at the latest where a merge uses one of its tokens or could overlap another, and before that where the
    rates of the pairs rise instead of falling.
    """
    table = WeightedTable(counts, pairs, weights)
    cut: Cut = []
    start = 0
    while start < len(pairs.merges):
        on_pass(0, start / len(pairs.merges))
        end = run_end(pairs.merges, start, pairs.first_id)
        rates = table.mixed(table.rates(pairs.merges[start:end]))
        end = start + _first_rise(np.log(np.maximum(rates, TOLERANCE)))
        cut.append(start)
        table.merge(pairs.merges[start:end])
        start = end
    return cut


def _first_rise(logs: Rates) -> int:
    """Return the first position where a descending sequence starts again from a higher value, or its length.

    >>> _first_rise(np.array([9, 8, 7, 7.1, 6, 9, 8, 8.0])), _first_rise(np.array([9.0, 8]))
    (5, 2)
    """
    for position in range(1, len(logs)):
        least = np.median(logs[max(0, position - WINDOW) : position]) + JUMP
        if logs[position] > least and np.median(logs[position : position + WINDOW]) > least:
            return position
    return len(logs)


def infer_mixture(
    counts: Mapping[str, ChunkCounts], pairs: MergeList, *, in_batches: bool, on_pass: OnPass = lambda *_: None
) -> Inference:
    """Find the weights, and the batches if there are any, starting from equal weights.

    The weights that explain the first merges are a good start for explaining all of them with fewer rows.
    """
    weights: Rates = np.full(len(counts), 1 / len(counts))
    method = infer_batches if in_batches else _infer_serially
    if len(pairs.merges) > 2 * FIRST_MERGES:
        first = replace(pairs, merges=pairs.merges[:FIRST_MERGES])
        weights = method(counts, first, weights, on_pass=on_pass).weights
    return method(counts, pairs, weights, on_pass=on_pass)


def _infer_serially(
    counts: Mapping[str, ChunkCounts], pairs: MergeList, weights: Rates, *, on_pass: OnPass
) -> Inference:
    return infer(counts, pairs, list(range(len(pairs.merges))), weights, on_pass=on_pass)


def infer_batches(
    counts: Mapping[str, ChunkCounts], pairs: MergeList, weights: Rates, *, on_pass: OnPass = lambda *_: None
) -> Inference:
    """Find the weights and the batches in turn, starting from some weights, until neither changes."""
    cut = find_batches(counts, pairs, weights, on_pass=on_pass)
    for round in range(1, MAX_ROUNDS + 1):
        found = infer(counts, pairs, cut, weights, on_pass=on_pass)
        weights = found.weights
        new = find_batches(counts, pairs, weights, on_pass=on_pass)
        if new == cut or round == MAX_ROUNDS:
            break
        cut = new
    return replace(found, is_stable=new == cut)

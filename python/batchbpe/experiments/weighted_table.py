"""Pairs of tokens in text of several groups, sorted by how often they occur in a mixture of the groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..counts import ChunkCounts
from ..counts.counter import ChunkArrays
from ..model import Model
from ..policies import Ids
from ..training.table import PairTable
from .order_program import Pair, Rates

PER = 1_000_000
"""Rates are occurrences per this number of bytes."""
MAX_COUNT = 1 << 60
"""About the sum of all counts in a weighted table, in bytes. Large factors make the order of pairs exact."""


@dataclass(frozen=True)
class MergeList:
    """The merges of a vocabulary, and what the ids in them mean."""

    merges: Sequence[Pair]
    """The pairs in the order of merging, as `merge_sequence` returns them."""
    stop_words: Sequence[bytes] = ()

    @property
    def first_id(self) -> int:
        """The id that the first merge makes."""
        return 256 + len(self.stop_words)

    def table(self, counts: Mapping[str, ChunkCounts]) -> PairTable:
        """Return the pairs of the text before the first merge."""
        split = next(iter(counts.values())).split
        ids = {word: token for token, word in enumerate(self.stop_words, start=256)}
        base = Model(split, {}, ids) if ids else None
        return PairTable(counts, base=base)


class WeightedTable:
    """A table of pairs in several groups, sorted by their rates in a mixture of the groups."""

    def __init__(self, counts: Mapping[str, ChunkCounts], pairs: MergeList, weights: Rates) -> None:
        """Multiply the counts of each group by an integer, so that the sums are those of the mixture.

        A group of weight 0 is multiplied by 1, so that its counts remain known.
        """
        sizes = [each.total_bytes for each in counts.values()]
        factors = [max(1, int(MAX_COUNT * weight / size)) for weight, size in zip(weights, sizes, strict=True)]
        scaled = {
            name: ChunkCounts(ChunkArrays(*each.arrays[:2], each.arrays.counts * np.uint64(factor), each.split))
            for (name, each), factor in zip(counts.items(), factors, strict=True)
        }
        self._table = pairs.table(scaled)
        self._factors = np.array(factors)
        self._per_count = PER / np.array(sizes, float)
        self._weights = weights

    def rates(self, pairs: Sequence[Pair] | tuple[Ids, Ids]) -> Rates:
        """Return how often pairs occur per million bytes of each group."""
        return np.asarray(self._table.count_by_group(pairs) // self._factors * self._per_count)

    def mixed(self, rates: Rates) -> Rates:
        """Return the rates in the mixture."""
        return np.asarray(rates @ self._weights)

    def above(self, least: float, n: int) -> tuple[Ids, Ids, Rates]:
        """Return those of the n best pairs whose rate in the mixture is higher, and their rates in each group."""
        first, last, _ = self._table.top(n)
        rates = self.rates((first, last))
        is_above = self.mixed(rates) > least
        return first[is_above], last[is_above], rates[is_above]

    def merge(self, pairs: Sequence[Pair]) -> None:
        """Merge a batch, including pairs that do not occur."""
        self._table.merge(pairs, absent=True)

"""Parity-aware BPE (arXiv 2508.04796): every merge is the most frequent pair of the most expensive language."""

from __future__ import annotations

import argparse
import sysconfig
import time
from collections import deque
from collections.abc import Mapping

from batchbpe import ChunkCounts, PairTable
from batchbpe.policies import Candidates, exact

Counts = Mapping[str, ChunkCounts]
Ratio = Mapping[str, float]


class Parity:
    """Choose languages by their tokens on parallel text (`dev`), or by bytes per token on any text, with a `ratio`.

    Hybrid: the first merges are chosen by the counts of all languages together. Window: a language that was chosen in
    more than alpha / languages of the last merges is skipped.
    """

    def __init__(self, dev: Counts, *, ratio: Ratio | None = None, hybrid: int = 0, window: int = 0, alpha: float = 2):
        self.dev, self.hybrid, self.recent = PairTable(dev), hybrid, deque[str | None](maxlen=window)
        self.units = self.dev.lengths / [ratio[name] for name in dev] if ratio else 1
        self.quota = alpha * window / len(dev)

    def __call__(self, candidates: Candidates) -> Candidates:
        """Simulate merges one at a time, with counts that are correct until a pair overlaps one before it."""
        found = {name: pairs for name in (None, *self.dev.groups) if len(pairs := candidates.more(64, name))}
        queues = {name: zip(pairs.tuples, self.dev.count_by_group(pairs), strict=True) for name, pairs in found.items()}
        lengths, recent, batch = self.dev.lengths, self.recent.copy(), dict[tuple[int, int], str | None]()
        for step in range(min(candidates.merges_remaining, *map(len, found.values()))):
            costs = dict(zip(self.dev.groups, lengths / self.units, strict=True))
            worst = max([*found][1:], key=lambda name: (recent.count(name) <= self.quota, costs[name]))
            language = worst if step >= self.hybrid else None
            pair, saved = next(each for each in queues[language] if each[0] not in batch)
            batch[pair], lengths = language, lengths - saved
            recent.append(language)
        chosen = exact(candidates.pick([*batch]))
        self.recent.extend([*batch.values()][: len(chosen)])
        self.hybrid -= len(chosen)
        self.dev.merge(chosen, absent=True)
        return chosen

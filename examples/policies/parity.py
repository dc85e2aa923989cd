"""Parity-aware BPE (arXiv 2508.04796): every merge is the most frequent pair of the most expensive language."""

from __future__ import annotations

import time
from collections import deque

from languages import Counts, Units, arguments, characters, measure, parts

from batchbpe import PairTable, train
from batchbpe.policies import Candidates, exact


class Parity:
    """Merge in batches, with the result of merging one at a time."""

    def __init__(self, dev: Counts, *, units: Units | None = None, hybrid: int = 0, window: int = 0, alpha: float = 2):
        """Compare languages by their tokens on `dev`, which is parallel text, or by tokens per unit of any other text.

        The first `hybrid` merges are chosen by the counts of all languages together. A language that was chosen in more
        than alpha / languages of the last `window` merges is skipped.
        """
        self.dev, self.units, self.hybrid = PairTable(dev), units or dict.fromkeys(dev, 1), hybrid
        self.recent, self.quota = deque[str | None](maxlen=window), alpha * window / len(dev)

    def __call__(self, candidates: Candidates) -> Candidates:
        """Simulate merging one at a time. Counts are correct until a pair could overlap a pair before it: `exact`."""
        found = {name: pairs for name in (None, *self.dev.groups) if len(pairs := candidates.more(64, name))}
        queues = {name: zip(pairs.tuples, self.dev.count_by_group(pairs), strict=True) for name, pairs in found.items()}
        lengths, recent, batch = self.dev.lengths, self.recent.copy(), dict[tuple[int, int], str | None]()
        for step in range(min(candidates.merges_remaining, *map(len, found.values()))):
            costs = {name: n / self.units[name] for name, n in zip(self.dev.groups, lengths.tolist(), strict=True)}
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


def main() -> None:
    """Compare plain BPE with the variants, on text that was not trained on."""
    given = arguments(__doc__)
    training, dev, test = parts(given.data, given.languages)
    variants = {"base": {}, "hybrid": {"hybrid": given.vocab_size // 2}, "window": {"window": 100}}
    parity = {name: Parity(dev, units=characters(dev), **each) for name, each in variants.items()}
    for name, policy in {"plain": exact, **parity}.items():
        start = time.perf_counter()
        model = train(groups=training, vocab_size=given.vocab_size, policy=policy)
        seconds, result = time.perf_counter() - start, measure(model, test)
        tokens = sum(each.tokens for each in result.evaluations.values())
        print(f"{name:8} Gini {result.gini:.4f} {tokens:12,} tokens {seconds:6.2f} s")


if __name__ == "__main__":
    main()

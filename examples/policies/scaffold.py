"""Scaffold-BPE (arXiv 2404.17808): tokens that have become mere steps to longer tokens leave the vocabulary."""

from __future__ import annotations

import argparse
import sysconfig
import time

import numpy as np

from batchbpe import ChunkCounts, Tokenizer, evaluate, train
from batchbpe.policies import Candidates, MergedBatch, Policy, continue_search


class Scaffold:
    """Hide parents that are rarer than the next best pair. Show a hidden token when nothing is more frequent.

    The publication merges one pair at a time: use `max_batch_size=1`.
    """

    def __call__(self, candidates: Candidates) -> Candidates:
        """Choose pairs."""
        return continue_search(candidates)

    def revise(self, batch: MergedBatch) -> None:
        """Hide and show tokens."""
        best = batch.best_count
        parents = np.unique(np.concatenate([batch.first, batch.last]))
        parents = parents[parents >= batch.vocab.first_new]
        next_best = max(best, batch.token_counts(batch.hidden).max(initial=0))
        batch.hide(parents[batch.token_counts(parents) < next_best])
        hidden = np.sort(batch.hidden)
        counts = batch.token_counts(hidden)
        order = np.argsort(-counts, kind="stable")[: batch.merges_remaining]
        batch.show(hidden[order][counts[order] >= max(best, 1)])


def main() -> None:
    """Compare plain training with Scaffold-BPE, one at a time and in batches."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="?", default=f"{sysconfig.get_path('stdlib')}/*.py")
    parser.add_argument("--vocab-size", type=int, default=4096)
    arguments = parser.parse_args()
    counts = ChunkCounts.count(files=arguments.data)
    policies: dict[str, Policy] = {"plain": continue_search, "scaffold": Scaffold()}
    vocabs = []
    for batches, size in {"serial": 1, "batches": 0}.items():
        for name, policy in policies.items():
            start = time.perf_counter()
            model = train(counts, arguments.vocab_size, policy=policy, max_batch_size=size)
            seconds = time.perf_counter() - start
            tokens = evaluate(Tokenizer(model), counts)[0].tokens
            print(f"{name:9} {batches:8} {len(model.hidden):6,} hidden {tokens:12,} tokens {seconds:8.2f} s")
            vocabs.append({*model.vocab.values()})
    print(f"{len(vocabs[1] & vocabs[3]):,} tokens are the same, one at a time and in batches")


if __name__ == "__main__":
    main()

"""PickyBPE (arXiv 2409.04599): a token that was nearly always merged further is split again, everywhere."""

from __future__ import annotations

import argparse
import sysconfig
import time
from dataclasses import dataclass

import numpy as np

from batchbpe import ChunkCounts, Tokenizer, evaluate, train
from batchbpe.analysis import residues
from batchbpe.policies import Candidates, MergedBatch, continue_search


@dataclass
class Picky:
    """Split parents of which more than the threshold were merged. The publication uses `max_batch_size=1`."""

    threshold: float = 0.9
    length = 0

    def __call__(self, candidates: Candidates) -> Candidates:
        """Choose pairs."""
        return continue_search(candidates)

    def revise(self, batch: MergedBatch) -> None:
        """Split parents. They may consist of tokens that were split before, which must not come back."""
        first = batch.first[batch.count > self.threshold * (batch.first_count + batch.count)]
        last = batch.last[batch.count > self.threshold * (batch.last_count + batch.count)]
        tokens = np.unique(np.concatenate([first, last]))
        tokens = tokens[tokens >= batch.vocab.first_new]
        if len(tokens):
            batch.split(np.concatenate([batch.hidden, tokens]))
        self.length = int(batch.lengths.sum())


def main() -> None:
    """Compare plain training with PickyBPE, one at a time and in batches: tokens after training, and encoded."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="?", default=f"{sysconfig.get_path('stdlib')}/*.py")
    parser.add_argument("--vocab-size", type=int, default=4096)
    arguments = parser.parse_args()
    counts = ChunkCounts.count(files=arguments.data)
    vocabs = []
    for batches, size in {"serial": 1, "batches": 0}.items():
        for name, policy in {"plain": Picky(1), "picky": Picky()}.items():
            start = time.perf_counter()
            model = train(counts, arguments.vocab_size, policy=policy, max_batch_size=size)
            seconds = time.perf_counter() - start
            result = evaluate(Tokenizer(model), counts)[0]
            left = f"{len(model.hidden):6,} split {len(residues(model, result.frequencies)):6,} residues"
            print(f"{name:6} {batches:8} {left} {policy.length:12,} -> {result.tokens:,} tokens {seconds:8.2f} s")
            vocabs.append({*model.vocab.values()})
    print(f"{len(vocabs[1] & vocabs[3]):,} tokens are the same, one at a time and in batches")


if __name__ == "__main__":
    main()

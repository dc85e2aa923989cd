"""Character integrity (SCRIPT-BPE, arXiv 2505.24689): tokens consist of whole characters.

A pair is merged only if both tokens are whole characters, or if it is the beginning of one character and its next byte.
"""

from __future__ import annotations

import argparse
import sysconfig
import time

import numpy as np

from batchbpe import ChunkCounts, Tokenizer, evaluate
from batchbpe.policies import Candidates, GrowingVocab, Mask, MergedBatch, Policy, continue_search

NEVER = -9
MISSING = np.repeat([0, -1, NEVER, 1, 2, 3, NEVER], [128, 64, 2, 30, 16, 5, 11])
"""How many bytes a character lacks after each byte: -1 after a continuation byte, `NEVER` if UTF-8 has no such byte."""


class CharacterIntegrity:
    """Build each character from left to right, then words from characters. `hide` the steps to a character."""

    def __init__(self, *, hide: bool = False) -> None:
        """With `hide`, no token of the vocabulary is part of a character, except for single bytes."""
        self.hide = hide

    def start(self, vocab: GrowingVocab) -> None:
        """Compute what is missing after each token."""
        self.missing = np.full(vocab.next_id, NEVER)
        for token, value in vocab.items():
            missing = MISSING[list(value)]
            is_whole = value.decode(errors="ignore").encode() == value
            self.missing[token] = missing.sum() if (missing[1:] == -1).all() else 0 if is_whole else NEVER

    def allowed(self, pairs: Candidates) -> Mask:
        """Return which pairs may be merged."""
        first, last = self.missing[pairs.first], self.missing[pairs.last]
        mask: Mask = ((first == 0) & (last == 0)) | ((first > 0) & (last == -1))
        return mask

    def __call__(self, candidates: Candidates) -> Candidates:
        """Choose pairs."""
        return continue_search(candidates.keep(self.allowed))

    def revise(self, batch: MergedBatch) -> None:
        """Compute what is missing after the new tokens."""
        self.missing = np.append(self.missing, self.missing[batch.first] + self.missing[batch.last])
        if self.hide:
            batch.hide(batch.token[self.missing[batch.token] > 0])


def main() -> None:
    """Compare plain training with character integrity."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="?", default=f"{sysconfig.get_path('stdlib')}/*.py")
    parser.add_argument("--group-column", help="column that contains the language")
    parser.add_argument("--vocab-size", type=int, default=4096)
    given = parser.parse_args()
    counts = ChunkCounts.count(files=given.data)
    policies: dict[str, Policy] = {
        "plain": continue_search,
        "whole characters": CharacterIntegrity(),
        "hidden steps": CharacterIntegrity(hide=True),
    }
    trained = {}
    for name, policy in policies.items():
        start = time.perf_counter()
        trained[name] = Tokenizer.train(counts, given.vocab_size, policy=policy)
        print(f"{name}: {time.perf_counter() - start:.2f} s")
    print(evaluate(trained, files=given.data, group_column=given.group_column, audit=True))


if __name__ == "__main__":
    main()

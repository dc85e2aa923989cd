"""Character integrity (SCRIPT-BPE, arXiv 2505.24689): tokens consist of whole characters.

A pair is merged only if both tokens are whole characters, or if it is the beginning of one character and its next byte.
"""

from __future__ import annotations

import argparse
import sysconfig
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

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
    """Compare plain training with character integrity, on every tenth document, which they were not trained on."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="?", help="parquet file with the columns text and language")
    parser.add_argument("--vocab-size", type=int, default=4096)
    given = parser.parse_args()
    groups: dict[str, list[str]] = {}
    if given.data:
        for row in pq.read_table(given.data).to_pylist():
            groups.setdefault(row["language"], []).append(row["text"])
    else:
        paths = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
        groups["Python"] = [path.read_text("utf-8") for path in paths]
    held_out = {name: texts[::10] for name, texts in groups.items()}
    counts = ChunkCounts.count(texts=[text for texts in groups.values() for i, text in enumerate(texts) if i % 10])
    policies: dict[str, Policy] = {
        "plain": continue_search,
        "whole characters": CharacterIntegrity(),
        "hidden steps": CharacterIntegrity(hide=True),
    }
    trained = {}
    for name, policy in policies.items():
        start = time.perf_counter()
        trained[name] = Tokenizer.train(counts, given.vocab_size, policy=policy)
        print(f"{name}: trained in {time.perf_counter() - start:.2f} s")
    result = evaluate(trained, held_out, audit=True)
    assert result.groups
    for name, audit in result.audits.items():
        print(f"\n{name}: {len(audit.partial_utf8)} partial UTF-8, {result[name].tokens:,} tokens")
        for group, metrics in result.groups.metrics(name).items():
            print(f"  {group:20} {metrics['tokens']:12,} tokens {metrics['change']:+8.2f}%")


if __name__ == "__main__":
    main()

"""Residue removal (LiteToken, arXiv 2602.04706): hide tokens that encoding makes, but nearly always merges further."""

from __future__ import annotations

import argparse
import sysconfig
from typing import Any

import numpy as np
import numpy.typing as npt

from batchbpe import ChunkCounts, Model, Tokenizer, evaluate


def final_shares(model: Model, frequencies: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return which fraction of each token's occurrences stays. The others are steps to longer tokens.

    `frequencies` are how often each id occurs in a text. The result is NaN for a token that encoding never makes.
    """
    final = np.zeros(model.next_id, np.float64)
    final[: len(frequencies)] = frequencies
    made = final.tolist()
    for (first, last), token in reversed([*model.merges.items()]):
        made[first] += made[token]
        made[last] += made[token]
    shares: npt.NDArray[np.float64] = np.divide(final, made, out=np.full(len(made), np.nan), where=np.array(made) > 0)
    return shares


def residues(model: Model, frequencies: npt.NDArray[Any], threshold: float = 0.1) -> list[int]:
    """Return the tokens, other than bytes, of whose occurrences less than `threshold` stay."""
    rare = np.flatnonzero(final_shares(model, frequencies) < threshold)
    return [token for token in rare.tolist() if len(model.vocab.get(token, b"")) > 1]


def main() -> None:
    """Remove the residues of a new vocabulary and of published ones, and compare the length of the text."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="?", default=f"{sysconfig.get_path('stdlib')}/*.py")
    parser.add_argument("models", nargs="*", help="model files, such as cl100k_base.tiktoken")
    parser.add_argument("--vocab-size", type=int, default=4096)
    parser.add_argument("--threshold", type=float, default=0.1)
    arguments = parser.parse_args()
    tokenizers = {name: Tokenizer.from_file(name) for name in arguments.models}
    tokenizers["new"] = Tokenizer.train(ChunkCounts.count(files=arguments.data), arguments.vocab_size)
    for name, tokenizer in tokenizers.items():
        before = evaluate(tokenizer, files=arguments.data)[0]
        found = residues(tokenizer.model, before.frequencies, arguments.threshold)
        after = evaluate(Tokenizer(tokenizer.model.without(found)), files=arguments.data)[0]
        share = len(found) / tokenizer.model.vocab_size
        print(f"{name}: {len(found):,} residues ({share:.2%}), {before.tokens:,} -> {after.tokens:,} tokens", end=" ")
        print(f"({after.tokens / before.tokens - 1:+.3%})")


if __name__ == "__main__":
    main()

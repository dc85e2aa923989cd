"""Residue removal (LiteToken, arXiv 2602.04706): hide tokens that encoding makes, but nearly always merges further."""

from __future__ import annotations

import argparse
import sysconfig

from batchbpe import ChunkCounts, Tokenizer, evaluate
from batchbpe.analysis import residues


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

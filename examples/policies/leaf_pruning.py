"""Leaf pruning and continued BPE (arXiv 2512.03989): adapt a vocabulary to other text."""

from __future__ import annotations

import argparse
import sysconfig

from batchbpe import ChunkCounts, Model, Tokenizer, evaluate, train

STDLIB = sysconfig.get_path("stdlib")


def adapted(base: Model, kept: str, size: int, added: str, new_tokens: int) -> dict[str, Model]:
    """Prune a vocabulary to `size` tokens, the most useful ones for the files `kept`. Then add tokens for `added`.

    The last model has the tokens of a separate vocabulary for `added` instead, those that merges can reach.
    """
    pruned = base.pruned(size, ChunkCounts.count(files=kept, pattern=base.split))
    counts = ChunkCounts.count(files=added, pattern=base.split)
    appended = pruned.merged_with(train(counts, 256 + 4 * new_tokens, policy="serial"))
    return {
        "base": base,
        "pruned": pruned,
        "continued": train(counts, size + new_tokens, base=pruned, policy="serial"),
        "appended": appended.truncated(min(size + new_tokens, appended.vocab_size)),
    }


def main() -> None:
    """Adapt a vocabulary, and compare its versions on both texts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kept", nargs="?", default=f"{STDLIB}/asyncio/*.py", help="text that pruning uses")
    parser.add_argument("added", nargs="?", default=f"{STDLIB}/pydoc_data/*.py", help="text to add tokens for")
    parser.add_argument("--base", help="model file; by default, a vocabulary of 4,096 tokens is trained")
    parser.add_argument("--vocab-size", type=int, default=2048, help="tokens after pruning")
    parser.add_argument("--new-tokens", type=int, default=500)
    arguments = parser.parse_args()
    loaded = Tokenizer.from_file(arguments.base).model if arguments.base else None
    base = loaded or train(f"{STDLIB}/*.py", 4096, policy="serial")
    models = adapted(base, arguments.kept, arguments.vocab_size, arguments.added, arguments.new_tokens)
    tokenizers = {name: Tokenizer(model) for name, model in models.items()}
    table = [evaluate(tokenizers, files=files, audit=True) for files in (arguments.kept, arguments.added)]
    columns = ("size", "unreachable", "kept: per word", "added: per word", "per character")
    print(f"{'':9}", *(f"{column:>15}" for column in columns))
    for name, tokenizer, kept, added in zip(models, tokenizers.values(), *table, strict=True):
        sizes = (tokenizer.model.vocab_size, len(table[0].audits[name].unreachable))
        lengths = (kept.tokens_per_word, added.tokens_per_word, added.cost("character"))
        print(f"{name:9}", *(f"{size:15,}" for size in sizes), *(f"{length:15.4f}" for length in lengths))


if __name__ == "__main__":
    main()

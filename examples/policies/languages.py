"""Documents by language for the examples: split into parts, and what a vocabulary costs each language."""

from __future__ import annotations

import argparse
import sysconfig
from collections import defaultdict
from pathlib import Path
from random import Random

import pyarrow.parquet as pq

from batchbpe import ChunkCounts, Model, Tokenizer, evaluate
from batchbpe.analysis import GroupEvaluation

Counts = dict[str, ChunkCounts]
Units = dict[str, float]


def arguments(description: str | None, vocab_size: int = 2048) -> argparse.Namespace:
    """Parse the arguments of an example."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("data", nargs="?", help="parquet file with the columns language and text")
    parser.add_argument("languages", nargs="*", help="languages to use, by default all")
    parser.add_argument("--vocab-size", type=int, default=vocab_size)
    parser.add_argument("--seeds", type=int, default=1, help="number of random splits")
    return parser.parse_args()


def parts(data: str | None, languages: list[str], seed: int = 0) -> tuple[Counts, Counts, Counts]:
    """Count half of the documents of each language, another quarter, and the last quarter.

    Without data, the languages are folders of Python's standard library.
    """
    documents = defaultdict[str, list[str]](list)
    if data is None:
        for path in sorted(Path(sysconfig.get_path("stdlib")).glob("[ej]*/*.py")):
            documents[path.parent.name].append(path.read_text(encoding="utf-8"))
    else:
        for row in pq.read_table(data, columns=["language", "text"]).to_pylist():
            documents[row["language"]].append(row["text"])
    for texts in documents.values():
        Random(seed).shuffle(texts)

    def count(start: int, end: int) -> Counts:
        chosen = {name: documents[name] for name in languages or documents}
        return {name: ChunkCounts.count(texts=t[len(t) * start // 4 : len(t) * end // 4]) for name, t in chosen.items()}

    return count(0, 2), count(2, 3), count(3, 4)


def characters(counts: Counts) -> Units:
    """Return the number of characters of each language."""
    return {name: sum(len(chunk) * n for chunk, n in each.items()) for name, each in counts.items()}


def measure(model: Model, counts: Counts) -> GroupEvaluation:
    """Return tokens per character (`costs`) and their Gini coefficient (`gini`)."""
    comparison = evaluate({"model": Tokenizer(model)}, counts).groups
    assert comparison is not None
    return comparison.tokenizers["model"]

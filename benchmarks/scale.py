"""Estimate what counting costs at any scale, from our own data: `python -m benchmarks.scale --data FOLDER`.

The number of unique chunks grows with the text as U = K · bytes^β (Heaps' law). K and β are fitted to english.parquet in
FOLDER. The share of the unique chunks that occur at least c times follows from β alone, if counts are distributed like a
Pólya urn: Γ(c - β) / (Γ(1 - β) Γ(c)). The tables in docs/scale.md are the output of this program.
"""

import argparse
import math
from pathlib import Path

import numpy as np

from batchbpe import ChunkCounts
from benchmarks.texts import column

BYTES_PER_TOKEN = 4.5
"""UTF-8 bytes per token of English text, with the tokenizer that the sizes of FineWeb are stated in."""
DATASETS = {"FineWeb-Edu, 10 billion tokens": 10e9, "FineWeb, 15 trillion tokens": 15e12}
TASK_BYTES = 400e6
"""Text per task: a split of 128 MiB of zstd parquet."""
CUTOFFS = (1, 2, 10, 100)
PARTITIONS = (1, 10, 100)


def fit(texts):
    """Return K and β, and the sizes and unique chunks that they were fitted to."""
    sizes, unique = [], []
    share = len(texts) // 64
    while share <= len(texts):
        part = texts[:share]
        sizes.append(sum(map(len, part)))
        unique.append(ChunkCounts.count(texts=[text.decode() for text in part]).unique)
        share *= 2
    beta, log_k = np.polyfit(np.log(sizes), np.log(unique), 1)
    return math.exp(log_k), beta, sizes, unique


def share_at_least(cutoff, beta):
    """Return the share of the unique chunks that occur at least `cutoff` times."""
    return math.exp(math.lgamma(cutoff - beta) - math.lgamma(1 - beta) - math.lgamma(cutoff))


def kept_per_partition(texts, partitions, cutoff):
    """Apply a cutoff to the counts of each partition, and add up what is left."""
    parts = [ChunkCounts.count(texts=[text.decode() for text in texts[n::partitions]]) for n in range(partitions)]
    return ChunkCounts.count([part.at_least(cutoff) for part in parts], parts[0].pattern)


def table(head, rows):
    print(f"\n| {' | '.join(head)} |\n|---|{'---:|' * (len(head) - 1)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--speed", type=float, required=True, help="MB/s of one core on Spark, as measured")
    parser.add_argument("--row-bytes", type=float, required=True, help="bytes of one row in the shuffle, as measured")
    parser.add_argument("--chunk-bytes", type=float, default=90, help="memory per unique chunk while training")
    options = parser.parse_args()

    texts = [text.encode() for text in column(options.data / "english.parquet").to_pylist()]
    k, beta, sizes, unique = fit(texts)
    print(f"K = {k:.3g}, β = {beta:.3f}")
    rows = [
        [f"{size / 1e6:.1f}", f"{found:,}", f"{k * size**beta:,.0f}"] for size, found in zip(sizes, unique, strict=True)
    ]
    table(["MB of text", "unique chunks", "K · bytes^β"], rows)

    counts = ChunkCounts.count(texts=[text.decode() for text in texts])
    measured = [counts.at_least(cutoff).unique / counts.unique for cutoff in CUTOFFS]
    rows = [[str(c), f"{m:.1%}", f"{share_at_least(c, beta):.1%}"] for c, m in zip(CUTOFFS, measured, strict=True)]
    table(["cutoff", "share of the unique chunks, measured", "from β"], rows)

    names = ["text", "unique chunks", "tasks", "rows in the shuffle", "shuffle", "core hours"]
    columns = []
    for tokens in DATASETS.values():
        size = tokens * BYTES_PER_TOKEN
        tasks = math.ceil(size / TASK_BYTES)
        shuffled = tasks * k * TASK_BYTES**beta
        columns.append(
            [
                f"{size / 1e12:,.3f} TB",
                f"{k * size**beta / 1e6:,.0f} million",
                f"{tasks:,}",
                f"{shuffled / 1e6:,.0f} million",
                f"{shuffled * options.row_bytes / 1e9:,.1f} GB",
                f"{size / 1e6 / options.speed / 3600:,.1f}",
            ]
        )
        for cutoff in CUTOFFS:
            kept = k * size**beta * share_at_least(cutoff, beta)
            columns[-1].append(f"{kept * options.chunk_bytes / 1e9:,.1f} GB")
    names += [f"memory to train, cutoff {cutoff}" for cutoff in CUTOFFS]
    table(["", *DATASETS], [list(row) for row in zip(names, *columns, strict=True)])

    cutoff = 10
    exact = counts.at_least(cutoff)
    rows = []
    for partitions in PARTITIONS:
        kept = kept_per_partition(texts, partitions, cutoff)
        found = dict(kept.most_common())
        lost = [chunk for chunk in exact if chunk not in found]
        wrong = sum(found.get(chunk, 0) != count for chunk, count in exact.items())
        rows.append([str(partitions), f"{len(lost) / exact.unique:.1%}", f"{wrong / exact.unique:.1%}"])
    table(["partitions", f"chunks lost that occur {cutoff} times or more", "chunks with a wrong count"], rows)


if __name__ == "__main__":
    main()

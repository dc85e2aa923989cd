"""Estimate what counting costs at any scale, from our own data: `python -m benchmarks.scale --data FOLDER`.

The number of unique chunks grows with the text as U = K · bytes^β (Heaps' law). K and β are fitted to english.parquet
and multilingual.parquet in FOLDER. Documents from the web lie between the two: the paper found 17 million unique chunks
in 10 billion tokens. The estimates therefore start there and grow with the mean of both β. The fraction of chunks that
a cutoff keeps is that of the multilingual documents. The tables in docs/scale.md are the output of this program.
"""

import argparse
import math
from pathlib import Path

import numpy as np

from batchbpe import ChunkCounts
from benchmarks.jobs import TEXTS
from benchmarks.texts import column

BYTES_PER_TOKEN = 4.5
"""UTF-8 bytes per token of English text, with the tokenizer that the sizes of FineWeb are stated in."""
DATASETS = {"FineWeb-Edu, 10 billion tokens": 10e9, "FineWeb, 15 trillion tokens": 15e12}
PAPER = 17e6, 10e9 * BYTES_PER_TOKEN
"""Unique chunks, and bytes of text."""
TASKS = {"128 MiB": 400e6, "1 GiB": 3200e6}
"""The text in splits of zstd parquet, which is about three times smaller."""
CUTOFFS = (1, 2, 10, 100)
PARTITIONS = (1, 10, 100)


def fit(texts):
    """Return K and β, and the sizes and unique chunks that they were fitted to."""
    sizes, unique = [], []
    size = len(texts) // 64
    while size <= len(texts):
        part = texts[:size]
        sizes.append(sum(map(len, part)))
        unique.append(ChunkCounts.count(texts=[text.decode() for text in part]).unique)
        size *= 2
    beta, log_k = np.polyfit(np.log(sizes), np.log(unique), 1)
    return math.exp(log_k), beta, sizes, unique


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
    parser.add_argument("--chunk-bytes", type=float, default=210, help="memory per unique chunk, when loaded")
    options = parser.parse_args()

    texts = {}
    fits = {}
    for name in ("english", "multilingual"):
        texts[name] = [text.encode() for text in column(options.data / f"{name}.parquet").to_pylist()]
        k, beta, sizes, unique = fits[name] = fit(texts[name])
        print(f"\n{TEXTS[name]}: K = {k:.3g}, β = {beta:.3f}")
        rows = zip(sizes, unique, strict=True)
        rows = [[f"{size / 1e6:.1f}", f"{found:,}", f"{k * size**beta:,.0f}"] for size, found in rows]
        table(["MB of text", "unique chunks", "K · bytes^β"], rows)

    counts = {name: ChunkCounts.count(texts=[text.decode() for text in texts[name]]) for name in texts}
    kept = {name: [each.at_least(cutoff).unique / each.unique for cutoff in CUTOFFS] for name, each in counts.items()}
    rows = zip(CUTOFFS, *kept.values(), strict=True)
    rows = [[str(cutoff), *(f"{fraction:.1%}" for fraction in each)] for cutoff, *each in rows]
    table(["cutoff", *(TEXTS[name] for name in kept)], rows)

    beta = sum(beta for _, beta, *_ in fits.values()) / len(fits)
    columns = []
    for tokens in DATASETS.values():
        size = tokens * BYTES_PER_TOKEN
        estimates = [k * size**beta for k, beta, *_ in fits.values()]
        unique = PAPER[0] * (size / PAPER[1]) ** beta
        cells = {"text": f"{size / 1e12:,.3f} TB"}
        cells |= {f"unique chunks, as in {TEXTS[name]}": millions(n) for name, n in zip(fits, estimates, strict=True)}
        cells[f"unique chunks, 17 million at 10 billion tokens, β = {beta:.2f}"] = millions(unique)
        for split, text in TASKS.items():
            tasks = math.ceil(size / text)
            rows = tasks * PAPER[0] * (text / PAPER[1]) ** beta
            shuffle = f"{rows * options.row_bytes / 1e9:,.1f} GB"
            cells[f"tasks, rows and bytes in the shuffle, splits of {split}"] = (
                f"{tasks:,}; {millions(rows)}; {shuffle}"
            )
        cells["core hours"] = f"{size / 1e6 / options.speed / 3600:,.1f}"
        for cutoff, fraction in zip(CUTOFFS, kept["multilingual"], strict=True):
            cells[f"memory to train, cutoff {cutoff}"] = f"{unique * fraction * options.chunk_bytes / 1e9:,.1f} GB"
        columns.append(cells)
    table(["", *DATASETS], [[name, *(cells[name] for cells in columns)] for name in columns[0]])

    cutoff = 10
    exact = counts["english"].at_least(cutoff)
    rows = []
    for partitions in PARTITIONS:
        found = dict(kept_per_partition(texts["english"], partitions, cutoff).most_common())
        lost = sum(chunk not in found for chunk in exact)
        wrong = sum(found.get(chunk, 0) != count for chunk, count in exact.items())
        rows.append([str(partitions), f"{lost / exact.unique:.1%}", f"{wrong / exact.unique:.1%}"])
    table(["partitions", f"chunks lost that occur {cutoff} times or more", "chunks with a wrong count"], rows)


def millions(number):
    return f"{number / 1e6:,.0f} million"


if __name__ == "__main__":
    main()

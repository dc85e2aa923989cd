"""Synthetic counts of the size of the paper's dataset: 17 million unique chunks, about 9 billion in total.

The head consists of real chunks from a csv of counts, with their counts scaled up. The tail recombines them: the
beginning of one word and the end of another, with counts that fall as a power of the rank, down to one.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.cases import GPT4, counts

UNIQUE, TOTAL, WIDTH, SEED = 17_000_000, 9_000_000_000, 24, 0


def is_word(chunk):
    """Return whether a chunk is letters after at most one space, so that recombined pieces are single chunks too."""
    return chunk.isascii() and 1 < len(chunk) <= WIDTH // 2 and chunk.removeprefix(" ").isalpha()


def recombine(words, number, rng):
    """Join a prefix of one word and a suffix of another, `number` times."""
    blob = np.frombuffer("".join(words).encode(), dtype=np.uint8)
    length = np.array([len(word) for word in words])
    start = np.cumsum(length) - length
    first, last = rng.integers(len(words), size=(2, number, 1))
    head, cut = rng.integers(1, length[first]), rng.integers(1, length[last])
    column = np.arange(WIDTH)
    place = np.where(column < head, start[first] + column, start[last] + cut - head + column)
    letters = np.where(column < head + length[last] - cut, blob.take(place, mode="clip"), 0)
    return letters.astype(np.uint8).view(f"S{WIDTH}").ravel()


def make(csv_path):
    """Return 17 million chunks in the order of their bytes, and their counts."""
    rng = np.random.default_rng(SEED)
    real = {chunk.encode(): count for chunk, count in counts(csv_path) if "\0" not in chunk}
    head = np.array([chunk for chunk in real if len(chunk) <= WIDTH], dtype=f"S{WIDTH}")
    words = [chunk.decode() for chunk in real if is_word(chunk.decode())]
    made = np.unique(np.concatenate([recombine(words, 500_000, rng) for _ in range(60)]))
    place = np.searchsorted(made, head).clip(max=len(made) - 1)
    new = np.ones(len(made), dtype=bool)
    new[place[made[place] == head]] = False
    chosen = rng.permutation(np.flatnonzero(new))[: UNIQUE - len(head)]
    chunks = np.sort(np.concatenate([head, made[chosen]]))

    head_counts, tail_counts = zipf(np.array([real[chunk] for chunk in head.tolist()]), len(chosen))
    frequency = np.zeros(len(chunks))
    frequency[np.searchsorted(chunks, head)] = head_counts
    frequency[frequency == 0] = rng.permutation(tail_counts)
    return chunks, frequency.astype(np.uint64)


def zipf(real_counts, tail_size):
    """The real counts scaled up, and a tail from the least of them down to one, together TOTAL."""
    scale = TOTAL / real_counts.sum()
    rank = 1 + np.arange(tail_size) / len(real_counts)
    least = real_counts.min() * scale
    tail_counts = np.maximum(least * rank ** (-np.log(least) / np.log(rank[-1])), 1)
    return real_counts * scale * (1 - tail_counts.sum() / TOTAL), tail_counts


def write(path, chunks, frequency):
    """A counts file: by count, the highest first, then by bytes (the order that `chunks` already has)."""
    order = np.argsort(-frequency.astype(np.int64), kind="stable")
    chunks, frequency = chunks[order], frequency[order]
    letters = chunks.view(np.uint8)
    offsets = np.concatenate([[0], np.cumsum(np.char.str_len(chunks))])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(letters[letters != 0])]
    column = pa.Array.from_buffers(pa.large_binary(), len(chunks), buffers)
    described = {"version": 1, "pattern": GPT4, "total": int(frequency.sum()), "unique": len(chunks)}
    fields = [("chunk", pa.large_binary()), ("count", pa.uint64())]
    schema = pa.schema(fields, metadata={"batchbpe": json.dumps(described)})
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table([column, pa.array(frequency)], schema=schema), path, use_dictionary=False)


if __name__ == "__main__":
    write(Path(sys.argv[2]), *make(sys.argv[1]))

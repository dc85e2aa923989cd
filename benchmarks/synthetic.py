"""Synthetic data from a csv of counts: counts of the size of the paper's dataset, and texts of any size.

The head of the counts consists of the real chunks, with their counts scaled up to about 9 billion in total. The tail
recombines them: the beginning of one word and the end of another, with counts that fall as a power of the rank, down to
one. A text draws chunks with their real frequencies, and now and then a recombined word, so that the number of unique
chunks grows with the text.
"""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from batchbpe.patterns import PATTERNS
from benchmarks.texts import SEPARATOR, cached, load_counts

TOTAL, WIDTH, SEED = 9_000_000_000, 24, 0
BLOCK = 500_000
"""The number of chunks made at once."""
NEW_SHARE, DOCUMENT = 1 / 400, 800
"""The fraction of recombined words in a text, and the number of chunks in a document."""


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


def make(csv_path, unique):
    """Return `unique` chunks in the order of their bytes, and their counts."""
    rng = np.random.default_rng(SEED)
    real = {chunk.encode(): count for chunk, count in load_counts(csv_path) if SEPARATOR not in chunk}
    head = np.array([chunk for chunk in real if len(chunk) <= WIDTH], dtype=f"S{WIDTH}")
    words = [chunk.decode() for chunk in real if is_word(chunk.decode())]
    made = np.unique(np.concatenate([recombine(words, BLOCK, rng) for _ in range(1 + 2 * unique // BLOCK)]))
    place = np.searchsorted(made, head).clip(max=len(made) - 1)
    new = np.ones(len(made), dtype=bool)
    new[place[made[place] == head]] = False
    chosen = rng.permutation(np.flatnonzero(new))[: max(0, unique - len(head))]
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
    described = {"version": 1, "pattern": PATTERNS["gpt4"], "total": int(frequency.sum()), "unique": len(chunks)}
    fields = [("chunk", pa.large_binary()), ("count", pa.uint64())]
    schema = pa.schema(fields, metadata={"batchbpe": json.dumps(described)})
    pq.write_table(pa.table([column, pa.array(frequency)], schema=schema), path, use_dictionary=False)


def write_text(path, csv_path, size):
    """Write a text of `size` bytes."""
    rng = np.random.default_rng(SEED)
    real = [(chunk, count) for chunk, count in load_counts(csv_path) if SEPARATOR not in chunk]
    words = [chunk for chunk, _ in real if is_word(chunk)]
    chunks = np.array([chunk for chunk, _ in real], dtype=object)
    below = np.cumsum([count for _, count in real])
    with path.open("wb") as file:
        while file.tell() < size:
            left = size - file.tell()
            number = min(BLOCK, left // 4 + DOCUMENT)
            drawn = chunks[np.searchsorted(below, rng.integers(below[-1], size=number), side="right")]
            new = rng.random(number) < NEW_SHARE
            drawn[new] = [word.decode() for word in recombine(words, int(new.sum()), rng).tolist()]
            drawn[::DOCUMENT] = SEPARATOR
            text = "".join(drawn.tolist()).encode()[:left]
            file.write(text.decode(errors="replace").encode())


def counts_file(csv_path, unique):
    """Return a counts file of about `unique` chunks."""
    return cached(f"synthetic-{unique}.parquet", csv_path, lambda path: write(path, *make(csv_path, unique)))


def text_file(csv_path, size):
    """Return a text file of about `size` bytes."""
    return cached(f"synthetic-{size}.txt", csv_path, lambda path: write_text(path, csv_path, size))

"""The benchmark cases. A case imports its tool and returns three functions: load the data, do the job, describe it."""

import base64
import csv
import functools
import hashlib
import statistics
import subprocess
import sys
import tempfile
import time
import timeit
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

GPT4 = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*"
    r"|\s*[\r\n]|\s+(?!\S)|\s+"
)
# Nearly the same chunks. ffbpe has a scanner for this pattern and a slow engine for others.
CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
SHORT = "The theory is in the inaccessible parts."


def documents(path):
    texts = column(path).to_pylist()
    pa.default_memory_pool().release_unused()
    return texts


def column(path):
    return pq.read_table(path, columns=["text"])["text"]


def sample(path, size=10_000_000):
    """Return `size` bytes of documents, spread evenly over the file, which may be sorted by language."""
    texts = documents(path)
    step = max(1, sum(len(text.encode()) for text in texts) // size)
    return "\n".join(texts[::step]).encode()[:size].decode(errors="ignore")


def counts(path):
    with Path(path).open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        next(rows)
        return [(chunk, int(count)) for chunk, count in rows if int(count)]


def size_of(tokenizer):
    size = tokenizer.n_vocab if hasattr(tokenizer, "n_vocab") else tokenizer.vocab_size
    return {"result": f"{size:,} tokens"}


def train_batchbpe(path, vocab_size, of_counts=False, threads=None):
    """Train on documents in memory, or on a file of counts, reading included."""
    from batchbpe import Tokenizer

    load = (lambda: path) if of_counts else partial(documents, path)
    return load, lambda data: Tokenizer.train(data, vocab_size, threads=threads), size_of


def train_on_counts(path, vocab_size, threads):
    from batchbpe import ChunkCounts, Tokenizer

    return partial(ChunkCounts.load, path), partial(Tokenizer.train, vocab_size=vocab_size, threads=threads), size_of


def train_ffbpe(path, vocab_size, of_counts=False):
    """Train on documents or counts in memory."""
    import ffbpe

    def job(data):
        trainer = ffbpe.BpeTrainer([])
        if of_counts:
            trainer.add_words(data)
        else:
            counter = ffbpe.PreTokenizer([], pat_str=CL100K).word_counter()
            counter.add_source(data)
            trainer.add_word_counter(counter)
        trainer.train(vocab_size)
        return trainer

    return partial(counts if of_counts else documents, path), job, size_of


def train_rustbpe(path, vocab_size):
    import rustbpe

    def job(texts):
        tokenizer = rustbpe.Tokenizer()
        tokenizer.train_from_iterator(iter(texts), vocab_size, pattern=GPT4)
        return tokenizer

    return partial(documents, path), job, size_of


def train_tokenizers(path, vocab_size):
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

    split = pre_tokenizers.Split(Regex(GPT4), behavior="isolated")
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    options = {"initial_alphabet": byte_level.alphabet(), "show_progress": False}

    def job(texts):
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, byte_level])
        tokenizer.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=vocab_size, **options))
        return tokenizer

    return partial(documents, path), job, lambda it: {"result": f"{it.get_vocab_size():,} tokens"}


def policy(path, vocab_size):
    from batchbpe import ChunkCounts, Tokenizer
    from batchbpe.policies import continue_search

    spent = []

    @functools.wraps(continue_search)
    def timed(*args, **kwargs):
        start = time.perf_counter()
        chosen = continue_search(*args, **kwargs)
        spent.append(time.perf_counter() - start)
        return chosen

    def job(chunks):
        start = time.perf_counter()
        Tokenizer.train(chunks, vocab_size, policy=timed)
        return time.perf_counter() - start

    def describe(training):
        share = sum(spent) / training
        return {"result": f"{sum(spent):.3f} s = {share:.1%} in {len(spent)} calls of the policy"}

    return partial(ChunkCounts.load, path), job, describe


def tokenizer_of(tool, ranks):
    if tool == "batchbpe":
        from batchbpe import Tokenizer

        tokenizer = Tokenizer.from_tiktoken(ranks)
        tokenizer.encode("")  # builds the encoder, as tiktoken's constructor does
        return tokenizer
    import tiktoken

    lines = (line.split() for line in Path(ranks).read_bytes().splitlines())
    tokens = {base64.b64decode(token): int(rank) for token, rank in lines}
    return tiktoken.Encoding("ranks", pat_str=CL100K, mergeable_ranks=tokens, special_tokens={})


def encode(tool, path, ranks):
    def describe(ids):
        digest = hashlib.sha256(np.asarray(ids, dtype=np.uint32).tobytes()).hexdigest()
        return {"result": f"{len(ids):,} tokens", "ids": digest}

    return partial(sample, path), tokenizer_of(tool, ranks).encode_to_numpy, describe


def encode_short(tool, ranks, loops=10_000):
    tokenizer = tokenizer_of(tool, ranks)

    def best(_):
        return min(timeit.repeat(lambda: tokenizer.encode(SHORT), number=loops, repeat=20)) / loops

    return int, best, lambda best: {"seconds": best, "cpu": None, "ids": list(tokenizer.encode(SHORT))}


def encode_batch(path, ranks, threads):
    encode = partial(tokenizer_of("batchbpe", ranks).encode_batch_to_numpy, allowed_special="none", threads=threads)
    return partial(documents, path), encode, lambda result: {"result": f"{len(result[0]):,} tokens"}


def count(path, threads):
    from batchbpe import ChunkCounts

    def describe(chunks):
        return {"result": f"{chunks.total:,} chunks, {chunks.unique:,} unique"}

    return partial(column, path), partial(ChunkCounts.count, threads=threads), describe


def read(path):
    """Read documents like `count_files`, without counting them."""
    from batchbpe.data.options import ReadOptions
    from batchbpe.data.readers import source

    return (
        int,
        lambda _: sum(map(len, source(Path(path), ReadOptions()))),
        lambda rows: {"result": f"{rows:,} documents"},
    )


def count_files(path, compressed=True):
    """Count from a file to a file, like the command; `compressed=False` reads an uncompressed copy."""
    from batchbpe.data.corpus import sources
    from batchbpe.jobs.count import count_files

    folder = tempfile.TemporaryDirectory()
    plain = Path(folder.name) / "plain.parquet"

    def load():
        if compressed:
            return Path(path)
        pq.write_table(pq.read_table(path), plain, compression="none", row_group_size=1000)
        pa.default_memory_pool().release_unused()
        return plain

    def job(file):
        with folder:
            return count_files(sources(file), Path(folder.name) / "counts.parquet")

    return load, job, lambda report: {"result": f"{report.total:,} chunks, {report.unique:,} unique"}


def encode_files(path, ranks):
    """Encode from a file to a folder of shards, like the command."""
    from batchbpe.data.corpus import sources
    from batchbpe.jobs.encode import encode_files

    tokenizer = tokenizer_of("batchbpe", ranks)

    def job(_):
        with tempfile.TemporaryDirectory() as folder:
            return encode_files(tokenizer, sources(Path(path)), Path(folder) / "shards")

    return int, job, lambda report: {"result": f"{report.tokens:,} tokens"}


def import_module(module):
    def seconds(code):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - start

    def job(_):
        seconds(f"import {module}")  # writes the bytecode
        return statistics.median(seconds(f"import {module}") - seconds("pass") for _ in range(15))

    return int, job, lambda extra: {"seconds": extra, "cpu": None}

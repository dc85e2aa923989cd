"""Cases that run whole processes (imports, scripts, the command line) or jobs from files to files."""

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measure import Case

TRAIN_BATCHBPE = "import sys, batchbpe; batchbpe.Tokenizer.train(sys.argv[1], int(sys.argv[2]))"
TRAIN_FFBPE = """
import csv, sys, ffbpe
rows = csv.reader(open(sys.argv[1], encoding="utf-8", newline=""))
next(rows)
trainer = ffbpe.BpeTrainer([])
trainer.add_words([(chunk, int(count)) for chunk, count in rows])
trainer.train(int(sys.argv[2]))
"""
ENCODE_TOKENIZERS = """
import sys, tokenizers, numpy
text = open(sys.argv[2], encoding="utf-8", newline="").read()
numpy.save(sys.argv[3], numpy.array(tokenizers.Tokenizer.from_file(sys.argv[1]).encode(text).ids, "uint32"))
"""


def script(code, arguments):
    """Run a program once, including interpreter start and imports."""

    def job(_):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code, *arguments], check=True)
        return time.perf_counter() - start

    def describe(seconds):
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = usage.ru_utime + usage.ru_stime
        return {"seconds": seconds, "cpu": cpu, "peak": usage.ru_maxrss / 1024, "data": 0}

    return Case(int, job, describe)


def command(arguments, output=None, times=15):
    """Run a command several times, and return the median. `output` is the name of the file that it writes."""

    def once(folder):
        file = [str(Path(folder) / output)] if output else []
        start = time.perf_counter()
        subprocess.run([sys.executable, *arguments, *file], check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - start

    def job(_):
        seconds = []
        for _ in range(times + 1):  # the first one writes the bytecode
            with tempfile.TemporaryDirectory() as folder:
                seconds.append(once(folder))
        return statistics.median(seconds[1:])

    return Case(int, job, lambda seconds: {"seconds": seconds, "cpu": None})


def import_module(module, times=15):
    def seconds(code):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - start

    def job(_):
        seconds(f"import {module}")  # writes the bytecode
        return statistics.median(seconds(f"import {module}") - seconds("pass") for _ in range(times))

    return Case(int, job, lambda extra: {"seconds": extra, "cpu": None})


def read(path):
    """Read documents like `count_files`, without counting them."""
    from batchbpe.data.options import ReadOptions
    from batchbpe.data.readers import source

    def job(_):
        return sum(map(len, source(Path(path), ReadOptions())))

    return Case(int, job, lambda rows: {"result": f"{rows:,} documents"})


def count_files(path, compressed=True):
    """Count from a file to a file, like the command; `compressed=False` reads an uncompressed copy."""
    import pyarrow as pa
    import pyarrow.parquet as pq

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

    return Case(load, job, lambda report: {"result": f"{report.total:,} chunks, {report.unique:,} unique"})


def encode_files(path, ranks):
    """Encode from a file to a folder of shards, like the command."""
    from batchbpe import Tokenizer
    from batchbpe.data.corpus import sources
    from batchbpe.jobs.encode import encode_files

    tokenizer = Tokenizer.from_tiktoken(ranks, pattern="cl100k")
    tokenizer.encode("")

    def job(_):
        with tempfile.TemporaryDirectory() as folder:
            return encode_files(tokenizer, sources(Path(path)), Path(folder) / "shards")

    return Case(int, job, lambda report: {"result": f"{report.tokens:,} tokens"})

"""Count on Spark executors of one core each, compared with the command on one machine.

    python -m benchmarks.spark --data FOLDER --sizes 100 2000 --executors 0 1 2

FOLDER contains english.parquet and multilingual.parquet. Their documents are repeated up to the given number of
megabytes; after every third copy, ASCII letters are rotated, so that the number of unique chunks grows with the text.
With 0 executors, the command runs without Spark. Each executor and its Python workers are pinned to one core. The first
run of each session, which starts workers and compiles code, is not timed. Results are added to spark.csv and printed.
"""

import argparse
import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.texts import column

TABLE = Path(__file__).parent / "spark.csv"
LETTERS = [b"abcdefghijklmnopqrstuvwxyz", b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"]
COLUMNS = ("MB", "what", "seconds", "MB/s", "unique", "tasks", "shuffle rows", "shuffle MB", "JVM MB", "Python MB")


def make(data, folder, megabytes):
    """Return zstd parquet files with about that much text, in row groups of 1,000 documents."""
    folder = folder / f"text-{megabytes}"
    if not folder.exists():
        temporary = folder.with_suffix(".tmp")
        temporary.mkdir(parents=True, exist_ok=True)
        documents = [
            text.encode()
            for name in ("english", "multilingual")
            for text in column(data / f"{name}.parquet").to_pylist()
        ]
        documents = documents[::2] + documents[1::2]
        left, copy = megabytes * 1_000_000, 0
        while left > 0:
            turn = copy // 3
            rotation = bytes.maketrans(b"".join(LETTERS), b"".join(each[turn:] + each[:turn] for each in LETTERS))
            part = []
            for text in documents:
                if left <= 0:
                    break
                part.append(text.translate(rotation))
                left -= len(text)
            table = pa.table({"text": pa.array(part, pa.binary()).view(pa.string())})
            pq.write_table(table, temporary / f"{copy:03}.parquet", compression="zstd", row_group_size=1000)
            copy += 1
        temporary.rename(folder)
    return sorted(map(str, folder.glob("*.parquet")))


def without_spark(files, repeat):
    """Yield the command with two threads and with one."""
    for threads in (2, 1):
        best = None
        for _ in range(repeat):
            with tempfile.TemporaryDirectory() as folder:
                command = [sys.executable, "-m", "batchbpe", "count", *files, "-o", f"{folder}/counts.parquet"]
                command += ["--json", "--quiet", "--threads", str(threads)]
                report = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
            best = min(best or report, report, key=lambda each: each["seconds"])
        label, peak = f"one machine, {threads} thread{'s' * (threads > 1)}", round(best["peak_memory"] / 1e6)
        yield label, best["seconds"], best["unique"], "", "", "", "", peak


def children(pid):
    """Return the processes that a process has started, and theirs."""
    found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout.split()
    return [each for child in found for each in (child, *children(child))]


def executors(session):
    """Return the executors with their Python processes."""
    driver = session.sparkContext._gateway.proc.pid
    is_executor = lambda pid: b"CoarseGrainedExecutorBackend" in Path(f"/proc/{pid}/cmdline").read_bytes()  # noqa: E731
    return {pid: children(pid) for pid in (str(driver), *children(driver)) if is_executor(pid)}


def peak_megabytes(pid):
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return round(next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1000)


def stages(session, since=0):
    """Return what Spark reports about the stages from a number on."""
    context = session.sparkContext
    url = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/stages"
    with urllib.request.urlopen(url) as response:
        return [stage for stage in json.load(response) if stage["stageId"] >= since]


def on_spark(files, number, repeat, split):
    from pyspark.sql import Observation, SparkSession, functions

    from batchbpe.spark import count_chunks

    os.environ["PYSPARK_PYTHON"] = sys.executable
    start = time.monotonic()
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
        "spark.sql.files.maxPartitionBytes": split,
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.adaptive.coalescePartitions.enabled": "false",  # to 3 tasks, which 2 executors do not share evenly
    }
    builder = SparkSession.builder.master(f"local-cluster[{number},1,1024]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    documents = session.read.parquet(*files)

    def rows(batches):
        for batch in batches:
            yield pa.record_batch({"rows": pa.array([batch.num_rows])})

    def count(frame, folder, observation=None):
        # As `batchbpe count --engine spark` does it.
        counts = count_chunks(frame, observation=observation).sortWithinPartitions(functions.desc("count"))
        writer = counts.write.option("parquet.enable.dictionary#chunk", "false")
        writer.parquet(f"{folder}/counts", compression="zstd")

    def timed(job):
        best = float("inf")
        for _ in range(repeat):
            with tempfile.TemporaryDirectory() as folder:
                begin = time.monotonic()
                job(folder)
                best = min(best, time.monotonic() - begin)
        return best

    with tempfile.TemporaryDirectory() as folder:
        session.range(number * 4).repartition(number * 4).mapInArrow(lambda batches: batches, "id long").count()
        for core, (pid, workers) in enumerate(executors(session).items()):
            for each in (pid, *workers):
                subprocess.run(["taskset", "-apc", str(core), each], check=True, capture_output=True)
        count(documents.limit(20_000).repartition(number * 2), folder)
    print(f"start-up: {time.monotonic() - start:.1f} s", flush=True)
    label = f"Spark, {number} executor{'s' * (number > 1)}"

    def read(_):
        documents.select("text").mapInArrow(rows, "rows long").agg(functions.sum("rows")).collect()

    yield f"{label}: reading only", timed(read), "", "", "", "", "", ""
    since = 1 + max(stage["stageId"] for stage in stages(session))
    seen = []

    def job(folder):
        seen.append(Observation())
        count(documents, folder, seen[-1])

    seconds = timed(job)
    # The first stage of each run reads and counts; its output is what is shuffled.
    counting = next(stage for stage in stages(session, since) if stage["inputBytes"] and stage["shuffleWriteBytes"])
    found = executors(session)
    jvm = max(map(peak_megabytes, found))
    python = max(peak_megabytes(pid) for workers in found.values() for pid in workers)
    shuffled = counting["shuffleWriteRecords"], round(counting["shuffleWriteBytes"] / 1e6)
    yield label, seconds, seen[-1].get["unique"], counting["numTasks"], *shuffled, jvm, python
    work = Path(sys.modules["pyspark"].__file__).parent / "work" / session.sparkContext.applicationId
    session.stop()
    shutil.rmtree(work, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument(
        "--work", type=Path, default=Path(__file__).parent / "data", help="folder for the generated text"
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 500, 2000], help="megabytes of text")
    parser.add_argument("--executors", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--split", default="128m", help="spark.sql.files.maxPartitionBytes")
    parser.add_argument("--only-data", action="store_true", help="only generate the text")
    options = parser.parse_args()
    rows = list(csv.reader(TABLE.open())) if TABLE.exists() else []
    for megabytes in options.sizes:
        files = make(options.data, options.work, megabytes)
        for number in [] if options.only_data else options.executors:
            jobs = (
                on_spark(files, number, options.repeat, options.split)
                if number
                else without_spark(files, options.repeat)
            )
            for what, seconds, *others in jobs:
                row = [str(megabytes), what, f"{seconds:.2f}", f"{megabytes / seconds:.0f}", *map(str, others)]
                rows = sorted(
                    [each for each in rows if each[:2] != row[:2]] + [row], key=lambda each: (int(each[0]), each[1])
                )
                print(row, flush=True)
                with TABLE.open("w", newline="") as file:
                    csv.writer(file).writerows(rows)
    print(f"| {' | '.join(COLUMNS)} |\n|---:|---|{'---:|' * (len(COLUMNS) - 2)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()

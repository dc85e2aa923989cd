"""Count and encode files on Apache Spark. Spark reads the files and writes folders of parquet files.

Shards in other formats are written by our own tasks.
"""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..data.options import ReadOptions
from ..errors import ArgumentError, DataError, OutputExistsError, Setting, UserError
from ..formats.counts_folder import TOTALS
from ..jobs.count import CountOptions, CountReport
from ..jobs.encode_options import EncodeOptions, EncodeReport, format_setting
from ..jobs.encoded import DocumentEncoder
from ..jobs.shards import Layout
from ..storage.atomic import new_folder
from ..tokenizer import Tokenizer
from . import count_chunks, select, with_ids
from .reading import read_documents
from .task_errors import reported_error
from .tasks import WRITTEN, PickledEncoder, write_task

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCH_ROWS = 1000
"""Rows per arrow batch. Spark's default of 10,000 may take gigabytes if documents are long."""


def count_files(inputs: Sequence[str], output: str, options: CountOptions, master: str | None = None) -> CountReport:
    """Count the chunks of files into a new folder, sorted by count within each file.

    Only the options `split`, `special_tokens` and `reading` are used. `master` is the cluster; by default that of
    Spark's configuration, or this machine.
    """
    with _session(master) as session, _new_folder(session, output):
        from pyspark.sql import Observation, functions

        observation = Observation()
        counts = count_chunks(
            read_documents(session, inputs, options.reading),
            pattern=options.split,
            special_tokens=options.special_tokens,
            errors=options.reading.errors,
            max_document_bytes=options.reading.max_document_bytes,
            observation=observation,
        )
        # Sorted, a cutoff skips most row groups. A dictionary of chunks, which are unique, would be useless.
        writer = counts.sortWithinPartitions(functions.desc("count")).write
        writer.option("parquet.enable.dictionary#chunk", "false").parquet(output, compression="zstd")
        found = {name: value or 0 for name, value in observation.get.items()}
        totals = {"unique": found["unique"], "files": _checksums(session, output)}
        _write(session, f"{output}/{TOTALS}", json.dumps(totals))
    return CountReport(
        output,
        total=found["total"],
        unique=found["unique"],
        bytes_read=found["bytes_counted"] + found["dropped_bytes"],
        dropped_bytes=found["dropped_bytes"],
        longest_chunk=found["longest_chunk"],
    )


def encode_files(
    tokenizer: Tokenizer, inputs: Sequence[str], output: str, options: EncodeOptions, master: str | None = None
) -> EncodeReport:
    """Encode files into a new folder: parquet files with the column `ids`, or a shard for each partition.

    Only the options about marks, special tokens, format, validation and reading are used.
    """
    encoder, layout = options.encoder(tokenizer), options.layout(Path(output), tokenizer)
    is_parquet = options.format == "parquet"
    if "://" in output and not is_parquet:
        remedy = ("copy the folder afterwards, or use ", format_setting("parquet"))
        reason = f"must be a folder that all executors share for {options.format} files"
        raise ArgumentError("output", output, reason, remedy=remedy)
    with _session(master) as session:
        if is_parquet:
            return _write_parquet(session, inputs, layout, output, encoder, options.reading)
        return _write_shards(session, inputs, layout, encoder, options.reading)


def _write_parquet(
    session: SparkSession,
    inputs: Sequence[str],
    layout: Layout,
    output: str,
    encoder: DocumentEncoder,
    reading: ReadOptions,
) -> EncodeReport:
    from pyspark.sql import Observation, functions

    report = EncodeReport(finished=True)
    with _new_folder(session, output):
        texts = read_documents(session, inputs, reading).dropna()
        for part in layout.parts:
            observation = Observation()
            encoded = with_ids(texts, encoder, "text", "ids", reading.max_document_bytes, part=part)
            tokens, documents = functions.sum(functions.size("ids")), functions.count("ids")
            encoded = encoded.observe(observation, tokens.alias("tokens"), documents.alias("documents"))
            encoded.write.parquet(f"{output}/{part}".rstrip("/"), compression="zstd")
            report.add(part, observation.get["tokens"] or 0, observation.get["documents"])
        _write(session, f"{output}/_SUCCESS", "")  # Spark writes one for each part
    return report


def _write_shards(
    session: SparkSession, inputs: Sequence[str], layout: Layout, encoder: DocumentEncoder, reading: ReadOptions
) -> EncodeReport:
    """Write a shard for each partition. A task that runs twice replaces its own files."""
    if layout.folder.exists():
        raise _exists(str(layout.folder))
    report = EncodeReport(finished=True)
    with new_folder(layout.folder.absolute()) as folder:
        layout = replace(layout, folder=folder)
        documents = read_documents(session, inputs, reading)
        texts, has_file = select(documents, ["text"], reading.errors, reading.max_document_bytes)
        task = partial(write_task, PickledEncoder(encoder), layout, has_file, reading.max_document_bytes)
        for row in texts.mapInArrow(task, WRITTEN).collect():
            paths = layout.paths(row["number"], row["part"])
            if not all(path.exists() for path in paths):
                remedy = ("pass a folder that all executors share, or use ", format_setting("parquet"))
                raise DataError(f"an executor has written {paths[0].name} to its own folder", remedy=remedy)
            report.add(row["part"], row["tokens"], row["documents"])
        for unfinished in folder.rglob(".*.tmp"):  # of a task that was killed, or that another one overtook
            unfinished.unlink(missing_ok=True)
        (folder / "_SUCCESS").touch()
    return report


@contextmanager
def _session(master: str | None) -> Iterator[SparkSession]:
    """Start Spark, or use the session that is active. Spark errors are raised as `DataError`."""
    try:
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError:
        raise ImportError("Spark requires pyspark; run pip install 'batchbpe[spark]'") from None
    with warnings.catch_warnings(), _without_tracebacks():
        warnings.filterwarnings("ignore", module=r"pyspark\.")  # about the versions of other packages
        active = SparkSession.getActiveSession()
        session = active or _start(SparkSession.builder, master)
        try:
            yield session
        except (PySparkException, Py4JError) as error:
            raise _problem(error) from error
        finally:
            if not active:
                with suppress(Exception):  # Java may have ended first, by the same signal
                    session.stop()


def _start(builder: Any, master: str | None) -> SparkSession:
    if master is None or master.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the workers are on this machine
    builder = builder.appName("batchbpe").config("spark.sql.execution.arrow.maxRecordsPerBatch", BATCH_ROWS)
    interrupted = signal.getsignal(signal.SIGINT)
    try:
        session: SparkSession = (builder.master(master) if master else builder).getOrCreate()
    except Exception as error:  # of pyspark or py4j, in many classes
        remedy = ("Spark needs Java 17 or later: set JAVA_HOME, or check ", Setting("master"))
        raise UserError(f"cannot start Spark: {_cause(error)}", remedy=remedy) from error
    except KeyboardInterrupt:
        _stop_children()  # Java ignores Ctrl-C while it starts
        raise
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, interrupted)  # pyspark's handler fails while it waits for Java
    session.sparkContext.setLogLevel("OFF")  # errors are raised here as well
    return session


@contextmanager
def _without_tracebacks() -> Iterator[None]:
    """Suppress the tracebacks that py4j logs about interrupts."""

    def is_other(record: logging.LogRecord) -> bool:
        return "while sending command" not in record.getMessage()

    root = logging.getLogger()
    root.addFilter(is_other)
    try:
        yield
    finally:
        root.removeFilter(is_other)


def _problem(error: Exception) -> DataError:
    """Return the error that a task has raised, or what Spark says, with the name of the file."""
    file = re.search(r"reading file (\S+?)\.?\s", str(error))
    return reported_error(str(error)) or DataError(_cause(error), where=file[1] if file else "")


def _cause(error: Exception) -> str:
    """Return the innermost cause of a Java exception, on one line and without its class."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith("An error occurred while calling ")]
    causes = [line for line in lines if line.startswith("Caused by: ")]
    cause = (causes or lines or [type(error).__name__])[-1 if causes else 0]
    return re.sub(r"^(Caused by: |: )?([\w.$]+: )?", "", cause).rstrip(".")


@contextmanager
def _new_folder(session: SparkSession, output: str) -> Iterator[None]:
    """Remove the folder if writing it fails. It may be in any file system that Spark writes to."""
    system, path = _locate(session, output)
    if system.exists(path):
        raise _exists(output)
    try:
        yield
    except BaseException as error:
        if "[PATH_ALREADY_EXISTS]" in str(error):  # another job has written it in the meantime
            raise _exists(output) from None
        with suppress(Exception):  # Java may have ended first, by the same signal
            system.delete(path, True)
        raise


def _exists(output: str) -> OutputExistsError:
    return OutputExistsError(f"{output} already exists", remedy="remove it, or choose another folder")


def _locate(session: SparkSession, name: str) -> tuple[Any, Any]:
    """Return the file system of a path or URL, and the path in it, as Hadoop objects."""
    jvm: Any = session._jvm
    path = jvm.org.apache.hadoop.fs.Path(name)
    return path.getFileSystem(session._jsc.hadoopConfiguration()), path


def _write(session: SparkSession, name: str, content: str) -> None:
    system, path = _locate(session, name)
    stream = system.create(path)
    stream.writeBytes(content)
    stream.close()


def _checksums(session: SparkSession, folder: str) -> dict[str, int]:
    """Return the name and the checksum of each parquet file in a folder."""
    from pyspark.sql import functions

    files = session.read.format("binaryFile").option("pathGlobFilter", "*.parquet").load(folder)
    return {row[0].rpartition("/")[2]: row[1] for row in files.select("path", functions.crc32("content")).collect()}


def _stop_children() -> None:
    """Terminate the processes that this one has started, where the system lists them."""
    for child in _children():
        with suppress(OSError):  # it has ended
            os.kill(child, signal.SIGTERM)


def _children() -> list[int]:
    """Return the processes that this one has started, or an empty list if the system does not list them (Windows)."""
    me = os.getpid()
    with suppress(OSError):  # Linux
        return [int(child) for child in Path(f"/proc/{me}/task/{me}/children").read_text().split()]
    with suppress(OSError, subprocess.CalledProcessError):  # other Unix systems
        listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
        rows = (line.split() for line in listed.splitlines())
        return [int(child) for child, parent in rows if int(parent) == me]
    return []

"""`batchbpe count`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from ..errors import plural
from .app import command, describe, fail_if_any, on_one_line
from .options import (
    PATTERN_HELP,
    Engine,
    Inputs,
    Json,
    Master,
    NormalizationForm,
    Quiet,
    Resume,
    SkipErrors,
    Threads,
    document_limit,
    is_spark,
    option,
    reads,
)
from .output import note, print_json
from .signals import stoppable
from .usage import UsageError, number

if TYPE_CHECKING:
    from ..data.options import Reading
    from ..jobs.count import CountOptions, CountReport

LONG_CHUNK = 10_000
"""Chunks of more bytes than this usually come from corrupt files."""


Output = Annotated[
    str,
    option(
        "Output file: .parquet, or .csv for the paper's program. With Spark, a folder.",
        "--output",
        "-o",
        group="Output",
        metavar="FILE",
    ),
]
SpecialTokens = Annotated[
    list[str] | None,
    option("Special token to leave out of the counts. Can be repeated.", group="Splitting", metavar="TOKEN"),
]
MaxChunkBytes = Annotated[
    int | None,
    option(
        "Skip chunks of more than N bytes (e.g. from corrupt files).",
        group="Data",
        **number(int, least=1, most=1 << 40),
    ),
]
MaxMemory = Annotated[
    float | None,
    option(
        "Memory limit in gigabytes; counts beyond it go to disk.",
        group="Execution",
        **number(float, least=0.5, most=1_000_000),
    ),
]


@command
@reads(max_document_bytes=document_limit("1 GiB, or 1/16 of --max-memory"))
def count(
    inputs: Inputs,
    output: Output,
    *,
    pattern: Annotated[
        str | None, option(PATTERN_HELP, group="Splitting", metavar="PATTERN", show_default="gpt4")
    ] = None,
    normalization: NormalizationForm = None,
    special_token: SpecialTokens = None,
    like: Annotated[
        str | None,
        option(
            "Tokenizer whose split and special tokens to use, as in `train --like`.",
            group="Splitting",
            metavar="MODEL",
        ),
    ] = None,
    reading: dict[str, Any],
    max_chunk_bytes: MaxChunkBytes = None,
    max_memory: MaxMemory = None,
    resume: Resume = False,
    skip_errors: SkipErrors = False,
    threads: Threads = None,
    engine: Engine = "local",
    master: Master = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Count the chunks of documents, to train on them later.

    Example: batchbpe count data/*.parquet -o counts.parquet
    """
    from ..data.corpus import Corpus
    from ..data.options import default_max_document_bytes, from_keywords
    from ..jobs.count import CountOptions, count_files
    from ..patterns import Split
    from ..training.like import counting_for, fixed_split
    from ..training.options import split_for
    from ..util.memory import peak_memory

    not_on_spark = {
        "--limit-bytes": "limit_bytes" in reading,
        "--sample": "sample" in reading,
        "--max-chunk-bytes": max_chunk_bytes is not None,
        "--max-memory": max_memory is not None,
        "--resume": resume,
        "--skip-errors": skip_errors,
        "--threads": threads is not None,
    }
    on_spark = is_spark(engine, master, output, not_on_spark)
    if not Path(output).name:
        raise UsageError("--output must be a file name")
    max_memory_bytes = None if max_memory is None else int(max_memory * 1e9)
    reading.setdefault("max_document_bytes", default_max_document_bytes(max_memory_bytes))
    read_options, sampling = from_keywords(cast("Reading", reading))
    model, special_tokens = counting_for(like, special_token or [])
    given_models = {} if model is None else {"like": model}
    options = CountOptions(
        split=split_for(given_models, pattern, normalization) or Split.of("gpt4"),
        special_tokens=special_tokens,
        max_chunk_bytes=max_chunk_bytes,
        reading=read_options,
        sampling=sampling,
    )
    start = time.monotonic()
    if on_spark:
        from ..spark import files

        report = files.count_files(inputs, output, options, master)
    else:
        with stoppable(waits="-" in inputs) as stop, fixed_split(given_models):
            report = count_files(
                Corpus(files=inputs, options=options.reading).sources,
                Path(output),
                options,
                resume=resume,
                skip_errors=skip_errors,
                describe=describe,
                max_memory=max_memory_bytes,
                threads=threads,
                stop=stop,
                progress=not quiet,
            )
    seconds = time.monotonic() - start
    if json:
        more = {"failed": on_one_line(report.failed), "seconds": round(seconds, 3), "peak_memory": peak_memory()}
        print_json(asdict(report) | more)
    note(_summary(report, seconds, on_spark=on_spark, is_resumed=resume), quiet or json)
    for warning in _warnings(report, options, on_spark=on_spark):
        note(warning, quiet)
    fail_if_any(report.failed)


def _summary(report: CountReport, seconds: float, *, on_spark: bool, is_resumed: bool) -> str:
    from ..util.memory import peak_memory
    from ..util.progress import format_size, memory_used

    counted = f"counted {plural(report.total, 'chunk')}, {report.unique:,} of them unique"
    size = f"in {format_size(report.bytes_read)} of text " if report.bytes_read else ""
    source = "on Spark" if on_spark else f"from {plural(report.files, 'file')}"
    speed = f" ({format_size(report.bytes_read / max(seconds, 1e-9))}/s)" if size and not is_resumed else ""
    effort = ", ".join(filter(None, [f"{seconds:.1f} s{speed}", memory_used(peak_memory())]))
    return f"{counted}, {size}{source}; {effort}\n{report.output}"


def _warnings(report: CountReport, options: CountOptions, *, on_spark: bool) -> Iterator[str]:
    from ..counts.counter import dropped_text

    if not report.bytes_read and not report.total:
        yield "warning: no text found"
    if options.special_tokens and report.total and not report.bytes_read:
        yield "warning: special tokens have no effect on chunk counts"
    if report.dropped_bytes:
        yield f"warning: {dropped_text(report.dropped_bytes, options.split)}"
    if report.skipped_chunks:
        limit = plural(options.max_chunk_bytes or 0, "byte")
        yield f"skipped {plural(report.skipped_chunks, 'chunk')} longer than {limit}"
    if report.longest_chunk > LONG_CHUNK:
        remedy = "" if on_spark else "; --max-chunk-bytes skips such chunks"
        yield f"the longest chunk has {report.longest_chunk:,} bytes{remedy}"

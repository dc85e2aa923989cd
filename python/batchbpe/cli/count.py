"""`batchbpe count`."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from ..errors import plural
from .app import command, describe, fail_if_any, note, on_one_line, print_json, stoppable
from .options import (
    PATTERN_HELP,
    Engine,
    Inputs,
    Json,
    JsonlField,
    LimitBytes,
    Master,
    Quiet,
    ReplaceErrors,
    Resume,
    Sample,
    Seed,
    SkipErrors,
    TextColumn,
    Threads,
    document_limit,
    error_policy,
    is_spark,
    option,
    sampled_share,
)
from .usage import UsageError, number

LONG_CHUNK = 10_000
"""Chunks of more bytes than this usually come from corrupt files."""


@command
def count(
    inputs: Inputs,
    output: Annotated[
        str,
        option(
            "Output file: .parquet, or .csv for the paper's program. With Spark, a folder.",
            "--output",
            "-o",
            metavar="FILE",
        ),
    ],
    pattern: Annotated[str, option(PATTERN_HELP, metavar="PATTERN")] = "gpt4",
    special_token: Annotated[
        list[str] | None, option("Special token to leave out of the counts. Can be repeated.", metavar="TOKEN")
    ] = None,
    text_column: TextColumn = "text",
    jsonl_field: JsonlField = None,
    limit_bytes: LimitBytes = None,
    sample: Sample = None,
    seed: Seed = 0,
    replace_errors: ReplaceErrors = False,
    max_document_bytes: Annotated[int | None, document_limit("1 GiB, or 1/16 of --max-memory")] = None,
    max_chunk_bytes: Annotated[
        int | None,
        option("Skip chunks of more than N bytes (e.g. from corrupt files).", **number(int, least=1, most=1 << 40)),
    ] = None,
    max_memory: Annotated[
        float | None,
        option("Memory limit in gigabytes; counts beyond it go to disk.", **number(float, least=0.5, most=1_000_000)),
    ] = None,
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
    from ..counts.counter import dropped_text
    from ..data.corpus import Corpus
    from ..data.options import default_max_document_bytes
    from ..jobs import count as local
    from ..util.memory import peak_memory
    from ..util.progress import format_size

    on_spark = is_spark(
        engine,
        master,
        output,
        {
            "--limit-bytes": limit_bytes is not None,
            "--sample": sample is not None,
            "--max-chunk-bytes": max_chunk_bytes is not None,
            "--max-memory": max_memory is not None,
            "--resume": resume,
            "--skip-errors": skip_errors,
            "--threads": threads is not None,
        },
    )
    if not Path(output).name:
        raise UsageError("--output must be a file name")
    max_memory_bytes = None if max_memory is None else int(max_memory * 1e9)
    options = local.CountOptions(
        pattern=pattern,
        special_tokens=special_token or [],
        errors=error_policy(replace_errors),
        sample=sampled_share(sample, seed),
        seed=seed,
        limit_bytes=limit_bytes,
        max_chunk_bytes=max_chunk_bytes,
        max_document_bytes=max_document_bytes or default_max_document_bytes(max_memory_bytes),
        columns=[text_column, jsonl_field],
    )
    start = time.monotonic()
    if on_spark:
        from ..spark import files

        report = files.count_files(inputs, output, options, master)
    else:
        with stoppable(waits="-" in inputs) as stop:
            report = local.count_files(
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
    size = f"in {format_size(report.bytes_read)} of text " if report.bytes_read else ""
    speed = f" ({format_size(report.bytes_read / max(seconds, 1e-9))}/s)" if size and not resume else ""
    if json:
        more = {"failed": on_one_line(report.failed), "seconds": round(seconds, 3), "peak_memory": peak_memory()}
        print_json(asdict(report) | more)
    note(
        f"counted {plural(report.total, 'chunk')}, {report.unique:,} of them unique, {size}"
        + ("on Spark" if on_spark else f"from {plural(report.files, 'file')}")
        + f"; {seconds:.1f} s{speed}, {format_size(peak_memory())} of memory\n{report.output}",
        quiet or json,
    )
    if not report.bytes_read and not report.total:
        note("warning: no text found", quiet)
    if special_token and report.total and not report.bytes_read:
        note("warning: --special-token has no effect on chunk counts", quiet)
    if report.dropped_bytes:
        note(f"warning: {dropped_text(report.dropped_bytes, options.pattern)}", quiet)
    if report.skipped_chunks:
        note(
            f"skipped {plural(report.skipped_chunks, 'chunk')} longer than {plural(max_chunk_bytes or 0, 'byte')}",
            quiet,
        )
    if report.longest_chunk > LONG_CHUNK:
        remedy = "" if on_spark else "; --max-chunk-bytes skips such chunks"
        note(f"the longest chunk has {report.longest_chunk:,} bytes{remedy}", quiet)
    fail_if_any(report.failed)

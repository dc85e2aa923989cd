"""`batchbpe count`."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from .app import command, describe, fail_if_any, find_sources, note, on_one_line, plural, print_json, stoppable
from .options import (
    Inputs,
    Json,
    JsonlField,
    LimitBytes,
    Pattern,
    Quiet,
    ReplaceErrors,
    Resume,
    Sample,
    Seed,
    SkipErrors,
    SpecialTokens,
    TextColumn,
    Threads,
    option,
)

LONG_CHUNK = 10_000
"""Chunks of more bytes than this usually come from corrupt files."""


@command
def count(
    inputs: Inputs,
    output: Annotated[Path, option("File of counts: .parquet, or .csv for the paper's program.", "--output", "-o")],
    pattern: Pattern = "gpt4",
    special_token: SpecialTokens = None,
    text_column: TextColumn = "text",
    jsonl_field: JsonlField = None,
    limit_bytes: LimitBytes = None,
    sample: Sample = 1.0,
    seed: Seed = 0,
    replace_errors: ReplaceErrors = False,
    max_document_bytes: Annotated[
        int | None,
        option(
            "Largest row, jsonl line, or part of a text that cannot be cut. Default: 1 GiB, or 1/16 of --max-memory.",
            min=1,
            max=1 << 40,
        ),
    ] = None,
    max_chunk_bytes: Annotated[
        int | None, option("Skip chunks longer than this (e.g. from corrupt files).", min=1, max=1 << 40)
    ] = None,
    max_memory: Annotated[
        float | None, option("Memory limit in gigabytes; larger counts go to disk.", min=0.5, max=1e6)
    ] = None,
    resume: Resume = False,
    skip_errors: SkipErrors = False,
    threads: Threads = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Count the chunks of documents, once for many training runs.

    Example: batchbpe count data/*.parquet -o counts.parquet
    """
    from ..counting import dropped_text
    from ..data.options import default_max_document_bytes
    from ..jobs.count import CountOptions, count_files
    from ..memory import peak_memory
    from ..progress import format_size

    max_memory_bytes = None if max_memory is None else int(max_memory * 1e9)
    options = CountOptions(
        pattern=pattern,
        special_tokens=special_token or [],
        errors="replace" if replace_errors else "strict",
        sample=sample,
        seed=seed,
        limit_bytes=limit_bytes,
        max_chunk_bytes=max_chunk_bytes,
        max_document_bytes=max_document_bytes or default_max_document_bytes(max_memory_bytes),
        columns=[text_column, jsonl_field],
    )
    start = time.monotonic()
    with stoppable(waits="-" in inputs) as stop:
        report = count_files(
            find_sources(inputs, text_column, jsonl_field, options.errors, options.max_document_bytes),
            output,
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
    speed = "" if resume else f" ({format_size(report.bytes_read / max(seconds, 1e-9))}/s)"
    if json:
        more = {"failed": on_one_line(report.failed), "seconds": round(seconds, 3), "peak_memory": peak_memory()}
        print_json(asdict(report) | more)
    note(
        f"counted {plural(report.total, 'chunk')}, {report.unique:,} of them unique, in "
        f"{format_size(report.bytes_read)} of text from {plural(report.files, 'file')}; "
        f"{seconds:.1f} s{speed}, {format_size(peak_memory())} of memory\n{report.output}",
        quiet or json,
    )
    if report.dropped_bytes:
        note(f"warning: {dropped_text(report.dropped_bytes, options.pattern)}", quiet)
    if report.skipped_chunks:
        note(f"skipped {plural(report.skipped_chunks, 'chunk')} longer than {max_chunk_bytes} bytes", quiet)
    if report.longest_chunk > LONG_CHUNK:
        note(f"the longest chunk has {report.longest_chunk:,} bytes; --max-chunk-bytes skips such chunks", quiet)
    fail_if_any(report.failed)

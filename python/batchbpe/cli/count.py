"""The command that counts."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from .app import command, fail_if_any, many, note, print_json, shown, sources_of, stoppable
from .options import (
    Inputs,
    Json,
    JsonlField,
    LimitBytes,
    MaxDocumentBytes,
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


@command
def count(
    inputs: Inputs,
    output: Annotated[
        Path, option("The file of counts: .parquet, or .csv as the paper's program reads it.", "--output", "-o")
    ],
    pattern: Pattern = "gpt4",
    special_token: SpecialTokens = None,
    text_column: TextColumn = "text",
    jsonl_field: JsonlField = None,
    limit_bytes: LimitBytes = None,
    sample: Sample = 1.0,
    seed: Seed = 0,
    replace_errors: ReplaceErrors = False,
    max_document_bytes: MaxDocumentBytes = None,
    max_chunk_bytes: Annotated[
        int | None, option("Leave out longer chunks, of corrupt files.", min=1, max=1 << 40)
    ] = None,
    max_memory: Annotated[
        float | None, option("Gigabytes of memory to stay below; the rest goes to disk.", min=0.5, max=1e6)
    ] = None,
    resume: Resume = False,
    skip_errors: SkipErrors = False,
    threads: Threads = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Count the chunks of documents, once for many trainings.

    Example: batchbpe count data/*.parquet -o counts.parquet
    """
    from ..counting import dropped_text
    from ..data.tables import default_max_document_bytes
    from ..jobs.count import Options, count_files
    from ..memory import peak_memory
    from ..progress import size

    max_bytes = None if max_memory is None else int(max_memory * 1e9)
    chosen = Options(
        pattern=pattern,
        special_tokens=special_token or [],
        errors="replace" if replace_errors else "strict",
        sample=sample,
        seed=seed,
        limit_bytes=limit_bytes,
        max_chunk_bytes=max_chunk_bytes,
        max_document_bytes=max_document_bytes or default_max_document_bytes(max_bytes),
        columns=[text_column, jsonl_field],
    )
    start = time.monotonic()
    with stoppable(waits="-" in inputs) as stop:
        report = count_files(
            sources_of(inputs, text_column, jsonl_field, chosen.errors, chosen.max_document_bytes),
            output,
            chosen,
            resume=resume,
            skip_errors=skip_errors,
            max_memory=max_bytes,
            threads=threads,
            stop=stop,
            progress=not quiet,
        )
    seconds = time.monotonic() - start
    speed = f"{size(report.bytes_read / max(seconds, 1e-9))}/s, "
    if json:
        told = {"failed": shown(report.failed), "seconds": round(seconds, 3), "peak_memory": peak_memory()}
        print_json(asdict(report) | told)
    note(
        f"{many(report.total, 'chunk')}, {report.unique:,} of them unique, in {size(report.bytes_read)} of text from "
        f"{many(report.files, 'file')}; {seconds:.1f} s, {'' if resume else speed}{size(peak_memory())} of memory\n"
        f"{report.output}",
        quiet or json,
    )
    if report.dropped_bytes:
        note(dropped_text(report.dropped_bytes, chosen.pattern), quiet)
    if report.skipped_chunks:
        note(f"{report.skipped_chunks:,} chunks of more than {max_chunk_bytes} bytes were left out", quiet)
    if report.longest_chunk > 10_000:
        note(f"the longest chunk has {report.longest_chunk:,} bytes: --max-chunk-bytes leaves such out", quiet)
    fail_if_any(report.failed)

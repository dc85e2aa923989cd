"""`batchbpe encode` and `batchbpe decode`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import typer

from ..data.files import COMPRESSIONS
from ..data.readers import FORMATS
from ..errors import plural
from .app import command, describe, exit_signal, fail_if_any, load, note, on_one_line, print_json
from .options import (
    Engine,
    Json,
    JsonlField,
    LimitBytes,
    Master,
    MaxDocumentBytes,
    ModelFile,
    Quiet,
    RankPattern,
    ReplaceErrors,
    Resume,
    Sample,
    Seed,
    SkipErrors,
    TextColumn,
    Threads,
    error_policy,
    is_spark,
    option,
    sampled_share,
)
from .usage import UsageError, number, one_of

if TYPE_CHECKING:
    from ..jobs.encode import EncodeReport
    from ..tokenizer import Tokenizer

NOT_A_FOLDER = (*FORMATS, *COMPRESSIONS, ".json", ".npz", ".pt")
"""Suffixes of files, which are unlikely to be meant as folders."""


SHARD_TOKENS = 100_000_000
ShardFormat = Literal["bin", "llm.c", "parquet"]


@command
def encode(
    model: ModelFile,
    inputs: Annotated[
        list[str] | None, typer.Argument(help="Documents, as for `count`; standard input if omitted.")
    ] = None,
    output: Annotated[
        str | None,
        option(
            "A .npy or .bin file, or a folder of shards.",
            "--output",
            "-o",
            metavar="PATH",
            show_default="print a line of ids per document",
        ),
    ] = None,
    show: Annotated[bool, option("Print the text as coloured tokens instead of ids.", "--show")] = False,
    format: Annotated[
        ShardFormat,
        option(
            "Shard format: bin (for nanoGPT), llm.c or parquet (a list of ids per document).",
            metavar="FORMAT",
            **one_of(get_args(ShardFormat)),
        ),
    ] = "bin",
    end_of_text: Annotated[str | None, option("Special token to append to each document.", metavar="TOKEN")] = None,
    shard_tokens: Annotated[
        int, option("Start a new shard after about N tokens.", **number(int, least=1))
    ] = SHARD_TOKENS,
    pattern: RankPattern = None,
    text_column: TextColumn = "text",
    jsonl_field: JsonlField = None,
    limit_bytes: LimitBytes = None,
    sample: Sample = None,
    seed: Seed = 0,
    replace_errors: ReplaceErrors = False,
    max_document_bytes: MaxDocumentBytes = None,
    resume: Resume = False,
    skip_errors: SkipErrors = False,
    threads: Threads = None,
    engine: Engine = "local",
    master: Master = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Encode documents as token ids. Special tokens in the text are encoded as plain text.

    Example: batchbpe encode mine.model data/*.parquet -o tokens/
    """
    from ..data.corpus import Corpus
    from ..data.options import MAX_DOCUMENT_BYTES
    from ..errors import Setting, Stopped
    from ..jobs.encode import RECORD, EncodeOptions, encode_files, encode_sources, end_token
    from ..jobs.ids import documents_of, save_ids
    from ..util.progress import Meter, bar

    share = sampled_share(sample, seed)
    tokenizer = load(model, pattern)
    options = EncodeOptions(
        format=format,
        end_of_text=end_of_text,
        shard_tokens=shard_tokens,
        sample=share,
        seed=seed,
        limit_bytes=limit_bytes,
        errors=error_policy(replace_errors),
        columns=[text_column, jsonl_field],
        max_document_bytes=max_document_bytes or MAX_DOCUMENT_BYTES,
    )
    unsupported = {
        "--show": show,
        "--format": format == "llm.c",
        "--shard-tokens": shard_tokens != SHARD_TOKENS,
        "--limit-bytes": limit_bytes is not None,
        "--sample": sample is not None,
        "--resume": resume,
        "--skip-errors": skip_errors,
        "--threads": threads is not None,
    }
    start = time.monotonic()
    if is_spark(engine, master, output, unsupported):
        from ..spark import files

        if output is None or not inputs:
            raise UsageError("--engine spark needs inputs, and a folder as --output")
        report = files.encode_files(tokenizer, inputs, output, options, master)
        if json:
            print_json({"output": output, "tokens": report.tokens, "documents": report.documents})
        _note_encoded(report, "on Spark", start, output, quiet or json)
        return
    if not inputs and sys.stdin.isatty():
        note("reading standard input until Ctrl-D", quiet)
    sources = Corpus(files=inputs or ["-"], options=options.reading).sources
    if show and (json or output):
        raise UsageError("--show cannot be combined with --json or --output")
    path = None if output is None else Path(output)
    if path is None or path.suffix in (".npy", ".bin"):
        only_shards = {
            "--resume": resume,
            "--skip-errors": skip_errors,
            "--format": format != "bin",
            "--shard-tokens": shard_tokens != SHARD_TOKENS,
        }
        for name, is_given in only_shards.items():
            if is_given:
                raise UsageError(f"{name} needs a folder of shards as --output")
        if path and any(source.is_at(path) for source in sources):
            raise UsageError(f"--output must not be one of the inputs, {output}")
        end = end_token(tokenizer, end_of_text)
        encoded = encode_sources(tokenizer, sources, options.sampling, threads, options.errors)
        if path is None:
            _print_ids(tokenizer, documents_of(encoded, end), show=show, json=json)
            return
        meter = Meter(sources)
        with bar("encoding", meter.size, show=not quiet) as update:

            def on_progress(tokens: int) -> None:
                update(meter.done, plural(tokens, "token"))

            tokens = save_ids(encoded, path, tokenizer, end, on_progress)
        if json:
            print_json({"tokens": tokens, "output": output})
        note(f"{plural(tokens, 'token')}\n{output}", quiet or json)
        return
    if path.suffix in NOT_A_FOLDER and not path.is_dir():
        raise UsageError(f"--output must end in .npy or .bin, or be a folder of shards, got {output}")
    try:
        report = encode_files(
            tokenizer,
            sources,
            path,
            options,
            resume=resume,
            skip_errors=skip_errors,
            describe=describe,
            threads=threads,
            progress=not quiet,
        )
    except KeyboardInterrupt as interrupt:
        if not (path / RECORD).exists():
            raise
        stopped = Stopped(
            f"stopped; {output} holds the shards so far", remedy=("continue with ", Setting("resume", True))
        )
        stopped.signal = exit_signal(interrupt)
        raise stopped from None
    if json:
        result = {"tokens": report.tokens, "documents": report.documents, "shards": report.shards}
        print_json({"output": output, **result, "failed": on_one_line(report.failed)})
    _note_encoded(report, f"in {plural(len(report.shards), 'shard')}", start, output, quiet or json)
    fail_if_any(report.failed)


def _note_encoded(report: EncodeReport, where: str, start: float, output: str | None, quiet: bool) -> None:
    encoded = f"encoded {plural(report.tokens, 'token')} of {plural(report.documents, 'document')} {where}"
    note(f"{encoded}; {time.monotonic() - start:.1f} s\n{output}", quiet)


def _print_ids(tokenizer: Tokenizer, documents: Iterable[list[int]], *, show: bool, json: bool) -> None:
    """Print a line of ids for each document, or its text in coloured tokens."""
    from ..analysis.view import Encoding

    for ids in documents:
        if show:
            Encoding(tokenizer, ids).show()
        else:
            sys.stdout.write((str(ids) if json else " ".join(map(str, ids))) + "\n")


@command
def decode(
    model: ModelFile,
    input: Annotated[
        Path | None,
        typer.Argument(
            help="A .npy or .bin file of ids. If omitted or -, read numbers from standard input.", readable=False
        ),
    ] = None,
    output: Annotated[
        Path | None, option("Output file.", "--output", "-o", metavar="FILE", show_default="standard output")
    ] = None,
    pattern: RankPattern = None,
    skip_special_tokens: Annotated[bool, option("Leave out special tokens.", "--skip-special-tokens")] = False,
) -> None:
    """Decode token ids to text.

    Example: batchbpe decode mine.model book.npy
    """
    from ..jobs.ids import decoded, load_ids, parse_ids
    from ..storage.atomic import replacing

    tokenizer = load(model, pattern)
    input = None if str(input) == "-" else input
    if input and output and output.exists() and input.samefile(output):
        raise UsageError(f"--output must not be the input, {output}")
    ids = load_ids(input, tokenizer) if input else parse_ids(sys.stdin.read())
    where = str(input or "standard input")
    parts = decoded(tokenizer, ids, where, skip_special_tokens=skip_special_tokens)
    if output is None:
        sys.stdout.buffer.writelines(parts)
    else:
        with replacing(output) as temporary, temporary.open("wb") as file:
            file.writelines(parts)

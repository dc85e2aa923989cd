"""The commands that encode and decode."""

from __future__ import annotations

import sys
import time
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from .app import command, fail_if_any, load, many, note, print_json, shown, sources_of
from .options import (
    Json,
    JsonlField,
    LimitBytes,
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
    option,
)

NO_FOLDER = (".txt", ".md", ".json", ".jsonl", ".parquet", ".arrow", ".csv", ".npz", ".pt", ".gz", ".zst")
"""Names that end so are hardly meant for folders."""


class ShardFormat(str, Enum):
    """The formats of shards."""

    bin = "bin"
    llm_c = "llm.c"
    parquet = "parquet"


@command
def encode(
    model: ModelFile,
    inputs: Annotated[
        list[str] | None, typer.Argument(help="Files, globs, folders or urls; standard input if none.")
    ] = None,
    output: Annotated[
        Path | None,
        option(
            "A .npy or .bin file, or a folder of shards; by default ids are printed, a line for each document.",
            "--output",
            "-o",
        ),
    ] = None,
    show: Annotated[bool, option("Print the text in coloured tokens instead.", "--show")] = False,
    format: Annotated[
        ShardFormat, option("Of shards: bin, as nanoGPT reads; llm.c; or parquet, a list of ids for each document.")
    ] = ShardFormat.bin,
    end_of_text: Annotated[str | None, option("Put this special token after each document.")] = None,
    shard_tokens: Annotated[
        int, option("Begin another shard after so many tokens, at the end of some megabytes of text.", min=1)
    ] = 100_000_000,
    pattern: RankPattern = None,
    text_column: TextColumn = "text",
    jsonl_field: JsonlField = None,
    limit_bytes: LimitBytes = None,
    sample: Sample = 1.0,
    seed: Seed = 0,
    replace_errors: ReplaceErrors = False,
    max_document_bytes: MaxDocumentBytes = None,
    resume: Resume = False,
    skip_errors: SkipErrors = False,
    threads: Threads = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Encode documents. Special tokens in them are plain text.

    Example: batchbpe encode mine.model data/*.parquet -o tokens/ --end-of-text "<|endoftext|>"
    """
    from ..data.sampling import Selection
    from ..data.tables import MAX_DOCUMENT_BYTES
    from ..jobs import ids
    from ..jobs.encode import RECORD, encode_files, encode_sources, end_token
    from ..progress import Stopped, bar

    tokenizer = load(model, pattern)
    if not inputs and sys.stdin.isatty():
        note("reading standard input, up to Ctrl-D", quiet)
    errors = "replace" if replace_errors else "strict"
    sources = sources_of(inputs or ["-"], text_column, jsonl_field, errors, max_document_bytes)
    selection = Selection(sample, seed, limit_bytes)
    if output is None or output.suffix in (".npy", ".bin"):
        shards = format is not ShardFormat.bin
        for name, given in {"--resume": resume, "--skip-errors": skip_errors, "--format": shards}.items():
            if given:
                raise ValueError(f"{name} is for a folder of shards: give one by --output")
        if show and (json or output):
            raise ValueError("--show prints tokens to be looked at: leave out --json and --output")
        end = end_token(tokenizer, end_of_text)
        encoded = encode_sources(tokenizer, sources, selection, threads, errors)
        if output is None:
            ids.print_ids(tokenizer, encoded, end, show=show, as_json=json)
            return
        with bar("encoding", sum(source.size for source in sources), show=not quiet) as update:
            moved = lambda tokens: update(sum(source.at for source in sources), f"{tokens:,} tokens")  # noqa: E731
            tokens = ids.save_ids(encoded, output, tokenizer, end, moved)
        if json:
            print_json({"tokens": tokens, "output": str(output)})
        note(f"{many(tokens, 'token')}\n{output}", quiet or json)
        return
    if show:
        raise ValueError("--show prints tokens to be looked at: leave out --output")
    if output.suffix in NO_FOLDER and not output.is_dir():
        raise ValueError(f"{output}: give a name that ends in .npy or .bin, or that of a folder of shards")
    start = time.monotonic()
    try:
        record = encode_files(
            tokenizer,
            sources,
            output,
            format=format.value,
            end_of_text=end_of_text,
            shard_tokens=shard_tokens,
            selection=selection,
            errors=errors,
            columns=[text_column, jsonl_field],
            max_document_bytes=max_document_bytes or MAX_DOCUMENT_BYTES,
            resume=resume,
            skip_errors=skip_errors,
            threads=threads,
            progress=not quiet,
        )
    except KeyboardInterrupt:
        done = (output / RECORD).exists()
        raise Stopped(f"stopped; {output} has shards, and --resume goes on with them" if done else "") from None
    if json:
        told = {name: record[name] for name in ("tokens", "documents", "shards")}
        print_json({"output": str(output), **told, "failed": shown(record["failed"])})
    note(
        f"{many(record['tokens'], 'token')} of {many(record['documents'], 'document')} "
        f"in {many(len(record['shards']), 'shard')}; "
        f"{time.monotonic() - start:.1f} s\n{output}",
        quiet or json,
    )
    fail_if_any(record["failed"])


@command
def decode(
    model: ModelFile,
    input: Annotated[
        Path | None, typer.Argument(help="A .npy or .bin file of ids; - or none is numbers on standard input.")
    ] = None,
    output: Annotated[Path | None, option("A file to write; standard output if none.", "--output", "-o")] = None,
    pattern: RankPattern = None,
) -> None:
    """Decode ids to the bytes of the text.

    Example: batchbpe decode mine.model book.npy
    """
    from ..jobs.ids import decoded, load_ids, parse_ids
    from ..storage.atomic import replacing

    tokenizer = load(model, pattern)
    input = None if str(input) == "-" else input
    if input and output and output.exists() and input.samefile(output):
        raise ValueError(f"{output} would be written over what is decoded: give another name")
    ids = load_ids(input, tokenizer) if input else parse_ids(sys.stdin.read())
    if output is None:
        sys.stdout.buffer.writelines(decoded(tokenizer, ids))
    else:
        with replacing(output) as temporary, temporary.open("wb") as file:
            file.writelines(decoded(tokenizer, ids))

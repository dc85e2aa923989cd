"""`batchbpe encode` and `batchbpe decode`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args

import typer

from ..choices import ShardFormat
from ..data.files import COMPRESSIONS
from ..data.readers import FORMATS
from ..errors import plural
from ..jobs import SHARD_TOKENS
from .app import command, describe, fail_if_any, load, on_one_line
from .options import (
    Engine,
    Json,
    Master,
    ModelFile,
    Quiet,
    RankPattern,
    Resume,
    SkipErrors,
    Threads,
    is_spark,
    option,
    reads,
)
from .output import note, print_json
from .signals import exit_signal
from .usage import UsageError, number, one_of

if TYPE_CHECKING:
    from ..data.options import Reading
    from ..data.source import Source
    from ..jobs.encode import EncodeOptions, EncodeReport
    from ..jobs.encoded import Encoded
    from ..tokenizer import Tokenizer

ONE_FILE = (".npy", ".bin")
"""Suffixes of files that contain all ids."""
NOT_A_FOLDER = (*FORMATS, *COMPRESSIONS, ".json", ".npz", ".pt")
"""Suffixes of files, which are unlikely to be meant as folders."""

Documents = Annotated[list[str] | None, typer.Argument(help="Documents, as for `count`; standard input if omitted.")]
Output = Annotated[
    str | None,
    option(
        "A .npy or .bin file, or a folder of shards.",
        "--output",
        "-o",
        metavar="PATH",
        show_default="print a line of ids per document",
    ),
]
Format = Annotated[
    ShardFormat,
    option(
        "Shard format: bin (for nanoGPT), llm.c or parquet (a list of ids per document).",
        metavar="FORMAT",
        **one_of(get_args(ShardFormat)),
    ),
]
EndOfText = Annotated[str | None, option("Special token to append to each document.", metavar="TOKEN")]
AllowSpecial = Annotated[
    bool, option("Encode special tokens in the text as tokens, not as plain text.", "--allow-special")
]
ShardTokens = Annotated[int, option("Start a new shard after about N tokens.", **number(int, least=1))]


@command
@reads()
def encode(
    model: ModelFile,
    *,
    inputs: Documents = None,
    output: Output = None,
    show: Annotated[bool, option("Print the text as colored tokens instead of ids.", "--show")] = False,
    format: Format = "bin",
    end_of_text: EndOfText = None,
    allow_special: AllowSpecial = False,
    shard_tokens: ShardTokens = SHARD_TOKENS,
    pattern: RankPattern = None,
    reading: dict[str, Any],
    resume: Resume = False,
    skip_errors: SkipErrors = False,
    threads: Threads = None,
    engine: Engine = "local",
    master: Master = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Encode documents as token ids.

    Example: batchbpe encode mine.model data/*.parquet -o tokens/
    """
    from ..data.corpus import Corpus
    from ..data.options import from_keywords
    from ..jobs.encode import EncodeOptions

    tokenizer = load(model, pattern)
    read_options, sampling = from_keywords(cast("Reading", reading))
    options = EncodeOptions(
        format=format,
        end_of_text=end_of_text,
        allow_special=allow_special,
        shard_tokens=shard_tokens,
        reading=read_options,
        sampling=sampling,
    )
    for_shards = {"--resume": resume, "--skip-errors": skip_errors, "--shard-tokens": shard_tokens != SHARD_TOKENS}
    not_on_spark = {
        "--show": show,
        "--format": format == "llm.c",
        "--limit-bytes": "limit_bytes" in reading,
        "--sample": "sample" in reading,
        "--threads": threads is not None,
    }
    if is_spark(engine, master, output, not_on_spark | for_shards):
        result, summary = _encode_on_spark(tokenizer, inputs, output, options, master)
    else:
        if show and (json or output):
            raise UsageError("--show cannot be combined with --json or --output")
        path = None if output is None else Path(output)
        _check_output(path, for_shards | {"--format": format != "bin"})
        if not inputs and sys.stdin.isatty():
            note("reading standard input until Ctrl-D", quiet)
        sources = Corpus(files=inputs or ["-"], options=options.reading).sources
        if path is None:
            _print_ids(tokenizer, sources, options, threads, show=show, json=json)
            return
        if path.suffix in ONE_FILE:
            result, summary = _encode_to_file(tokenizer, sources, path, options, threads, quiet)
        else:
            how: dict[str, Any] = {"resume": resume, "skip_errors": skip_errors, "threads": threads}
            result, summary = _encode_to_shards(tokenizer, sources, path, options, progress=not quiet, **how)
    if json:
        print_json({"output": output} | result)
    note(f"{summary}\n{output}", quiet or json)
    fail_if_any(result.get("failed", {}))


def _check_output(path: Path | None, for_shards: dict[str, bool]) -> None:
    if path is None or path.suffix in ONE_FILE:
        for name, is_given in for_shards.items():
            if is_given:
                raise UsageError(f"{name} needs a folder of shards as --output")
    elif path.suffix in NOT_A_FOLDER and not path.is_dir():
        raise UsageError(f"--output must end in .npy or .bin, or be a folder of shards, got {path}")


def _encode_on_spark(
    tokenizer: Tokenizer, inputs: list[str] | None, output: str | None, options: EncodeOptions, master: str | None
) -> tuple[dict[str, Any], str]:
    from ..spark import files

    if output is None or not inputs:
        raise UsageError("--engine spark needs inputs, and a folder as --output")
    start = time.monotonic()
    report = files.encode_files(tokenizer, inputs, output, options, master)
    return {"tokens": report.tokens, "documents": report.documents}, _summary(report, "on Spark", start)


def _encode_to_shards(
    tokenizer: Tokenizer, sources: list[Source], folder: Path, options: EncodeOptions, **how: Any
) -> tuple[dict[str, Any], str]:
    from ..errors import Stopped
    from ..jobs.encode import RECORD, encode_files
    from ..jobs.resume import RESUME

    start = time.monotonic()
    try:
        report = encode_files(tokenizer, sources, folder, options, describe=describe, **how)
    except KeyboardInterrupt as interrupt:
        if not (folder / RECORD).exists():
            raise
        stopped = Stopped(f"stopped; {folder} contains the shards so far", remedy=RESUME)
        stopped.signal = exit_signal(interrupt)
        raise stopped from None
    result = {"tokens": report.tokens, "documents": report.documents, "shards": report.shards}
    summary = _summary(report, f"in {plural(len(report.shards), 'shard')}", start)
    return result | {"failed": on_one_line(report.failed)}, summary


def _summary(report: EncodeReport, where: str, start: float) -> str:
    encoded = f"encoded {plural(report.tokens, 'token')} of {plural(report.documents, 'document')} {where}"
    return f"{encoded}; {time.monotonic() - start:.1f} s"


def _encode_to_file(
    tokenizer: Tokenizer, sources: list[Source], path: Path, options: EncodeOptions, threads: int | None, quiet: bool
) -> tuple[dict[str, Any], str]:
    from ..jobs.encoded import encoding_bar, end_token
    from ..jobs.ids import save_ids

    if any(source.is_at(path) for source in sources):
        raise UsageError(f"--output must not be one of the inputs, {path}")
    end = end_token(tokenizer, options.end_of_text)
    encoded = _encoded(tokenizer, sources, options, threads)
    with encoding_bar(sources, show=not quiet) as on_progress:
        tokens = save_ids(encoded, path, tokenizer, end, on_progress)
    return {"tokens": tokens}, plural(tokens, "token")


def _print_ids(
    tokenizer: Tokenizer, sources: list[Source], options: EncodeOptions, threads: int | None, *, show: bool, json: bool
) -> None:
    """Print a line of ids for each document, or its text in colored tokens."""
    from ..analysis.display import Encoding
    from ..jobs.encoded import end_token
    from ..jobs.ids import documents_of

    end = end_token(tokenizer, options.end_of_text)
    encoded = _encoded(tokenizer, sources, options, threads)
    for ids in documents_of(encoded, end):
        if show:
            Encoding(tokenizer, ids).show()
        else:
            sys.stdout.write((str(ids) if json else " ".join(map(str, ids))) + "\n")


def _encoded(
    tokenizer: Tokenizer, sources: list[Source], options: EncodeOptions, threads: int | None
) -> Iterator[Encoded]:
    from ..jobs.encoded import encode_sources

    errors, allow_special = options.reading.errors, options.allow_special
    return encode_sources(tokenizer, sources, options.sampling, threads, errors, allow_special=allow_special)


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

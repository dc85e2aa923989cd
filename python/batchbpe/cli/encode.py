"""`batchbpe encode`."""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args

import typer

from ..choices import TokenFormat
from ..data.files import COMPRESSIONS
from ..data.readers import FORMATS
from ..errors import plural
from ..jobs import SHARD_TOKENS
from ..util.documentation import page
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
    from ..jobs.encode_options import EncodeOptions, EncodeReport
    from ..tokenizer import Tokenizer

ONE_FILE = (".npy", ".bin")
"""Suffixes of files that contain all ids."""
NOT_A_FOLDER = (*FORMATS, *COMPRESSIONS, ".json", ".npz", ".pt")
"""Suffixes of files, which are unlikely to be meant as folders."""

_special = partial(option, group="Special tokens")
Documents = Annotated[list[str] | None, typer.Argument(help="Documents, as for `count`; standard input if omitted.")]
Output = Annotated[
    str | None,
    option(
        "A .npy or .bin file, or a folder of shards.",
        "--output",
        "-o",
        group="Output",
        metavar="PATH",
        show_default="print a line of ids per document",
    ),
]
Format = Annotated[
    TokenFormat | None,
    option(
        f"Format of the files in the folder: {', '.join(get_args(TokenFormat))} ({page('token-files')}).",
        group="Output",
        metavar="FORMAT",
        show_default="bin, or parquet on Spark",
        **one_of(get_args(TokenFormat)),
    ),
]
AppendEos = Annotated[bool, _special("Put the special token with the role eos after each document.", "--append-eos")]
Eos = Annotated[str | None, _special("Special token for --append-eos.", metavar="TOKEN", show_default="the role eos")]
PrependBos = Annotated[bool, _special("Put the special token with the role bos before each document.", "--prepend-bos")]
Bos = Annotated[str | None, _special("Special token for --prepend-bos.", metavar="TOKEN", show_default="the role bos")]
AllowSpecial = Annotated[
    bool, _special("Encode special tokens in the text as tokens, not as plain text.", "--allow-special")
]
ShardTokens = Annotated[
    int, option("End a shard with the first document at N tokens or more.", group="Output", **number(int, least=1))
]
SplitDocuments = Annotated[
    bool,
    option("End shards at exactly --shard-tokens, even inside a document.", "--split-documents", group="Output"),
]
Validation = Annotated[
    float | None,
    option("Fraction of documents for validation, between 0 and 1; nanogpt needs it.", group="Output", **number(float)),
]


@command
@reads()
def encode(
    model: ModelFile,
    *,
    inputs: Documents = None,
    output: Output = None,
    show: Annotated[bool, option("Print the text as colored tokens instead of ids.", "--show", group="Output")] = False,
    format: Format = None,
    append_eos: AppendEos = False,
    eos: Eos = None,
    prepend_bos: PrependBos = False,
    bos: Bos = None,
    allow_special: AllowSpecial = False,
    shard_tokens: ShardTokens = SHARD_TOKENS,
    split_documents: SplitDocuments = False,
    validation: Validation = None,
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
    from ..jobs.encode_options import EncodeOptions, check_ids_fit

    tokenizer = load(model, pattern)
    if format:
        check_ids_fit(format, tokenizer)  # before options that another format may not need
    read_options, sampling = from_keywords(cast("Reading", reading))
    options = EncodeOptions(
        format=format or ("parquet" if engine == "spark" else "bin"),
        append_eos=_mark(tokenizer, "eos", append_eos, eos),
        prepend_bos=_mark(tokenizer, "bos", prepend_bos, bos),
        allow_special=allow_special,
        shard_tokens=shard_tokens,
        split_documents=split_documents,
        validation=validation,
        reading=read_options,
        sampling=sampling,
    )
    for_shards = {
        "--resume": resume,
        "--skip-errors": skip_errors,
        "--shard-tokens": shard_tokens != SHARD_TOKENS,
        "--split-documents": split_documents,
    }
    not_on_spark = {
        "--show": show,
        "--format nanogpt": format == "nanogpt",
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
        is_other = format is not None and (path is None or path.suffix != f".{format}")
        _check_output(path, for_shards | {"--format": is_other, "--validation": validation is not None})
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


def _mark(tokenizer: Tokenizer, role: str, is_set: bool, name: str | None) -> bool | str:
    """Return the value of `append_eos` or `prepend_bos`."""
    from ..formats.roles import RoleOptions

    if name is None:
        return is_set
    if not is_set:
        raise UsageError(f"--{role} needs {'--append-eos' if role == 'eos' else '--prepend-bos'}")
    RoleOptions(**{role: name}).check(tokenizer.special_tokens)
    return name


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
    return _result(report, options), _summary(report, options, "on Spark", start)


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
    result = _result(report, options) | {"files": report.files, "failed": on_one_line(report.failed)}
    return result, _summary(report, options, f"in {plural(len(report.files), 'file')}", start)


def _result(report: EncodeReport, options: EncodeOptions) -> dict[str, Any]:
    names = ["tokens", "documents"]
    names += ["validation_tokens", "validation_documents"] if options.validation is not None else []
    return {name: getattr(report, name) for name in names}


def _summary(report: EncodeReport, options: EncodeOptions, where: str, start: float) -> str:
    encoded = f"encoded {_tokens_of(report.tokens, report.documents)} {where}"
    if options.validation is not None and not report.validation_documents:
        encoded += ", none for validation (a text file is one document unless --document divides it)"
    elif options.validation is not None:
        encoded += f", including {_tokens_of(report.validation_tokens, report.validation_documents)} for validation"
    return f"{encoded}; {time.monotonic() - start:.1f} s"


def _tokens_of(tokens: int, documents: int) -> str:
    return f"{plural(tokens, 'token')} of {plural(documents, 'document')}"


def _encode_to_file(
    tokenizer: Tokenizer, sources: list[Source], path: Path, options: EncodeOptions, threads: int | None, quiet: bool
) -> tuple[dict[str, Any], str]:
    from ..jobs.encoded import encoding_bar
    from ..jobs.ids import save_ids

    if any(source.is_at(path) for source in sources):
        raise UsageError(f"--output must not be one of the inputs, {path}")
    encoded = options.encoder(tokenizer, threads).sources(sources, options.sampling)
    with encoding_bar(sources, show=not quiet) as on_progress:
        tokens = save_ids(encoded, path, tokenizer, on_progress)
    return {"tokens": tokens}, plural(tokens, "token")


def _print_ids(
    tokenizer: Tokenizer, sources: list[Source], options: EncodeOptions, threads: int | None, *, show: bool, json: bool
) -> None:
    """Print a line of ids for each document, or its text in colored tokens."""
    from ..analysis.display import Encoding
    from ..jobs.ids import documents_of

    encoded = options.encoder(tokenizer, threads).sources(sources, options.sampling)
    for ids in documents_of(encoded):
        if show:
            Encoding(tokenizer, ids).show()
        else:
            sys.stdout.write((str(ids) if json else " ".join(map(str, ids))) + "\n")

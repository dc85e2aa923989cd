"""`batchbpe experiment` and `batchbpe report`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import typer

from ..choices import Objective, Unit
from ..errors import ArgumentError, ArgumentTypeError, DataError, Setting, plural, short
from ..storage.atomic import check_writable, writing
from .app import as_option, as_typed, command
from .options import (
    PATTERN_HELP,
    Document,
    Json,
    NormalizationForm,
    Quiet,
    ReplaceErrors,
    TextColumn,
    error_policy,
    option,
)
from .output import note, print_json, print_rows, print_table
from .policy import load_policy
from .usage import UsageError, count_or, number, one_of, refuse

VOCAB_SIZE = 50_304
KEEP = {name: value for name, value in count_or("all").items() if name != "type"}
MAX_ROWS = 24
"""Maximum number of printed rows of a table."""


Name = Literal["chunks", "stop-words", "freq-cutoff", "batching", "phrases", "mixture", "sweep"]
"""Names of the experiments."""


@command
def experiment(
    name: Annotated[
        Name,
        typer.Argument(
            help="chunks, stop-words, freq-cutoff, batching, phrases, mixture (weights of groups), or sweep (every "
            "combination of --grid).",
            **one_of(get_args(Name)),
        ),
    ],
    data: Annotated[list[str], option("Documents or chunk counts to train on. Can be repeated.", metavar="PATH")],
    output: Annotated[
        Path, option("Output folder for tables, figures and parameters.", "--output", "-o", metavar="FOLDER")
    ],
    heldout: Annotated[
        list[str] | None, option("Held-out documents to evaluate on. Can be repeated.", metavar="PATH")
    ] = None,
    heldout_share: Annotated[
        float | None,
        option("Fraction of the data to hold out if --heldout is not given.", show_default="0.1", **number(float)),
    ] = None,
    vocab_size: Annotated[
        int | None,
        option(
            "Size of each vocabulary.", "--vocab-size", "-n", show_default=str(VOCAB_SIZE), **number(int, least=256)
        ),
    ] = None,
    pattern: Annotated[
        str | None, option(PATTERN_HELP, metavar="PATTERN", show_default="from the counts, or gpt4")
    ] = None,
    normalization: NormalizationForm = None,
    grid: Annotated[
        list[str] | None,
        option(
            "Option and values for sweep, e.g. stop_list_size=0,100; vocab_size for mixture. Can be repeated.",
            metavar="NAME=VALUE,...",
        ),
    ] = None,
    group_column: Annotated[
        str | None, option("Table column or jsonl field with the groups of mixture.", metavar="NAME")
    ] = None,
    by_file: Annotated[bool, option("For mixture: each file is a group.", "--by-file")] = False,
    objective: Annotated[
        Objective | None,
        option(
            "What mixture optimizes: total, worst, gini or bytes-per-token (docs/mixtures.md).",
            metavar="NAME",
            show_default="total",
            **one_of(get_args(Objective)),
        ),
    ] = None,
    per: Annotated[
        Unit | None,
        option(
            "Unit of text whose cost mixture compares: byte, character, or text if all groups have the same content.",
            metavar="UNIT",
            show_default="character",
            **one_of(get_args(Unit)),
        ),
    ] = None,
    trials: Annotated[
        int | None, option("Number of mixtures to train.", show_default="100", **number(int, least=1))
    ] = None,
    keep: Annotated[Any, option("Number of models of mixture or sweep to save, best first, or all.", **KEEP)] = 0,
    text_column: TextColumn = "text",
    document: Document = "file",
    replace_errors: ReplaceErrors = False,
    seed: Annotated[int, option("Random seed for --heldout-share, and for mixture.", **number(int, least=0))] = 0,
    resume: Annotated[bool, option("Continue an interrupted sweep.", "--resume")] = False,
    overwrite: Annotated[bool, option("Write into an existing folder.", "--overwrite")] = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Run an experiment from the paper, a mixture search or a sweep.

    Example: batchbpe experiment stop-words --data data -o stop-words
    """
    from ..experiments import EXPERIMENTS, ExperimentData
    from ..experiments.report import NOT_IN_PAPER

    sweep, chunks, mixture = name == "sweep", name == "chunks", name == "mixture"
    values = _grid(grid or [])
    sizes = [each for each in values if each in ("vocab_size", "add_tokens")]
    given = {"group_column": group_column, "by_file": by_file or None, "objective": objective, "per": per}
    mixing = {each: value for each, value in {**given, "trials": trials}.items() if value is not None}
    no_effect = {
        "--heldout": heldout and (chunks or mixture) and name,
        "--heldout-share": heldout_share is not None and (name if chunks else heldout and "--heldout"),
        "--vocab-size": vocab_size and (name if chunks else next((f"--grid {each}" for each in sizes), "")),
        "--pattern": pattern and "pattern" in values and "--grid pattern",
        "--grid": grid and not (sweep or (mixture and [*values] == ["vocab_size"])) and name,
        "--keep": keep and not (sweep or mixture) and name,
        "--resume": resume and not sweep and name,
        **{f"--{each.replace('_', '-')}": not mixture and name for each in mixing},
    }
    refuse({f"{option_} has no effect with {cause}; remove it": cause for option_, cause in no_effect.items()})
    refuse({"sweep needs --grid, for example --grid vocab_size=8000,16000": sweep and not grid})
    refuse({"mixture needs --group-column or --by-file": mixture and not (group_column or by_file)})
    _check_folder(output, sweep, resume, overwrite)
    files, others = _paths(data), _paths(heldout or []) or None
    options: dict[str, Any] = {"text_column": text_column, "document": document, "errors": error_policy(replace_errors)}
    split = (
        options
        | {"seed": seed, "normalization": normalization}
        | ({} if heldout_share is None else {"heldout_share": heldout_share})
    )
    run = EXPERIMENTS[name]
    with _output_folder(output), _spelling(values):
        if chunks:
            result = run(files=files, pattern=pattern, progress=not quiet, **options)
        elif sweep:
            size = {} if "add_tokens" in values else {"vocab_size": [vocab_size or VOCAB_SIZE]}
            values = ({"pattern": [pattern]} if pattern else {}) | size | values
            resume = resume or not overwrite
            kept = {"folder": output, "resume": resume, "keep": keep}
            result = run(None, others, files=files, grid=values, **kept, progress=not quiet, **split)
        elif mixture:
            chosen = {"vocab_sizes": values.get("vocab_size", [vocab_size or VOCAB_SIZE]), "pattern": pattern}
            result = run(files=files, keep=keep, progress=not quiet, **chosen, **mixing, **split)
        elif name == "phrases":
            chosen = {"vocab_sizes": [vocab_size or VOCAB_SIZE], "pattern": pattern}
            result = run(None, others, files=files, progress=not quiet, **chosen, **split)
        else:
            run = partial(run, vocab_size=vocab_size or VOCAB_SIZE, progress=not quiet)
            result = run(ExperimentData.of(None, others, files=files, pattern=pattern, progress=not quiet, **split))
        written = result.save(output)
    if json:
        print_json({"files": [str(file) for file in written], "findings": dict(result.findings)})
        return
    table = result.table
    print_table(table.column_names, [list(row.values()) for row in table.slice(0, MAX_ROWS).to_pylist()])
    more = f"{plural(table.num_rows - MAX_ROWS, 'more row')} in the csv file\n" if table.num_rows > MAX_ROWS else ""
    sys.stdout.write(f"{more}\n")
    print_rows("findings" if name in NOT_IN_PAPER else "claims of the paper, and results", dict(result.findings))
    note(str(output), quiet)


@command
def report(
    folder: Annotated[
        Path, typer.Argument(help="Output folder of an experiment, or a folder of such folders.", readable=False)
    ],
    quiet: Quiet = False,
) -> None:
    """Summarize experiments on one page.

    Writes report.html, which is self-contained, and report.md.

    Example: batchbpe report stop-words
    """
    from ..experiments import report

    if folder.is_file():
        raise NotADirectoryError(f"{folder} is a file; use the output folder of `batchbpe experiment`")
    note("\n".join(map(str, report(folder))), quiet)


def _check_folder(output: Path, sweep: bool, resume: bool, overwrite: bool) -> None:
    """Refuse to mix results with other files unless --resume or --overwrite is given."""
    from ..experiments.report import SWEEP_FILE

    if output.exists() and not output.is_dir():
        raise FileExistsError(f"{output} is a file; use the path of a folder, which need not exist")
    if resume or overwrite or not output.is_dir() or not any(output.iterdir()):
        return
    if sweep and (output / SWEEP_FILE).exists():
        raise FileExistsError(f"{output} contains a sweep; use --resume to continue it, or --overwrite to start again")
    raise FileExistsError(f"{output} already exists and is not empty; use another folder, or --overwrite")


@contextmanager
def _output_folder(folder: Path) -> Iterator[None]:
    """Create a writable folder before long work, and remove it if the work fails."""
    from ..experiments.report import DESCRIPTION

    new = not folder.exists()
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        check_writable(folder / DESCRIPTION)
        yield
    except BaseException:
        if new:
            with suppress(OSError):  # not empty
                folder.rmdir()
        raise


@contextmanager
def _spelling(grid: Collection[str]) -> Iterator[None]:
    """Describe errors in terms of this command's options: it has --grid, but not --jsonl-field."""
    try:
        yield
    except (ArgumentError, ArgumentTypeError, DataError) as error:
        text = error.render(
            lambda setting: f"--grid {setting}" if setting.parameter in grid else as_option(setting), as_typed
        )
        raise (UsageError if error.parameter else DataError)(text) from error


def _paths(inputs: list[str]) -> list[Path | str]:
    """Return the files of the inputs as paths, and URLs as strings."""
    from ..data.paths import files_at

    if "-" in inputs:
        raise UsageError("experiments read the data more than once; save standard input to a file")
    return [location for each in inputs for location in files_at(each)]


def _grid(given: list[str]) -> dict[str, Any]:
    """Parse options and their values."""
    from ..patterns import PATTERNS

    parsers = _grid_parsers()
    grid: dict[str, Any] = {}
    for each in given:
        name, _, text = each.partition("=")
        name = name.strip().replace("-", "_")
        if not text:
            raise ArgumentError("grid", each, "must be NAME=VALUE,…", remedy="for example vocab_size=8000,16000")
        if name not in parsers:
            raise UsageError(f"--grid {name} is unknown; use one of {', '.join(parsers)}")
        parts = text.split(",") if name == "pattern" else [part.strip() for part in text.split(",")]
        if name == "pattern" and not set(parts) <= set(PATTERNS):
            if set(parts) & set(PATTERNS):
                reason = "must not combine regular expressions, which may contain commas, with named patterns"
                raise ArgumentError("grid", each, reason, remedy=("repeat ", Setting("grid"), " for each"))
            parts = [text]
        try:
            with _spelling([name]):
                grid.setdefault(name, {}).update((part, parsers[name](part)) for part in parts)
        except _WrongValue as error:
            raise UsageError(f"--grid {name} must be a list of {error}, got {short(text)}") from None
    # Only policies keep the names that were typed; other values are their own names.
    return {name: values if name == "policy" else list(values.values()) for name, values in grid.items()}


class _WrongValue(ValueError):
    """A value of the grid that is not of the expected kind."""


def _grid_parsers() -> dict[str, Callable[[str], Any]]:
    """Return the options that can be in a grid on the command line, and what parses their values."""
    from ..options import shell_options
    from ..phrases.options import PhraseOptions
    from ..training.options import TrainingOptions

    def number(text: str, kind: type = int, noun: str = "integers") -> Any:
        try:
            return kind(text)
        except ValueError:
            raise _WrongValue(noun) from None

    def switch(text: str) -> bool:
        if text not in ("true", "false"):
            raise _WrongValue("true and false")
        return text == "true"

    def count_or_auto(text: str) -> int | str:
        return text if text == "auto" else number(text, noun="integers and auto")

    by_type: dict[type, Callable[[str], Any]] = {int: number, bool: switch, str: str, type(None): number}
    fields = (each for options in (TrainingOptions, PhraseOptions) for each in shell_options(options))
    return {
        "vocab_size": number,
        "pattern": str,
        **{each.name: by_type[type(each.default)] for each in fields},
        "policy": load_policy,
        "phrases": count_or_auto,
        "phrase_sample": partial(number, kind=float, noun="numbers"),
        "base": str,
        "like": str,
    }

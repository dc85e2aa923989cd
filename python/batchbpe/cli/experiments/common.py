"""What the experiments have in common: their options, the output folder, and printing results."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...errors import ArgumentError, ArgumentTypeError, DataError, plural
from ...storage.atomic import check_writable, writing
from ..app import as_option, as_typed, command
from ..options import (
    PATTERN_HELP,
    Document,
    Json,
    NormalizationForm,
    Quiet,
    ReplaceErrors,
    TextColumn,
    error_policy,
    option,
    with_options,
)
from ..output import note, print_json, print_rows, print_table
from ..usage import UsageError, number, refuse

if TYPE_CHECKING:
    from ...experiments import Result

VOCAB_SIZE = 50_304
MAX_ROWS = 24
"""Maximum number of printed rows of a table."""

Data = Annotated[list[str], option("Documents or chunk counts. Can be repeated.", group="Data", metavar="PATH")]
DocumentsOnly = Annotated[
    list[str], option("Documents, not chunk counts. Can be repeated.", group="Data", metavar="PATH")
]
Heldout = Annotated[
    list[str] | None, option("Held-out documents to evaluate on. Can be repeated.", group="Data", metavar="PATH")
]
HeldoutShare = Annotated[
    float | None,
    option(
        "Fraction of the data to hold out if --heldout is not given.",
        group="Data",
        show_default="0.1",
        **number(float),
    ),
]
VocabSize = Annotated[int, option("Size of each vocabulary.", "--vocab-size", "-n", **number(int, least=256))]
Pattern = Annotated[
    str | None, option(PATTERN_HELP, group="Splitting", metavar="PATTERN", show_default="from the counts, or gpt4")
]
Output = Annotated[
    Path,
    option("Output folder for tables, figures and parameters.", "--output", "-o", group="Output", metavar="FOLDER"),
]
Seed = Annotated[int, option("Random seed.", group="Execution", **number(int, least=0))]
Resume = Annotated[bool, option("Continue an interrupted experiment.", "--resume", group="Execution")]
Overwrite = Annotated[bool, option("Write into an existing folder.", "--overwrite", group="Output")]

FIRST: dict[str, tuple[Any, Any]] = {
    "data": (Data, Parameter.empty),
    "output": (Output, Parameter.empty),
    "heldout": (Heldout, None),
    "heldout_share": (HeldoutShare, None),
}
"""Types and defaults of the options that every experiment has, before its own."""
LAST: dict[str, tuple[Any, Any]] = {
    "pattern": (Pattern, None),
    "normalization": (NormalizationForm, None),
    "text_column": (TextColumn, "text"),
    "document": (Document, "file"),
    "replace_errors": (ReplaceErrors, False),
    "seed": (Seed, 0),
    "resume": (Resume, False),
    "overwrite": (Overwrite, False),
    "quiet": (Quiet, False),
    "json": (Json, False),
}
"""Those after its own."""


def experiment(*without: str, takes_counts: bool = True) -> Callable[[Callable[..., Result]], Callable[..., None]]:
    """Return a decorator that turns a function that runs an experiment into a command with the options above.

    The function receives them as one dict, its parameter `given`, whose keys are parameters of the experiment: also
    `folder`, if it can be resumed. `without` are the names of options that the experiment does not have.
    """
    first = FIRST if takes_counts else FIRST | {"data": (DocumentsOnly, Parameter.empty)}
    options = {name: each for name, each in (first | LAST).items() if name not in without}

    def decorate(function: Callable[..., Result]) -> Callable[..., None]:
        @functools.wraps(function)
        def run(*, given: dict[str, Any], **own: Any) -> None:
            output, overwrite, quiet, json = (given.pop(name) for name in ("output", "overwrite", "quiet", "json"))
            _check_folder(output, given.get("resume"), overwrite)
            arguments = _arguments(given) | {"progress": not quiet}
            if "resume" in given:
                arguments |= {"folder": output, "resume": given["resume"] or not overwrite}
            with _output_folder(output), spelling():
                result = function(**own, given=arguments)
                written = result.save(output)
            if json:
                print_json({"files": [str(file) for file in written], "findings": dict(result.findings)})
            else:
                _show(result)
                note(str(output), quiet)

        function.__annotations__["return"] = None  # `Result` is only known to type checkers
        call = with_options("given", options, lambda given: given)(run)
        signature = inspect.signature(call)
        ordered = sorted(signature.parameters.values(), key=lambda each: (each.name in LAST) - (each.name in FIRST))
        call.__signature__ = signature.replace(parameters=ordered)  # type: ignore[attr-defined]
        call.__annotations__ = function.__annotations__  # which `wraps` does not copy since Python 3.14
        return command(call)

    return decorate


def _arguments(given: dict[str, Any]) -> dict[str, Any]:
    """Return what was given on the command line as arguments of an experiment."""
    held = {name: given[name] for name in ("heldout", "heldout_share") if given.get(name) is not None}
    refuse({"--heldout-share has no effect with --heldout; remove it": len(held) == 2})
    if "heldout" in held:
        held["heldout"] = _paths(held["heldout"])
    names = ("pattern", "normalization", "text_column", "document", "seed")
    arguments = {name: given[name] for name in names if name in given}
    return {"files": _paths(given["data"]), **held, **arguments, "errors": error_policy(given["replace_errors"])}


def _paths(inputs: list[str]) -> list[Path | str]:
    """Return the files of the inputs as paths, and URLs as strings."""
    from ...data.paths import files_at

    if "-" in inputs:
        raise UsageError("experiments read the data more than once; save standard input to a file")
    return [location for each in inputs for location in files_at(each)]


def _check_folder(output: Path, resume: bool | None, overwrite: bool) -> None:
    """Refuse to mix results with other files unless --resume or --overwrite is given. Not all can be resumed."""
    from ...experiments.report import RUNS_FILE

    if output.exists() and not output.is_dir():
        raise FileExistsError(f"{output} is a file; use the path of a folder, which need not exist")
    if resume or overwrite or not output.is_dir() or not any(output.iterdir()):
        return
    if resume is not None and (output / RUNS_FILE).exists():
        reason = "contains results of an experiment; use --resume to continue it, or --overwrite to start again"
        raise FileExistsError(f"{output} {reason}")
    raise FileExistsError(f"{output} already exists and is not empty; use another folder, or --overwrite")


@contextmanager
def _output_folder(folder: Path) -> Iterator[None]:
    """Create a writable folder before long work, and remove it if the work fails."""
    from ...experiments.report import DESCRIPTION

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
def spelling(grid: Collection[str] = ()) -> Iterator[None]:
    """Describe errors in terms of these commands' options: --grid for its options, and no --jsonl-field."""
    try:
        yield
    except (ArgumentError, ArgumentTypeError, DataError) as error:
        text = error.render(
            lambda setting: f"--grid {setting}" if setting.parameter in grid else as_option(setting), as_typed
        )
        raise (UsageError if error.parameter else DataError)(text) from error


def _show(result: Result) -> None:
    """Print the main table and the findings."""
    from ...experiments.report import IN_PAPER

    table = result.table
    print_table(table.column_names, [list(row.values()) for row in table.slice(0, MAX_ROWS).to_pylist()])
    more = f"{plural(table.num_rows - MAX_ROWS, 'more row')} in the csv file\n" if table.num_rows > MAX_ROWS else ""
    sys.stdout.write(f"{more}\n")
    if result.findings:
        print_rows("claims of the paper, and results" if result.name in IN_PAPER else "findings", dict(result.findings))


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
    from ...experiments import report

    if folder.is_file():
        raise NotADirectoryError(f"{folder} is a file; use the output folder of `batchbpe experiment`")
    note("\n".join(map(str, report(folder))), quiet)

"""The commands for the paper's experiments, and for a page of what they found."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from ..storage.atomic import check_writable
from .app import command, note, print_json, print_rows, print_table, sources_of
from .options import Json, Quiet, ReplaceErrors, Seed, TextColumn, option

VOCAB_SIZE = 50_304
ROWS = 24
"""So many of a table are printed."""


class Name(str, Enum):
    """What can be done."""

    chunks = "chunks"
    stop_words = "stop-words"
    freq_cutoff = "freq-cutoff"
    batching = "batching"
    sweep = "sweep"


@command
def experiment(
    name: Annotated[
        Name,
        typer.Argument(help="chunks: how they are distributed; sweep: any grid; the others: what each changes."),
    ],
    data: Annotated[list[str], option("Documents or chunk counts. May be given again.")],
    output: Annotated[Path, option("A folder for the tables, figures and parameters.", "--output", "-o")],
    heldout: Annotated[list[str] | None, option("The text to encode. May be given again.")] = None,
    heldout_share: Annotated[
        float | None, option("How much to hold out of the data if no text is given; 0.1 by default.", min=0, max=1)
    ] = None,
    vocab_size: Annotated[
        int | None, option("Tokens in each vocabulary; 50304 by default.", "--vocab-size", "-n", min=1)
    ] = None,
    pattern: Annotated[
        str | None, option("gpt2, gpt4, cl100k, o200k, or a regular expression; if none, that of counts, or gpt4.")
    ] = None,
    grid: Annotated[
        list[str] | None, option("For sweep: a name and values, as stop_list_size=0,100. May be given again.")
    ] = None,
    text_column: TextColumn = "text",
    replace_errors: ReplaceErrors = False,
    seed: Seed = 0,
    resume: Annotated[bool, option("Go on with a sweep that was stopped.", "--resume")] = False,
    overwrite: Annotated[bool, option("Write into a folder that is there already.", "--overwrite")] = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Do one of the paper's experiments on any data.

    Example: batchbpe experiment stop-words --data counts.parquet --heldout heldout.txt -o stop-words
    """
    from ..experiments import EXPERIMENTS, Data

    sweep, chunks = name is Name.sweep, name is Name.chunks
    values = _grid(grid or [])
    no_meaning = {
        "--heldout": chunks and heldout,
        "--heldout-share": (chunks or heldout) and heldout_share is not None,
        "--vocab-size": (chunks or "vocab_size" in values) and vocab_size,
        "--pattern": "pattern" in values and pattern,
        "--grid": not sweep and grid,
        "--resume": not sweep and resume,
    }
    wrong = next((each for each, given in no_meaning.items() if given), None)
    if wrong:
        raise ValueError(f"{wrong} changes nothing in {name.value} with the other options: leave it out")
    _check(output, sweep, resume, overwrite)
    files, others = _paths(data), _paths(heldout or []) or None
    options: dict[str, Any] = {"text_column": text_column, "errors": "replace" if replace_errors else "strict"}
    shared = options | {"seed": seed} | ({} if heldout_share is None else {"share": heldout_share})
    run = EXPERIMENTS[name.value]
    with _made(output):
        if chunks:
            result = run(files, pattern=pattern, progress=not quiet, **options)
        elif sweep:
            values = {"pattern": [pattern or "gpt4"], "vocab_size": [vocab_size or VOCAB_SIZE], **values}
            result = run(
                files, others, grid=values, folder=output, resume=resume or not overwrite, progress=not quiet, **shared
            )
        else:
            run = partial(run, vocab_size=vocab_size or VOCAB_SIZE, progress=not quiet)
            result = run(Data.of(files, others, pattern=pattern, progress=not quiet, **shared))
        written = result.save(output)
    if json:
        print_json({"files": [str(file) for file in written], "findings": dict(result.findings)})
        return
    table = result.table
    print_table(table.column_names, [list(row.values()) for row in table.slice(0, ROWS).to_pylist()])
    more = f"and {table.num_rows - ROWS:,} more rows in the file\n" if table.num_rows > ROWS else ""
    sys.stdout.write(f"{more}\n")
    print_rows("what was found" if sweep else "the paper, and here", dict(result.findings))
    note(str(output), quiet)


@command
def report(
    folder: Annotated[Path, typer.Argument(help="The folder of an experiment, or one with such folders in it.")],
    quiet: Quiet = False,
) -> None:
    """Write what experiments found as one page: report.html, which needs no other file, and report.md.

    Example: batchbpe report stop-words
    """
    from ..experiments import report

    note("\n".join(map(str, report(folder))), quiet)


def _check(output: Path, sweep: bool, resume: bool, overwrite: bool) -> None:
    from ..experiments.report import RUNS

    if output.exists() and not output.is_dir():
        raise FileExistsError(f"{output} is a file: give a folder, which may be a new one")
    if resume or overwrite or not output.is_dir() or not any(output.iterdir()):
        return
    if sweep and (output / RUNS).exists():
        raise FileExistsError(f"{output} has a sweep: --resume goes on with it, --overwrite begins anew")
    raise FileExistsError(f"{output} is there already: give another folder, or --overwrite")


@contextmanager
def _made(folder: Path) -> Iterator[None]:
    """Make a folder that can be written, before long work; if nothing came of that, it is gone again."""
    from ..experiments.report import DESCRIBED

    new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise type(error)(f"cannot write {folder}: {error.strerror}") from None
    try:
        check_writable(folder / DESCRIBED)
        yield
    except BaseException:
        if new:
            with suppress(OSError):  # it has something in it
                folder.rmdir()
        raise


def _paths(inputs: list[str]) -> list[Path | str]:
    """Find the files, by name: a url stays one."""
    if "-" in inputs:
        raise ValueError("-: an experiment is told by its files; save standard input as one")
    return [source.name if "://" in source.name else Path(source.name) for source in sources_of(inputs)]


def _grid(given: list[str]) -> dict[str, list[Any]]:
    """Read names and their values."""
    from ..experiments.sweep import GRID
    from ..patterns import PATTERNS

    grid: dict[str, list[Any]] = {}
    for each in given:
        name, equals, text = each.partition("=")
        name = name.strip()
        if name not in GRID or not equals or not text:
            raise ValueError(f"--grid {each}: give one of {', '.join(GRID)}, = and values, as vocab_size=8000,16000")
        parts = text.split(",") if name == "pattern" else [part.strip() for part in text.split(",")]
        if name == "pattern" and not set(parts) <= set(PATTERNS):
            if set(parts) & set(PATTERNS):
                raise ValueError(f"--grid {each}: a regular expression may have commas: give it by a --grid of its own")
            parts = [text]
        try:
            grid.setdefault(name, []).extend(map(GRID[name], parts))
        except ValueError:
            raise ValueError(f"--grid {each}: give whole numbers for {name}") from None
    return grid

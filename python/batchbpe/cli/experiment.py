"""The commands for the paper's experiments, and for a page of what they found."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from .app import command, note, print_json, print_rows, print_table, sources_of
from .options import Json, Quiet, Seed, TextColumn, option


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
    heldout_share: Annotated[float, option("How much to hold out of the data if no text is given.")] = 0.1,
    vocab_size: Annotated[int, option("Tokens in each vocabulary.", "--vocab-size", "-n")] = 50_304,
    pattern: Annotated[
        str | None, option("gpt2, gpt4, cl100k, o200k, or a regular expression; if none, that of counts, or gpt4.")
    ] = None,
    grid: Annotated[
        list[str] | None, option("For sweep: a name and values, as stop_list_size=0,100. May be given again.")
    ] = None,
    text_column: TextColumn = "text",
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

    sweep = name is Name.sweep
    if not sweep and (grid or resume):
        raise ValueError(f"--grid and --resume are for sweep, not for {name.value}")
    if output.exists() and (not output.is_dir() or (any(output.iterdir()) and not overwrite and not resume)):
        raise FileExistsError(f"{output} is there already: give another folder, or --overwrite")
    files, others = _paths(data), _paths(heldout or []) or None
    options: dict[str, Any] = {"text_column": text_column}
    run = EXPERIMENTS[name.value]
    if name is Name.chunks:
        if others:
            raise ValueError("--heldout: chunks are counted, nothing is encoded; leave it out")
        result = run(files, pattern=pattern, progress=not quiet, **options)
    elif sweep:
        from ..experiments.sweep import RUNS

        if overwrite and not resume:
            (output / RUNS).unlink(missing_ok=True)
        values = {"pattern": [pattern or "gpt4"], "vocab_size": [vocab_size], **_grid(grid or [])}
        options |= {"grid": values, "folder": output, "share": heldout_share, "seed": seed}
        result = run(files, others, progress=not quiet, **options)
    else:
        given = Data.of(files, others, pattern=pattern, share=heldout_share, seed=seed, progress=not quiet, **options)
        result = run(given, vocab_size=vocab_size, progress=not quiet)
    written = result.save(output)
    if json:
        print_json({"files": [str(file) for file in written], "findings": dict(result.findings)})
        return
    table = result.table
    print_table(table.column_names, [list(row.values()) for row in table.to_pylist()])
    sys.stdout.write("\n")
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


def _paths(inputs: list[str]) -> list[Path | str]:
    """Find the files, by name: a url stays one."""
    return [source.name if "://" in source.name else Path(source.name) for source in sources_of(inputs)]


def _grid(given: list[str]) -> dict[str, list[Any]]:
    """Read names and their values."""
    from ..chunks import PATTERNS
    from ..experiments.sweep import GRID

    grid: dict[str, list[Any]] = {}
    for each in given:
        name, equals, text = each.partition("=")
        if name not in GRID or not equals or not text:
            raise ValueError(f"--grid {each}: give one of {', '.join(GRID)}, = and values, as vocab_size=8000,16000")
        parts = text.split(",")
        if name == "pattern" and not set(parts) <= set(PATTERNS):
            parts = [text]  # a regular expression may have commas
        try:
            grid.setdefault(name, []).extend(map(GRID[name], parts))
        except ValueError:
            raise ValueError(f"--grid {each}: give whole numbers for {name}") from None
    return grid

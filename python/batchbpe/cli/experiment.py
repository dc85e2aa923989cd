"""The command for the paper's experiments."""

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


@command
def experiment(
    name: Annotated[
        Name,
        typer.Argument(help="chunks: how they are distributed; the others: what each changes."),
    ],
    data: Annotated[list[str], option("Documents or chunk counts. May be given again.")],
    output: Annotated[Path, option("A folder for the tables, figures and parameters.", "--output", "-o")],
    heldout: Annotated[list[str], option("The text to encode. May be given again.")] = [],  # noqa: B006
    heldout_share: Annotated[float, option("How much to hold out of the data if no text is given.")] = 0.1,
    vocab_size: Annotated[int, option("Tokens in each vocabulary.", "--vocab-size", "-n")] = 50_304,
    pattern: Annotated[
        str | None, option("gpt2, gpt4, cl100k, o200k, or a regular expression; that of the counts, or gpt4, if none.")
    ] = None,
    text_column: TextColumn = "text",
    seed: Seed = 0,
    overwrite: Annotated[bool, option("Write into a folder that is there already.", "--overwrite")] = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Do one of the paper's experiments on any data.

    Example: batchbpe experiment stop-words --data counts.parquet --heldout heldout.txt -o stop-words
    """
    from ..experiments import EXPERIMENTS, Data

    if output.exists() and (not output.is_dir() or (any(output.iterdir()) and not overwrite)):
        raise FileExistsError(f"{output} is there already: give another folder, or --overwrite")
    options: dict[str, Any] = {"pattern": pattern, "text_column": text_column}
    if name is Name.chunks:
        if heldout:
            raise ValueError("--heldout: chunks are counted, nothing is encoded; leave it out")
        result = EXPERIMENTS[name.value](_paths(data), **options)
    else:
        given = Data.of(_paths(data), _paths(heldout) or None, share=heldout_share, seed=seed, **options)
        result = EXPERIMENTS[name.value](given, vocab_size=vocab_size, progress=not quiet)
    files = result.save(output)
    if json:
        print_json({"files": [str(file) for file in files], "findings": dict(result.findings)})
        return
    table = result.table
    print_table(table.column_names, [[_short(value) for value in row.values()] for row in table.to_pylist()])
    sys.stdout.write("\n")
    print_rows("the paper, and here", dict(result.findings))
    note(str(output), quiet)


def _paths(inputs: list[str]) -> list[Path | str]:
    """Find the files, by name: a url stays one."""
    return [source.name if "://" in source.name else Path(source.name) for source in sources_of(inputs)]


def _short(value: Any) -> Any:
    return round(value, 4) if isinstance(value, float) else value

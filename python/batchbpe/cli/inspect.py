"""The commands that look at models and counts, and pass them on."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from ..formats import FORMATS
from .app import command, load, many, note, print_json, print_rows, print_table
from .options import (
    Json,
    ModelFile,
    Quiet,
    RankPattern,
    option,
)

FormatName = Enum("FormatName", {name: name for name in FORMATS}, type=str)  # type: ignore[misc]


@command
def inspect(
    file: Annotated[Path, typer.Argument(help="A model, or a file of counts.")],
    token: Annotated[str | None, option("Show how this token is built.")] = None,
    id: Annotated[int | None, option("Show how the token with this id is built.")] = None,
    longest: Annotated[int, option("List so many of the longest tokens.", min=0)] = 0,
    search: Annotated[str | None, option("List the tokens that have this text in them.")] = None,
    top: Annotated[int, option("List so many of the commonest and rarest chunks.", min=0)] = 10,
    pattern: RankPattern = None,
    json: Json = False,
) -> None:
    """Show what is in a model, or in counts.

    Example: batchbpe inspect mine.model --token " theory"
    """
    from ..analysis import inspection
    from ..counts import ChunkCounts
    from ..data.files import kind

    if token is not None and id is not None:
        raise ValueError("--token and --id are two ways to say one thing: give one")
    if kind(file)[0] in (".csv", ".parquet"):
        if token is not None or id is not None or longest or search is not None:
            raise ValueError(f"{file} holds counts: --token, --id, --longest and --search are for models")
        described = inspection.describe_counts(ChunkCounts.load(file), top)
        if json:
            print_json(described)
        else:
            _print_counts(str(file), described)
        return
    tokenizer = load(file, pattern)
    if token is not None or id is not None:
        id = tokenizer.encode_single_token(token) if token is not None else id or 0
        tree = tokenizer.merge_tree(id)
        if json:
            print_json(list(inspection.tree(tree)))
        else:
            sys.stdout.write(f"{tree}\n")
    elif longest or search is not None:
        rows = inspection.tokens(tokenizer, longest=longest, search=search)
        if json:
            print_json(rows)
        else:
            print_table(["id", "token", "bytes"], [[row["id"], _shown(row), row["bytes"]] for row in rows])
    elif json:
        print_json(inspection.describe(tokenizer))
    else:
        described = inspection.describe(tokenizer)
        merge = described["longest_merge"]
        described["longest_merge"] = merge and f"{_shown(merge)} ({many(merge['bytes'], 'byte')})"
        _print(str(file), described)


def _shown(row: dict[str, Any]) -> str:
    from ..analysis.inspection import shown

    return shown(bytes.fromhex(row["hex"]))


def _print(title: str, described: dict[str, Any]) -> None:
    print_rows(title, {name.replace("_", " "): value for name, value in described.items()})


def _print_counts(title: str, described: dict[str, Any]) -> None:
    lists = {name: described.pop(name) for name in ("commonest", "rarest")}
    shares = described["share_of_the_commonest"]
    described["share_of_the_commonest"] = {f"{int(size):,}": share for size, share in shares.items()}
    spans = {(row["least"], row["most"]): row["unique"] for row in described["distribution"]}
    described["distribution"] = {
        f"{least:,} to {most:,}" if least < most else str(least): unique for (least, most), unique in spans.items()
    }
    _print(title, described)
    for name, rows in lists.items():
        sys.stdout.write("\n")
        print_table([name, "count"], [[_shown(row), row["count"]] for row in rows])


@command
def export(
    model: ModelFile,
    to: Annotated[FormatName, option(f"The format to write: {', '.join(FORMATS)}.", "--to")],
    output: Annotated[Path, option("A file, or for transformers a folder.", "--output", "-o")],
    allow_inexact: Annotated[bool, option("Accept that encodings change.", "--allow-inexact")] = False,
    pattern: RankPattern = None,
    quiet: Quiet = False,
) -> None:
    """Write a model for another tool.

    Example: batchbpe export mine.model --to huggingface -o tokenizer.json
    """
    load(model, pattern).export(output, to.value, allow_inexact=allow_inexact)
    note(str(output), quiet)

"""The commands that look at models and counts, compare them, and pass them on."""

from __future__ import annotations

import sys
from dataclasses import asdict
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from ..formats import FORMATS
from .app import command, load, note, print_json, print_rows, print_table, sources_of
from .options import (
    Json,
    JsonlField,
    LimitBytes,
    ModelFile,
    Quiet,
    RankPattern,
    Sample,
    Seed,
    TextColumn,
    Threads,
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
    from .. import inspection
    from ..chunks import ChunkCounts
    from ..files import kind

    if kind(file)[0] in (".csv", ".parquet"):
        described = inspection.describe_counts(ChunkCounts.load(file), top)
        if json:
            print_json(described)
            return
        commonest, rarest = described.pop("commonest"), described.pop("rarest")
        print_rows(str(file), described)
        for title, rows in (("commonest", commonest), ("rarest", rarest)):
            sys.stdout.write("\n")
            print_table([title, "count"], [list(row) for row in rows])
        return
    tokenizer = load(file, pattern)
    if token is not None or id is not None:
        id = tokenizer.encode_single_token(token) if token is not None else id or 0
        tree = tokenizer.merge_tree(id)
        if json:
            print_json({"id": id, "token": inspection.shown(tree.value), "tree": str(tree).splitlines()})
        else:
            sys.stdout.write(f"{tree}\n")
    elif longest or search is not None:
        rows = inspection.tokens(tokenizer, longest=longest, search=search)
        if json:
            print_json(rows)
        else:
            print_table(["id", "token", "bytes"], [list(row.values()) for row in rows])
    elif json:
        print_json(inspection.describe(tokenizer))
    else:
        print_rows(str(file), inspection.describe(tokenizer))


@command
def evaluate(
    models: Annotated[
        list[Path],
        typer.Argument(metavar="MODELS...", help="Models of any of the formats; the first is the reference."),
    ],
    data: Annotated[list[str], option("The text to encode. May be given again.")],
    pattern: RankPattern = None,
    text_column: TextColumn = "text",
    jsonl_field: JsonlField = None,
    limit_bytes: LimitBytes = None,
    sample: Sample = 1.0,
    seed: Seed = 0,
    threads: Threads = None,
    json: Json = False,
) -> None:
    """Compare tokenizers on a text.

    Example: batchbpe evaluate mine.model cl100k_base.tiktoken --data heldout.txt
    """
    from ..evaluation import evaluate
    from ..selection import Selection

    if len(set(models)) < len(models):
        raise ValueError("a model is given twice")
    selection = Selection(sample, seed, limit_bytes)
    sources = sources_of(data, text_column, jsonl_field)
    documents = (documents for source in sources for documents in selection.of(source))
    results = evaluate({str(path): load(path, pattern) for path in models}, documents, threads=threads)
    rows = [
        {
            "model": result.name,
            "vocabulary": result.vocab_size,
            "tokens": result.tokens,
            "change %": round(result.change(results[0]), 3),
            "bytes/token": round(result.bytes_per_token, 4),
            "tokens/word": round(result.tokens_per_word, 4),
            "used %": round(100 * result.vocabulary_used / result.vocab_size, 2),
        }
        for result in results
    ]
    if json:
        print_json([asdict(result) for result in results])
    else:
        print_table(list(rows[0]), [list(row.values()) for row in rows])


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

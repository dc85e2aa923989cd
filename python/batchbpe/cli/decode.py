"""`batchbpe decode`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from .app import command, load
from .options import ModelFile, RankPattern, option
from .usage import UsageError


@command
def decode(
    model: ModelFile,
    input: Annotated[
        Path | None,
        typer.Argument(
            help="A token file (.bin, .npy, .ds, .parquet), or a folder that `encode` has written. "
            "If omitted or -, read numbers from standard input.",
            readable=False,
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
    from ..jobs.ids import belongs_to, decoded, parse_ids, read_ids
    from ..storage.atomic import replacing

    tokenizer = load(model, pattern)
    input = None if str(input) == "-" else input
    if output and ((input and belongs_to(input, output)) or output.resolve() == model.resolve()):
        raise UsageError(f"--output must not be the model or the input, {output}")
    arrays = read_ids(input, tokenizer) if input else [("standard input", parse_ids(sys.stdin.read()))]
    parts = decoded(tokenizer, arrays, skip_special_tokens=skip_special_tokens)
    if output is None:
        sys.stdout.buffer.writelines(parts)
    else:
        with replacing(output) as temporary, temporary.open("wb") as file:
            file.writelines(parts)

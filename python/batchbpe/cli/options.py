"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def option(help: str, *names: str, **rest: Any) -> Any:
    """Return an option, by default named after its parameter."""
    return typer.Option(*names, help=help, **rest)


Inputs = Annotated[
    list[str],
    typer.Argument(
        help="Files, globs, folders or urls: .txt .md .jsonl .parquet .arrow, also .gz or .zst; - for standard input."
    ),
]
ModelFile = Annotated[
    Path,
    typer.Argument(metavar="MODEL", help="A .model, .tiktoken or tokenizer.json file, or a transformers folder."),
]
PATTERN_HELP = "gpt2, gpt4, cl100k, o200k, or a regular expression."
Pattern = Annotated[str, option(PATTERN_HELP)]
RankPattern = Annotated[
    str | None, option("Pattern of a .tiktoken file that is not OpenAI's: a name or a regular expression.", "--pattern")
]
SpecialTokens = Annotated[list[str] | None, option("Special token, removed from the text. Can be repeated.")]
TextColumn = Annotated[str, option("Column of tables that holds the text.")]
JsonlField = Annotated[
    str | None,
    option("Field of jsonl that holds the text; --text-column by default. With it, standard input is jsonl."),
]
LimitBytes = Annotated[int | None, option("Stop after this many bytes of text. Only text files are cut.", min=1)]
Sample = Annotated[float, option("Share of the documents to use. A text file is one document.", min=0, max=1)]
Seed = Annotated[int, option("Random seed for --sample.", min=0)]
ReplaceErrors = Annotated[bool, option("Replace invalid UTF-8 with U+FFFD.", "--replace-errors")]
MaxDocumentBytes = Annotated[
    int | None,
    option(
        "Largest row, jsonl line, or part of a text that cannot be cut. Default: 1 GiB.",
        min=1,
        max=1 << 40,
    ),
]
Resume = Annotated[bool, option("Continue an interrupted job.", "--resume")]
SkipErrors = Annotated[
    bool, option("Continue after a file that cannot be read, and list it at the end.", "--skip-errors/--strict")
]
Threads = Annotated[int | None, option("Number of threads. Default: all cores.", min=1, max=1 << 16)]
Quiet = Annotated[bool, option("Show no progress bar and no summary.", "--quiet", "-q")]
Json = Annotated[bool, option("Print the result as JSON.", "--json")]

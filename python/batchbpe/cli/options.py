"""The arguments and options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def option(help: str, *names: str, **rest: Any) -> Any:
    """An option, by default named after its parameter."""
    return typer.Option(*names, help=help, **rest)


Inputs = Annotated[
    list[str],
    typer.Argument(
        help="Files, globs, folders or urls: .txt .md .jsonl .parquet .arrow, also .gz or .zst; - is standard input."
    ),
]
ModelFile = Annotated[
    Path,
    typer.Argument(metavar="MODEL", help="A .model, .tiktoken or tokenizer.json file, or a folder for transformers."),
]
Pattern = Annotated[str, option("gpt2, gpt4, cl100k, o200k, or a regular expression.")]
RankPattern = Annotated[
    str | None,
    option("The pattern of a .tiktoken file that is not OpenAI's: a name or a regular expression.", "--pattern"),
]
SpecialTokens = Annotated[list[str] | None, option("A special token, cut out of the text. May be given again.")]
TextColumn = Annotated[str, option("The column of tables that holds the text.")]
JsonlField = Annotated[
    str | None,
    option("The field of jsonl that holds the text; --text-column by default. With it, standard input is jsonl."),
]
LimitBytes = Annotated[
    int | None, option("Stop after so many bytes of text. Only a text file is cut; other documents are whole.", min=1)
]
Sample = Annotated[
    float, option("Take this share of the documents, always the same ones; a text file is one.", min=0, max=1)
]
Seed = Annotated[int, option("Take another sample.", min=0)]
ReplaceErrors = Annotated[bool, option("Put U+FFFD in place of bytes that are no UTF-8.", "--replace-errors")]
MaxDocumentBytes = Annotated[
    int | None,
    option(
        "Largest row, jsonl line, or stretch of text that cannot be cut; 1 GiB, or 1/16 of --max-memory if less.",
        min=1,
        max=1 << 40,
    ),
]
Resume = Annotated[bool, option("Go on with what was interrupted.", "--resume")]
SkipErrors = Annotated[
    bool, option("Go on after a file that cannot be read, and name it at the end.", "--skip-errors/--strict")
]
Threads = Annotated[int | None, option("How many threads to use; all cores by default.", min=1, max=1 << 16)]
Quiet = Annotated[bool, option("Show no bar and no summary.", "--quiet", "-q")]
Json = Annotated[bool, option("Print the result as JSON.", "--json")]

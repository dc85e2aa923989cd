"""`batchbpe verify`."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args

import typer

from ..choices import EngineName
from .app import command
from .options import Json, Quiet, Threads, option, reads
from .output import one_line, print_json, print_table
from .usage import UsageError, one_of

if TYPE_CHECKING:
    from ..data.options import Reading
    from ..verification.results import Result, Token, Verification

ENGINES = get_args(EngineName)
MAX_SUMMARY = 90
"""Number of characters of a result in the table; --json prints all of it."""
MAX_TOKENS = 20
"""Number of tokens of a difference that are printed."""


@command
@reads()
def verify(
    paths: Annotated[
        list[Path],
        typer.Argument(
            help="Tokenizers in any format, including .gguf, and test files (.test.json); the first is the reference.",
            readable=False,
        ),
    ],
    *,
    against: Annotated[
        list[str] | None,
        option(
            f"Engine to compare with: {', '.join(ENGINES)}. Can be repeated.",
            metavar="ENGINE",
            show_default="all that are installed",
            **one_of(ENGINES),
        ),
    ] = None,
    config: Annotated[
        Path | None,
        option("Configuration of the model.", metavar="FILE", show_default="config.json in the folder"),
    ] = None,
    data: Annotated[
        list[str] | None,
        option("Documents to compare besides the built-in texts. Can be repeated.", group="Data", metavar="PATH"),
    ] = None,
    pattern: Annotated[
        str | None,
        option(
            "Split pattern of .tiktoken files.",
            group="Splitting",
            metavar="PATTERN",
            show_default="of the published file with the same ranks, or of the reference",
        ),
    ] = None,
    reading: dict[str, Any],
    threads: Threads = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Check that other engines give the same ids. The exit code is 1 if one differs.

    Example: batchbpe verify folder mine.gguf --data heldout.txt
    """
    from .. import verification
    from ..data.options import ReadOptions, Sampling, from_keywords

    if not data and from_keywords(cast("Reading", reading)) != (ReadOptions(), Sampling()):
        raise UsageError("options for reading documents need --data")
    found = verification.verify(
        paths,
        against=against or (),
        config=config,
        pattern=pattern,
        files=data or None,
        threads=threads,
        progress=not quiet,
        **reading,
    )
    if json:
        fields = asdict(found)
        for fields_of_one, result in zip(fields["results"], found.results, strict=True):
            fields_of_one["summary"] = result.summary
        print_json({"ok": found.ok, "conclusion": found.conclusion, **fields})
    else:
        _print(found)
    if not found.ok:
        sys.stdout.flush()
        raise typer.Exit(1)


def _print(found: Verification) -> None:
    columns, rows = found.table()
    print_table([*columns], [[*cells, _shortened(summary)] for *cells, summary in rows])
    for result in found.differences:
        sys.stdout.write(f"\n{_difference(result)}\n")
    cut = [each for each in found.results if each.reason and len(one_line(each.summary)) > MAX_SUMMARY]
    lines = [f"{each.engine}, {each.file}: {one_line(each.summary)}" for each in cut]
    lines += [*(f"note: {note}" for note in found.notes), *(f"problem: {each}" for each in found.problems)]
    sys.stdout.writelines(f"\n{line}" for line in [*lines, found.conclusion])
    sys.stdout.write("\n")


def _shortened(summary: str) -> str:
    line = one_line(summary)
    return line if len(line) <= MAX_SUMMARY else f"{line[:MAX_SUMMARY]}…"


def _difference(result: Result) -> str:
    """Describe a difference: the text, the tokens of both, and the likely cause."""
    difference = result.difference
    assert difference is not None
    engine = f"{result.engine} {result.version or ''}".strip()
    escaped = "" if difference.text.isascii() else f" = {difference.text!a}"  # marks and spaces look alike
    tokens = {"tokens" if result.is_decoding else "reference": difference.ours}
    if not result.is_decoding:
        tokens[result.engine] = difference.theirs
    rows = {
        "text": f"{difference.text!r}{escaped}",
        **{name: _tokens(each) for name, each in tokens.items()},
        "cause": f"{difference.kind}: {difference.cause}",
    }
    width = max(map(len, rows)) + 2
    lines = (f"  {name:<{width}}{value}" for name, value in rows.items())
    which = "the first, shortened" if result.is_shortened else "the shortest"
    return "\n".join([f"{engine}, {result.file}: {result.summary}; {which}:", *lines])


def _tokens(tokens: list[Token]) -> str:
    shown = [f"{token.text} {token.id}" for token in tokens[:MAX_TOKENS]] + ["…"] * (len(tokens) > MAX_TOKENS)
    return " | ".join(shown) or "no tokens"

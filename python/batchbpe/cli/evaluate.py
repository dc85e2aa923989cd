"""`batchbpe evaluate`."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from ..choices import Unit
from ..errors import DataError
from .app import command, load
from .options import (
    Json,
    Quiet,
    RankPattern,
    Threads,
    option,
    reads,
)
from .output import note, print_json
from .usage import one_of, refuse

if TYPE_CHECKING:
    from ..analysis import EvaluationTable
    from ..tokenizer import Tokenizer

ALL = "all"
"""Name of the only group if documents are not grouped."""


@command
@reads()
def evaluate(
    models: Annotated[
        list[Path],
        typer.Argument(help="Models to compare, in any format; the first is the reference.", readable=False),
    ],
    data: Annotated[list[str], option("Documents or chunk counts to encode. Can be repeated.", metavar="PATH")],
    *,
    group_column: Annotated[
        str | None, option("Table column or jsonl field with the groups to compare.", metavar="NAME")
    ] = None,
    by_file: Annotated[bool, option("Compare files; each file is a group.", "--by-file")] = False,
    parity: Annotated[
        str | None,
        option("Reference group.", metavar="GROUP", show_default="the cheapest for the first model"),
    ] = None,
    per: Annotated[
        Unit | None,
        option(
            "Unit of comparison: byte, character, word, or text if all groups have the same content.",
            metavar="UNIT",
            show_default="character",
            **one_of(get_args(Unit)),
        ),
    ] = None,
    audit: Annotated[bool, option("Also list unused and suspicious tokens.", "--audit")] = False,
    bound: Annotated[
        bool, option("Also bound the tokens of any vocabulary of the same size (takes minutes).", "--bound")
    ] = False,
    pattern: RankPattern = None,
    reading: dict[str, Any],
    threads: Threads = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Compare tokenizers on the same text.

    Example: batchbpe evaluate mine.model other.model --data heldout.txt
    """
    from ..analysis.evaluation import evaluate
    from ..analysis.evaluator import unique_names

    grouped = bool(group_column or by_file)
    twice = next((path for path in models if models.count(path) > 1), None)
    refuse(
        {
            f"{twice} is given more than once": twice,
            "--group-column cannot be combined with --by-file": group_column and by_file,
            "--parity needs --group-column or --by-file": parity is not None and not grouped,
            "--per needs --group-column or --by-file": per and not grouped,
            "--limit-bytes has no effect on groups, which are read completely; remove it": "limit_bytes" in reading
            and grouped,
            "--sample cannot be combined with --group-column": group_column and reading.get("sample", 1) != 1,
        }
    )
    paths = dict(zip(unique_names(models), models, strict=True))
    result = evaluate(
        {name: _load(path, pattern, needed=len(models) == 1) for name, path in paths.items()},
        files=data,
        group_column=group_column,
        by_file=by_file,
        per=per or "character",
        parity=parity,
        audit=audit,
        bound=bound,
        **reading,
        threads=threads,
        progress=not quiet,
    )
    for empty in result.groups.empty_groups if result.groups else ():
        note(f"group {empty} is omitted: it contains no text", quiet)
    if json:
        print_json([{"model": str(path), **_as_json(result, name)} for name, path in paths.items()])
    else:
        sys.stdout.write(f"{result}\n")


def _as_json(result: EvaluationTable, name: str) -> dict[str, Any]:
    groups = result.groups
    extra: dict[str, Any] = {"audit": asdict(result.audits[name])} if name in result.audits else {}
    if name in result.bounds:
        extra["bound"] = asdict(result.bounds[name]) | {"above": result.bounds[name].above}
    if not groups:
        return {"groups": {ALL: result[name].metrics(result[0])}, **extra}
    comparison = {"reference": groups.reference_group, "gini": groups.tokenizers[name].gini}
    return {"groups": groups.metrics(name), **comparison, **extra}


def _load(path: Path, pattern: str | None, *, needed: bool) -> Tokenizer:
    """Load a model. If the name is that of a data file, the error suggests --data."""
    from ..data.paths import has_known_suffix

    try:
        return load(path, pattern, needed=needed)
    except DataError as error:
        if has_known_suffix(str(path)):
            error.remedy = "repeat --data for each file of data"
        raise

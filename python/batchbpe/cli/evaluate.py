"""`batchbpe evaluate`."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import DataError
from .app import command, load
from .options import (
    ByFile,
    GroupColumn,
    Json,
    Parity,
    Per,
    Quiet,
    RankPattern,
    Threads,
    check_groups,
    option,
    reads,
)
from .output import note, print_json
from .usage import number, refuse

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
    group_column: GroupColumn = None,
    by_file: ByFile = False,
    parity: Parity = None,
    per: Per = None,
    audit: Annotated[bool, option("Also list unused and suspicious tokens.", "--audit")] = False,
    ngram_train: Annotated[
        list[str] | None,
        option("Documents to train n-gram models on, which predict the data. Can be repeated.", metavar="PATH"),
    ] = None,
    ngram_order: Annotated[
        int | None, option("Tokens in the longest n-grams.", show_default="5", **number(int, least=1, most=100))
    ] = None,
    bound: Annotated[
        bool, option("Also bound the tokens of any vocabulary of the same size (takes minutes).", "--bound")
    ] = False,
    bound_seconds: Annotated[
        float | None,
        option("Stop the search for each bound after about this many seconds.", **number(float, least=0)),
    ] = None,
    pattern: RankPattern = None,
    reading: dict[str, Any],
    threads: Threads = None,
    quiet: Quiet = False,
    json: Json = False,
    markdown: Annotated[bool, option("Print the tables in Markdown.", "--markdown", group="Output")] = False,
) -> None:
    """Compare tokenizers on the same text.

    Example: batchbpe evaluate mine.model other.model --data heldout.txt
    """
    from ..analysis.evaluation import evaluate
    from ..analysis.evaluator import unique_names
    from ..data.corpus import Corpus
    from ..data.options import ReadOptions
    from ..options import picked

    twice = next((path for path in models if models.count(path) > 1), None)
    refuse(
        {
            f"{twice} is given more than once": twice,
            "--markdown cannot be combined with --json": markdown and json,
            "--ngram-order needs --ngram-train": ngram_order and not ngram_train,
            "--bound-seconds needs --bound": bound_seconds is not None and not bound,
            "--ngram-train cannot be combined with --group-column or --by-file; evaluate the file of each group "
            "separately": ngram_train and (group_column or by_file),
            "--ngram-train needs --data that can be read twice, not standard input": ngram_train and "-" in data,
        }
    )
    check_groups(group_column, by_file, parity, per, reading)
    paths = dict(zip(unique_names(models), models, strict=True))
    result = evaluate(
        {name: _load(path, pattern, needed=len(models) == 1) for name, path in paths.items()},
        files=data,
        group_column=group_column,
        by_file=by_file,
        per=per or "character",
        parity=parity,
        audit=audit,
        ngram_train=Corpus(files=ngram_train, options=picked(ReadOptions, reading)) if ngram_train else None,
        ngram_order=ngram_order or 5,
        bound=bound,
        bound_seconds=bound_seconds,
        **reading,
        threads=threads,
        progress=not quiet,
    )
    for empty in result.groups.empty_groups if result.groups else ():
        note(f"group {empty} is omitted: it contains no text", quiet)
    if json:
        print_json([{"model": str(path), **_as_json(result, name)} for name, path in paths.items()])
    else:
        sys.stdout.write(f"{result.to_markdown() if markdown else result}\n")


def _as_json(result: EvaluationTable, name: str) -> dict[str, Any]:
    groups = result.groups
    extra: dict[str, Any] = {"audit": asdict(result.audits[name])} if name in result.audits else {}
    if name in result.bounds:
        extra["bound"] = asdict(result.bounds[name]) | {"above": result.bounds[name].above}
    if name in result.unbounded:
        extra["unbounded"] = result.unbounded[name]
    if name in result.ngrams:
        ngrams = result.ngrams[name]
        extra["ngram"] = {"order": ngrams.order, "bits_per_byte": ngrams.bits_per_byte}
        if ngrams.seen:
            extra["ngram"]["seen"] = list(ngrams.seen)
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

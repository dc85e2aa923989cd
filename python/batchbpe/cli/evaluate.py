"""`batchbpe evaluate`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
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
from .output import note, print_json, print_table
from .usage import one_of, refuse

if TYPE_CHECKING:
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
    pattern: RankPattern = None,
    reading: dict[str, Any],
    threads: Threads = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Compare tokenizers on the same text.

    Example: batchbpe evaluate mine.model other.model --data heldout.txt
    """
    from .. import analysis

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
    tokenizers = {str(path): _load(path, pattern, needed=len(models) == 1) for path in models}
    arguments = reading | {"threads": threads, "progress": not quiet}
    results: dict[str, dict[str, Any]]
    if grouped:
        unit = per or "character"
        comparison = analysis.evaluate_groups(
            tokenizers, files=data, group_column=group_column, by_file=by_file, per=unit, parity=parity, **arguments
        )
        for empty in comparison.empty_groups:
            note(f"group {empty} is omitted: it contains no text", quiet)
        evaluations = {name: list(each.evaluations.values()) for name, each in comparison.tokenizers.items()}
        results = {
            name: {"groups": comparison.metrics(name), "reference": comparison.reference_group, "gini": each.gini}
            for name, each in comparison.tokenizers.items()
        }
    else:
        found = analysis.evaluate(tokenizers, files=data, **arguments)
        evaluations = {each.name: [each] for each in found}
        results = {each.name: {"groups": {ALL: each.metrics(found[0])}} for each in found}
    if audit:
        for name, tokenizer in tokenizers.items():
            frequencies = sum(each.frequencies for each in evaluations[name])
            results[name]["audit"] = asdict(analysis.audit(tokenizer, frequencies=frequencies))  # type: ignore[arg-type]
    if json:
        print_json([{"model": name, **each} for name, each in results.items()])
        return
    labels = _labels(list(tokenizers))
    if grouped:
        for name, each in results.items():
            _print_groups(labels[name], each, unit)
    else:
        _print_metrics({labels[name]: each["groups"][ALL] for name, each in results.items()})
    if audit:
        for name, tokenizer in tokenizers.items():
            _print_audit(labels[name], results[name]["audit"], tokenizer)


def _load(path: Path, pattern: str | None, *, needed: bool) -> Tokenizer:
    """Load a model. If the name is that of a data file, the error suggests --data."""
    from ..data.paths import has_known_suffix

    try:
        return load(path, pattern, needed=needed)
    except DataError as error:
        if has_known_suffix(str(path)):
            error.remedy = "repeat --data for each file of data"
        raise


def _labels(paths: list[str]) -> dict[str, str]:
    """Return column headers: file names, or paths if file names are not unique.

    >>> _labels(["a/mine.model", "b/mine.model", "c/gpt2.json"])
    {'a/mine.model': 'a/mine.model', 'b/mine.model': 'b/mine.model', 'c/gpt2.json': 'gpt2.json'}
    """
    names = [Path(path).name for path in paths]
    return {path: name if names.count(name) == 1 else path for path, name in zip(paths, names, strict=True)}


def _print_metrics(models: dict[str, dict[str, Any]]) -> None:
    from ..analysis.metrics import METRICS

    lossy = any(model["dropped"] for model in models.values())
    labels = {name: label for name, label in METRICS.items() if name != "dropped" or lossy}
    print_table(["", *models], [[label, *(model[name] for model in models.values())] for name, label in labels.items()])


def _print_groups(name: str, result: dict[str, Any], per: str) -> None:
    groups: Mapping[str, dict[str, Any]] = result["groups"]
    columns = {
        "tokens": "tokens",
        "bytes_per_token": "bytes/token",
        f"tokens_per_{per}": f"tokens/{per}",
        "parity": f"parity ({result['reference']} = 1)",
    }
    if any(each["dropped"] for each in groups.values()):
        columns["dropped"] = "bytes dropped"
    rows = [[group, *(each[column] for column in columns)] for group, each in groups.items()]
    print_table([name, *columns.values()], rows)
    sys.stdout.write(f"Gini coefficient: {result['gini']:.4f}\n\n")


def _print_audit(name: str, audited: dict[str, list[int]], tokenizer: Tokenizer) -> None:
    from ..analysis.display import quoted_token

    def examples(ids: list[int]) -> str:
        return " ".join(f"{token} {quoted_token(tokenizer.vocab[token])}" for token in ids[:8]) + " …" * (len(ids) > 8)

    sys.stdout.write("\n")
    labels = {"partial_utf8": "partial UTF-8"}
    rows = [[labels.get(kind, kind), len(ids), examples(ids)] for kind, ids in audited.items()]
    print_table([f"audit of {name}", "tokens", "examples"], rows)

"""The command that compares tokenizers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from ..progress import size
from .app import command, load, note, print_json, print_table, sources_of
from .options import (
    Json,
    JsonlField,
    LimitBytes,
    MaxDocumentBytes,
    Quiet,
    RankPattern,
    ReplaceErrors,
    Sample,
    Seed,
    TextColumn,
    Threads,
    option,
)

if TYPE_CHECKING:
    from ..analysis.evaluation import Evaluation
    from ..data.readers import Source
    from ..tokenizer import Tokenizer

T = TypeVar("T")


class Unit(str, Enum):
    """What groups pay for."""

    text = "text"
    byte = "byte"
    character = "character"
    word = "word"


@command
def evaluate(
    models: Annotated[
        list[Path],
        typer.Argument(metavar="MODELS...", help="Models of any of the formats; the first is the reference."),
    ],
    data: Annotated[list[str], option("The text to encode, or chunk counts. May be given again.")],
    group_column: Annotated[
        str | None, option("Compare the groups that this column of tables, or field of jsonl, tells.")
    ] = None,
    by_file: Annotated[bool, option("Compare the files, each a group.", "--by-file")] = False,
    parity: Annotated[
        str | None, option("The group that the others are compared with; if none, the cheapest for the first model.")
    ] = None,
    per: Annotated[
        Unit | None,
        option("What groups pay for: a byte, a character (the default), a word; or all of a text that is the same."),
    ] = None,
    audit: Annotated[bool, option("Look for tokens that are of no use, too.", "--audit")] = False,
    pattern: RankPattern = None,
    text_column: TextColumn = "text",
    jsonl_field: JsonlField = None,
    limit_bytes: LimitBytes = None,
    sample: Sample = 1.0,
    seed: Seed = 0,
    replace_errors: ReplaceErrors = False,
    max_document_bytes: MaxDocumentBytes = None,
    threads: Threads = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Compare tokenizers on a text.

    Example: batchbpe evaluate mine.model cl100k_base.tiktoken --data heldout.txt
    """
    from ..analysis import groups
    from ..analysis.evaluation import evaluate_text
    from ..data.sampling import Selection
    from ..data.tables import MAX_DOCUMENT_BYTES, ReadOptions
    from ..progress import bar

    if len(set(models)) < len(models):
        raise ValueError("a model is given twice")
    if group_column and by_file:
        raise ValueError("groups are told by --group-column or by --by-file, not by both")
    if not (group_column or by_file) and (parity or per):
        raise ValueError("--parity and --per compare groups: tell them by --group-column or --by-file")
    if (group_column and sample != 1) or ((group_column or by_file) and limit_bytes is not None):
        raise ValueError("groups are read whole: leave out --limit-bytes, and with --group-column --sample")
    tokenizers = {str(path): load(path, pattern, needed=len(models) == 1) for path in models}
    selection = Selection(sample, seed, limit_bytes)
    errors = "replace" if replace_errors else "strict"
    sources = sources_of(data, text_column, jsonl_field, errors, max_document_bytes)
    if group_column:
        documents = groups.by_column(
            sources,
            group_column,
            ReadOptions(jsonl_field or text_column, errors, max_document_bytes or MAX_DOCUMENT_BYTES),
        )
    elif by_file:
        documents = groups.by_file(sources, selection)
    else:
        documents = ((source, "all", some) for source in sources for some in selection.of(source))
    patterns = [tokenizer.pattern for tokenizer in tokenizers.values()]
    with bar("counting", sum(source.size for source in sources), show=not quiet) as update:
        every = groups.texts(_watched(documents, sources, update), patterns, threads, errors)
    texts = {group: text for group, text in every.items() if text.bytes}
    if not texts:
        raise ValueError(f"there is no text in {', '.join(data)}")
    for empty in every.keys() - texts.keys():
        note(f"the group {empty} has no text and is left out", quiet)
    if parity is not None and parity not in texts:
        raise ValueError(f"--parity {parity}: the groups with text are {', '.join(texts)}")
    results = {
        name: {group: evaluate_text(name, tokenizer, text, threads=threads) for group, text in texts.items()}
        for name, tokenizer in tokenizers.items()
    }
    first = next(iter(results.values()))
    unit = (per or Unit.character).value
    described = {name: _described(by_group, first, parity, unit) for name, by_group in results.items()}
    if audit:
        for name, tokenizer in tokenizers.items():
            described[name]["audit"] = _audited(tokenizer, list(results[name].values()))
    if json:
        print_json([{"model": name, **each} for name, each in described.items()])
        return
    short = _short(list(tokenizers))
    if group_column or by_file:
        for name, each in described.items():
            _print_groups(short[name], each, unit)
    else:
        _print_metrics({short[name]: each["groups"]["all"] for name, each in described.items()})
    if audit:
        for name, tokenizer in tokenizers.items():
            _print_audit(short[name], described[name]["audit"], tokenizer)


def _short(paths: list[str]) -> dict[str, str]:
    """Give names to fit over a column: those of the files, or all of the path where two have the same.

    >>> _short(["a/mine.model", "b/mine.model", "c/gpt2.json"])
    {'a/mine.model': 'a/mine.model', 'b/mine.model': 'b/mine.model', 'c/gpt2.json': 'gpt2.json'}
    """
    names = [Path(path).name for path in paths]
    return {path: name if names.count(name) == 1 else path for path, name in zip(paths, names, strict=True)}


def _watched(documents: Iterable[T], sources: list[Source], update: Callable[[float, str], object]) -> Iterator[T]:
    """Say after each batch how far reading has come."""
    for some in documents:
        yield some
        done = sum(source.at for source in sources)
        update(done, size(done))


def _described(
    by_group: dict[str, Evaluation], reference: dict[str, Evaluation], parity: str | None, per: Any
) -> dict[str, Any]:
    from ..analysis import evaluation

    described = {group: each.metrics(reference[group]) for group, each in by_group.items()}
    if list(by_group) == ["all"]:
        return {"groups": described}
    reference_costs, costs = _costs(reference, per), _costs(by_group, per)
    if parity is not None and parity not in reference_costs:
        raise ValueError(f"--parity {parity}: that group has no {per} to pay for, or no tokens")
    parity = parity or min(reference_costs, key=lambda group: reference_costs[group], default=None)
    # A pattern may lose all of the group that the others are compared with.
    against = evaluation.parity(costs, parity) if parity in costs else {}
    for group, metrics in described.items():
        metrics |= {f"tokens_per_{per}": costs.get(group), "parity": against.get(group)}
    return {"groups": described, "reference": parity, "gini": evaluation.gini(list(costs.values()))}


def _costs(by_group: dict[str, Evaluation], per: Any) -> dict[str, float]:
    """Give what each group pays that has anything to pay for."""
    costs = {group: each.cost(per) for group, each in by_group.items()}
    return {group: cost for group, cost in costs.items() if cost is not None}


def _audited(tokenizer: Tokenizer, results: list[Evaluation]) -> dict[str, list[int]]:
    from ..analysis.audit import audit

    return asdict(audit(tokenizer, sum(result.frequencies for result in results)))  # type: ignore[arg-type]


def _print_metrics(models: dict[str, dict[str, Any]]) -> None:
    from ..analysis.evaluation import METRICS

    shown = {name: label for name, label in METRICS.items() if name != "dropped"}
    if any(model["dropped"] for model in models.values()):
        shown = METRICS
    rows = [[label, *(model[name] for model in models.values())] for name, label in shown.items()]
    print_table(["", *models], rows)


def _print_groups(name: str, described: dict[str, Any], per: str) -> None:
    shown = {
        "tokens": "tokens",
        "bytes_per_token": "bytes/token",
        f"tokens_per_{per}": f"tokens/{per}",
        "parity": f"parity ({described.get('reference')})",
    }
    groups = described["groups"]
    if any(each["dropped"] for each in groups.values()):
        shown["dropped"] = "bytes lost"
    rows = [[group, *(each[column] for column in shown if column in each)] for group, each in groups.items()]
    print_table([name, *(label for column, label in shown.items() if column in next(iter(groups.values())))], rows)
    if "gini" in described:
        sys.stdout.write(f"Gini coefficient {described['gini']:.4f}\n\n")


def _print_audit(name: str, audited: dict[str, list[int]], tokenizer: Tokenizer) -> None:
    from ..analysis.inspection import shown

    def some(ids: list[int]) -> str:
        return " ".join(f"{token} {shown(tokenizer.vocab[token])}" for token in ids[:8]) + " …" * (len(ids) > 8)

    sys.stdout.write("\n")
    rows = [[name.replace("_", " "), len(ids), some(ids)] for name, ids in audited.items()]
    print_table([f"audit of {name}", "tokens", ""], rows)

"""`batchbpe diff`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .app import command, load
from .options import Json, RankPattern, option
from .output import note, print_json, print_rows, print_table
from .usage import UsageError, number

if TYPE_CHECKING:
    from ..analysis.id_map import IdMap


@command
def diff(
    base: Annotated[Path, typer.Argument(help="The old model, in any format.", readable=False)],
    new: Annotated[Path, typer.Argument(help="The new model, in any format.", readable=False)],
    output: Annotated[
        Path | None, option("Table of all tokens: .parquet, .csv or .json.", "--output", "-o", metavar="FILE")
    ] = None,
    limit: Annotated[int, option("Number of added, moved and removed tokens to show.", **number(int, least=0))] = 10,
    pattern: RankPattern = None,
    json: Json = False,
) -> None:
    """Compare the ids of two vocabularies.

    The parts of a new token are the old tokens that its text is encoded to
    (https://batchbpe.github.io/batchbpe/embeddings.html).

    Example: batchbpe diff gpt2.json mine.model -o ids.parquet
    """
    from ..analysis.id_table import check_suffix, example_tables, examples, json_rows
    from ..storage.atomic import check_writable

    if output is not None:
        check_suffix("output", output)
        if output.exists() and any(each.exists() and each.samefile(output) for each in _files(base, new)):
            raise UsageError(f"--output must not be a file of a model, got {output}")
        check_writable(output)
    base_tokenizer, new_tokenizer = (load(path, pattern, needed=False) for path in (base, new))
    id_map = new_tokenizer.id_map(base_tokenizer)
    if output is not None:
        id_map.save(output)
    found = examples(id_map, limit)
    if json:
        sizes = {"base_tokens": len(base_tokenizer), "new_tokens": len(new_tokenizer)}
        rows = {change: json_rows(table) for change, table in found.items()}
        print_json(sizes | id_map.counts | {"examples": rows})
    else:
        _print_summary({"base": str(base), "new": str(new)}, id_map)
        for columns, cells in example_tables(id_map, found):
            sys.stdout.write("\n")
            print_table([*columns], [[*row] for row in cells])
    if output is not None:
        note(str(output), json)


def _files(*models: Path) -> Iterator[Path]:
    for model in models:
        yield from model.iterdir() if model.is_dir() else [model]


def _print_summary(names: dict[str, str], id_map: IdMap) -> None:
    import numpy as np

    base, new = id_map.base, id_map.tokenizer
    splits = [base.model.split.name, new.model.split.name]
    parts = np.diff(id_map.offsets)[id_map.tokens[id_map.changes == "added"]]
    rows: dict[str, Any] = {
        **names,
        "tokens": f"{len(base):,} → {len(new):,}",
        "pattern": " → ".join(dict.fromkeys(splits)),
        **id_map.counts,
        "parts per added token": float(parts.mean()) if len(parts) else None,
    }
    if len(parts) and not parts.all():
        rows["added tokens without parts"] = int((parts == 0).sum())
    print_rows("", rows)

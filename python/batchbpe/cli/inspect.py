"""`batchbpe inspect` and `batchbpe export`."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import ArgumentError, listed
from ..formats import FORMATS, Format
from ..formats.native import IN_FOLDER
from ..formats.roles import RoleOptions
from .app import command, contains_counts, load
from .options import ROLES, Json, ModelFile, Quiet, RankPattern, option, takes
from .output import note, print_json, print_rows, print_table
from .usage import UsageError, number, one_of

if TYPE_CHECKING:
    from ..analysis.inspection import CountsSummary, ModelSummary
    from ..tokenizer import Tokenizer


TOP = 10


@command
def inspect(
    file: Annotated[Path, typer.Argument(help="A model or a chunk count file.", readable=False)],
    token: Annotated[str | None, option("Show the merges that build this token.", metavar="TEXT")] = None,
    id: Annotated[int | None, option("Show the merges that build the token with id N.", **number(int))] = None,
    longest: Annotated[int | None, option("List the N longest tokens.", **number(int, least=1))] = None,
    search: Annotated[str | None, option("List the tokens that contain this text.", metavar="TEXT")] = None,
    top: Annotated[
        int | None,
        option("List the N most frequent and the N rarest chunks.", show_default=str(TOP), **number(int, least=0)),
    ] = None,
    pattern: RankPattern = None,
    json: Json = False,
) -> None:
    """Show the contents of a model or a chunk count file.

    Example: batchbpe inspect mine.model --token " theory"
    """
    from .. import analysis
    from ..analysis.inspection import tree_nodes
    from ..analysis.inspection_tables import quoted
    from ..counts import ChunkCounts

    views = {"token": token, "id": id, "longest": longest, "search": search}
    given = [name for name, value in views.items() if value is not None]
    if len(given) > 1 and given != ["longest", "search"]:
        raise UsageError(f"--{given[0]} cannot be combined with --{given[1]}")
    if contains_counts(file):
        for name in [*given, *["pattern"] * (pattern is not None)]:
            raise UsageError(f"--{name} needs a model; {file} contains chunk counts")
        summary = analysis.inspect_counts(ChunkCounts.load(file), top=TOP if top is None else top)
        if json:
            print_json(asdict(summary))
        else:
            _print_counts(str(file), summary)
        return
    if top is not None:
        raise UsageError(f"--top needs chunk counts; {file} is a model")
    tokenizer = load(file, pattern)
    if token is not None or id is not None:
        tree = tokenizer.merge_tree(_single_token(tokenizer, token) if token is not None else id or 0)
        if json:
            print_json([asdict(node) for node in tree_nodes(tree)])
        else:
            sys.stdout.write(f"{tree}\n")
    elif given:
        found = analysis.find_tokens(tokenizer, search=search, longest=longest)
        if json:
            print_json([asdict(each) for each in found])
        else:
            print_table(["id", "token", "bytes"], [[each.id, quoted(each), each.bytes] for each in found])
    else:
        _print_model(str(file), analysis.inspect_model(tokenizer), json)


def _single_token(tokenizer: Tokenizer, text: str) -> int:
    from ..analysis.display import quoted_token

    try:
        return tokenizer.encode_single_token(text)
    except KeyError:
        pieces = [f"{token} {quoted_token(tokenizer.vocab[token])}" for token in tokenizer.encode_ordinary(text)]
        remedy = f"it splits into {listed(pieces)}" if pieces else ""
        raise ArgumentError("token", text, "must be a single token", remedy=remedy) from None


def _print_model(title: str, summary: ModelSummary, json: bool) -> None:
    from ..analysis.inspection_tables import model_rows

    if json:
        print_json(asdict(summary))
    else:
        print_rows(title, model_rows(summary))


def _print_counts(title: str, summary: CountsSummary) -> None:
    from ..analysis.inspection_tables import counts_rows, quoted

    print_rows(title, counts_rows(summary))
    for name, chunks in {"most frequent": summary.most_frequent, "rarest": summary.rarest}.items():
        sys.stdout.write("\n")
        print_table([name, "count"], [[quoted(chunk), chunk.count] for chunk in chunks])


@command
@takes(RoleOptions, **ROLES)
def export(
    model: ModelFile,
    to: Annotated[
        Format,
        option(f"Output format: {', '.join(FORMATS)}.", "--to", metavar="FORMAT", **one_of(list(FORMATS))),
    ],
    output: Annotated[
        Path, option("Output file; a folder for transformers.", "--output", "-o", group="Output", metavar="PATH")
    ],
    *,
    options: dict[str, Any],
    allow_inexact: Annotated[
        bool, option("Export even if some text would be encoded differently.", "--allow-inexact")
    ] = False,
    pattern: RankPattern = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Convert a model to the format of another tool.

    Example: batchbpe export mine.model --to huggingface -o tokenizer.json
    """
    if output.exists() and model.exists() and model.samefile(output):
        raise UsageError(f"--output must not be the model, {output}")
    tokenizer = load(model, pattern)
    tokenizer.export(output, to, allow_inexact=allow_inexact, **options)
    given = {role: name for role, name in options.items() if name is not None and role != "chat_template"}
    roles = tokenizer.roles | given if FORMATS[to].stores_roles else {}
    if json:
        print_json({"output": str(output), "format": to, "roles": roles})
    shown = ", ".join(f"{role} {name}" for role, name in roles.items())
    notes = [f"roles: {shown}"] * bool(roles)
    if to == "transformers" and (output / IN_FOLDER).is_file():
        notes.append("tokenizer.json cannot represent this model; load the folder with trust_remote_code=True")
    note("\n".join([*notes, str(output)]), quiet or json)

"""`batchbpe edit`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

from ..choices import Dependents
from ..errors import DataError, UserError, opening, parse_json
from ..util.utf8 import is_utf8
from .app import command, load
from .options import PATTERN_HELP, Json, ModelFile, Quiet, RankPattern, Threads, option, reads
from .output import note, print_json, print_rows, print_table
from .usage import number, one_of, refuse

if TYPE_CHECKING:
    from ..analysis import Changes
    from ..model import Model


@command
@reads()
def edit(
    model: ModelFile,
    output: Annotated[Path, option("Write NAME.model.", "--output", "-o", group="Output", metavar="NAME")],
    *,
    merge: Annotated[Path | None, option("Model whose missing tokens to add.", metavar="MODEL")] = None,
    split: Annotated[str | None, option(PATTERN_HELP, metavar="PATTERN")] = None,
    remove: Annotated[
        list[str] | None, option("Token to remove: text or id. Can be repeated.", metavar="TOKEN")
    ] = None,
    remove_file: Annotated[Path | None, option("File of tokens to remove, one per line.", metavar="FILE")] = None,
    dependents: Annotated[
        Dependents,
        option(
            "Tokens merged from a removed one: hide the removed one, or rebuild or remove them.",
            metavar="CHOICE",
            **one_of(get_args(Dependents)),
        ),
    ] = "hide",
    prune: Annotated[int | None, option("Remove the rarest leaves in --data, down to N tokens.", **number(int))] = None,
    truncate: Annotated[int | None, option("Keep the first N tokens, and special tokens.", **number(int))] = None,
    renumber: Annotated[bool, option("Close the gaps between ids.", "--renumber")] = False,
    data: Annotated[
        list[str] | None,
        option("Documents or chunk counts to compare on. Can be repeated.", group="Data", metavar="PATH"),
    ] = None,
    limit: Annotated[int, option("Number of examples to show.", group="Output", **number(int, least=0))] = 10,
    pattern: RankPattern = None,
    reading: dict[str, Any],
    threads: Threads = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Remove, add or renumber tokens, and print what changes.

    The order is merge, split, remove, prune, truncate, renumber (https://batchbpe.github.io/batchbpe/surgery.html).
    Digits are an id; a token in double quotes is a JSON string.

    Example: batchbpe edit mine.model --prune 8192 --data corpus.txt -o small
    """
    from ..analysis import changes
    from ..formats import native
    from ..storage.atomic import check_writable

    operations = (merge, split, remove, remove_file, prune, truncate, renumber)
    refuse(
        {
            "nothing to do; use --remove, --prune, --truncate, --split, --renumber or --merge": not any(
                each not in (None, False, []) for each in operations
            ),
            "--prune needs --data": prune is not None and not data,
            "--prune reads --data twice, which standard input does not allow": prune is not None
            and "-" in (data or ()),
            "--dependents needs --remove or --remove-file": dependents != "hide" and not (remove or remove_file),
            "--output must be a file name": not output.name,
        }
    )
    path = output if output.suffix == ".model" else output.with_name(output.name + ".model")
    refuse({f"--output must not be the model, {path}": path.exists() and model.exists() and path.samefile(model)})
    check_writable(path)
    before = after = load(model, pattern).model
    if merge is not None:
        with _naming("--merge"):
            after = after.merged_with(load(merge).model)
    if split is not None:
        with _naming("--split"):
            after = after.with_split(split)
    tokens = [*map(_token, remove or ()), *(_lines(remove_file) if remove_file else ())]
    with _naming("--remove"):
        after = after.without(tokens, dependents=dependents) if tokens else after
    if prune is not None and data:
        with _naming("--prune"):
            after = _pruned(after, prune, files=data, **reading, threads=threads, progress=not quiet)
    if truncate is not None:
        with _naming("--truncate"):
            after = after.truncated(truncate)
    if renumber:
        after = after.renumbered()
    found = changes(before, after, files=data, examples=limit, **reading, threads=threads, progress=not quiet)
    native.save(after, path)
    if json:
        print_json({"model": str(path)} | _as_json(found))
    else:
        _print_changes(found)
    note(str(path), quiet or json)


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Name the option in errors about the argument that it became."""
    try:
        yield
    except UserError as error:
        if error.parameter in ("tokens", "n", "other", "pattern"):
            error.parameter = name.removeprefix("--")
        raise


def _token(text: str) -> int | str:
    """Return the id or the text that an argument names.

    >>> _token("300"), _token(" the"), _token('"300"')
    (300, ' the', '300')
    """
    if len(text) > 2 and text[0] == text[-1] == '"':
        return str(parse_json(text, "--remove: "))
    return int(text) if text.isascii() and text.isdecimal() else text


def _lines(path: Path) -> list[int | str]:
    with opening(path):
        content = path.read_bytes()
    if not is_utf8(content):
        raise DataError("invalid UTF-8", file=str(path))
    return [_token(line) for line in content.decode().split("\n") if line]


def _pruned(model: Model, n: int, files: list[str], **reading: Any) -> Model:
    from ..counts import ChunkCounts

    return model.pruned(n, ChunkCounts.count(files=files, pattern=model.split, **reading))


def _as_json(found: Changes) -> dict[str, Any]:
    values = {each.name: getattr(found, each.name) for each in fields(found) if each.name not in ("id_map", "examples")}
    examples = [
        {
            "text": each.text.decode("utf-8", "backslashreplace"),
            "before": [token.hex() for token in each.before],
            "after": [token.hex() for token in each.after],
        }
        for each in found.examples
    ]
    sizes = {"tokens": len(found.id_map.tokenizer), "hidden": len(found.id_map.tokenizer.model.hidden)}
    return sizes | found.id_map.counts | values | {"examples": examples}


def _print_changes(found: Changes) -> None:
    print_rows("", found.summary)
    if found.examples:
        sys.stdout.write("\n")
        columns, cells = found.examples_table()
        print_table([*columns], [[*row] for row in cells])

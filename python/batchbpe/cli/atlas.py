"""`batchbpe atlas`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from ..errors import plural
from .app import command, describe, fail
from .options import ByFile, GroupColumn, Json, Parity, Per, Quiet, Threads, check_groups, option, reads
from .output import note, one_line, print_json
from .usage import UsageError, refuse

if TYPE_CHECKING:
    from ..data.options import Reading


@command
@reads()
def atlas(
    models: Annotated[
        list[Path],
        typer.Argument(help="Tokenizers in any format, including .gguf; the first is the reference.", readable=False),
    ],
    output: Annotated[
        Path,
        option(
            "The page; the results are written next to it as .json.", "--output", "-o", group="Output", metavar="FILE"
        ),
    ] = Path("atlas.html"),
    *,
    data: Annotated[
        list[str] | None, option("Documents or chunk counts to encode. Can be repeated.", group="Data", metavar="PATH")
    ] = None,
    group_column: GroupColumn = None,
    by_file: ByFile = False,
    parity: Parity = None,
    per: Per = None,
    pattern: Annotated[
        str | None,
        option("Split pattern of rank files that are not published ones.", group="Splitting", metavar="PATTERN"),
    ] = None,
    reading: dict[str, Any],
    threads: Threads = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Write one page about any number of tokenizers. The exit code is 1 if one cannot be loaded.

    Example: batchbpe atlas mine.model gpt2.json --data texts --by-file
    """
    from ..analysis.vocab_atlas import atlas
    from ..analysis.vocab_atlas.page import json_beside
    from ..data.options import ReadOptions, Sampling, from_keywords
    from ..storage.atomic import check_writable

    has_options = from_keywords(cast("Reading", reading)) != (ReadOptions(), Sampling())
    refuse(
        {
            "options for reading documents need --data": not data and has_options,
            "--group-column needs --data": group_column and not data,
            "--by-file needs --data": by_file and not data,
        }
    )
    check_groups(group_column, by_file, parity, per, reading)
    inputs = [path for path in [*models, *map(Path, data or ())] if path.exists()]
    for written in (output, json_beside(output)):
        if written.exists() and any(each.samefile(written) for each in inputs):
            raise UsageError(f"--output must not replace an input, {written}")
        check_writable(written)
    found = atlas(
        models,
        files=data or None,
        group_column=group_column,
        by_file=by_file,
        per=per or "character",
        parity=parity,
        pattern=pattern,
        threads=threads,
        progress=not quiet,
        **reading,
    )
    written_paths = found.write(output)
    if json:
        print_json(found.content)
    note("\n".join(map(str, written_paths)), quiet or json)
    if found.failures:
        for error in found.failures.values():
            note(one_line(describe(error)), False)
        fail(f"error: {plural(len(found.failures), 'file')} could not be loaded; the page lists them", 1)

"""`batchbpe experiment mixture-inference`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

from ...choices import MergeOrder
from ..app import load
from ..options import RankPattern, option
from ..usage import number, one_of, refuse
from .common import experiment

if TYPE_CHECKING:
    from ...experiments import Result


@experiment("heldout", "heldout_share", "pattern", "normalization", "seed", "resume")
def mixture_inference(
    *,
    tokenizer: Annotated[Path, option("Tokenizer to examine, in any format.", metavar="MODEL")],
    group_column: Annotated[str | None, option("Table column or jsonl field with the groups.", metavar="NAME")] = None,
    by_file: Annotated[bool, option("Each file is a group.", "--by-file")] = False,
    merges: Annotated[int, option("Number of merges to use, from the first.", **number(int, least=1))] = 2000,
    order: Annotated[
        MergeOrder,
        option(
            "How pairs were chosen: serial, batches, or auto to detect it.",
            metavar="ORDER",
            **one_of(get_args(MergeOrder)),
        ),
    ] = "auto",
    min_bytes: Annotated[int, option("Leave out groups with fewer bytes of text.", **number(int, least=1))] = 100_000,
    pattern: RankPattern = None,
    given: dict[str, Any],
) -> Result:
    """Infer which data a vocabulary was trained on.

    Example: batchbpe experiment mixture-inference --tokenizer a.model --data data --by-file -o found
    """
    from ...experiments import mixture_inference

    refuse({"mixture-inference needs --group-column or --by-file": not (group_column or by_file)})
    return mixture_inference(
        load(tokenizer, pattern),
        group_column=group_column,
        by_file=by_file,
        merges=merges,
        order=order,
        min_bytes=min_bytes,
        **given,
    )

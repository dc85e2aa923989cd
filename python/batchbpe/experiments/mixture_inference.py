"""Infer how much of each language, or of other groups, a vocabulary was trained on, from the order of its merges.

The method is that of "Data Mixture Inference: What do BPE Tokenizers Reveal about their Training Data?" (Hayase et al.
2024), extended to vocabularies that were trained in batches. See
https://batchbpe.github.io/batchbpe/mixture-inference.html.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

import numpy as np
import pyarrow as pa

from ..analysis.evaluation import reading_bar, required_groups
from ..analysis.groups import GroupedDocuments
from ..analysis.merge_runs import batching_signs, merge_sequence
from ..analysis.plots import COLORS, abbreviate_numbers, axes, log_labels, styled_with
from ..arguments import check_integer
from ..choices import MergeOrder
from ..counts import ChunkCounts
from ..counts.counter import ChunkCounter
from ..data.corpus import Corpus, Data, Files
from ..data.options import ReadOptions
from ..errors import ArgumentError, ArgumentTypeError, DataError, Setting, SplitMismatchError, listed, plural, warn
from ..formats import Loadable, load_any
from ..model import Model
from ..util.progress import bar
from ..util.surrogates import Errors
from .data import names_of
from .inference_findings import findings_of, group_rows, range_rows, slacks_of, with_sizes
from .merge_order import Inference, infer_mixture
from .order_program import solver
from .result import Result
from .weighted_table import MergeList

MERGES = 2_000
"""Default number of merges that are used, from the first one."""
MIN_BYTES = 100_000
"""Default number of bytes below which a group is left out."""


@styled_with("plots,solver")
def mixture_inference(
    tokenizer: Loadable,
    groups: Mapping[str, Data] | Data | None = None,
    *,
    texts: Mapping[str, str | Iterable[str]] | None = None,
    files: Mapping[str, Files] | Files | None = None,
    group_column: str | None = None,
    by_file: bool = False,
    merges: int = MERGES,
    order: MergeOrder = "auto",
    min_bytes: int = MIN_BYTES,
    true_mixture: Mapping[str, float] | None = None,
    text_column: str = "text",
    document: str = "file",
    errors: Errors = "strict",
    progress: bool = False,
) -> Result:
    """Infer the fraction of each group in the text that a vocabulary was trained on.

    The fractions are of the bytes of the text. They are only meaningful if the groups cover what the vocabulary was
    trained on, and the text of each group resembles what was used. Requires highspy (`batchbpe[solver]`).

    Parameters
    ----------
    tokenizer: the vocabulary: a tokenizer, a model, or the path of one.
    groups: text by group; or, with `group_column` or `by_file`, anything that `ChunkCounts.count` accepts. Chunk counts
        must have the pattern of the vocabulary.
    texts, files: as in `evaluate`, instead of `groups`.
    group_column: column of tables, or field of jsonl files, that contains the group of each document.
    by_file: whether each file is a group.
    merges: number of merges to use, from the first one.
    order: whether the vocabulary was trained one pair at a time ("serial") or in batches ("batches"). By default,
        `batchbpe.analysis.batching_signs` decides.
    min_bytes: leave out groups with less text. A warning and the findings list them.
    true_mixture: the true fractions, if they are known, to report the error.
    text_column, document, errors: as in `ChunkCounts.count`.
    progress: whether to display a progress bar.

    >>> from batchbpe import ChunkCounts
    >>> en, de = ChunkCounts.count("to be or not to be " * 9), ChunkCounts.count("Sein oder Nichtsein " * 9)
    >>> vocab = Tokenizer.train(ChunkCounts.mix({"en": (en, 0.7), "de": (de, 0.3)}), 266, policy="serial")
    >>> result = mixture_inference(vocab, {"en": en, "de": de}, min_bytes=1)
    >>> result.table["group"].to_pylist()
    ['en', 'de']

    """
    model = load_any("tokenizer", tokenizer)
    _check_options(merges, order, min_bytes)
    solver()  # before reading the text
    pairs = _merge_list(model, merges)
    corpus = Corpus(groups, texts, files, ReadOptions(text_column, document=document, errors=errors))
    sources, grouped = required_groups(corpus, group_column, by_file)
    with reading_bar(sources, show=progress) as update:
        counted = _counted(grouped, model, errors, update)
    counts = {group: each for group, each in counted.items() if each.total_bytes >= min_bytes}
    left_out = {group: each.total_bytes for group, each in counted.items() if group not in counts}
    if len(counts) < 2:
        reason = f"at least two groups must have {min_bytes:,} bytes of text, got {listed(counts)}"
        raise DataError(reason, remedy=("provide more text, or lower ", Setting("min_bytes")))
    if left_out:
        warn(f"groups with less than {min_bytes:,} bytes of text are left out: {with_sizes(left_out)}")
    truth = None if true_mixture is None else _checked_truth(true_mixture, counts)
    signs = batching_signs(model)
    in_batches = bool(signs.in_batches) if order == "auto" else order == "batches"
    with bar("inferring", 0, show=progress) as update_bar:

        def on_pass(number: int, fraction: float) -> None:
            what = f"pass {number} over the merges" if number else "finding batches"
            update_bar(0, f"{what}, {fraction:.0%}")

        found = infer_mixture(counts, pairs, in_batches=in_batches, on_pass=on_pass)
    if not found.rates[found.compared].any():
        raise DataError("none of the merges occurs in the text", remedy="provide text like that of the vocabulary")
    sizes = {group: each.total_bytes for group, each in counts.items()}
    rows = group_rows(found, sizes, truth)
    ranges = range_rows(found)
    parameters = {
        "data": names_of(sources),
        "groups": {group: f"{size:,} bytes" for group, size in sizes.items()},
        "left out": {group: f"{size:,} bytes" for group, size in left_out.items()},
        "pattern": model.split.name,
        "merges": len(pairs.merges),
        "order": "batches" if in_batches else "serial",
        "rows": found.rows,
        "passes": found.passes,
    }
    return Result(
        "mixture-inference",
        parameters,
        {"groups": pa.Table.from_pylist(rows), "merges": pa.Table.from_pylist(ranges)},
        {"groups": _bars(rows), "slack": _slack_figure(found)},
        findings_of(found, rows, signs, in_batches, order, left_out, len(model.phrases), truth is not None)
        | ({"merges used": f"{len(pairs.merges):,}, all of the vocabulary"} if len(pairs.merges) < merges else {}),
    )


def _check_options(merges: int, order: str, min_bytes: int) -> None:
    check_integer("merges", merges, least=1)
    check_integer("min_bytes", min_bytes, least=1)
    if order not in get_args(MergeOrder):
        raise ArgumentError("order", order, f"must be one of {', '.join(map(repr, get_args(MergeOrder)))}")


def _merge_list(model: Model, merges: int) -> MergeList:
    """Return the first merges of a model, or raise if their order is not that of plain training."""
    if not model.merges:
        raise DataError("the vocabulary has no merges, whose order would reveal the mixture")
    if model.hidden:
        hidden = plural(len(model.hidden), "hidden token")
        raise DataError(
            f"the vocabulary has {hidden}, so it was not trained by merging alone",
            remedy="use a vocabulary without hidden tokens",
        )
    words = sorted(model.stop_words, key=model.stop_words.__getitem__)
    return MergeList(merge_sequence(model)[:merges], words)


def _counted(grouped: GroupedDocuments, model: Model, errors: Errors, update: Any) -> dict[str, ChunkCounts]:
    """Count the documents of each group like the vocabulary splits text."""
    counters: dict[str, ChunkCounter] = {}
    for source, parts in grouped:
        with source.blamed():
            for group, documents in parts:
                if group not in counters:
                    counters[group] = ChunkCounter(model.split, list(model.found_tokens), errors)
                try:
                    counters[group].add(documents)
                except SplitMismatchError as error:
                    error.remedy = f"count the text again with {model.split}, the pattern of the vocabulary"
                    error.where = f"group {group}"
                    raise
                update()
    return {group: ChunkCounts(counter.finish()) for group, counter in sorted(counters.items())}


def _checked_truth(true_mixture: Mapping[str, float], groups: Mapping[str, Any]) -> dict[str, float]:
    """Return the true fraction of each group, normalized."""
    if not isinstance(true_mixture, Mapping):
        raise ArgumentTypeError("true_mixture", true_mixture, "must be a dict of group names and fractions")
    unknown = [group for group in true_mixture if group not in groups]
    if unknown:
        raise ArgumentError("true_mixture", unknown[0], f"must only contain groups ({listed(groups)})")
    values = list(true_mixture.values())
    if not all(isinstance(value, int | float) and 0 <= value < math.inf for value in values) or not sum(values):
        raise ArgumentError("true_mixture", dict(true_mixture), "must contain numbers of at least 0, not all 0")
    return {group: true_mixture.get(group, 0) / sum(values) for group in groups}


def _bars(rows: Sequence[Mapping[str, Any]]) -> Any:
    figure, (panel,) = axes(height=max(2.4, 0.34 * len(rows) + 1))
    at = np.arange(len(rows))
    has_truth = "true_fraction" in rows[0]
    panel.barh(at - 0.2 * has_truth, [row["fraction"] for row in rows], 0.4 if has_truth else 0.7, label="inferred")
    if has_truth:
        panel.barh(at + 0.2, [row["true_fraction"] for row in rows], 0.4, color=COLORS[4], label="true")
        panel.legend()
    panel.set_yticks(at, [row["group"] for row in rows])
    panel.invert_yaxis()
    panel.set(xlabel="fraction of the bytes of the training text")
    return figure


def _slack_figure(found: Inference) -> Any:
    figure, (panel,) = axes(height=3.4)
    slacks = slacks_of(found)
    violated = np.flatnonzero(slacks)
    rates = np.where(found.rates, found.rates, np.nan)  # a logarithmic axis has no 0
    panel.plot(np.arange(len(rates)), rates, linewidth=0.8, color=COLORS[4], label="rate of the merge")
    panel.plot(violated, slacks[violated], ".", markersize=3, color=COLORS[1], label="slack")
    panel.set_yscale("log")
    log_labels(panel.yaxis)
    panel.set(xlabel="merge", ylabel="per million bytes")
    abbreviate_numbers(panel.xaxis)
    figure.legend(loc="outside upper left", ncols=2, markerscale=2)
    return figure

"""The effect of omitting rare chunks (the paper's Figure 5)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from ..analysis.plots import axes, explain_hollow, line, styled
from ..data.corpus import Data, Files
from ..errors import ArgumentError
from .data import ExperimentData
from .result import Result, signed
from .trainings import recorded_options, train_with_reference


@styled
def freq_cutoff(
    data: ExperimentData | Data | None = None,
    *,
    texts: str | Iterable[str] | None = None,
    files: Files | None = None,
    vocab_size: int = 50_304,
    cutoffs: Sequence[int] = tuple(range(1, 11)),
    progress: bool = False,
    **options: Any,
) -> Result:
    """Train with different frequency cutoffs, and compare training time and the encoded length of held-out text.

    Parameters
    ----------
    data: anything that `ChunkCounts.count` accepts, or an `ExperimentData`.
    texts, files: as in `ChunkCounts.count`, instead of `data`.
    vocab_size: size of each vocabulary.
    cutoffs: frequency cutoffs; the first is the reference.
    progress: whether to display a progress bar.
    options: other options of `train`, for all vocabularies.

    >>> result = freq_cutoff("to be or not to be " * 50, vocab_size=258, cutoffs=[1, 20])
    >>> result.table["unique"].to_pylist()
    [5, 4]

    """
    if not cutoffs:
        raise ArgumentError("cutoffs", list(cutoffs), "must contain at least one number")
    data = ExperimentData.of(data, texts=texts, files=files)
    settings = [{"vocab_size": vocab_size, **options, "freq_cutoff": cutoff} for cutoff in cutoffs]
    results = train_with_reference(data, settings, timed=True, progress=progress)
    unique = [data.counts.at_least(cutoff).unique for cutoff in cutoffs]
    rows = [
        {
            "freq_cutoff": cutoff,
            "unique": kept,
            "unique_kept": kept / data.counts.unique,
            **trained.lengths(results[0]),
            "seconds": trained.seconds,
        }
        for cutoff, kept, trained in zip(cutoffs, unique, results, strict=True)
    ]
    first, last = rows[0], rows[-1]
    complete = [row for row in rows if row["vocab_size"] == first["vocab_size"]]
    changes = [row["change"] for row in complete]
    short = "" if complete == rows else f" up to cutoff {complete[-1]['freq_cutoff']}; vocabularies are smaller beyond"
    faster = first["seconds"] / last["seconds"]
    time = f"{faster:.1f} times less time" if faster >= 1 else f"{1 / faster:.1f} times as much time"
    findings = {
        "freq_cutoff=10 leaves about ten times fewer unique chunks": (
            f"freq_cutoff={last['freq_cutoff']}: {first['unique'] / max(1, last['unique']):.1f} times fewer"
        ),
        "training takes about ten times less time": time
        if last["unique"] < first["unique"]
        else "no chunks are omitted",
        "the encoded length changes only slightly": f"{signed(min(changes))}% to {signed(max(changes))}%{short}",
    }
    rarest = int(data.counts.arrays.counts[-1])
    if rarest > min(cutoffs):
        findings["the data contains rare chunks"] = (
            f"all occur at least {rarest} times, so lower cutoffs have no effect"
        )
    return Result(
        "freq-cutoff",
        {**data.parameters, "vocab_size": vocab_size, **recorded_options(options)},
        {"freq_cutoff": pa.Table.from_pylist(rows)},
        {"freq_cutoff": _figure(rows, vocab_size)},
        findings,
    )


def _figure(rows: list[dict[str, Any]], vocab_size: int) -> Any:
    figure, panels = axes(3, height=3.4)
    cutoffs = [row["freq_cutoff"] for row in rows]
    short = [row["vocab_size"] < vocab_size for row in rows]
    left, middle, right = panels
    line(left, cutoffs, [row["change"] for row in rows], zero=True, hollow=short)
    left.set_title(f"Encoded length of held-out text,\nchange from cutoff {cutoffs[0]} in %")
    line(middle, cutoffs, [100 * row["unique_kept"] for row in rows])
    middle.set(title="Unique chunks kept, %\n", ylim=(0, 105))
    line(right, cutoffs, [row["seconds"] for row in rows], hollow=short)
    right.set(title="Training time, seconds\n", ylim=(0, None))
    for panel in panels:
        panel.set(xlabel="frequency cutoff", xticks=cutoffs)
    explain_hollow(figure, short, vocab_size)
    return figure

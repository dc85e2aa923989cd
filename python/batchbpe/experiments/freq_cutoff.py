"""What it costs to leave out rare chunks (the paper's Figure 5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from ..evaluation import evaluate_text
from .data import Data
from .plots import axes, line, styled
from .result import Result
from .runs import check_size, runs_bar, train_all


def freq_cutoff(
    data: Data,
    *,
    vocab_size: int = 50_304,
    cutoffs: Sequence[int] = tuple(range(1, 11)),
    progress: bool = False,
    **options: Any,
) -> Result:
    """Train with each cutoff, the first being the reference, and encode the held-out text.

    >>> result = freq_cutoff(Data.of("to be or not to be " * 50), vocab_size=258, cutoffs=[1, 20])
    >>> result.table["unique"].to_pylist()
    [5, 4]
    """
    if not cutoffs:
        raise ValueError("cutoffs is empty: give at least one")
    settings = [{"vocab_size": vocab_size, **options, "freq_cutoff": cutoff} for cutoff in cutoffs]
    text = data.text
    rows: list[dict[str, Any]] = []
    with runs_bar(len(settings), show=progress) as moved:
        for run in train_all(data.counts, settings, timed=True, moved=moved):
            if not rows:
                check_size(run)
            cutoff = run.options["freq_cutoff"]
            unique = data.counts.at_least(cutoff).unique
            tokens = evaluate_text(str(cutoff), run.tokenizer, text).tokens
            change = 100 * (tokens / rows[0]["tokens"] - 1) if rows else 0.0
            rows.append(
                {
                    "freq_cutoff": cutoff,
                    "unique": unique,
                    "unique_kept": unique / data.counts.unique,
                    "vocab_size": len(run.tokenizer.vocab),
                    "tokens": tokens,
                    "change": change,
                    "seconds": run.seconds,
                }
            )
    first, last = rows[0], rows[-1]
    changes = [row["change"] for row in rows]
    return Result(
        "freq-cutoff",
        {**data.parameters, "vocab_size": vocab_size, **options},
        {"freq_cutoff": pa.Table.from_pylist(rows)},
        {"freq_cutoff": _figure(rows)},
        {
            "freq_cutoff 10 leaves about ten times fewer unique chunks": (
                f"freq_cutoff {last['freq_cutoff']}: {first['unique'] / max(1, last['unique']):.1f} times fewer"
            ),
            "and takes about ten times less time to train": f"{first['seconds'] / last['seconds']:.1f} times less",
            "encoded length changes only slightly": f"{min(changes):+.4f} % to {max(changes):+.4f} %",
        },
    )


@styled
def _figure(rows: list[dict[str, Any]]) -> Any:
    figure, (left, middle, right) = axes(3, height=3.6)
    cutoffs = [row["freq_cutoff"] for row in rows]
    line(left, cutoffs, [row["change"] for row in rows], zero=True)
    left.set(title="encoded length", ylabel="change, %")
    line(middle, cutoffs, [100 * row["unique_kept"] for row in rows])
    middle.set(title="unique chunks kept", ylabel="%", ylim=(0, None))
    line(right, cutoffs, [row["seconds"] for row in rows])
    right.set(title="training time", ylabel="seconds", ylim=(0, None))
    for panel in (left, middle, right):
        panel.set(xlabel="freq_cutoff", xticks=cutoffs)
    return figure

"""What it costs to leave out rare chunks (the paper's Figure 5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from ..analysis.evaluation import evaluate_text
from ..data import corpus
from .data import Data
from .plots import axes, explain_hollow, line, styled
from .result import Result, signed
from .trainings import check_size, runs_bar, train_all


@styled
def freq_cutoff(
    data: Data | corpus.Data,
    *,
    vocab_size: int = 50_304,
    cutoffs: Sequence[int] = tuple(range(1, 11)),
    progress: bool = False,
    **options: Any,
) -> Result:
    """Train with each cutoff, the first being the reference, and encode the held-out text.

    >>> result = freq_cutoff("to be or not to be " * 50, vocab_size=258, cutoffs=[1, 20])
    >>> result.table["unique"].to_pylist()
    [5, 4]
    """
    if not cutoffs:
        raise ValueError("cutoffs is empty: give at least one")
    data = Data.of(data)
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
            rows.append(
                {
                    "freq_cutoff": cutoff,
                    "unique": unique,
                    "unique_kept": unique / data.counts.unique,
                    "vocab_size": len(run.tokenizer.vocab),
                    "tokens": tokens,
                    "change": 100 * (tokens / rows[0]["tokens"] - 1) if rows else 0.0,
                    "seconds": run.seconds,
                }
            )
    first, last = rows[0], rows[-1]
    whole = [row for row in rows if row["vocab_size"] == first["vocab_size"]]
    changes = [row["change"] for row in whole]
    short = "" if whole == rows else f" up to {whole[-1]['freq_cutoff']}; beyond, there are fewer tokens than asked"
    faster = first["seconds"] / last["seconds"]
    time = f"{faster:.1f} times less" if faster >= 1 else f"{1 / faster:.1f} times more"
    findings = {
        "freq_cutoff 10 leaves about ten times fewer unique chunks": (
            f"freq_cutoff {last['freq_cutoff']}: {first['unique'] / max(1, last['unique']):.1f} times fewer"
        ),
        "and takes about ten times less time to train": time if last["unique"] < first["unique"] else "the same chunks",
        "encoded length changes only slightly": f"{signed(min(changes))} % to {signed(max(changes))} %{short}",
    }
    rarest = int(data.counts.counts[-1])
    if rarest > min(cutoffs):
        findings["rare chunks are in the data"] = f"each occurs {rarest} times or more: lower cutoffs change nothing"
    return Result(
        "freq-cutoff",
        {**data.parameters, "vocab_size": vocab_size, **options},
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
    left.set_title(f"tokens of held-out text,\nchange in % against cutoff {cutoffs[0]}")
    line(middle, cutoffs, [100 * row["unique_kept"] for row in rows])
    middle.set(title="unique chunks kept, %\n", ylim=(0, 105))
    line(right, cutoffs, [row["seconds"] for row in rows], hollow=short)
    right.set(title="training time, seconds\n", ylim=(0, None))
    for panel in panels:
        panel.set(xlabel="frequency cutoff", xticks=cutoffs)
    explain_hollow(figure, short, vocab_size)
    return figure

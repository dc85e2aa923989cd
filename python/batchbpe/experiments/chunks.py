"""How chunks are distributed: few of them are unique, and most of these are rare (the paper's Figures 1 and 2)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from ..counting import Counter
from ..counts import ChunkCounts
from ..data import corpus
from ..data.readers import TextFile
from ..data.tables import CountsFile
from ..progress import counting_bar
from .data import Data, named
from .plots import axes, line, styled, with_thousands
from .result import Result

POINTS = 40
DOCUMENTS = 256
"""After so many the curve may have a point."""
EDGES = (1, 2, 3, 4, 5, 10, 100, 1_000, 10_000, 100_000)


@styled
def chunks(
    data: Data | corpus.Data,
    *,
    pattern: str | None = None,
    text_column: str = "text",
    points: int = POINTS,
    errors: str = "strict",
    progress: bool = False,
) -> Result:
    """Count total and unique chunks as a dataset is read, and how often each occurs.

    Of chunk counts, or a single document, the growth is what a random order of the chunks would be expected to give.

    >>> result = chunks(["to be or not to be"] * 3)
    >>> result.table.to_pylist()[-1]
    {'total': 18, 'unique': 5}
    """
    if isinstance(data, Data):
        data = data.counts + data.heldout
    totals, uniques, counts, read = _read(data, pattern, text_column, errors, progress)
    if not counts.unique:
        raise ValueError("the data has no chunks: give more")
    if not read:
        totals = sorted({counts.total * place // points or 1 for place in range(1, points + 1)})
        numbers, times = np.unique(counts.counts.astype(np.float64), return_counts=True)
        uniques = [float((times * (1 - (1 - total / counts.total) ** numbers)).sum()) for total in totals]
    places = np.unique(np.linspace(0, len(totals) - 1, points).round().astype(int))
    growth = [{"total": totals[i], "unique": round(uniques[i])} for i in places]
    frequencies, rarest = _frequencies(counts), int(counts.counts[-1])
    few = 1 - counts.at_least(4).unique / counts.unique
    common = int(counts.counts[:100].sum(dtype=object)) / counts.total
    return Result(
        "chunks",
        {
            "data": named(data),
            "pattern": counts.pattern,
            "total": counts.total,
            "unique": counts.unique,
            "growth": read or "expected",
        },
        {"growth": pa.Table.from_pylist(growth), "frequencies": pa.Table.from_pylist(frequencies)},
        {
            "growth": _growth(growth, read, rarest),
            "frequencies": _bars(frequencies, rarest),
        },
        {
            "0.19 % of the total chunks are unique": f"{100 * counts.unique / counts.total:.2f} %",
            "each appears 524 times on average": f"{counts.total / counts.unique:.0f} times",
            "the 100 commonest are 45.25 % of all": f"{100 * common:.2f} %",
            "75 % of the unique chunks appear fewer than 4 times": f"{100 * few:.0f} %",
        },
    )


def _read(
    data: Any, pattern: str | None, column: str, errors: str, progress: bool
) -> tuple[list[int], list[float], ChunkCounts, str]:
    """Count with one thread, which knows at any time how many are unique."""
    if isinstance(data, ChunkCounts):
        return [], [], data, ""
    counter = Counter(pattern, (), errors, threads=1)
    totals: list[int] = []
    uniques: list[float] = []
    sources = corpus.sources(data, text_column=column, errors=errors)
    with counting_bar(counter, sources, show=progress):
        for source in sources:
            documents: Any
            for documents in source:
                if isinstance(documents, CountsFile | dict | TextFile):
                    counter.add(documents)
                    continue
                for start in range(0, len(documents), DOCUMENTS):
                    counter.add(documents[start : start + DOCUMENTS])
                    totals.append(counter.table.total if counter.table else 0)
                    uniques.append(counter.unique)
    counts = counter.take()
    if len(totals) > 1 and (totals[-1], uniques[-1]) == (counts.total, counts.unique):
        return totals, uniques, counts, "as read"
    return [], [], counts, ""


def _frequencies(counts: ChunkCounts) -> list[dict[str, Any]]:
    rows = []
    for low, high in pairwise((*EDGES, 1 << 63)):
        unique = counts.at_least(low).unique - counts.at_least(high).unique
        name = f"{low:,} and more" if high == 1 << 63 else str(low) if high == low + 1 else f"{low:,} to {high - 1:,}"
        rows.append({"times": name, "unique": unique, "share": unique / counts.unique})
    return rows


def _cut_off(rarest: int) -> str:
    return f"\n(the data has only chunks that occur {rarest:,} times or more)" if rarest > 1 else ""


def _growth(growth: list[dict[str, Any]], read: str, rarest: int) -> Any:
    figure, (panel,) = axes()
    line(panel, [0, *(row["total"] for row in growth)], [0, *(row["unique"] for row in growth)])
    last = growth[-1]
    order = "chunks, in the order they were read" if read else "chunks, as expected if they came in random order"
    panel.set(xlabel=order, ylabel="unique chunks", xlim=(0, None), ylim=(0, None))
    title = f"{last['unique']:,} unique chunks among {last['total']:,}: {100 * last['unique'] / last['total']:.2f} %"
    panel.set_title(title + _cut_off(rarest))
    with_thousands(panel.xaxis)
    with_thousands(panel.yaxis)
    return figure


def _bars(frequencies: list[dict[str, Any]], rarest: int) -> Any:
    figure, (panel,) = axes()
    names, shares = [row["times"] for row in frequencies], [100 * row["share"] for row in frequencies]
    bars = panel.barh(names[::-1], shares[::-1])
    panel.bar_label(bars, fmt="%.1f %%", padding=3)
    panel.set(xlabel="share of the unique chunks, %", ylabel="how often a chunk occurs", xlim=(0, max(shares) * 1.15))
    panel.grid(visible=False, axis="y")
    panel.set_title(f"{sum(shares[:3]):.0f} % of the unique chunks occur fewer than 4 times" + _cut_off(rarest))
    return figure

"""Distribution of chunks: few are unique, and most unique chunks are rare (the paper's Figures 1 and 2)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from ..analysis.plots import abbreviate_numbers, axes, line, styled
from ..choices import Normalization
from ..counts import ChunkCounts
from ..counts.counter import ChunkCounter
from ..data.corpus import Corpus, Data, Files
from ..data.documents import Counts, TextFile
from ..data.options import ReadOptions
from ..errors import DataError
from ..patterns import Split, split_given
from ..util.progress import counting_bar
from ..util.surrogates import Errors
from .data import ExperimentData, source_names
from .result import Result

POINTS = 40
"""Default number of points on the growth curve."""
STEP = 256
"""Number of documents between two measurements."""
EDGES = (1, 2, 3, 4, 5, 10, 100, 1_000, 10_000, 100_000)
"""Lower bounds of the count ranges."""


@styled
def chunks(
    data: ExperimentData | Data | None = None,
    *,
    texts: str | Iterable[str] | None = None,
    files: Files | None = None,
    pattern: Split | str | None = None,
    normalization: Normalization | None = None,
    text_column: str = "text",
    document: str = "file",
    points: int = POINTS,
    errors: Errors = "strict",
    progress: bool = False,
) -> Result:
    """Measure how the number of unique chunks grows with the dataset, and how often each chunk occurs.

    For chunk counts or a single document, this is the expected growth for chunks in random order.

    Parameters
    ----------
    data: anything that `ChunkCounts.count` accepts, or an `ExperimentData`.
    texts, files: as in `ChunkCounts.count`, instead of `data`.
    points: number of points on the growth curve.
    pattern, normalization, text_column, document, errors, progress: as in `ChunkCounts.count`.

    >>> result = chunks(["to be or not to be"] * 3)
    >>> result.table.to_pylist()[-1]
    {'total': 18, 'unique': 5}

    """
    if isinstance(data, ExperimentData):
        data = data.counts + data.heldout
    corpus = Corpus(data, texts, files, ReadOptions(text_column, document=document, errors=errors))
    counts, measured = _read(corpus, split_given(pattern, normalization), progress)
    if not counts.unique:
        raise DataError("the data contains no chunks", remedy="provide more data")
    as_read = bool(measured)
    growth = measured or _expected_growth(counts, points)
    indices = np.unique(np.linspace(0, len(growth) - 1, points).round().astype(int))
    growth = [growth[i] for i in indices]
    frequencies, rarest = _frequencies(counts), int(counts.arrays.counts[-1])
    rare = 1 - counts.at_least(4).unique / counts.unique
    frequent = int(counts.arrays.counts[:100].sum(dtype=object)) / counts.total
    return Result(
        "chunks",
        {
            "data": source_names(corpus),
            "pattern": counts.split.name,
            "total": counts.total,
            "unique": counts.unique,
            "growth": "as read" if as_read else "expected",
        },
        {"growth": pa.Table.from_pylist(growth), "frequencies": pa.Table.from_pylist(frequencies)},
        {
            "growth": _growth_figure(growth, as_read, rarest),
            "frequencies": _frequency_figure(frequencies, rarest),
        },
        {
            "0.19% of all chunks are unique": f"{100 * counts.unique / counts.total:.2f}%",
            "each unique chunk occurs 524 times on average": f"{counts.total / counts.unique:.0f} times",
            "the 100 most frequent chunks make up 45.25% of the total": f"{100 * frequent:.2f}%",
            "75% of the unique chunks occur fewer than 4 times": f"{100 * rare:.0f}%",
        },
    )


def _read(corpus: Corpus, split: Split | None, progress: bool) -> tuple[ChunkCounts, list[dict[str, int]]]:
    """Return the counts of data, and the growth measured while reading; empty if it could not be measured.

    Count with one thread, so that the number of unique chunks is known at any time.
    """
    if isinstance(corpus.data, ChunkCounts):
        return corpus.data, []
    counter = ChunkCounter(split, (), corpus.options.errors, threads=1)
    growth: list[dict[str, int]] = []
    with counting_bar(counter, corpus.sources, show=progress):
        for source in corpus.sources:
            with source.blamed():
                for documents in source:
                    if isinstance(documents, Counts | TextFile):
                        counter.add(documents)
                        continue
                    for start in range(0, len(documents), STEP):
                        counter.add(documents[start : start + STEP])
                        growth.append({"total": counter.total, "unique": counter.unique})
    counts = ChunkCounts(counter.take())
    is_complete = len(growth) > 1 and growth[-1] == {"total": counts.total, "unique": counts.unique}
    return counts, growth if is_complete else []


def _expected_growth(counts: ChunkCounts, points: int) -> list[dict[str, int]]:
    numbers, times = np.unique(counts.arrays.counts.astype(np.float64), return_counts=True)
    return [
        {"total": total, "unique": round(float((times * (1 - (1 - total / counts.total) ** numbers)).sum()))}
        for total in sorted({counts.total * point // points or 1 for point in range(1, points + 1)})
    ]


def _frequencies(counts: ChunkCounts) -> list[dict[str, Any]]:
    rows = []
    for low, high in pairwise((*EDGES, 1 << 63)):
        unique = counts.at_least(low).unique - counts.at_least(high).unique
        name = f"{low:,} or more" if high == 1 << 63 else str(low) if high == low + 1 else f"{low:,} to {high - 1:,}"
        rows.append({"times": name, "unique": unique, "share": unique / counts.unique})
    return rows


def _cutoff_note(rarest: int) -> str:
    return f"\n(the data only contains chunks with a count of at least {rarest:,})" if rarest > 1 else ""


def _growth_figure(growth: list[dict[str, Any]], as_read: bool, rarest: int) -> Any:
    figure, (panel,) = axes()
    line(panel, [0, *(row["total"] for row in growth)], [0, *(row["unique"] for row in growth)])
    last = growth[-1]
    order = "chunks read" if as_read else "chunks (expected growth in random order)"
    panel.set(xlabel=order, ylabel="unique chunks", xlim=(0, None), ylim=(0, None))
    title = f"{last['unique']:,} of {last['total']:,} chunks are unique: {100 * last['unique'] / last['total']:.2f}%"
    panel.set_title(title + _cutoff_note(rarest))
    abbreviate_numbers(panel.xaxis)
    abbreviate_numbers(panel.yaxis)
    return figure


def _frequency_figure(frequencies: list[dict[str, Any]], rarest: int) -> Any:
    figure, (panel,) = axes()
    names, percents = [row["times"] for row in frequencies], [100 * row["share"] for row in frequencies]
    bars = panel.barh(names[::-1], percents[::-1])
    panel.bar_label(bars, fmt="%.1f%%", padding=3)
    panel.set(xlabel="unique chunks, %", ylabel="count of a chunk", xlim=(0, max(percents) * 1.15))
    panel.grid(visible=False, axis="y")
    panel.set_title(f"{sum(percents[:3]):.0f}% of the unique chunks occur fewer than 4 times" + _cutoff_note(rarest))
    return figure

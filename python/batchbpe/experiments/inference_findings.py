"""The tables and findings of mixture inference: what was found, and how far it can be trusted."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..analysis.merge_runs import BatchingSigns
from ..choices import MergeOrder
from ..errors import plural
from .merge_order import Inference
from .order_program import Rates

UNEXPLAINED = 0.06
"""If a larger fraction of the occurrences of the merges is unexplained, the fractions may be far off.

https://batchbpe.github.io/batchbpe/mixture-inference.html#when-to-distrust-the-result has the error rates.
"""
SIMILAR = 0.1
"""Groups whose distance is smaller may be confused."""
RANGES = 10
"""Number of rows in the table of slacks."""


def group_rows(found: Inference, sizes: Mapping[str, int], truth: Mapping[str, float] | None) -> list[dict[str, Any]]:
    """Return the fraction of each group, largest first, and the group that is most like it."""
    names, rates = list(sizes), found.group_rates
    distances = np.array(
        [[_distance(rates[:, one], rates[:, other]) for other in range(len(names))] for one in range(len(names))]
    )
    np.fill_diagonal(distances, np.inf)
    rows: list[dict[str, Any]] = []
    for (group, size), weight, distance in zip(sizes.items(), found.weights.tolist(), distances, strict=True):
        row: dict[str, Any] = {"group": group, "fraction": weight, "bytes": size}
        row |= {"nearest_group": names[distance.argmin()], "distance": float(distance.min())}
        if truth is not None:
            row |= {"true_fraction": truth[group], "error": weight - truth[group]}
        rows.append(row)
    return sorted(rows, key=lambda row: -row["fraction"])


def _distance(rates: Rates, others: Rates) -> float:
    """Return how different two groups are: 0 if all merges are equally frequent, 1 if no merge occurs in both."""
    return float(abs(rates - others).sum() / max((rates + others).sum(), np.finfo(float).tiny))


def range_rows(found: Inference) -> list[dict[str, Any]]:
    """Return how well the weights explain the merges, by range."""
    slacks = slacks_of(found)
    edges = np.unique(np.linspace(0, len(slacks), RANGES + 1).astype(int)).tolist()
    starts = np.array(found.cut)
    return [
        {
            "first_merge": low,
            "last_merge": high - 1,
            "batches": int(((starts >= low) & (starts < high)).sum()),
            "not_in_text": int((~found.group_rates[low:high].any(axis=1)).sum()),
            "compared": int(found.compared[low:high].sum()),
            "violated": int((slacks[low:high] > 0).sum()),
            "slack": float(slacks[low:high].sum()),
            "rate": float(found.rates[low:high].sum()),
        }
        for low, high in pairwise(edges)
    ]


def slacks_of(found: Inference) -> Rates:
    """Return the slack of each merge."""
    return np.array([found.merge_slacks.get(merge, 0.0) for merge in range(len(found.rates))])


def findings_of(
    found: Inference,
    rows: Sequence[Mapping[str, Any]],
    signs: BatchingSigns,
    in_batches: bool,
    order: MergeOrder,
    left_out: Mapping[str, int],
    phrases: int,
    has_truth: bool,
) -> dict[str, str]:
    """Return what was found, and what limits it."""
    score = f"score {signs.score:.2f}"
    judged = {True: "in batches", False: "one at a time, or in small batches", None: "too few merges to tell"}
    rate = found.rates[found.compared].sum()
    unexplained, rivals = (sum(each.values()) / rate for each in (found.merge_slacks, found.rival_slacks))
    missing = int((~found.group_rates.any(axis=1)).sum())
    findings = {
        "mixture, in bytes of text": ", ".join(f"{row['group']} {row['fraction']:.1%}" for row in rows),
        "how pairs were chosen, judging by the order of merges": f"{judged[signs.in_batches]} ({score})",
        "unexplained occurrences": f"{unexplained:.1%} of those of the merges; a caution is added above "
        f"{UNEXPLAINED:.0%}",
        "unexplained occurrences of other pairs": f"{rivals:.1%} of those of the merges, of pairs that occur more "
        "often than merges; no caution depends on it",
    }
    if not found.rows:
        findings["undetermined"] = (
            "these fractions explain all merges, and others may, too; use more merges or other groups"
        )
    if unexplained > UNEXPLAINED:
        findings["caution"] = (
            "the groups explain the order poorly; use more text, other groups, or text like the original"
        )
    if order == "auto" and signs.in_batches is None:
        findings["assumed order"] = "one at a time; set it if the vocabulary was trained in batches"
    if in_batches:
        findings["batches found"] = f"{len(found.cut):,}"
        if not found.is_stable:
            findings["partial result"] = "the batches did not settle; compare with other numbers of merges"
    if not found.is_complete:
        findings["partial result"] = f"stopped after {found.passes} passes; the weights are not optimal"
    if missing:
        findings["merges that do not occur in the text"] = f"{missing:,} of {len(found.rates):,}"
    if left_out:
        findings["groups left out"] = with_sizes(left_out)
    if phrases:
        findings["phrases"] = f"{plural(phrases, 'phrase')} ignored, since only merges within chunks have an order"
    nearest = ((row["group"], row["nearest_group"]) for row in rows if row["distance"] < SIMILAR)
    similar = dict.fromkeys(" and ".join(sorted(pair)) for pair in nearest)  # each pair once
    if similar:
        findings["similar groups, whose fractions may be confused"] = ", ".join(similar)
    if has_truth:
        mean = sum(row["error"] ** 2 for row in rows) / len(rows)
        largest = max(rows, key=lambda row: abs(row["error"]))
        exponent = f"{math.log10(mean):.2f}" if mean else "−∞"
        findings["error"] = (
            f"log10 of the mean squared error {exponent}; largest {largest['error']:+.4f} ({largest['group']})"
        )
    return findings


def with_sizes(groups: Mapping[str, int]) -> str:
    """List groups with the size of their text.

    >>> with_sizes({"en": 5000, "de": 30})
    'en (5,000 bytes), de (30 bytes)'
    """
    return ", ".join(f"{group} ({size:,} bytes)" for group, size in groups.items())

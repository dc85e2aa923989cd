"""The results as tables and sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
import pyarrow as pa

from ...errors import plural
from .comparison import Bits, Difference, at_flops, differences, seed_noise
from .runs import Run

FEW_DOCUMENTS = 20
"""Below this number of held-out documents, intervals are rough."""


@dataclass(frozen=True)
class Compared:
    """The runs of all vocabularies, and their differences from the first."""

    runs: Mapping[str, Sequence[Run]]
    heldout_sizes: Sequence[int]
    heldout_tokens: Mapping[str, int]

    @property
    def bits(self) -> dict[str, Bits]:
        """The bits of each document after training, in one row for each seed."""
        return {name: np.array([run.points[-1].bits for run in runs]) for name, runs in self.runs.items()}

    @property
    def flops(self) -> int:
        """The compute that all models have used: the smallest of all runs."""
        return min(run.flops[-1] for runs in self.runs.values() for run in runs)

    @property
    def bits_at_flops(self) -> dict[str, Bits | None]:
        """The same at equal compute. None for a vocabulary that was not evaluated with so little compute."""
        found: dict[str, Bits | None] = {}
        for name, runs in self.runs.items():
            each = [at_flops(run.flops, run.bits, self.flops) for run in runs]
            found[name] = None if any(bits is None for bits in each) else np.array(each)
        return found

    def mean_curve(self, name: str) -> Bits:
        """Return the bytes, operations and bits of each evaluation, in three rows; means of all seeds."""
        points = [[(each.bytes, each.flops, each.total) for each in run.points] for run in self.runs[name]]
        curve: Bits = np.mean(points, axis=0).T
        return curve

    def per_byte(self, bits: Bits | None) -> float | None:
        """Return the mean bits per byte of all seeds."""
        return None if bits is None else float(bits.sum(1).mean() / sum(self.heldout_sizes))

    def differences(self, bits: Mapping[str, Bits | None]) -> dict[str, Difference | None]:
        """Return the differences from the first vocabulary; None where something is unknown."""
        known = [name for name, each in bits.items() if each is not None]
        if next(iter(bits)) not in known:
            return dict.fromkeys(bits)
        found = dict(zip(known, differences([bits[name] for name in known]), strict=True))  # type: ignore[misc]
        return {name: found.get(name) for name in bits}


def tables(compared: Compared) -> dict[str, pa.Table]:
    """Return the comparison at equal bytes and at equal compute, the curves, and the results of each seed."""
    rows = {
        "vocabularies": _at_equal_bytes(compared),
        "equal_compute": _compared(compared, compared.bits_at_flops),
        "curves": _curves(compared),
        "seeds": _seeds(compared),
    }
    return {name: pa.Table.from_pylist(each) for name, each in rows.items()}


def findings(compared: Compared) -> dict[str, str]:
    """Say for each vocabulary how it compares with the first."""
    if len(compared.runs) == 1:
        return {}
    found = {}
    reference = next(iter(compared.runs))
    kinds: dict[str, Mapping[str, Bits | None]] = {
        "equal bytes": compared.bits,
        "equal compute": compared.bits_at_flops,
    }
    for kind, bits in kinds.items():
        for name, difference in compared.differences(bits).items():
            if difference is None:
                unknown = name if bits[reference] is not None else reference
                found[f"{name}, {kind}"] = f"unknown: {unknown} was not evaluated with so little compute"
            elif name != reference:
                found[f"{name}, {kind}"] = sentence(difference, reference)
    seeds, documents = len(compared.runs[reference]), len(compared.heldout_sizes)
    covers = (
        "held-out documents and seeds" if seeds > 1 else "held-out documents; with one seed, not the noise of seeds"
    )
    found["95% intervals cover the choice of"] = covers
    spread, freedom = seed_noise(np.array([each.sum(1) for each in compared.bits.values()]))
    if freedom:
        degrees = plural(freedom, "degree")
        found["noise of a seed"] = f"{100 * spread:.2f}% (standard deviation of a model, {degrees} of freedom)"
    if documents < FEW_DOCUMENTS:
        found["caution"] = f"with {plural(documents, 'held-out document')}, the intervals are rough"
    return found


def sentence(difference: Difference, reference: str) -> str:
    """Describe a difference.

    >>> sentence(Difference(-1.5, -2, 0.5), "serial"), sentence(Difference(1.5, 1, 2), "serial")
    ('cannot be told apart from serial: −1.50% (−2.00 to +0.50)', 'worse than serial: +1.50% (+1.00 to +2.00)')
    """
    numbers = f"{_percent(difference.percent)}% ({_percent(difference.low)} to {_percent(difference.high)})"
    word = "from" if difference.kind == "cannot be told apart" else "than"
    return f"{difference.kind} {word} {reference}: {numbers}{', one seed' if difference.is_one_seed else ''}"


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:+.2f}".replace("-", "−")


def _at_equal_bytes(compared: Compared) -> list[dict[str, Any]]:
    heldout = sum(compared.heldout_sizes)
    rows = []
    for row in _compared(compared, compared.bits):
        name, runs = row["vocabulary"], compared.runs[row["vocabulary"]]
        sizes = {"size": runs[0].vocabulary - 1, "bytes_per_token": heldout / compared.heldout_tokens[name]}
        cost = {"parameters": runs[0].parameters, "teraflops": fmean(run.flops[-1] for run in runs) / 1e12}
        rows.append({"vocabulary": name, **sizes, **cost, **row})
    return rows


def _compared(compared: Compared, bits: Mapping[str, Bits | None]) -> list[dict[str, Any]]:
    found = compared.differences(bits)
    return [
        {
            "vocabulary": name,
            "bits_per_byte": compared.per_byte(bits[name]),
            "change": each and each.percent,
            "change_low": each and each.low,
            "change_high": each and each.high,
            "verdict": each and each.verdict,
        }
        for name, each in found.items()
    ]


def _curves(compared: Compared) -> list[dict[str, Any]]:
    size = sum(compared.heldout_sizes)
    return [
        {
            "vocabulary": name,
            "bytes": round(fmean(point.bytes for point in points)),
            "tokens": round(fmean(point.tokens for point in points)),
            "teraflops": fmean(point.flops for point in points) / 1e12,
            "bits_per_byte": fmean(point.total for point in points) / size,
        }
        for name, runs in compared.runs.items()
        for points in zip(*(run.points for run in runs), strict=True)
    ]


def _seeds(compared: Compared) -> list[dict[str, Any]]:
    size = sum(compared.heldout_sizes)
    reference = next(iter(compared.runs.values()))
    return [
        {
            "vocabulary": name,
            "seed": seed,
            "bits_per_byte": run.points[-1].total / size,
            "change": 100 * (run.points[-1].total / reference[seed].points[-1].total - 1),
            "teraflops": run.flops[-1] / 1e12,
            "seconds": run.seconds,
        }
        for name, runs in compared.runs.items()
        for seed, run in enumerate(runs)
    ]

"""The results as figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import fmean
from typing import Any

from ...analysis.plots import COLORS, axes
from .comparison import Difference
from .runs import Point
from .tables import Compared

MAX_LABEL = 32
"""Maximum length of the name of a vocabulary, in characters."""


def figures(compared: Compared) -> dict[str, Any]:
    """Draw the differences, and bits per byte against bytes and against compute."""
    return {"differences": _differences(compared), "curves": _curves(compared)}


def _differences(compared: Compared) -> Any:
    kinds = {
        "equal bytes": compared.differences(compared.bits),
        "equal compute": compared.differences(compared.bits_at_flops),
    }
    names = list(compared.runs)
    figure, panels = axes(2, height=1.5 + 0.3 * len(names), width=9)
    for panel, (kind, found) in zip(panels, kinds.items(), strict=True):
        panel.axvline(0, color="#888888", linewidth=0.8)
        for row, name in enumerate(names):
            _interval(panel, row, found[name])
        panel.set_ylim(len(names) - 0.5, -0.5)
        panel.set_yticks(range(len(names)), [_label(name) for name in names] if panel is panels[0] else [])
        panel.grid(visible=False, axis="y")
        panel.set_title(kind)
        panel.set_xlabel("difference in bits per byte, %")
    note = f"95% intervals; gray: cannot be told apart from {_label(names[0])}"
    figure.supxlabel(note, fontsize=9, color="#555555", x=0.01, ha="left")
    return figure


def _interval(panel: Any, row: int, difference: Difference | None) -> None:
    if difference is None:
        panel.text(0, row, " not reached", va="center", fontsize=9, color="#555555")
        return
    color = {"better": COLORS[2], "worse": COLORS[1]}.get(difference.verdict, COLORS[4])
    if difference.low is not None and difference.high is not None:
        panel.plot([difference.low, difference.high], [row, row], color=color, linewidth=2, solid_capstyle="butt")
    panel.plot([difference.percent], [row], "o", color=color, markersize=5)


def _curves(compared: Compared) -> Any:
    size = sum(compared.heldout_sizes)
    quantities: Mapping[str, Callable[[Point], float]] = {
        "bytes seen in training": lambda point: point.bytes,
        "training compute, FLOPs": lambda point: point.flops,
    }
    figure, panels = axes(2, height=4.2, width=9)
    for panel, (quantity, value) in zip(panels, quantities.items(), strict=True):
        for name, runs in compared.runs.items():
            points = list(zip(*(run.points for run in runs), strict=True))
            x = [fmean(map(value, each)) for each in points]
            y = [fmean(point.total for point in each) / size for each in points]
            panel.plot(x, y, marker="o", markersize=3.5, linewidth=1.4, label=_label(name))
        panel.set_xscale("log")
        panel.set_xlabel(quantity)
    panels[0].set_ylabel("bits per byte, held out")
    panels[1].axvline(compared.flops, color="#888888", linewidth=0.8, linestyle=":")
    panels[0].legend(fontsize=8)
    return figure


def _label(name: str) -> str:
    return name if len(name) <= MAX_LABEL else f"{name[:MAX_LABEL]}…"

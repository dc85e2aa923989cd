"""The results as figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import fmean
from typing import Any

from ...analysis.plots import COLORS, axes
from .comparison import Difference
from .runs import Point
from .tables import Compared

STYLES = ("-", "--", ":", "-.")
"""Line styles; each is used with all colors."""
MAX_LABEL = 40
"""Maximum length of the name of a vocabulary, in characters."""


def figures(compared: Compared) -> dict[str, Any]:
    """Draw the differences, and bits per byte against bytes and against compute."""
    return {"differences": _differences(compared), "curves": _curves(compared)}


def _differences(compared: Compared) -> Any:
    kinds = {
        "Equal bytes": compared.differences(compared.bits),
        "Equal compute": compared.differences(compared.bits_at_flops),
    }
    names = list(compared.runs)
    figure, panels = axes(2, height=1.6 + 0.28 * len(names), width=9.5)
    for panel, (kind, found) in zip(panels, kinds.items(), strict=True):
        panel.axvline(0, color="#888888", linewidth=0.8)
        for row, name in enumerate(names):
            _interval(panel, row, found[name])
        panel.set_ylim(len(names) - 0.5, -0.5)
        panel.set_yticks(range(len(names)), [_label(name) for name in names] if panel is panels[0] else [], fontsize=9)
        panel.tick_params(axis="y", length=0)
        panel.grid(visible=False, axis="y")
        panel.set_title(kind)
        panel.set_xlabel("difference in bits per byte, %")
    note = f"negative: better than {_label(names[0])}; lines: 95% intervals; gray: cannot be told apart"
    figure.supxlabel(note, fontsize=9, color="#555555", x=0.01, ha="left")
    return figure


def _interval(panel: Any, row: int, difference: Difference | None) -> None:
    if difference is None:
        panel.text(0, row, "  not reached", va="center", fontsize=9, color="#555555")
        return
    color = {"better": COLORS[2], "worse": COLORS[1]}.get(difference.kind, COLORS[4])
    if difference.low is not None and difference.high is not None:
        panel.plot([difference.low, difference.high], [row, row], "|-", color=color, linewidth=1.6, markersize=7)
    panel.plot([difference.percent], [row], "o", color=color, markersize=4)


def _curves(compared: Compared) -> Any:
    size = sum(compared.heldout_sizes)
    quantities: Mapping[str, Callable[[Point], float]] = {
        "megabytes seen in training": lambda point: point.bytes / 1e6,
        "training compute, TFLOPs": lambda point: point.flops / 1e12,
    }
    figure, panels = axes(2, height=4.2, width=9.5)
    for panel, (quantity, value) in zip(panels, quantities.items(), strict=True):
        for index, (name, runs) in enumerate(compared.runs.items()):
            points = list(zip(*(run.points for run in runs), strict=True))
            x = [fmean(map(value, each)) for each in points]
            y = [fmean(point.total for point in each) / size for each in points]
            style = STYLES[index // len(COLORS) % len(STYLES)]
            color = COLORS[index % len(COLORS)]
            panel.plot(x, y, style, marker="o", markersize=3, linewidth=1.3, color=color, label=_label(name))
        panel.set_xscale("log", base=2)
        panel.xaxis.set_major_formatter(lambda number, _: f"{number:g}")
        panel.set_xlabel(quantity)
    panels[0].set_ylabel("bits per byte")
    panels[1].tick_params(axis="y", labelleft=False)
    panels[1].sharey(panels[0])
    panels[1].axvline(compared.flops / 1e12, color="#888888", linewidth=0.8, linestyle=":")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower left", ncols=3, fontsize=8.5)
    return figure


def _label(name: str) -> str:
    return name if len(name) <= MAX_LABEL else f"{name[:MAX_LABEL]}…"

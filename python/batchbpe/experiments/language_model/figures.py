"""The results as figures."""

from __future__ import annotations

import math
from typing import Any

from ...analysis.plots import COLORS, axes
from .comparison import Difference, at_flops
from .tables import Compared

STYLES = ("-", "--", ":", "-.")
"""Line styles; each is used with all colors."""
MAX_LABEL = 40
"""Maximum length of the name of a vocabulary, in characters."""
COLUMNS = 3
"""Columns of the legend."""


def figures(compared: Compared) -> dict[str, Any]:
    """Draw the differences, and bits per byte and the differences while training."""
    return {
        "differences": _differences(compared),
        "curves": _curves(compared),
        "difference_curves": _curves(compared, is_relative=True),
    }


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
    panels[1].sharex(panels[0])
    panels[0].autoscale(axis="x")
    note = f"negative: better than {_label(names[0])}; lines: 95% intervals; gray: cannot be told apart"
    if any(each and each.is_one_seed for found in kinds.values() for each in found.values()):
        note += "; one seed: the noise of seeds is not included"
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


def _curves(compared: Compared, is_relative: bool = False) -> Any:
    size = sum(compared.heldout_sizes)
    first = compared.mean_curve(next(iter(compared.runs)))
    labels = ("megabytes seen in training", "training compute, TFLOP (dotted: equal compute)")
    figure, panels = axes(2, height=3.8 + 0.2 * -(-len(compared.runs) // COLUMNS), width=9.5)
    panels[1].sharey(panels[0])
    for quantity, (panel, label, unit) in enumerate(zip(panels, labels, (1e6, 1e12), strict=True)):
        for index, name in enumerate(compared.runs):
            *amounts, bits = compared.mean_curve(name)
            x = amounts[quantity]
            y = bits / size
            if is_relative:  # not drawn where the reference was not evaluated
                base = [at_flops(first[quantity], first[-1][:, None], each) for each in x]
                y = 100 * (bits / [math.nan if each is None else each[0] for each in base] - 1)
            style = STYLES[index // len(COLORS) % len(STYLES)]
            color = COLORS[index % len(COLORS)]
            panel.plot(x / unit, y, style, marker="o", markersize=3, linewidth=1.3, color=color, label=_label(name))
        panel.set_xscale("log", base=2)
        panel.xaxis.set_major_formatter(lambda number, _: f"{number:g}")
        panel.set_xlabel(label)
    panels[0].set_ylabel("difference in bits per byte, %" if is_relative else "bits per byte")
    panels[1].tick_params(axis="y", labelleft=False)
    panels[1].axvline(compared.flops / 1e12, color="#888888", linewidth=0.8, linestyle=":")
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower left", ncols=COLUMNS, fontsize=8.5)
    return figure


def _label(name: str) -> str:
    return name if len(name) <= MAX_LABEL else f"{name[:MAX_LABEL]}…"

"""Draw the charts of results.csv for light and dark pages: `python -m benchmarks.charts`."""

from itertools import groupby
from pathlib import Path

from batchbpe.analysis.plots import COLORS, STYLE
from benchmarks.tables import read_csv

THEMES = {"light": ("#24292f", "#d0d7de", "#2563a8"), "dark": ("#e6edf3", "#3d444d", "#58a6ff")}
"""The colors of text, lines and batchbpe. The background is transparent."""
PEER = "#8b949e"


def draw(records, folder):
    """Draw every chart whose jobs have been run."""
    import matplotlib as mpl

    folder.mkdir(exist_ok=True)
    for theme, (text, lines, own) in THEMES.items():
        colors = dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color", "axes.titlecolor"), text)
        style = STYLE | colors | {"grid.color": lines, "axes.edgecolor": lines, "savefig.transparent": True}
        with mpl.rc_context(style):
            for name, figure in figures(records, own):
                figure.savefig(folder / f"{name}-{theme}.svg", metadata={"Date": None})


def figures(records, own):
    tables = {key: list(rows) for key, rows in groupby(records, key=lambda each: (each["job"], each["table"]))}
    for job, name in {
        "train": "training",
        "encode": "encoding",
        "documents": "documents",
        "threads": "threads",
    }.items():
        chosen = {title: rows for (of, title), rows in tables.items() if of == job}
        if chosen:
            yield name, bars(chosen, own)
    chosen = {title: rows for (of, title), rows in tables.items() if of == "sizes"}
    if chosen:
        yield "sizes", curves(chosen, own)


def bars(tables, own):
    """Draw a panel for each table: MB/s if the size of the text is known, and seconds otherwise."""
    heights = [1 + 0.28 * len(rows) for rows in tables.values()]
    figure, panels = subplots(heights, 1)
    for panel, (title, rows) in zip(panels.flat, tables.items(), strict=True):
        rows = [each for each in rows if "seconds" in each]
        speed = all("size" in each for each in rows)
        panel.set_title(title)
        panel.set_xlabel(
            "MB/s (more is better): first call, and behind it repeated calls" if speed else "seconds (less is better)"
        )
        for index, each in enumerate(rows):
            values = [
                each[field] for field in ("seconds", "repeated") if field in each and (speed or field == "seconds")
            ]
            values = [each["size"] / 1e6 / value if speed else value for value in values]
            color = own if each["tool"].startswith("batchbpe") else PEER
            for value, alpha in zip(values, (1, 0.4), strict=False):
                panel.barh(index, value, color=color, alpha=alpha, height=0.7)
            label = " / ".join(f"{value:,.0f}" if speed else f"{value:.3g}" for value in values)
            panel.annotate(f" {label}", (max(values), index), va="center")
        panel.set_yticks(range(len(rows)), [each["tool"] for each in rows])
        panel.invert_yaxis()
        panel.grid(axis="y", visible=False)
        panel.margins(x=0.2)
    return figure


def curves(tables, own):
    """Draw time and memory against the size of the text, one row of panels for each table."""
    figure, panels = subplots([3.2 for _ in tables], 2)
    for (time, memory), (title, rows) in zip(panels, tables.items(), strict=True):
        tools = dict.fromkeys(each["tool"] for each in rows)
        peers = iter(COLORS[1:] * 2)
        for tool in tools:
            points = [each for each in rows if each["tool"] == tool and "seconds" in each]
            color = own if tool.startswith("batchbpe") else next(peers)
            options = {
                "color": color,
                "marker": "o",
                "markersize": 3,
                "linestyle": "--" if "1 thread" in tool else "-",
            }
            sizes = [each["size"] / 1e6 for each in points]
            time.loglog(sizes, [each["seconds"] for each in points], label=tool, **options)
            memory.loglog(sizes, [max(each["peak"] - each["data"], 1) for each in points], **options)
        time.set(title=title, xlabel="MB of text", ylabel="seconds")
        memory.set(title="Memory above the text", xlabel="MB of text", ylabel="MB")
        time.legend(fontsize=8)
        for axis in (time.xaxis, time.yaxis, memory.xaxis, memory.yaxis):
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter("")
    return figure


def subplots(heights, columns):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, sum(heights)), layout="constrained")
    return figure, figure.subplots(len(heights), columns, squeeze=False, height_ratios=heights)


if __name__ == "__main__":
    here = Path(__file__).parent
    draw(read_csv(here / "results.csv"), here / "charts")

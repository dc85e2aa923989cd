"""Draw figures. Matplotlib is an optional dependency that only this module imports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, wraps
from io import BytesIO
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from .display import COLORS as SHADES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

P = ParamSpec("P")
T = TypeVar("T")
COLORS = ("#2563a8", "#d9822b", "#3a9a5b", "#a83c6b", "#6b6b6b")
STYLE: dict[Any, Any] = {
    "figure.dpi": 100,
    "savefig.dpi": 160,
    "font.size": 10.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "axes.edgecolor": "#888888",
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "svg.fonttype": "none",
    "text.parse_math": False,  # patterns may contain dollar signs
    "svg.hashsalt": "batchbpe",
}


def styled_with(extras: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Make a function draw in this style, whatever the style of the notebook; raise if matplotlib is missing.

    `extras` are all extras of this package that the function needs.
    """

    def decorate(draw: Callable[P, T]) -> Callable[P, T]:
        @wraps(draw)
        def drawn(*args: P.args, **options: P.kwargs) -> T:
            try:
                import matplotlib as mpl
            except ImportError:
                raise ImportError(f"figures require matplotlib; run pip install 'batchbpe[{extras}]'") from None
            from cycler import cycler

            with mpl.rc_context({**STYLE, "axes.prop_cycle": cycler(color=COLORS)}):
                return draw(*args, **options)

        return drawn

    return decorate


def styled(draw: Callable[P, T]) -> Callable[P, T]:
    """Make a function draw in this style; see `styled_with`."""
    return styled_with("plots")(draw)


def axes(panels: int = 1, height: float = 4.0, width: float = 0) -> tuple[Figure, Sequence[Axes]]:
    """Create a figure with panels side by side. It needs no display and is not registered with pyplot.

    >>> figure, panels = axes(2)
    >>> len(panels), float(figure.get_figwidth())
    (2, 8.4)
    """
    figure = _notebook_figure()(figsize=(width or (4.2 * panels if panels > 1 else 6.4), height), layout="constrained")
    return figure, figure.subplots(1, panels, squeeze=False)[0]


@cache
def _notebook_figure() -> type[Figure]:
    """Return a figure class that a notebook displays even if pyplot was never imported."""
    from matplotlib.figure import Figure

    class NotebookFigure(Figure):
        def _repr_png_(self) -> bytes:
            picture = BytesIO()
            self.savefig(picture, format="png")
            return picture.getvalue()

    return NotebookFigure


def abbreviate_numbers(axis: Any) -> None:
    """Label an axis with abbreviated integers: 2 k, 17 M."""
    from matplotlib.ticker import EngFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(6, integer=True))
    axis.set_major_formatter(EngFormatter(sep=" "))


def log_labels(axis: Any) -> None:
    """Label a logarithmic axis with numbers instead of mathematical text, which the style does not parse."""
    from matplotlib.ticker import LogFormatter

    axis.set_major_formatter(lambda number, _: f"{number:,g}")
    axis.set_minor_formatter(LogFormatter())  # only used if the axis is short


def line(
    axes: Axes, x: Sequence[float], y: Sequence[float], *, zero: bool = False, hollow: Sequence[bool] = ()
) -> None:
    """Draw points connected by a line; `zero` adds a line at 0, `hollow` marks points that need a note."""
    if zero:
        axes.axhline(0, color="#888888", linewidth=0.8)
    axes.plot(x, y, marker="o", markersize=4, linewidth=1.6, color=COLORS[0])
    marked = [i for i, is_hollow in enumerate(hollow) if is_hollow]
    axes.plot(
        [x[i] for i in marked], [y[i] for i in marked], "o", markersize=4, color=COLORS[0], markerfacecolor="white"
    )


def explain_hollow(figure: Figure, hollow: Sequence[bool], vocab_size: int) -> None:
    """Explain hollow points below the figure, if there are any."""
    if any(hollow):
        text = f"hollow points: too few pairs for a vocabulary of {vocab_size:,} tokens"
        figure.supxlabel(text, fontsize=9, color="#555555", x=0.01, ha="left")


def draw_tokens(axes: Axes, words: Sequence[Sequence[str]], title: str) -> None:
    """Draw one word per row, split into colored tokens; a space is drawn as a dot."""
    axes.set_title(title)
    axes.axis("off")
    axes.set(xlim=(0, 1), ylim=(-len(words) + 0.4, 0.8))
    for row, parts in enumerate(words):
        text = None
        for part, piece in enumerate(parts):
            box = {"facecolor": SHADES[part % len(SHADES)], "edgecolor": "none", "boxstyle": "square,pad=0.15"}
            at = ((0.01, -row), "data") if text is None else ((1.02, 0), text)
            text = axes.annotate(
                piece.replace(" ", "·"), at[0], xycoords=at[1], family="monospace", va="bottom", bbox=box
            )

"""A small drawing layer: SVG with boxes, text and lines, for light and dark pages.

Widths are computed in cells of a monospaced font, never from the fonts of this machine, so the files are the same
everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

WIDTH = 460
MARGIN = 18
RIGHT = WIDTH - MARGIN
CELL = 8.4
"""The width of a character: 0.6 times the font size, as in most monospaced fonts."""
ROW = 26
"""The height of a row of boxes, with the gap to the next."""
BOX = 22
"""The height of a box."""

LIGHT = {
    "plate": "#ffffff",
    "ink": "#1f2328",
    "muted": "#59636e",
    "line": "#d1d9e0",
    "gray": "#f3f5f7",
    "blue": "#0757b8",
    "bluish": "#dcecff",
    "orange": "#a83f00",
    "orangish": "#ffe8d6",
}
DARK = {
    "plate": "#0d1117",
    "ink": "#f0f6fc",
    "muted": "#9aa4af",
    "line": "#3d444d",
    "gray": "#1d232b",
    "blue": "#79b8ff",
    "bluish": "#10305a",
    "orange": "#ffa657",
    "orangish": "#4a2508",
}
RULES = """text{{fill:{ink};font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}}
.sans{{font:14px system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif}}.bold{{font-weight:600}}
.plate{{fill:{plate};stroke:{line}}}.plain{{fill:{plate};stroke:{line}}}.gray{{fill:{gray};stroke:{line}}}
.blue{{fill:{bluish};stroke:{blue}}}.orange{{fill:{orangish};stroke:{orange}}}
text.muted{{fill:{muted}}}text.blue{{fill:{blue};stroke:none}}text.orange{{fill:{orange};stroke:none}}
.line{{fill:none;stroke:{line}}}.line.strong{{stroke:{muted}}}.line.blue{{stroke:{blue}}}.line.orange{{stroke:{orange}}}
.bar{{stroke:none;fill:{line}}}.bar.blue{{fill:{blue}}}.bar.orange{{fill:{orange}}}"""


def cells(text: str) -> float:
    """Return the width of a text."""
    return len(text) * CELL


def visible(text: str | bytes) -> str:
    """Return a text with its spaces as dots."""
    return (text if isinstance(text, str) else text.decode("utf-8", "backslashreplace")).replace(" ", "·")


class Figure:
    """A picture that grows downwards: `y` is where the next part starts."""

    def __init__(self, title: str, description: str) -> None:
        """Start an empty picture."""
        self.title, self.description = title, description
        self.y: float = MARGIN
        self._parts: list[str] = []

    def text(self, x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> None:
        """Write a text on a baseline. `kind` is a list of classes; `anchor` is start, middle or end."""
        attributes = f' class="{kind}"' if kind else ""
        attributes += f' text-anchor="{anchor}"' if anchor != "start" else ""
        self._parts.append(f'<text x="{x:g}" y="{y:g}"{attributes}>{escape(text, quote=False)}</text>')

    def box(self, x: float, y: float, width: float, text: str = "", kind: str = "plain", height: float = BOX) -> None:
        """Draw a box, with a text in its middle."""
        shape = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'
        self._parts.append(f'<rect {shape} rx="3" class="{kind}"/>')
        if text:
            self.text(x + width / 2, y + height / 2 + 5, text, anchor="middle")

    def token(self, x: float, y: float, text: str | bytes, kind: str = "plain") -> float:
        """Draw a token as wide as its text, and return where it ends."""
        width = cells(visible(text)) + 8
        self.box(x, y, width, visible(text), kind)
        return x + width

    def tokens(self, groups: Iterable[tuple[Sequence[str | bytes], str]]) -> None:
        """Draw groups of tokens, the tokens of each side by side, in as many rows as they need."""
        x: float = MARGIN
        for texts, kind in groups:
            width = sum(cells(visible(text)) + 8 for text in texts)
            if x + width > RIGHT:
                x, self.y = MARGIN, self.y + ROW
            for text in texts:
                x = self.token(x, self.y, text, kind)
            x += 4
        self.y += ROW

    def arrow(self, x: float, y: float) -> None:
        """Draw a short arrow to the right."""
        self.line([(x, y), (x + 20, y)], "strong", arrow=True)

    def bar(self, x: float, y: float, width: float, height: float, kind: str = "") -> None:
        """Draw a bar without an outline."""
        shape = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'
        self._parts.append(f'<rect {shape} class="{f"bar {kind}".strip()}"/>')

    def line(self, points: Sequence[tuple[float, float]], kind: str = "", *, arrow: bool = False) -> None:
        """Draw a line through points."""
        path = "M" + "L".join(f"{x:g} {y:g}" for x, y in points)
        if arrow:
            (x0, y0), (x, y) = points[-2:]
            dx, dy = (x > x0) - (x < x0), (y > y0) - (y < y0)
            path += "".join(f"M{x:g} {y:g}l{-5 * dx + s * 4 * dy:g} {-5 * dy + s * 4 * dx:g}" for s in (-1, 1))
        self._parts.append(f'<path d="{path}" class="{f"line {kind}".strip()}"/>')

    def heading(self, text: str, x: float = MARGIN) -> None:
        """Write a heading at `y`."""
        self.text(x, self.y + 14, text, "sans bold")
        self.y += 28

    def note(self, text: str, x: float = MARGIN) -> None:
        """Write a muted line at `y`."""
        self.text(x, self.y + 13, text, "sans muted")
        self.y += 20

    def svg(self) -> str:
        """Return the file."""
        height = self.y + MARGIN
        style = f"{RULES.format(**LIGHT)}\n@media(prefers-color-scheme:dark){{{RULES.format(**DARK)}}}"
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" width="{WIDTH}" '
                f'height="{height:g}" role="img" aria-labelledby="title desc">',
                f'<title id="title">{escape(self.title)}</title>',
                f'<desc id="desc">{escape(self.description)}</desc>',
                f"<style>{style}</style>",
                f'<rect x=".5" y=".5" width="{WIDTH - 1}" height="{height - 1:g}" rx="6" class="plate"/>',
                *self._parts,
                "</svg>\n",
            ]
        )

"""HTML for the page of an atlas: text, tokens, and tables whose cells are colored by their value."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import log
from typing import Any, NamedTuple

from ..display import quoted_token
from ..tables import NOTHING, unsigned_zero

SHADES = 20
"""Number of shades of a heat map."""
Vocabulary = Mapping[str, Any]
"""What the JSON file says about a vocabulary."""


class Cell(NamedTuple):
    """A cell of a table."""

    value: float | str | None
    """The value in the JSON file, by which rows are sorted."""
    text: str
    heat: float | None = None
    """From 0 to 1; no color if None."""
    title: str = ""


class Column(NamedTuple):
    """A column of a table with a row for each vocabulary."""

    label: str
    meaning: str
    """What the column means; "" if the label says it."""
    cell: Callable[[Vocabulary], Cell]


def text(value: str) -> str:
    """Return a text in which markup and invisible characters are escaped.

    >>> text("<b>\\u202e")
    '&lt;b&gt;\\\\u202e'
    """
    return html.escape("".join(c if c.isprintable() else repr(c)[1:-1] for c in value))


def token(described: Mapping[str, Any]) -> str:
    """Return a token in quotes, with its id.

    >>> token({"id": 258, "text": " be", "hex": "206265", "bytes": 3})
    '<code title="258: 3 bytes">&#x27; be&#x27;</code>'
    """
    size = described["bytes"]
    title = f"{described['id']}: {size:,} byte{'s' * (size != 1)}"
    return f'<code title="{title}">{text(quoted_token(bytes.fromhex(described["hex"])))}</code>'


def integer(value: int | None, heat: float | None = None, title: str = "") -> Cell:
    """Return the cell of an integer."""
    return Cell(value, NOTHING if value is None else f"{value:,}", heat, title)


def decimal(value: float | None, digits: int = 2, heat: float | None = None, title: str = "") -> Cell:
    """Return the cell of a number.

    >>> decimal(1234.5678).text, decimal(-0.001).text, decimal(None).text
    ('1,234.57', '0.00', '–')
    """
    return Cell(value, NOTHING if value is None else _signed(unsigned_zero(f"{value:,.{digits}f}")), heat, title)


def _signed(number: str) -> str:
    return number.replace("-", "−")


def percent(value: float | None, digits: int = 1, heat: float | None = None, title: str = "") -> Cell:
    """Return the cell of a fraction."""
    return Cell(value, NOTHING if value is None else f"{100 * value:.{digits}f}%", heat, title)


def between(value: float | None, least: float, most: float, *, logarithmic: bool = False) -> float | None:
    """Return where a value is between two others, as the heat of a cell: 0 if these are equal.

    >>> between(3, 1, 5), between(2, 1, 4, logarithmic=True), between(None, 1, 5), between(1, 1, 1)
    (0.5, 0.5, None, 0.0)
    """
    if value is None:
        return None
    if logarithmic:
        value, least, most = (log(max(each, 1e-9)) for each in (value, least, most))
    return max(0.0, min(1.0, (value - least) / (most - least))) if most > least else 0.0


def table(
    rows: Sequence[tuple[str, Sequence[Cell]]],
    header: Sequence[tuple[str, str]],
    *,
    tint: str = "",
    tall: bool = False,
) -> str:
    """Render a table that scrolls if it is large.

    Parameters
    ----------
    rows: the heading of each row, as HTML, and its cells.
    header: the label and the meaning of each column, including that of the headings.
    tint: class of the color of the heat map.
    tall: whether the labels of the columns are vertical.

    """
    is_text = [True, *(isinstance(cell.value, str) for cell in rows[0][1])]
    labels = "".join(map(_label, header, is_text))
    body = "".join(f"<tr><th scope=row>{name}</th>{''.join(map(_cell, cells))}</tr>" for name, cells in rows)
    kind = f' class="{" ".join(filter(None, (tint and f"heat {tint}", "tall" * tall)))}"' if tint or tall else ""
    rendered = f"<table{kind}><thead><tr>{labels}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="scroll" tabindex="0">{rendered}</div>'


def _label(column: tuple[str, str], is_text: bool) -> str:
    label, meaning = column
    title = f' title="{text(meaning)}"' if meaning else ""
    return f"<th scope=col{'' if is_text else ' class=n'}{title}><span>{text(label)}</span></th>"


def _cell(cell: Cell) -> str:
    classes = [] if isinstance(cell.value, str) else ["n"]
    if cell.heat is not None:
        classes.append(f"h{round(SHADES * cell.heat)}")
    kind = f' class="{" ".join(classes)}"' if classes else ""
    value = "" if cell.value is None else f' data-v="{text(str(cell.value))}"'
    title = f' title="{text(cell.title)}"' if cell.title else ""
    return f"<td{kind}{value}{title}>{text(cell.text)}</td>"


def meanings(columns: Iterable[Column]) -> str:
    """Render what columns mean, for readers who cannot point at them."""
    rows = "".join(f"<dt>{text(each.label)}</dt><dd>{text(each.meaning)}</dd>" for each in columns if each.meaning)
    return f"<details><summary>What the columns mean</summary><dl>{rows}</dl></details>"

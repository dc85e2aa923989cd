"""Tables as text, Markdown and HTML."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING
from unicodedata import east_asian_width

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Table = tuple[Sequence[str], Sequence[Sequence[str]]]
"""The header and the rows. All cells are strings."""
NOTHING = "–"
"""A cell without a value."""
_MARKUP = re.compile(r"[\\`*<\[|~$&]|(?<![^\W_])_|_(?![^\W_])")
"""What has a meaning in Markdown. Underscores within words have none."""
_NOTEBOOK_STYLE = (  # a notebook would align all cells to the right, and join the spaces of a token
    "<style>.batchbpe td,.batchbpe th{text-align:left!important;padding:.2em .7em;vertical-align:top}"
    ".batchbpe th{white-space:nowrap}"
    ".batchbpe .number{text-align:right!important;font-variant-numeric:tabular-nums}"
    ".batchbpe td{white-space:pre-wrap}.batchbpe td:first-child{white-space:pre}"
    ".batchbpe .table{max-width:100%;overflow-x:auto}</style>"
)


class Tabular:
    """A result that consists of tables, which a notebook displays.

    Its `repr` consists of the tables as text, unless the class has a shorter one.

    >>> class Counts(Tabular):
    ...     def tables(self):
    ...         yield ["word", "count"], [["to", "2"]]
    >>> Counts()
    word  count
    to        2
    """

    def tables(self) -> Iterable[Table]:
        """Return the tables."""
        raise NotImplementedError

    def __repr__(self) -> str:
        """Return the tables as text."""
        return text_tables(self.tables())

    def to_markdown(self) -> str:
        """Return the tables in Markdown."""
        return "\n\n".join(map(markdown_table, self.tables()))

    def _repr_html_(self) -> str:
        """Display the tables in a notebook."""
        return notebook_tables(self.tables())


def formatted(values: Iterable[float | None]) -> list[str]:
    """Format numbers alike: with four decimals if one of them is a float.

    >>> formatted([1.5, 2000, None]), formatted([1, 2000])
    (['1.5000', '2,000.0000', '–'], ['1', '2,000'])
    """
    numbers = list(values)
    decimals = ".4f" if any(isinstance(number, float) for number in numbers) else ""
    return [NOTHING if number is None else unsigned_zero(f"{number:,{decimals}}") for number in numbers]


def unsigned_zero(number: str) -> str:
    """Return a formatted number without the sign of a number that is rounded to 0.

    >>> unsigned_zero(f"{-0.00001:.4f}"), unsigned_zero("-0.0001")
    ('0.0000', '-0.0001')
    """
    return number if number.strip("-0.") else number.removeprefix("-")


def with_computed(result: DataclassInstance, **computed: float | None) -> str:
    """Return the `repr` of a dataclass, with numbers that are computed from its fields at the end.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Size:
    ...     bits: int
    >>> with_computed(Size(13), bytes=13 / 8)
    'Size(bits=13, bytes=1.6250)'
    """
    shown = [f"{each.name}={getattr(result, each.name)!r}" for each in fields(result) if each.repr]
    shown += [f"{name}={value if value is None else format(value, '.4f')}" for name, value in computed.items()]
    return f"{type(result).__name__}({', '.join(shown)})"


def is_number(cell: str) -> bool:
    """Return whether a cell is aligned to the right.

    >>> is_number("-1,000.5"), is_number("gpt4")
    (True, False)
    """
    return cell in (NOTHING, "no limit") or cell.replace(",", "").replace(".", "").lstrip("-−").isdecimal()


def text_table(table: Table) -> str:
    """Render a table as text, with numbers aligned to the right.

    >>> print(text_table((["word", "count"], [["to", "2"], ["question", "1"]])))
    word      count
    to            2
    question      1
    """
    header, *rows = (list(map(_printable, row)) for row in (table[0], *table[1]))
    columns = list(zip(header, *rows, strict=True))
    widths = [max(map(_width, column)) for column in columns]
    numeric = [all(map(is_number, column[1:])) for column in columns]

    def padded(cell: str, width: int, is_right: bool) -> str:
        space = " " * (width - _width(cell))
        return space + cell if is_right else cell + space

    return "\n".join("  ".join(map(padded, row, widths, numeric)).rstrip() for row in (header, *rows))


def _printable(cell: str) -> str:
    """Replace control characters, which names in the data may contain and a terminal would obey."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in cell)


def _width(text: str) -> int:
    """Return the number of columns that a text takes in a terminal."""
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


def text_tables(tables: Iterable[Table]) -> str:
    """Render tables as text, with an empty line between them."""
    return "\n\n".join(map(text_table, tables))


def markdown_table(table: Table) -> str:
    """Render a table in Markdown, with numbers aligned to the right. Text is never markup.

    >>> print(markdown_table((["word", "count"], [["to_be", "2"], ["**a|b**", "1"]])))
    | word | count |
    |---|---:|
    | to_be | 2 |
    | \\*\\*a\\|b\\*\\* | 1 |
    """
    header, rows = table
    columns = zip(*rows, strict=True) if rows else ([] for _ in header)
    marks = ["---:" if column and all(map(is_number, column)) else "---" for column in columns]
    escaped = ([_MARKUP.sub(r"\\\g<0>", " ".join(cell.splitlines())) for cell in row] for row in (header, *rows))
    first, *lines = (f"| {' | '.join(row)} |" for row in escaped)
    return "\n".join([first, f"|{'|'.join(marks)}|", *lines])


def notebook_tables(tables: Iterable[Table]) -> str:
    """Render tables for a notebook."""
    style = "display:flex;flex-wrap:wrap;gap:0 3em;align-items:flex-start"
    return f'{_NOTEBOOK_STYLE}<div class="batchbpe" style="{style}">{"".join(map(html_table, tables))}</div>'


def html_table(table: Table) -> str:
    """Render a table as HTML, with numbers aligned to the right.

    >>> html_table((["word", "count"], [["to", "2"]]))
    '<div class="table"><table><tr><th>word<th class=number>count<tr><td>to<td class=number>2</table></div>'
    """
    header, rows = table
    columns = zip(*rows, strict=True) if rows else ([] for _ in header)
    kinds = [" class=number" if all(map(is_number, column)) else "" for column in columns]

    def cells(tag: str, row: Sequence[str]) -> str:
        return "".join(f"<{tag}{kind}>{_cell(cell)}" for kind, cell in zip(kinds, row, strict=True))

    body = "".join(f"<tr>{cells('td', row)}" for row in rows)
    return f'<div class="table"><table><tr>{cells("th", header)}{body}</table></div>'


def _cell(cell: str) -> str:
    """Escape a cell, and keep leading spaces, which are part of a chunk."""
    return html.escape(cell).replace(" ", "&nbsp;", len(cell) - len(cell.lstrip(" ")))

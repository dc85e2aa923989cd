"""Printing: results to standard output, everything else to standard error."""

from __future__ import annotations

import json
import sys
from typing import Any

MAX_LINE = 1000
"""Maximum length of an error, in characters."""


def one_line(message: str) -> str:
    """Put a message on one line and shorten it: the problem is at the beginning, the remedy at the end.

    >>> one_line("two" + chr(10) + "lines")
    'two lines'
    """
    line = " ".join(message.split())
    if len(line) > MAX_LINE:
        line = f"{line[: MAX_LINE // 2]} … {line[-MAX_LINE // 2 + 3 :]}"
    return line


def note(message: str, quiet: bool) -> None:
    """Print something that is not the result, unless `quiet`."""
    if not quiet:
        sys.stderr.write(message + "\n")


def print_json(value: Any) -> None:
    """Print a result as JSON."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def print_rows(title: str, rows: dict[str, Any]) -> None:
    """Print names and values."""
    from rich.table import Table

    table = Table(title=title, title_justify="left", show_header=False, box=None, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows.items():
        pairs = value.items() if isinstance(value, dict) and value else [("", None if value == {} else value)]
        table.add_row(name, "\n".join(f"{key}  {_format(item)}".strip() for key, item in pairs))
    _print(table)


def print_table(columns: list[str], rows: list[list[Any]]) -> None:
    """Print a table, with numbers aligned to the right."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for index, column in enumerate(columns):
        is_number = bool(rows) and isinstance(rows[0][index], int | float)
        table.add_column(column, justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(_format, row))
    _print(table)


def _print(table: Any) -> None:
    from rich.console import Console

    console = Console(markup=False, highlight=False)
    console = console if console.is_terminal else Console(markup=False, highlight=False, width=200)
    with console.capture() as captured:
        console.print(table)
    sys.stdout.writelines(line.rstrip() + "\n" for line in captured.get().splitlines())


def _format(value: Any) -> str:
    if isinstance(value, float):
        value = round(value, 4)
    return "–" if value is None else f"{value:,}" if type(value) in (int, float) else str(value)

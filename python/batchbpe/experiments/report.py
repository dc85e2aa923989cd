"""One page of what was found: html that needs nothing else, and markdown of the same."""

from __future__ import annotations

import base64
import csv
import html
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..files import replacing

TITLES = {
    "chunks": "How chunks are distributed",
    "stop-words": "Stop words",
    "freq-cutoff": "Frequency cutoff",
    "batching": "Batching",
    "sweep": "A sweep",
}
FEW_ROWS, MOST_ROWS = 12, 60
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; max-width: 54rem; margin: 2rem auto; padding: 0 1rem }
h1, h2 { line-height: 1.2 } h2 { margin-top: 3rem; border-top: 1px solid #ddd; padding-top: 1.5rem }
img { max-width: 100%; display: block; margin: 1rem 0 }
.table { overflow-x: auto } table { border-collapse: collapse; font-size: 14px; margin: 1rem 0 }
th, td { text-align: left; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid #eee; vertical-align: top }
.number { text-align: right; font-variant-numeric: tabular-nums } summary { cursor: pointer; margin: .6rem 0 }
h2 small { font-weight: normal; color: #666 } code { font-size: 13px; overflow-wrap: anywhere }
"""

Table = tuple[Sequence[str], Sequence[Sequence[str]]]


def report(folder: Path) -> list[Path]:
    """Write report.html and report.md for an experiment's folder, or for a folder of such folders."""
    folders = [path.parent for path in (folder / "experiment.json", *sorted(folder.glob("*/experiment.json")))]
    found = sorted((each for each in folders if (each / "experiment.json").exists()), key=_place)
    if not found:
        raise FileNotFoundError(f"{folder} holds no experiment: make one by batchbpe experiment NAME -o {folder}")
    pages = {"report.html": "".join(_html(found)), "report.md": "".join(_markdown(found, folder))}
    for name, page in pages.items():
        with replacing(folder / name) as path:
            path.write_text(page, encoding="utf-8")
    return [folder / name for name in pages]


def _place(folder: Path) -> tuple[int, str]:
    """In the order of the paper."""
    names = [*TITLES, _described(folder)["experiment"]]
    return names.index(names[-1]), str(folder)


def _described(folder: Path) -> dict[str, Any]:
    try:
        described = json.loads((folder / "experiment.json").read_text(encoding="utf-8"))
        return {name: described[name] for name in ("experiment", "parameters", "findings", "tables", "figures")}
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{folder / 'experiment.json'} is damaged: do the experiment again") from None


def _read(folder: Path) -> tuple[str, dict[str, Any], Table, dict[str, Table], list[Path]]:
    """The title, the parameters, the findings, the tables and the figures of an experiment."""
    described = _described(folder)
    name = described["experiment"]
    found = ["the paper says" if name != "sweep" else "", "found here"], list(described["findings"].items())
    tables = {each: _rows(folder / f"{each}.csv") for each in described["tables"]}
    figures = [folder / f"{each}.svg" for each in described["figures"]]
    return TITLES.get(name, name), described["parameters"], found, tables, figures


def _rows(path: Path) -> Table:
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = list(csv.reader(file)) or [[]]
    return header, [[_short(cell) for cell in row] for row in rows]


def _short(cell: str) -> str:
    """Give a number with as many digits as anybody reads.

    >>> _short("0.123456789"), _short("1234567"), _short(" the")
    ('0.1235', '1,234,567', ' the')
    """
    try:
        return f"{int(cell):,}" if cell.lstrip("-").isdecimal() else f"{float(cell):,.4f}"
    except ValueError:
        return cell


def _is_number(cell: str) -> bool:
    return cell.replace(",", "").replace(".", "").lstrip("-").isdecimal()


def _html(folders: Sequence[Path]) -> Iterator[str]:
    yield f'<!doctype html><html lang="en"><meta charset="utf-8"><title>batchbpe report</title><style>{STYLE}</style>'
    yield '<meta name="viewport" content="width=device-width"><h1>batchbpe: what was found</h1>'
    for folder in folders:
        title, parameters, findings, tables, figures = _read(folder)
        yield f"<h2>{html.escape(title)}</h2>"
        if findings[1]:
            yield _html_table(findings)
        for figure in figures:
            data = base64.b64encode(figure.read_bytes()).decode()
            yield f'<img alt="{html.escape(figure.stem)}" src="data:image/svg+xml;base64,{data}">'
        for name, table in tables.items():
            state = " open" if len(table[1]) <= FEW_ROWS else ""
            heading = f"table: {html.escape(_words(name))}, {len(table[1]):,} rows"
            yield f"<details{state}><summary>{heading}</summary>{_html_table(table)}</details>"
        shown = {html.escape(name): html.escape(_value(value)) for name, value in parameters.items()}
        rows = "".join(f"<tr><th>{name}<td><code>{value}</code>" for name, value in shown.items())
        yield f"<details><summary>parameters</summary><table>{rows}</table></details>"


def _html_table(table: Table) -> str:
    header, rows = table
    columns = zip(*rows, strict=True) if rows else ([] for _ in header)
    kinds = [" class=number" if all(map(_is_number, column)) else "" for column in columns]

    def cells(tag: str, row: Sequence[str]) -> str:
        return "".join(f"<{tag}{kind}>{_cell(cell)}" for kind, cell in zip(kinds, row, strict=True))

    head = cells("th", list(map(_words, header)))
    body = "".join(f"<tr>{cells('td', row)}" for row in rows[:MOST_ROWS])
    more = f"<p>and {len(rows) - MOST_ROWS:,} more rows in the file" if len(rows) > MOST_ROWS else ""
    return f'<div class="table"><table><tr>{head}{body}</table></div>{more}'


def _cell(cell: str) -> str:
    """Escape a cell; a space at the beginning, which is a part of a chunk, stays one."""
    return html.escape(cell).replace(" ", "&nbsp;", len(cell) - len(cell.lstrip(" ")))


def _markdown(folders: Sequence[Path], top: Path) -> Iterator[str]:
    yield "# batchbpe: what was found\n"
    for folder in folders:
        title, parameters, findings, tables, figures = _read(folder)
        yield f"\n## {title}\n"
        if findings[1]:
            yield _markdown_table(findings)
        for figure in figures:
            yield f"\n![{figure.stem}]({figure.with_suffix('.png').relative_to(top).as_posix()})\n"
        for name, table in tables.items():
            yield f"\n### {_words(name)}\n{_markdown_table(table)}"
        shown = [[name, f"`{_value(value)}`"] for name, value in parameters.items()]
        yield f"\n### parameters\n{_markdown_table((['', ''], shown))}"


def _markdown_table(table: Table) -> str:
    header, rows = table
    lines = [
        f"| {' | '.join(cell.replace('|', chr(92) + '|').replace(chr(10), ' ') for cell in row)} |"
        for row in [list(map(_words, header)), *rows[:MOST_ROWS]]
    ]
    lines.insert(1, f"|{'---|' * len(header)}")
    return "\n" + "\n".join(lines) + "\n"


def _words(name: str) -> str:
    return name.replace("_", " ")


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {_value(each)}" for name, each in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else str(value)

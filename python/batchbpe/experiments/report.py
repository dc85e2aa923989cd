"""One page of what was found: html that needs nothing else, and markdown of the same."""

from __future__ import annotations

import base64
import csv
import html
import os
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

from ..storage.atomic import replacing
from ..storage.sealed import checksum_of, load_sealed

TITLES = {
    "chunks": "How chunks are distributed",
    "stop-words": "Stop words",
    "freq-cutoff": "Frequency cutoff",
    "batching": "Batching",
    "sweep": "A sweep",
}
FEW_ROWS, MOST_ROWS = 12, 60
DESCRIBED = "experiment.json"
RUNS = "runs.json"
"""What a sweep has found so far."""
VERSION = 1
"""Of both files."""
AGAIN = "do the experiment again"
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; max-width: 54rem; margin: 2rem auto; padding: 0 1rem }
h1, h2 { line-height: 1.2 } h2 { margin-top: 3rem; border-top: 1px solid #ddd; padding-top: 1.5rem }
img { max-width: 100%; display: block; margin: 1rem 0 }
.table { overflow-x: auto } table { border-collapse: collapse; font-size: 14px; margin: 1rem 0 }
th, td { text-align: left; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid #eee; vertical-align: top }
.number { text-align: right; font-variant-numeric: tabular-nums } summary { cursor: pointer; margin: .6rem 0 }
h2 small { font-weight: normal; color: #666 } code { font-size: 13px; overflow-wrap: anywhere }
"""

PERCENT = {"share", "unique_kept", "largest_at", "shared_with_serial", "dropped"}
"""Columns that are shares in the files, and shown as percent."""

Table = tuple[Sequence[str], Sequence[Sequence[str]]]


def report(folder: str | os.PathLike[str]) -> list[Path]:
    """Write report.html and report.md for an experiment's folder, or for a folder of such folders."""
    folder = Path(folder)
    places = [folder, *sorted(path for path in folder.glob("*/") if path.is_dir())]
    found = sorted((each for each in places if (each / DESCRIBED).exists()), key=_place)
    if not found:
        raise FileNotFoundError(f"{folder} holds no experiment: make one by batchbpe experiment NAME -o {folder}")
    begun = [each.resolve().name for each in places if (each / RUNS).exists() and not (each / DESCRIBED).exists()]
    sections = {each: _Section(each) for each in found}
    pages = {"report.html": "".join(_html(sections, begun)), "report.md": "".join(_markdown(sections, begun, folder))}
    for name, page in pages.items():
        with replacing(folder / name) as path:
            path.write_text(page, encoding="utf-8")
    return [folder / name for name in pages]


def _place(folder: Path) -> tuple[int, str]:
    """In the order of the paper."""
    names = [*TITLES, _described(folder)["experiment"]]
    return names.index(names[-1]), str(folder)


def _described(folder: Path) -> dict[str, Any]:
    return load_sealed(folder / DESCRIBED, VERSION, AGAIN)


class _Section:
    """The title, the parameters, the findings, the tables and the figures of an experiment."""

    def __init__(self, folder: Path) -> None:
        described = _described(folder)
        name = described["experiment"]
        self.title = TITLES.get(name, name)
        self.parameters: dict[str, Any] = described["parameters"]
        self.findings: Table = header_of(name), list(described["findings"].items())
        checksums: dict[str, str] = described["checksums"]
        names = [f"{each}.svg" for each in described["figures"]]
        self.tables = {each: _rows(folder / f"{each}.csv", checksums) for each in described["tables"]}
        self.figures = {folder / name: _content(folder / name, checksums) for name in names}


def _content(path: Path, checksums: Mapping[str, str]) -> bytes:
    """Read a file of an experiment."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}; {AGAIN}") from None
    if checksum_of(data) != checksums[path.name]:
        raise ValueError(f"{path} is damaged (checksum); {AGAIN}")
    return data


def header_of(experiment: str) -> list[str]:
    """Say what stands beside what in the findings of an experiment."""
    return ["of all" if experiment == "sweep" else "the paper says", "found here"]


def _rows(path: Path, checksums: Mapping[str, str]) -> Table:
    text = _content(path, checksums).decode("utf-8")
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))  # a chunk may be long
    header, *rows = csv.reader(StringIO(text, newline=""))
    return in_words(header, rows)


def in_words(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Give a table as people read it.

    >>> in_words(["freq_cutoff", "change", "unique_kept"], [["2", "-0.125", "0.5"]])
    (['freq cutoff', 'change, %', 'unique kept, %'], [['2', '−0.1250', '50.0000']])
    """
    names = [_words(name) + (", %" if name == "change" or name in PERCENT else "") for name in header]
    return names, [[_short(name, cell) for name, cell in zip(header, row, strict=True)] for row in rows]


def _short(name: str, cell: str) -> str:
    """Give a number with as many digits as anybody reads.

    >>> _short("", "0.123456789"), _short("", "1234567"), _short("", " the"), _short("max_batch_size", "0")
    ('0.1235', '1,234,567', ' the', 'any')
    """
    if (name, cell) == ("max_batch_size", "0"):
        return "any"
    try:
        if name in PERCENT:
            return f"{100 * float(cell):,.4f}"
        return (f"{int(cell):,}" if cell.lstrip("-").isdecimal() else f"{float(cell):,.4f}").replace("-", "−")
    except ValueError:
        return cell


def _is_number(cell: str) -> bool:
    return cell.replace(",", "").replace(".", "").lstrip("−").isdecimal() or cell == "any"


def _html(sections: Mapping[Path, _Section], begun: Sequence[str]) -> Iterator[str]:
    yield f'<!doctype html><html lang="en"><meta charset="utf-8"><title>batchbpe report</title><style>{STYLE}</style>'
    yield '<meta name="viewport" content="width=device-width"><h1>batchbpe: what was found</h1>'
    for folder, section in sections.items():
        yield f"<h2>{html.escape(section.title)} <small>{html.escape(folder.resolve().name)}</small></h2>"
        if section.findings[1]:
            yield html_table(section.findings)
        for figure, picture in section.figures.items():
            yield html_figure(figure.stem, picture)
        for name, table in section.tables.items():
            state = " open" if len(table[1]) <= FEW_ROWS else ""
            heading = f"table: {html.escape(_words(name))}, {len(table[1]):,} rows"
            yield f"<details{state}><summary>{heading}</summary>{html_table(table)}</details>"
        shown = {html.escape(name): html.escape(_value(value)) for name, value in section.parameters.items()}
        rows = "".join(f"<tr><th>{name}<td><code>{value}</code>" for name, value in shown.items())
        yield f"<details><summary>parameters</summary><table>{rows}</table></details>"
    if begun:
        yield f"<p>{html.escape(_unfinished(begun))}"


def _unfinished(begun: Sequence[str]) -> str:
    return f"Begun and not finished, so not here: {', '.join(begun)}"


def html_figure(name: str, svg: bytes) -> str:
    """Give a figure that needs no other file."""
    return f'<img alt="{html.escape(name)}" src="data:image/svg+xml;base64,{base64.b64encode(svg).decode()}">'


def html_table(table: Table) -> str:
    """Give a table, numbers to the right."""
    header, rows = table
    columns = zip(*rows, strict=True) if rows else ([] for _ in header)
    kinds = [" class=number" if all(map(_is_number, column)) else "" for column in columns]

    def cells(tag: str, row: Sequence[str]) -> str:
        return "".join(f"<{tag}{kind}>{_cell(cell)}" for kind, cell in zip(kinds, row, strict=True))

    body = "".join(f"<tr>{cells('td', row)}" for row in rows[:MOST_ROWS])
    more = f"<p>and {len(rows) - MOST_ROWS:,} more rows in the file" if len(rows) > MOST_ROWS else ""
    return f'<div class="table"><table><tr>{cells("th", header)}{body}</table></div>{more}'


def _cell(cell: str) -> str:
    """Escape a cell; a space at the beginning, which is a part of a chunk, stays one."""
    return html.escape(cell).replace(" ", "&nbsp;", len(cell) - len(cell.lstrip(" ")))


def _markdown(sections: Mapping[Path, _Section], begun: Sequence[str], top: Path) -> Iterator[str]:
    yield "# batchbpe: what was found\n"
    for folder, section in sections.items():
        yield f"\n## {section.title} ({folder.resolve().name})\n"
        if section.findings[1]:
            yield _markdown_table(section.findings)
        for figure in section.figures:
            yield f"\n![{figure.stem}]({figure.with_suffix('.png').relative_to(top).as_posix()})\n"
        for name, table in section.tables.items():
            yield f"\n### {_words(name)}\n{_markdown_table(table)}"
        shown = [[name, f"`{_value(value)}`"] for name, value in section.parameters.items()]
        yield f"\n### parameters\n{_markdown_table((['', ''], shown))}"
    if begun:
        yield f"\n{_unfinished(begun)}\n"


def _markdown_table(table: Table) -> str:
    header, rows = table
    lines = [
        f"| {' | '.join(cell.replace('|', chr(92) + '|').replace(chr(10), ' ') for cell in row)} |"
        for row in [header, *rows[:FEW_ROWS]]
    ]
    lines.insert(1, f"|{'---|' * len(header)}")
    more = f"\nand {len(rows) - FEW_ROWS:,} more rows in the file\n" if len(rows) > FEW_ROWS else ""
    return "\n" + "\n".join(lines) + "\n" + more


def _words(name: str) -> str:
    return name.replace("_", " ")


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {_value(each)}" for name, each in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else str(value)

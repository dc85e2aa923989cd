"""Report the results of experiments on one page: as self-contained HTML and as Markdown."""

from __future__ import annotations

import base64
import csv
import html
import os
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

from ..analysis.tables import NOTHING, Table, html_table, markdown_table
from ..errors import DataError, opening, plural
from ..patterns import pattern_name
from ..storage.atomic import replacing
from ..storage.checked_json import checksum_of, load_sealed

TITLES = {
    "chunks": "Distribution of chunks",
    "stop-words": "Stop words",
    "freq-cutoff": "Frequency cutoff",
    "batching": "Batching",
    "phrases": "Phrases",
    "mixture": "Mixture",
    "mixture-inference": "Mixture inference",
    "sweep": "Parameter sweep",
    "language-model": "Language model",
}
IN_PAPER = ("chunks", "stop-words", "freq-cutoff", "batching")
"""Experiments whose findings refer to claims of the paper."""
FEW_ROWS, MAX_ROWS = 12, 60
"""Number of table rows that are displayed without a click, and maximum number."""
DESCRIPTION = "experiment.json"
"""File with the parameters and findings of a finished experiment."""
RUNS_FILE = "runs.json"
"""File with the results of an experiment that can be resumed."""
VERSION = 1
"""Format version of both files."""
RERUN = "rerun the experiment"
STYLE = """
:root { color-scheme: light dark; --page: #fff; --ink: #1a1a1a; --muted: #5f6068; --line: #ddd }
@media (prefers-color-scheme: dark) {
  :root { --page: #1a1a1a; --ink: #e6e6e6; --muted: #a3a5b0; --line: #3a3a3a }
  img { filter: invert(.9) hue-rotate(180deg) }  /* white becomes the color of the page; hues stay */
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page); max-width: 54rem;
  margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere }
h1, h2 { line-height: 1.2 } h2 { margin-top: 3rem; border-top: 1px solid var(--line); padding-top: 1.5rem }
img { max-width: 100%; display: block; margin: 1rem 0 } a { color: inherit }
.table { overflow-x: auto } table { border-collapse: collapse; font-size: 14px; margin: 1rem 0 }
th, td { text-align: left; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid var(--line); vertical-align: top }
th, .about td { overflow-wrap: normal } .about td:nth-child(2) { white-space: nowrap }
.about td:last-child { overflow-wrap: anywhere; min-width: 6rem } .about .number { text-align: left }
.number { text-align: right; font-variant-numeric: tabular-nums } summary { cursor: pointer; margin: .6rem 0 }
h2 small { font-weight: normal; color: var(--muted) } code { font-size: 13px; overflow-wrap: anywhere }
@media (max-width: 700px) { .figure { overflow-x: auto } img { max-width: none; zoom: .8 } }
"""

PERCENT = {"share", "unique_kept", "largest_at", "shared_with_serial", "dropped"}
"""Columns that contain fractions, which are displayed in percent."""


def report(folder: str | os.PathLike[str]) -> list[Path]:
    """Write report.html and report.md for the folder of an experiment, or for a folder that contains such folders.

    >>> report("no/such/folder")
    Traceback (most recent call last):
    ...
    FileNotFoundError: folder not found: no/such/folder
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"folder not found: {folder}")
    with opening(folder):
        folders = [folder, *sorted(path for path in folder.glob("*/") if path.is_dir())]
        finished = [each for each in folders if (each / DESCRIPTION).exists()]
        unfinished = [each for each in folders if each not in finished and (each / RUNS_FILE).exists()]
    if not finished:
        raise FileNotFoundError(f"no experiment in {folder}; run one with batchbpe experiment NAME -o {folder}")
    sections = sorted(map(_Section, finished), key=lambda section: (section.order, str(section.folder)))
    names = ", ".join(each.resolve().name for each in unfinished)
    note = f"Unfinished experiments, not included: {names}" if names else ""
    pages = {
        "report.html": "".join(_html(sections, note)),
        "report.md": "".join(_markdown(sections, note, folder)),
    }
    for name, page in pages.items():
        with replacing(folder / name) as path:
            path.write_text(page, encoding="utf-8", newline="\n")
    return [folder / name for name in pages]


class _Section:
    """Title, parameters, findings, tables and figures of an experiment."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.name = folder, folder.resolve().name
        description = load_sealed(folder / DESCRIPTION, VERSION, RERUN)
        name = description["experiment"]
        self.title = TITLES.get(name, name)
        self.order = [*TITLES, name].index(name)  # as in the paper
        self.parameters: dict[str, Any] = description["parameters"]
        if "pattern" in self.parameters:
            self.parameters["pattern"] = pattern_name(self.parameters["pattern"])
        # Folders of earlier versions have no date.
        data = self.parameters.get("data", NOTHING)
        self.about = [description.get("date", NOTHING), description.get("batchbpe", NOTHING), _value(data)]
        self.findings: Table = findings_header(name), list(description["findings"].items())
        checksums: dict[str, str] = description["checksums"]
        names = [f"{each}.svg" for each in description["figures"]]
        self.tables = {each: _table(folder / f"{each}.csv", checksums) for each in description["tables"]}
        self.figures = {folder / name: _content(folder / name, checksums) for name in names}


def _content(path: Path, checksums: Mapping[str, str]) -> bytes:
    """Read a file of an experiment and verify its checksum."""
    if not path.exists():
        raise DataError("file not found", where=str(path), remedy=RERUN)
    with opening(path):
        data = path.read_bytes()
    if checksum_of(data) != checksums[path.name]:
        raise DataError("damaged: wrong checksum", where=str(path), remedy=RERUN)
    return data


def findings_header(experiment: str) -> list[str]:
    """Return the header of the findings of an experiment: claims of the paper and results, or only findings."""
    return ["claim of the paper" if experiment in IN_PAPER else "finding", "result"]


def _table(path: Path, checksums: Mapping[str, str]) -> Table:
    text = _content(path, checksums).decode("utf-8")
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))  # chunks may be long
    header, *rows = csv.reader(StringIO(text, newline=""))
    return readable(header, rows)


def readable(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Format the header and the numbers of a table for display.

    >>> readable(["freq_cutoff", "change"], [["1", "0"], ["2000", "-0.125"]])
    (['freq cutoff', 'change, %'], [['1', '0.0000'], ['2,000', '−0.1250']])
    """
    names = [_words(name) + (", %" if name.startswith("change") or name in PERCENT else "") for name in header]
    columns = zip(*rows, strict=True)
    cells = [_formatted(name, column) for name, column in zip(header, columns, strict=True)] if rows else []
    return names, [list(row) for row in zip(*cells, strict=True)]


def _formatted(name: str, column: Sequence[str]) -> list[str]:
    """Format a column of numbers with four decimals, or as integers if all are. Return any other column unchanged."""
    try:
        numbers = [_number(cell) for cell in column]
    except ValueError:
        return list(column)
    scale = 100 if name in PERCENT else 1
    decimals = ".4f" if name in PERCENT or any(isinstance(number, float) for number in numbers) else ""
    cells = ["" if each is None else f"{each * scale:,{decimals}}".replace("-", "−") for each in numbers]
    return ["no limit" if (name, cell) == ("max_batch_size", "0") else cell for cell in cells]


def _number(cell: str) -> int | float | None:
    if not cell:
        return None
    if "_" in cell:
        raise ValueError(cell)  # in Python, 1_000 is a number
    return int(cell) if cell.lstrip("-").isdecimal() else float(cell)


def _contents(sections: Sequence[_Section]) -> Table:
    """Return when, with which version and on which data each experiment was run."""
    rows = [[f"{each.title} ({each.name})", *each.about] for each in sections]
    return ["experiment", "date", "version", "data"], rows


def _html(sections: Sequence[_Section], note: str) -> Iterator[str]:
    yield f'<!doctype html><html lang="en"><meta charset="utf-8"><title>batchbpe report</title><style>{STYLE}</style>'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1"><h1>batchbpe experiments</h1>'
    yield f'<div class="about">{html_table(_contents(sections))}</div>'
    for section in sections:
        yield f"<h2>{html.escape(section.title)} <small>{html.escape(section.name)}</small></h2>"
        if section.findings[1]:
            yield html_table(section.findings)
        for figure, picture in section.figures.items():
            yield f'<div class="figure" tabindex="0">{html_figure(figure.stem, picture)}</div>'
        for name, table in section.tables.items():
            state = " open" if len(table[1]) <= FEW_ROWS else ""
            heading = f"Table: {html.escape(_words(name))} ({plural(len(table[1]), 'row')})"
            yield f"<details{state}><summary>{heading}</summary>{long_table(table)}</details>"
        parameters = {html.escape(name): html.escape(_value(value)) for name, value in section.parameters.items()}
        rows = "".join(f"<tr><th>{name}<td><code>{value}</code>" for name, value in parameters.items())
        yield f"<details><summary>Parameters</summary><table>{rows}</table></details>"
    if note:
        yield f"<p>{html.escape(note)}"


def html_figure(name: str, svg: bytes) -> str:
    """Embed a figure in HTML."""
    return f'<img alt="{html.escape(name)}" src="data:image/svg+xml;base64,{base64.b64encode(svg).decode()}">'


def long_table(table: Table) -> str:
    """Render a table as HTML; of a long one, only the first rows."""
    header, rows = table
    more = f"<p>{len(rows) - MAX_ROWS:,} more rows in the csv file" if len(rows) > MAX_ROWS else ""
    return html_table((header, rows[:MAX_ROWS])) + more


def _markdown(sections: Sequence[_Section], note: str, top: Path) -> Iterator[str]:
    yield f"# batchbpe experiments\n{_markdown_table(_contents(sections), len(sections))}"
    for section in sections:
        yield f"\n## {section.title} ({section.name})\n"
        if section.findings[1]:
            yield _markdown_table(section.findings)
        for figure in section.figures:
            yield f"\n![{figure.stem}]({figure.with_suffix('.png').relative_to(top).as_posix()})\n"
        for name, table in section.tables.items():
            yield f"\n### {_words(name).capitalize()}\n{_markdown_table(table)}"
        parameters = [[name, _value(value)] for name, value in section.parameters.items()]
        yield f"\n### Parameters\n{_markdown_table((['', ''], parameters))}"
    if note:
        yield f"\n{note}\n"


def _markdown_table(table: Table, most: int = FEW_ROWS) -> str:
    header, rows = table
    more = f"\n{len(rows) - most:,} more rows in the csv file\n" if len(rows) > most else ""
    return f"\n{markdown_table((header, rows[:most]))}\n{more}"


def _words(name: str) -> str:
    return name.replace("_", " ")


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "; ".join(f"{name}: {_value(each)}" for name, each in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else str(value)

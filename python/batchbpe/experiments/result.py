"""What an experiment found: tables, figures and parameters; in a notebook, or in a folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv as pc

from .. import __version__
from ..files import replacing
from .plots import styled
from .report import DESCRIBED, RUNS, header_of, html_figure, html_table, in_words

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def signed(change: float) -> str:
    """Give a change as it is printed.

    >>> signed(-0.00832), signed(0.5)
    ('−0.0083', '+0.5000')
    """
    return f"{change:+.4f}".replace("-", "−")


def _written(folder: Path) -> set[Path]:
    """Find what an experiment before this one wrote into a folder, nothing else."""
    try:
        described = json.loads((folder / DESCRIBED).read_text(encoding="utf-8"))
        names = [f"{table}.csv" for table in described["tables"]]
        names += [f"{figure}.{kind}" for figure in described["figures"] for kind in ("svg", "png")]
    except (OSError, ValueError, KeyError, TypeError):
        return set()
    return {folder / Path(name).name for name in (*names, RUNS)}


@dataclass(frozen=True, repr=False)
class Result:
    """Tables and figures by name; the first of each is the main one."""

    name: str
    parameters: Mapping[str, Any]
    tables: Mapping[str, pa.Table]
    figures: Mapping[str, Figure]
    findings: Mapping[str, str] = field(default_factory=dict)
    """What the paper says, and what was found."""

    def __repr__(self) -> str:
        """Say what there is."""
        return f"Result({self.name!r}, tables={list(self.tables)}, figures={list(self.figures)})"

    @property
    def table(self) -> pa.Table:
        """The main table."""
        return next(iter(self.tables.values()))

    @property
    def figure(self) -> Figure:
        """The main figure."""
        return next(iter(self.figures.values()))

    def _repr_html_(self) -> str:
        """Show findings, figures and the main table in a notebook."""
        found = list(map(list, self.findings.items()))
        parts = [html_table((header_of(self.name), found))] if found else []
        for name, figure in self.figures.items():
            picture = BytesIO()
            styled(figure.savefig)(picture, format="svg")
            parts.append(html_figure(name, picture.getvalue()))
        rows = [["" if value is None else str(value) for value in row.values()] for row in self.table.to_pylist()]
        return "".join([*parts, html_table(in_words(self.table.column_names, rows))])

    @styled
    def save(self, folder: Path) -> list[Path]:
        """Write tables as csv, figures as svg and png, and the parameters; give the files.

        What another experiment wrote there before goes when all is written.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        before, files = _written(folder), []
        for name, table in self.tables.items():
            with replacing(folder / f"{name}.csv") as path:
                pc.write_csv(table, path)
            files.append(folder / f"{name}.csv")
        for name, figure in self.figures.items():
            for kind in ("svg", "png"):
                with replacing(folder / f"{name}.{kind}") as path:
                    # A date would make equal figures different files.
                    figure.savefig(path, format=kind, metadata={"Date": None} if kind == "svg" else None)
                files.append(folder / f"{name}.{kind}")
        described = {
            "experiment": self.name,
            "batchbpe": __version__,
            "parameters": dict(self.parameters),
            "findings": dict(self.findings),
            "tables": list(self.tables),
            "figures": list(self.figures),
        }
        with replacing(folder / DESCRIBED) as path:
            path.write_text(json.dumps(described, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        kept = {*files, folder / RUNS} if self.name == "sweep" else {*files}
        for stale in before - kept:
            stale.unlink(missing_ok=True)
        return [*files, folder / DESCRIBED]

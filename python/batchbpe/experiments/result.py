"""What an experiment found: tables, figures and parameters; in a notebook, or in a folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv as pc

from .. import __version__
from ..storage.atomic import replacing_all, writing
from ..storage.locks import locked
from ..storage.sealed import checksum_of, load_sealed, sealed
from .plots import styled
from .report import DESCRIBED, RUNS, VERSION, header_of, html_figure, html_table, in_words

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
        described = load_sealed(folder / DESCRIBED, VERSION, "")
    except (OSError, ValueError):
        return set()
    return {folder / name for name in (*described["checksums"], RUNS)}


def _draw(figure: Figure, kind: str, path: Path) -> None:
    # A date would make equal figures different files.
    figure.savefig(path, format=kind, metadata={"Date": None} if kind == "svg" else None)


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
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        writers: dict[str, Callable[[Path], object]] = {
            **{f"{name}.csv": partial(pc.write_csv, table) for name, table in self.tables.items()},
            **{
                f"{name}.{kind}": partial(_draw, figure, kind)
                for name, figure in self.figures.items()
                for kind in ("svg", "png")
            },
        }
        files = [folder / name for name in writers]
        described = {
            "version": VERSION,
            "experiment": self.name,
            "batchbpe": __version__,
            "parameters": dict(self.parameters),
            "findings": dict(self.findings),
            "tables": list(self.tables),
            "figures": list(self.figures),
        }
        with locked(folder):
            before = _written(folder)
            with replacing_all([*files, folder / DESCRIBED]) as (*temporaries, last):
                checksums = {}
                for path, temporary in zip(files, temporaries, strict=True):
                    with writing(path):
                        writers[path.name](temporary)
                    checksums[path.name] = checksum_of(temporary.read_bytes())
                last.write_bytes(sealed({**described, "checksums": checksums}))
            kept = {*files, folder / RUNS} if self.name == "sweep" else {*files}
            for stale in before - kept:
                stale.unlink(missing_ok=True)
        return [*files, folder / DESCRIBED]

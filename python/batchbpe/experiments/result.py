"""Experiment results: tables, figures and parameters, displayed in a notebook or saved in a folder."""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv as pc

from .. import __version__
from ..analysis.plots import styled
from ..analysis.tables import html_table
from ..formats import native
from ..model import Model
from ..storage.atomic import replacing_all, writing
from ..storage.checked_json import checksum_of, load_sealed, sealed
from ..storage.locks import locked
from .report import DESCRIPTION, RUNS_FILE, VERSION, findings_header, html_figure, long_table, readable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RESUMABLE = ("sweep", "language-model")
"""Experiments that keep the results of their parts in the folder."""
MAX_NAME = 120
"""Maximum length of the name of a model in a file name, in characters."""


def signed(change: float) -> str:
    """Format a change in percent, with its sign.

    >>> signed(-0.00832), signed(0.5)
    ('−0.0083', '+0.5000')
    """
    return f"{change:+.4f}".replace("-", "−")


def model_path(folder: Path, name: str) -> Path:
    """Return the file of a model. What a file name may not contain is replaced, and a checksum keeps it unique.

    >>> model_path(Path("sweep"), "vocab_size=300, policy=serial").as_posix()
    'sweep/models/vocab_size=300, policy=serial.model'
    >>> model_path(Path("sweep"), "data=a/b").as_posix()
    'sweep/models/data=a_b d2579e21.model'
    """
    safe = re.sub(r"[^a-zA-Z0-9_=., -]", "_", name)[:MAX_NAME]
    return folder / "models" / (f"{name}.model" if safe == name else f"{safe} {zlib.crc32(name.encode()):08x}.model")


def _previous_files(folder: Path) -> set[Path]:
    """Return the files in a folder that a previous experiment wrote."""
    try:
        previous = load_sealed(folder / DESCRIPTION, VERSION, "")
    except (OSError, ValueError):
        return set()
    return {folder / name for name in (*previous["checksums"], RUNS_FILE)}


def _draw(figure: Figure, kind: str, path: Path) -> None:
    # Without a date, equal figures are equal files.
    figure.savefig(path, format=kind, metadata={"Date": None} if kind == "svg" else None)


@dataclass(frozen=True, repr=False)
class Result:
    """Tables and figures by name; the first of each is the main one.

    >>> from batchbpe.experiments import chunks
    >>> chunks(["to be or not to be"] * 3)
    Result('chunks', tables=['growth', 'frequencies'], figures=['growth', 'frequencies'])
    """

    name: str
    parameters: Mapping[str, Any]
    tables: Mapping[str, pa.Table]
    figures: Mapping[str, Figure]
    findings: Mapping[str, str] = field(default_factory=dict)
    """What was found, by the claim of the paper that it checks."""
    models: Mapping[str, Model] = field(default_factory=dict)
    """The models that were kept, best first."""

    def __repr__(self) -> str:
        """List the tables and figures."""
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
        """Display findings, figures and the main table in a notebook."""
        findings = list(map(list, self.findings.items()))
        parts = [html_table((findings_header(self.name), findings))] if findings else []
        for name, figure in self.figures.items():
            picture = BytesIO()
            styled(figure.savefig)(picture, format="svg")
            parts.append(html_figure(name, picture.getvalue()))
        rows = [["" if value is None else str(value) for value in row.values()] for row in self.table.to_pylist()]
        return "".join([*parts, long_table(readable(self.table.column_names, rows))])

    @styled
    def save(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write tables as csv, figures as svg and png, models, and the parameters as JSON; return the paths.

        Files of a previous experiment in the folder are removed once all files are written.
        """
        folder = Path(folder)
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        writers: dict[Path, Callable[[Path], object]] = {
            **{folder / f"{name}.csv": partial(pc.write_csv, table) for name, table in self.tables.items()},
            **{
                folder / f"{name}.{kind}": partial(_draw, figure, kind)
                for name, figure in self.figures.items()
                for kind in ("svg", "png")
            },
            **{model_path(folder, name): partial(native.save, model) for name, model in self.models.items()},
        }
        for path in writers:
            with writing(path):
                path.parent.mkdir(exist_ok=True)
        files = list(writers)
        description = {
            "version": VERSION,
            "experiment": self.name,
            "batchbpe": __version__,
            "date": datetime.now(timezone.utc).date().isoformat(),
            "parameters": dict(self.parameters),
            "findings": dict(self.findings),
            "tables": list(self.tables),
            "figures": list(self.figures),
        }
        with locked(folder):
            previous = _previous_files(folder)
            with replacing_all([*files, folder / DESCRIPTION]) as (*temporaries, last):
                checksums = {}
                for path, temporary in zip(files, temporaries, strict=True):
                    with writing(path):
                        writers[path](temporary)
                    checksums[path.relative_to(folder).as_posix()] = checksum_of(temporary.read_bytes())
                last.write_bytes(sealed({**description, "checksums": checksums}))
            kept = {*files, folder / RUNS_FILE} if self.name in RESUMABLE else {*files}
            for stale in previous - kept:
                stale.unlink(missing_ok=True)
        return [*files, folder / DESCRIPTION]

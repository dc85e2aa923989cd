"""The results of training, in memory and, with a folder, in files: one for each vocabulary and seed."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import DataError
from ...storage.atomic import writing
from ...storage.checked_json import load_sealed, save_sealed
from ..report import RUNS_FILE
from .batches import Encoder
from .comparison import Bits

VERSION = 1
"""Format version of the files. It changes when equal options would give other results."""
AGAIN = "remove it to start again"
MAX_NAME = 100
"""Maximum length of the name of a vocabulary in a file name, in characters."""


@dataclass(frozen=True)
class Point:
    """An evaluation."""

    bytes: int
    """Number of bytes that the model was trained on."""
    tokens: int
    """Number of tokens that it predicted in training, with the ends of documents."""
    flops: int
    """Number of floating-point operations of the training."""
    bits: list[float]
    """Bits of each held-out document."""

    @property
    def total(self) -> float:
        """Bits of all documents."""
        return sum(self.bits)


@dataclass(frozen=True)
class Run:
    """What training one model gave."""

    vocabulary: int
    """Number of embeddings."""
    parameters: int
    """Number of parameters, with embeddings."""
    points: list[Point]
    seconds: float = 0.0

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Run:
        """Create a run from what `recorded` returned."""
        return cls(**{**fields, "points": [Point(**each) for each in fields["points"]]})

    def recorded(self) -> dict[str, Any]:
        """Return the run as JSON data."""
        return asdict(self)

    @property
    def flops(self) -> list[int]:
        """The operations at each evaluation."""
        return [each.flops for each in self.points]

    @property
    def bits(self) -> Bits:
        """The bits of each document, in one row for each evaluation."""
        return np.array([each.bits for each in self.points])


class SavedRuns:
    """The runs that are done, by name of the vocabulary and seed.

    >>> runs = SavedRuns(None, {}, {})
    >>> runs.add("mine", 0, Run(257, 100, []))
    >>> ("mine", 0) in runs, ("mine", 1) in runs
    (True, False)
    """

    def __init__(
        self, folder: Path | None, description: Mapping[str, Any], encoders: Mapping[str, Encoder], resume: bool = True
    ) -> None:
        """Start with what the folder contains. `description` is of the texts and options, which must not change."""
        self._runs: dict[tuple[str, int], Run] = {}
        self._folder, self._encoders = folder, encoders
        if folder is None:
            return
        fields = {"version": VERSION, "of": json.loads(json.dumps(description))}
        path = folder / RUNS_FILE
        if path.exists() and not resume:
            for stale in (folder / "runs").glob("*"):
                stale.unlink()
            path.unlink()
        if not path.exists():
            save_sealed(fields, path)
        elif load_sealed(path, VERSION, AGAIN).get("of") != fields["of"]:
            remedy = "use another folder"
            raise DataError("this experiment was started with other data or options", where=str(path), remedy=remedy)
        with writing(folder / "runs"):
            (folder / "runs").mkdir(exist_ok=True)

    def load(self, name: str, seed: int) -> bool:
        """Load a run if the folder contains it. If it was with another vocabulary of that name, raise an error."""
        path = self._path(name, seed, "json")
        if path is None or not path.exists():
            return False
        fields = load_sealed(path, VERSION, AGAIN)
        if fields["model"] != self._encoders[name].tokenizer.model.identity:
            remedy = "rename the vocabulary, or use another folder"
            raise DataError(f"this run was with another vocabulary {name}", where=str(path), remedy=remedy)
        self._runs[name, seed] = Run.of(fields["run"])
        return True

    def add(self, name: str, seed: int, run: Run) -> None:
        """Add a run, and write it to the folder."""
        self._runs[name, seed] = run
        path = self._path(name, seed, "json")
        if path is not None:
            fields = {"model": self._encoders[name].tokenizer.model.identity, "run": run.recorded()}
            save_sealed({"version": VERSION, **fields}, path)
            self.checkpoint(name, seed).unlink(missing_ok=True)  # type: ignore[union-attr]

    def checkpoint(self, name: str, seed: int) -> Path | None:
        """Return the file in which unfinished training is saved."""
        return self._path(name, seed, "pt")

    def __contains__(self, key: tuple[str, int]) -> bool:
        """Return whether a run is done."""
        return key in self._runs

    def __getitem__(self, key: tuple[str, int]) -> Run:
        """Return a run that is done."""
        return self._runs[key]

    def _path(self, name: str, seed: int, suffix: str) -> Path | None:
        """Return the file of a run. What a file name may not contain is replaced, and a checksum keeps it unique."""
        if self._folder is None:
            return None
        safe = re.sub(r"[^a-zA-Z0-9_=., -]", "_", name)[:MAX_NAME]
        unique = safe if safe == name else f"{safe} {zlib.crc32(name.encode()):08x}"
        return self._folder / "runs" / f"{unique} seed={seed}.{suffix}"

"""The results of a sweep, in memory and, with a folder, in files: rows of a table, and the best models."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from ..errors import DataError
from ..formats import native
from ..model import Model
from ..storage.atomic import writing
from ..storage.checked_json import load_sealed, save_sealed
from .grid import Combination, chosen, label
from .report import RUNS_FILE, VERSION
from .result import model_path


class Runs:
    """The combinations of a sweep that are done.

    >>> runs = Runs(None, [], [{"vocab_size": 300}, {"vocab_size": 400}], keep=1)
    >>> runs.add({"vocab_size": 300, "bytes_per_token": 2.0}, Model(r"\\w+", {}))
    >>> runs.todo(), list(runs.models)
    ([{'vocab_size': 400}], ['vocab_size=300'])
    """

    def __init__(
        self,
        folder: Path | None,
        description: Any,
        combinations: Sequence[Combination],
        resume: bool = True,
        keep: int | Literal["all"] = 0,
    ) -> None:
        """Start with what the folder contains. `description` is of the data and options, which must not change."""
        self._rows: list[dict[str, Any]] = []
        self._models: dict[str, Model] = {}
        self._folder, self._description = folder, description
        self._combinations = {label(each): each for each in combinations}
        self._keep = len(combinations) if keep == "all" else keep
        path = folder and folder / RUNS_FILE
        if not path or not path.exists():
            return
        if not resume:
            path.unlink()
            return
        saved = load_sealed(path, VERSION, "remove it to start again")
        if saved["of"] != description:
            remedy = "use another folder"
            raise DataError("this sweep was started with other data or options", where=str(path), remedy=remedy)
        self._rows = saved["runs"]

    def todo(self) -> list[Combination]:
        """Return the combinations that are not done."""
        done = [chosen(row) for row in self._rows]
        return [each for each in self._combinations.values() if chosen(each) not in done]

    def best(self) -> list[dict[str, Any]]:
        """Return the rows of these combinations, best first. A folder may contain more."""
        rows = [row for row in self._rows if label(row) in self._combinations]
        # Patterns that drop text come last, because part of the text is not encoded.
        return sorted(rows, key=lambda row: (bool(row.get("dropped")), -row["bytes_per_token"], str(row)))

    def add(self, row: dict[str, Any], model: Model) -> None:
        """Add a row, and keep the model if it is one of the best so far."""
        self._rows.append(row)
        kept = self._kept()
        if label(row) in kept:
            self.add_model(row, model)
        for worse in self._models.keys() - set(kept):
            del self._models[worse]
            if self._folder:
                model_path(self._folder, worse).unlink(missing_ok=True)
        if self._folder:
            fields = {"version": VERSION, "of": self._description, "runs": self._rows}
            save_sealed(fields, self._folder / RUNS_FILE)

    def add_model(self, row: Combination, model: Model) -> None:
        """Keep the model of a row."""
        self._models[label(row)] = model
        if self._folder:
            path = model_path(self._folder, label(row))
            with writing(path):
                path.parent.mkdir(exist_ok=True)
            native.save(model, path)

    def without_model(self) -> list[Combination]:
        """Return the combinations whose models are to be kept, but neither in memory nor in the folder.

        Models of other combinations, which an earlier sweep in the folder has kept, are removed.
        """
        kept = self._kept()
        paths = {name: model_path(self._folder, name) for name in self._combinations} if self._folder and kept else {}
        for name, path in paths.items():
            if name not in kept:
                path.unlink(missing_ok=True)
            elif name not in self._models and path.exists():
                self._models[name] = native.load(path)
        return [self._combinations[name] for name in kept if name not in self._models]

    @property
    def models(self) -> dict[str, Model]:
        """The models that were kept, best first."""
        return {name: self._models[name] for name in self._kept() if name in self._models}

    def _kept(self) -> list[str]:
        return [label(row) for row in self.best()[: self._keep]] if self._keep else []

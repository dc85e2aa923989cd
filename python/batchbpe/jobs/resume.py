"""What both jobs over many files share: input options, read errors, and the `Record` that makes a job resumable."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..data.options import ReadOptions, Sampling
from ..data.sampling import Selection
from ..data.source import Source
from ..errors import DataError, Setting, UserError, short
from ..storage.checked_json import load_sealed, save_sealed

VERSION = 1
"""Changes when files are cut into batches differently, since a position is a number of batches."""
RESUME = ("continue with ", Setting("resume", True))
"""How to continue a job."""


@dataclass
class ReadErrors:
    """What to do about files that cannot be read: raise an error, or collect the errors and continue."""

    skip: bool = False
    describe: Callable[[Exception], str] = str
    failed: dict[str, str] = field(default_factory=dict)
    """Files that could not be read, and why."""

    @contextmanager
    def of(self, source: Source) -> Iterator[None]:
        """Raise or collect the errors of a source. If raised, they are a `DataError`, never an `OSError`."""
        try:
            with source.blamed():
                yield
        except (ValueError, OSError) as error:
            if not self.skip:
                raise error if isinstance(error, UserError) else DataError(str(error)) from None
            self.failed[source.name or "the data"] = self.describe(error)


@dataclass(frozen=True, kw_only=True)
class JobOptions:
    """How the sources of a job were created, and which of their documents it uses."""

    reading: ReadOptions = field(default_factory=ReadOptions)
    sampling: Sampling = field(default_factory=Sampling)

    def recorded(self) -> dict[str, Any]:
        """Return all options by name, for a record."""
        values = asdict(self)
        return {**values.pop("reading"), **values.pop("sampling"), **values}


class Record:
    """A file with the sources that are done, the position in the current one, and the state of the job.

    A job can only be resumed with the options and the sources that it was started with.
    """

    def __init__(self, path: Path, options: Mapping[str, Any], sources: Sequence[Source], selection: Selection) -> None:
        """Start with nothing done."""
        self.path, self.sources, self.selection = path, sources, selection
        self.options = json.loads(json.dumps(dict(options)))  # as it will be read back
        self.done: list[list[Any]] = []
        self.current: list[Any] = []  # a source, how many of its batches are done, and the position in the next one
        self.bytes_left = selection.bytes_left

    def save(self, state: Mapping[str, Any]) -> None:
        """Write the record, with the state of the job, whole or not at all."""
        fields = {"options": self.options, "done": self.done, "current": self.current, "left": self.bytes_left}
        save_sealed({"version": VERSION, **state, **fields}, self.path)

    def load(self) -> dict[str, Any]:
        """Continue from a saved record, and return its fields. A changed option or file is an error."""
        fields = load_sealed(self.path, VERSION, f"remove {self.path.parent} to start again")
        for problem in self._differences(fields):
            remedy = f"use the same options and files, or remove {self.path.parent} to start again"
            raise DataError(problem, where=str(self.path), remedy=remedy)
        if once := next((source.read_once for source in self.sources if source.read_once), ""):
            remedy = f"remove {self.path.parent} to start again"
            raise DataError(f"{once} can be read only once, so that the job cannot be resumed", remedy=remedy)
        self.done, self.current, self.bytes_left = fields["done"], fields["current"], fields["left"]
        self.selection.bytes_left = self.bytes_left
        return fields

    def _differences(self, fields: Mapping[str, Any]) -> Iterator[str]:
        """Yield how this job differs from the one that wrote the record."""
        for name, value in self.options.items():
            before = fields["options"].get(name)
            if before != value:
                changed = f"{name}={short(before)}, got {short(value)}"
                is_model = name == "model"
                yield f"the job was started with {'another model or version of batchbpe' if is_model else changed}"
        given = {tuple(identity(source)) for source in self.sources}
        names = {name for name, *_ in given}
        for name, *rest in (*fields["done"], *fields["current"][:1]):
            if name not in names:
                yield f"{name} is missing from the given files"
            elif (name, *rest) not in given:
                yield f"{name} has changed since the job was started"
        next_one = next((identity(source) for source in self._not_done(fields["done"])), None)
        if fields["current"] and next_one != fields["current"][0]:
            yield f"the files are in another order: {next_one and next_one[0]} comes before {fields['current'][0][0]}"

    def todo(self) -> Iterator[tuple[Source, int, int]]:
        """Yield the sources that are not done, the number of batches to skip, and the position in the next batch."""
        for source in self.not_done():
            known = identity(source)
            batches, position = self.current[1:] if self.current and self.current[0] == known else (0, 0)
            self.bytes_left = self.selection.bytes_left
            self.current = [known, batches, position]
            yield source, batches, position
            self.done.append(known)
            self.current, self.bytes_left = [], self.selection.bytes_left

    def not_done(self) -> Iterator[Source]:
        """Yield the sources that remain to be read, until the limit is reached."""
        for source in self._not_done(self.done):
            if self.selection.is_exhausted:
                return
            yield source

    def _not_done(self, done: Sequence[Sequence[Any]]) -> Iterator[Source]:
        left = Counter(map(tuple, done))  # a file may be given more than once
        for source in self.sources:
            known = tuple(identity(source))
            if left[known]:
                left[known] -= 1
                source.move(source.size)
            else:
                yield source

    def move(self, batches: int, position: int = 0) -> None:
        """Record how many batches of the current source are done, and the position in the next one."""
        self.current[1:] = batches, position


def identity(source: Source) -> list[Any]:
    """Return the name, the size and the time of modification of a file, which change when the file does.

    >>> identity(Source("", lambda _: []))
    ['', 0, 0]
    """
    path = Path(source.name)
    return [source.name, source.size, path.stat().st_mtime_ns if source.size and path.is_file() else 0]

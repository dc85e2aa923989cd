"""What a job over many files has done, kept in a file, so that it can go on after an interruption."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..data.readers import Source
from ..data.sampling import Selection
from ..errors import short
from ..storage.sealed import load_sealed, save_sealed

VERSION = 3
"""Also of the way in which files are cut into batches: a place is a number of them."""


class Record:
    """The sources that are done, the place in the next one, and what else the job wants to know again.

    It goes on only with the options and the sources that it was begun with.
    """

    def __init__(
        self, path: Path, options: Mapping[str, Any], sources: Sequence[Source], selection: Selection, **more: Any
    ) -> None:
        """Begin, with nothing done."""
        self.path, self.sources, self.selection = path, sources, selection
        self.options = json.loads(json.dumps(dict(options)))  # as it will be read
        self.done: list[list[Any]] = []
        self.current: list[Any] = []  # which source, how many of its items are done, and how far the next one
        self.left = selection.left
        self.more = more

    def save(self) -> None:
        """Write it, whole or not at all."""
        names = ("options", "done", "current", "left")
        save_sealed({"version": VERSION, **self.more, **{name: getattr(self, name) for name in names}}, self.path)

    def load(self) -> None:
        """Go on where another one ended."""
        fields = load_sealed(self.path, VERSION, f"remove {self.path.parent} to start again")
        try:
            for name, value in self.options.items():
                before = fields["options"].get(name)
                if before != value:
                    raise ValueError(f"it was begun with {name}={short(before)}, not {short(value)}")
            now = [identity(source) for source in self.sources]
            for name, *rest in (*fields["done"], *fields["current"][:1]):
                if [name, *rest] not in now:
                    changed = any(name == other[0] for other in now)
                    raise ValueError(f"{name} {'has changed since then' if changed else 'is not given again'}")
        except ValueError as error:
            raise ValueError(
                f"{self.path}: {error}; give the same again, or remove {self.path.parent} to begin anew"
            ) from None
        self.done, self.current, self.left = fields["done"], fields["current"], fields["left"]
        self.more = {name: fields[name] for name in self.more}
        self.selection.left = self.left

    def todo(self) -> Iterator[tuple[Source, int, int]]:
        """Give the sources that are not done, how many items to skip, and how much of the next one."""
        done = [tuple(source) for source in self.done]
        for source in self.sources:
            known = identity(source)
            if tuple(known) in done:
                done.remove(tuple(known))
                source.at = source.size
                continue
            if self.selection.is_over:
                return
            items, skip = self.current[1:] if self.current and self.current[0] == known else (0, 0)
            self.left = self.selection.left
            self.current = [known, items, skip]
            yield source, items, skip
            self.done.append(known)
            self.current, self.left = [], self.selection.left

    def move(self, items: int, skip: int = 0) -> None:
        """Note that so many items of the source are done, and so much of the next one."""
        self.current[1:] = items, skip


def identity(source: Source) -> list[Any]:
    """Give the name of a file, its size and when it was changed, by which it is known again."""
    path = Path(source.name)
    return [source.name, source.size, path.stat().st_mtime_ns if source.size and path.is_file() else 0]

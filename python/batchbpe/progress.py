"""How far a long job has come: a bar in a terminal or a notebook, in a log a line every few seconds."""

from __future__ import annotations

import html
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .memory import memory

if TYPE_CHECKING:
    from .counting import Counter
    from .data.readers import Source
    from .training import Batch


class Stopped(Exception):
    """A job was asked to stop. What it has done is saved."""


EVERY = 5.0
"""Seconds between two lines of a log."""
BEGUN = 0.05
"""If more than this share is done at once, it was done before."""
Update = Callable[[float, str], object]
"""Told how much is done, and what else is to be said."""


@contextmanager
def bar(what: str, total: float, *, show: bool = True) -> Iterator[Update]:
    """Show how much of `total` is done, and how long the rest will take. With a total of 0 it is not known."""
    if not show:
        yield lambda done, note: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if console.is_jupyter:
        notebook = _Notebook(what, total)
        try:
            yield notebook
        finally:
            notebook.end()
        return
    if not console.is_terminal:
        yield _Log(what, total)
        return
    columns: list[Any] = [TextColumn("{task.description}"), TextColumn("{task.fields[note]}")]
    columns[1:1] = [BarColumn(None), TimeRemainingColumn(compact=True)] if total else [SpinnerColumn()]
    with Progress(*columns, console=console, transient=True, expand=bool(total), refresh_per_second=5) as progress:
        task = progress.add_task(what, total=total or None, note="")
        first = [True]

        def update(done: float, note: str) -> None:
            if first:
                first.clear()
                # A job may go on with another one's work, which says nothing of its own speed.
                progress.reset(task, completed=int(done) if done > BEGUN * total else 0, note=note)
            progress.update(task, completed=done, note=note)

        yield update


class _Log:
    """A line every few seconds."""

    every: float | None = None

    def __init__(self, what: str, total: float) -> None:
        self.what, self.total = what, total
        self.start = self.last = time.monotonic()
        self.before: float | None = None
        """What was done when it began: a job may go on with another one's work."""

    def __call__(self, done: float, note: str) -> None:
        now = time.monotonic()
        if self.before is None:
            self.before = done if done > BEGUN * self.total else 0
        if now - self.last < (EVERY if self.every is None else self.every):
            return
        self.last = now
        new = done - self.before
        left = (now - self.start) * (self.total - done) / new if new > 0 else 0
        share = f"{100 * done / self.total:.0f} %, {left:.0f} s left, " if self.total and done else ""
        self.write(done, f"{self.what}: {share}{note}")

    def write(self, done: float, line: str) -> None:
        sys.stderr.write(line + "\n")


class _Notebook(_Log):
    """A bar that stands still. That of rich would need widgets."""

    every = 0.2

    def __init__(self, what: str, total: float) -> None:
        from IPython.display import HTML, display

        super().__init__(what, total)
        self.html = HTML
        self.place = display(HTML(""), display_id=True)

    def write(self, done: float, line: str) -> None:
        bar = f'<progress value="{done}" max="{self.total}"></progress> ' if self.total else ""
        self.place.update(self.html(bar + html.escape(line)))

    def end(self) -> None:
        self.place.update(self.html(""))


def size(number: float) -> str:
    """Give a number of bytes as people read it.

    >>> size(999), size(1_234_567), size(50e9)
    ('999 B', '1.2 MB', '50.0 GB')
    """
    units = ["B", "kB", "MB", "GB", "TB"]
    while number >= 999.5 and len(units) > 1:
        number /= 1000
        units.pop(0)
    return f"{number:.0f} B" if units[0] == "B" else f"{number:.1f} {units[0]}"


@contextmanager
def counting_bar(counter: Counter, sources: Sequence[Source], *, show: bool = True) -> Iterator[None]:
    """Show how much of some sources a counter has counted."""
    if not show:
        yield
        return
    total = sum(source.size for source in sources)
    moved, start, before = counter.moved, time.monotonic(), counter.read
    with bar("counting", total) as update:

        def both(done: int) -> None:
            moved(done)
            speed = (counter.read - before) / max(time.monotonic() - start, 1e-3)
            note = f"{size(counter.read)}, {size(speed)}/s, ≤ {counter.unique:,} unique, {size(memory())} memory"
            update(sum(source.at for source in sources), note)

        counter.moved = both
        yield


@contextmanager
def training_bar(*, show: bool = True) -> Iterator[Callable[[Batch], None] | None]:
    """Give what is to be called after each batch to show how many merges are done."""
    if not show:
        yield None
        return
    shown: list[Any] = []

    def on_batch(batch: Batch) -> None:
        if not shown:
            shown.append(bar("training", batch.merges_wanted))
            shown.append(shown[0].__enter__())
        note = f"{batch.merges_done:,} of {batch.merges_wanted:,} merges, batch of {batch.size}"
        shown[1](batch.merges_done, note)

    try:
        yield on_batch
    finally:
        if shown:
            shown[0].__exit__(None, None, None)

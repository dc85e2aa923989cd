"""Progress of long jobs: a bar in a terminal or notebook, or a line every few seconds in a log."""

from __future__ import annotations

import html
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Any

from .memory import memory

if TYPE_CHECKING:
    from ..counts.text_counter import TextCounter
    from ..data.source import Source
    from ..training.loop import Batch

LOG_EVERY = 5.0
"""Seconds between two lines of a log."""
REFRESH_EVERY = 0.1
"""Seconds between two updates of a bar that counts files, which may be many and small."""
RESUMED = 0.05
"""If more than this fraction is done at the first update, the job was resumed."""
Update = Callable[[float, str], object]
"""Receives how much is done, and a note to show."""


@contextmanager
def bar(title: str, total: float, *, show: bool = True) -> Iterator[Update]:
    """Show how much of `total` is done and how long the rest will take. A total of 0 means unknown.

    >>> with bar("counting", 100, show=False) as update:
    ...     update(50, "halfway")
    """
    if not show:
        yield lambda done, note: None
        return
    from rich.console import Console

    console = Console(stderr=True)
    if console.is_jupyter:
        with closing(_Notebook(title, total)) as notebook:
            yield notebook
    elif console.is_terminal:
        with _terminal_bar(console, title, total) as update:
            yield update
    else:
        yield _Log(title, total)


@contextmanager
def _terminal_bar(console: Any, title: str, total: float) -> Iterator[Update]:
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

    columns: list[Any] = [TextColumn("{task.description}"), TextColumn("{task.fields[note]}")]
    columns[1:1] = [BarColumn(None), TimeRemainingColumn(compact=True)] if total else [SpinnerColumn()]
    with Progress(*columns, console=console, transient=True, expand=bool(total), refresh_per_second=5) as progress:
        task = progress.add_task(title, total=total or None, note="")
        is_first = True

        def update(done: float, note: str) -> None:
            nonlocal is_first
            if is_first:
                is_first = False
                # The work of a previous process says nothing about the speed of this one.
                progress.reset(task, completed=int(done) if done > RESUMED * total else 0, note=note)
            progress.update(task, completed=done, note=note)

        yield update


class _Log:
    """A line every few seconds."""

    every: float | None = None

    def __init__(self, title: str, total: float) -> None:
        self.title, self.total = title, total
        self.start = self.last = time.monotonic()
        self.done_before: float | None = None
        """How much a previous process had done."""

    def __call__(self, done: float, note: str) -> None:
        now = time.monotonic()
        if self.done_before is None:
            self.done_before = done if done > RESUMED * self.total else 0
        if now - self.last < (LOG_EVERY if self.every is None else self.every):
            return
        self.last = now
        new = done - self.done_before
        left = (now - self.start) * (self.total - done) / new if new > 0 else 0
        state = f"{100 * done / self.total:.0f}%, {left:.0f} s left, " if self.total and done else ""
        self.write(done, f"{self.title}: {state}{note}")

    def write(self, done: float, line: str) -> None:
        sys.stderr.write(line + "\n")


class _Notebook(_Log):
    """A bar in a notebook. Rich's bar would need widgets."""

    every = 0.2

    def __init__(self, title: str, total: float) -> None:
        from IPython.display import HTML, display

        super().__init__(title, total)
        self.html = HTML
        self.display = display(HTML(""), display_id=True)

    def write(self, done: float, line: str) -> None:
        element = f'<progress value="{done}" max="{self.total}"></progress> ' if self.total else ""
        self.display.update(self.html(element + html.escape(line)))

    def close(self) -> None:
        self.display.update(self.html(""))


def format_size(number: float) -> str:
    """Format a number of bytes.

    >>> format_size(999), format_size(1_234_567), format_size(50e9)
    ('999 B', '1.2 MB', '50.0 GB')
    """
    units = ["B", "kB", "MB", "GB", "TB"]
    while number >= 999.5 and len(units) > 1:
        number /= 1000
        units.pop(0)
    return f"{number:.0f} B" if units[0] == "B" else f"{number:.1f} {units[0]}"


def memory_used(number: int | None, noun: str = "of memory") -> str:
    """Format an amount of memory, which is unknown on some systems.

    >>> memory_used(1_234_567), memory_used(None)
    ('1.2 MB of memory', '')
    """
    return "" if number is None else f"{format_size(number)} {noun}"


class Meter:
    """How much of some sources has been read, without adding up the positions of all of them each time.

    >>> from batchbpe.data.source import Source
    >>> source = Source("a.txt", lambda _: [], size=10)
    >>> meter = Meter([source])
    >>> source.move(7)
    >>> meter.done, meter.size
    (7, 10)
    """

    def __init__(self, sources: Iterable[Source]) -> None:
        """Start with nothing read, even if the sources are read again. They report to this meter from now on."""
        self.done = self.size = 0
        for source in sources:
            source.position = 0
            self.size += source.size
            source.on_move = self._add

    def _add(self, size: int) -> None:
        self.done += size


@contextmanager
def counting_bar(
    counter: TextCounter, sources: Sequence[Source], *, show: bool = True, title: str = "counting"
) -> Iterator[None]:
    """Show how much of some sources has been counted."""
    if not show:
        yield
        return
    meter = Meter(sources)
    on_progress, start, before = counter.on_progress, time.monotonic(), counter.bytes_read
    next_update = start
    with bar(title, meter.size) as update:

        def report(position: int) -> None:
            nonlocal next_update
            on_progress(position)
            now = time.monotonic()
            if now < next_update:
                return
            next_update = now + REFRESH_EVERY
            speed = (counter.bytes_read - before) / max(now - start, 1e-3)
            unique = f"≤ {counter.unique:,} unique" if counter.unique else ""
            read = f"{format_size(counter.bytes_read)}, {format_size(speed)}/s"
            update(meter.done, ", ".join(filter(None, [read, unique, memory_used(memory(), "memory")])))

        counter.on_progress = report
        yield


@contextmanager
def training_bar(*, show: bool = True, unit: str = "merges") -> Iterator[Callable[[Batch], None] | None]:
    """Yield a function to call after each batch, which shows how much is done. None if nothing is shown."""
    if not show:
        yield None
        return
    update: Update | None = None
    with ExitStack() as stack:

        def on_batch(batch: Batch) -> None:
            nonlocal update
            if update is None:  # the first batch gives the total
                update = stack.enter_context(bar("training", batch.merges_wanted))
            note = f"{batch.merges_done:,} of {batch.merges_wanted:,} {unit}, batch of {batch.size}"
            update(batch.merges_done, note)

        yield on_batch

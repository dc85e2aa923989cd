"""How far a long job has come: a bar in a terminal or a notebook, in a log a line every few seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .counting import Counter
    from .readers import Source
    from .training import Batch

EVERY = 5.0
"""Seconds between two lines of a log."""
Update = Callable[[float, str], object]
"""Told how much is done, and what else is to be said."""


@contextmanager
def bar(what: str, total: float, unit: str, *, show: bool = True) -> Iterator[Update]:
    """Show how much of `total` is done; "B" as a unit means bytes. With a total of 0 it is not known."""
    if not show:
        yield lambda done, note: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not (console.is_terminal or console.is_jupyter):
        yield _Log(what, total, unit)
        return
    columns: list[Any] = [TextColumn("{task.description}"), TextColumn("{task.fields[amount]}")]
    columns[1:1] = [BarColumn(None), TimeRemainingColumn(compact=True)] if total else [SpinnerColumn()]
    with Progress(*columns, console=console, transient=True, expand=bool(total), refresh_per_second=5) as progress:
        task = progress.add_task(what, total=total or None, amount="")
        start = time.monotonic()

        def update(done: float, note: str) -> None:
            amount = _amount(done, 0, unit, time.monotonic() - start)
            progress.update(task, completed=done, amount=f"{amount}, {note}" if note else amount)

        yield update


class _Log:
    """A line every few seconds."""

    def __init__(self, what: str, total: float, unit: str) -> None:
        self.what, self.total, self.unit = what, total, unit
        self.start = self.last = time.monotonic()

    def __call__(self, done: float, note: str) -> None:
        now = time.monotonic()
        if now - self.last < EVERY:
            return
        self.last = now
        seconds = now - self.start
        left = f", {seconds * (self.total - done) / done:.0f} s left" if self.total and done else ""
        amount = _amount(done, self.total, self.unit, seconds)
        sys.stderr.write(f"{self.what}: {amount}{left}{', ' + note if note else ''}\n")


def _amount(done: float, total: float, unit: str, seconds: float) -> str:
    """Say how much is done, and how fast.

    >>> _amount(5_000_000, 20_000_000, "B", 2.0), _amount(300, 0, "merges", 1.0)
    ('5.0 MB of 20.0 MB, 2.5 MB/s', '300 merges')
    """
    if unit != "B":
        return f"{done:,.0f} of {total:,.0f} {unit}" if total else f"{done:,.0f} {unit}"
    return f"{size(done)}{f' of {size(total)}' if total else ''}, {size(done / max(seconds, 1e-3))}/s"


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
    moved = counter.moved
    with bar("counting", total, "B") as update:

        def both(done: int) -> None:
            moved(done)
            at = sum(source.at for source in sources) if total else counter.read
            update(at, f"{counter.unique:,} unique, {size(memory())}")

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
            shown.append(bar("training", batch.merges_wanted, "merges"))
            shown.append(shown[0].__enter__())
        shown[1](batch.merges_done, f"batch of {batch.size}")

    try:
        yield on_batch
    finally:
        if shown:
            shown[0].__exit__(None, None, None)


def memory() -> int:
    """Give the memory that this process takes now, in bytes, or at most so far where only that is known."""
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * resource.getpagesize()
    except (ImportError, OSError):
        return peak_memory()


def peak_memory() -> int:
    """Give the most memory that this process has taken, in bytes; 0 where it is not known."""
    try:
        import resource
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if sys.platform == "darwin" else peak * 1024)

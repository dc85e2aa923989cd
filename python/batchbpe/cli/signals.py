"""Ctrl-C and SIGTERM: they stop a command so that temporary files are removed, or ask a job to stop and save.

On Windows, no process can catch SIGTERM from another one; Ctrl-Break (SIGBREAK) takes its place.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import Stopped

TERMINATING = [getattr(signal, name) for name in ("SIGTERM", "SIGBREAK") if hasattr(signal, name)]


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGBREAK was received."""


def exit_signal(interrupt: KeyboardInterrupt) -> int:
    """Return the signal that an interrupt stands for, which determines the exit code."""
    return signal.SIGTERM if isinstance(interrupt, Terminated) else signal.SIGINT


@contextmanager
def terminable() -> Iterator[None]:
    """Let SIGTERM stop a command like Ctrl-C, so that temporary files are removed. If it is ignored, it stays so."""
    is_main = threading.current_thread() is threading.main_thread()
    numbers = [number for number in TERMINATING if is_main and signal.getsignal(number) is signal.SIG_DFL]
    for number in numbers:
        signal.signal(number, _terminate)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


def _terminate(*_: object) -> None:
    raise Terminated


@contextmanager
def stoppable(*, waits: bool) -> Iterator[Callable[[], bool]]:
    """Let the first Ctrl-C or SIGTERM ask a job to stop and save, and the second one end it at once.

    A job that waits for standard input does not poll, so the first signal ends it.
    """
    received: list[int] = []

    def handler(number: int, _: Any) -> None:
        received.append(number)
        if len(received) > 1 or waits:
            raise KeyboardInterrupt if number == signal.SIGINT else Terminated
        again = "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name
        sys.stderr.write(f"\nstopping; {again} again to stop without saving\n")

    numbers = [signal.SIGINT, *(number for number in TERMINATING if signal.getsignal(number) is _terminate)]
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield lambda: bool(received)
    except Stopped as stopped:
        stopped.signal = received[0]
        raise
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)

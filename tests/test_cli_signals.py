"""Signals in this process; tests/test_cli_processes.py sends them to others."""

import os
import signal

import pytest

from batchbpe.cli import signals
from batchbpe.cli.signals import Terminated, exit_signal, stoppable, terminable

needs_signals = pytest.mark.skipif(os.name != "posix", reason="Windows has no signal to stand for SIGBREAK")


@needs_signals
def test_ctrl_break_is_like_sigterm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "TERMINATING", [signal.SIGTERM, signal.SIGUSR1])
    with pytest.raises(Terminated) as caught, terminable():
        signal.raise_signal(signal.SIGUSR1)
    assert exit_signal(caught.value) == signal.SIGTERM
    assert signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL
    with pytest.raises(Terminated), terminable(), stoppable(waits=False) as stop:
        assert not stop()
        signal.raise_signal(signal.SIGUSR1)
        assert stop()
        signal.raise_signal(signal.SIGUSR1)


@needs_signals
def test_a_signal_that_is_ignored_stays_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "TERMINATING", [signal.SIGUSR1])
    before = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    try:
        with terminable():
            signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)

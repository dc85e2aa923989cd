"""Memory figures, also where the system gives fewer of them or none."""

import ctypes
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from batchbpe import ChunkCounts
from batchbpe.experiments.trainings import max_at_once
from batchbpe.util.memory import free_memory, memory, peak_memory, release_memory
from batchbpe.util.progress import memory_used


@pytest.fixture
def without_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS."""
    read_text = Path.read_text

    def read(self: Path, *args: Any, **kwargs: Any) -> str:
        if self.is_relative_to("/proc"):
            raise FileNotFoundError(self)
        return read_text(self, *args, **kwargs)

    monkeypatch.setattr(Path, "read_text", read)


@pytest.fixture
def without_resource(without_proc: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows."""
    monkeypatch.setitem(sys.modules, "resource", None)
    monkeypatch.delattr(os, "sysconf", raising=False)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems give only the peak")
def test_memory_on_linux() -> None:
    used, peak, free = memory(), peak_memory(), free_memory()
    assert used and peak and free
    assert 10_000_000 < used <= 1.05 * peak, "the kernel updates these figures at different times"


def test_without_proc(without_proc: None, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("resource")
    assert memory() == peak_memory() != 0
    monkeypatch.setattr(sys, "platform", "darwin")  # where it is in bytes, not in kilobytes
    in_bytes = peak_memory()
    monkeypatch.setattr(sys, "platform", "linux")
    assert in_bytes and peak_memory() >= 1000 * in_bytes


def test_without_any_figure(without_resource: None) -> None:
    assert memory() is peak_memory() is free_memory() is None
    assert memory_used(memory()) == ""
    assert max_at_once(ChunkCounts.count("to be")) == 1, "one vocabulary at a time is trained"


def test_without_a_c_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """`CDLL(None)` is a `TypeError` on Windows, and other C libraries have no `malloc_trim`."""

    def fails(_: object) -> None:
        raise TypeError

    for library in (fails, lambda _: object()):
        monkeypatch.setattr(ctypes, "CDLL", library)
        release_memory()

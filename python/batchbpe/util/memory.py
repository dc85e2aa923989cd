"""The memory that this process uses, and how much is available."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path


def memory() -> int:
    """Return the memory that this process uses now, in bytes, or its peak if only that is known."""
    try:
        import resource  # not on Windows

        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * resource.getpagesize()
    except (ImportError, OSError):
        return peak_memory()


def free_memory() -> int:
    """Return the memory that is available, in bytes, or 0 if unknown."""
    with suppress(OSError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        return 1024 * int(next(line for line in lines if line.startswith("MemAvailable:")).split()[1])
    with suppress(ValueError, OSError, AttributeError):
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return 0


def release_memory() -> None:
    """Return free memory to the system, where the allocators would keep it."""
    import ctypes

    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)


def peak_memory() -> int:
    """Return the peak memory of this process, in bytes, or 0 if unknown."""
    try:
        import resource  # not on Windows
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if sys.platform == "darwin" else peak * 1024)

"""The memory that this process uses, and how much is available, where the system tells."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from mmap import PAGESIZE
from pathlib import Path


def memory() -> int | None:
    """Return the memory that this process uses now, in bytes; its peak if only that is known, or None."""
    with suppress(OSError):  # Linux
        return PAGESIZE * int(Path("/proc/self/statm").read_text().split()[1])
    return peak_memory()


def peak_memory() -> int | None:
    """Return the peak memory of this process, in bytes, or None if unknown."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def free_memory() -> int | None:
    """Return the memory that is available, in bytes, or None if unknown."""
    with suppress(OSError, StopIteration):  # Linux
        lines = Path("/proc/meminfo").read_text().splitlines()
        return 1024 * int(next(line for line in lines if line.startswith("MemAvailable:")).split()[1])
    with suppress(ValueError, OSError, AttributeError):  # some other Unix systems
        return os.sysconf("SC_AVPHYS_PAGES") * PAGESIZE
    return None


def release_memory() -> None:
    """Return free memory to the system, where the allocators would keep it."""
    import ctypes

    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    with suppress(OSError, AttributeError, TypeError):  # only the C library of GNU needs and has this
        ctypes.CDLL(None).malloc_trim(0)

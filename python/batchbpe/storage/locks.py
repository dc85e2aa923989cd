"""Locks: one job per output, and a way to tell whether the writer of a temporary file is still alive.

Locks are `flock` locks. The system releases them when their process ends, even by SIGKILL, so a lock file that is left
behind never blocks anybody. Without `flock` (on Windows, or on file systems that do not support it), the existence of
the lock file is the lock, and the process named in it tells whether it is stale.
"""

from __future__ import annotations

import errno
import json
import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

IN_FOLDER = ".lock"
"""Name of the lock file of a folder."""
UNREADABLE = 60.0
"""Seconds after which a lock file that names no process is stale, where there is no `flock`."""


def try_lock(handle: int) -> bool | None:
    """Lock an open file without waiting: False if it is locked already, None if locks are not supported."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return False if error.errno in (errno.EAGAIN, errno.EACCES) else None
    return True


@contextmanager
def locked(output: Path) -> Iterator[None]:
    """Hold the lock of a file or folder that a job writes, or raise BlockingIOError if another job holds it.

    The lock file is in the folder, or beside the file; it is removed at the end.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, locked(Path(folder)):
    ...     try:
    ...         with locked(Path(folder)):
    ...             pass
    ...     except BlockingIOError as error:
    ...         print(str(error).replace(folder, "FOLDER").partition(" by ")[0])
    FOLDER is being written
    """
    if not output.parent.is_dir():
        raise FileNotFoundError(f"cannot write {output}: there is no folder {output.parent}; make it first")
    real = output.resolve()
    path = real / IN_FOLDER if real.is_dir() else real.with_name(f".{real.name}.lock")
    try:
        handle = _acquire(path)
        if handle is None:
            _create(path)
    except _HeldError as held:
        remedy = "wait for it or choose another output"
        stale = "" if held.is_sure else f"; if it has ended, remove {path}"
        raise BlockingIOError(f"{output} is being written{held}; {remedy}{stale}") from None
    except OSError as error:
        raise type(error)(f"cannot write {output}: cannot lock {path}: {error.strerror}") from None
    try:
        yield
    finally:
        if handle is None or _is_at(handle, path):
            path.unlink(missing_ok=True)
        if handle is not None:
            os.close(handle)


class _HeldError(Exception):
    """Another process holds the lock; the message says which."""

    def __init__(self, path: Path, *, is_sure: bool) -> None:
        self.is_sure, owner = is_sure, _owner(path)
        super().__init__(f" by process {owner['pid']} on host {owner['host']} since {owner['since']}" if owner else "")


def _acquire(path: Path) -> int | None:
    """Open and lock a lock file; None if the file system has no locks."""
    while True:
        try:
            handle, created = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666), True
        except FileExistsError:
            try:
                handle, created = os.open(path, os.O_RDWR), False
            except FileNotFoundError:  # its owner ended just now
                continue
        state = try_lock(handle)
        # The owner removes the file when it ends: what we opened may be locked by us, and not be there any more.
        if state and _is_at(handle, path):
            with suppress(OSError):  # on a full disk it is a lock all the same, which names nobody
                os.ftruncate(handle, 0)
                os.write(handle, _described())
            return handle
        os.close(handle)
        if state is False:
            raise _HeldError(path, is_sure=True)
        if state is None:
            if created:
                path.unlink(missing_ok=True)
            return None


def _create(path: Path) -> None:
    """Create a lock file, or take over that of a process that has ended."""
    while True:
        with suppress(FileExistsError):
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
            try:
                os.write(handle, _described())
            finally:
                os.close(handle)
            return
        before = _owner(path)
        if _is_alive(before, path):
            raise _HeldError(path, is_sure=False)
        # Renamed, not removed: another process may have taken over the lock since we looked.
        aside = path.with_name(f"{path.name}.{os.urandom(4).hex()}")
        with suppress(FileNotFoundError):
            path.rename(aside)
            if _owner(aside) != before:
                aside.rename(path)
                raise _HeldError(path, is_sure=False)
            aside.unlink()


def _described() -> bytes:
    since = time.strftime("%Y-%m-%d %H:%M:%S")
    return json.dumps({"pid": os.getpid(), "host": platform.node(), "since": since}).encode()


def _owner(path: Path) -> dict[str, Any] | None:
    """Read who holds a lock, if the file tells."""
    try:
        owner = json.loads(path.read_bytes())
        return {"pid": int(owner["pid"]), "host": str(owner["host"]), "since": str(owner["since"])}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _is_alive(owner: dict[str, Any] | None, path: Path) -> bool:
    """Say whether the owner of a lock may be running; if it is on another host, it may."""
    if owner is None:
        with suppress(OSError):
            return time.time() - path.stat().st_mtime < UNREADABLE
        return False
    if owner["host"] != platform.node() or os.name != "posix":
        return True
    try:
        os.kill(owner["pid"], 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _is_at(handle: int, path: Path) -> bool:
    """Say whether an open file is the one at a path."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False

"""Locks: one job per output, and a way to tell whether the writer of a temporary file is still alive.

Locks are `flock` locks. The system releases them when their process ends, even by SIGKILL, so a lock file that is left
behind blocks no other job. Without `flock` (on Windows, or on file systems that do not support it), the existence of
the lock file is the lock. It is stale if the process named in it has ended.
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

from ..errors import os_error, parse_json

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

IN_FOLDER = ".lock"
"""Name of the lock file of a folder."""
UNREADABLE_EXPIRES = 60.0
"""Seconds after which a lock file that names no process is stale, if there is no `flock`."""


def check_parent(path: Path) -> None:
    """Raise if the folder of an output does not exist."""
    if not path.parent.is_dir():
        if path.parent.exists():
            raise NotADirectoryError(f"cannot write {path}: {path.parent} is a file")
        raise FileNotFoundError(f"cannot write {path}: folder not found: {path.parent}; create it first")


def try_lock(handle: int) -> bool | None:
    """Lock an open file without waiting. Return False if it is locked already, None if locks are not supported."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return False if error.errno in (errno.EAGAIN, errno.EACCES) else None
    return True


@contextmanager
def locked(output: Path) -> Iterator[None]:
    """Hold the lock of a file or folder that a job writes, or raise `BlockingIOError` if another job holds it.

    The lock file is in the folder, or next to the file. It is removed at the end.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, locked(Path(folder)):
    ...     try:
    ...         with locked(Path(folder)):
    ...             pass
    ...     except BlockingIOError as error:
    ...         print(str(error).replace(folder, "FOLDER").partition(" by ")[0])
    FOLDER is being written
    """
    check_parent(output)
    real = output.resolve()
    path = real / IN_FOLDER if real.is_dir() else real.with_name(f".{real.name}.lock")
    try:
        handle = _acquire(path)
        if handle is None:
            _create(path)
    except _HeldError as held:
        remedy = "wait for it to finish or choose another output"
        if held.may_be_stale:
            remedy += f"; if it has ended, remove {path}"
        raise BlockingIOError(f"{output} is being written{held}; {remedy}") from None
    except OSError as error:
        raise os_error(error, f"cannot write {path if path.exists() else output}") from None
    try:
        yield
    finally:
        if handle is None or _is_at(handle, path):
            path.unlink(missing_ok=True)
        if handle is not None:
            os.close(handle)


class _HeldError(Exception):
    """Another process holds the lock. The message names it."""

    def __init__(self, path: Path, *, may_be_stale: bool) -> None:
        self.may_be_stale, owner = may_be_stale, _owner(path)
        super().__init__(f" by process {owner['pid']} on host {owner['host']} since {owner['since']}" if owner else "")


def _acquire(path: Path) -> int | None:
    """Open and lock a lock file. Return None if locks are not supported."""
    while True:
        try:
            handle, created = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666), True
        except FileExistsError:
            try:
                handle, created = os.open(path, os.O_RDWR), False
            except FileNotFoundError:  # its owner has just removed it
                continue
        is_locked = try_lock(handle)
        # The previous owner may have removed the file between our opening and locking it.
        if is_locked and _is_at(handle, path):
            with suppress(OSError):  # on a full disk, the lock is valid but names no process
                os.ftruncate(handle, 0)
                os.write(handle, _this_process())
            return handle
        os.close(handle)
        if is_locked is False:
            raise _HeldError(path, may_be_stale=False)
        if is_locked is None:
            if created:
                path.unlink(missing_ok=True)
            return None


def _create(path: Path) -> None:
    """Create a lock file where its existence is the lock, or replace that of a process that has ended."""
    while True:
        with suppress(FileExistsError):
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
            try:
                os.write(handle, _this_process())
            finally:
                os.close(handle)
            return
        owner = _owner(path)
        if _is_alive(owner, path):
            raise _HeldError(path, may_be_stale=True)
        # Rename the file before removing it: another process may have replaced it in the meantime.
        stale = path.with_name(f"{path.name}.{os.urandom(4).hex()}")
        with suppress(FileNotFoundError):
            path.rename(stale)
            if _owner(stale) != owner:
                stale.rename(path)
                raise _HeldError(path, may_be_stale=True)
            stale.unlink()


def _this_process() -> bytes:
    since = time.strftime("%Y-%m-%d %H:%M:%S")
    return json.dumps({"pid": os.getpid(), "host": platform.node(), "since": since}).encode()


def _owner(path: Path) -> dict[str, Any] | None:
    """Return the process that a lock file names, or None if it names none."""
    try:
        owner = parse_json(path.read_bytes())
        return {"pid": int(owner["pid"]), "host": str(owner["host"]), "since": str(owner["since"])}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _is_alive(owner: dict[str, Any] | None, path: Path) -> bool:
    """Return whether the owner of a lock may be running, which cannot be ruled out on another host."""
    if owner is None:
        with suppress(OSError):
            return time.time() - path.stat().st_mtime < UNREADABLE_EXPIRES
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
    """Return whether an open file is the one at a path."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False

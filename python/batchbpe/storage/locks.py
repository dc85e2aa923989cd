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


def has_locks() -> bool:
    """Return whether the system has locks. A file system may not support them even then."""
    return fcntl is not None


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
    """Lock a file or folder that a job writes, or raise `BlockingIOError` if another job has locked it.

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
        handle = _acquire(path, output)
    except BlockingIOError:
        raise
    except OSError as error:
        raise os_error(error, f"cannot write {path if path.exists() else output}") from None
    try:
        yield
    finally:
        if not has_locks():  # Windows does not remove open files
            os.close(handle)
            path.unlink(missing_ok=True)
        else:
            if _is_at(handle, path):
                path.unlink(missing_ok=True)
            os.close(handle)  # releases the lock


def _acquire(path: Path, output: Path) -> int:
    """Create or take over a lock file, write this process into it, and return it open."""
    while True:
        handle, is_new = _open(path)
        is_locked = try_lock(handle)
        if is_locked or (is_locked is None and is_new):
            # The previous owner may have removed the file between our opening and locking it.
            if _is_at(handle, path):
                with suppress(OSError):  # on a full disk, the lock is valid but names no process
                    os.ftruncate(handle, 0)
                    os.write(handle, _this_process())
                return handle
            os.close(handle)
            continue
        os.close(handle)
        owner = _owner(path)
        if is_locked is False or _may_be_alive(owner, path):
            by = f" by process {owner['pid']} on host {owner['host']} since {owner['since']}" if owner else ""
            if_stale = f"; if it has ended, remove {path}" if is_locked is None else ""
            raise BlockingIOError(
                f"{output} is being written{by}; wait for it to finish or choose another output{if_stale}"
            )
        _remove_stale(path, owner)


def _open(path: Path) -> tuple[int, bool]:
    """Open a lock file. Return whether it is new."""
    while True:
        with suppress(FileExistsError):
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666), True
        with suppress(FileNotFoundError):  # its owner has just removed it
            return os.open(path, os.O_RDWR), False


def _remove_stale(path: Path, owner: dict[str, Any] | None) -> None:
    """Remove the lock file of a process that has ended, unless another process has replaced it in the meantime."""
    stale = path.with_name(f"{path.name}.{os.urandom(4).hex()}")
    with suppress(FileNotFoundError):
        path.rename(stale)
        if _owner(stale) == owner:
            stale.unlink()
        else:
            stale.rename(path)


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


def _may_be_alive(owner: dict[str, Any] | None, path: Path) -> bool:
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
        pass
    return True


def _is_at(handle: int, path: Path) -> bool:
    """Return whether an open file is the one at a path."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False

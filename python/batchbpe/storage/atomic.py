"""Files and folders that are written whole or not at all.

Data is written to a temporary file next to the target, which then replaces the target. Temporary files are locked while
they are written. An unlocked one was left behind by a process that was killed, and the next writer removes it.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from ..errors import os_error
from .locks import check_parent, try_lock

STALE = 300.0
"""Seconds after which an unlocked temporary file is removed. Its writer may be alive where locks are not supported."""


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Add the name of a file or folder to errors about writing it.

    By itself, an error names the temporary file, or no file at all if it comes from pyarrow. Errors about other files,
    and errors without an error number, are passed on unchanged.
    """
    try:
        yield
    except OSError as error:
        culprit = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else path
        if error.errno is None or (culprit != path and not culprit.name.startswith(f".{path.name}.")):
            raise
        raise os_error(error, f"cannot write {path}") from error


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary file next to `path`, and move it to `path` if no error is raised.

    The data is synced to disk before the file is renamed: after a crash or a power failure, `path` is either the old
    file or the new one. A symbolic link stays a link. Special files, such as pipes, are yielded themselves. Temporary
    files that killed processes left behind for the same `path` are removed.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(Path(folder) / "a.txt") as temporary:
    ...         _ = temporary.write_text("whole")
    ...     print([file.name for file in Path(folder).iterdir()])
    ['a.txt']
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"cannot write {path}: it is a folder; choose a file name")
    check_parent(path)
    if path.exists() and not path.is_file():
        yield path
        return
    path = path.resolve() if path.is_symlink() else path
    remove_stale(path)
    handle, temporary = None, path
    try:
        with writing(path):
            handle, temporary = _create_beside(path)
            yield temporary
            os.fsync(handle)
            if os.name == "nt":  # Windows does not rename open files
                os.close(handle)
                handle = None
            temporary.replace(path)
            sync_folder(path.parent)
    finally:
        if handle is not None:
            os.close(handle)
        if temporary != path:
            temporary.unlink(missing_ok=True)


@contextmanager
def replacing_all(paths: Sequence[Path]) -> Iterator[list[Path]]:
    """Yield a temporary file for each path, and move them into place, in order, when all are written.

    If one cannot be written, none is replaced.
    """
    with ExitStack() as stack:
        # Contexts are left in reverse order, so that the first path is replaced first.
        temporaries = [stack.enter_context(replacing(path)) for path in reversed(paths)][::-1]
        yield temporaries
        for path, temporary in zip(paths, temporaries, strict=True):
            if temporary.is_file():
                with writing(path), temporary.open("rb+") as file:
                    os.fsync(file.fileno())


def _create_beside(path: Path) -> tuple[int, Path]:
    """Create and lock a temporary file, with the permissions of any new file."""
    while True:
        temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}.tmp")
        with suppress(FileExistsError):
            handle = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
            try_lock(handle)
            if os.fstat(handle).st_nlink:  # otherwise it was removed as stale before it was locked
                return handle, temporary
            os.close(handle)


def remove_stale(path: Path, age: float | None = None) -> None:
    """Remove unlocked temporary files and folders of `path` that are older than `age` seconds (default `STALE`)."""
    name = re.compile(rf"\.{re.escape(path.name)}\.[a-z0-9_]{{8}}\.tmp")
    with suppress(OSError):
        for entry in os.scandir(path.parent):
            if name.fullmatch(entry.name) and not entry.is_symlink():
                with suppress(OSError):
                    _remove_if_stale(Path(entry.path), STALE if age is None else age)


def _remove_if_stale(temporary: Path, age: float) -> None:
    if time.time() - temporary.stat().st_mtime < age:
        return
    is_folder = temporary.is_dir()
    handle = os.open(temporary, os.O_RDONLY if is_folder else os.O_RDWR)
    try:
        if try_lock(handle):
            shutil.rmtree(temporary) if is_folder else temporary.unlink()
    finally:
        os.close(handle)


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder next to `folder`, which must not exist, and rename it if no error is raised."""
    remove_stale(folder)
    temporary = folder.with_name(f".{folder.name}.{os.urandom(4).hex()}.tmp")
    handle = None
    try:
        with writing(folder):
            temporary.mkdir()
            if os.name == "posix":
                handle = os.open(temporary, os.O_RDONLY)
                try_lock(handle)
            yield temporary
            temporary.rename(folder)
            sync_folder(folder.parent)
    except OSError as error:
        if str(temporary) not in str(error):
            raise
        raise type(error)(str(error).replace(str(temporary), str(folder))) from error
    finally:
        if handle is not None:
            os.close(handle)
        shutil.rmtree(temporary, ignore_errors=True)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power failure, if the system supports it."""
    with suppress(OSError):  # not on Windows, and not on every file system
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


class _Writable(Exception):
    """The file can be written."""


def check_writable(path: Path) -> None:
    """Raise the error that writing a file would raise, before long work rather than after it."""
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(f"cannot write {path}: permission denied; choose another file")
    with suppress(_Writable), replacing(path):
        raise _Writable

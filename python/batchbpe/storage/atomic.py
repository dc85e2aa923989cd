"""Files and folders that are written whole or not at all.

Data is written to a temporary file next to the target, which then replaces the target. Temporary files are locked while
they are written. An unlocked one was left behind by a process that was killed, and the next writer removes it. Where
locks are not supported (on Windows, and on some file systems), it stays.
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
from .locks import check_parent, has_locks, try_lock

STALE = 300.0
"""Seconds after which an unlocked temporary file is removed. Its writer may be about to lock it."""


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
    with writing(path), _temporary(path) as temporary:
        yield temporary
        _sync(temporary)
        temporary.replace(path)
        _sync_folder(path.parent)


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
                with writing(path):
                    _sync(temporary)


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder next to `folder`, which must not exist, and rename it if no error is raised."""
    temporary = folder  # unless it cannot be created
    try:
        with writing(folder), _temporary(folder, is_folder=True) as temporary:
            yield temporary
            temporary.rename(folder)
            _sync_folder(folder.parent)
    except OSError as error:
        if str(temporary) not in str(error) or temporary == folder:
            raise
        raise type(error)(str(error).replace(str(temporary), str(folder))) from error


@contextmanager
def _temporary(path: Path, *, is_folder: bool = False) -> Iterator[Path]:
    """Create a temporary file or folder next to `path`, locked, and remove it at the end if it was not renamed."""
    remove_stale(path)
    temporary, handle = _create_beside(path, is_folder)
    try:
        yield temporary
    finally:
        if handle is not None:
            os.close(handle)
        shutil.rmtree(temporary, ignore_errors=True) if is_folder else temporary.unlink(missing_ok=True)


def _create_beside(path: Path, is_folder: bool) -> tuple[Path, int | None]:
    while True:
        temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}.tmp")
        with suppress(FileExistsError):
            temporary.mkdir() if is_folder else temporary.touch(exist_ok=False)
            if not has_locks():  # Windows does not rename open files
                return temporary, None
            with suppress(FileNotFoundError):  # it was removed as stale before it was locked
                handle = _open(temporary)
                try_lock(handle)
                if temporary.exists():
                    return temporary, handle
                os.close(handle)


def _open(path: Path) -> int:
    # Files are opened for writing, because NFS does not lock and Windows does not sync others.
    return os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)


def remove_stale(path: Path, age: float | None = None) -> None:
    """Remove unlocked temporary files and folders of `path` that are older than `age` seconds (default `STALE`)."""
    name = re.compile(rf"\.{re.escape(path.name)}\.[a-z0-9_]{{8}}\.tmp")
    before = time.time() - (STALE if age is None else age)
    with suppress(OSError):
        for entry in os.scandir(path.parent):
            if name.fullmatch(entry.name) and not entry.is_symlink():
                with suppress(OSError):
                    if entry.stat().st_mtime <= before:
                        _remove_if_unlocked(Path(entry.path))


def _remove_if_unlocked(temporary: Path) -> None:
    with _opened(temporary) as handle:
        if try_lock(handle):
            shutil.rmtree(temporary) if temporary.is_dir() else temporary.unlink()


def _sync(path: Path) -> None:
    with _opened(path) as handle:
        os.fsync(handle)


def _sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power failure, if the system supports it."""
    with suppress(OSError):  # not on Windows, and not on every file system
        _sync(folder)


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    handle = _open(path)
    try:
        yield handle
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

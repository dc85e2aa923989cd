"""Files and folders that are written whole or not at all.

What is written goes to a temporary file beside the target, which it replaces when all went well. Temporary files are
locked while they are written: one that is not is left of a process that was killed, and the next writer removes it.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from .locks import try_lock

STALE = 300.0
"""Seconds after which a temporary file that nobody holds is removed. A writer without locks may be slow."""


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Have errors of writing a file or folder name it.

    Those of a temporary file name that, which is of no use to anybody, and those of pyarrow name none. An error without
    a number is in words already, and one that names another file is about that.
    """
    try:
        yield
    except OSError as error:
        named = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else path
        if error.errno is None or (named != path and not named.name.startswith(f".{path.name}.")):
            raise
        raise type(error)(f"cannot write {path}: {os.strerror(error.errno)}") from error


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary file beside `path`, and put it in its place if all goes well.

    The data is on the disk before the file gets its name: after a crash or a power failure, either the old file is
    there or the new one. A link stays one, and what is no file, such as a pipe, is given itself. Temporary files that
    killed processes left for the same `path` are removed.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(Path(folder) / "a.txt") as temporary:
    ...         _ = temporary.write_text("whole")
    ...     print([file.name for file in Path(folder).iterdir()])
    ['a.txt']
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"cannot write {path}: it is a folder; give the name of a file")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: there is no folder {path.parent}; make it first")
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
            if os.name == "nt":  # which does not rename open files
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
    """Give a temporary file for each path, and put them in place, one after the other, when all are written.

    If one cannot be written, none is replaced.
    """
    with ExitStack() as stack:
        # The stack is unwound from its end, which is then the first path.
        temporaries = [stack.enter_context(replacing(path)) for path in reversed(paths)][::-1]
        yield temporaries
        for path, temporary in zip(paths, temporaries, strict=True):
            if temporary.is_file():
                with writing(path), temporary.open("rb+") as file:
                    os.fsync(file.fileno())


def _create_beside(path: Path) -> tuple[int, Path]:
    """Create and lock a temporary file, with the mode that any new file would have."""
    while True:
        temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}.tmp")
        with suppress(FileExistsError):
            handle = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
            try_lock(handle)
            if os.fstat(handle).st_nlink:  # else it was taken for a stale one before it was locked
                return handle, temporary
            os.close(handle)


def remove_stale(path: Path, age: float | None = None) -> None:
    """Remove temporary files and folders of `path` that are older than `age` seconds and held by no living process."""
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
    """Give a temporary folder beside `folder`, which is not there yet, and rename it if all goes well."""
    remove_stale(folder)
    aside = folder.with_name(f".{folder.name}.{os.urandom(4).hex()}.tmp")
    handle = None
    try:
        with writing(folder):
            aside.mkdir()
            if os.name == "posix":
                handle = os.open(aside, os.O_RDONLY)
                try_lock(handle)
            yield aside
            aside.rename(folder)
            sync_folder(folder.parent)
    except OSError as error:
        if str(aside) not in str(error):
            raise
        raise type(error)(str(error).replace(str(aside), str(folder))) from error
    finally:
        if handle is not None:
            os.close(handle)
        shutil.rmtree(aside, ignore_errors=True)


def sync_folder(folder: Path) -> None:
    """Make sure that the names in a folder survive a power failure, where the system can."""
    with suppress(OSError):  # not on Windows, and not on every file system
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


class _Enough(Exception):
    """It could be written."""


def check_writable(path: Path) -> None:
    """Raise now what writing a file would raise later, after long work."""
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(f"cannot write {path}: it is not yours to write")
    with suppress(_Enough), replacing(path):
        raise _Enough

"""Files: read through any compression, and written whole or not at all."""

from __future__ import annotations

import io
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from glob import has_magic
from pathlib import Path, PurePath
from typing import Any, BinaryIO, Literal, TypeAlias
from urllib.parse import urlsplit

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
    """Remove temporary files of `path` that are older than `age` seconds and held by no living process."""
    name = re.compile(rf"\.{re.escape(path.name)}\.[a-z0-9_]{{8}}\.tmp")
    with suppress(OSError):
        for entry in os.scandir(path.parent):
            if name.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with suppress(OSError):
                    _remove_if_stale(Path(entry.path), STALE if age is None else age)


def _remove_if_stale(temporary: Path, age: float) -> None:
    if time.time() - temporary.stat().st_mtime < age:
        return
    handle = os.open(temporary, os.O_RDWR)
    try:
        if try_lock(handle):
            temporary.unlink()
    finally:
        os.close(handle)


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


Codec: TypeAlias = Literal["gzip", "zstd"]
CODECS: dict[str, Codec] = {".gz": "gzip", ".zst": "zstd"}


def kind(place: Path | str) -> tuple[str, Codec | None]:
    """Say what the name of a file or url promises.

    >>> kind(Path("A.jsonl.gz")), kind("https://example.org/a.TXT?b=c.d")
    (('.jsonl', 'gzip'), ('.txt', None))
    """
    name = PurePath((place.name if isinstance(place, Path) else urlsplit(place).path).lower())
    codec = CODECS.get(name.suffix)
    return (PurePath(name.stem).suffix if codec else name.suffix), codec


URL = r"(?:https?|s3|hf|gs|gcs|az|abfs|file|memory)://"
"""How a url begins. Those of the web are read as they are, others through fsspec."""


def urls(url: str) -> list[str]:
    """Give the files that a url with wildcards means, or the url itself."""
    if url.startswith(("http://", "https://")) or not has_magic(url):
        return [url]
    system, path = _fsspec(url).core.url_to_fs(url)
    return [system.unstrip_protocol(found) for found in system.glob(path)]


def size_of(place: Path | str) -> int:
    """Give the size of a file, or 0 if it is not known."""
    if isinstance(place, Path):
        return place.stat().st_size if place.is_file() else 0
    if place.startswith(("http://", "https://")):
        return 0
    try:
        system, path = _fsspec(place).core.url_to_fs(place)
        return int(system.size(path) or 0)
    except OSError as error:
        raise OSError(f"cannot read {place}: {error or type(error).__name__}") from error


def _fsspec(url: str) -> Any:
    try:
        import fsspec  # type: ignore[import-untyped]
    except ImportError:
        raise ImportError(f"{url} is read through fsspec, which is not there: pip install 'batchbpe[remote]'") from None
    return fsspec


def _open(place: Path | str) -> Any:
    """Open a file, or a url if `place` is a string."""
    if isinstance(place, Path):
        return place.open("rb")
    try:
        if not place.startswith(("http://", "https://")):
            return _fsspec(place).open(place, "rb").open()
        from urllib.request import Request, urlopen

        return urlopen(Request(place, headers={"User-Agent": "batchbpe"}), timeout=60)
    except ImportError:
        raise
    except Exception as error:  # http's have no narrower base
        raise OSError(f"cannot read {place}: {error}") from error


def open_stream(
    place: Path | str, codec: Codec | None = None, moved: Callable[[int], object] | None = None
) -> BinaryIO:
    """Open a file, or a url if `place` is a string, as a stream of decompressed bytes.

    `moved` is called with the place in the file, as it is read.

    >>> with open_stream(Path(__file__)) as stream:
    ...     stream.read(8)
    b'\"\"\"Files'
    """
    return io.BufferedReader(_Stream(str(place), _open(place), codec, moved), 1 << 20)


@contextmanager
def decompressed(place: Path | str, codec: Codec | None) -> Iterator[Any]:
    """Give a file that is not compressed, for readers that jump about: the file itself, or a copy for the time being.

    A url that is not compressed is given as an open file.

    >>> with decompressed(Path(__file__), None) as plain:
    ...     plain.name
    'files.py'
    """
    if codec is None and isinstance(place, Path):
        yield place
    elif codec is None and not str(place).startswith(("http://", "https://")):
        with _open(place) as file:
            yield file
    else:
        with tempfile.TemporaryDirectory() as folder:
            plain = Path(folder) / f"plain{kind(place)[0]}"
            with writing(plain), open_stream(place, codec) as source, plain.open("wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
            yield plain


class _Stream(io.RawIOBase):
    """Bytes, decompressed; its errors name the file or url, as those of the codecs and of http do not."""

    def __init__(self, name: str, raw: Any, codec: Codec | None, moved: Callable[[int], object] | None) -> None:
        self._name, self._raw, self._bytes = name, raw, raw
        self._moved = moved if hasattr(raw, "seekable") and raw.seekable() else None
        if codec:
            import pyarrow as pa

            self._bytes = pa.input_stream(raw, compression=codec)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._bytes.read(len(buffer))
            # http.client takes a broken connection for the end; `length` is what was still to come.
            if not data and getattr(self._raw, "length", None):
                raise OSError(f"the connection ended {self._raw.length} bytes early")
        except Exception as error:
            raise OSError(f"cannot read {self._name}: {error}") from error
        buffer[: len(data)] = data
        if self._moved:
            self._moved(self._raw.tell())
        return len(data)

    def close(self) -> None:
        self._bytes.close()
        super().close()

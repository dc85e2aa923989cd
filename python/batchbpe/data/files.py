"""Open files and URLs, and decompress them."""

from __future__ import annotations

import io
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from glob import has_magic
from pathlib import Path, PurePath
from typing import Any, BinaryIO, Literal, TypeAlias

from ..errors import os_error
from ..storage.atomic import writing

Location: TypeAlias = "Path | str"
"""A path, or a URL if it is a string."""
Compression: TypeAlias = Literal["gzip", "zstd"]
COMPRESSIONS: dict[str, Compression] = {".gz": "gzip", ".zst": "zstd"}


def split_suffix(location: Location) -> tuple[str, Compression | None]:
    """Return the suffix of a file or URL in lower case, without that of a compression, and the compression.

    >>> split_suffix(Path("A.jsonl.gz")), split_suffix("https://example.org/a.TXT?b=c.d")
    (('.jsonl', 'gzip'), ('.txt', None))
    """
    # Not with urlsplit, which fails for texts such as "http://[host]".
    path = location.name if isinstance(location, Path) else re.sub(r"^\w+://[^/?#]*|[?#].*", "", location)
    name = PurePath(path.lower())
    compression = COMPRESSIONS.get(name.suffix)
    return (PurePath(name.stem).suffix if compression else name.suffix), compression


URL = r"(?:https?|s3|hf|gs|gcs|az|abfs|file|memory)://"
"""How URLs start. http and https are read directly, other schemes through fsspec."""
PACKAGES = {"s3": "s3fs", "hf": "huggingface_hub", "gs": "gcsfs", "gcs": "gcsfs", "az": "adlfs", "abfs": "adlfs"}
"""Packages with which fsspec reads each scheme."""


def urls(url: str) -> list[str]:
    """Return the URLs that match a URL with wildcards, or the URL itself if it has none."""
    if url.startswith(("http://", "https://")) or not has_magic(url):
        return [url]
    with _reading(url):
        system, path = _fsspec(url).core.url_to_fs(url)
        return [system.unstrip_protocol(found) for found in system.glob(path)]


def size_of(location: Location) -> int:
    """Return the size of a file in bytes, or 0 if it is unknown."""
    if isinstance(location, Path):
        # Not with Path.is_file, which fails if the folder is not accessible.
        return location.stat().st_size if os.path.isfile(location) else 0  # noqa: PTH113
    if location.startswith(("http://", "https://")):
        return 0
    with _reading(location):
        system, path = _fsspec(location).core.url_to_fs(location)
        return int(system.size(path) or 0)


def _fsspec(url: str) -> Any:
    try:
        import fsspec  # type: ignore[import-untyped]
    except ImportError:
        raise ImportError(f"reading {url} requires fsspec; run pip install 'batchbpe[remote]'") from None
    return fsspec


@contextmanager
def _reading(url: str) -> Iterator[None]:
    """Raise an `OSError` that names the URL, whatever the library that reads it raises."""
    try:
        yield
    except ImportError as error:
        package = PACKAGES.get(url.partition("://")[0])
        if package is None or url in str(error):
            raise
        raise ImportError(f"reading {url} requires {package}; run pip install {package}") from error
    except Exception as error:
        problem = getattr(error, "reason", error)  # urllib's errors wrap the one of the socket
        if hasattr(error, "code"):
            problem = f"the server responded {error.code} {problem}"
        elif isinstance(error, FileNotFoundError):
            problem = "not found"
        problem = getattr(problem, "strerror", None) or problem or type(error).__name__
        remedy = "check the URL and your access to it, or download the file first"
        raise OSError(f"cannot read {url}: {' '.join(str(problem).split())}; {remedy}") from error


def _open(location: Location) -> Any:
    """Open a file, or a URL if `location` is a string."""
    if isinstance(location, Path):
        return location.open("rb")
    with _reading(location):
        if not location.startswith(("http://", "https://")):
            return _fsspec(location).open(location, "rb").open()
        from urllib.request import Request, urlopen

        return urlopen(Request(location, headers={"User-Agent": "batchbpe"}), timeout=60)


def open_stream(
    location: Location, compression: Compression | None = None, on_move: Callable[[int], object] | None = None
) -> BinaryIO:
    """Open a file, or a URL if `location` is a string, as a stream of decompressed bytes.

    `on_move` is called with the position in the compressed file whenever some of it has been read.

    >>> with open_stream(Path(__file__)) as stream:
    ...     stream.read(8)
    b'\"\"\"Open '
    """
    return io.BufferedReader(_DecompressedStream(str(location), _open(location), compression, on_move), 1 << 20)


@contextmanager
def decompressed(location: Location, compression: Compression | None) -> Iterator[Any]:
    """Return a file that is not compressed, for readers that seek: the file itself, or a temporary copy.

    A URL that is not compressed is returned as an open file if fsspec can read it.

    >>> with decompressed(Path(__file__), None) as plain:
    ...     plain.name
    'files.py'
    """
    if compression is None and isinstance(location, Path):
        yield location
    elif compression is None and not str(location).startswith(("http://", "https://")):
        with _open(location) as file:
            yield file
    else:
        with tempfile.TemporaryDirectory() as folder:
            plain = Path(folder) / f"plain{split_suffix(location)[0]}"
            with open_stream(location, compression) as source, writing(plain), plain.open("wb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
            yield plain


class _DecompressedStream(io.RawIOBase):
    """Decompressed bytes. Errors name the file or URL, because its bytes may be copied to another file."""

    def __init__(
        self, name: str, raw: Any, compression: Compression | None, on_move: Callable[[int], object] | None
    ) -> None:
        self._name, self._raw, self._bytes, self._compression = name, raw, raw, compression
        self._on_move = on_move if hasattr(raw, "seekable") and raw.seekable() else None
        if compression:
            import pyarrow as pa

            self._bytes = pa.input_stream(raw, compression=compression)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._bytes.read(len(buffer))
            # http.client treats a lost connection as the end; `length` is the number of bytes still expected.
            if not data and getattr(self._raw, "length", None):
                raise ConnectionError(f"the connection was closed {self._raw.length} bytes before the end")
        except Exception as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise os_error(error, f"cannot read {self._name}") from error
            is_damaged = self._compression and type(error) is OSError  # as pyarrow raises it
            problem = f"not a {self._compression} file, or damaged" if is_damaged else error
            raise OSError(f"cannot read {self._name}: {problem}") from error
        buffer[: len(data)] = data
        if self._on_move:
            self._on_move(self._raw.tell())
        return len(data)

    def close(self) -> None:
        self._bytes.close()
        super().close()

"""Files: read through any compression, and written whole or not at all."""

from __future__ import annotations

import io
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import Any, BinaryIO, Literal, TypeAlias
from urllib.parse import urlsplit


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary file beside `path`, and put it in its place if all goes well.

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
    temporary = None
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
        os.close(handle)
        temporary = Path(name)
        yield temporary
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)  # mkstemp's own mode is for secrets
        temporary.replace(path)
    except OSError as error:
        # The system names the temporary file, if any: of no use to anybody.
        raise type(error)(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        if temporary:
            temporary.unlink(missing_ok=True)


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


def open_stream(place: Path | str, codec: Codec | None = None) -> BinaryIO:
    """Open a file, or a url if `place` is a string, as a stream of decompressed bytes.

    >>> with open_stream(Path(__file__)) as stream:
    ...     stream.read(8)
    b'\"\"\"Files'
    """
    raw: Any
    if isinstance(place, Path):
        raw = place.open("rb")
    else:
        from urllib.request import Request, urlopen

        try:
            raw = urlopen(Request(place, headers={"User-Agent": "batchbpe"}), timeout=60)
        except Exception as error:  # http's have no narrower base
            raise OSError(f"cannot read {place}: {error}") from error
    return io.BufferedReader(_Stream(str(place), raw, codec), 1 << 20)


@contextmanager
def decompressed(path: Path, codec: Codec | None) -> Iterator[Path]:
    """Give a file that is not compressed: the file itself, or a copy for the time being, for readers that jump about.

    >>> with decompressed(Path(__file__), None) as plain:
    ...     plain.name
    'files.py'
    """
    if codec is None:
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / path.stem
        with open_stream(path, codec) as source, plain.open("wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
        yield plain


class _Stream(io.RawIOBase):
    """Bytes, decompressed; its errors name the file or url, as those of the codecs and of http do not."""

    def __init__(self, name: str, raw: Any, codec: Codec | None) -> None:
        self._name, self._raw, self._bytes = name, raw, raw
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
        return len(data)

    def close(self) -> None:
        self._bytes.close()
        super().close()

"""`TokenFile`: what the formats of token files have in common. A format is a subclass that both writes and reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from ...errors import DataError, Message, Setting, plural
from .. import SHARD_TOKENS
from ..encoded import Encoded

AnyIds = npt.NDArray[Any]
Part = Literal["", "train", "validation"]
"""Which documents a file contains; all of them if empty."""
OTHER_MODEL = "encode again, or pass the model that the ids were made with"


class TokenFile:
    """Ids in a file, and the files next to it, written by a separate thread. Ids are little-endian.

    A subclass sets the class variables and defines how files are opened, written, closed, recognized and read.
    """

    suffixes: ClassVar[tuple[str, ...]] = (".bin",)
    """Of the file that contains the ids, and of the files next to it."""
    max_vocab: ClassVar[int] = 1 << 32
    """Largest number of ids."""
    max_tokens: ClassVar[int] = (1 << 63) - 1
    """Largest number of ids in a file."""
    max_document: ClassVar[int] = (1 << 63) - 1
    """Largest number of ids in a document."""
    is_sharded: ClassVar[bool] = True
    """Whether there are many files. Otherwise there is one for each part, which grows."""

    @classmethod
    def dtype_for(cls, n_vocab: int) -> np.dtype[Any]:
        """Return the type of ids: uint16 if all ids fit, otherwise uint32.

        >>> TokenFile.dtype_for(65_536), TokenFile.dtype_for(65_537)
        (dtype('uint16'), dtype('uint32'))
        """
        return np.dtype("<u2" if n_vocab <= 1 << 16 else "<u4")

    @classmethod
    def stem(cls, part: Part, number: int) -> str:
        """Return the path of a file in its folder, without its suffix.

        >>> TokenFile.stem("train", 3)
        'train/shard_000003'
        """
        return f"{part}/" * bool(part) + f"shard_{number:06}"

    def __init__(self, paths: Sequence[Path], dtype: np.dtype[Any]) -> None:
        """Create a file. There is a path for each suffix."""
        self.paths, self.path = paths, paths[0]
        self.dtype = dtype
        self.tokens = self.documents = 0
        self.open_tokens = 0
        """Number of ids after the last end of a document."""

    def __enter__(self) -> TokenFile:
        """Open the file."""
        self._thread, self._writing = ThreadPoolExecutor(1), Future[None]()
        self._writing.set_result(None)
        self._open()
        return self

    def add(self, batch: Encoded) -> None:
        """Queue ids for writing."""
        tokens, lengths = self.tokens, batch.lengths()
        lengths[0] += self.open_tokens
        self.tokens += len(batch.ids)
        self.documents += len(batch.ends)
        self.open_tokens = int(lengths[-1])
        if lengths.max() > self.max_document:
            problem = f"a document has more than {plural(self.max_document, 'token')}"
            raise self._too_long(problem, self.max_document)
        if self.tokens > self.max_tokens:
            problem = f"a document makes a shard longer than {plural(self.max_tokens, 'token')}"
            raise self._too_long(problem, self.max_tokens)
        self._writing.result()
        self._writing = self._thread.submit(self._write, batch, tokens)

    def _too_long(self, problem: str, most: int) -> DataError:
        remedy: Message = ("cut it with ", Setting("split_documents", True))
        if most < SHARD_TOKENS:
            remedy = (*remedy, " and ", Setting("shard_tokens", most))
        return DataError(f"{problem}, which the format cannot store", remedy=remedy)

    def __exit__(self, *failure: Any) -> None:
        """Close the file when everything is written."""
        self._thread.shutdown()
        try:
            if not failure[0]:
                self._writing.result()
                self._finish()
        finally:
            self._close()

    def _open(self) -> None:
        raise NotImplementedError

    def _write(self, batch: Encoded, tokens: int) -> None:
        """Write a batch after the first `tokens` ids."""
        raise NotImplementedError

    def _finish(self) -> None:
        """Write what comes after the last batch. A document that has not ended continues in the next file."""

    def _close(self) -> None:
        raise NotImplementedError

    @classmethod
    def recognizes(cls, path: Path) -> bool:
        """Return whether a file is of this format, given that no earlier format recognizes it."""
        return path.name.endswith(cls.suffixes[0])

    @classmethod
    def read(cls, path: Path, n_vocab: int) -> Iterator[AnyIds]:
        """Yield the ids of a file in arrays, which may be mapped into memory."""
        raise NotImplementedError


def companion(path: Path, suffix: str, other: str) -> Path:
    """Return the path with another suffix.

    >>> companion(Path("a/b.npy"), ".npy", ".csv.gz").name
    'b.csv.gz'
    """
    return path.with_name(path.name.removesuffix(suffix) + other)


def map_ids(path: Path, dtype: np.dtype[Any], start: int = 0, expected: int | None = None) -> AnyIds:
    """Map the ids in a file, after its first `start` bytes, into memory. Another number than expected is an error.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "a.bin"
    ...     path.write_bytes(bytes([7, 0, 8, 0]))
    ...     map_ids(path, np.dtype("<u2")).tolist()
    4
    [7, 8]
    """
    size = path.stat().st_size - start
    if expected is not None and size != expected * dtype.itemsize:
        problem = f"{plural(size, 'byte')} of ids, expected {plural(expected, dtype.name + ' value')}"
        problem = f"the file is damaged, or its vocabulary has another size: {problem}"
        raise DataError(problem, where=str(path), remedy=OTHER_MODEL)
    if size % dtype.itemsize:
        problem = (
            f"expected {dtype.name} values of {dtype.itemsize} bytes, got a file of {plural(size + start, 'byte')}"
        )
        raise DataError(problem, where=str(path), remedy=OTHER_MODEL)
    return np.memmap(path, dtype, "r", start) if size else np.zeros(0, dtype)

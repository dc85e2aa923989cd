"""A part of the documents: a sample of them, or no more than so many bytes; the same part whenever it is asked for."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from .arrow_strings import those
from .readers import Documents, Source, TextFile
from .tables import CountsFile


class Luck:
    """Chance that is the same each time, wherever a file lies: it depends on the seed, its name, and the place in it.

    A text file is one document, and many in other folders may have its name: there it depends on the size, too.

    >>> Luck(Source("a/b.parquet", lambda _: []), seed=1).draw(["one", "two", "three"], 0.5).tolist()
    [False, True, False]
    """

    def __init__(self, source: Source, seed: int) -> None:
        """Begin anew."""
        name = zlib.crc32(PurePath(source.name).name.encode())
        self._documents = np.random.default_rng([seed, name])
        self._text = np.random.default_rng([seed, name, source.size])

    def draw(self, documents: Any, share: float) -> npt.NDArray[np.bool_]:
        """Say of the next documents which are among this share of all."""
        if isinstance(documents, TextFile):
            return self._text.random(1) < share
        return self._documents.random(len(documents)) < share


@dataclass
class Selection:
    """Which documents to take, by chance or until there are enough.

    >>> source = Source("", lambda _: [["one", "two", "three"]])
    >>> list(Selection(limit_bytes=4).of(source))
    [['one', 'two']]
    """

    sample: float = 1.0
    """The share of documents to take."""
    seed: int = 0
    limit_bytes: int | None = None
    """Take documents until they have so many bytes: none is cut, but a text file."""

    def __post_init__(self) -> None:
        """Check the values."""
        if not 0 < self.sample <= 1:
            raise ValueError(f"sample={self.sample}: give a share above 0, and 1 at most")
        if self.limit_bytes is not None and self.limit_bytes < 1:
            raise ValueError(f"limit_bytes={self.limit_bytes}: give 1 or more")
        self.left = self.limit_bytes

    @property
    def is_over(self) -> bool:
        """Whether no more documents are to be taken."""
        return self.left is not None and self.left <= 0

    def of(self, source: Source) -> Iterator[Documents]:
        """Give the documents of a source that are selected. What is left out of a batch leaves an empty one."""
        if self.is_over:
            return
        if self.sample == 1 and self.limit_bytes is None:
            yield from source
            return
        luck = Luck(source, self.seed)
        for documents in source:
            if isinstance(documents, CountsFile | dict):
                raise ValueError(f"{source.name}: chunk counts cannot be sampled or cut; give the documents")
            yield self._limited(self._sampled(documents, luck))
            if self.is_over:
                return

    def _sampled(self, documents: Any, luck: Luck) -> Any:
        if self.sample == 1:
            return documents
        taken = luck.draw(documents, self.sample)
        return those(documents, taken) if not isinstance(documents, TextFile) else documents if taken[0] else []

    def _limited(self, documents: Any) -> Any:
        if self.left is None:
            return documents
        if isinstance(documents, TextFile):
            left = self.left  # the same whenever it is opened
            return replace(documents, open=lambda: self._cut(documents.open(), left))
        if isinstance(documents, list):
            sizes = np.array([len(text.encode("utf-8", "surrogatepass")) for text in documents], np.int64)
        else:
            from .arrow_strings import bytes_and_offsets  # which imports pyarrow

            sizes = np.diff(bytes_and_offsets(documents)[1])
        sums = np.cumsum(sizes)
        n = min(len(sums), int(np.searchsorted(sums, self.left)) + 1)
        self.left -= int(sums[n - 1]) if n else 0
        return documents[:n]

    def _cut(self, stream: BinaryIO, left: int) -> BinaryIO:
        self.left = left
        return io.BufferedReader(_Cut(stream, self), 1 << 20)


class _Cut(io.RawIOBase):
    """As much of a text as is left to take, up to the end of a character."""

    def __init__(self, stream: BinaryIO, selection: Selection) -> None:
        self._stream, self._selection = stream, selection

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self._selection.left or 0
        data = self._stream.read(min(len(buffer), left))
        if len(data) == left:
            data = _whole(data)
            self._selection.left = 0
        else:
            self._selection.left = left - len(data)
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._stream.close()
        super().close()


def _whole(data: bytes) -> bytes:
    """Leave out the beginning of a character that was cut.

    >>> _whole("naïve".encode()[:3]), _whole(b"whole")
    (b'na', b'whole')
    """
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 != 0x80:
            needed = 1 if byte < 0x80 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data[:-back] if needed > back else data
    return data

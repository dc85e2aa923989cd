"""Select documents: a random sample, or the first ones up to a number of bytes. Equal options select the same ones."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePath
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from ..errors import DataError, Setting
from .documents import Counts, Documents, TextFile
from .options import Sampling
from .source import Source


class DocumentSampler:
    """Draws documents of one source at random, reproducibly and independently of the folder of the file.

    The draw depends on the seed, the file name and the position in the file. A whole text file is one document, and
    many may have the same name, so for these it depends on the size as well.

    >>> from batchbpe.data.documents import Texts
    >>> sampler = DocumentSampler(Source("a/b.parquet", lambda _: []), seed=1)
    >>> sampler.draw(Texts(["one", "two", "three"]), 0.5).tolist()
    [False, True, False]
    """

    def __init__(self, source: Source, seed: int) -> None:
        """Start at the beginning of a source."""
        name = zlib.crc32(PurePath(source.name).name.encode())
        self._documents = np.random.default_rng([seed, name])
        self._text_file = np.random.default_rng([seed, name, source.size])

    def draw(self, documents: Documents, fraction: float) -> npt.NDArray[np.bool_]:
        """Return a mask of the next documents, in which each is true with probability `fraction`."""
        return self.random(documents) < fraction

    def random(self, documents: Documents) -> npt.NDArray[np.float64]:
        """Return a random number between 0 and 1 for each of the next documents."""
        if isinstance(documents, TextFile):
            return self._text_file.random(1)
        return self._documents.random(len(documents))

    def start(self) -> float:
        """Return a random number for a text file that is sampled block by block."""
        return float(self._text_file.random())


class Selection:
    """Selects documents from one source after the other, and counts the bytes that are left.

    >>> from batchbpe.data.documents import Texts
    >>> source = Source("", lambda _: [Texts(["one", "two", "three"])])
    >>> [batch.strings for batch in Selection(Sampling(limit_bytes=4)).of(source)]
    [['one', 'two']]
    """

    def __init__(self, sampling: Sampling) -> None:
        """Start with nothing selected."""
        self.sampling, self.bytes_left = sampling, sampling.limit_bytes

    @property
    def is_exhausted(self) -> bool:
        """Whether `limit_bytes` has been reached."""
        return self.bytes_left is not None and self.bytes_left <= 0

    def of(self, source: Source) -> Iterator[Documents]:
        """Yield the selected documents of a source. A batch is yielded even if none of its documents is selected."""
        if self.is_exhausted:
            return
        if self.sampling.is_everything:
            yield from source
            return
        sample, sampler = self.sampling.sample, DocumentSampler(source, self.sampling.seed)
        for documents in source:
            if isinstance(documents, Counts):
                setting = Setting("sample" if sample < 1 else "limit_bytes")
                raise DataError((setting, " cannot be used with chunk counts"), remedy="pass documents")
            if sample < 1:
                documents = documents.select(sampler.draw(documents, sample))
            yield self._limit(documents)
            if self.is_exhausted:
                return

    def _limit(self, documents: Documents) -> Documents:
        if self.bytes_left is None:
            return documents
        if isinstance(documents, TextFile):
            left = self.bytes_left  # the same each time the file is opened
            return replace(documents, open=lambda: self._cut(documents.open(), left))
        sums = np.cumsum(documents.sizes())
        n = min(len(sums), int(np.searchsorted(sums, self.bytes_left)) + 1)
        self.bytes_left -= int(sums[n - 1]) if n else 0
        return documents[:n]

    def _cut(self, stream: BinaryIO, left: int) -> BinaryIO:
        self.bytes_left = left
        return io.BufferedReader(_CutStream(stream, self), 1 << 20)


class _CutStream(io.RawIOBase):
    """A stream that ends when the limit is reached, after a whole character."""

    def __init__(self, stream: BinaryIO, selection: Selection) -> None:
        self._stream, self._selection = stream, selection

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self._selection.bytes_left or 0
        data = self._stream.read(min(len(buffer), left))
        if len(data) == left:
            data = _whole_characters(data)
            self._selection.bytes_left = 0
        else:
            self._selection.bytes_left = left - len(data)
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._stream.close()
        super().close()


def _whole_characters(data: bytes) -> bytes:
    """Remove an incomplete character at the end.

    >>> _whole_characters("naïve".encode()[:3]), _whole_characters(b"whole")
    (b'na', b'whole')
    """
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 != 0x80:
            needed = 1 if byte < 0x80 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data[:-back] if needed > back else data
    return data

"""`Documents`: a batch of documents, whatever it was read from.

Everything that consumes data receives `Documents` from a `Source`. There are four kinds: strings, an arrow array, a
text file that is streamed, and chunk counts, whose documents have already been split and counted.
"""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import numpy.typing as npt

from ..errors import DataError, Setting
from .options import MAX_DOCUMENT_BYTES

if TYPE_CHECKING:
    import pyarrow as pa


UseBlock = Callable[[bytes, int, bool], int]
"""Receives a block of a text, its offset, and whether it is the last one. Returns how many bytes it has used."""


class Documents(ABC):
    """A batch of documents. `documents[start:stop]` is a smaller batch."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of documents."""

    @abstractmethod
    def __getitem__(self, rows: slice) -> Documents:
        """Return some consecutive documents."""

    @abstractmethod
    def sizes(self) -> npt.NDArray[np.int64]:
        """Return the number of bytes of each document in UTF-8."""

    @abstractmethod
    def select(self, mask: npt.NDArray[np.bool_]) -> Documents:
        """Return the documents for which `mask` is true."""

    @abstractmethod
    def has_longer_than(self, size: int) -> bool:
        """Return whether a document has more than about `size` bytes; cheap, so strings are measured in characters."""


@dataclass(frozen=True)
class Texts(Documents):
    """Documents as Python strings.

    >>> documents = Texts(["to be", "or not", "é"])
    >>> documents.sizes().tolist(), documents.select(np.array([True, False, True])).strings
    ([5, 6, 2], ['to be', 'é'])
    """

    strings: list[str]

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self.strings)

    def __getitem__(self, rows: slice) -> Texts:
        """Return some consecutive documents."""
        return Texts(self.strings[rows])

    def sizes(self) -> npt.NDArray[np.int64]:
        """Return the number of bytes of each document in UTF-8."""
        return np.array([len(text.encode("utf-8", "surrogatepass")) for text in self.strings], np.int64)

    def select(self, mask: npt.NDArray[np.bool_]) -> Texts:
        """Return the documents for which `mask` is true."""
        return Texts([text for text, is_selected in zip(self.strings, mask, strict=True) if is_selected])

    def has_longer_than(self, size: int) -> bool:
        """Return whether a document has more than `size` characters."""
        return max(map(len, self.strings), default=0) > size


@dataclass(frozen=True)
class ArrowTexts(Documents):
    """Documents as a pyarrow string or large_string array without nulls, which may be a slice.

    >>> import pyarrow as pa
    >>> ArrowTexts(pa.array(["to be", "or not"]))[1:].array.to_pylist()
    ['or not']
    """

    array: pa.Array[Any]

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self.array)

    def __getitem__(self, rows: slice) -> ArrowTexts:
        """Return some consecutive documents."""
        return ArrowTexts(self.array[rows])

    def buffers(self) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
        """Return the bytes of all documents as a view, and the offset of each document in them."""
        from ..util.arrow import bytes_and_offsets  # imports pyarrow

        return bytes_and_offsets(self.array)

    def sizes(self) -> npt.NDArray[np.int64]:
        """Return the number of bytes of each document."""
        return np.diff(self.buffers()[1])

    def select(self, mask: npt.NDArray[np.bool_]) -> ArrowTexts:
        """Return the documents for which `mask` is true."""
        from ..util.arrow import mask_array  # imports pyarrow

        return ArrowTexts(self.array.filter(mask_array(mask)))

    def has_longer_than(self, size: int) -> bool:
        """Return whether a document is longer than `size` bytes."""
        return bool(self.sizes().max(initial=0) > size)


@dataclass(frozen=True)
class TextFile(Documents):
    """One text file or URL: a single document, which `open` returns as a stream of decompressed bytes.

    >>> file = TextFile("hello.txt", lambda: io.BytesIO(b"hello"))
    >>> with file.open() as stream:
    ...     stream.read()
    b'hello'
    """

    name: str
    open: Callable[[], BinaryIO]
    opens_once: bool = False
    """Whether the stream can be opened only once, such as standard input."""
    max_document_bytes: int = MAX_DOCUMENT_BYTES
    """Maximum number of bytes to keep in memory if the text cannot be cut."""
    select_blocks: Callable[[UseBlock], UseBlock] = lambda use: use
    """Wraps the function that `read_blocks` passes the text to, for example to sample its blocks."""

    def __len__(self) -> int:
        """Return 1."""
        return 1

    def __getitem__(self, rows: slice) -> Documents:
        """Return the file itself, or no documents."""
        return self if range(1)[rows] else Texts([])

    def sizes(self) -> npt.NDArray[np.int64]:
        """Read the file and return its size."""
        with self.open() as stream:
            return np.array([sum(map(len, iter(lambda: stream.read(1 << 20), b"")))], np.int64)

    def select(self, mask: npt.NDArray[np.bool_]) -> Documents:
        """Return the file itself, or no documents."""
        return self if mask[0] else Texts([])

    def has_longer_than(self, size: int) -> bool:
        """Return True: the size is not known before the file has been read."""
        return True

    def in_memory(self) -> TextFile:
        """Return the same document with a stream that can be opened again; one larger than the limit is an error."""
        with self.open() as stream:
            content = stream.read(self.max_document_bytes + 1)
        if len(content) > self.max_document_bytes:
            raise too_large("the text is too long", self.max_document_bytes)
        return replace(self, open=lambda: io.BytesIO(content), opens_once=False)


@dataclass(frozen=True)
class Counts(Documents):
    """Chunk counts: a file or folder of saved counts, or a mapping from chunk to count. They can only be added up.

    >>> len(Counts({"to": 2, " be": 1}))
    0
    """

    source: Path | Mapping[Any, int]

    def __len__(self) -> int:
        """Return 0: the documents are not known."""
        return 0

    def __getitem__(self, rows: slice) -> Documents:
        """Raise an error."""
        raise self._error()

    def sizes(self) -> npt.NDArray[np.int64]:
        """Raise an error."""
        raise self._error()

    def select(self, mask: npt.NDArray[np.bool_]) -> Documents:
        """Raise an error."""
        raise self._error()

    def has_longer_than(self, size: int) -> bool:
        """Return False: there are no documents."""
        return False

    def _error(self) -> DataError:
        file = str(self.source) if isinstance(self.source, Path) else ""
        if type(self.source) is dict:
            reason = "a dict is read as chunk counts, which have no documents to encode"
            return DataError(reason, remedy="pass the texts as a list")
        return DataError("chunk counts have no documents to encode", remedy="pass documents", file=file)


def invalid_utf8(problem: str, *, where: str = "") -> DataError:
    """Return the error for a document that is not valid UTF-8.

    >>> print(invalid_utf8("invalid UTF-8 at byte 1 of the text", where="row 11"))
    row 11: invalid UTF-8 at byte 1 of the text; errors="replace" replaces it with U+FFFD
    """
    return DataError(problem, where=where, remedy=(Setting("errors", "replace"), " replaces it with U+FFFD"))


def too_large(problem: str, max_document_bytes: int, *, where: str = "") -> DataError:
    """Return the error for a document that exceeds `max_document_bytes`.

    >>> print(too_large("row 11 has 5 bytes", 4))
    row 11 has 5 bytes, more than max_document_bytes=4; raise the limit or split the document
    """
    limit = Setting("max_document_bytes", max_document_bytes)
    return DataError((f"{problem}, more than ", limit), where=where, remedy="raise the limit or split the document")

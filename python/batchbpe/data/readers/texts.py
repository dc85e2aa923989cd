"""Text files: each is one document, or is split into documents at line ends, blank lines or a separator."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, TypeAlias

import numpy as np
import numpy.typing as npt

from ...errors import DataError
from ..documents import ArrowTexts, Documents, TextFile, invalid_utf8, too_large
from ..options import ReadOptions

Positions: TypeAlias = npt.NDArray[np.int64]
END_OF_TEXT = {"line": b"\n", "blank-line": b"\n\n"}
"""Appended at the end of the text so that the last document is complete."""
FIRST_BLANK_LINES = re.compile(rb"[ \t\r\n]*\n")
BLANK_LINES = re.compile(rb"\n[ \t\r\n]*\n")
"""The end of a line, and the blank lines that follow it."""


def text_documents(file: TextFile, options: ReadOptions) -> Iterable[Documents]:
    """Return the documents of a text file, in batches."""
    return [file] if options.document == "file" else _opened(file, options)


def _opened(file: TextFile, options: ReadOptions) -> Iterator[Documents]:
    with file.open() as stream:
        yield from split_documents(stream, options)


def split_documents(stream: BinaryIO, options: ReadOptions) -> Iterator[ArrowTexts]:
    """Yield the documents of a text in batches. Empty documents are left out.

    The text is read in blocks of fixed size, so that equal texts give equal batches, which resumed jobs count.

    >>> import io
    >>> stream = io.BytesIO(b"to be\\n\\nor not\\n")
    >>> [batch.array.to_pylist() for batch in split_documents(stream, ReadOptions(document="line"))]
    [['to be', 'or not']]
    """
    from ..untrusted.arrow_strings import cuts

    decoder = codecs.getincrementaldecoder("utf-8")("replace") if options.errors == "replace" else None
    size, limit = options.BATCH_CHARACTERS, options.max_document_bytes
    most = limit + max(size, len(options.document.encode()))  # a document, and an incomplete separator
    offset, rest, last = 0, b"", False
    while not last:
        # Doubling the unused rest keeps reading linear, even if documents are long.
        block = stream.read(max(size, min(len(rest), most + 1 - len(rest))))
        last = not block
        rest += decoder.decode(block, last).encode() if decoder else block
        if last:
            rest += END_OF_TEXT.get(options.document, b"")
        bounds, used = _bounds(rest, options.document, last)
        usable, error = _check(rest, offset, bounds, used, limit)
        documents = _documents(rest, bounds[: 2 * usable])
        for first, stop in cuts(documents.sizes(), options.BATCH_DOCUMENTS):
            yield documents[first:stop]
        if error:
            raise error
        offset, rest = offset + used, rest[used:]
        if len(rest) > most:
            raise too_large(f"the document at byte {offset} is too long", limit)


def _bounds(text: bytes, document: str, last: bool) -> tuple[Positions, int]:
    """Return the start and end of each document that is complete, and how many bytes they and the separators take."""
    starts, ends = _separators(text, document)
    bounds = np.zeros(2 * len(starts) + 2, np.int64)
    bounds[1:-1:2], bounds[2::2], bounds[-1] = starts, ends, len(text)
    if document in END_OF_TEXT:  # lines may end with "\r\n"
        stops = bounds[1::2]
        stops[stops > 0] -= np.frombuffer(text, np.uint8)[stops[stops > 0] - 1] == ord("\r")
    return (bounds, len(text)) if last else (bounds[:-2], int(bounds[-2]))


def _separators(text: bytes, document: str) -> tuple[Positions, Positions]:
    """Return the start and the end of each separator."""
    if document == "blank-line":
        first = FIRST_BLANK_LINES.match(text)
        start = first.end() if first else 0
        spans = np.array([(0, start), *(found.span() for found in BLANK_LINES.finditer(text, start))], np.int64)
        return spans[:, 0], spans[:, 1]
    separator = b"\n" if document == "line" else document.encode()
    if len(separator) == 1:
        starts = np.flatnonzero(np.frombuffer(text, np.uint8) == separator[0])
    else:
        starts = np.array([found.start() for found in re.finditer(re.escape(separator), text)], np.int64)
    return starts, starts + len(separator)


def _check(
    text: bytes, offset: int, bounds: Positions, used: int, max_document_bytes: int
) -> tuple[int, DataError | None]:
    """Return how many documents come before the first that is invalid UTF-8 or too large, and the error about it."""
    from ..untrusted.arrow_strings import first_invalid

    starts, stops = bounds[::2], bounds[1::2]
    usable, error = len(starts), None
    invalid = first_invalid(_strings(text, np.array([0, used], np.int64)))
    if invalid:
        usable = int(np.searchsorted(stops, invalid[1], "right"))
        error = invalid_utf8(f"the text is invalid UTF-8 at byte {offset + invalid[1]}")
    sizes = (stops - starts)[: usable + 1]
    if sizes.max(initial=0) > max_document_bytes:
        usable = int(np.argmax(sizes > max_document_bytes))
        problem = f"the document at byte {offset + starts[usable]} has {sizes[usable]} bytes"
        error = too_large(problem, max_document_bytes)
    return usable, error


def _documents(text: bytes, bounds: Positions) -> ArrowTexts:
    """Return the documents that are not empty, without what is between them."""
    from ...util.arrow import mask_array

    sizes = np.diff(bounds)
    sizes[1::2] = 0  # of separators
    return ArrowTexts(_strings(text, bounds).filter(mask_array(sizes > 0)))


def _strings(text: bytes, bounds: Positions) -> Any:
    """Return the strings between some positions in a text."""
    import pyarrow as pa

    buffers = [None, pa.py_buffer(bounds.data), pa.py_buffer(text)]
    return pa.Array.from_buffers(pa.large_string(), max(0, len(bounds) - 1), buffers)

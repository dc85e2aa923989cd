"""Which documents are for validation: chosen by a hash of their text.

The choice depends on nothing else: not on the order of documents, their files, or the tokenizer. Equal documents are
in the same part, and a larger fraction includes the documents of a smaller one.
"""

from __future__ import annotations

import zlib
from itertools import pairwise
from numbers import Real

import numpy as np
import numpy.typing as npt

from ..data.documents import ArrowTexts, Documents, TextFile, Texts
from ..data.text_files import read_blocks
from ..errors import ArgumentError, ArgumentTypeError
from ..util.surrogates import Errors, combine_documents

Mask = npt.NDArray[np.bool_]


def check_fraction(validation: float | None) -> None:
    """Raise unless a fraction is between 0 and 1, or None.

    >>> check_fraction(1)
    Traceback (most recent call last):
    ...
    batchbpe.errors.ArgumentError: validation must be greater than 0 and less than 1, got 1
    """
    if validation is None:
        return
    if not isinstance(validation, Real) or isinstance(validation, bool):
        raise ArgumentTypeError("validation", validation, "must be a number")
    if not 0 < validation < 1:
        raise ArgumentError("validation", validation, "must be greater than 0 and less than 1")


def is_validation(documents: Documents, fraction: float, errors: Errors = "strict") -> Mask:
    """Return whether each document is for validation: whether `zlib.crc32` of its UTF-8 is below fraction · 2³².

    >>> is_validation(Texts(["that", "is", "that"]), 0.5).tolist()
    [False, True, False]
    """
    return np.array(_hashes(documents, errors), np.float64) < fraction * 2**32


def _hashes(documents: Documents, errors: Errors) -> list[int]:
    match documents:
        case Texts(strings):
            try:
                return [zlib.crc32(text.encode()) for text in strings]
            except UnicodeEncodeError:
                return [zlib.crc32(text.encode()) for text in combine_documents(strings, errors)]
        case ArrowTexts():
            data, offsets = documents.buffers()
            view = memoryview(data)  # type: ignore[arg-type]
            return [zlib.crc32(view[start:end]) for start, end in pairwise(offsets.tolist())]
        case TextFile():
            return [_hash_of_file(documents, errors)]
        case _:
            return []


def _hash_of_file(file: TextFile, errors: Errors) -> int:
    found = 0

    def use(block: bytes, _: int, __: bool) -> int:
        nonlocal found
        found = zlib.crc32(block, found)
        return len(block)

    for _ in read_blocks(file, errors, use):
        pass
    return found

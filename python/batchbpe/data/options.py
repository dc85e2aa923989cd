"""How documents are read, `ReadOptions`, and which of them are used, `Sampling`.

Functions that read documents have these options as keyword arguments, typed as `Reading`, and pass them on as one
value, `corpus.Corpus`. The tests compare `Reading` and the command line with the fields.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from numbers import Real
from typing import ClassVar, TypedDict

from ..arguments import check_string
from ..errors import ArgumentError, ArgumentTypeError, Setting
from ..options import check_numbers, option, picked
from ..util.surrogates import Errors, check_errors

MAX_DOCUMENT_BYTES = 1 << 30
NAMES = {
    "file": "file", "line": "line", "newline": "line", "blank-line": "blank-line", "paragraph": "blank-line"
}  # fmt: skip
"""Words that are probably not separators, and what is probably meant."""


@dataclass(frozen=True)
class ReadOptions:
    """How documents are read.

    >>> ReadOptions(max_document_bytes=0)
    Traceback (most recent call last):
    ...
    batchbpe.errors.ArgumentError: max_document_bytes must be at least 1, got 0
    """

    text_column: str = option("text", "Column of tables, or field of jsonl files, that contains the text.")
    jsonl_field: str | None = option(
        None, "Field of jsonl files that contains the text, if not `text_column`. Standard input is then jsonl."
    )
    document: str = option("file", 'Document in text files: "file", "line", "blank-line" (paragraphs), or a separator.')
    errors: Errors = option("strict", '"strict", or "replace" to replace invalid UTF-8 with U+FFFD.')
    max_document_bytes: int = option(
        MAX_DOCUMENT_BYTES, "Largest document, or part of a whole text file that cannot be cut.", least=1
    )

    BATCH_CHARACTERS: ClassVar[int] = 2_000_000
    BATCH_DOCUMENTS: ClassVar[int] = 4096
    """A batch contains at most this many documents, and about this many characters."""

    def __post_init__(self) -> None:
        """Check the values."""
        check_string("text_column", self.text_column)
        if self.jsonl_field is not None:
            check_string("jsonl_field", self.jsonl_field)
        check_document(self.document)
        check_errors(self.errors)
        check_numbers(self)


def check_document(document: str) -> None:
    r"""Raise unless `document` is "file", "line", "blank-line" or a separator. Likely mistakes are errors.

    >>> check_document("lines")
    Traceback (most recent call last):
    ...
    batchbpe.errors.ArgumentError: document must be "file", "line", "blank-line" or a separator, got 'lines'; use document="line"
    >>> check_document(r"\n---\n")
    Traceback (most recent call last):
    ...
    batchbpe.errors.ArgumentError: document must not contain escaped characters, got '\\n---\\n'; pass a line feed, which shells write as $'\n'
    """  # noqa: E501  the last line is an error message
    check_string("document", document)
    if document in ("file", "line", "blank-line"):
        return
    if not document:
        raise ArgumentError("document", document, "must not be empty", remedy=("use ", Setting("document", "file")))
    if re.search("[\ud800-\udfff]", document):
        reason = "must not contain surrogates"
        raise ArgumentError("document", document, reason, remedy="pass characters, encoded in UTF-8 in a shell")
    if re.search(r"\\[nrt](?![a-z])", document):
        remedy = r"pass a line feed, which shells write as $'\n'"
        raise ArgumentError("document", document, "must not contain escaped characters", remedy=remedy)
    similar = get_close_matches(document.lower(), NAMES, 1, 0.8) if re.fullmatch("[A-Za-z_ -]+", document) else []
    if similar:
        reason = 'must be "file", "line", "blank-line" or a separator'
        raise ArgumentError("document", document, reason, remedy=("use ", Setting("document", NAMES[similar[0]])))


@dataclass(frozen=True)
class Sampling:
    """Which documents to use.

    >>> Sampling(sample=2)
    Traceback (most recent call last):
    ...
    batchbpe.errors.ArgumentError: sample must be greater than 0 and at most 1, got 2
    """

    sample: float = option(1.0, "Fraction of the documents to use, chosen by `seed`.")
    seed: int = option(0, "Random seed for the sample.", least=0)
    limit_bytes: int | None = option(
        None, "Stop after this many bytes of text. Only a whole text file is cut; other documents are not.", least=1
    )

    def __post_init__(self) -> None:
        """Check the values."""
        if not isinstance(self.sample, Real):
            raise ArgumentTypeError("sample", self.sample, "must be a number")
        if not 0 < self.sample <= 1:
            raise ArgumentError("sample", self.sample, "must be greater than 0 and at most 1")
        check_numbers(self)

    @property
    def is_everything(self) -> bool:
        """Whether all documents are used."""
        return self.sample == 1 and self.limit_bytes is None


class ReadKeywords(TypedDict, total=False):
    """The fields of `ReadOptions` as keyword arguments."""

    text_column: str
    jsonl_field: str | None
    document: str
    errors: Errors
    max_document_bytes: int


class Reading(ReadKeywords, total=False):
    """The fields of `ReadOptions` and `Sampling` as keyword arguments."""

    sample: float
    seed: int
    limit_bytes: int | None


def from_keywords(reading: Reading) -> tuple[ReadOptions, Sampling]:
    """Return the options that were passed as keyword arguments, whose names `accepting` has checked.

    >>> from_keywords({"sample": 0.5})[1]
    Sampling(sample=0.5, seed=0, limit_bytes=None)
    """
    return picked(ReadOptions, reading), picked(Sampling, reading)


def default_max_document_bytes(max_memory: int | None) -> int:
    """Return the default of `max_document_bytes` for a job that may use `max_memory` bytes.

    >>> default_max_document_bytes(None), default_max_document_bytes(1 << 30)
    (1073741824, 67108864)
    """
    return MAX_DOCUMENT_BYTES if max_memory is None else max(1, min(MAX_DOCUMENT_BYTES, max_memory // 16))

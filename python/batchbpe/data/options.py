"""`ReadOptions`: how documents are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..arguments import check_integer, check_string
from ..util.surrogates import Errors, check_errors

MAX_DOCUMENT_BYTES = 1 << 30


@dataclass(frozen=True)
class ReadOptions:
    """How documents are read. Public functions have a parameter for each field.

    >>> ReadOptions(max_document_bytes=0)
    Traceback (most recent call last):
    ...
    batchbpe.errors.ArgumentError: max_document_bytes must be at least 1, got 0
    """

    text_column: str = "text"
    """Column of tables, or field of jsonl files, that contains the text."""
    jsonl_field: str | None = None
    """Field of jsonl files that contains the text, if not `text_column`. Standard input is then jsonl."""
    errors: Errors = "strict"
    """What to do with invalid UTF-8: "strict" raises an error, "replace" replaces it with U+FFFD."""
    max_document_bytes: int = MAX_DOCUMENT_BYTES
    """Largest row, line, or part of a text file that cannot be cut."""

    BATCH_CHARACTERS: ClassVar[int] = 2_000_000
    BATCH_DOCUMENTS: ClassVar[int] = 4096
    """A batch contains at most this many documents, and about this many characters."""

    def __post_init__(self) -> None:
        """Check the values."""
        check_string("text_column", self.text_column)
        if self.jsonl_field is not None:
            check_string("jsonl_field", self.jsonl_field)
        check_errors(self.errors)
        check_integer("max_document_bytes", self.max_document_bytes, least=1)


def default_max_document_bytes(max_memory: int | None) -> int:
    """Return the default of `max_document_bytes` for a job that may use `max_memory` bytes.

    >>> default_max_document_bytes(None), default_max_document_bytes(1 << 30)
    (1073741824, 67108864)
    """
    return MAX_DOCUMENT_BYTES if max_memory is None else max(1, min(MAX_DOCUMENT_BYTES, max_memory // 16))

"""`ReadOptions`: how files are read."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import ArgumentError
from .limits import MAX_DOCUMENT_BYTES


@dataclass(frozen=True)
class ReadOptions:
    """How files are read.

    >>> ReadOptions(max_document_bytes=0)
    Traceback (most recent call last):
    ...
    batchbpe.errors.ArgumentError: max_document_bytes must be at least 1, got 0
    """

    text_column: str = "text"
    """Column of a table, or field of a jsonl file, that holds the text."""
    errors: str = "strict"
    """What to do with invalid UTF-8: "strict" raises an error, "replace" replaces it with U+FFFD."""
    max_document_bytes: int = MAX_DOCUMENT_BYTES
    """Largest row, line, or part of a text file that cannot be cut."""

    def __post_init__(self) -> None:
        """Check the values."""
        if self.max_document_bytes < 1:
            raise ArgumentError("max_document_bytes", self.max_document_bytes, "must be at least 1")
        if self.errors not in ("strict", "replace"):
            raise ArgumentError("errors", self.errors, 'must be "strict" or "replace"')


def default_max_document_bytes(max_memory: int | None) -> int:
    """Return the default of `max_document_bytes` for a job that may use `max_memory` bytes.

    >>> default_max_document_bytes(None), default_max_document_bytes(1 << 30)
    (1073741824, 67108864)
    """
    return MAX_DOCUMENT_BYTES if max_memory is None else max(1, min(MAX_DOCUMENT_BYTES, max_memory // 16))

"""Errors about metadata that is malformed, or that claims too much."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager

from ...errors import DataError, Setting, UserError


class EndOfData(Exception):
    """The data ends before the struct does."""


@contextmanager
def parsing(part: str) -> Iterator[None]:
    """Turn the errors that malformed metadata causes into one that names the part of the file.

    >>> with parsing("the footer"):
    ...     struct.unpack("<I", b"abc")
    Traceback (most recent call last):
    ...
    batchbpe.errors.DataError: the footer is malformed: unpack requires a buffer of 4 bytes
    """
    try:
        yield
    except UserError:
        raise
    except EndOfData:
        raise DataError(f"{part} is malformed: the data ends early") from None
    except KeyError as error:
        raise DataError(f"{part} is malformed: field {error} is missing") from error
    except (struct.error, ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise DataError(f"{part} is malformed: {error}") from error


def too_many_bytes(problem: str, limit: int, max_document_bytes: int, what: str) -> DataError:
    """Return the error for a part of a file that exceeds a limit, which follows from `max_document_bytes`."""
    setting = Setting("max_document_bytes", max_document_bytes)
    reason = (f"{problem}, more than the {limit} that ", setting, " allows")
    return DataError(reason, remedy=f"raise the limit or write smaller {what}")

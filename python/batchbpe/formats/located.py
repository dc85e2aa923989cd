"""Name the file in errors about its content."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import ArgumentError, DataError, UserError


@contextmanager
def locate_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Put the file name in front of the place that an error names.

    >>> with locate_errors("a.model"):
    ...     raise DataError("must be an array, got 3", where='field "merges"')
    Traceback (most recent call last):
    ...
    batchbpe.errors.DataError: a.model: field "merges": must be an array, got 3
    """
    try:
        yield
    except UserError as error:
        error.where = f"{os.fspath(path)}: {error.where}" if error.where else os.fspath(path)
        raise
    except ValueError as error:  # raised by the core
        raise DataError(str(error), where=os.fspath(path)) from None


def check_path(path: str | os.PathLike[str]) -> None:
    """Raise if a path is empty, which `Path` would take for the current directory.

    >>> check_path("")
    Traceback (most recent call last):
    ...
    batchbpe.errors.ArgumentError: path must not be empty, got ''
    """
    if not os.fspath(path):
        raise ArgumentError("path", path, "must not be empty")

"""Errors about a model file: name the file, or suggest another one if it does not exist."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..arguments import check_path
from ..errors import ArgumentError, DataError, UserError, opening, short
from ..util.similar import similar_names

MODEL_SUFFIXES = (".model", ".tiktoken", ".json")


@contextmanager
def locate_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Prefix the location in an error with the file name. Errors about an argument of `Model` are about a field.

    >>> with locate_errors("a.model"):
    ...     raise DataError("must be an array, got 3", where='field "merges"')
    Traceback (most recent call last):
    ...
    batchbpe.errors.DataError: a.model, field "merges": must be an array, got 3
    """
    try:
        with opening(path):
            yield
    except UserError as error:
        if error.parameter:
            reason = (error.reason,) if isinstance(error.reason, str) else error.reason
            reason = (*reason, f", got {short(error.value)}")
            where = f'{os.fspath(path)}, field "{error.parameter}"'
            raise DataError(reason, where=where, remedy=error.remedy) from None
        error.locate(os.fspath(path))
        raise
    except ValueError as error:  # raised by the core
        raise DataError(str(error), where=os.fspath(path)) from None


def line_error(error: ValueError) -> DataError:
    """Convert an error of the core about a file that it has parsed. Its message may start with the line."""
    where, separator, reason = str(error).partition(": ")
    is_located = separator and where.startswith("line ")
    return DataError(reason, where=where) if is_located else DataError(str(error))


def check_version(version: object, *supported: int) -> None:
    """Raise unless a file has one of the supported versions, which are in ascending order."""
    if type(version) is not int or version not in supported:
        expected = f"from {supported[0]} to {supported[-1]}" if len(supported) > 1 else f"{supported[0]}"
        remedy = "upgrade batchbpe" if type(version) is int and version > supported[-1] else ""
        raise DataError(f"version must be {expected}, got {short(version)}", remedy=remedy)


def check_model_path(parameter: str, path: object) -> None:
    """Raise unless a value is a path. It may be the content of a model file by mistake.

    >>> check_model_path("path", '{"version": "1.0"}')
    Traceback (most recent call last):
    ...
    batchbpe.errors.ArgumentError: path must be a path, not the content of a file, got '{"version": "1.0"}'; write it to a file first
    """  # noqa: E501  the last line is an error message
    check_path(parameter, path)
    if isinstance(path, str) and (path.lstrip()[:1] == "{" or "\n" in path) and not os.path.lexists(path[:4096]):
        reason = "must be a path, not the content of a file"
        raise ArgumentError(parameter, path, reason, remedy="write it to a file first")


def not_found(source: str | os.PathLike[str], instead: str = "") -> FileNotFoundError:
    """Return the error for a model file that does not exist.

    A string may be the name of a published tokenizer. `instead` is code that loads it, with {} for the name.

    >>> raise not_found("gpt2", instead="pass tiktoken.get_encoding({})")
    Traceback (most recent call last):
    ...
    FileNotFoundError: model file not found: gpt2; batchbpe does not download tokenizers; for a published one, pass tiktoken.get_encoding('gpt2')
    """  # noqa: E501  the last line is an error message
    name = os.fspath(source)
    similar = [name + suffix for suffix in MODEL_SUFFIXES if Path(name + suffix).is_file()]
    similar += [os.path.join(os.path.dirname(name), other) for other in similar_names(name)]  # noqa: PTH118, PTH120  as spelled
    hint = f"; did you mean {similar[0]!r}?" if similar else ""
    is_name = (
        isinstance(source, str) and re.fullmatch(r"[\w.-]+(/[\w.-]+)?", name) and not re.search(r"\.[a-z]+$", name)
    )
    if not hint and is_name and instead:
        hint = f"; batchbpe does not download tokenizers; for a published one, {instead.format(repr(name))}"
    return FileNotFoundError(f"model file not found: {name}{hint}")

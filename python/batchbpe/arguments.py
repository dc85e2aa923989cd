"""Argument checks. The errors name the parameter.

Encoding a short text takes a microsecond, so `encode` and `decode` call these functions only after the core has raised.
Errors are raised `from None` to hide the core's exception, which does not name the parameter.
"""

from __future__ import annotations

import os
from numbers import Integral, Real
from operator import index
from sys import float_info
from typing import Any

from .errors import ArgumentError, ArgumentTypeError


def check_integer(parameter: str, value: Any, least: int | None = None) -> None:
    """Raise unless a value is an integer of at least `least`.

    >>> check_integer("n", -1, least=0)
    Traceback (most recent call last):
    ...
    batchbpe.errors.ArgumentError: n must be at least 0, got -1
    """
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ArgumentTypeError(parameter, value, "must be an integer")
    if least is not None and value < least:
        raise ArgumentError(parameter, value, f"must be at least {least}")


def check_number(parameter: str, value: Any, remedy: str = "") -> None:
    """Raise unless a value is a finite number of at least 0.

    >>> check_number("alpha", float("nan"))
    Traceback (most recent call last):
    ...
    batchbpe.errors.ArgumentError: alpha must be finite and at least 0, got nan
    """
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number:
        raise ArgumentTypeError(parameter, value, "must be a number", remedy=remedy)
    if not 0 <= value <= float_info.max:  # nan is not
        raise ArgumentError(parameter, value, "must be finite and at least 0")


def check_threads(threads: Any, parameter: str = "threads") -> None:
    """Raise unless `threads` is None or a positive integer."""
    if threads is not None and not is_index(threads):
        raise ArgumentTypeError(parameter, threads, "must be an integer, or None for all cores") from None
    if threads is not None and threads < 1:
        raise ArgumentError(parameter, threads, "must be at least 1, or None for all cores") from None


def check_bool(parameter: str, value: object) -> None:
    """Raise unless a value is True or False, since a string such as "no" would count as true."""
    if not isinstance(value, bool):
        raise ArgumentTypeError(parameter, value, "must be True or False")


def check_function(parameter: str, value: object) -> None:
    """Raise unless a value is None or a function."""
    if value is not None and not callable(value):
        raise ArgumentTypeError(parameter, value, "must be a function")


def check_string(parameter: str, value: object) -> None:
    """Raise unless a value is a string.

    >>> check_string("text", b"to be")
    Traceback (most recent call last):
    ...
    batchbpe.errors.ArgumentTypeError: text must be a string, got b'to be'; decode it first
    """
    if not isinstance(value, str):
        remedy = "decode it first" if isinstance(value, bytes | bytearray) else ""
        raise ArgumentTypeError(parameter, value, "must be a string", remedy=remedy) from None


def check_path(parameter: str, path: object) -> None:
    """Raise unless a value is a path. It must not be empty: `Path("")` is the current folder.

    >>> check_path("path", "")
    Traceback (most recent call last):
    ...
    batchbpe.errors.ArgumentError: path must not be empty, got ''
    """
    if not isinstance(path, str | os.PathLike):
        raise ArgumentTypeError(parameter, path, "must be a str or os.PathLike")
    if not os.fspath(path):
        raise ArgumentError(parameter, path, "must not be empty")


def check_iterable(parameter: str, value: Any, reason: str, remedy: str = "") -> None:
    """Raise unless a value can be iterated over. Strings are rejected even though they are iterable."""
    try:
        iter(value)
    except TypeError:
        pass
    else:
        if not isinstance(value, str):
            return
    raise ArgumentTypeError(parameter, value, reason, remedy=remedy) from None


def check_ids(tokens: Any) -> None:
    """Raise unless `tokens` is a list of integers.

    >>> check_ids([97, "a"])
    Traceback (most recent call last):
    ...
    batchbpe.errors.ArgumentTypeError: tokens[1] must be an integer, got 'a'
    """
    remedy = f"use [{tokens}] for a single id" if is_index(tokens) else ""
    check_iterable("tokens", tokens, "must be a list of integers", remedy)
    for position, token in enumerate(tokens):
        if not is_index(token):
            remedy = "use decode_batch for a list of lists" if isinstance(token, list) else ""
            raise ArgumentTypeError(f"tokens[{position}]", token, "must be an integer", remedy=remedy) from None


def is_index(value: Any) -> bool:
    """Return whether a value can be used as an integer.

    >>> is_index(True), is_index(1.0)
    (True, False)
    """
    try:
        index(value)
    except TypeError:
        return False
    return True

"""Errors that a user can act on, as data: what is wrong, with which value, and how to fix it.

`str(error)` renders the fields for Python (`vocab_size must be at least 356, got 300`). The command line renders the
same fields in terms of its options (`--vocab-size must be at least 356, got 300`). Operating system errors keep their
classes, such as `FileNotFoundError`; `opening` and `os_error` write them like our own.
"""

from __future__ import annotations

import json
import os
import re
import sys
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

MAX_JSON_DEPTH = 64
"""How deeply JSON in files may be nested. What batchbpe writes itself is nested less deeply."""
MAX_SHOWN = 200
"""Maximum length of a value in a message, in characters."""


@dataclass(frozen=True)
class Setting:
    """A parameter that a message refers to, with a value if it recommends one.

    >>> str(Setting("errors", "replace")), str(Setting("vocab_size"))
    ('errors="replace"', 'vocab_size')
    """

    parameter: str
    value: object = None
    call: str = ""
    """The Python code to write, if the parameter belongs to a different function than the one that raises."""

    def __str__(self) -> str:
        """Spell the setting as a Python argument."""
        if self.call:
            return self.call
        if self.value is None:
            return self.parameter
        return f'{self.parameter}="{self.value}"' if isinstance(self.value, str) else f"{self.parameter}={self.value}"


Message = str | tuple[str | Setting, ...]
"""Text in which parameters are `Setting` objects, so that each front end can spell them."""


class UserError(Exception):
    """Base class of the errors below. Catch `ValueError` or `TypeError` instead unless you need the fields."""

    file = ""
    """The file that `where` starts with, if `locate` has been called."""

    def __init__(
        self,
        reason: Message,
        *,
        parameter: str | None = None,
        value: object = None,
        where: str = "",
        remedy: Message = "",
    ) -> None:
        """Store the fields.

        Parameters
        ----------
        reason: what is wrong. If `parameter` is given, the reason follows its name: "must be at least 1".
        parameter: the parameter that has the wrong value.
        value: that value.
        where: the file, row, line or field that is wrong.
        remedy: how to fix it.

        """
        super().__init__(reason)
        self.reason, self.parameter, self.value = reason, parameter, value
        self.where, self.remedy = where, remedy

    def locate(self, file: str) -> None:
        """Put the file before the location in it, unless a file has been named already."""
        if file and not self.file:
            self.file, self.where = file, f"{file}, {self.where}" if self.where else file

    def render(self, spell: Callable[[Setting], str], show: Callable[[object], str] | None = None) -> str:
        """Write the error as one sentence, in which `spell` writes the parameters and `show` (or `short`) the value."""

        def text(message: Message) -> str:
            parts = (message,) if isinstance(message, str) else message
            return "".join(part if isinstance(part, str) else spell(part) for part in parts)

        reason = text(self.reason)
        if self.parameter is not None:
            reason = f"{spell(Setting(self.parameter))} {reason}, got {(show or short)(self.value)}"
        where = f"{self.where}: " if self.where else ""
        remedy = f"; {text(self.remedy)}" if self.remedy else ""
        return f"{where}{reason}{remedy}"

    def __str__(self) -> str:
        """Render the error for Python."""
        return self.render(str)

    def __reduce__(self) -> Any:
        """Pickle the fields, so that errors cross process boundaries."""
        return _restore, (type(self), self.reason, self.__dict__)


def _restore(kind: type[UserError], reason: Message, fields: dict[str, Any]) -> UserError:
    error = kind.__new__(kind, reason)
    error.args = (reason,)  # which OSError leaves to __init__
    error.__dict__.update(fields)
    return error


class ArgumentError(UserError, ValueError):
    """An argument has an unusable value.

    >>> raise ArgumentError("vocab_size", 300, "must be at least 356 (256 bytes + 100 stop words)")
    Traceback (most recent call last):
    ...
    batchbpe.errors.ArgumentError: vocab_size must be at least 356 (256 bytes + 100 stop words), got 300
    """

    def __init__(self, parameter: str, value: object, reason: Message, *, remedy: Message = "") -> None:
        """Store the parameter, its value, what it must be ("must be …"), and how to fix it."""
        super().__init__(reason, parameter=parameter, value=value, remedy=remedy)


class ArgumentTypeError(UserError, TypeError):
    """An argument has the wrong type.

    >>> raise ArgumentTypeError("vocab_size", "300", "must be an integer")
    Traceback (most recent call last):
    ...
    batchbpe.errors.ArgumentTypeError: vocab_size must be an integer, got '300'
    """

    def __init__(self, parameter: str, value: object, reason: Message, *, remedy: Message = "") -> None:
        """Store the parameter, its value, what it must be ("must be …"), and how to fix it."""
        super().__init__(reason, parameter=parameter, value=value, remedy=remedy)


class DataError(UserError, ValueError):
    """A file, a document or a model is invalid.

    >>> raise DataError("invalid UTF-8 at byte 7", where="a.txt", remedy=("use ", Setting("errors", "replace")))
    Traceback (most recent call last):
    ...
    batchbpe.errors.DataError: a.txt: invalid UTF-8 at byte 7; use errors="replace"
    """

    def __init__(self, reason: Message, *, where: str = "", remedy: Message = "", file: str = "") -> None:
        """Store what is wrong, in which row, line or field of which file, and how to fix it."""
        super().__init__(reason, where=where, remedy=remedy)
        self.locate(file)


class SplitMismatchError(DataError):
    """Counts were made with another split than the expected one."""


class OutputExistsError(UserError, FileExistsError):
    """An output exists and is not overwritten.

    >>> raise OutputExistsError("counts.parquet.parts exists", remedy=("continue with ", Setting("resume", True)))
    Traceback (most recent call last):
    ...
    batchbpe.errors.OutputExistsError: counts.parquet.parts exists; continue with resume=True
    """


class Stopped(UserError):
    """A job was asked to stop. What it had done is saved."""

    signal = 2
    """The signal that asked for it, SIGINT by default."""


@contextmanager
def opening(path: str | os.PathLike[str]) -> Iterator[None]:
    """Raise operating system errors as errors about reading a file.

    >>> with opening("a.txt"):
    ...     raise PermissionError(13, "Permission denied", "a.txt")
    Traceback (most recent call last):
    ...
    PermissionError: cannot read a.txt: permission denied
    """
    try:
        yield
    except OSError as error:
        if error.errno is None:  # one of our own
            raise
        raise os_error(error, f"cannot read {os.fspath(path)}") from error


def os_error(error: OSError, problem: str) -> OSError:
    """Return an error of the same class that says what could not be done, and why.

    >>> os_error(OSError(28, "No space left on device"), "cannot write a.txt")
    OSError('cannot write a.txt: no space left on device')
    """
    reason = str(error) if error.errno is None else os.strerror(error.errno)
    return type(error)(f"{problem}: {reason[:1].lower()}{reason[1:]}")


def parse_json(
    text: str | bytes, problem: str = "", object_pairs_hook: Callable[[list[tuple[str, Any]]], Any] | None = None
) -> Any:
    """Parse JSON from a file that may be damaged or hostile. Any problem raises a `DataError`.

    Arrays and objects that are nested too deeply are an error, even if they could be parsed: copying, comparing or
    displaying them could fail. `problem` is put before the reason.

    >>> parse_json('{"version": 1', "damaged: ")
    Traceback (most recent call last):
    ...
    batchbpe.errors.DataError: damaged: invalid JSON at character 13 (expecting ',' delimiter)
    """
    try:
        value = json.loads(text, object_pairs_hook=object_pairs_hook)
        if _is_deeper_than(MAX_JSON_DEPTH, value):
            raise RecursionError
    except DataError:  # from the hook
        raise
    except (ValueError, RecursionError) as error:
        raise DataError(f"{problem}{json_problem(error)}") from None
    return value


def with_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Create the dict of an object in a file; raise if a key occurs twice. A hook for `parse_json`.

    >>> parse_json('{"a": 1, "a": 2}', object_pairs_hook=with_unique_keys)
    Traceback (most recent call last):
    ...
    batchbpe.errors.DataError: duplicate key 'a'
    """
    unique: dict[str, Any] = {}
    for key, value in pairs:
        if key in unique:
            raise DataError(f"duplicate key {short(key)}")
        unique[key] = value
    return unique


def json_problem(error: Exception) -> str:
    """Say where a text is not JSON, and why, from the error that `json.loads` raised.

    >>> json_problem(RecursionError())
    'invalid JSON (nested too deeply)'
    """
    if isinstance(error, json.JSONDecodeError):
        reason = re.sub("( starting)? at$", "", error.msg)
        return f"invalid JSON at character {error.pos} ({reason[:1].lower()}{reason[1:]})"
    if isinstance(error, RecursionError):
        return "invalid JSON (nested too deeply)"
    return f"invalid JSON ({'invalid UTF-8' if isinstance(error, UnicodeError) else 'a number has too many digits'})"


def _is_deeper_than(depth: int, value: Any) -> bool:
    """Return whether arrays and objects are nested more deeply, without recursion."""
    level = [value]
    for _ in range(depth):
        inner = (each.values() if isinstance(each, dict) else each for each in level if isinstance(each, list | dict))
        level = [each for each in chain.from_iterable(inner) if each.__class__ is list or each.__class__ is dict]
        if not level:
            return False
    return True


def warn(message: str) -> None:
    """Warn about the line that called this package, at any depth."""
    frame, level = sys._getframe(), 1
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == __package__:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=level)


def short(value: Any, limit: int = MAX_SHOWN) -> str:
    """Return the repr of a value for a message; the middle of a long one is replaced with its length.

    >>> short("to be")
    "'to be'"
    >>> short("x" * 1000, limit=20)
    "'xxxxxxxxx…xxxxxxxx' (1,000 characters)"
    >>> short(list(range(1000)), limit=20)
    '[0, 1, 2, …998, 999] (1,000 items)'
    """
    units: dict[Any, str] = {str: "characters", bytes: "bytes", bytearray: "bytes"}
    size = len(value) if isinstance(value, str | bytes | bytearray | list | tuple | dict | set) else None
    # Building the repr of a string of gigabytes would take gigabytes: only its ends are needed.
    if isinstance(value, str | bytes | bytearray) and len(value) > 4 * limit:
        text = _without_middle(repr(value[:limit])[:-1] + repr(value[-limit:]).lstrip("b")[1:], limit)
    else:
        text = repr(value)
        if len(text) <= limit:
            return text
        text = _without_middle(text, limit)
    return text if size is None else f"{text} ({size:,} {units.get(type(value), 'items')})"


def plural(number: int, noun: str) -> str:
    """Format a number of things.

    >>> plural(1, "file"), plural(2000, "chunk"), plural(2, "batch")
    ('1 file', '2,000 chunks', '2 batches')
    """
    ending = "" if number == 1 else "es" if noun.endswith("ch") else "s"
    return f"{number:,} {noun}{ending}"


def listed(names: Collection[str]) -> str:
    """Join names for a message: the first dozen and the total, or "none".

    >>> listed(["a", "b"]), listed([]), listed("x" * 30)[-9:]
    ('a, b', 'none', ', … of 30')
    """
    first = [name if len(name) <= 60 else f"{name[:60]}…" for name in islice(names, 12)]
    return ", ".join(first + [f"… of {len(names)}"] * (len(names) > len(first))) or "none"


def _without_middle(text: str, limit: int) -> str:
    half = limit // 2
    return f"{text[:half]}…{text[len(text) - (limit - half) + 1 :]}"

"""Errors in tasks. Java passes only their text on to the driver, so the text ends in the fields of the error."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import wraps
from typing import ParamSpec, TypeVar

from ..errors import DataError, Message, Setting, UserError, parse_json
from ..patterns import PatternError

P = ParamSpec("P")
T = TypeVar("T")
_FIELDS = "batchbpe error: "
"""Starts the line that contains the fields as JSON."""


class TaskError(Exception):
    """An error that the user can act on, raised by a task."""


def reporting(task: Callable[P, Iterator[T]]) -> Callable[P, Iterator[T]]:
    """Wrap a task so that `reported_error` finds its errors in what Spark raises on the driver.

    >>> @reporting
    ... def task():
    ...     yield 1
    ...     raise DataError("too large", where="a.txt", remedy=("raise ", Setting("max_document_bytes")))
    >>> try:
    ...     list(task())
    ... except TaskError as error:
    ...     reported_error(str(error)).remedy
    ('raise ', Setting(parameter='max_document_bytes', value=None, call=''))
    """

    @wraps(task)
    def run(*args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        try:
            yield from task(*args, **kwargs)
        except (UserError, PatternError) as error:
            data = error if isinstance(error, DataError) else DataError(str(error))
            fields = {"reason": _as_list(data.reason), "where": data.where, "remedy": _as_list(data.remedy)}
            raise TaskError(f"{error}\n{_FIELDS}{json.dumps(fields)}") from None

    return run


def reported_error(text: str) -> DataError | None:
    """Return the error of a task, given the text of an error on the driver. None if the task raised another error."""
    found = re.findall(rf"^{_FIELDS}(\{{.*\}})$", text, re.MULTILINE)
    if not found:
        return None
    fields = parse_json(found[-1])
    return DataError(_as_message(fields["reason"]), where=fields["where"], remedy=_as_message(fields["remedy"]))


def _as_list(message: Message) -> list[object]:
    parts = (message,) if isinstance(message, str) else message
    return [part if isinstance(part, str) else asdict(part) for part in parts]


def _as_message(parts: list[object]) -> Message:
    return tuple(part if isinstance(part, str) else Setting(**part) for part in parts)  # type: ignore[arg-type]

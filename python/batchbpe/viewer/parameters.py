"""Read the parameters of a request, which are strings that anyone may have written."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from ..errors import ArgumentError
from .vocabulary import Query

MAX_ROWS = 500
"""Maximum number of rows in an answer."""
Parameters = Mapping[str, Any]


def query_of(given: Parameters) -> Query:
    """Return which tokens to list.

    >>> query_of({"search": "a", "descending": "1", "rows": "5"}) == Query("a", descending=True)
    True
    """
    options: dict[str, Any] = {}
    for name, default in ((each.name, each.default) for each in fields(Query) if given.get(each.name)):
        if isinstance(default, bool):
            options[name] = given[name] == "1"
        else:
            options[name] = given[name] if isinstance(default, str) else integer(given, name)
    return Query(**options)


def page_of(given: Parameters) -> slice:
    """Return which rows to answer.

    >>> page_of({"start": "20", "rows": "9999"})
    slice(20, 520, None)
    """
    start, rows = integer(given, "start"), min(integer(given, "rows", 100), MAX_ROWS)
    return slice(start, start + rows)


def index_of(given: Parameters, name: str, items: Sequence[object]) -> int:
    """Return the index of an item.

    >>> index_of({"model": "1"}, "model", ["one", "two"])
    1
    """
    index = integer(given, name)
    if index >= len(items):
        raise ArgumentError(name, index, f"must be less than {len(items)}")
    return index


def integer(given: Parameters, name: str, default: int = 0) -> int:
    """Return a parameter that must be an integer of at least 0.

    >>> integer({"id": "12"}, "id"), integer({}, "id")
    (12, 0)
    """
    text = str(given.get(name, default))
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise ArgumentError(name, text, "must be an integer of at least 0")
    return int(text)

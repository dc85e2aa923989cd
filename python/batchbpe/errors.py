"""Values in error messages: never longer than a reader wants them."""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice
from typing import Any

LONGEST = 200
"""Characters of a value in a message."""


def short(value: Any, limit: int = LONGEST) -> str:
    """Give the repr of a value; the middle of a long one is left out, and its length is said.

    >>> short("to be")
    "'to be'"
    >>> short("x" * 1000, limit=20)
    "'xxxxxxxxx…xxxxxxxx' (1,000 characters)"
    >>> short(list(range(1000)), limit=20)
    '[0, 1, 2, …998, 999] (1,000 items)'
    """
    units: dict[Any, str] = {str: "characters", bytes: "bytes", bytearray: "bytes"}
    size = len(value) if isinstance(value, str | bytes | bytearray | list | tuple | dict | set) else None
    # A repr may be much longer than what is shown: of long strings only the ends are looked at.
    if isinstance(value, str | bytes | bytearray) and len(value) > 4 * limit:
        text = _cut(repr(value[:limit])[:-1] + repr(value[-limit:]).lstrip("b")[1:], limit)
    else:
        text = repr(value)
        if len(text) <= limit:
            return text
        text = _cut(text, limit)
    return text if size is None else f"{text} ({size:,} {units.get(type(value), 'items')})"


def listed(values: Collection[str]) -> str:
    """Give names one after the other, or "none"; of many the first, and how many there are.

    >>> listed(["a", "b"]), listed([]), listed("x" * 30)[-9:]
    ('a, b', 'none', ', … of 30')
    """
    first = [value if len(value) <= 60 else f"{value[:60]}…" for value in islice(values, 12)]
    return ", ".join(first + [f"… of {len(values)}"] * (len(values) > len(first))) or "none"


def _cut(text: str, limit: int) -> str:
    half = limit // 2
    return f"{text[:half]}…{text[len(text) - (limit - half) + 1 :]}"

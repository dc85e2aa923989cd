"""Patterns: the regular expressions that cut text into chunks."""

from __future__ import annotations

import re

from . import _core
from .errors import short
from .surrogates import surrogate_error

PATTERNS: dict[str, str] = dict(_core.patterns())
"""The regular expression of each named pattern: gpt2, gpt4 (the paper's default), cl100k, o200k."""


def pattern_of(name: str) -> str:
    """Give the regular expression of a named pattern, or the argument if it is no name.

    >>> pattern_of("gpt2") == PATTERNS["gpt2"], pattern_of(r" ?\\w+")
    (True, ' ?\\\\w+')
    """
    if not isinstance(name, str):
        raise TypeError(f"pattern is {short(name)}: give one of {', '.join(PATTERNS)}, or a regular expression")
    if not name:
        raise ValueError(f"pattern='' is empty: give one of {', '.join(PATTERNS)}, or a regular expression")
    if name not in PATTERNS:
        if re.fullmatch(r"\w+", name):
            raise ValueError(
                f"pattern={short(name)} is none of {', '.join(PATTERNS)}, and as a regular expression cuts nothing"
            )
        _core.split_text(name, "")  # an error if it does not compile
    return PATTERNS.get(name, name)


def split(text: str, pattern: str = "gpt4") -> list[str]:
    """Cut a text into chunks. Merges never cross from one chunk into another.

    >>> split("I'll go to 12345 cafés.")
    ['I', "'ll", ' go', ' to', ' ', '123', '45', ' cafés', '.']
    """
    try:
        return _core.split_text(pattern_of(pattern), text)
    except UnicodeEncodeError as error:
        raise surrogate_error(error) from None

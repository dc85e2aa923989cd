"""How text becomes chunks: `Split`, and the named patterns. Merges never cross a chunk boundary."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from . import _core
from ._core import PatternError as PatternError
from .arguments import check_string
from .errors import ArgumentError, ArgumentTypeError, DataError, short
from .util.surrogates import Errors, check_errors, combine_surrogates

PATTERNS: dict[str, str] = dict(_core.patterns())
"""The regular expression of each named pattern, such as gpt2, gpt4 (the paper's default) and o200k."""
_NAMES = {pattern: name for name, pattern in PATTERNS.items()}


@dataclass(frozen=True)
class Split:
    """How text becomes chunks: each match of a regular expression is a chunk.

    Models, counts and jobs carry this value whole, files store what `to_json` returns, and counts can be added only if
    it is equal. A step before splitting, such as a normalization, or a second expression would be another field here.

    >>> Split.of("gpt2").name, Split.of("gpt2").chunks("I'll go")
    ('gpt2', ['I', "'ll", ' go'])
    >>> print(Split(r"\\w+"))
    '\\\\w+'
    """

    pattern: str
    """The regular expression."""

    def __post_init__(self) -> None:
        """Check what can be checked without compiling the regular expression, as `check` does."""
        if not isinstance(self.pattern, str):
            raise ArgumentTypeError("pattern", self.pattern, "must be a regular expression (str)")
        if not self.pattern:
            raise ArgumentError("pattern", self.pattern, "must not be empty")
        if self.pattern in PATTERNS:  # as a regular expression it would only match itself
            remedy = f"use batchbpe.PATTERNS[{self.pattern!r}]"
            raise ArgumentError("pattern", self.pattern, "must be a regular expression, not a name", remedy=remedy)

    @classmethod
    def of(cls, pattern: Split | str) -> Split:
        """Create a split from the name of a pattern, or from a regular expression, which is checked.

        >>> Split.of("gpt2").pattern == PATTERNS["gpt2"], Split.of(r" ?\\w+").pattern
        (True, ' ?\\\\w+')
        """
        if isinstance(pattern, Split):
            return pattern
        choices = f"must be a regular expression or one of {', '.join(PATTERNS)}"
        if not isinstance(pattern, str):
            raise ArgumentTypeError("pattern", pattern, choices)
        if pattern in PATTERNS:
            return cls(PATTERNS[pattern])
        if re.fullmatch(r"\s*[\w-]+\s*", pattern):  # probably a misspelled name
            remedy = "to match a literal word, write (?:word)"
            raise ArgumentError("pattern", pattern, choices, remedy=remedy)
        split = cls(pattern)
        split.check()
        return split

    @classmethod
    def from_json(cls, value: object) -> Split:
        """Create a split from what a file stores, and check it.

        >>> Split.from_json(7)
        Traceback (most recent call last):
        ...
        batchbpe.errors.DataError: the pattern must be a string, got 7
        """
        if not isinstance(value, str):
            raise DataError(f"the pattern must be a string, got {short(value)}")
        if not value:
            raise DataError("the pattern is empty", remedy="set it to the one that the chunks were made with")
        split = cls(value)
        split.check()
        return split

    def to_json(self) -> str:
        """Return what a file stores."""
        return str.__str__(self.pattern)

    def check(self) -> None:
        """Raise unless the regular expression is supported.

        >>> Split("a**").check()
        Traceback (most recent call last):
        ...
        batchbpe.errors.ArgumentError: pattern must be a supported regular expression, got 'a**'; at position 2: target of repeat operator is invalid
        """  # noqa: E501  the last line is an error message
        try:
            self.chunks("")
        except ValueError as error:
            reason = "must be a supported regular expression"
            remedy = _cause(self.pattern, str(error))
            raise ArgumentError("pattern", self.pattern, reason, remedy=remedy) from None

    def chunks(self, text: str) -> list[str]:
        """Split a text."""
        return _core.split_text(self.pattern, text)

    @property
    def name(self) -> str:
        """The name of the pattern, or the regular expression if it has no name."""
        return pattern_name(self.pattern)

    def __str__(self) -> str:
        """Return the name of the pattern for a message, or the quoted regular expression if it has no name."""
        return _NAMES.get(self.pattern) or short(self.pattern)


def pattern_name(pattern: str) -> str:
    """Return the name of a regular expression, or the regular expression itself if it has no name."""
    return _NAMES.get(pattern, pattern)


def _cause(pattern: str, problem: str) -> str:
    """Return why the core rejects a pattern, from its message; "" if that does not say."""
    at, _, cause = problem.partition(": ")
    cause = cause[:1].lower() + cause[1:]
    if at.startswith("Parsing error"):
        return f"{at.removeprefix('Parsing error ')}: {cause}"
    if not cause.startswith("regex error"):
        return cause
    # The parser of sets does not say what is wrong with them.
    for name in set(re.findall(r"\\[pP](?:\{[^}]*\}|.)", pattern)):
        try:
            _core.split_text(name, "")
        except ValueError:
            return f"unknown Unicode class {name}"
    return ""


class Explanation(NamedTuple):
    """How a pattern is run."""

    engine: str
    """The fastest engine that can run the pattern: "scanner", "automaton" (two to three times as slow) or
    "backtracking" (about twenty times as slow)."""
    reason: str
    """What the scanner looks for, or why no faster engine can run the pattern."""


def explain(pattern: Split | str) -> Explanation:
    """Return how a pattern, given by name or as a regular expression, is run, and why. See docs/patterns.md.

    >>> explain("gpt2").engine
    'scanner'
    >>> explain(r"\\p{Lu}\\p{Ll}*|\\p{Ll}+|\\P{L}")
    Explanation(engine='automaton', reason='it is not of the GPT family')
    >>> print(explain(r"\\w+(?<!x)|\\W").reason)
    it has a look-behind
    """
    return Explanation(*_core.explain_pattern(Split.of(pattern).pattern))


def split(text: str, pattern: Split | str = "gpt4", *, errors: Errors = "strict") -> list[str]:
    """Split a text into chunks. `errors` says what to do about lone surrogates: "strict" or "replace".

    >>> split("I'll go to 12345 cafés.")
    ['I', "'ll", ' go', ' to', ' ', '123', '45', ' cafés', '.']
    """
    split = Split.of(pattern)
    check_errors(errors)
    try:
        return split.chunks(text)
    except (TypeError, UnicodeEncodeError):
        check_string("text", text)
        return split.chunks(combine_surrogates(text, errors, where="text"))

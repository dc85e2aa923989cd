"""Patterns: the regular expressions that split text into chunks. Merges never cross a chunk boundary."""

from __future__ import annotations

import re
from typing import NamedTuple

from . import _core
from ._core import PatternError as PatternError
from .arguments import check_string
from .errors import ArgumentError, ArgumentTypeError, short
from .util.surrogates import Errors, check_errors, combine_surrogates

PATTERNS: dict[str, str] = dict(_core.patterns())
"""The regular expression of each named pattern, such as gpt2, gpt4 (the paper's default) and o200k."""
_NAMES = {pattern: name for name, pattern in PATTERNS.items()}


def resolve_pattern(pattern: str) -> str:
    """Return the regular expression of a named pattern; a regular expression is checked and returned as it is.

    >>> resolve_pattern("gpt2") == PATTERNS["gpt2"], resolve_pattern(r" ?\\w+")
    (True, ' ?\\\\w+')
    """
    choices = f"must be a regular expression or one of {', '.join(PATTERNS)}"
    if not isinstance(pattern, str):
        raise ArgumentTypeError("pattern", pattern, choices)
    if pattern in PATTERNS:
        return PATTERNS[pattern]
    if not pattern:
        raise ArgumentError("pattern", pattern, "must not be empty")
    if re.fullmatch(r"\s*[\w-]+\s*", pattern):  # probably a misspelled name
        raise ArgumentError("pattern", pattern, choices, remedy="a literal word is not accepted")
    check_pattern(pattern)
    return pattern


def check_pattern(pattern: str) -> None:
    """Raise unless a regular expression can be used as a pattern.

    >>> check_pattern("a**")
    Traceback (most recent call last):
    ...
    batchbpe.errors.ArgumentError: pattern must be a supported regular expression, got 'a**'; at position 2: target of repeat operator is invalid
    """  # noqa: E501  the last line is an error message
    try:
        _core.split_text(pattern, "")
    except ValueError as error:
        reason = "must be a supported regular expression"
        raise ArgumentError("pattern", pattern, reason, remedy=_cause(pattern, str(error))) from None


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


def pattern_name(pattern: str) -> str:
    """Return the name of a regular expression, or the regular expression itself if it has no name.

    >>> pattern_name(PATTERNS["gpt2"]), pattern_name("a+")
    ('gpt2', 'a+')
    """
    return _NAMES.get(pattern, pattern)


def describe_pattern(pattern: str) -> str:
    """Return the name of a pattern for a message, or the regular expression itself if it has no name.

    >>> describe_pattern(PATTERNS["gpt2"]), describe_pattern("a+")
    ('gpt2', "'a+'")
    """
    return _NAMES.get(pattern) or short(pattern)


class Explanation(NamedTuple):
    """How a pattern is run."""

    engine: str
    """The fastest engine that can run the pattern: "scanner", "automaton" (half as fast or better) or
    "backtracking" (four to ten times slower than the scanner)."""
    reason: str
    """What the scanner looks for, or why no faster engine can run the pattern."""


def explain(pattern: str) -> Explanation:
    """Return how a pattern, given by name or as a regular expression, is run, and why. See docs/patterns.md.

    >>> explain("gpt2").engine
    'scanner'
    >>> explain(r"\\p{Lu}\\p{Ll}*|\\p{Ll}+|\\P{L}")
    Explanation(engine='automaton', reason='it is not of the GPT family')
    >>> print(explain(r"\\w+(?<!x)|\\W").reason)
    it has a look-behind
    """
    return Explanation(*_core.explain_pattern(resolve_pattern(pattern)))


def split(text: str, pattern: str = "gpt4", *, errors: Errors = "strict") -> list[str]:
    """Split a text into chunks. `errors` says what to do about lone surrogates: "strict" or "replace".

    >>> split("I'll go to 12345 cafés.")
    ['I', "'ll", ' go', ' to', ' ', '123', '45', ' cafés', '.']
    """
    pattern = resolve_pattern(pattern)
    check_errors(errors)
    try:
        return _core.split_text(pattern, text)
    except (TypeError, UnicodeEncodeError):
        check_string("text", text)
        return _core.split_text(pattern, combine_surrogates(text, errors, where="text"))

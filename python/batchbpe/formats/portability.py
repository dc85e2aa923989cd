"""Check that other regular expression engines, Oniguruma and Python's `regex`, interpret a pattern in the same way."""

from __future__ import annotations

import re

from .._core import matches_empty, patterns
from ..errors import DataError, short

WHOLE_TEXT = r"[\s\S]+"
"""A pattern that does not split text, for tools that have no pattern."""
_PORTABLE = {
    *dict(patterns()).values(),
    # r50k and p50k in tiktoken.
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s",
}
"""Patterns that all of these engines are known to interpret in the same way."""
_RISKS = {
    r"\(\?(?!i?:|[=!]|<[=!])": "a flag, a named group or another group starting with (?",
    r"\((?!\?)": "a capturing group",
    r"[\^$]": "an anchor",
    r"\[[^\]]*(?:--|~~|\[:)": "a set operation",
    r"[}+*?]\{": "a repetition of a repetition",
}
# Oniguruma intersects and nests sets in the same way. Python's `regex` does so only with the flag V1.
_RISKS_OF_OTHERS = {r"\[[^\]]*(?:&&|\[)": "a set operation"}
# Oniguruma repeats a possessive {n}+ instead, makes a lazy {n}? optional, and defines word characters differently.
_RISKS_OF_ONIGURUMA = {
    r"\{\d+(?:,\d+)?\}\+": "a possessive counted repetition",
    r"\{\d+\}\?": "a lazy counted repetition",
    r"\(\?i:[^)]*\\[pP]": "a property in a case-insensitive group",
    # It takes ß for ss and ﬆ for st in such a group, and the other way round.
    r"\(\?i:[^)]*(?i:s[st]|f[fil]|[^\x00-\x7F])": "a letter in a case-insensitive group that stands for several",
    r"\\[wW]": "a word character (use [\\p{L}\\p{M}\\p{N}_] instead)",
}
_ESCAPES = r"\\(?:[pP](?!\{\^?\w+\})|[^pPsSdDwWrntfv\W])"


def check_not_empty(pattern: str, tool: str) -> None:
    """Raise if a pattern can match the empty string: such matches are ignored here but not by other tools.

    >>> check_not_empty(r"\\w*", "tiktoken")
    Traceback (most recent call last):
    ...
    batchbpe.errors.DataError: pattern '\\\\w*' can match the empty string, which tiktoken treats differently; rewrite the pattern
    """  # noqa: E501  the last line is an error message
    if matches_empty(pattern):
        raise DataError(
            f"pattern {short(pattern)} can match the empty string, which {tool} treats differently",
            remedy="rewrite the pattern",
        )


def check_portable(pattern: str, tool: str) -> None:
    """Raise if a pattern has parts that `tool` may interpret differently. The named patterns are known to be portable.

    >>> check_portable(r"(\\w+)", "minbpe")
    Traceback (most recent call last):
    ...
    batchbpe.errors.DataError: pattern '(\\\\w+)' has a capturing group, '(', which minbpe may interpret differently; rewrite the pattern
    """  # noqa: E501  the last line is an error message
    if pattern in _PORTABLE:
        return
    check_not_empty(pattern, tool)
    # Each escape and each set becomes one character, so that what is next to it stays apart.
    plain = re.sub(r"\\[pP]\{[^}]*\}|\\.", ".", pattern).replace("[^", "[")
    outside_sets = re.sub(r"\[[^\]]*\]", ".", plain)
    searches = [(_ESCAPES, "an escape", pattern)]
    risks = _RISKS if tool == "Oniguruma" else _RISKS | _RISKS_OF_OTHERS
    searches += ((risk, name, plain if name == "a set operation" else outside_sets) for risk, name in risks.items())
    if tool == "Oniguruma":
        searches += ((risk, name, pattern) for risk, name in _RISKS_OF_ONIGURUMA.items())
    for risk, name, text in searches:
        if match := re.search(risk, text):
            part = f"{name}, {short(match[0])}"
            reason = f"pattern {short(pattern)} has {part}, which {tool} may interpret differently"
            raise DataError(reason, remedy="rewrite the pattern")

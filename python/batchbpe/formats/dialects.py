"""Regular expressions that mean the same to other engines: Oniguruma, and Python's `regex`."""

from __future__ import annotations

import re

from .._core import has_scanner, matches_empty
from ..errors import short

_RISKS = {
    r"\(\?(?!i?:|[=!]|<[=!])": "a flag, a name or another group with (?",
    r"\((?!\?)": "a capturing group",
    r"[\^$]": "an anchor",
    r"\[[^\]]*(?:--|&&|~~|\[)": "a set operation",
    r"[}+*?]\{": "a repetition of a repetition",
}
# Oniguruma repeats what it should possess, makes optional what should be lazy, and has other words.
_RISKS_OF_ONIGURUMA = {
    r"\{\d+(?:,\d+)?\}\+": "a possessive repetition of so many",
    r"\{\d+\}\?": "a lazy repetition of so many",
    r"\(\?i:[^)]*\\[pP]": "a property where case is ignored",
    r"\\[wW]": "a word character (say [\\p{L}\\p{M}\\p{N}_] instead)",
}
_ESCAPES = r"\\(?:[pP](?!\{\^?\w+\})|[^pPsSdDwWrntfv\W])"


def check_not_empty(pattern: str, tool: str) -> None:
    """Raise if a pattern has empty matches: they are no chunks here, and stop or confuse other tools.

    >>> check_not_empty(r"\\w*", "tiktoken")
    Traceback (most recent call last):
    ...
    ValueError: the pattern '\\\\w*' matches where there is nothing, which tiktoken takes in its own way: rewrite it
    """
    if matches_empty(pattern):
        raise ValueError(
            f"the pattern {short(pattern)} matches where there is nothing, "
            f"which {tool} takes in its own way: rewrite it"
        )


def check_portable(pattern: str, tool: str) -> None:
    """Raise if a pattern has parts that may mean something else to `tool`; the named ones are known to mean the same.

    >>> check_portable(r"(\\w+)", "minbpe")
    Traceback (most recent call last):
    ...
    ValueError: the pattern '(\\\\w+)' has a capturing group, '(', which minbpe may take for something else: rewrite it
    """
    if has_scanner(pattern):
        return
    check_not_empty(pattern, tool)
    escape = re.search(_ESCAPES, pattern)
    found = [("an escape", escape[0])] if escape else []
    plain = re.sub(r"\\[pP]\{[^}]*\}|\\.", "", pattern).replace("[^", "[")
    outside = re.sub(r"\[[^\]]*\]", "", plain)
    for risk, name in _RISKS.items():
        match = re.search(risk, plain if name == "a set operation" else outside)
        if match:
            found.append((name, match[0]))
    for risk, name in _RISKS_OF_ONIGURUMA.items() if tool == "Oniguruma" else ():
        match = re.search(risk, pattern)
        if match:
            found.append((name, match[0]))
    if found:
        name, part = found[0]
        raise ValueError(
            f"the pattern {short(pattern)} has {name}, {short(part)}, "
            f"which {tool} may take for something else: rewrite it"
        )

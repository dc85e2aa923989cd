"""Recognize how a `tokenizer.json` splits text: the named pattern that gives the same chunks, however it is spelled."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .._core import canonical_pattern, has_scanner, patterns, same_chunks

_NAMED = dict(patterns())
_CL100K = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
DIGITS = r"[\p{N}\x{11DE0}-\x{11DE9}\x{16FF4}-\x{16FF6}]"
"""What `Digits` isolates: it uses the tables of a newer version of Unicode than the regular expressions."""
CHAINS = {
    "deepseek": (
        r"\p{N}{1,3}",
        "[一-龥぀-ゟ゠-ヿ]+",
        r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
        r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
    "starcoder": (r"\p{N}", _NAMED["gpt2"]),
    "smollm": (DIGITS, _NAMED["gpt2"]),
    "minicpm": (r"\p{N}{1,3}", _CL100K),
    "command-a": (r"\d{1,3}(?=(?:\d{3})*\b)", _NAMED["o200k"]),
    "bloom": (r" ?[^(\s|[.,!?…。，、।۔،])]+",),
}
"""Named patterns that stand for several steps, each of which isolates what it matches in the pieces that the one before
left. These are the published regular expressions, for Oniguruma."""


def known(steps: Sequence[tuple[str, str, bool]]) -> str | None:
    """Return the name of the pattern that gives the same chunks as some `Split` steps of a tokenizer.json, if any.

    A step is a regular expression for Oniguruma, a behavior and `invert`. `Digits(individual_digits=True)` is the step
    `(DIGITS, "Isolated", False)`, and `ByteLevel(use_regex=True)` one with the pattern gpt2.

    >>> digits, words = r"\\p{N}", r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
    >>> others = " ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\r\\n]*|\\\\s*[\\r\\n]|\\\\s+(?!\\\\S)|\\\\s"  # with a literal CR and LF
    >>> known([(f"{words}|{digits}|{others}", "Removed", True)])
    'qwen2'
    >>> known([(digits, "Isolated", False), (_NAMED["gpt2"], "Isolated", False)])
    'starcoder'
    >>> known([(r"\\w+", "Isolated", False)])
    """
    try:
        regexes = [_isolated(from_oniguruma(regex), behavior, invert) for regex, behavior, invert in steps]
        for name, chain in CHAINS.items():
            if len(chain) == len(regexes) and all(map(_same, regexes, chain)):
                return name
        # A single step keeps the text between matches; there is none if it equals a named pattern.
        return canonical_pattern(regexes[0]) if len(regexes) == 1 and regexes[0] else None
    except ValueError:  # an unsupported regular expression
        return None


def _isolated(regex: str, behavior: str, invert: bool) -> str | None:
    """Return the regular expression of a step that isolates what it matches, and None for other steps."""
    if behavior == "Isolated" or (behavior == "Removed" and invert and has_scanner(regex)):
        return regex
    return None


def _same(regex: str | None, published: str) -> bool:
    return regex is not None and same_chunks(regex, published)


def from_oniguruma(pattern: str) -> str:
    """Translate the parts of a regular expression that mean something else to Oniguruma.

    `^` and `$` are the start and the end of each line. A counted repetition is never possessive: `+` repeats it.

    >>> from_oniguruma(r"\\s+$|[$^]|(?:a|\\p{N}){1,3}+")
    '\\\\s+(?![^\\\\n])|[$^]|(?:(?:a|\\\\p{N}){1,3})+'
    """
    parts: list[str] = []
    groups: list[int] = []  # where each open group starts
    sets = 0
    last = 0  # where the last part starts that can be repeated
    for part in re.findall(r"\\[pPx]\{[^}]*\}|\\.|\{\d*,?\d*\}\+|\{\d*,?\d*\}|.", pattern, re.DOTALL):
        if part == "[":
            last = last if sets else len(parts)
            sets += 1
        elif sets:
            sets -= part == "]"
        elif part == "(":
            groups.append(len(parts))
        elif part == ")":
            last = groups.pop() if groups else 0
        elif part in "^$":
            parts.append("(?m:^)" if part == "^" else r"(?![^\n])")
            continue
        elif part.endswith("}+"):
            parts.insert(last, "(?:")
            parts.append(f"{part[:-1]})+")
            continue
        elif not (part in "*+?" or part.startswith("{")):
            last = len(parts)
        parts.append(part)
    return "".join(parts)

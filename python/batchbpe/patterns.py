"""How text becomes chunks: `Split`, and the named patterns. Merges never cross a chunk boundary."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, cast, get_args

from . import _core
from ._core import PatternError as PatternError
from .arguments import check_bool, check_string
from .choices import Behavior, Normalization
from .errors import ArgumentError, ArgumentTypeError, DataError, parse_json, short
from .util.surrogates import Errors, check_errors, combine_surrogates

PATTERNS: dict[str, str] = dict(_core.patterns())
"""The regular expression of each named pattern, such as gpt2, gpt4 (the paper's default) and o200k."""
MAX_STEPS = 64
"""Largest number of steps of a `Split`."""
_NAMES = {pattern: name for name, pattern in PATTERNS.items()}


@dataclass(frozen=True)
class Step:
    """Cuts a text at the matches of a regular expression, before the last expression of a `Split` is applied.

    >>> Split(r"\\w+", steps=(Step(r"\\d"),)).chunks("ab12 c")
    ['ab', '1', '2', 'c']
    """

    pattern: str
    """The regular expression. It must not match the empty string."""
    behavior: Behavior = "Isolated"
    """What becomes of the matches, as in Hugging Face's library: `Isolated` (each is a piece), `Removed`,
    `MergedWithPrevious` or `MergedWithNext` (part of the text before or after it), or `Contiguous` (neighboring
    matches are one piece)."""
    invert: bool = False
    """Treat the text between matches as the matches, and the matches as the text between them."""

    def __post_init__(self) -> None:
        """Check what can be checked without compiling the regular expression."""
        _check_regular_expression(self.pattern)
        _check_choice("behavior", self.behavior, get_args(Behavior))
        check_bool("invert", self.invert)

    @classmethod
    def from_json(cls, value: object) -> Step:
        """Create a step from what a file stores."""
        return cls(**_checked_fields(value, "step", cls))

    def to_json(self) -> dict[str, Any]:
        """Return what a file stores.

        >>> Step("[0-9]", "Contiguous").to_json()
        {'pattern': '[0-9]', 'behavior': 'Contiguous'}
        """
        return _fields_to_store(self)

    def __str__(self) -> str:
        """Describe the step in a message."""
        described = f"{_described(self.pattern)} {self.behavior}"
        return f"{described} inverted" if self.invert else described


@dataclass(frozen=True)
class Split:
    """How text becomes chunks: it is normalized, each step cuts the pieces that the step before it left, and in these,
    each match of a regular expression is a chunk.

    Models, counts and jobs carry this value whole, files store what `to_json` returns, and counts can be added only if
    it is equal. A named pattern and a bare regular expression are the simple cases.

    >>> Split.of("gpt2").name, Split.of("gpt2").chunks("I'll go")
    ('gpt2', ['I', "'ll", ' go'])
    >>> print(Split(r"\\w+"))
    '\\\\w+'
    >>> split = Split(PATTERNS["gpt2"], steps=(Step(r"\\p{N}"),), normalization="NFKC")
    >>> split.chunks("x² in 2026")
    ['x', '2', ' in', ' ', '2', '0', '2', '6']
    >>> print(split)
    NFKC > '\\\\p{N}' Isolated > gpt2
    """

    pattern: str
    """The regular expression. Text that it does not match is dropped."""
    steps: tuple[Step, ...] = ()
    """What happens before. A step sees only its piece: where the piece ends, the text ends."""
    normalization: Normalization = "none"
    """Unicode normalization form. Decoding returns the normalized text."""
    prefix_space: bool = False
    """Put a space before a text, or a part of it between special tokens, that does not start with one."""

    def __post_init__(self) -> None:
        """Check what can be checked without compiling the regular expressions, as `check` does."""
        _check_regular_expression(self.pattern)
        if isinstance(self.steps, str) or not all(isinstance(step, Step) for step in self.steps):
            raise ArgumentTypeError("steps", self.steps, "must be a sequence of batchbpe.patterns.Step")
        object.__setattr__(self, "steps", tuple(self.steps))
        if len(self.steps) > MAX_STEPS:
            raise ArgumentError("steps", self.steps, f"must have at most {MAX_STEPS} items")
        _check_choice("normalization", self.normalization, get_args(Normalization))
        check_bool("prefix_space", self.prefix_space)

    @classmethod
    def of(cls, pattern: Split | str, normalization: Normalization | None = None) -> Split:
        """Create a split from the name of a pattern, or from a regular expression, which is checked.

        >>> Split.of("gpt2").pattern == PATTERNS["gpt2"], Split.of(r" ?\\w+").pattern
        (True, ' ?\\\\w+')
        >>> print(Split.of("gpt2", "NFC"), "or", Split.of("NFC > gpt2"))
        NFC > gpt2 or NFC > gpt2
        """
        if isinstance(pattern, str):
            form, _, name = pattern.partition(" > ")
            if form in get_args(Normalization) and name in PATTERNS:  # as a split is printed
                pattern = cls(PATTERNS[name], normalization=cast(Normalization, form))
        if isinstance(pattern, Split):
            if pattern.normalization not in ("none", normalization or pattern.normalization):
                reason = f"must be that of the given split, {pattern.normalization}"
                raise ArgumentError("normalization", normalization, reason)
            split = pattern
        else:
            split = cls(_regular_expression(pattern))
            split.check()
        return split if normalization is None else replace(split, normalization=normalization)

    @classmethod
    def from_json(cls, value: object) -> Split:
        """Create a split from what a file stores, and check it.

        >>> Split.from_json(7)
        Traceback (most recent call last):
        ...
        batchbpe.errors.DataError: the pattern must be a string or an object, got 7
        """
        if value == "":
            raise DataError("the pattern is empty", remedy="set it to the one that the chunks were made with")
        if isinstance(value, str):
            split = cls(value)
        else:
            stored = _checked_fields(value, "pattern", cls)
            steps = stored.get("steps", [])
            if not isinstance(steps, list):
                raise DataError(f"the steps of the pattern must be an array, got {short(steps)}")
            split = cls(**stored | {"steps": tuple(map(Step.from_json, steps))})
        split.check()
        return split

    def to_json(self) -> str | dict[str, Any]:
        """Return what a file stores: the regular expression if that is all, otherwise an object.

        >>> Split("a+", normalization="NFC").to_json()
        {'pattern': 'a+', 'normalization': 'NFC'}
        """
        if self.is_bare:
            return str.__str__(self.pattern)
        return _fields_to_store(self)

    @classmethod
    def from_text(cls, text: str) -> Split:
        """Create a split from `to_text`, and check it."""
        return cls.from_json(parse_json(text) if text.startswith(_OBJECT) else text)

    def to_text(self) -> str:
        """Return what a file stores that has only a string for it.

        >>> Split("a+", normalization="NFC").to_text(), Split("a+").to_text()
        ('{"pattern": "a+", "normalization": "NFC"}', 'a+')
        """
        value = self.to_json()
        if isinstance(value, str) and not value.startswith(_OBJECT):
            return value
        return json.dumps(_fields_to_store(self))

    @property
    def is_bare(self) -> bool:
        """Whether the split is only a regular expression."""
        return not self.steps and self.normalization == "none" and not self.prefix_space

    def check(self) -> None:
        """Raise unless the regular expressions are supported.

        >>> Split("a**").check()
        Traceback (most recent call last):
        ...
        batchbpe.errors.ArgumentError: pattern must be a supported regular expression, got 'a**'; at position 2: target of repeat operator is invalid
        """  # noqa: E501  the last line is an error message
        for step in self.steps:
            _check_supported(step.pattern)
            if _core.matches_empty(step.pattern):
                raise ArgumentError("pattern", step.pattern, "of a step must not match the empty string")
        _check_supported(self.pattern)

    def chunks(self, text: str) -> list[str]:
        """Split a text."""
        return _core.split_text(self, text)

    def normalize(self, text: str) -> str:
        """Return the text that is split in place of a text: normalized, and with a space before it if necessary.

        >>> Split("a", normalization="NFC", prefix_space=True).normalize("e\\u0301")
        ' é'
        """
        return text if self.is_bare else _core.normalize(self, text)

    @property
    def name(self) -> str:
        """The name of the pattern, or the regular expression if it has no name; after what happens before."""
        return " > ".join([*self._before(), pattern_name(self.pattern)])

    def __str__(self) -> str:
        """Return the name for a message, in which regular expressions are quoted."""
        return " > ".join([*self._before(), _described(self.pattern)])

    def _before(self) -> list[str]:
        normalization = [] if self.normalization == "none" else [self.normalization]
        return [*normalization, *["prefix space"] * self.prefix_space, *map(str, self.steps)]


_OBJECT = '{"pattern":'
"""How a split starts that `Split.to_text` returns as a JSON object."""


def _fields_to_store(value: Split | Step) -> dict[str, Any]:
    """Return the pattern, and the other fields that do not have their default value."""
    stored: dict[str, Any] = {"pattern": str.__str__(value.pattern)}
    for each in fields(value)[1:]:
        field = getattr(value, each.name)
        if field != each.default:
            stored[each.name] = [step.to_json() for step in field] if each.name == "steps" else field
    return stored


def _checked_fields(value: object, what: str, kind: type) -> dict[str, Any]:
    """Return a JSON object that may have the fields of a dataclass, and has a pattern."""
    if not isinstance(value, dict):
        expected = "a string or an object" if kind is Split else "an object"
        raise DataError(f"the {what} must be {expected}, got {short(value)}")
    known = [each.name for each in fields(kind)]
    if unknown := value.keys() - known:
        raise DataError(f"the {what} has an unknown field {short(min(unknown))}", remedy="upgrade batchbpe")
    if "pattern" not in value:
        raise DataError(f'the {what} has no field "pattern"')
    return dict(value)


def _check_regular_expression(pattern: object) -> None:
    if not isinstance(pattern, str):
        raise ArgumentTypeError("pattern", pattern, "must be a regular expression (str)")
    if not pattern:
        raise ArgumentError("pattern", pattern, "must not be empty")
    if pattern in PATTERNS:  # as a regular expression it would only match itself
        remedy = f"use batchbpe.PATTERNS[{pattern!r}]"
        raise ArgumentError("pattern", pattern, "must be a regular expression, not a name", remedy=remedy)


def _check_choice(parameter: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ArgumentError(parameter, value, f"must be one of {', '.join(choices)}")


def _check_supported(pattern: str) -> None:
    try:
        _core.split_text(pattern, "")
    except ValueError as error:
        reason = "must be a supported regular expression"
        remedy = _cause(pattern, str(error))
        raise ArgumentError("pattern", pattern, reason, remedy=remedy) from None


def _regular_expression(pattern: object) -> str:
    """Return the regular expression of a named pattern, or one that was given."""
    choices = f"must be a regular expression or one of {', '.join(PATTERNS)}"
    if not isinstance(pattern, str):
        raise ArgumentTypeError("pattern", pattern, choices)
    if pattern not in PATTERNS and re.fullmatch(r"\s*[\w-]+\s*", pattern):  # probably a misspelled name
        remedy = "to match a literal word, write (?:word)"
        raise ArgumentError("pattern", pattern, choices, remedy=remedy)
    return PATTERNS.get(pattern, pattern)


def _described(pattern: str) -> str:
    return _NAMES.get(pattern) or short(pattern)


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
    """Return how a pattern, given by name or as a regular expression, is run, and why.

    https://batchbpe.github.io/batchbpe/patterns.html lists the engines.

    >>> explain("gpt2").engine
    'scanner'
    >>> explain(r"\\p{Lu}\\p{Ll}*|\\p{Ll}+|\\P{L}")
    Explanation(engine='automaton', reason='it is not of the GPT family')
    >>> print(explain(r"\\w+(?<!x)|\\W").reason)
    it has a look-behind
    """
    return Explanation(*_core.explain_pattern(Split.of(pattern)))


def split_given(pattern: Split | str | None, normalization: Normalization | None) -> Split | None:
    """Return the split for the options `pattern` and `normalization`, or None if neither is given.

    >>> print(split_given("gpt2", None), split_given(None, "NFC"), split_given(None, None))
    gpt2 NFC > gpt4 None
    """
    if pattern is None and normalization is None:
        return None
    return Split.of("gpt4" if pattern is None else pattern, normalization)


def split(
    text: str,
    pattern: Split | str = "gpt4",
    *,
    normalization: Normalization | None = None,
    errors: Errors = "strict",
) -> list[str]:
    """Split a text into chunks, after Unicode normalization (NFC, NFD, NFKC or NFKD) if that is given.

    `errors` says what to do about lone surrogates: "strict" or "replace".

    >>> split("I'll go to 12345 cafés.")
    ['I', "'ll", ' go', ' to', ' ', '123', '45', ' cafés', '.']
    >>> split("x²", "gpt2", normalization="NFKC")
    ['x', '2']
    """
    split = Split.of(pattern, normalization)
    check_errors(errors)
    try:
        return split.chunks(text)
    except (TypeError, UnicodeEncodeError):
        check_string("text", text)
        return split.chunks(combine_surrogates(text, errors, where="text"))

"""The options of phrases. Invalid ones raise an error before anything is counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from numbers import Real
from typing import ClassVar, Literal, TypeAlias

from ..arguments import check_integer
from ..errors import ArgumentError, ArgumentTypeError, DataError, Setting, plural
from ..options import HelpGroup, check_numbers, option
from ..patterns import PATTERNS, Split
from ..training.options import TrainingOptions

PhraseChunks: TypeAlias = "str | Callable[[str], bool]"
"""Which chunks a phrase may contain: a name in `KINDS`, a regular expression for the whole chunk, or a function."""
KINDS: Mapping[str, str] = {
    "letters": r"[^\r\n]*\p{L}[^\r\n]*",
    "text": r"[^\S\r\n]*[^\s\p{N}][^\p{N}\r\n]*",
}
"""letters: chunks with a letter. text: also punctuation, but no digits. Neither contains newlines."""


@dataclass(frozen=True)
class PhraseOptions:
    """The options of phrases. Invalid options raise an error here, before anything is counted."""

    GROUP: ClassVar[HelpGroup] = "Phrases"

    phrases: int | Literal["auto"] = option(
        0, 'Number of tokens for phrases such as " of the", or auto to balance them with merges.'
    )
    phrase_chunks: PhraseChunks = option(
        "letters",
        "Chunks that a phrase may contain: letters, text (adds punctuation), or a regular expression.",
    )
    max_words: int = option(4, "Largest number of chunks in a phrase.", least=2)
    phrase_sample: float | None = option(
        None, "Fraction of the text to learn phrases from; by default, as much as 256 MiB."
    )

    def __post_init__(self) -> None:
        """Check the values."""
        if self.phrases != "auto":
            if isinstance(self.phrases, str):
                raise ArgumentError("phrases", self.phrases, "must be a number or 'auto'")
            check_integer("phrases", self.phrases, least=0)
            object.__setattr__(self, "phrases", int(self.phrases))
        for each in fields(self)[1:]:
            if not self.phrases and getattr(self, each.name) != each.default:
                reason = ("has no effect without ", Setting("phrases"))
                raise ArgumentError(each.name, getattr(self, each.name), reason)
        check_phrase_chunks(self.phrase_chunks)
        check_numbers(self)
        if self.phrase_sample is not None:
            if isinstance(self.phrase_sample, bool) or not isinstance(self.phrase_sample, Real):
                raise ArgumentTypeError("phrase_sample", self.phrase_sample, "must be a number")
            if not 0 < self.phrase_sample <= 1:
                raise ArgumentError("phrase_sample", self.phrase_sample, "must be greater than 0 and at most 1")


def check_phrase_chunks(chunks: object) -> None:
    """Raise unless the argument is a function, a name in `KINDS` or a regular expression.

    >>> check_phrase_chunks("numbers")
    Traceback (most recent call last):
    ...
    batchbpe.errors.ArgumentError: phrase_chunks must be 'letters', 'text', a regular expression or a function, got 'numbers'; to match a literal word, write (?:word)
    """  # noqa: E501  the last line is an error message
    expected = f"must be {', '.join(map(repr, KINDS))}, a regular expression or a function"
    if callable(chunks):
        return
    if not isinstance(chunks, str):
        raise ArgumentTypeError("phrase_chunks", chunks, expected)
    if chunks in PATTERNS:
        raise ArgumentError("phrase_chunks", chunks, expected, remedy="the name of a pattern is not accepted")
    if chunks not in KINDS:
        try:
            Split.of(chunks)
        except ArgumentError as error:
            raise ArgumentError("phrase_chunks", chunks, expected, remedy=error.remedy) from None


def check_room(phrase_options: PhraseOptions, options: TrainingOptions) -> None:
    """Raise if a number of phrases leaves no room for the tokens that are known before counting.

    >>> check_room(PhraseOptions(50), TrainingOptions(vocab_size=300))
    Traceback (most recent call last):
    ...
    batchbpe.errors.ArgumentError: phrases must be at most 44, which vocab_size leaves, got 50
    """
    base = options.base
    if base and base.phrases:
        problem = f" already has {plural(len(base.phrases), 'phrase')}"
        raise DataError((Setting("base"), problem), remedy="use a model without phrases")
    known = base.vocab_size if base else 256 + options.stop_list_size
    room = options.vocab_size - known - len(options.new_tokens)
    if phrase_options.phrases != "auto" and phrase_options.phrases > room:
        reason = (f"must be at most {room}, which ", Setting("vocab_size"), " leaves")
        raise ArgumentError("phrases", phrase_options.phrases, reason)

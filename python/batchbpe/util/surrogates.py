"""Surrogates in Python strings: combine pairs into characters, reject or replace lone ones.

A `str` may hold surrogates (U+D800–U+DFFF), for example after `json.loads` or `os.fsdecode`. A high surrogate followed
by a low one represents one character; a lone surrogate is not a character and cannot be encoded as UTF-8.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal

from ..errors import ArgumentError, DataError, Setting, short

Errors = Literal["strict", "replace"]
"""What to do about lone surrogates and invalid UTF-8: raise an error, or replace them with U+FFFD."""

_LONE = re.compile("[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]")


class SurrogateError(DataError, UnicodeEncodeError):
    """A string has a lone surrogate. `start` is its position, as in any `UnicodeEncodeError`."""

    reason: str

    def __init__(self, text: str, position: int, *, where: str = "") -> None:
        """Store the text, the position of the surrogate, and which document the text is."""
        reason = f"lone surrogate {text[position]!r} at character {position}"
        UnicodeEncodeError.__init__(self, "utf-8", text, position, position + 1, reason)
        self.parameter, self.value, self.where = None, None, where
        self.remedy = ("use ", Setting("errors", "replace"), " to replace it with U+FFFD")

    def __reduce__(self) -> Any:
        """Pickle the text and the position."""
        return _restore, (self.object, self.start, self.where)


def _restore(text: str, position: int, where: str) -> SurrogateError:
    return SurrogateError(text, position, where=where)


def combine_surrogates(text: str, errors: Errors = "strict", *, where: str = "") -> str:
    r"""Combine surrogate pairs into characters, as tiktoken does; raise or replace lone surrogates.

    `where` says which document the text is, for the error message.

    >>> combine_surrogates("\ud83d\ude00")
    '😀'
    >>> combine_surrogates("a\ud800", errors="replace")
    'a�'
    >>> combine_surrogates("a\ud800")
    Traceback (most recent call last):
    ...
    batchbpe.util.surrogates.SurrogateError: lone surrogate '\ud800' at character 1; use errors="replace" to replace it with U+FFFD
    """  # noqa: E501  the last line is an error message
    check_errors(errors)
    lone = _LONE.search(text) if errors == "strict" else None
    if lone:
        raise SurrogateError(text, lone.start(), where=where) from None
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def check_errors(errors: Errors) -> None:
    """Raise unless `errors` is "strict" or "replace".

    >>> check_errors("ignore")
    Traceback (most recent call last):
    ...
    batchbpe.errors.ArgumentError: errors must be "strict" or "replace", got 'ignore'
    """
    if errors not in ("strict", "replace"):
        raise ArgumentError("errors", errors, 'must be "strict" or "replace"')


def combine_documents(texts: Sequence[str], errors: Errors = "strict") -> list[str]:
    r"""Combine surrogates in a batch of documents; an error shows the document, whose number in a batch is useless.

    >>> combine_documents(["a\ud800"], "replace")
    ['a�']
    """
    return [combine_surrogates(text, errors, where=f"document {short(text, 60)}") for text in texts]

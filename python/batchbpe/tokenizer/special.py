"""Which special tokens `encode` recognizes: the arguments `allowed_special` and `disallowed_special`."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from ..errors import ArgumentError

AllowedSpecial = Literal["none_raise", "all", "none"] | Collection[str]
"""Special tokens that are encoded as tokens."""
DisallowedSpecial = Literal["all"] | Collection[str]
"""Special tokens that raise an error if a text contains them."""
Special = tuple[list[str], list[str]] | Literal["all", "none"] | None
"""The allowed and the disallowed special tokens, as the core takes them; "all" if all are allowed, "none" if
none is allowed or disallowed, None if all are disallowed."""

_RESOLVED: dict[str, Literal["all", "none"] | None] = {"none_raise": None, "none": "none", "all": "all"}


def special_of(allow_special: bool) -> Special:
    """Return that all special tokens in a text are encoded as tokens, or as ordinary text.

    >>> special_of(True), special_of(False)
    ('all', 'none')
    """
    return "all" if allow_special else "none"


def resolve_special(
    special_tokens: Collection[str], allowed: AllowedSpecial, disallowed: DisallowedSpecial | None
) -> Special:
    """Combine tiktoken's and the paper's ways to say which special tokens are allowed.

    If `disallowed` is None, `allowed="none_raise"` or a collection disallows all other special tokens, and "all" or
    "none" disallows nothing. Special tokens that are neither allowed nor disallowed are encoded as ordinary text.

    >>> resolve_special(["<a>", "<b>"], {"<a>"}, None)
    (['<a>'], ['<b>'])
    >>> resolve_special(["<a>", "<b>"], "none", None)
    'none'
    """
    if disallowed is None and isinstance(allowed, str) and allowed in _RESOLVED:
        return _RESOLVED[allowed]  # as fast as possible: short texts take half a microsecond
    names = set(special_tokens)
    if isinstance(allowed, str):
        if allowed not in _RESOLVED:
            reason = 'must be "all", "none", "none_raise" or a collection of special tokens'
            raise ArgumentError("allowed_special", allowed, reason)
        allowed = names if allowed == "all" else ()
    if disallowed is None:
        disallowed = "all"
    if isinstance(disallowed, str) and disallowed != "all":
        raise ArgumentError("disallowed_special", disallowed, 'must be "all" or a collection of special tokens')
    for parameter, tokens in (("allowed_special", allowed), ("disallowed_special", disallowed)):
        if not isinstance(tokens, Collection) or not all(isinstance(token, str) for token in tokens):
            raise ArgumentError(parameter, tokens, "must be a collection of special tokens")
    forbidden = names - set(allowed) if disallowed == "all" else set(disallowed)
    return sorted(names & set(allowed)), sorted(forbidden - {""})

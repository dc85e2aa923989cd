"""The script of tokens: that of the first letter."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from ..patterns import split

SCRIPTS = (
    *("Latin", "Cyrillic", "Greek", "Han", "Hiragana", "Katakana", "Hangul", "Arabic", "Hebrew", "Devanagari"),
    *("Bengali", "Gurmukhi", "Gujarati", "Tamil", "Telugu", "Kannada", "Malayalam", "Sinhala", "Thai", "Lao", "Khmer"),
    *("Myanmar", "Tibetan", "Georgian", "Armenian", "Ethiopic"),
)
SCRIPT_NAMES = (*SCRIPTS, "other letters", "no letters")
SEARCHED = 256
"""Number of bytes of a token that are searched for its first letter."""


def script_codes(values: Iterable[bytes]) -> npt.NDArray[np.int8]:
    """Return the script of each token as an index of `SCRIPT_NAMES`.

    >>> [SCRIPT_NAMES[code] for code in script_codes([b" the", "1\\u0434a".encode(), b"42", b"\\xe2"])]
    ['Latin', 'Cyrillic', 'no letters', 'no letters']
    """
    texts = [value[:SEARCHED].decode("utf-8", "ignore") for value in values]
    letters = "".join(c for c in set().union(*texts) if unicodedata.category(c)[0] == "L")
    script_of = dict.fromkeys(letters, len(SCRIPTS))
    for code, script in enumerate(SCRIPTS):
        script_of.update(dict.fromkeys("".join(split(letters, rf"\p{{{script}}}+")), code))
    none = len(SCRIPTS) + 1
    return np.array([next((script_of[c] for c in text if c in script_of), none) for text in texts], np.int8)

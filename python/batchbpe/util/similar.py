"""A misspelled path → names in its folder that may be meant."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import PurePath

MOST_ENTRIES = 10_000
"""At most this many entries of a folder are compared."""
CUTOFF = 0.7
"""Similarity of a swap of two letters in a name of four, such as dtaa for data, is 0.75."""


def similar_names(path: str) -> list[str]:
    """Return up to three names of files and folders beside a path that does not exist, most similar first.

    >>> similar_names(__file__.replace("similar", "simliar"))
    ['similar.py']
    """
    from difflib import SequenceMatcher

    folder, name = os.path.split(path.rstrip("/" + os.sep))
    try:
        with os.scandir(folder or ".") as entries:
            names = [entry.name for entry in islice(entries, MOST_ENTRIES) if entry.name.isprintable()]
    except (OSError, ValueError):
        return []
    wanted = PurePath(name.lower())

    def similarity(other: str) -> float:
        found = PurePath(other.lower())
        pairs = (wanted.stem, found.stem), (wanted.name, found.name)  # a common suffix does not make them similar
        return min(SequenceMatcher(None, *pair).ratio() for pair in pairs)

    found = sorted((-similarity(other), other) for other in names) if name else []
    return [other for score, other in found[:3] if -score >= CUTOFF]

"""`Merges`: the merges of a model, as the core stores them."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from itertools import islice

from .._core import RankedTokens
from ..util.lazy import lazy

MAX_SHOWN = 10
"""Number of merges that `repr` shows."""


class Merges(Mapping[tuple[int, int], int]):
    """A read-only mapping from pairs of ids, in order of rank, to the ids they become.

    The core stores the merges. A dict of them is built on first use, since most tokenizers only encode, and never
    need it.

    >>> merges = Merges(RankedTokens(range(256), {(97, 97): 256, (256, 98): 257}))
    >>> merges[256, 98]
    257
    >>> merges
    Merges({(97, 97): 256, (256, 98): 257})
    """

    def __init__(self, ranked: RankedTokens) -> None:
        """Wrap the tokens of the core."""
        self.ranked = ranked

    @lazy
    def _dict(self) -> dict[tuple[int, int], int]:
        return self.ranked.merges()

    def __getitem__(self, pair: tuple[int, int]) -> int:
        """Return the id that a pair becomes."""
        return self._dict[pair]

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Iterate over the pairs."""
        return iter(self._dict)

    def __len__(self) -> int:
        """Return the number of merges."""
        return len(self.ranked) - 256

    def keys(self) -> KeysView[tuple[int, int]]:
        """Return the pairs."""
        return self._dict.keys()

    def values(self) -> ValuesView[int]:
        """Return the ids that the pairs become."""
        return self._dict.values()

    def items(self) -> ItemsView[tuple[int, int], int]:
        """Return the pairs and the ids they become."""
        return self._dict.items()

    def __repr__(self) -> str:
        """Show the number of merges and the first of them."""
        first = dict(islice(self.items(), MAX_SHOWN))
        more = f", {len(self) - MAX_SHOWN:,} more" if len(self) > MAX_SHOWN else ""
        return f"Merges({first}{more})"

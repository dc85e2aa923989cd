"""`PairTable`: the counts of all pairs of tokens, kept up to date while pairs are merged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from .. import _core
from ..arguments import check_bool, check_integer, check_threads
from ..choices import Ties
from ..counts import ChunkCounts
from ..errors import ArgumentError, ArgumentTypeError, DataError, listed
from ..formats.byte_level import to_byte_level
from ..model import Model
from ..policies import Candidates, Ids, PairCounts
from ..policies.vocab import as_ids

Top = tuple[Ids, Ids, PairCounts]
"""First tokens, last tokens and counts of pairs."""
PairsLike = tuple[Any, ...] | Candidates | Sequence[tuple[int, int]] | npt.NDArray[Any]
"""Pairs as `PairTable` accepts them: what `top` returns, candidates, or pairs of ids."""


class PairTable:
    """The pairs of adjacent tokens in chunks, weighted by the counts of the chunks: what the training loop works on.

    Chunks start as bytes, or as the tokens of `base`. Merging a pair makes a token with the next id.

    >>> table = PairTable(ChunkCounts.count(["aaabdaaabac"]))
    >>> first, last, count = table.top(2)
    >>> first.tolist(), last.tolist(), count.tolist()
    ([97, 97], [97, 98], [2, 2])
    >>> tokens, merged = table.merge([(97, 97)])
    >>> tokens.tolist(), merged.tolist(), table.token_counts([97, 256]).tolist()
    ([256], [2], [3, 2])
    >>> table.split([256])
    >>> table.count([(97, 97), (256, 97)]).tolist(), table.lengths.tolist()
    ([2, 0], [11])
    """

    def __init__(
        self,
        counts: ChunkCounts | Mapping[str, ChunkCounts],
        *,
        base: Model | None = None,
        overlapping: bool = False,
        ties: Ties = "ids",
        expected_merges: int | None = None,
        threads: int | None = None,
    ) -> None:
        """Create a table of chunk counts.

        Parameters
        ----------
        counts: chunk counts, or a dict of them: groups, such as languages, whose counts are also known separately.
        base: model whose stop words are left out, and whose merges are applied first.
        overlapping: count "aa" four times in "aaaaa" instead of twice.
        ties: order of pairs with equal counts: ids (smallest first) or huggingface.
        expected_merges: about how many merges will be made, if known. Rare pairs then take less memory.
        threads: number of threads; all cores by default.

        """
        groups = {"": counts} if isinstance(counts, ChunkCounts) else counts
        split = _common_split(groups)
        check_bool("overlapping", overlapping)
        check_threads(threads)
        if ties not in get_args(Ties):
            raise ArgumentError("ties", ties, f"must be one of {', '.join(map(repr, get_args(Ties)))}")
        if expected_merges is not None:
            check_integer("expected_merges", expected_merges, least=0)
        if base is not None and base.split != split:
            raise DataError(f"the counts were made with the pattern {split}, but base has {base.split}")
        parts = [each.arrays for each in groups.values()]
        data, offsets, sizes = parts[0].data, parts[0].offsets, [len(each.counts) for each in parts]
        if len(parts) > 1:
            # A part may be the beginning of an array: its offsets say where it ends.
            data = np.concatenate([each.data[each.offsets[0] : each.offsets[-1]] for each in parts])
            lengths = np.concatenate([np.diff(each.offsets) for each in parts])
            offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        self._groups = tuple(groups)
        only_bytes = base is None or (not base.merges and base.byte_ids == tuple(range(256)))
        self._core = _core.PairTable.from_chunks(
            data,
            offsets,
            np.concatenate([each.counts for each in parts]) if len(parts) > 1 else parts[0].counts,
            sizes,
            list(base.stop_words) if base and only_bytes else [],
            256 if base is None else base.next_id,
            _core.MAX_MERGES if expected_merges is None else expected_merges,
            overlapping,
            threads,
            None if base is None or only_bytes else base.encoder(),
            _huggingface_ranks(base) if ties == "huggingface" else None,
        )

    @classmethod
    def of_core(cls, table: _core.PairTable) -> PairTable:
        """Wrap a table of the core, of one group."""
        created = cls.__new__(cls)
        created._groups, created._core = ("",), table
        return created

    @property
    def groups(self) -> Sequence[str]:
        """The names of the groups, or "" if there are none."""
        return self._groups

    @property
    def lengths(self) -> PairCounts:
        """The number of tokens in each group."""
        return np.array(self._core.lengths, np.int64)

    def __repr__(self) -> str:
        """Show the number of tokens, by group if there are groups."""
        lengths = dict(zip(self.groups, self.lengths.tolist(), strict=True))
        return f"PairTable(tokens={lengths.get('', lengths)}, next_id={self.next_id})"

    @property
    def next_id(self) -> int:
        """The id that the next new token will get."""
        return self._core.next_id

    def top(self, n: int, group: str | None = None) -> Top:
        """Return the n most frequent pairs, in all groups together or in one: highest counts first, then smallest ids.

        There are fewer than n if there are no more pairs.
        """
        check_integer("n", n, least=0)
        return self._core.top(min(n, 1 << 62), self._number(group))

    def count(self, pairs: PairsLike, group: str | None = None) -> PairCounts:
        """Return how often each pair occurs, in all groups together or in one."""
        return self._core.count(*_arrays(pairs), self._number(group))

    def count_by_group(self, pairs: PairsLike) -> PairCounts:
        """Return how often each pair occurs in each group: a row per pair, a column per group."""
        arrays = _arrays(pairs)
        return np.stack([self._core.count(*arrays, number) for number in range(len(self._groups))], axis=1)

    def token_counts(self, tokens: Ids | Sequence[int] | None = None) -> PairCounts:
        """Return how often each of these tokens occurs, by default all tokens by id."""
        return self._core.token_counts(None if tokens is None else as_ids("tokens", tokens))

    def merge(self, pairs: PairsLike, *, absent: bool = False) -> tuple[Ids, PairCounts]:
        """Merge pairs that cannot overlap, all at once. Return the token that each became, and how often.

        New tokens get the next ids. A pair that was merged before, and split, becomes the same token again. A pair that
        does not occur is an error unless `absent` is true; it gets a token that does not occur.
        """
        return self._core.merge(*_arrays(pairs), absent)

    def split(self, tokens: Ids | Sequence[int]) -> None:
        """Undo merges: replace these tokens by the pairs they were made from, everywhere.

        Other tokens that were made from these stay as they are.
        """
        self._core.split(as_ids("tokens", tokens))

    def forget(self, pairs: PairsLike) -> None:
        """Exclude pairs from `top` and `count` from now on. They can no longer be merged."""
        self._core.forget(*_arrays(pairs))

    def merge_serially(self, n: int) -> Top:
        """Merge the most frequent pair, n times. Return the pairs: fewer if there are no more."""
        return self._core.merge_serially(n)

    def _number(self, group: str | None) -> int | None:
        if group is None:
            return None
        if self._groups == ("",):
            raise ArgumentError("group", group, "needs groups", remedy="pass a dict of them")
        if group not in self._groups:
            raise ArgumentError("group", group, f"must be one of {listed(self._groups)}")
        return self._groups.index(group)


def _common_split(groups: Any) -> Any:
    """Return how the chunks of all groups were made. Raise if it differs."""
    if not isinstance(groups, Mapping) or not groups:
        raise ArgumentTypeError("counts", groups, "must be ChunkCounts, or a dict of names and ChunkCounts")
    for name, counts in groups.items():
        if not isinstance(counts, ChunkCounts):
            raise ArgumentTypeError(f"counts[{name!r}]", counts, "must be ChunkCounts", remedy="see ChunkCounts.count")
    first, *others = groups
    for name in others:
        if groups[name].split != groups[first].split:
            reason = f"must have the pattern of counts[{first!r}], {groups[first].split}"
            raise ArgumentError(f"counts[{name!r}]", str(groups[name].split), reason)
    return groups[first].split


def _arrays(pairs: PairsLike) -> tuple[Ids, Ids]:
    if isinstance(pairs, Candidates):
        return np.ascontiguousarray(pairs.first), np.ascontiguousarray(pairs.last)
    if isinstance(pairs, tuple) and len(pairs) in (2, 3) and isinstance(pairs[0], np.ndarray):
        return as_ids("pairs", pairs[0]), as_ids("pairs", pairs[1])
    array = np.asarray(pairs if len(pairs) else np.zeros((0, 2), np.uint32))
    if array.ndim != 2 or array.shape[1] != 2:
        raise ArgumentTypeError("pairs", pairs, "must be a list of pairs of ids")
    first, last = (as_ids("pairs", array[:, side]) for side in range(2))
    return first, last


def _huggingface_ranks(base: Model | None) -> list[int]:
    """Return the rank of each id among pairs with equal counts, up to the last single byte.

    Hugging Face's trainer compares ids as well, but its bytes have ids in the order of their byte-level characters.

    >>> ranks = _huggingface_ranks(None)
    >>> ranks[ord("!")], ranks[ord("a")], ranks[ord(" ")]
    (0, 64, 220)
    """
    ids = range(256) if base is None else base.byte_ids
    single = {token: to_byte_level(bytes([byte])) for byte, token in enumerate(ids) if token is not None}
    ranks = list(range(max(single) + 1))
    for rank, token in zip(sorted(single), sorted(single, key=single.__getitem__), strict=True):
        ranks[token] = rank
    return ranks

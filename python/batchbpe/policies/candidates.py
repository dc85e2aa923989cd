"""`Candidates`: what a policy receives and returns, and `MergedBatch`: what has become of its choice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from ..arguments import check_function, check_integer
from ..errors import ArgumentError, ArgumentTypeError
from .vocab import GrowingVocab, Ids, PairCounts, as_ids

if TYPE_CHECKING:
    from typing_extensions import Self

Mask = npt.NDArray[np.bool_]
MAX_SHOWN = 10
"""Number of pairs that are displayed."""


class PairSource(Protocol):
    """Where candidates come from: the part of `PairTable` that policies use."""

    @property
    def groups(self) -> Sequence[str]:
        """The names of the groups."""

    @property
    def lengths(self) -> PairCounts:
        """The number of tokens in each group."""

    def top(self, n: int, group: str | None = None) -> tuple[Ids, Ids, PairCounts]:
        """Return the n most frequent pairs: first tokens, last tokens, counts."""

    def count_by_group(self, pairs: Candidates) -> PairCounts:
        """Return how often each pair occurs in each group: a row per pair."""

    def token_counts(self, tokens: Ids) -> PairCounts:
        """Return how often each of these tokens occurs."""

    def forget(self, pairs: Candidates) -> None:
        """Exclude these pairs from now on."""

    def split(self, tokens: Ids) -> None:
        """Replace tokens by the pairs they were made from, everywhere."""


@dataclass(frozen=True, repr=False)
class Candidates:
    """Pairs of tokens that could be merged, as parallel arrays, best first.

    `candidates[mask]`, `candidates[indices]` and `candidates[:n]` are candidates again. This is also how a policy
    chooses: it returns some of the candidates, in the order in which they receive their ids.
    """

    first: Ids
    last: Ids
    count: PairCounts
    """How often each pair occurs: signed, so that differences are exact."""
    vocab: GrowingVocab
    """The bytes of each token, by id."""
    source: PairSource
    is_last: bool = False
    """Whether training ends here; see `stop`."""

    @classmethod
    def best(cls, source: PairSource, n: int, vocab: GrowingVocab, group: str | None = None) -> Candidates:
        """Return the n most frequent pairs."""
        return Candidates(*source.top(n, group), vocab, source)

    def __len__(self) -> int:
        """Return the number of candidates."""
        return len(self.first)

    def __getitem__(self, which: Any) -> Self:
        """Return some of the candidates: by slice, mask, array of indices, or one index."""
        which = [which] if isinstance(which, int | np.integer) else which
        return replace(self, first=self.first[which], last=self.last[which], count=self.count[which])

    def __repr__(self) -> str:
        """Show the first pairs, and how many there are."""
        from ..analysis.tables import text_table

        return "\n".join([text_table(self._table()), *self._more()])

    def _repr_html_(self) -> str:
        """Display the first pairs in a notebook, and how many there are."""
        from ..analysis.tables import notebook_tables

        return "".join([notebook_tables([self._table()]), *self._more()])

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """Return a row for each of the first pairs."""
        from ..analysis.display import quoted_token

        shown = self[:MAX_SHOWN]
        rows = [
            [f"{first} {quoted_token(self.vocab[first])}", f"{last} {quoted_token(self.vocab[last])}", f"{count:,}"]
            for (first, last), count in zip(shown.tuples, shown.count.tolist(), strict=True)
        ]
        return ["first", "last", "count"], rows

    def _more(self) -> list[str]:
        return [f"… {len(self) - MAX_SHOWN:,} more pairs"] * (len(self) > MAX_SHOWN)

    @property
    def merged_length(self) -> npt.NDArray[np.int64]:
        """The number of bytes that each pair would have as one token."""
        return self.vocab.lengths[self.first] + self.vocab.lengths[self.last]

    @property
    def merged_bytes(self) -> list[bytes]:
        """The bytes that each pair would have as one token."""
        return [self.vocab[first] + self.vocab[last] for first, last in self.tuples]

    @property
    def tuples(self) -> list[tuple[int, int]]:
        """The pairs as tuples of Python integers."""
        return list(zip(self.first.tolist(), self.last.tolist(), strict=True))

    @property
    def first_count(self) -> PairCounts:
        """How often the first token of each pair occurs now."""
        return self.source.token_counts(self.first)

    @property
    def last_count(self) -> PairCounts:
        """How often the last token of each pair occurs now."""
        return self.source.token_counts(self.last)

    @property
    def groups(self) -> Sequence[str]:
        """The names of the groups that are trained on. One group, "", if there are none."""
        return self.source.groups

    @property
    def count_by_group(self) -> PairCounts:
        """How often each pair occurs in each group: a row per pair, a column per group."""
        return self.source.count_by_group(self)

    @property
    def lengths(self) -> PairCounts:
        """The number of tokens in each group now."""
        return self.source.lengths

    @property
    def merges_remaining(self) -> int:
        """The number of tokens that are still to be made."""
        return self.vocab.merges_remaining

    @property
    def next_id(self) -> int:
        """The id of the next token."""
        return self.vocab.next_id

    def more(self, n: int, group: str | None = None) -> Candidates:
        """Return the n most frequent pairs instead of these, by default in all groups together.

        With a group, pairs are sorted by how often they occur in it, which is their `count`.
        """
        check_integer("n", n, least=0)
        return Candidates.best(self.source, n, self.vocab, group)

    def pick(self, pairs: Sequence[tuple[int, int]]) -> Candidates:
        """Return these pairs of ids instead, in this order, with their counts in all groups together.

        This is how a policy returns pairs that `more` found in several groups.
        """
        array = np.asarray(pairs if len(pairs) else np.zeros((0, 2), np.uint32))
        if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
            raise ArgumentTypeError("pairs", pairs, "must be a list of pairs of ids")
        first, last = (as_ids("pairs", array[:, side]) for side in range(2))
        picked = replace(self, first=first, last=last, count=np.zeros(len(array), np.int64))
        return replace(picked, count=picked.count_by_group.sum(axis=1))

    def stop(self) -> Self:
        """Return a choice that ends training, without merging anything."""
        return replace(self[:0], is_last=True)

    def keep(self, wanted: Callable[[Candidates], Mask]) -> Candidates:
        """Veto the pairs for which `wanted` is false and replace them with the next most frequent pairs.

        A veto lasts for the rest of training, so the result of `wanted` must depend only on the two tokens. It receives
        several pairs at once, and the same pair in several batches. The result is empty if no other pairs are left.
        """
        check_function("wanted", wanted)
        n = len(self)
        kept: Candidates = self
        while len(kept):
            answer = wanted(kept)
            mask = np.asarray(answer, dtype=bool)
            if mask.shape != (len(kept),):
                raise ArgumentError("wanted", answer, f"must return one boolean for each pair ({len(kept)})")
            if mask.all():
                break
            self.source.forget(kept[~mask])
            kept = self.more(n)
        return kept


@dataclass(frozen=True, repr=False)
class MergedBatch(Candidates):
    """The pairs that were just merged: what the method `revise` of a policy receives, if it has one.

    `count` is how often each was really merged, and `first_count` and `last_count` are what is left of their tokens.
    """

    token: Ids = field(default_factory=lambda: np.zeros(0, np.uint32))
    """The ids that the pairs became."""

    def __getitem__(self, which: Any) -> Self:
        """Return some of the pairs."""
        which = [which] if isinstance(which, int | np.integer) else which
        return replace(super().__getitem__(which), token=self.token[which])

    def _table(self) -> tuple[list[str], list[list[str]]]:
        header, rows = super()._table()
        tokens = map(str, self.token.tolist())
        return ["token", *header], [[token, *row] for token, row in zip(tokens, rows, strict=False)]

    @property
    def best_count(self) -> int:
        """How often the most frequent pair occurs now; 0 if there are no pairs."""
        return int(self.source.top(1)[2].sum())

    @property
    def hidden(self) -> Ids:
        """The hidden tokens, in the order in which they were hidden."""
        return np.array(list(self.vocab.hidden), np.uint32)

    def token_counts(self, tokens: Ids) -> PairCounts:
        """Return how often each of these tokens occurs now."""
        return self.source.token_counts(tokens)

    def hide(self, tokens: Ids) -> None:
        """Make new tokens hidden: they remain steps to others, but get no id, and another token takes their place.

        Training continues with them; in the model, they are `Model.hidden`.
        """
        self.vocab.hide(tokens)

    def show(self, tokens: Ids) -> None:
        """Give hidden tokens an id again, in this order, as long as tokens are still wanted."""
        self.vocab.show(tokens)

    def split(self, tokens: Ids) -> None:
        """Hide new tokens, and replace them by the pairs they were made from, everywhere.

        If such a pair is merged again, it becomes the same token, which is shown again.
        """
        self.vocab.hide(tokens)
        if len(tokens):
            self.source.split(tokens)

"""Train phrases: tokens for sequences of chunks, such as " of the".

See https://batchbpe.github.io/batchbpe/phrases.html.

Runs of chunks are merged with the same table, loop and policies as chunks of bytes. Their chunks are already tokens,
and a phrase is used where it is the longest match, whichever pairs it was merged from.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from .. import _core
from .._core import MAX_ID
from ..arguments import check_integer
from ..boundaries import Boundaries, NotSupportedError, States, boundaries_of
from ..errors import ArgumentError, ArgumentTypeError, DataError, Setting, plural
from ..model import Model
from ..policies import Candidates, GrowingVocab, Ids, Mask, PairCounts, Policy, policy_name, resolve_policy
from ..training.loop import Batch, merge_in_batches
from ..training.options import Search
from ..training.table import PairTable
from .counting import RunArrays
from .runs import RunCounts

if TYPE_CHECKING:
    from ..formats import HasModel

logger = logging.getLogger(__name__)

Phrase = tuple[int, ...]
"""The ids of the chunks of a phrase."""


def train_phrases(
    model: Model | HasModel,
    runs: RunCounts,
    phrases: int,
    *,
    max_words: int = 4,
    policy: Policy | str = "continue_search",
    cap_divisor: int = 2,
    max_batch_size: int = 0,
    on_batch: Callable[[Batch], object] | None = None,
    threads: int | None = None,
) -> Model:
    """Add phrases to a model, or fewer if no pairs are left. Their ids follow the largest id of the model.

    Parameters
    ----------
    model: a model or tokenizer without phrases.
    runs: what to learn the phrases from, counted with the same model.
    phrases: number of phrases.
    max_words: largest number of chunks in a phrase.
    policy, cap_divisor, max_batch_size, on_batch, threads: as in `train`.

    Phrases whose text could be part of a chunk are left out, because tiktoken would use them there.

    >>> model = Model(split=r" ?\\w+", merges={(32, 98): 256})
    >>> dict(train_phrases(model, RunCounts.count("a b a b a b", model), 1).phrases)
    {(97, 256): 257}

    """
    model = getattr(model, "model", model)
    if not isinstance(model, Model):
        raise ArgumentTypeError("model", model, "must be a Tokenizer or a Model")
    if not isinstance(runs, RunCounts):
        raise ArgumentTypeError("runs", type(runs).__name__, "must be RunCounts", remedy="use RunCounts.count")
    check_integer("phrases", phrases, least=0)
    check_integer("max_words", max_words, least=2)
    search = Search(policy=policy, cap_divisor=cap_divisor, max_batch_size=max_batch_size)
    if model.phrases:
        problem = f"the model already has {plural(len(model.phrases), 'phrase')}"
        raise DataError(problem, remedy="use a model without phrases")
    if runs.arrays.model_id != model.tokens_id:
        raise DataError("the runs were counted with another model", remedy="count them with this one")
    if model.next_id + phrases > MAX_ID:
        reason = (
            f"must be at most {MAX_ID - model.next_id}: ids are below {MAX_ID}, and the largest is {model.next_id - 1}"
        )
        raise ArgumentError("phrases", phrases, reason)
    learned = learn_phrases(
        model,
        runs.arrays,
        phrases,
        max_words=max_words,
        search=search,
        on_batch=on_batch,
        threads=threads,
    )
    if learned is None:
        min_count = runs.arrays.min_count
        reason = f"the runs were cut at pairs that occur fewer than {min_count} times, but rarer ones are needed"
        raise DataError(reason, remedy=("count them with a smaller ", Setting("min_count")))
    if len(learned) < phrases:
        logger.warning("no pairs of chunks left: there are %d phrases, not %d", len(learned), phrases)
    training = {**model.training, "vocab_size": model.vocab_size + len(learned), "phrases": phrases}
    training |= {"phrase_chunks": runs.arrays.kind, "max_words": max_words}
    return replace(model, phrases=learned, training=training)


def learn_phrases(
    model: Model,
    runs: RunArrays,
    phrases: int,
    *,
    max_words: int,
    search: Search,
    on_batch: Callable[[Batch], object] | None,
    threads: int | None,
) -> dict[Phrase, int] | None:
    """Return the phrases that `train_phrases` adds, with their ids. The arguments must be valid.

    Return None if the result could differ from that of uncut runs, because pairs are needed at which runs were cut.
    """
    found, first_id = {*model.found_tokens.values()}, model.next_id
    known = {token: value for token, value in model.vocab.items() if token not in found}
    vocab = GrowingVocab(known, first_id, merges_wanted=phrases)
    pairs = _core.PairTable.from_runs(*runs[:3], first_id, phrases, runs.min_count, threads)
    table = _PhraseTable(PairTable.of_core(pairs), model, phrases, max_words, runs.min_count)
    merge_in_batches(
        table,
        vocab,
        search=search,
        policy=_without_repetition(resolve_policy(search.policy), table),
        on_batch=on_batch,
    )
    return None if table.is_cut_short else table.phrases


class _PhraseTable:
    """The core's table of pairs, without those that cannot become phrases.

    Left out are pairs with too many chunks, with the chunks of a phrase, or with a text that a chunk could contain.
    """

    def __init__(self, pairs: PairTable, model: Model, phrases: int, max_words: int, min_count: int) -> None:
        self.phrases: dict[Phrase, int] = {}
        self.is_cut_short = False
        """Whether pairs are needed that occur fewer than `min_count` times. From then on, there are no pairs."""
        self.groups, self.count_by_group, self.token_counts = pairs.groups, pairs.count_by_group, pairs.token_counts
        self.forget, self.split = pairs.forget, pairs.split
        self._pairs, self._max_words, self._min_count = pairs, max_words, min_count
        self._first_id, n_ids = model.next_id, model.next_id + phrases
        self._chunks_of: dict[int, Phrase] = {}
        """The chunks of each phrase, by id."""
        self._words = np.ones(n_ids, np.int64)
        """The number of chunks of each token."""
        self._waiting: dict[Phrase, list[tuple[Phrase, Phrase]]] = {}
        """Phrases in two parts, by the part that is not a token yet."""
        self._is_hard: Callable[[Ids, Ids], Mask] = lambda first, _: np.ones(len(first), bool)
        with suppress(NotSupportedError):  # phrases of such a pattern cannot be exported, so any will do
            self._is_hard = _HardBoundaries(boundaries_of(model.pattern), model.vocab, n_ids)

    @property
    def lengths(self) -> PairCounts:
        return self._pairs.lengths

    def top(self, n: int, group: str | None = None) -> tuple[Ids, Ids, PairCounts]:
        while True:
            first, last, count = self._pairs.top(n, group)
            if self._min_count > 1 and (len(count) < n or (count < self._min_count).any()):
                self.is_cut_short = True
            if self.is_cut_short:
                return first[:0], last[:0], count[:0]
            wanted = self._is_wanted(first, last)
            if wanted.all():
                return first, last, count
            self.forget((first[~wanted], last[~wanted]))

    def _is_wanted(self, first: Ids, last: Ids) -> Mask:
        is_short: Mask = self._words[first] + self._words[last] <= self._max_words
        return is_short & self._is_hard(first, last)

    def chunks(self, first: int, last: int) -> Phrase:
        """Return the chunks of a pair."""
        return self._chunks_of.get(first, (first,)) + self._chunks_of.get(last, (last,))

    def merge(self, pairs: Candidates) -> tuple[Ids, PairCounts]:
        merged = self._pairs.merge(pairs)
        repeated: list[tuple[int, int]] = []
        for pair in pairs.tuples:
            token, chunks = self._first_id + len(self._chunks_of), self.chunks(*pair)
            self.phrases[chunks] = token
            self._chunks_of[token] = chunks
            self._words[token] = len(chunks)
            repeated += self._repeated(chunks)
        self.forget(repeated)
        return merged

    def _repeated(self, new: Phrase) -> Iterator[tuple[int, int]]:
        """Yield the pairs that have the chunks of a phrase, now that this or a part of it is a new phrase."""
        splits = [(new[:end], new[end:]) for end in range(1, len(new))] if len(new) > 2 else []
        for parts in (*splits, *self._waiting.pop(new, ())):
            missing = next((part for part in parts if len(part) > 1 and part not in self.phrases), None)
            if missing is not None:
                self._waiting.setdefault(missing, []).append(parts)
            else:
                first, last = (part[0] if len(part) == 1 else self.phrases[part] for part in parts)
                yield first, last


def _without_repetition(policy: Policy, table: _PhraseTable) -> Policy:
    """Return a policy that leaves out pairs with the same chunks as a pair before them in the batch."""

    def choose(candidates: Candidates) -> Candidates:
        batch = policy(candidates)
        if not isinstance(batch, Candidates):
            return batch  # an error, which the training loop reports
        seen: set[Phrase] = set()
        mask = np.ones(len(batch), bool)
        for index, pair in enumerate(batch.tuples):
            chunks = table.chunks(*pair)
            mask[index] = chunks not in seen
            seen.add(chunks)
        return batch[mask]

    choose.__name__ = policy_name(policy)
    return choose


class _HardBoundaries:
    """Tells between which tokens there is always a boundary: no chunk can contain the text of both.

    Pairs of other tokens are not used as phrases, because they could not be exported. If no chunk contains a text, none
    contains a longer text, so only pairs of chunks have to be checked.
    """

    def __init__(self, boundaries: Boundaries, vocab: Mapping[int, bytes], n_ids: int) -> None:
        self._boundaries, self._vocab = boundaries, vocab
        self._numbers: dict[States, int] = {frozenset(): 0}
        """Numbers for the states after the text of a token."""
        self._end = np.full(n_ids, -1, np.int32)
        """The number of the states after each token, from anywhere in a chunk; -1 if it is not known yet."""
        self._first = np.full(n_ids, boundaries.n_classes, np.int32)
        """The class of the first character of each token, or one more for phrases."""
        self._continues = np.zeros((1, boundaries.n_classes + 1), bool)
        """Whether a chunk can continue with a class, by the number of the states before it."""
        self._is_inside: dict[tuple[int, int], bool] = {}

    def __call__(self, first: Ids, last: Ids) -> Mask:
        """Return which pairs have a text that cannot be part of a chunk."""
        tokens = np.concatenate([first, last])
        for token in np.unique(tokens[self._end[tokens] < 0]).tolist():
            self._add(token)
        is_hard: Mask = ~self._continues[self._end[first], self._first[last]]
        for index in np.flatnonzero(~is_hard).tolist():
            pair = int(first[index]), int(last[index])
            if pair not in self._is_inside:
                text = b"".join(self._vocab[token] for token in pair).decode(errors="replace")
                self._is_inside[pair] = self._boundaries.is_inside(text)
            is_hard[index] = not self._is_inside[pair]
        return is_hard

    def _add(self, token: int) -> None:
        """Look at a token for the first time."""
        self._end[token] = 0
        if token not in self._vocab:
            return  # a phrase
        boundaries = self._boundaries
        classes = boundaries.classes(self._vocab[token].decode(errors="replace"))
        states = boundaries.after(boundaries.anywhere, classes)
        if states not in self._numbers:
            self._numbers[states] = len(self._numbers)
            row = [bool(boundaries.after(states, [number])) for number in range(boundaries.n_classes)]
            self._continues = np.vstack([self._continues, [*row, False]])
        self._end[token], self._first[token] = self._numbers[states], classes[0]

"""Train phrases: tokens for sequences of chunks, such as " of the". See docs/phrases.md.

A run of chunks is merged like a chunk of bytes: the same table, loop and policies. Only the chunks are tokens already,
and a phrase is used where it is the longest match, whichever pairs it was merged from.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from .._core import MAX_ID, PairTable
from ..arguments import check_integer
from ..boundaries import Boundaries, NotSupportedError, States, boundaries_of
from ..errors import ArgumentError, ArgumentTypeError, DataError, Setting, plural
from ..model import Model
from ..policies import Candidates, Counts, GrowingVocab, Ids, Mask, Policy, resolve_policy
from ..training.loop import Batch, merge_in_batches
from ..training.options import Search
from .runs import RunCounts

if TYPE_CHECKING:
    from ..training.options import HasModel

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
        raise DataError(f"the model already has {plural(len(model.phrases), 'phrase')}", remedy="use one without")
    if runs.arrays.model_id != model.tokens_id:
        raise DataError("the runs were counted with another model", remedy="count them with this one")
    if model.n_vocab + phrases > MAX_ID:
        reason = (
            f"must be at most {MAX_ID - model.n_vocab}: ids are below {MAX_ID}, and the largest is {model.n_vocab - 1}"
        )
        raise ArgumentError("phrases", phrases, reason)
    learned = learn_phrases(
        model,
        runs,
        phrases,
        first_id=model.n_vocab,
        max_words=max_words,
        search=search,
        on_batch=on_batch,
        threads=threads,
    )
    if len(learned) < phrases:
        logger.warning("no pairs of chunks left: there are %d phrases, not %d", len(learned), phrases)
    training = {**model.training, "vocab_size": model.vocab_size + len(learned), "phrases": phrases}
    training |= {"phrase_chunks": runs.arrays.kind, "max_words": max_words}
    return replace(model, phrases=learned, training=training)


def learn_phrases(
    model: Model,
    runs: RunCounts,
    phrases: int,
    *,
    first_id: int,
    max_words: int,
    search: Search,
    on_batch: Callable[[Batch], object] | None,
    threads: int | None,
) -> dict[Phrase, int]:
    """Return the phrases that `train_phrases` adds, with ids from `first_id` on. The arguments must be valid."""
    found = {*model.found_tokens.values()}
    vocab = GrowingVocab({token: value for token, value in model.vocab.items() if token not in found}, first_id)
    chunks_of: dict[int, Phrase] = {token: (token,) for token in vocab}
    joints = _Joints(model, first_id + phrases)
    table = PairTable.from_runs(*runs.arrays[:3], first_id, phrases, runs.arrays.min_count, threads)
    choose = _Choice(resolve_policy(search.policy), chunks_of, max_words, joints)
    merge_in_batches(
        _CutTable(table, runs.arrays.min_count),
        vocab,
        phrases,
        search=search,
        policy=choose,
        on_batch=on_batch,
    )
    choose.update(vocab)
    return {chunks_of[token]: token for token in range(first_id, vocab.next_id)}


class _CutTable:
    """A table of runs that were cut. It raises as soon as a result could differ from that of uncut runs."""

    def __init__(self, table: PairTable, min_count: int) -> None:
        self._table, self._min_count = table, min_count
        self.merge, self.forget = table.merge, table.forget

    def top(self, n: int) -> tuple[Ids, Ids, Counts]:
        first, last, count = self._table.top(n)
        if self._min_count > 1 and (len(count) < n or count[-1] < self._min_count):
            raise TooFewRunsError.of(self._min_count)
        return first, last, count


class TooFewRunsError(DataError):
    """Runs were cut at pairs that a phrase would need.

    >>> raise TooFewRunsError.of(10)
    Traceback (most recent call last):
    ...
    batchbpe.phrases.learning.TooFewRunsError: the runs were cut at pairs that occur fewer than 10 times, but rarer ones are needed; count them with a smaller min_count
    """  # noqa: E501  the last line is an error message

    @classmethod
    def of(cls, min_count: int) -> TooFewRunsError:
        """Create the error for runs that were cut with `min_count`."""
        reason = f"the runs were cut at pairs that occur fewer than {min_count} times, but rarer ones are needed"
        return cls(reason, remedy=("count them with a smaller ", Setting("min_count")))


class _Joints:
    """Tells which pairs of tokens have a text that a chunk could contain. As phrases, they could not be exported.

    A text that contains one that no chunk contains is in no chunk either, so only pairs of chunks have to be checked.
    """

    def __init__(self, model: Model, ids: int) -> None:
        self.ids, self._vocab = ids, model.vocab
        self._boundaries: Boundaries | None = None
        try:
            self._boundaries = boundaries_of(model.pattern)
        except NotSupportedError:  # then nothing can be exported
            return
        self._nodes: dict[States, int] = {frozenset(): 0}
        """Numbers for the states after the text of a token."""
        self._end = np.full(ids, -1, np.int32)
        """The number of the states after each token, from anywhere in a chunk; -1 if it is not known yet."""
        self._first = np.full(ids, self._boundaries.n_classes, np.int32)
        """The class of the first character of each token, or one more for phrases."""
        self._continues = np.zeros((1, self._boundaries.n_classes + 1), bool)
        """Whether a chunk can continue with a class, by the number of the states before it."""
        self._known: dict[tuple[int, int], bool] = {}

    def is_hard(self, candidates: Candidates) -> Mask:
        """Return which pairs have a text that cannot be part of a chunk."""
        if self._boundaries is None:
            return np.ones(len(candidates), bool)
        pairs = np.concatenate([candidates.first, candidates.last])
        for token in np.unique(pairs[self._end[pairs] < 0]).tolist():
            self._add(self._boundaries, token)
        hard: Mask = ~self._continues[self._end[candidates.first], self._first[candidates.last]]
        for place in np.flatnonzero(~hard).tolist():
            pair = int(candidates.first[place]), int(candidates.last[place])
            if pair not in self._known:
                text = b"".join(self._vocab[each] for each in pair).decode(errors="replace")
                self._known[pair] = self._boundaries.is_inside(text)
            hard[place] = not self._known[pair]
        return hard

    def _add(self, boundaries: Boundaries, token: int) -> None:
        """Look at a token for the first time."""
        self._end[token] = 0
        if token not in self._vocab:
            return  # a phrase
        classes = boundaries.classes(self._vocab[token].decode(errors="replace"))
        states = boundaries.after(boundaries.anywhere, classes)
        if states not in self._nodes:
            self._nodes[states] = len(self._nodes)
            row = [bool(boundaries.after(states, [number])) for number in range(boundaries.n_classes)]
            self._continues = np.vstack([self._continues, [*row, False]])
        self._end[token], self._first[token] = self._nodes[states], classes[0]


class _Choice:
    """A policy that vetoes pairs with too many chunks, or with the chunks of a phrase, and asks another to choose."""

    def __init__(self, policy: Policy, chunks_of: dict[int, Phrase], max_words: int, joints: _Joints) -> None:
        functools.update_wrapper(self, policy)
        self._policy, self._chunks_of, self._max_words, self._joints = policy, chunks_of, max_words, joints
        self._token_of = {chunks: token for token, chunks in chunks_of.items()}
        self._phrases = 0
        self._words = np.ones(joints.ids, np.int64)
        """The number of chunks of each token."""
        self._waiting: dict[Phrase, list[tuple[Phrase, Phrase]]] = {}
        """The two parts of phrases, by the part that is not a token yet."""

    def __call__(self, candidates: Candidates) -> Candidates:
        vocab = candidates.vocab
        assert isinstance(vocab, GrowingVocab)
        unwanted = self.update(vocab)
        if unwanted:
            first, last = (np.array(tokens, np.uint32) for tokens in zip(*unwanted, strict=True))
            candidates.source.forget(first, last)
            candidates = candidates.more(len(candidates))
        batch = self._policy(candidates.keep(self._is_wanted))
        return batch[self._unique(batch)] if isinstance(batch, Candidates) else batch

    def _is_wanted(self, candidates: Candidates) -> Mask:
        is_short: Mask = self._words[candidates.first] + self._words[candidates.last] <= self._max_words
        return is_short & self._joints.is_hard(candidates)

    def _unique(self, batch: Candidates) -> Mask:
        """Return which pairs do not have the same chunks as one before them."""
        seen: set[Phrase] = set()
        mask = np.ones(len(batch), bool)
        for place, (first, last) in enumerate(batch.tuples):
            chunks = self._chunks_of[first] + self._chunks_of[last]
            mask[place] = chunks not in seen
            seen.add(chunks)
        return mask

    def update(self, vocab: GrowingVocab) -> list[tuple[int, int]]:
        """Take note of new phrases. Return the other pairs that have the chunks of a phrase, as far as they are new."""
        first, last = vocab.merges_after(self._phrases)
        unwanted: list[tuple[int, int]] = []
        for token, pair in enumerate(zip(first, last, strict=True), start=vocab.next_id - len(first)):
            chunks = self._chunks_of[pair[0]] + self._chunks_of[pair[1]]
            self._chunks_of[token] = chunks
            self._token_of[chunks] = token
            self._words[token] = len(chunks)
            splits = [(chunks[:place], chunks[place:]) for place in range(1, len(chunks))] if len(chunks) > 2 else []
            for parts in (*splits, *self._waiting.pop(chunks, ())):
                missing = next((part for part in parts if part not in self._token_of), None)
                if missing is None:
                    unwanted.append((self._token_of[parts[0]], self._token_of[parts[1]]))
                else:
                    self._waiting.setdefault(missing, []).append(parts)
        self._phrases += len(first)
        return unwanted

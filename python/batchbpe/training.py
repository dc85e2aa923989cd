"""Train a model: check the options, count the data, and set up the training loop, which is in `merging`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import numpy as np

from ._core import MAX_ID, MAX_MERGES, PairTable
from .arguments import check_bool, check_function, check_integer
from .counts import ChunkCounts
from .data import corpus
from .data.limits import MAX_DOCUMENT_BYTES
from .data.sampling import Sampling
from .encoder import encoder_for
from .errors import ArgumentError, ArgumentTypeError, DataError, Message, Setting, plural, short
from .merges import Merges
from .merging import Batch, merge_in_batches, merge_serially
from .model import Model, check_special_tokens
from .patterns import describe_pattern, resolve_pattern
from .phrases import MAX_TEXT, PhraseOptions, TooFewRunsError, balance, learn_phrases, least_count
from .policies import Counts, GrowingVocab, Policy, policy_name, resolve_policy, serial
from .progress import training_bar
from .runs import ChunksOfPhrases, PhraseChunks, RunReader, check_rereadable

logger = logging.getLogger(__name__)
MAX_LOGGED_BATCHES = 1000
"""A model carries the log of its training if there were at most this many batches; usually there are about 250."""


class HasModel(Protocol):
    """A tokenizer."""

    @property
    def model(self) -> Model:
        """Its model."""


@dataclass(frozen=True)
class TrainingOptions:
    """The options of training. Invalid options raise an error here, before anything is counted."""

    vocab_size: int
    """Total number of tokens: 256 bytes, stop words, merges and special tokens."""
    stop_list_size: int = 0
    """Number of stop words: the most frequent chunks get whole-chunk tokens."""
    freq_cutoff: int = 1
    """Ignore chunks that occur fewer times."""
    special_tokens: Sequence[str] | Mapping[str, int] = ()
    """A list of names, which get the last ids, or a mapping from name to id."""
    cap_divisor: int = 2
    """Search at most `merges_remaining // cap_divisor` pairs per batch."""
    max_batch_size: int = 0
    """Search at most this many pairs per batch; 0 for no limit."""
    policy: Policy | str = "continue_search"
    """Chooses which of the pairs searched are merged: a function, or a name from `batchbpe.policies`."""
    overlapping: bool = False
    """Count "aa" four times in "aaaaa", as QuickTokenizer does, instead of twice."""
    base: Model | None = None
    """Model or tokenizer to extend. Its tokens keep their ids, except for special tokens listed in `special_tokens`."""

    def __post_init__(self) -> None:
        """Check everything that can be checked without the data."""
        object.__setattr__(self, "policy", resolve_policy(self.policy))
        check_special_tokens(self.special_tokens)
        check_bool("overlapping", self.overlapping)
        check_integer("vocab_size", self.vocab_size)
        for name, least in {"stop_list_size": 0, "freq_cutoff": 0, "cap_divisor": 1, "max_batch_size": 0}.items():
            check_integer(name, getattr(self, name), least)
        object.__setattr__(self, "base", getattr(self.base, "model", self.base))
        if self.base is not None and not isinstance(self.base, Model):
            raise ArgumentTypeError("base", self.base, "must be a Tokenizer or a Model")
        largest = min(MAX_ID, 256 + MAX_MERGES)
        if self.vocab_size > largest:
            raise ArgumentError("vocab_size", self.vocab_size, f"must be at most {largest}")
        if self.base:
            self._check_base(self.base)
        self._check_smallest()

    def _check_base(self, base: Model) -> None:
        missing = [name for name in base.special_tokens if name not in self.special_tokens]
        if self.special_tokens and missing:
            reason = ("must include the special tokens of ", Setting("base"), f", such as {short(missing[0])}")
            raise ArgumentError("special_tokens", list(self.special_tokens), reason)
        if isinstance(self.special_tokens, Mapping):
            for name, token in self.special_tokens.items():
                if token in base.vocab and token not in base.special_tokens.values():
                    raise ArgumentError(
                        "special_tokens", {name: token}, "must not have the ids of other tokens of base"
                    )
        if self.stop_list_size:
            reason = ("must be 0 with ", Setting("base"), ", since stop words come before merges")
            raise ArgumentError("stop_list_size", self.stop_list_size, reason)

    def _check_smallest(self) -> None:
        """Raise if the tokens that are known before counting do not fit."""
        special, base = len(self.all_special_tokens), self.base
        tokens = base.vocab_size - len(base.special_tokens) if base else 256
        if self.vocab_size < tokens + special:
            known = ("tokens of ", Setting("base")) if base else ("bytes",)
            parts = (f"{tokens} ", *known, f" + {plural(special, 'special token')}")
            reason: Message = (f"must be at least {tokens + special} (", *parts, ")")
            raise ArgumentError("vocab_size", self.vocab_size, reason)
        if base is None and isinstance(self.special_tokens, Mapping):
            first = self.vocab_size - special
            for name, token in self.special_tokens.items():
                if token < first:
                    reason = f"must have ids of at least {first} (bytes, stop words and merges have the lower ones)"
                    raise ArgumentError("special_tokens", {name: token}, reason)

    @property
    def all_special_tokens(self) -> Sequence[str] | Mapping[str, int]:
        """The special tokens, or if there are none those of the base, with their ids."""
        return self.special_tokens or (self.base.special_tokens if self.base else ())

    def as_metadata(self) -> dict[str, Any]:
        """Return what a model file records about its training."""
        plain = ("vocab_size", "stop_list_size", "freq_cutoff", "cap_divisor", "max_batch_size")
        numbers = {name: int(getattr(self, name)) for name in plain}
        base = {"base_vocab_size": self.base.vocab_size} if self.base else {}
        return numbers | base | {"policy": policy_name(self.policy), "overlapping": bool(self.overlapping)}


def train(
    data: corpus.Data | None = None,
    vocab_size: int | None = None,
    *,
    texts: str | Iterable[str] | None = None,
    files: corpus.PathLike | Iterable[corpus.PathLike] | None = None,
    pattern: str | None = None,
    stop_list_size: int = 0,
    freq_cutoff: int = 1,
    special_tokens: Sequence[str] | Mapping[str, int] = (),
    cap_divisor: int = 2,
    max_batch_size: int = 0,
    policy: Policy | str = "continue_search",
    overlapping: bool = False,
    base: Model | HasModel | None = None,
    phrases: int | Literal["auto"] = 0,
    phrase_chunks: PhraseChunks = "letters",
    max_words: int = 4,
    phrase_sample: float | None = None,
    text_column: str = "text",
    errors: Literal["strict", "replace"] = "strict",
    max_document_bytes: int = MAX_DOCUMENT_BYTES,
    sample: float = 1.0,
    seed: int = 0,
    limit_bytes: int | None = None,
    progress: Callable[[int], object] | bool | None = None,
    on_counts: Callable[[ChunkCounts], object] | None = None,
    on_batch: Callable[[Batch], object] | None = None,
    threads: int | None = None,
) -> Model:
    """Train a vocabulary of `vocab_size` tokens, or of fewer if no pairs are left to merge.

    Parameters
    ----------
    data, pattern, texts, files, text_column, errors, max_document_bytes, sample, seed, limit_bytes: what to train on;
        see `ChunkCounts.count`.
    vocab_size, …, base: how to train; see `TrainingOptions`.
    phrases, phrase_chunks, max_words, phrase_sample: tokens across chunks; see `PhraseOptions`.
    progress: True shows progress bars; a function is called with the number of bytes read so far.
    on_counts: called with the counts before training.
    on_batch: called with a `Batch` after each batch.
    threads: number of threads; all cores by default.

    >>> dict(train("aaabdaaabac", 259).merges)
    {(97, 97): 256, (97, 98): 257, (256, 257): 258}

    """
    if vocab_size is None:  # `data` is optional, so this must be too
        raise TypeError("vocab_size is required: the total number of tokens, such as 32768")
    options = TrainingOptions(
        vocab_size=vocab_size,
        stop_list_size=stop_list_size,
        freq_cutoff=freq_cutoff,
        special_tokens=special_tokens,
        cap_divisor=cap_divisor,
        max_batch_size=max_batch_size,
        policy=policy,
        overlapping=overlapping,
        base=base,  # type: ignore[arg-type]  # a tokenizer is replaced with its model
    )
    check_function("on_counts", on_counts)
    check_function("on_batch", on_batch)
    chosen = corpus.choose(data, texts, files)
    reading: dict[str, Any] = {"text_column": text_column, "errors": errors, "max_document_bytes": max_document_bytes}
    phrase_options = PhraseOptions(phrases, phrase_chunks, max_words, phrase_sample)
    folder = corpus.counts_folder(chosen)
    if folder:  # may hold far more rare chunks than fit into memory
        chosen = ChunkCounts.load(folder, freq_cutoff=options.freq_cutoff)
    if phrases:
        check_room(phrase_options, options)
        check_rereadable(chosen)
    counts = ChunkCounts.count(
        chosen,
        pattern_for(options, pattern),
        special_tokens=list(options.all_special_tokens),
        **reading,
        sample=sample,
        seed=seed,
        limit_bytes=limit_bytes,
        progress=progress,
        threads=threads,
    )
    if on_counts:
        on_counts(counts)
    if phrases:
        sampling = Sampling(sample, seed, limit_bytes)
        special_tokens = list(options.all_special_tokens)
        reader = RunReader(chosen, reading, sampling, special_tokens, progress is True, threads)
        return train_with_phrases(counts, options, phrase_options, reader, on_batch)
    with training_bar(show=progress is True) as show:
        handed_over = [counts]
        del data, chosen, counts  # so that training can free them
        return train_on_counts(handed_over.pop(), options, on_batch=both(show, on_batch), threads=threads)


def pattern_for(options: TrainingOptions, pattern: str | None) -> str | None:
    """Return the pattern to count with: the given one, or that of the base. They must agree.

    >>> pattern_for(TrainingOptions(300), "gpt2")
    'gpt2'
    """
    base = options.base
    if base is None or pattern is None:
        return base.pattern if base else pattern
    if resolve_pattern(pattern) != base.pattern:
        reason = ("must be the pattern of ", Setting("base"), f", {describe_pattern(base.pattern)}")
        raise ArgumentError("pattern", pattern, reason)
    return pattern


def train_on_counts(
    counts: ChunkCounts,
    options: TrainingOptions,
    *,
    on_batch: Callable[[Batch], object] | None = None,
    threads: int | None = None,
) -> Model:
    """Train on counts; see `train`.

    >>> len(train_on_counts(ChunkCounts.count("aaabdaaabac"), TrainingOptions(259)).vocab)
    259
    """
    handed_over = [counts]
    del counts
    model, _ = _train(handed_over.pop(), options, on_batch, threads)
    _warn_if_smaller(model, options.vocab_size)
    return model


def _train(
    counts: ChunkCounts,
    options: TrainingOptions,
    on_batch: Callable[[Batch], object] | None = None,
    threads: int | None = None,
) -> tuple[Model, Counts]:
    """Train on counts. Return the model, and how often each pair occurred when it was merged."""
    if not counts.unique:
        pattern = describe_pattern(counts.pattern)
        raise DataError(f"nothing to train on: the data is empty, or the pattern {pattern} matches none of it")
    base, skipped = _base_for(counts, options)
    special_tokens = options.all_special_tokens
    vocab = _initial_vocab(base, special_tokens)
    first_merge = vocab.next_id
    wanted = options.vocab_size - len(vocab) - len(special_tokens)
    _check_wanted(wanted, first_merge, len(base.stop_words), options)
    kept = counts.at_least(options.freq_cutoff).arrays
    if not len(kept.counts):
        reason = f"must be at most {counts.arrays.counts[0]}, the count of the most frequent chunk"
        raise ArgumentError("freq_cutoff", options.freq_cutoff, reason)
    encoder = encoder_for(base) if options.base else None
    table = PairTable.from_chunks(*kept[:3], skipped, first_merge, wanted, bool(options.overlapping), threads, encoder)
    metadata = options.as_metadata() | {"chunks_total": counts.total, "chunks_unique": counts.unique}
    del counts, kept  # most of the memory, unless the caller holds them

    batches: list[Batch] = []
    policy = resolve_policy(options.policy)
    if policy is serial:
        merge_serially(table, vocab, wanted, on_batch)
    else:
        merge_in_batches(
            table,
            vocab,
            wanted,
            cap_divisor=options.cap_divisor,
            max_batch_size=options.max_batch_size or options.vocab_size,
            policy=policy,
            on_batch=both(batches.append, on_batch),
        )
        metadata |= _log(batches, vocab.merge_counts)
    if not isinstance(special_tokens, Mapping):
        special_tokens = {name: token for token, name in enumerate(special_tokens, start=vocab.next_id)}
    merges = Merges(base.ranked.extended(*vocab.merges, first_merge))
    return replace(base, merges=merges, special_tokens=dict(special_tokens), training=metadata), vocab.merge_counts


def _warn_if_smaller(model: Model, vocab_size: int) -> None:
    if model.vocab_size < vocab_size:
        phrases = f" ({plural(len(model.phrases), 'phrase')})" if model.phrases else ""
        reached = f"{model.vocab_size} tokens{phrases}"
        logger.warning("no pairs left to merge: the vocabulary has %s, not %d", reached, vocab_size)


def _log(batches: Sequence[Batch], merge_counts: Counts) -> dict[str, Any]:
    """Return what a model file records about the batches: size, pairs searched, and the count of the last pair."""
    if len(batches) > MAX_LOGGED_BATCHES:
        return {}
    last = np.cumsum([batch.size for batch in batches], dtype=np.int64) - 1
    columns = {"size": [batch.size for batch in batches], "searched": [batch.searched for batch in batches]}
    return {"batches": columns | {"last_count": merge_counts[last].tolist()}}


def check_room(phrase_options: PhraseOptions, options: TrainingOptions) -> None:
    """Raise if a number of phrases leaves no room for the tokens that are known before counting.

    >>> check_room(PhraseOptions(50), TrainingOptions(300))
    Traceback (most recent call last):
    ...
    batchbpe.errors.ArgumentError: phrases must be at most 44, which vocab_size leaves, got 50
    """
    base = options.base
    if base and base.phrases:
        problem = f" already has {plural(len(base.phrases), 'phrase')}"
        raise DataError((Setting("base"), problem), remedy="use a model without phrases")
    known = base.vocab_size - len(base.special_tokens) if base else 256 + options.stop_list_size
    room = options.vocab_size - known - len(options.all_special_tokens)
    if phrase_options.phrases != "auto" and phrase_options.phrases > room:
        reason = (f"must be at most {room}, which ", Setting("vocab_size"), " leaves")
        raise ArgumentError("phrases", phrase_options.phrases, reason)


def train_with_phrases(
    counts: ChunkCounts,
    options: TrainingOptions,
    phrase_options: PhraseOptions,
    reader: RunReader,
    on_batch: Callable[[Batch], object] | None = None,
) -> Model:
    """Train on counts and on the text that was counted; see `train`.

    The result is a model trained with fewer tokens, with phrases added.
    """
    special_tokens, requested = options.all_special_tokens, options.vocab_size
    if options.base is None:  # then special tokens come after the phrases
        options = replace(options, special_tokens=(), vocab_size=options.vocab_size - len(special_tokens))
    share = phrase_options.phrase_sample
    if share is None:
        text_bytes = int(np.dot(counts.chunk_bytes.astype(np.float64), counts.arrays.counts.astype(np.float64)))
        share = min(1.0, MAX_TEXT / max(text_bytes, 1))
    reader = replace(reader, share=share)

    def run(vocab_size: int, on_batch: Callable[[Batch], object] | None) -> tuple[Model, Counts]:
        with training_bar(show=reader.progress) as show:
            return _train(counts, replace(options, vocab_size=vocab_size), both(show, on_batch), reader.threads)

    wanted, sketch = phrase_options.phrases, None
    if wanted == "auto":
        model, merge_counts = run(options.vocab_size, None)
        chunks = ChunksOfPhrases(model, phrase_options.phrase_chunks)
        unused = options.vocab_size - model.vocab_size  # if there are no more merges
        sketch = reader.sketch(chunks)
        wanted = balance(merge_counts, sketch.counters(), sketch.total / counts.total) + unused
    model, _ = run(options.vocab_size - wanted, on_batch)
    chunks = ChunksOfPhrases(model, phrase_options.phrase_chunks)
    sketch = sketch or reader.sketch(chunks)  # that of the larger vocabulary contains almost all pairs of the smaller
    first = _first_phrase(model, special_tokens, wanted)
    min_count = least_count(sketch.counters(), wanted)
    while True:
        batches: list[Batch] = []  # of this attempt
        try:
            with training_bar(show=reader.progress, unit="phrases") as show:
                phrases = learn_phrases(
                    model,
                    reader.runs(chunks, sketch, min_count),
                    wanted,
                    first_id=first,
                    max_words=phrase_options.max_words,
                    policy=options.policy,
                    cap_divisor=options.cap_divisor,
                    max_batch_size=options.max_batch_size,
                    on_batch=both(show, batches.append),
                    threads=reader.threads,
                )
            break
        except TooFewRunsError:
            min_count //= 2
    if on_batch:
        for batch in batches:
            on_batch(batch)
    if not isinstance(special_tokens, Mapping):
        special_tokens = {name: token for token, name in enumerate(special_tokens, start=first + len(phrases))}
    metadata: dict[str, Any] = {"vocab_size": int(requested), "phrases": wanted}
    metadata |= {"phrase_chunks": chunks.kind, "max_words": phrase_options.max_words, "phrase_sample": share}
    training = {**model.training, **metadata}
    model = replace(model, phrases=phrases, special_tokens=special_tokens, training=training)
    if phrase_options.phrases != "auto" and len(phrases) < wanted:
        logger.warning(
            "only %d of %d phrases were found: the vocabulary has %d tokens, not %d; use fewer phrases or 'auto'",
            len(phrases),
            wanted,
            model.vocab_size,
            requested,
        )
    else:
        _warn_if_smaller(model, requested)
    return model


def _first_phrase(model: Model, special_tokens: Sequence[str] | Mapping[str, int], phrases: int) -> int:
    """Return the id of the first phrase: after all merges, and after special tokens that have an id among them."""
    special = {*model.special_tokens.values()}
    first = 1 + max(token for token in model.vocab if token not in special)
    if isinstance(special_tokens, Mapping):
        while first in special_tokens.values():  # the last tokens of a base that has no new merges
            first += 1
        _check_free(special_tokens, first, phrases)
    return first


def both(
    show: Callable[[Batch], object] | None, on_batch: Callable[[Batch], object] | None
) -> Callable[[Batch], object]:
    """Return a function that calls both functions. Either may be None."""

    def after_batch(batch: Batch) -> None:
        if show:
            show(batch)
        if on_batch:
            on_batch(batch)

    return after_batch


def _base_for(counts: ChunkCounts, options: TrainingOptions) -> tuple[Model, list[int]]:
    """Return the model to start from, and the indices of the chunks that are stop words and need no merging."""
    if options.base is None:
        indices, words = counts.stop_words(options.stop_list_size)
        if len(words) < options.stop_list_size:
            found = plural(len(words), "chunk")
            logger.warning("only %s can become stop words; %d were requested", found, options.stop_list_size)
        stop_words = {word: token for token, word in enumerate(words, start=256)}
        return Model(pattern=counts.pattern, merges={}, stop_words=stop_words), indices
    if counts.pattern != options.base.pattern:
        raise DataError(
            f"the counts were made with the pattern {describe_pattern(counts.pattern)}, "
            f"but base has {describe_pattern(options.base.pattern)}"
        )
    return options.base, []


def _initial_vocab(base: Model, special_tokens: Sequence[str] | Mapping[str, int]) -> GrowingVocab:
    """Return the tokens of the base. Special tokens that keep their ids come before the new tokens, others after."""
    special_ids = set(base.special_tokens.values())
    tokens = {token: value for token, value in base.vocab.items() if token not in special_ids}
    given_ids = special_tokens.values() if isinstance(special_tokens, Mapping) else ()
    return GrowingVocab(tokens, max((*tokens, *(token for token in given_ids if token < base.n_vocab))) + 1)


def _check_wanted(wanted: int, first_merge: int, stop_words: int, options: TrainingOptions) -> None:
    """Raise unless there is room for the new tokens."""
    special_tokens = options.all_special_tokens
    if wanted < 0:  # only without a base: `TrainingOptions` knows the tokens of a base
        parts = f"256 bytes + {plural(stop_words, 'stop word')} + {plural(len(special_tokens), 'special token')}"
        reason = f"must be at least {options.vocab_size - wanted} ({parts})"
        raise ArgumentError("vocab_size", options.vocab_size, reason)
    if isinstance(special_tokens, Mapping):
        _check_free(special_tokens, first_merge, wanted)
    if first_merge + wanted > MAX_ID:
        raise ArgumentError("vocab_size", options.vocab_size, f"must leave all ids below {MAX_ID}")


def _check_free(special_tokens: Mapping[str, int], first: int, wanted: int) -> None:
    """Raise if a special token has one of the ids that new tokens need."""
    for name, token in special_tokens.items():
        if first <= token < first + wanted:
            reason = f"must not have the ids {first} to {first + wanted - 1}, which new tokens need"
            raise ArgumentError("special_tokens", {name: token}, reason)

"""Train merges and then phrases: from how much of the text, how many, and with which ids.

See https://batchbpe.github.io/batchbpe/phrases.html.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .._core import Sketch
from ..counts import ChunkCounts
from ..model import Model
from ..policies import PairCounts
from ..training.loop import Batch
from ..training.merges import both, train_merges, warn_if_smaller
from ..training.options import TrainingOptions
from ..util.progress import training_bar
from .counting import EligibleChunks, RunReader
from .learning import learn_phrases
from .options import PhraseOptions

logger = logging.getLogger(__name__)

Counters: TypeAlias = "npt.NDArray[np.uint32]"
"""The counters of a sketch: upper bounds on how often pairs of chunks occur."""
MAX_TEXT = 1 << 28
"""Bytes of text from which phrases are learned by default. More text hardly changes them."""
KEPT_PAIRS = 4
"""Runs are cut so that about this many times as many pairs remain as there will be phrases."""
PAIRS_PER_PHRASE = 1.7
"""The n-th phrase is about as frequent as the pair with this multiple of n as rank: merging some makes others rarer."""


def train_with_phrases(
    counts: ChunkCounts,
    options: TrainingOptions,
    phrase_options: PhraseOptions,
    reader: RunReader,
    on_batch: Callable[[Batch], object] | None = None,
) -> Model:
    """Train merges on counts, and phrases on the text that was counted; see `train`.

    https://batchbpe.github.io/batchbpe/phrases.html lists the steps.

    `on_batch` is called after each batch of merges. Batches of phrases are reported after an attempt to learn them has
    succeeded, so they arrive together.
    """
    complete, requested = options.completed, options.vocab_size
    room = requested - len(options.new_tokens)  # they follow the phrases
    options = replace(options, special_tokens=(), like=None, vocab_size=room)
    reader = replace(reader, fraction=phrase_options.phrase_sample or _default_fraction(counts))

    wanted, sketch = phrase_options.phrases, None
    if wanted == "auto":
        wanted, sketch = _balanced(counts, options, phrase_options, reader)

    model, _ = _train_merges(counts, replace(options, vocab_size=options.vocab_size - wanted), reader, on_batch)
    chunks = EligibleChunks(model, phrase_options.phrase_chunks)

    sketch = sketch or reader.sketch(chunks)  # that of the larger vocabulary contains almost all pairs of the smaller
    min_count = least_count(sketch.counters(), wanted)
    while True:
        batches: list[Batch] = []
        with training_bar(show=reader.progress, unit="phrases") as show:
            phrases = learn_phrases(
                model,
                reader.runs(chunks, sketch, min_count),
                wanted,
                max_words=phrase_options.max_words,
                search=options,
                on_batch=both(show, batches.append),
                threads=reader.threads,
            )
        if phrases is not None:
            break
        min_count //= 2  # the runs were cut at pairs that are needed
    if on_batch:
        for batch in batches:
            on_batch(batch)

    metadata: dict[str, Any] = {"vocab_size": int(requested), "phrases": wanted, "phrase_chunks": chunks.kind}
    metadata |= {"max_words": phrase_options.max_words, "phrase_sample": reader.fraction}
    model = replace(model, phrases=phrases, training={**model.training, **metadata})
    model = complete(model)
    if phrase_options.phrases != "auto" and len(phrases) < wanted:
        logger.warning(
            "only %d of %d phrases were found: the vocabulary has %d tokens, not %d; use fewer phrases or 'auto'",
            len(phrases),
            wanted,
            model.vocab_size,
            requested,
        )
    else:
        warn_if_smaller(model, requested)
    return model


def _default_fraction(counts: ChunkCounts) -> float:
    """Return the fraction of the text from which phrases are learned by default."""
    text_bytes = np.dot(counts.chunk_bytes.astype(np.float64), counts.arrays.counts.astype(np.float64))
    return min(1.0, MAX_TEXT / max(int(text_bytes), 1))


def _balanced(
    counts: ChunkCounts, options: TrainingOptions, phrase_options: PhraseOptions, reader: RunReader
) -> tuple[int, Sketch]:
    """Train without phrases. Return how many of the tokens should be phrases, and the sketch that shows it."""
    model, merge_counts = _train_merges(counts, options, reader)
    sketch = reader.sketch(EligibleChunks(model, phrase_options.phrase_chunks))
    unused = options.vocab_size - model.vocab_size  # if there are no more merges
    return balance(merge_counts, sketch.counters(), sketch.total / counts.total) + unused, sketch


def _train_merges(
    counts: ChunkCounts,
    options: TrainingOptions,
    reader: RunReader,
    on_batch: Callable[[Batch], object] | None = None,
) -> tuple[Model, PairCounts]:
    with training_bar(show=reader.progress) as show:
        return train_merges(counts, options, both(show, on_batch), reader.threads)


def least_count(counters: Counters, phrases: int) -> int:
    """Return the `min_count` at which runs are cut for a number of phrases.

    >>> least_count(np.array([0, 9, 5, 7, 8, 6], np.uint32), 1)
    6
    """
    kept = min(KEPT_PAIRS * max(phrases, 1), len(counters))
    return max(1, int(_largest(counters, kept)[-1]))


def _largest(counters: Counters, n: int) -> Counters:
    """Return the n largest counters, in descending order. Most counters are small, so only a few have to be sorted.

    >>> _largest(np.array([3, 9, 0, 7, 100_000], np.uint32), 3).tolist()
    [100000, 9, 7]
    """
    most = 1 << 12
    at_least = np.bincount(np.minimum(counters, most), minlength=most + 1)[::-1].cumsum()[::-1]
    least = int(np.flatnonzero(at_least >= n)[-1])  # counters below this are not among the n largest
    return np.sort(counters[counters >= least])[::-1][:n]


def balance(merge_counts: PairCounts, counters: Counters, fraction: float = 1.0) -> int:
    """Return the number of phrases at which the last one is as frequent as the merge that it replaces.

    Parameters
    ----------
    merge_counts: how often each pair occurred when it was merged.
    counters: the counters of pairs of chunks.
    fraction: how much of the counted text they cover.

    >>> balance(np.array([90, 50, 10, 9]), np.array([80, 60, 50, 12, 8, 5], np.uint32))
    2

    """
    n = len(merge_counts)
    most = min(n, int(len(counters) / PAIRS_PER_PHRASE) - 1)
    needed = min(len(counters), math.ceil(PAIRS_PER_PHRASE * most) + 1)
    largest = _largest(counters, needed)
    # The counts of a batch are not in order, so a merge is compared with the best of those after it.
    following = np.maximum.accumulate(merge_counts[::-1])
    phrases = np.arange(1, most + 1)
    frequency = largest[np.ceil(PAIRS_PER_PHRASE * phrases).astype(np.int64) - 1] / fraction
    better = np.flatnonzero(frequency > following[:most])
    return int(better[-1]) + 1 if len(better) else 0

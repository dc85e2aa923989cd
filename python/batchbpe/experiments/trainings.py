"""Train many vocabularies on the same counts, several at a time if memory allows."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event
from typing import Any

from .._core import threads_or_all
from ..counts import ChunkCounts
from ..errors import ArgumentError, Setting, Stopped
from ..policies import policy_name, resolve_policy
from ..tokenizer import Tokenizer
from ..training import merges as merge_training
from ..training.loop import Batch
from ..training.train import train
from ..util.memory import free_memory
from ..util.progress import bar

MEMORY_PER_BYTE = 12
"""Upper bound of the memory for training, in bytes per byte of the unique chunks."""
LARGE = 2_000_000
"""From this number of unique chunks, a single training run keeps all cores busy."""
MIN_TIMED_SECONDS = 1.0
"""Timed runs are repeated until they have taken this long, and the fastest counts."""


@dataclass(frozen=True)
class Run:
    """A trained vocabulary, its options, and the record of its training.

    >>> (run,) = train_all(ChunkCounts.count("to be or not to be"), [{"vocab_size": 258}])
    >>> len(run.batches), run.options
    (2, {'vocab_size': 258})
    """

    options: Mapping[str, Any]
    tokenizer: Tokenizer
    batches: Sequence[Batch]
    seconds: float


def train_all(
    counts: ChunkCounts,
    options: Sequence[Mapping[str, Any]],
    *,
    timed: bool = False,
    on_progress: Callable[[float], object] = lambda _: None,
) -> Iterator[Run]:
    """Train a vocabulary for each set of options, and yield the runs in the order of the options.

    Parameters
    ----------
    counts: chunk counts to train on.
    options: keyword arguments of `train`. A policy may also be given by name.
    timed: whether run times matter. If so, vocabularies are trained one at a time, and short runs are repeated.
    on_progress: called with the number of vocabularies trained so far, including fractions.

    >>> runs = train_all(ChunkCounts.count("to be or not to be"), [{"vocab_size": 257}, {"vocab_size": 258}])
    >>> [run.tokenizer.n_vocab for run in runs]
    [257, 258]

    """
    resolved: list[dict[str, Any]] = [
        {name: resolve_policy(value) if name == "policy" else value for name, value in each.items()} for each in options
    ]
    at_once = 1 if timed else min(len(options), max_parallel_runs(counts))
    done = [0.0] * len(options)
    stop = Event()

    def run(place: int) -> Run:
        batches: list[Batch] = []

        def on_batch(batch: Batch) -> None:
            if stop.is_set():
                raise Stopped("stopped")
            batches.append(batch)
            done[place] = batch.merges_done / max(1, batch.merges_wanted)
            if at_once == 1:
                on_progress(sum(done))

        seconds: list[float] = []
        while not seconds or (timed and sum(seconds) < MIN_TIMED_SECONDS):
            batches.clear()
            start = time.perf_counter()
            model = train(counts, on_batch=on_batch, threads=1 if at_once > 1 else None, **resolved[place])
            seconds.append(time.perf_counter() - start)
        done[place] = 1
        return Run(options[place], Tokenizer(model), batches, min(seconds))

    with _without_warnings(merge_training.logger):
        if at_once == 1:
            yield from map(run, range(len(options)))
            return
        with ThreadPoolExecutor(at_once) as pool:
            futures = [pool.submit(run, place) for place in range(len(options))]
            try:
                for future in futures:
                    while not wait([future], 0.1).done:
                        on_progress(sum(done))
                    yield future.result()
            finally:
                stop.set()
                pool.shutdown(wait=False, cancel_futures=True)


@contextmanager
def _without_warnings(logger: logging.Logger) -> Iterator[None]:
    """Suppress the warning that pairs ran out. Tables and figures show it."""
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def recorded_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as values that JSON can represent: a policy by its name.

    >>> from batchbpe.policies import serial
    >>> recorded_options({"policy": serial, "freq_cutoff": 2})
    {'policy': 'serial', 'freq_cutoff': 2}
    """
    return {name: policy_name(value) if name == "policy" else value for name, value in options.items()}


def check_size(run: Run) -> None:
    """Raise unless a vocabulary has the requested size, which it needs as a reference for others.

    >>> (run,) = train_all(ChunkCounts.count("to be"), [{"vocab_size": 300}])
    >>> check_size(run)
    Traceback (most recent call last):
    ...
    batchbpe.errors.ArgumentError: vocab_size must be at most 259, since the data has no more pairs to merge, got 300; \
reduce vocab_size or provide more data
    """
    size, requested = len(run.tokenizer.vocab), run.options["vocab_size"]
    if size < requested:
        raise ArgumentError(
            "vocab_size",
            requested,
            f"must be at most {size:,}, since the data has no more pairs to merge",
            remedy=("reduce ", Setting("vocab_size"), " or provide more data"),
        )
    if not run.batches:
        raise ArgumentError("vocab_size", requested, f"must be at least {size + 1:,}, to leave something to merge")


@contextmanager
def runs_bar(number: int, *, show: bool) -> Iterator[Callable[[float], object]]:
    """Display how many of `number` vocabularies are trained.

    >>> with runs_bar(2, show=False) as on_progress:
    ...     on_progress(1)
    """
    with bar("training", number, show=show) as update:
        yield lambda done: update(done, f"{int(done)} of {number} vocabularies")


def max_parallel_runs(counts: ChunkCounts) -> int:
    """Return the number of training runs that cores and free memory allow at the same time.

    Large runs use all cores themselves. They run on the main thread, which receives Ctrl-C.

    >>> max_parallel_runs(ChunkCounts.count("to be")) >= 1
    True
    """
    if counts.unique > LARGE:
        return 1
    needed = MEMORY_PER_BYTE * (len(counts.arrays.data) + counts.unique) + 1
    return max(1, min(threads_or_all(), free_memory() // needed))

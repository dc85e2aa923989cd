"""Many vocabularies from the same counts, several at once where memory allows."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event
from typing import Any

from .. import training
from .._core import threads_or_all
from ..counts import ChunkCounts
from ..memory import free_memory
from ..progress import Stopped, bar
from ..tokenizer import Tokenizer
from ..training import Batch, train

BYTES = 12
"""How much memory training takes for each byte of a chunk: more than was ever seen."""
LARGE = 2_000_000
"""Unique chunks that keep all cores busy in one training."""
ENOUGH = 1.0
"""Seconds that are measured, if they matter: of shorter trainings the fastest counts."""


@dataclass(frozen=True)
class Run:
    """A vocabulary, and how it was trained."""

    options: Mapping[str, Any]
    tokenizer: Tokenizer
    batches: Sequence[Batch]
    seconds: float


def train_all(
    counts: ChunkCounts,
    options: Sequence[Mapping[str, Any]],
    *,
    timed: bool = False,
    moved: Callable[[float], object] = lambda _: None,
) -> Iterator[Run]:
    """Train with each of the options of `train`, in their order; one at a time if the seconds matter.

    `moved` is told how many vocabularies are done, and what share of others.

    >>> runs = train_all(ChunkCounts.count("to be or not to be"), [{"vocab_size": 257}, {"vocab_size": 258}])
    >>> [run.tokenizer.n_vocab for run in runs]
    [257, 258]
    """
    at_once = 1 if timed else min(len(options), workers(counts))
    done = [0.0] * len(options)
    stop = Event()

    def run(place: int) -> Run:
        batches: list[Batch] = []

        def on_batch(batch: Batch) -> None:
            if stop.is_set():
                raise Stopped
            batches.append(batch)
            done[place] = batch.merges_done / max(1, batch.merges_wanted)
            if at_once == 1:
                moved(sum(done))

        seconds: list[float] = []
        while not seconds or (timed and sum(seconds) < ENOUGH):
            batches.clear()
            start = time.perf_counter()
            model = train(counts, on_batch=on_batch, threads=1 if at_once > 1 else None, **options[place])
            seconds.append(time.perf_counter() - start)
        done[place] = 1
        return Run(options[place], Tokenizer(model), batches, min(seconds))

    with _silent(training.logger):
        if at_once == 1:
            yield from map(run, range(len(options)))
            return
        with ThreadPoolExecutor(at_once) as pool:
            futures = [pool.submit(run, place) for place in range(len(options))]
            try:
                for future in futures:
                    while not wait([future], 0.1).done:
                        moved(sum(done))
                    yield future.result()
            finally:
                stop.set()
                pool.shutdown(wait=False, cancel_futures=True)


@contextmanager
def _silent(logger: logging.Logger) -> Iterator[None]:
    """Have no warnings that pairs were too few: tables and figures tell where."""
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def check_size(run: Run) -> None:
    """Raise if a vocabulary falls short. One of fewer chunks may, but nothing can be compared with it."""
    size = len(run.tokenizer.vocab)
    if size < run.options["vocab_size"]:
        raise ValueError(f"the data has pairs for {size:,} tokens only: ask for no more, or give more data")
    if not run.batches:
        raise ValueError(f"a vocabulary of {size:,} tokens leaves nothing to merge: ask for more")


@contextmanager
def runs_bar(number: int, *, show: bool) -> Iterator[Callable[[float], object]]:
    """Show how many of so many vocabularies are done."""
    with bar("training", number, show=show) as update:
        yield lambda done: update(done, f"{int(done)} of {number} vocabularies")


def workers(counts: ChunkCounts) -> int:
    """Say how many trainings the cores and the free memory bear at once.

    Large ones use all cores by themselves, on the thread that hears of Ctrl-C.
    """
    if counts.unique > LARGE:
        return 1
    needed = BYTES * (len(counts.data) + counts.unique) + 1
    return max(1, min(threads_or_all(), free_memory() // needed))

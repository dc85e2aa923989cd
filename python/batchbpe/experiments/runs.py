"""Many vocabularies from the same counts, several at once where memory allows."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ..chunks import ChunkCounts
from ..progress import bar
from ..tokenizer import Tokenizer
from ..training import Batch, train

BYTES = 12
"""How much memory training takes for each byte of a chunk: more than was ever seen."""


@dataclass(frozen=True)
class Run:
    """A vocabulary, and how it was trained."""

    options: Mapping[str, Any]
    tokenizer: Tokenizer
    batches: Sequence[Batch]
    seconds: float


def train_all(
    counts: ChunkCounts, options: Sequence[Mapping[str, Any]], *, timed: bool = False, progress: bool = False
) -> Iterator[Run]:
    """Train with each of the options of `train`, in their order; one at a time if the seconds matter.

    >>> runs = train_all(ChunkCounts.count("to be or not to be"), [{"vocab_size": 257}, {"vocab_size": 258}])
    >>> [run.tokenizer.n_vocab for run in runs]
    [257, 258]
    """
    at_once = 1 if timed else min(len(options), workers(counts))

    def run(each: Mapping[str, Any]) -> Run:
        batches: list[Batch] = []
        start = time.perf_counter()
        model = train(counts, on_batch=batches.append, threads=1 if at_once > 1 else None, **each)
        return Run(each, Tokenizer(model), batches, time.perf_counter() - start)

    def checked(place: int, result: Run) -> Run:
        """Later ones may fall short, of fewer chunks; if the first does, nothing can be compared with it."""
        size, wanted = len(result.tokenizer.vocab), result.options["vocab_size"]
        if place == 1 and size < wanted:
            raise ValueError(
                f"the data has pairs for {size:,} tokens only: give vocab_size={size} at most, or more data"
            )
        return result

    with bar("training", len(options), show=progress) as update, ThreadPoolExecutor(at_once) as pool:
        try:
            for done, result in enumerate(pool.map(run, options), 1):
                update(done, f"{done} of {len(options)} vocabularies")
                yield checked(done, result)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def workers(counts: ChunkCounts) -> int:
    """Say how many trainings the cores and the free memory bear at once."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with suppress(ValueError, OSError, AttributeError):
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return max(1, min(cores, free // (BYTES * (len(counts.data) + counts.unique) + 1)))
    return 1

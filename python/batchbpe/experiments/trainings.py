"""Train and evaluate many vocabularies on the same data, several at a time if memory allows."""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event
from typing import Any

from .._core import threads_or_all
from ..analysis.counted_text import CountedText
from ..analysis.evaluator import Evaluator, encodes_chunks, evaluate_text
from ..analysis.metrics import Evaluation
from ..counts import ChunkCounts
from ..errors import ArgumentError, DataError, Setting, Stopped
from ..phrases.counting import check_rereadable
from ..policies import policy_name
from ..tokenizer import Tokenizer
from ..training import merges as merge_training
from ..training.loop import Batch
from ..training.train import train
from ..util.lazy import lazy
from ..util.memory import free_memory
from ..util.progress import bar
from .data import DividedDocuments, ExperimentData

MEMORY_PER_BYTE = 12
"""Upper bound on the memory for training, in bytes per byte of the unique chunks."""
LARGE = 2_000_000
"""From this number of unique chunks, training a single vocabulary keeps all cores busy."""
MIN_TIMED_SECONDS = 1.0
"""If times matter, training is repeated until it has taken this long in total, and the fastest repetition counts."""


@dataclass(frozen=True)
class Trained:
    """A trained vocabulary, its options, and the record of its training."""

    options: Mapping[str, Any]
    tokenizer: Tokenizer
    batches: Sequence[Batch]
    seconds: float
    text: CountedText
    """The held-out text."""
    documents: DividedDocuments | None = None
    """The held-out documents, for tokenizers that cannot encode counted chunks."""

    @lazy
    def evaluation(self) -> Evaluation:
        """The metrics on the held-out text."""
        if encodes_chunks(self.tokenizer):
            return evaluate_text("", self.tokenizer, self.text)
        evaluator = Evaluator({"": self.tokenizer}, errors="replace")  # with "strict", reading has raised the error
        for some in _needed(self.documents).heldout():
            evaluator.add(some)
        return evaluator.results()[0]

    def lengths(self, reference: Trained) -> dict[str, Any]:
        """Return the columns of a table that compares encoded lengths."""
        tokens = self.evaluation.tokens
        change = percent_change(tokens, reference.evaluation.tokens)
        return {"vocab_size": len(self.tokenizer.vocab), "tokens": tokens, "change": change}


def percent_change(tokens: int, reference: int) -> float:
    """Return the change from a reference in percent.

    >>> percent_change(75, 100)
    -25.0
    """
    return 100 * (tokens / reference - 1)


def train_with_reference(
    data: ExperimentData, options: Sequence[Mapping[str, Any]], *, timed: bool = False, progress: bool = False
) -> list[Trained]:
    """Train a vocabulary for each set of options. The first is the reference, so it must have the requested size."""
    results: list[Trained] = []
    with vocabularies_bar(len(options), show=progress) as on_progress:
        for trained in train_all(data, options, timed=timed, on_progress=on_progress):
            results.append(trained)
            check_size(results[0])
    return results


def train_all(
    data: ExperimentData,
    options: Sequence[Mapping[str, Any]],
    *,
    timed: bool = False,
    on_progress: Callable[[float], object] = lambda _: None,
) -> Iterator[Trained]:
    """Train a vocabulary for each set of options, and yield them in the order of the options.

    Parameters
    ----------
    data: counts to train on, and held-out text to evaluate on.
    options: arguments of `train`, which may include other data to train on.
    timed: whether times matter. If so, vocabularies are trained one at a time, and short trainings are repeated.
    on_progress: called with the number of vocabularies trained so far, including fractions.

    Phrases are trained on documents, which are read one vocabulary at a time. Each training gets a policy of its own,
    which may keep state.

    >>> data = ExperimentData.of("to be or not to be", heldout="to be")
    >>> trained = train_all(data, [{"vocab_size": 257}, {"vocab_size": 258}])
    >>> [(len(each.batches), each.evaluation.tokens) for each in trained]
    [(1, 4), (2, 3)]

    """
    reads_documents = any(each.get("phrases") for each in options)
    at_once = 1 if timed or reads_documents else min(len(options), max_at_once(data.counts))
    text, done, stop = data.text, [0.0] * len(options), Event()

    def train_one(index: int) -> Trained:
        batches: list[Batch] = []

        def on_batch(batch: Batch) -> None:
            if stop.is_set():
                raise Stopped("stopped")
            batches.append(batch)
            done[index] = batch.merges_done / max(1, batch.merges_wanted)
            if at_once == 1:
                on_progress(sum(done))

        seconds: list[float] = []
        while not seconds or (timed and sum(seconds) < MIN_TIMED_SECONDS):
            batches.clear()
            given = _training_data(data, options[index]) | _new_policy(options[index])
            start = time.perf_counter()
            model = train(on_batch=on_batch, threads=1 if at_once > 1 else None, **{**options[index], **given})
            seconds.append(time.perf_counter() - start)
        done[index] = 1
        return Trained(options[index], Tokenizer(model), batches, min(seconds), text, data.documents)

    with _without_warnings(merge_training.logger):
        if at_once == 1:
            yield from map(train_one, range(len(options)))
            return
        with ThreadPoolExecutor(at_once) as pool:
            futures = [pool.submit(train_one, index) for index in range(len(options))]
            try:
                for future in futures:
                    while not wait([future], 0.1).done:
                        on_progress(sum(done))
                    yield future.result()
            finally:
                stop.set()
                pool.shutdown(wait=False, cancel_futures=True)


def _training_data(data: ExperimentData, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `train` that say what to train on."""
    if "data" in options or options.get("groups") is not None:
        return {}
    if not options.get("phrases"):
        return {"data": data.counts}
    return {"data": _needed(data.documents).training(), "pattern": data.counts.split}


def _new_policy(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return a policy that no other training uses: a new object if the option is a class, otherwise a copy."""
    if "policy" not in options:
        return {}
    policy = options["policy"]
    try:
        return {"policy": policy() if isinstance(policy, type) else copy.deepcopy(policy)}
    except TypeError as error:
        reason = f"must be a function, or an object that can be copied for each training ({error})"
        raise ArgumentError("policy", policy_name(policy), reason, remedy="or a class without arguments") from error


def _needed(documents: DividedDocuments | None) -> DividedDocuments:
    """Return the documents that phrases and added tokens need, since these cross chunk boundaries."""
    if documents is None:
        remedy = ("provide more documents, or ", Setting("heldout"), "; ", Setting("document"), " splits text files")
        raise DataError("phrases and added tokens need documents, some of which are held out", remedy=remedy)
    check_rereadable(documents.corpus)
    return documents


@contextmanager
def _without_warnings(logger: logging.Logger) -> Iterator[None]:
    """Suppress the warning that pairs ran out. Tables and figures show it."""
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def max_at_once(counts: ChunkCounts) -> int:
    """Return how many vocabularies can be trained at the same time with the cores and the free memory.

    Only one if the free memory is unknown, or above `LARGE` unique chunks: it uses all cores, and the main thread,
    which receives Ctrl-C.
    """
    free = free_memory()
    if free is None or counts.unique > LARGE:
        return 1
    needed = MEMORY_PER_BYTE * (len(counts.arrays.data) + counts.unique) + 1
    return max(1, min(threads_or_all(), free // needed))


@contextmanager
def vocabularies_bar(number: int, *, show: bool) -> Iterator[Callable[[float], object]]:
    """Display how many of `number` vocabularies are trained."""
    with bar("training", number, show=show) as update:
        yield lambda done: update(done, f"{int(done)} of {number} vocabularies")


def check_size(trained: Trained) -> None:
    """Raise unless a vocabulary has the requested size and at least one merge."""
    size, requested = len(trained.tokenizer.vocab), trained.options["vocab_size"]
    if size < requested:
        raise ArgumentError(
            "vocab_size",
            requested,
            f"must be at most {size:,}, since the data has no more pairs to merge",
            remedy=("reduce ", Setting("vocab_size"), " or provide more data"),
        )
    if not trained.batches:
        raise ArgumentError("vocab_size", requested, f"must be at least {size + 1:,}, to leave something to merge")


def recorded_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as values that JSON can represent: a policy by its name."""
    return {name: policy_name(value) if name == "policy" else value for name, value in options.items()}

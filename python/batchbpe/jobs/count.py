"""Count many files into one file of counts: resumable, and within a memory limit.

Every minute, and before it stops, the job writes what it has counted into a folder next to the output, with a record of
the files that were counted and the position in the current one. Resuming continues from there. This also bounds the
memory: counts are written whenever the table grows too large, and are added up at the end (`spill`).
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..counts import ChunkCounts, check_suffix
from ..counts.counter import ChunkCounter
from ..data.sampling import Selection
from ..data.source import Source
from ..errors import ArgumentError, OutputExistsError, Stopped
from ..model.checks import check_special_tokens
from ..patterns import PATTERNS, PatternError, Split
from ..storage.atomic import check_writable, remove_stale, writing
from ..storage.locks import locked
from ..util.memory import memory, release_memory
from ..util.progress import counting_bar
from .resume import RESUME, JobOptions, ReadErrors, Record
from .spill import SpilledCounts, Totals

SAVE_EVERY = 60.0
"""Seconds between two saves; longer if saving takes more than a tenth of the time."""
MEMORY_DIVISOR = 5
"""The chunk table may take this part of the memory limit. Sorting and writing it need the rest."""
COUNTERS = ("bytes_read", "dropped_bytes", "skipped_chunks")
"""Attributes of `ChunkCounter` that continue when a job is resumed."""


@dataclass(frozen=True)
class CountOptions(JobOptions):
    """Options that determine the result. A job can only be resumed with the same ones."""

    split: Split = Split(PATTERNS["gpt4"])  # noqa: RUF009  it is immutable
    special_tokens: Sequence[str] = ()
    max_chunk_bytes: int | None = None
    """Skip chunks longer than this, which come from corrupt files."""

    def __post_init__(self) -> None:
        """Check the values."""
        object.__setattr__(self, "split", Split.of(self.split))
        check_special_tokens(self.special_tokens)
        if self.max_chunk_bytes is not None and self.max_chunk_bytes < 1:
            raise ArgumentError("max_chunk_bytes", self.max_chunk_bytes, "must be at least 1")

    def recorded(self) -> dict[str, Any]:
        """Return all options by name, for a record."""
        return super().recorded() | {"split": {"pattern": self.split.to_json()}}


@dataclass
class CountReport:
    """What a job has counted."""

    output: str
    total: int = 0
    unique: int = 0
    bytes_read: int = 0
    files: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    """Files that could not be read, and why."""
    dropped_bytes: int = 0
    """Bytes that the pattern does not match."""
    skipped_chunks: int = 0
    """Chunks longer than `max_chunk_bytes`."""
    longest_chunk: int = 0


def count_files(
    sources: Sequence[Source],
    output: Path,
    options: CountOptions | None = None,
    *,
    resume: bool = False,
    skip_errors: bool = False,
    describe: Callable[[Exception], str] = str,
    max_memory: int | None = None,
    threads: int | None = None,
    stop: Callable[[], bool] = lambda: False,
    progress: bool = False,
) -> CountReport:
    """Count the chunks of all sources and save them as .parquet or .csv.

    Parameters
    ----------
    sources: what to count; see `data.corpus.sources`.
    output: the file of counts.
    options: what to count and how.
    resume: continue a job that was stopped or killed.
    skip_errors: continue after a file that cannot be read; the report lists it.
    describe: renders the errors in the report.
    max_memory: limit in bytes. Counts that exceed it are written to disk and added up at the end.
    threads: number of threads; all cores by default.
    stop: polled regularly. When it returns True, the job saves what it has counted and raises `Stopped`.
    progress: show a progress bar.

    >>> import tempfile
    >>> from batchbpe import ChunkCounts
    >>> from batchbpe.data.corpus import sources
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report = count_files(sources("to be or not to be"), Path(folder) / "counts.parquet")
    ...     print(report.total, ChunkCounts.load(report.output).most_common(1))
    6 [(' be', 2)]

    """
    check_suffix("output", output)
    check_writable(output)
    if any(source.is_at(output) for source in sources):
        raise ArgumentError("output", str(output), "must not be one of the files to count")
    with locked(output):
        remove_stale(output, age=0)
        errors = ReadErrors(skip_errors, describe)
        job = _CountJob(sources, output, options or CountOptions(), errors, max_memory, threads, stop)
        job.restore(resume)
        with counting_bar(job.counter, sources, show=progress):
            job.count()
        return job.finish()


class _InterruptedError(Exception):
    """The job was stopped, or could not split or save. This is not an error of the file that is being read."""

    def __init__(self, reason: Exception) -> None:
        self.reason = reason


@contextmanager
def _interrupting(*kinds: type[Exception]) -> Iterator[None]:
    try:
        yield
    except kinds as error:
        raise _InterruptedError(error) from None


class _CountJob:
    def __init__(
        self,
        sources: Sequence[Source],
        output: Path,
        options: CountOptions,
        errors: ReadErrors,
        max_memory: int | None,
        threads: int | None,
        stop: Callable[[], bool],
    ) -> None:
        self.output, self.split, self.errors = output, options.split, errors
        self.max_memory, self.threads, self.stop = max_memory, threads, stop
        self.counter = ChunkCounter(
            options.split,
            options.special_tokens,
            options.reading.errors,
            threads,
            options.max_chunk_bytes,
            max_counts_bytes=None if max_memory is None else max_memory // 4,
            on_progress=self._on_progress,
        )
        self.folder = output.with_name(output.name + ".parts")
        self.spilled = SpilledCounts(self.folder)
        self.selection = Selection(options.sampling)
        self.record = Record(self.folder / "record.json", options.recorded(), sources, self.selection)
        self.next_save = time.monotonic() + SAVE_EVERY
        self.initial_memory = memory() or 0

    def restore(self, resume: bool) -> None:
        if self.folder.exists() and not resume:
            raise OutputExistsError(f"{self.folder} contains an unfinished count", remedy=(*RESUME, " or remove it"))
        if self.record.path.exists():
            state = self.record.load()
            self.spilled = SpilledCounts(self.folder, state["parts"], state["bounds"])
            self.spilled.check(self._poll)  # before hours of counting, not after
            for name in COUNTERS:
                setattr(self.counter, name, state[name])
            self.errors.failed = state["failed"]
        if self.folder.exists():
            self.spilled.remove_unrecorded()

    def count(self) -> None:
        try:
            for source, done, skip in self.record.todo():
                # An error about the pattern may be about a text that an earlier file queued.
                with self.errors.of(source), _interrupting(PatternError):
                    self._count(source, done, skip)
        except _InterruptedError as error:
            raise error.reason from None
        self._checkpoint()

    def _count(self, source: Source, done: int, skip: int) -> None:
        for number, documents in enumerate(self.selection.of(source)):
            if number < done:
                continue
            self.counter.add(documents, skip=skip)
            skip = 0
            self.record.move(number + 1)
            with _interrupting(OSError, Stopped):
                self._checkpoint()

    def _on_progress(self, position: int) -> None:
        if position:  # between two batches, `_count` records the position
            self.record.move(self.record.current[1], position)
            with _interrupting(OSError, Stopped):
                self._checkpoint()

    def _checkpoint(self) -> None:
        """Stop, spill or save if necessary."""
        if self.stop():
            self._save()
            raise self._stopped()
        if self.max_memory:
            available = max(self.max_memory - self.initial_memory, self.max_memory // 8)
            if self.counter.memory * MEMORY_DIVISOR > available:
                self._spill(ChunkCounts(self.counter.take()))
        if time.monotonic() > self.next_save:
            self._save()

    def _poll(self) -> None:
        if self.stop():
            raise self._stopped()

    def _stopped(self) -> Stopped:
        return Stopped(f"stopped; the counts so far are in {self.folder}", remedy=RESUME)

    def _spill(self, counts: ChunkCounts) -> None:
        self._create_folder()
        self.spilled.add(counts)
        del counts
        release_memory()

    def _create_folder(self) -> None:
        with writing(self.folder):
            self.folder.mkdir(exist_ok=True)

    def _save(self) -> None:
        start = time.monotonic()
        if self.counter.unique:
            self._spill(ChunkCounts(self.counter.take()))
        self._create_folder()
        state = {"parts": self.spilled.checksums, "bounds": self.spilled.bounds, "failed": self.errors.failed}
        self.record.save(state | {name: getattr(self.counter, name) for name in COUNTERS})
        self.next_save = time.monotonic() + max(SAVE_EVERY, 10 * (time.monotonic() - start))

    def finish(self) -> CountReport:
        totals = self._write_sum() if self.spilled.checksums else self._write_counts()
        shutil.rmtree(self.folder, ignore_errors=True)
        return CountReport(
            str(self.output),
            **totals._asdict(),
            **{name: getattr(self.counter, name) for name in COUNTERS},
            files=len(self.record.done) - len(self.errors.failed),
            failed=self.errors.failed,
        )

    def _write_sum(self) -> Totals:
        self._save()
        return self.spilled.save_sum(self.output, self.split, self.threads, self._poll)

    def _write_counts(self) -> Totals:
        counts = ChunkCounts(self.counter.take())
        try:
            counts.save(self.output)
        except OSError:
            with suppress(OSError):  # there may be no room for spilled counts either
                self._spill(counts)
                self._save()
            with suppress(OSError):  # removes the folder only if it is empty
                self.folder.rmdir()
            raise
        return Totals(counts.total, counts.unique, int(counts.chunk_bytes.max(initial=0)))

"""Count many files into one file of counts: resumable, and within a memory limit.

Every minute, and before it stops, the job writes what it has counted as a run into a folder next to the output, with a
record of the files that are in the runs and the position in the current one. Resuming continues from there. Runs also
bound the memory: one is written whenever the table grows too large, and they are added up at the end (`spill`).
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .._core import PatternError
from ..counts import ChunkCounts, check_suffix
from ..counts.counter import ChunkArrays, ChunkCounter
from ..data.sampling import Selection
from ..data.source import Source
from ..errors import ArgumentError, DataError, OutputExistsError, Setting, Stopped
from ..model import check_special_tokens
from ..patterns import PATTERNS, resolve_pattern
from ..storage.atomic import check_writable, remove_stale, writing
from ..storage.locks import locked
from ..util.memory import memory, release_memory
from ..util.progress import counting_bar
from .resume import JobOptions, Record
from .spill import Runs

SAVE_EVERY = 60.0
"""Seconds between two saves; longer if saving takes more than a tenth of the time."""
SHARE = 5
"""The chunk table may take 1/SHARE of the memory limit. Sorting and writing a run need the rest."""
RESUME = ("continue with ", Setting("resume", True))


@dataclass(frozen=True)
class CountOptions(JobOptions):
    """Options that determine the result. A job can only be resumed with the same ones."""

    pattern: str = PATTERNS["gpt4"]
    special_tokens: Sequence[str] = ()
    max_chunk_bytes: int | None = None
    """Skip chunks longer than this, which come from corrupt files."""

    def __post_init__(self) -> None:
        """Check the values."""
        object.__setattr__(self, "pattern", resolve_pattern(self.pattern))
        check_special_tokens(self.special_tokens)
        if self.max_chunk_bytes is not None and self.max_chunk_bytes < 1:
            raise ArgumentError("max_chunk_bytes", self.max_chunk_bytes, "must be at least 1")


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
        job = _CountJob(
            sources, output, options or CountOptions(), resume, skip_errors, describe, max_memory, threads, stop
        )
        with counting_bar(job.counter, sources, show=progress):
            job.count()
        return job.finish()


class _InterruptedError(Exception):
    """The job was stopped, or could not save. This is not an error of the file that is being read."""

    def __init__(self, reason: OSError | Stopped) -> None:
        self.reason = reason


class _CountJob:
    def __init__(
        self,
        sources: Sequence[Source],
        output: Path,
        options: CountOptions,
        resume: bool,
        skip_errors: bool,
        describe: Callable[[Exception], str],
        max_memory: int | None,
        threads: int | None,
        stop: Callable[[], bool],
    ) -> None:
        self.pattern = options.pattern
        self.skip_errors, self.describe, self.max_memory = skip_errors, describe, max_memory
        self.threads, self.stop = threads, stop
        self.folder = output.with_name(output.name + ".parts")
        arguments = options.pattern, options.special_tokens, options.errors, threads, options.max_chunk_bytes
        max_counts = None if max_memory is None else max_memory // 4
        self.counter = ChunkCounter(*arguments, max_counts_bytes=max_counts, on_progress=self._on_progress)
        self.report = CountReport(str(output))
        self.selection = Selection(options.sampling)
        state: dict[str, Any] = {"runs": {}, "bounds": [], "read": 0, "dropped": 0, "skipped": 0, "failed": {}}
        self.record = Record(self.folder / "record.json", asdict(options), sources, self.selection, **state)
        self.next_save = time.monotonic() + SAVE_EVERY
        self.initial_memory = memory()
        is_resumed = resume and self.record.path.exists()
        if is_resumed:
            self.record.load()
        elif self.folder.exists() and not resume:
            raise OutputExistsError(f"{self.folder} holds an unfinished count", remedy=(*RESUME, " or remove it"))
        self._restore(is_resumed)

    def _restore(self, is_resumed: bool) -> None:
        state = self.record.state
        self.runs = Runs(self.folder, state["runs"], state["bounds"])
        if is_resumed:
            for _ in self.runs.check():  # before hours of counting, not after
                if self.stop():
                    raise self._stopped()
        if self.folder.exists():
            self.runs.remove_unrecorded()
        counter = self.counter
        counter.bytes_read, counter.dropped_bytes, counter.skipped_chunks = (
            state[name] for name in ("read", "dropped", "skipped")
        )
        self.report.failed = state["failed"]

    def count(self) -> None:
        for source, done, skip in self.record.todo():
            try:
                with source.blamed():
                    self._count(source, done, skip)
            except PatternError:  # may be about a text that an earlier file queued
                raise
            except (ValueError, OSError) as error:
                if not self.skip_errors:
                    raise error if isinstance(error, DataError) else DataError(str(error)) from None
                self.report.failed[source.name or "the data"] = self.describe(error)
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
            self._checkpoint_while_reading()

    def _on_progress(self, position: int) -> None:
        if position:  # between two batches, `_count` records the position
            self.record.move(self.record.current[1], position)
            self._checkpoint_while_reading()

    def _checkpoint_while_reading(self) -> None:
        try:
            self._checkpoint()
        except (OSError, Stopped) as error:
            raise _InterruptedError(error) from None

    def _checkpoint(self) -> None:
        """Stop, spill or save if necessary."""
        if self.stop():
            self._save()
            raise self._stopped()
        if self.max_memory:
            available = max(self.max_memory - self.initial_memory, self.max_memory // 8)
            if self.counter.memory * SHARE > available:
                self._spill(self.counter.take())
        if time.monotonic() > self.next_save:
            self._save()

    def _stopped(self) -> Stopped:
        return Stopped(f"stopped; the counts so far are in {self.folder}", remedy=RESUME)

    def _spill(self, counts: ChunkArrays) -> None:
        self._create_folder()
        self.runs.add(ChunkCounts(counts))
        del counts
        release_memory()

    def _create_folder(self) -> None:
        with writing(self.folder):
            self.folder.mkdir(exist_ok=True)

    def _save(self) -> None:
        start = time.monotonic()
        if self.counter.unique:
            self._spill(self.counter.take())
        self._create_folder()
        counter = self.counter
        self.record.state = {
            "runs": self.runs.checksums,
            "bounds": self.runs.bounds,
            "read": counter.bytes_read,
            "dropped": counter.dropped_bytes,
            "skipped": counter.skipped_chunks,
            "failed": self.report.failed,
        }
        self.record.save()
        self.next_save = time.monotonic() + max(SAVE_EVERY, 10 * (time.monotonic() - start))

    def finish(self) -> CountReport:
        report, counter = self.report, self.counter
        path = Path(report.output)
        if self.runs.checksums:
            self._save()
            for _ in self.runs.save_sum(path, self.pattern, self.threads):
                if self.stop():
                    raise self._stopped()
            report.total, report.unique, report.longest_chunk = self.runs.total, self.runs.unique, self.runs.longest
        else:
            counts = ChunkCounts(counter.take())
            try:
                counts.save(path)
            except OSError:
                with suppress(OSError):  # there may be no room for a run either
                    self._spill(counts.arrays)
                    self._save()
                with suppress(OSError):  # removes the folder only if it is empty
                    self.folder.rmdir()
                raise
            report.total, report.unique = counts.total, counts.unique
            report.longest_chunk = int(counts.chunk_bytes.max(initial=0))
        shutil.rmtree(self.folder, ignore_errors=True)
        report.bytes_read, report.files = counter.bytes_read, len(self.record.done) - len(report.failed)
        report.dropped_bytes, report.skipped_chunks = counter.dropped_bytes, counter.skipped_chunks
        return report

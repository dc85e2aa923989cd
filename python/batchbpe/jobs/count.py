"""Counting many files into one, such that nothing is lost and memory is bounded.

Now and then, and before it stops, what was counted is written as a run into a folder beside the result, with a record
of the files that are in the runs and the place in the one that is not yet done. So it can go on from there. The same
runs bound the memory: they are written when the table has grown too large, and added up at the end.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from .._core import PatternError
from ..counting import Counter
from ..counts import ChunkCounts
from ..data.readers import Source
from ..data.sampling import Selection
from ..data.tables import MAX_DOCUMENT_BYTES
from ..memory import memory, release_memory
from ..model import check_special_tokens
from ..patterns import PATTERNS, pattern_of
from ..progress import Stopped, counting_bar
from ..storage.atomic import check_writable, remove_stale, writing
from ..storage.locks import locked
from .resume import Record
from .spill import Runs

SAVE_EVERY = 60.0
"""Seconds after which what was counted is saved; or longer, if saving takes more than a tenth of them."""
SHARE = 5
"""The tables may take one in so many bytes of the memory that is left: adding up and sorting take as much again."""


@dataclass(frozen=True)
class Options:
    """How to count: what must be the same when a count goes on."""

    pattern: str = PATTERNS["gpt4"]
    special_tokens: Sequence[str] = ()
    errors: str = "strict"
    sample: float = 1.0
    seed: int = 0
    limit_bytes: int | None = None
    max_chunk_bytes: int | None = None
    max_document_bytes: int = MAX_DOCUMENT_BYTES
    """With which the sources were made: how tables are cut into batches depends on it."""
    columns: Sequence[str | None] = ()
    """By which the text was found in tables and jsonl."""

    def __post_init__(self) -> None:
        """Check the values."""
        object.__setattr__(self, "pattern", pattern_of(self.pattern))
        check_special_tokens(self.special_tokens)
        if self.max_chunk_bytes is not None and self.max_chunk_bytes < 1:
            raise ValueError(f"max_chunk_bytes={self.max_chunk_bytes}: give 1 or more")


@dataclass
class Report:
    """What came of it."""

    output: str
    total: int = 0
    unique: int = 0
    bytes_read: int = 0
    files: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    dropped_bytes: int = 0
    skipped_chunks: int = 0
    longest_chunk: int = 0


def count_files(
    sources: Sequence[Source],
    output: Path,
    options: Options | None = None,
    *,
    resume: bool = False,
    skip_errors: bool = False,
    max_memory: int | None = None,
    threads: int | None = None,
    stop: Callable[[], bool] = lambda: False,
    progress: bool = False,
) -> Report:
    """Count the chunks of all sources and save them at `output`, as parquet or csv.

    `stop` is asked again and again; if it says so, what was counted is saved, and `Stopped` raised. `resume` goes on
    from there, or from what was saved when the process was killed. `skip_errors` goes on after a file that cannot be
    read, which the report names. With `max_memory`, in bytes, the memory taken stays below it.

    >>> import tempfile
    >>> from batchbpe import ChunkCounts
    >>> from batchbpe.data.corpus import sources
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report = count_files(sources("to be or not to be"), Path(folder) / "counts.parquet")
    ...     print(report.total, ChunkCounts.load(report.output).most_common(1))
    6 [(' be', 2)]
    """
    if output.suffix.lower() not in (".csv", ".parquet"):
        raise ValueError(f"{output}: give a name that ends in .parquet or .csv, by which it is known again")
    check_writable(output)
    if any(source.name and Path(source.name).resolve() == output.resolve() for source in sources):
        raise ValueError(f"{output} is among the files to count: give another name, or remove it")
    with locked(output):
        remove_stale(output, age=0)
        job = _Job(sources, output, options or Options(), resume, skip_errors, max_memory, threads, stop)
        with counting_bar(job.counter, sources, show=progress):
            job.count()
        return job.finish()


class _Unsaved(Exception):
    """What was counted could not be saved."""

    def __init__(self, reason: OSError) -> None:
        self.reason = reason


class _Job:
    def __init__(
        self,
        sources: Sequence[Source],
        output: Path,
        options: Options,
        resume: bool,
        skip_errors: bool,
        max_memory: int | None,
        threads: int | None,
        stop: Callable[[], bool],
    ) -> None:
        self.pattern = options.pattern
        self.skip_errors, self.max_memory, self.threads, self.stop = skip_errors, max_memory, threads, stop
        self.folder = output.with_name(output.name + ".parts")
        given = options.pattern, options.special_tokens, options.errors, threads, options.max_chunk_bytes
        self.counter = Counter(*given, moved=self._moved_in_text)
        self.report = Report(str(output))
        self.selection = Selection(options.sample, options.seed, options.limit_bytes)
        more: dict[str, Any] = {"runs": {}, "bounds": [], "read": 0, "dropped": 0, "skipped": 0, "failed": {}}
        self.record = Record(self.folder / "record.json", asdict(options), sources, self.selection, **more)
        self.next_save = time.monotonic() + SAVE_EVERY
        self.base = memory()
        resumed = resume and self.record.path.exists()
        if resumed:
            self.record.load()
        elif self.folder.exists() and not resume:
            raise FileExistsError(
                f"{self.folder} holds a count that was not finished: --resume goes on with it; or remove the folder"
            )
        more = self.record.more
        self.runs = Runs(self.folder, more["runs"], more["bounds"])
        if resumed:
            for _ in self.runs.check():  # now, and not after hours of counting
                if stop():
                    self._stopped()
        if self.folder.exists():
            self.runs.remove_others()
        self.counter.read, self.counter.dropped, self.counter.skipped = more["read"], more["dropped"], more["skipped"]
        self.report.failed = more["failed"]

    def count(self) -> None:
        for source, items, skip in self.record.todo():
            try:
                with source.named():
                    self._count(source, items, skip)
            except PatternError:  # which may be of a file before this one
                raise
            except (ValueError, OSError) as error:
                if not self.skip_errors:
                    raise ValueError(str(error)) from None
                self.report.failed[source.name or "the data"] = str(error)
            except _Unsaved as error:
                raise error.reason from None
        self._pause()

    def _count(self, source: Source, items: int, skip: int) -> None:
        for item, documents in enumerate(self.selection.of(source)):
            if item < items:
                continue
            self.counter.add(documents, skip=skip)
            skip = 0
            self.record.move(item + 1)
            self._moved(0)

    def _moved_in_text(self, done: int) -> None:
        # Between two batches the place is not known yet.
        if done:
            self.record.move(self.record.current[1], done)
            self._moved(done)

    def _moved(self, _: int) -> None:
        try:
            self._pause()
        except OSError as error:  # which is not the fault of the file that is read
            raise _Unsaved(error) from None

    def _pause(self) -> None:
        if self.stop():
            self._save()
            self._stopped()
        if self.max_memory and self.counter.memory * SHARE > max(self.max_memory - self.base, self.max_memory // 8):
            self._spill(self.counter.take())
        if time.monotonic() > self.next_save:
            self._save()

    def _stopped(self) -> NoReturn:
        raise Stopped(f"stopped; what was counted is in {self.folder}, and --resume goes on with it")

    def _spill(self, counts: ChunkCounts) -> None:
        self._make_folder()
        self.runs.add(counts)
        del counts
        release_memory()

    def _make_folder(self) -> None:
        with writing(self.folder):
            self.folder.mkdir(exist_ok=True)

    def _save(self) -> None:
        start = time.monotonic()
        if self.counter.unique:
            self._spill(self.counter.take())
        self._make_folder()
        counter = self.counter
        self.record.more = {
            "runs": self.runs.checksums,
            "bounds": self.runs.bounds,
            "read": counter.read,
            "dropped": counter.dropped,
            "skipped": counter.skipped,
            "failed": self.report.failed,
        }
        self.record.save()
        self.next_save = time.monotonic() + max(SAVE_EVERY, 10 * (time.monotonic() - start))

    def finish(self) -> Report:
        report, counter = self.report, self.counter
        path = Path(report.output)
        if self.runs.checksums:
            self._save()
            for _ in self.runs.save_sum(path, self.pattern, self.threads):
                if self.stop():
                    self._stopped()
            report.total, report.unique, report.longest_chunk = self.runs.total, self.runs.unique, self.runs.longest
        else:
            counts = counter.take()
            try:
                counts.save(path)
            except OSError:
                with suppress(OSError):  # there may be no room for a run either
                    self._spill(counts)
                    self._save()
                with suppress(OSError):  # nothing, if so
                    self.folder.rmdir()
                raise
            report.total, report.unique = counts.total, counts.unique
            report.longest_chunk = int(np.diff(counts.offsets).max(initial=0))
        shutil.rmtree(self.folder, ignore_errors=True)
        report.bytes_read, report.files = counter.read, len(self.record.done) - len(report.failed)
        report.dropped_bytes, report.skipped_chunks = counter.dropped, counter.skipped
        return report

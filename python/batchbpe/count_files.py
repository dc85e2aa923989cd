"""Counting many files into one, such that nothing is lost and memory is bounded.

Now and then, and before it stops, what was counted is written as a run into a folder beside the result, with a record
of the files that are in the runs and the place in the one that is not yet done. So it can go on from there. The same
runs bound the memory: they are written when the table has grown too large, and added up at the end.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from .chunks import PATTERNS, check_special_tokens, pattern_of
from .counting import Counter
from .files import replacing
from .progress import counting_bar, memory, release_memory
from .readers import Source
from .runs import Runs
from .selection import Selection

VERSION = 1
SAVE_EVERY = 60.0
"""Seconds after which what was counted is saved; or longer, if saving takes more than a tenth of them."""
SHARE = 5
"""The tables may take one in so many bytes of the memory that is left: adding up and sorting take as much again."""


class Stopped(Exception):
    """The count was asked to stop. What was counted is saved."""


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
    >>> from batchbpe.corpus import sources
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report = count_files(sources("to be or not to be"), Path(folder) / "counts.parquet")
    ...     print(report.total, ChunkCounts.load(report.output).most_common(1))
    6 [(' be', 2)]
    """
    if output.suffix.lower() not in (".csv", ".parquet"):
        raise ValueError(f"{output}: give a name that ends in .parquet or .csv, by which it is known again")
    if not output.parent.is_dir():
        raise FileNotFoundError(f"cannot write {output}: there is no folder {output.parent}; make it first")
    if any(source.name and Path(source.name).resolve() == output.resolve() for source in sources):
        raise ValueError(f"{output} is among the files to count: give another name, or remove it")
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
        self.sources, self.options = sources, options
        self.skip_errors, self.max_memory, self.threads, self.stop = skip_errors, max_memory, threads, stop
        self.folder = output.with_name(output.name + ".parts")
        given = options.pattern, options.special_tokens, options.errors, threads, options.max_chunk_bytes
        self.counter = Counter(*given, moved=self._moved_in_text)
        self.report = Report(str(output))
        self.selection = Selection(options.sample, options.seed, options.limit_bytes)
        self.done: list[list[Any]] = []
        self.current: list[Any] = []  # which source, how many of its items are counted, and how far the next one
        self.left = self.selection.left
        self.runs = Runs(self.folder)
        self.next_save = time.monotonic() + SAVE_EVERY
        self.base = memory()
        if resume and self._record.exists():
            self._load()
        elif self.folder.exists() and not resume:
            raise FileExistsError(
                f"{self.folder} holds a count that was not finished: --resume goes on with it; or remove the folder"
            )

    @property
    def _record(self) -> Path:
        return self.folder / "record.json"

    def count(self) -> None:
        done = [tuple(source) for source in self.done]
        for source in self.sources:
            known = identity(source)
            if tuple(known) in done:
                done.remove(tuple(known))
                source.at = source.size
                continue
            if self.selection.is_over:
                break
            begun = bool(self.current) and self.current[0] == known
            items, skip = self.current[1:] if begun else (0, 0)
            self.left = self.selection.left
            self.current = [known, items, skip]
            try:
                for item, documents in enumerate(self.selection.of(source)):
                    if item < items:
                        continue
                    self.counter.add(documents, skip=skip)
                    skip = 0
                    self.current = [known, item + 1, 0]
                    self._moved(0)
            except (ValueError, OSError) as error:
                if not self.skip_errors:
                    raise
                self.report.failed[source.name or "the data"] = str(error)
            except _Unsaved as error:
                raise error.reason from None
            self.done.append(known)
            self.current, self.left = [], self.selection.left
            self._pause()

    def _moved_in_text(self, done: int) -> None:
        # Between two batches the place is not known yet.
        if done:
            self.current[2] = done
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
            self._spill()
        if time.monotonic() > self.next_save:
            self._save()

    def _stopped(self) -> NoReturn:
        raise Stopped(f"stopped; what was counted is in {self.folder}, and --resume goes on with it")

    def _spill(self) -> None:
        self.folder.mkdir(exist_ok=True)
        self.runs.add(self.counter.take())
        release_memory()

    def _save(self) -> None:
        start = time.monotonic()
        if self.counter.unique:
            self._spill()
        self.folder.mkdir(exist_ok=True)
        record = {
            "version": VERSION,
            "options": _plain(self.options),
            "runs": self.runs.names,
            "bounds": self.runs.bounds,
            "done": self.done,
            "current": self.current,
            "left": self.left,
            "read": self.counter.read,
            "dropped": self.counter.dropped,
            "skipped": self.counter.skipped,
            "failed": self.report.failed,
        }
        with replacing(self._record) as temporary:
            temporary.write_text(json.dumps(record, indent=1), encoding="utf-8")
        self.next_save = time.monotonic() + max(SAVE_EVERY, 10 * (time.monotonic() - start))

    def _load(self) -> None:
        try:
            record = json.loads(self._record.read_text(encoding="utf-8"))
            if record["version"] != VERSION:
                raise ValueError(f"it has version {record['version']}, this program reads {VERSION}")
            for name, value in _plain(self.options).items():
                if record["options"][name] != value:
                    raise ValueError(f"it was begun with {name}={record['options'][name]!r}, not {value!r}")
            self.runs = Runs(self.folder, record["runs"], record["bounds"])
            self.done, self.current, self.left = record["done"], record["current"], record["left"]
            self.counter.read, self.counter.dropped = record["read"], record["dropped"]
            self.counter.skipped, self.report.failed = record["skipped"], record["failed"]
            self.selection.left = self.left
            now = [identity(source) for source in self.sources]
            for name, *rest in (*self.done, *self.current[:1]):
                if [name, *rest] not in now:
                    changed = any(name == other[0] for other in now)
                    raise ValueError(
                        f"{name} {'has changed since it was counted' if changed else 'is not given again'}"
                    )
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{self._record}: {error}; give the same options, or remove {self.folder} to begin anew"
            ) from None

    def finish(self) -> Report:
        report, counter = self.report, self.counter
        path = Path(report.output)
        if self.runs.names:
            self._save()
            for _ in self.runs.save_sum(path, self.options.pattern, self.threads):
                if self.stop():
                    self._stopped()
            report.total, report.unique, report.longest_chunk = self.runs.total, self.runs.unique, self.runs.longest
            shutil.rmtree(self.folder)
        else:
            counts = counter.take()
            counts.save(path)
            report.total, report.unique = counts.total, counts.unique
            report.longest_chunk = int(np.diff(counts.offsets).max(initial=0))
        report.bytes_read, report.files = counter.read, len(self.done)
        report.dropped_bytes, report.skipped_chunks = counter.dropped, counter.skipped
        return report


def _plain(options: Options) -> dict[str, Any]:
    return json.loads(json.dumps(asdict(options)))  # type: ignore[no-any-return]


def identity(source: Source) -> list[Any]:
    """Give the name of a file, its size and when it was changed, by which it is known again."""
    path = Path(source.name)
    return [source.name, source.size, path.stat().st_mtime_ns if source.size and path.is_file() else 0]

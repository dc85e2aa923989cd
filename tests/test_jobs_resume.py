"""A job that is stopped, killed and resumed in any order writes the same bytes as an uninterrupted one."""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import multilingual
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from batchbpe import Tokenizer
from batchbpe.data.corpus import sources
from batchbpe.data.documents import Documents, Texts
from batchbpe.data.source import Source
from batchbpe.errors import Stopped
from batchbpe.jobs.count import count_files
from batchbpe.jobs.encode import encode_files
from batchbpe.jobs.encode_options import EncodeOptions

TEXTS = [multilingual(300, seed) for seed in range(16)]
TOKENIZER = Tokenizer.train(iter(TEXTS), 400)
FILES = ("a.parquet", "b.jsonl", "c.txt")
PATCHED = {
    "batchbpe.data.options.ReadOptions.BATCH_CHARACTERS": 900,
    "batchbpe.data.text_files.BLOCK": 500,
    "batchbpe.jobs.count.SAVE_EVERY": -1.0,
    "batchbpe.jobs.spill.RANGES": 4,
    "batchbpe.jobs.spill.release_memory": lambda: None,
    "batchbpe.jobs.count.release_memory": lambda: None,
    "os.fsync": lambda _: None,
}


class KilledError(BaseException):
    """Simulates SIGKILL: no module catches it, so nothing more is saved."""


def after(n: int, act: Callable[[], Any]) -> Callable[[], Any]:
    """Return a function that returns False n times, and then calls `act`."""
    left = iter(range(n))
    return lambda: act() if next(left, None) is None else False


def kill() -> bool:
    raise KilledError


class Job(RuleBasedStateMachine):
    """What can happen to a job. Its state is on disk; `changed` contains the input files that were changed."""

    record: str

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        for name, value in PATCHED.items():
            self.patch.setattr(name, value)
        self.folder = Path(tempfile.mkdtemp())
        self.data = self.folder / "data"
        self.data.mkdir()
        pq.write_table(pa.table({"text": TEXTS[:6]}), self.data / "a.parquet", row_group_size=3)
        (self.data / "b.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS[6:11]))
        (self.data / "c.txt").write_text("\n".join(TEXTS[11:]), encoding="utf-8")
        self.whole = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in self.data.iterdir()}
        self.changed: set[str] = set()
        self.finished = False

    def teardown(self) -> None:
        self.patch.undo()
        shutil.rmtree(self.folder)

    def run(self, given: list[Source], stop: Callable[[], bool]) -> None:
        """Start or resume the job."""
        raise NotImplementedError

    def output(self) -> dict[str, bytes]:
        """Return the files that the job has written."""
        found = (path for path in self.folder.rglob("*") if path.is_file() and self.data not in path.parents)
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in found}

    def recorded(self) -> list[str]:
        """Return the names of the input files that the record mentions."""
        path = self.folder / self.record
        fields = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"done": [], "current": []}
        return [Path(name).name for name, *_ in (*fields["done"], *fields["current"][:1])]

    @contextmanager
    def killed_in_write(self, n: int) -> Iterator[None]:
        """Kill the job at its nth sync to disk, which is either before or after a rename."""
        killed = after(n, kill)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "fsync", lambda _: killed())
            yield

    def interrupted(self, n: int) -> list[Source]:
        """Return the sources, which kill the job after n batches."""
        killed = after(n, kill)

        def read(source: Source) -> Iterator[Any]:
            for documents in source:
                killed()
                yield documents

        every = sources(self.data)
        return [Source(source.name, lambda _, source=source: read(source), source.size) for source in every]  # type: ignore[misc]

    @initialize()
    def run_uninterrupted(self) -> None:
        self.run(sources(self.data), lambda: False)
        self.expected = self.output()
        self.clear()

    def clear(self) -> None:
        for path in self.folder.iterdir():
            if path != self.data:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        self.finished = False

    @precondition(lambda self: not self.changed and not self.finished)
    @rule(n=st.integers(0, 12), how=st.sampled_from(["stop", "kill", "kill reading", "kill writing"]))
    def run_a_bit(self, n: int, how: str) -> None:
        given = self.interrupted(n) if how == "kill reading" else sources(self.data)
        stop = {"stop": after(n, lambda: True), "kill": after(n, kill)}.get(how, lambda: False)
        try:
            if how == "kill writing":
                with self.killed_in_write(n):
                    self.run(given, stop)
            else:
                self.run(given, stop)
            self.finished = True
        except (KilledError, Stopped):
            pass

    @precondition(lambda self: not self.changed and not self.finished)
    @rule(data=st.data(), how=st.sampled_from(["append", "touch", "replace"]))
    def change(self, data: st.DataObject, how: str) -> None:
        known = self.recorded()
        if not known:
            return
        path = self.data / data.draw(st.sampled_from(known))
        content, time = self.whole[path.name]
        if how == "append":
            path.write_bytes(content + b" ")
        elif how == "replace":
            path.write_bytes(bytes(len(content)))
        os.utime(path, ns=(time, time + 1))
        self.changed.add(path.name)

    @precondition(lambda self: self.changed)
    @rule()
    def refuse_changed_files(self) -> None:
        with pytest.raises(ValueError, match=r"has changed since the job was started; use the same options and files"):
            self.run(sources(self.data), lambda: False)

    @precondition(lambda self: self.changed)
    @rule()
    def restore(self) -> None:
        for name in self.changed:
            content, time = self.whole[name]
            (self.data / name).write_bytes(content)
            os.utime(self.data / name, ns=(time, time))
        self.changed.clear()

    @precondition(lambda self: not self.changed and not self.finished)
    @rule()
    def finish(self) -> None:
        self.run(sources(self.data), lambda: False)
        self.finished = True

    @invariant()
    def output_is_complete_or_absent(self) -> None:
        if self.finished:
            assert self.output() == self.expected
            self.clear()
        assert not [name for name in self.output() if ".tmp" in name or ".lock" in name]


class Count(Job):
    record = "counts.parquet.parts/record.json"

    def run(self, given: list[Source], stop: Callable[[], bool]) -> None:
        count_files(given, self.folder / "counts.parquet", resume=True, threads=1, stop=stop)


class Encode(Job):
    record = "out/shards.json"

    def run(self, given: list[Source], stop: Callable[[], bool]) -> None:
        """This job has no stop function, so it is stopped by an exception, like Ctrl-C."""

        def read(source: Source) -> Iterator[Any]:
            for documents in source:
                if stop():
                    raise KilledError
                yield documents

        some = [Source(source.name, lambda _, source=source: read(source), source.size) for source in given]  # type: ignore[misc]
        encode_files(TOKENIZER, some, self.folder / "out", EncodeOptions(shard_tokens=700), resume=True, threads=1)


Count.TestCase.settings = Encode.TestCase.settings = settings(
    max_examples=15, stateful_step_count=12, deadline=None, suppress_health_check=list(HealthCheck)
)
TestCount = Count.TestCase
TestEncode = Encode.TestCase


class Name(str):
    """A file name that counts how often it is compared."""

    def __eq__(self, other: object) -> bool:
        Watched.operations += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


class Watched(Source):
    """A source that counts how often its position is read and its name is compared."""

    operations = 0

    @property
    def position(self) -> int:
        Watched.operations += 1
        return self._position

    @position.setter
    def position(self, position: int) -> None:
        self._position = position


def run_count(given: list[Source], folder: Path, stop: Callable[[], bool]) -> None:
    count_files(given, folder / "counts.parquet", resume=True, threads=1, progress=True, stop=stop)


def run_encode(given: list[Source], folder: Path, stop: Callable[[], bool]) -> None:
    """The documents are read only once the job asks for them, so an exception can stop it."""
    for source in given:
        source._read = lambda _, read=source._read: kill() if stop() else read(_)  # type: ignore[misc]
    encode_files(TOKENIZER, given, folder / "out", EncodeOptions(shard_tokens=100), resume=True, progress=True)


Run = Callable[[list[Source], Path, Callable[[], bool]], None]


def operations_of(run: Run, n: int, folder: Path) -> int:
    """Return how many operations n files take, if the job is stopped after three quarters of them and resumed."""
    folder.mkdir()
    names = [Name(folder / f"{number}.txt") for number in range(n)]
    for name in names:
        Path(name).write_text("to be")
    Watched.operations = 0
    documents: list[Documents] = [Texts(["to be or not to be"])]
    with pytest.raises((KilledError, Stopped)):
        run([Watched(name, lambda _: documents, 5) for name in names], folder, after(3 * n // 4, lambda: True))
    run([Watched(name, lambda _: documents, 5) for name in names], folder, lambda: False)
    return Watched.operations


@pytest.mark.parametrize("run", [run_count, run_encode])
def test_work_is_proportional_to_the_number_of_files(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**PATCHED, "batchbpe.util.progress.REFRESH_EVERY": 0.0}.items():
        monkeypatch.setattr(name, value)
    few, many = (operations_of(run, n, tmp_path / str(n)) for n in (20, 80))
    assert many < 6 * few, "16 times as many if it were quadratic"

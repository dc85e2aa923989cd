"""Encode many files into shards of ids, the input of language model training; resumable.

Each shard is written whole or not at all. After each one, the job records its position, so that it can be resumed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from .._core import Encoder, threads_or_all
from ..data.documents import ArrowTexts, Documents, TextFile, Texts
from ..data.sampling import Sampling, Selection
from ..data.source import Source
from ..data.text_files import read_blocks
from ..errors import ArgumentError, DataError, OutputExistsError, Setting, listed
from ..storage.atomic import replacing, writing
from ..storage.locks import IN_FOLDER, check_parent, locked
from ..tokenizer import Tokenizer
from ..util.progress import Meter, bar
from ..util.surrogates import Errors, combine_documents
from .resume import JobOptions, Record
from .shards import SHARDS, Encoded, Shard, ShardFormat

RECORD = "shards.json"
LONG = 1 << 20
"""Encoding a longer document, in bytes, may take long if it is a single chunk."""
MAX_SHARD_TOKENS = 1 << 30
"""Limit of llm.c, whose header stores the number as a 32-bit integer."""


def id_dtype(tokenizer: Tokenizer) -> np.dtype[Any]:
    """Return the type of ids in files: uint16 if all ids fit, otherwise uint32.

    >>> id_dtype(Tokenizer.train("aaabdaaabac", 259))
    dtype('uint16')
    """
    return np.dtype("<u2" if tokenizer.n_vocab <= 1 << 16 else "<u4")


def end_token(tokenizer: Tokenizer, end_of_text: str | None) -> int | None:
    """Return the id of the special token that is appended to each document."""
    if end_of_text is not None and end_of_text not in tokenizer.special_tokens:
        names = tokenizer.special_tokens
        reason = "must be a special token of the model" + (f" ({listed(names)})" if names else ", which has none")
        raise ArgumentError("end_of_text", end_of_text, reason)
    return None if end_of_text is None else tokenizer.special_tokens[end_of_text]


def encode_documents(
    tokenizer: Tokenizer, documents: Iterable[Documents], threads: int | None, errors: Errors = "strict"
) -> Iterator[Iterable[Encoded]]:
    """Encode batches of documents in order; a text file is encoded block by block.

    Each thread encodes a batch of its own while the next ones are read.

    >>> tokenizer = Tokenizer.train("aaabdaaabac", 259)
    >>> for batch in encode_documents(tokenizer, [Texts(["aaab", "ac"]), Texts(["d"])], None):
    ...     print([(encoded.ids.tolist(), encoded.ends.tolist()) for encoded in batch])
    [([258, 97, 99], [1, 3])]
    [([100], [1])]
    """
    at_once = threads_or_all(threads)
    pool = ThreadPoolExecutor(at_once)
    pending: deque[Future[Iterable[Encoded]]] = deque()
    try:
        for future in _submit(pool, tokenizer._encoder, documents, at_once, errors):
            pending.append(future)
            if len(pending) > at_once:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def encode_sources(
    tokenizer: Tokenizer, sources: Iterable[Source], sampling: Sampling, threads: int | None, errors: Errors
) -> Iterator[Encoded]:
    """Encode the documents of some sources. Read errors are raised as `DataError`, never as `OSError`."""
    selection = Selection(sampling)
    for source in sources:
        try:
            with source.blamed():
                for batch in encode_documents(tokenizer, selection.of(source), threads, errors):
                    yield from batch
        except OSError as error:
            raise DataError(str(error)) from None


def _submit(
    pool: ThreadPoolExecutor, encoder: Encoder, batches: Iterable[Documents], threads: int, errors: Errors
) -> Iterator[Future[Iterable[Encoded]]]:
    done: Future[Iterable[Encoded]]
    try:
        for documents in batches:
            if documents.has_longer_than(LONG):
                # Encoded lazily, on the caller's thread, which receives Ctrl-C.
                done = Future()
                done.set_result(_encode(encoder, documents, threads, errors))
                yield done
            else:
                yield pool.submit(list, _encode(encoder, documents, 1, errors))
    except Exception as error:  # raised after the batches that were read before it
        done = Future()
        done.set_exception(error)
        yield done


def _encode(encoder: Encoder, documents: Documents, threads: int, errors: Errors) -> Iterator[Encoded]:
    match documents:
        case TextFile():
            yield from _encode_file(encoder, documents, threads, errors)
        case Texts(strings):
            try:
                ids, offsets = encoder.encode_batch_to_numpy(strings, ([], []), threads)
            except UnicodeEncodeError:
                ids, offsets = encoder.encode_batch_to_numpy(combine_documents(strings, errors), ([], []), threads)
            yield Encoded(ids, offsets[1:])
        case ArrowTexts():
            ids, offsets = encoder.encode_documents(*documents.buffers(), ([], []), threads)
            yield Encoded(ids, offsets[1:])
        case _:
            documents.sizes()  # raises an error for chunk counts


def _encode_file(encoder: Encoder, file: TextFile, threads: int, errors: Errors) -> Iterator[Encoded]:
    encoded: list[Encoded] = []

    def use(block: bytes, offset: int, last: bool) -> int:
        ids, used = encoder.encode_block(block, offset, last, ([], []), threads)
        encoded.append(Encoded(ids, np.array([len(ids)] if last else [], np.int64)))
        return used

    for _ in read_blocks(file, errors, use):
        yield encoded.pop()


@dataclass(frozen=True)
class EncodeOptions(JobOptions):
    """Options that determine the shards. A job can only be resumed with the same ones."""

    format: ShardFormat = "bin"
    end_of_text: str | None = None
    """Special token to append to each document."""
    shard_tokens: int = 100_000_000
    """A shard is closed after this many tokens, at the end of a batch of documents."""

    def __post_init__(self) -> None:
        """Check the values."""
        if self.format not in SHARDS:
            raise ArgumentError("format", self.format, f"must be one of {', '.join(SHARDS)}")
        if self.shard_tokens < 1 or (self.format == "llm.c" and self.shard_tokens > MAX_SHARD_TOKENS):
            raise ArgumentError("shard_tokens", self.shard_tokens, f"must be from 1 to {MAX_SHARD_TOKENS}")


@dataclass
class EncodeReport:
    """What a job has written."""

    shards: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    """Bytes of each shard."""
    tokens: int = 0
    documents: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    """Files that could not be read, and why."""
    finished: bool = False


def encode_files(
    tokenizer: Tokenizer,
    sources: Sequence[Source],
    folder: Path,
    options: EncodeOptions | None = None,
    *,
    resume: bool = False,
    skip_errors: bool = False,
    describe: Callable[[Exception], str] = str,
    threads: int | None = None,
    progress: bool = False,
) -> EncodeReport:
    """Encode all documents into shards in a folder. Special tokens in the text are encoded as plain text.

    Parameters
    ----------
    tokenizer: encodes the documents.
    sources: what to encode; see `data.corpus.sources`.
    folder: created if necessary; must be empty unless `resume` is set.
    options: what the shards contain.
    resume: continue a job that was stopped or killed.
    skip_errors: continue after a file that cannot be read; the report lists it.
    describe: renders the errors in the report.
    threads: number of threads; all cores by default.
    progress: show a progress bar.

    >>> import tempfile
    >>> from batchbpe.data.corpus import sources
    >>> tokenizer = Tokenizer.train("aaabdaaabac", 260, special_tokens=["<eot>"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     documents = sources(["aaab", "ac"])
    ...     encode_files(tokenizer, documents, Path(folder), EncodeOptions(end_of_text="<eot>")).tokens
    ...     np.fromfile(Path(folder) / "shard_000000.bin", np.uint16).tolist()
    5
    [258, 259, 97, 99, 259]

    """
    options = options or EncodeOptions()
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"{folder} is a file; choose a folder, or a name that ends in .npy or .bin")
    check_parent(folder)
    end_token(tokenizer, options.end_of_text)  # an error before the folder is created
    with writing(folder):
        folder.mkdir(exist_ok=True)
    with locked(folder):
        job = _EncodeJob(tokenizer, sources, folder, options, resume, skip_errors, describe, threads)
        meter = Meter(sources)
        with bar("encoding", meter.size, show=progress) as update:
            job.encode(lambda tokens: update(meter.done, f"{tokens:,} tokens"))
        return job.report


class _EncodeJob:
    def __init__(
        self,
        tokenizer: Tokenizer,
        sources: Sequence[Source],
        folder: Path,
        options: EncodeOptions,
        resume: bool,
        skip_errors: bool,
        describe: Callable[[Exception], str],
        threads: int | None,
    ) -> None:
        self.tokenizer, self.sources, self.folder, self.options = tokenizer, sources, folder, options
        self.skip_errors, self.describe, self.threads = skip_errors, describe, threads
        self.end = end_token(tokenizer, options.end_of_text)
        self.dtype = id_dtype(tokenizer)
        self.report = EncodeReport()
        self.selection = Selection(options.sampling)
        identity = asdict(options) | {"model": tokenizer.model.identity, "dtype": self.dtype.name}
        self.record = Record(folder / RECORD, identity, sources, self.selection, **asdict(self.report))
        temporary = set(folder.glob(".*.tmp"))  # of a killed job: this one holds the lock of the folder
        self._check_folder(resume, {*temporary, folder / IN_FOLDER})
        if self.record.path.exists():
            self.record.load()
            self.report = EncodeReport(**self.record.state)
            self._check_shards()
        for path in temporary:
            path.unlink()

    def _check_folder(self, resume: bool, own: set[Path]) -> None:
        if self.record.path.exists():
            if not resume:
                remedy = ("continue with ", Setting("resume", True), ", or choose another folder")
                raise OutputExistsError(f"{self.folder} already holds shards", remedy=remedy)
            return
        # A job may be killed after its first shard and before its record.
        first = {self.folder / self._name(0)} if resume else set()
        if set(self.folder.iterdir()) - own - first:
            raise OutputExistsError(f"{self.folder} holds other files", remedy="choose another folder for the shards")

    def _check_shards(self) -> None:
        """Compare the sizes of the shards with the record. Their content is not read again."""
        remedy = f"remove {self.folder} to start again"
        for name, size in zip(self.report.shards, self.report.sizes, strict=True):
            path = self.folder / name
            if not path.exists():
                raise FileNotFoundError(f"{path} is missing; {remedy}")
            if path.stat().st_size != size:
                problem = f"the file is damaged: it has {path.stat().st_size} bytes, expected {size}"
                raise DataError(problem, where=str(path), remedy=remedy)

    def encode(self, on_progress: Callable[[int], object]) -> None:
        todo = self._todo()
        report = self.report
        while not report.finished:
            name = self._name(len(report.shards))
            with replacing(self.folder / name) as path, SHARDS[self.options.format](path, self.dtype) as shard:
                report.finished = self._fill(shard, todo, on_progress)
            if shard.tokens or not report.shards:
                report.shards.append(name)
                report.sizes.append((self.folder / name).stat().st_size)
            else:
                (self.folder / name).unlink()
            report.tokens += shard.tokens
            report.documents += shard.documents
            self.record.state = asdict(report)
            self.record.save()

    def _name(self, number: int) -> str:
        return f"shard_{number:06}.{'parquet' if self.options.format == 'parquet' else 'bin'}"

    def _fill(self, shard: Shard, todo: Iterator[Encoded | None], on_progress: Callable[[int], object]) -> bool:
        """Fill a shard; return whether everything has been encoded."""
        for encoded in todo:
            if encoded is None:  # the position is recorded, so a shard may end here
                if shard.tokens >= self.options.shard_tokens:
                    return False
                continue
            shard.add(encoded, self.end)
            on_progress(self.report.tokens + shard.tokens)
        return True

    def _todo(self) -> Iterator[Encoded | None]:
        """Yield the ids of all documents that are not encoded yet, and None after each batch."""
        for source, done, _ in self.record.todo():
            try:
                with source.blamed():
                    batches = islice(self.selection.of(source), done, None)
                    encoded = encode_documents(self.tokenizer, batches, self.threads, self.options.errors)
                    for number, batch in enumerate(encoded, done + 1):
                        yield from batch
                        self.record.move(number)
                        yield None
            except (ValueError, OSError) as error:
                if not self.skip_errors:
                    raise error if isinstance(error, DataError) else DataError(str(error)) from None
                self.report.failed[source.name or "the data"] = self.describe(error)

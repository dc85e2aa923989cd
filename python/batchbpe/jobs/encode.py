"""Encode many files into shards of ids, the input of language model training; resumable.

Each shard is written whole or not at all. After each one, the job records its position, so that it can be resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path

from ..arguments import check_bool
from ..choices import ShardFormat
from ..data.sampling import Selection
from ..data.source import Source
from ..errors import ArgumentError, DataError, OutputExistsError
from ..storage.atomic import replacing, writing
from ..storage.locks import IN_FOLDER, check_parent, locked
from ..tokenizer import Tokenizer
from . import SHARD_TOKENS
from .encoded import Encoded, encode_documents, encoding_bar, end_token, id_dtype
from .resume import RESUME, JobOptions, ReadErrors, Record
from .shards import SHARDS, Shard

RECORD = "shards.json"
MAX_SHARD_TOKENS = 1 << 30
"""Limit of llm.c, whose header stores the number as a 32-bit integer."""


@dataclass(frozen=True)
class EncodeOptions(JobOptions):
    """Options that determine the shards. A job can only be resumed with the same ones."""

    format: ShardFormat = "bin"
    end_of_text: str | None = None
    """Special token to append to each document."""
    allow_special: bool = False
    """Encode special tokens in the text as tokens, instead of as plain text."""
    shard_tokens: int = SHARD_TOKENS
    """A shard is closed after this many tokens, at the end of a batch of documents."""

    def __post_init__(self) -> None:
        """Check the values."""
        check_bool("allow_special", self.allow_special)
        if self.format not in SHARDS:
            raise ArgumentError("format", self.format, f"must be one of {', '.join(SHARDS)}")
        if self.shard_tokens < 1 or (self.format == "llm.c" and self.shard_tokens > MAX_SHARD_TOKENS):
            raise ArgumentError("shard_tokens", self.shard_tokens, f"must be between 1 and {MAX_SHARD_TOKENS}")


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
    """Encode all documents into shards in a folder.

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
    >>> import numpy as np
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
    job = _EncodeJob(tokenizer, sources, folder, options, ReadErrors(skip_errors, describe), threads)
    with writing(folder):
        folder.mkdir(exist_ok=True)
    with locked(folder):
        job.restore(resume)
        with encoding_bar(sources, show=progress) as on_progress:
            job.encode(on_progress)
        return job.report


class _EncodeJob:
    def __init__(
        self,
        tokenizer: Tokenizer,
        sources: Sequence[Source],
        folder: Path,
        options: EncodeOptions,
        errors: ReadErrors,
        threads: int | None,
    ) -> None:
        self.tokenizer, self.folder, self.options = tokenizer, folder, options
        self.errors, self.threads = errors, threads
        self.end = end_token(tokenizer, options.end_of_text)
        self.report = EncodeReport(failed=errors.failed)
        self.selection = Selection(options.sampling)
        recorded = options.recorded() | {"model": tokenizer.model.identity}
        self.record = Record(folder / RECORD, recorded, sources, self.selection)

    def restore(self, resume: bool) -> None:
        temporary = set(self.folder.glob(".*.tmp"))  # of a killed job, because this one has locked the folder
        if self.record.path.exists():
            if not resume:
                remedy = (*RESUME, ", or choose another folder")
                raise OutputExistsError(f"{self.folder} already contains shards", remedy=remedy)
            fields = self.record.load()
            self.report = EncodeReport(**{name: fields[name] for name in asdict(self.report)})
            self.errors.failed = self.report.failed
            self._check_shards()
        else:
            expected = {*temporary, self.folder / IN_FOLDER}
            if resume:  # a job may be killed after its first shard and before its record
                expected.add(self.folder / self._name(0))
            if set(self.folder.iterdir()) - expected:
                problem = f"{self.folder} contains other files"
                raise OutputExistsError(problem, remedy="choose another folder for the shards")
        for path in temporary:
            path.unlink()

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

    def _name(self, number: int) -> str:
        return f"shard_{number:06}.{'parquet' if self.options.format == 'parquet' else 'bin'}"

    def encode(self, on_progress: Callable[[int], object]) -> None:
        todo = self._todo()
        report, new_shard = self.report, SHARDS[self.options.format]
        while not report.finished:
            path = self.folder / self._name(len(report.shards))
            with replacing(path) as temporary, new_shard(temporary, id_dtype(self.tokenizer)) as shard:
                report.finished = self._fill(shard, todo, on_progress)
            if shard.tokens or not report.shards:
                report.shards.append(path.name)
                report.sizes.append(path.stat().st_size)
            else:
                path.unlink()
            report.tokens += shard.tokens
            report.documents += shard.documents
            self.record.save(asdict(report))

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
            with self.errors.of(source):
                batches = islice(self.selection.of(source), done, None)
                errors, allow_special = self.options.reading.errors, self.options.allow_special
                encoded = encode_documents(self.tokenizer, batches, self.threads, errors, allow_special=allow_special)
                for number, batch in enumerate(encoded, done + 1):
                    yield from batch
                    self.record.move(number)
                    yield None

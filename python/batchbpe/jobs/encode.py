"""Encode many files into files of ids, the input of language model training; resumable.

Each shard is written whole or not at all. After each one, the job records its position, so that it can be resumed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path

from ..arguments import check_bool, check_integer
from ..choices import TokenFormat
from ..data.sampling import Selection
from ..data.source import Source
from ..errors import ArgumentError, DataError, OutputExistsError, Setting
from ..storage.atomic import writing
from ..storage.locks import IN_FOLDER, check_parent, locked
from ..tokenizer import Tokenizer
from . import SHARD_TOKENS
from .encoded import DocumentEncoder, Encoded, encoding_bar
from .marks import Mark, check_mark, marks_of
from .resume import RESUME, JobOptions, ReadErrors, Record
from .shards import Layout, Shard, partial_path
from .token_files import FORMATS
from .validation import check_fraction

RECORD = "shards.json"


@dataclass(frozen=True)
class EncodeOptions(JobOptions):
    """Options that determine the files. A job can only be resumed with the same ones.

    >>> EncodeOptions("nanogpt")
    Traceback (most recent call last):
    ...
    batchbpe.errors.ArgumentError: validation must be a fraction for the format nanogpt (train.bin and val.bin), got None; set validation=0.01
    """  # noqa: E501  the last line is an error message

    format: TokenFormat = "bin"
    append_eos: Mark = False
    """Put the special token with the role eos, or the one with this name, after each document."""
    prepend_bos: Mark = False
    """Put the special token with the role bos, or the one with this name, before each document."""
    allow_special: bool = False
    """Encode special tokens in the text as tokens, instead of as plain text."""
    shard_tokens: int = SHARD_TOKENS
    """A shard ends with the first document at which it has this many tokens."""
    split_documents: bool = False
    """End a shard after exactly `shard_tokens` tokens, even inside a document."""
    validation: float | None = None
    """Fraction of the documents for validation, chosen by a hash of their text."""

    def __post_init__(self) -> None:
        """Check the values."""
        for name in ("allow_special", "split_documents"):
            check_bool(name, getattr(self, name))
        for name in ("append_eos", "prepend_bos"):
            check_mark(name, getattr(self, name))
        check_fraction(self.validation)
        if self.format not in [*FORMATS]:  # a list, since the value may not be hashable
            raise ArgumentError("format", self.format, f"must be one of {', '.join(FORMATS)}")
        format = FORMATS[self.format]
        check_integer("shard_tokens", self.shard_tokens, least=1)
        most, whose = format.max_tokens, f"the format {self.format}"
        if self.split_documents and format.max_document < most:  # a document may fill a shard
            most, whose = format.max_document, f"{whose} if documents are split"
        if self.shard_tokens > most:
            raise ArgumentError("shard_tokens", self.shard_tokens, f"must be at most {most} for {whose}")
        if not format.in_shards:
            self._check_without_shards()

    def _check_without_shards(self) -> None:
        names = f"the format {self.format} (train.bin and val.bin)"
        if self.validation is None:
            remedy = ("set ", Setting("validation", 0.01))
            raise ArgumentError("validation", None, f"must be a fraction for {names}", remedy=remedy)
        for name, default in (("shard_tokens", SHARD_TOKENS), ("split_documents", False)):
            if getattr(self, name) != default:
                remedy = ("remove it, or use ", another_format("bin"))
                raise ArgumentError(name, getattr(self, name), f"has no effect on {names}", remedy=remedy)

    def layout(self, folder: Path, tokenizer: Tokenizer) -> Layout:
        """Return the files to write. A vocabulary that is too large for the format is an error."""
        format = FORMATS[self.format]
        if tokenizer.n_vocab > format.max_vocab:
            problem = f"the model has ids up to {tokenizer.n_vocab - 1:,}, but {self.format} files store"
            remedy = ("use ", another_format("bin"), " or ", another_format("npy"))
            raise DataError(f"{problem} ids up to {format.max_vocab - 1:,}", remedy=remedy)
        return Layout.of(folder, format, tokenizer, self.validation)

    def encoder(self, tokenizer: Tokenizer, threads: int | None = None) -> DocumentEncoder:
        """Return what encodes the documents."""
        marks = marks_of(tokenizer, self.append_eos, self.prepend_bos)
        return DocumentEncoder(tokenizer, marks, self.allow_special, self.reading.errors, self.validation, threads)


def another_format(name: TokenFormat) -> Setting:
    """Return the setting of a format, for a remedy."""
    return Setting("token_format", name, call=f'format="{name}"')


@dataclass
class EncodeReport:
    """What a job has written."""

    shards: list[str] = field(default_factory=list)
    """Names of the files of ids."""
    sizes: dict[str, int] = field(default_factory=dict)
    """Bytes of each file, including the files of an index."""
    tokens: int = 0
    documents: int = 0
    validation_tokens: int = 0
    """How many of the tokens are for validation."""
    validation_documents: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    """Files that could not be read, and why."""
    finished: bool = False

    def add(self, part: str, tokens: int, documents: int) -> None:
        """Count the tokens and the documents of a part of the data.

        >>> report = EncodeReport()
        >>> report.add("validation", 5, 1)
        >>> report.tokens, report.validation_tokens
        (5, 5)
        """
        self.tokens += tokens
        self.documents += documents
        if part == "validation":
            self.validation_tokens += tokens
            self.validation_documents += documents


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
    ...     encode_files(tokenizer, documents, Path(folder), EncodeOptions(append_eos="<eot>")).tokens
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
        self.folder, self.options, self.errors = folder, options, errors
        self.layout = options.layout(folder, tokenizer)
        self.encoder = options.encoder(tokenizer, threads)
        self.report = EncodeReport(failed=errors.failed)
        self.selection = Selection(options.sampling)
        recorded = options.recorded() | {"model": tokenizer.model.identity}
        self.record = Record(folder / RECORD, recorded, sources, self.selection)
        self.number = 0
        self.batch = self.position = 0  # in the source, and in the batch
        self.rest: Encoded | None = None  # what did not fit into the last shard

    def restore(self, resume: bool) -> None:
        entries = {*self.layout.entries()}
        temporary = {path for path in entries if path.match(".*.tmp")}  # of a killed job: this one has the lock
        if self.record.path.exists():
            if not resume:
                remedy = (*RESUME, ", or choose another folder")
                raise OutputExistsError(f"{self.folder} already contains shards", remedy=remedy)
            fields = self.record.load()
            self.report = EncodeReport(**{name: fields[name] for name in asdict(self.report)})
            self.number = fields["number"]
            self.errors.failed = self.report.failed
            self._restore_files()
        else:
            self.layout.remove_partial()
            first = {path for part in self.layout.parts for path in self.layout.paths(0, part)}
            expected = {*temporary, self.folder / IN_FOLDER, *map(partial_path, first)}
            if resume:  # a job may be killed after its first shard and before its record
                expected |= first
            if entries - expected:
                problem = f"{self.folder} contains other files"
                raise OutputExistsError(problem, remedy="choose another folder for the shards")
        for path in temporary:
            path.unlink()

    def _restore_files(self) -> None:
        """Compare the sizes of the files with the record, and cut those that grow. Their content is not read again."""
        remedy = f"remove {self.folder} to start again"
        grows = not (self.layout.format.in_shards or self.report.finished)
        for name, size in self.report.sizes.items():
            path = self.folder / name
            if grows:
                if path.exists():  # renamed, but not recorded
                    path.replace(partial_path(path))
                path = partial_path(path)
            if not path.exists():
                raise FileNotFoundError(f"{path} is missing; {remedy}")
            found = path.stat().st_size
            if found < size or (found > size and not grows):
                problem = f"the file is damaged: it has {found} bytes, expected {size}"
                raise DataError(problem, where=str(path), remedy=remedy)
            if grows:
                os.truncate(path, size)

    def encode(self, on_progress: Callable[[int], object]) -> None:
        report = self.report
        # Closed here, because the garbage collector may run while another thread starts, and wait for it forever.
        with closing(self._todo()) as todo:
            while not report.finished:
                with Shard(self.layout, self.number) as shard:
                    report.finished = self._fill(shard, todo, on_progress)
                self._report(shard)
                self.number += 1
                self.record.save(asdict(report) | {"number": self.number})

    def _report(self, shard: Shard) -> None:
        report, layout = self.report, self.layout
        for part, file in shard.files.items():
            names = layout.names(self.number, part)
            for name in names:
                path = self.folder / name
                report.sizes[name] = (path if layout.format.in_shards else partial_path(path)).stat().st_size
            if names[0] not in report.shards:
                report.shards.append(names[0])
            report.add(part, file.tokens, file.documents)
        if report.finished and not layout.format.in_shards:
            for name in report.sizes:
                partial_path(self.folder / name).replace(self.folder / name)

    def _fill(self, shard: Shard, todo: Iterator[Encoded], on_progress: Callable[[int], object]) -> bool:
        """Fill a shard; return whether everything has been encoded."""
        limit, split_documents = self.options.shard_tokens, self.options.split_documents
        while encoded := self.rest or next(todo, None):
            end = shard.end(encoded, limit, split_documents=split_documents)
            encoded, self.rest = (encoded, None) if end is None else encoded.split(end)
            shard.add(encoded)
            self.position += encoded.size
            on_progress(self.report.tokens + shard.tokens)
            if self.rest:
                self.record.move(self.batch, self.position)
                return False
        return True

    def _todo(self) -> Generator[Encoded, None, None]:
        """Yield the ids of all documents that are not encoded yet."""
        for source, done, skip in self.record.todo():
            is_open = False
            with self.errors.of(source):
                documents = islice(self.selection.of(source), done, None)
                for number, batch in enumerate(self.encoder.batches(documents), done):
                    self.batch, self.position = number, 0
                    for encoded in batch:
                        is_open = encoded.is_open(is_open)
                        skipped = min(skip, encoded.size)
                        skip -= skipped
                        self.position += skipped
                        if skipped < encoded.size:
                            yield encoded.split(skipped)[1]
            if is_open:  # the rest of a document could not be read
                yield encoded.closing(self.encoder.marks)

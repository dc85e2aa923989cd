"""Encode many files into token files, the input of language model training; resumable.

Each shard is written whole or not at all. After each one, the job records its position, so that it can be resumed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict
from itertools import islice
from pathlib import Path

from ..data.sampling import Selection
from ..data.source import Source
from ..errors import DataError, OutputExistsError
from ..storage.atomic import writing
from ..storage.locks import IN_FOLDER, check_parent, locked
from ..tokenizer import Tokenizer
from .encode_options import EncodeOptions, EncodeReport
from .encoded import Encoded, encoding_bar
from .resume import RESUME, ReadErrors, Record
from .shards import Shard, partial_path

RECORD = "shards.json"


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
    own = folder.resolve()
    inside = next((each.name for each in sources if each.name and Path(each.name).resolve().is_relative_to(own)), None)
    if inside is not None:
        raise DataError(f"{inside} is in the output folder, {folder}", remedy="choose another folder for the shards")
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
            if self.report.finished and (new := next(self.record.not_done(), None)):
                problem = f"{self.folder} is finished, and {new.name} is not part of it"
                raise OutputExistsError(problem, remedy="encode new files into another folder")
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
        grows = not (self.layout.format.is_sharded or self.report.finished)
        if self.layout.format.is_sharded and not self.report.finished:  # written, but not recorded
            for part in self.layout.parts:
                for path in self.layout.paths(self.number, part):
                    path.unlink(missing_ok=True)
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
                report.sizes[name] = (path if layout.format.is_sharded else partial_path(path)).stat().st_size
            if names[0] not in report.files:
                report.files.append(names[0])
            report.add(part, file.tokens, file.documents)
        if report.finished and not layout.format.is_sharded:
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

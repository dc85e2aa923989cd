"""`RunCounts`: counts of runs of single-token chunks, the input of phrase training."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..arguments import check_integer, check_path
from ..counts.arrays import ArrayCounts, added_up
from ..data.corpus import Corpus, Data, Files
from ..data.options import Reading, ReadOptions, Sampling
from ..errors import ArgumentError, ArgumentTypeError, DataError, Setting
from ..model import Model
from ..options import accepting
from ..storage.atomic import replacing
from .counting import EligibleChunks, RunArrays, RunReader
from .options import PhraseChunks

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..formats import HasModel


class RunCounts(ArrayCounts):
    """How often each run of chunks occurs. A run consists of neighboring chunks, each a single token of a model.

    Counts for the same model add up, so runs can be counted file by file or on several machines.

    >>> model = Model(split=r" ?\\w", merges={(32, 97): 256, (32, 98): 257})
    >>> runs = RunCounts.count("a b a b c a b", model)
    >>> runs
    RunCounts(total=2, unique=2)
    >>> list(runs)
    [((256, 257), 1), ((97, 257, 256, 257), 1)]
    """

    def __init__(self, arrays: RunArrays) -> None:
        """Wrap arrays of the core; use `count` or `load` to create counts."""
        if not isinstance(arrays, RunArrays):
            raise ArgumentTypeError("arrays", arrays, "must be RunArrays", remedy="use RunCounts.count")
        self.arrays: RunArrays = arrays

    @classmethod
    @accepting(ReadOptions, Sampling)
    def count(
        cls,
        data: Data | None = None,
        model: Model | HasModel | None = None,
        *,
        phrase_chunks: PhraseChunks = "letters",
        min_count: int = 1,
        texts: str | Iterable[str] | None = None,
        files: Files | None = None,
        progress: bool = False,
        threads: int | None = None,
        **reading: Unpack[Reading],
    ) -> RunCounts:
        """Count the runs of a dataset.

        Parameters
        ----------
        data, texts, files, threads: as in `ChunkCounts.count`. Special tokens of the model are removed from the text.
        {reading}
        model: the model or tokenizer for which phrases will be trained.
        phrase_chunks: "letters", "text", a regular expression, or a function; see `KINDS`.
        min_count: cut runs at pairs of chunks that occur fewer times. This takes a second pass over the data and saves
            most of the memory. Runs that were cut cannot be added to others.
        progress: True shows progress bars.

        """
        model = getattr(model, "model", model)
        if not isinstance(model, Model):
            raise ArgumentTypeError("model", model, "must be a Tokenizer or a Model")
        check_integer("min_count", min_count, least=1)
        min_count = min(int(min_count), (1 << 32) - 1)  # the largest value of a counter
        reader = RunReader(Corpus.of(data, texts, files, reading), [*model.found_tokens], progress, threads)
        chunks = EligibleChunks(model, phrase_chunks)
        sketch = reader.sketch(chunks) if min_count > 1 else None
        return cls(reader.runs(chunks, sketch, min_count))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> RunCounts:
        """Load runs from a parquet file, or from a folder that `batchbpe.spark` has written.

        >>> RunCounts.load("nowhere.parquet")
        Traceback (most recent call last):
        ...
        FileNotFoundError: file not found: nowhere.parquet
        """
        from ..formats import counts_folder  # imports pyarrow
        from ..formats import runs_parquet as format
        from ..formats.file_errors import locate_errors

        check_path("path", path)
        if Path(path).is_dir():
            metadata = counts_folder.read_metadata(Path(path), "run")
            with locate_errors(Path(path)):
                format.checked(metadata)
            arrays = added_up(counts_folder.read(Path(path), "run"))
            if any(size % 4 or size < 8 for size in np.unique(np.diff(arrays[1])).tolist()):
                raise DataError("a run must have two or more ids", where=os.fspath(path), remedy="count again")
            return cls(RunArrays(*arrays, **metadata))
        if not Path(path).is_file():
            raise FileNotFoundError(f"file not found: {path}")
        with locate_errors(Path(path)):
            arrays, metadata = format.read(Path(path))
            return cls(RunArrays(*arrays, **metadata))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save as .parquet."""
        from ..formats import runs_parquet as format  # imports pyarrow

        check_path("path", path)
        if Path(path).suffix.lower() != ".parquet":
            raise ArgumentError("path", os.fspath(path), "must end in .parquet")
        data, offsets, counts, model_id, kind, min_count = self.arrays
        metadata = {"model_id": model_id, "kind": kind, "min_count": min_count}
        with replacing(path) as temporary:
            format.write(data, offsets, counts, metadata, temporary)

    def __iter__(self) -> Iterator[tuple[tuple[int, ...], int]]:
        """Iterate over the runs, as tuples of ids, and their counts."""
        ids, ends = self.arrays.data.view(np.uint32), self.arrays.offsets // 4
        for start, end, count in zip(ends[:-1].tolist(), ends[1:].tolist(), self.arrays.counts.tolist(), strict=True):
            yield tuple(ids[start:end].tolist()), count

    def __add__(self, other: object) -> RunCounts:
        """Add up the counts of two datasets."""
        if not isinstance(other, RunCounts):
            return NotImplemented
        ours, theirs = self.arrays, other.arrays
        for name, what in {"model_id": "another model", "kind": "another kind of chunks"}.items():
            if getattr(ours, name) != getattr(theirs, name):
                raise DataError(f"cannot add runs of {what}", remedy="count both with the same one")
        if ours.min_count > 1 or theirs.min_count > 1:
            reason = f"cannot add runs that were cut, with min_count {max(ours.min_count, theirs.min_count)}"
            raise DataError(reason, remedy=("count with ", Setting("min_count", 1)))
        data, offsets, counts = added_up([ours[:3], theirs[:3]])
        return RunCounts(ours._replace(data=data, offsets=offsets, counts=counts))

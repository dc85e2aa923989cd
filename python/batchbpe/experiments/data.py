"""Data for experiments: chunk counts to train on, and held-out chunk counts to encode."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from ..analysis.counted_text import CountedText
from ..counts import ChunkCounts
from ..counts.counter import ChunkArrays, ChunkCounter, sorted_counts
from ..data import corpus
from ..data.documents import Counts
from ..data.sampling import DocumentSampler
from ..data.source import Source
from ..errors import ArgumentError, DataError, Setting
from ..formats.counts_parquet import table
from ..patterns import Split
from ..util.arrow import bytes_and_offsets, mask_array
from ..util.progress import counting_bar

HELDOUT_SHARE = 0.1
"""Default fraction of the data to hold out if no held-out text is given."""
MAX_NAMES = 10
"""Maximum number of file names in the parameters of a result."""
IN_MEMORY = "in memory"


@dataclass(frozen=True)
class ExperimentData:
    """Chunk counts to train on and held-out chunk counts to encode, made with the same pattern."""

    counts: ChunkCounts
    heldout: ChunkCounts
    dropped: int = 0
    """Number of bytes of the held-out text that the pattern does not match."""
    parameters: dict[str, Any] = field(default_factory=dict)
    """Where the data comes from."""

    @classmethod
    def of(
        cls,
        data: ExperimentData | corpus.Data | None = None,
        heldout: corpus.Data | None = None,
        *,
        texts: str | Iterable[str] | None = None,
        files: corpus.PathLike | Iterable[corpus.PathLike] | None = None,
        pattern: str | None = None,
        heldout_share: float = HELDOUT_SHARE,
        seed: int = 0,
        text_column: str = "text",
        errors: str = "strict",
        threads: int | None = None,
        progress: bool = False,
    ) -> ExperimentData:
        """Count data and held-out text. Without `heldout`, hold out a random fraction of the documents.

        If the data is chunk counts or a single document, hold out a random fraction of the chunks instead.

        Parameters
        ----------
        data: anything that `ChunkCounts.count` accepts. An `ExperimentData` is returned unchanged.
        heldout: text to encode; anything that `ChunkCounts.count` accepts.
        texts, files: as in `ChunkCounts.count`, instead of `data`.
        pattern: a name or regular expression; by default that of chunk counts in the data, or gpt4.
        heldout_share: fraction to hold out, between 0 and 1.
        seed: random seed for choosing what to hold out.
        text_column, errors, threads, progress: as in `ChunkCounts.count`.

        >>> data = ExperimentData.of(["to be or not to be"] * 100)
        >>> data.counts.total + data.heldout.total, 0 < data.heldout.total < data.counts.total
        (600, True)
        >>> ExperimentData.of(texts=["be.txt"], heldout="to be").counts.total
        2

        """
        data = corpus.choose(data, texts, files)
        if isinstance(data, ExperimentData):
            return data
        if not 0 < heldout_share < 1:
            raise ArgumentError("heldout_share", heldout_share, "must be between 0 and 1, exclusive")
        counting = _Counting(text_column, errors, threads, progress)
        parameters: dict[str, Any] = {"data": source_names(data)}
        if heldout is not None:
            parameters["held-out text"] = source_names(heldout)
            counts, _ = counting.all(data, pattern)
            other, dropped = counting.all(heldout, counts.split)
        else:
            counts, other, dropped, unit = counting.divided(data, pattern, heldout_share, seed)
            parameters |= {"held-out text": f"{heldout_share} of the {unit}", "seed": seed}
        for name, each in {"data": counts, "held-out text": other}.items():
            if not each.unique:
                remedy = () if heldout is not None else (" or change ", Setting("heldout_share"))
                raise DataError(f"the {name} contains no chunks", remedy=("provide more data", *remedy))
        parameters |= {"pattern": counts.pattern, "chunks": counts.total, "unique": counts.unique}
        return cls(counts, other, dropped, parameters | {"chunks held out": other.total})

    @property
    def text(self) -> CountedText:
        """The held-out text, to evaluate on."""
        return CountedText.from_counts(self.heldout, self.dropped)


def read_sources(data: corpus.Data, text_column: str = "text", errors: str = "strict") -> list[Source]:
    """Return the sources of data."""
    return corpus.sources(data, text_column=text_column, errors=errors)


def source_names(data: corpus.Data) -> list[str]:
    """Return the names of the files that contain the data, at most ten.

    >>> source_names(["to be", "or not"])
    ['in memory']
    """
    names = list(dict.fromkeys(source.name or IN_MEMORY for source in read_sources(data)))
    names = [name for name in names if name != IN_MEMORY] or names
    return names if len(names) <= MAX_NAMES else [*names[:MAX_NAMES], f"and {len(names) - MAX_NAMES} more"]


@dataclass(frozen=True)
class _Counting:
    """Options for counting data."""

    text_column: str
    errors: str
    threads: int | None
    progress: bool

    def all(self, data: corpus.Data, pattern: Split | str | None) -> tuple[ChunkCounts, int]:
        """Count data, and the bytes that the pattern does not match."""
        if isinstance(data, ChunkCounts):
            return ChunkCounts.count(data, pattern), 0
        counter = ChunkCounter(pattern, (), self.errors, self.threads)
        sources = read_sources(data, self.text_column, self.errors)
        with counting_bar(counter, sources, show=self.progress):
            counter.add_sources(sources)
        return ChunkCounts(counter.take()), counter.dropped_bytes

    def divided(
        self, data: corpus.Data, pattern: Split | str | None, share: float, seed: int
    ) -> tuple[ChunkCounts, ChunkCounts, int, str]:
        """Count a random fraction of the documents, or of the chunks, separately.

        Chunk counts among the documents are used for training. Returns the two counts, the dropped bytes of the
        second, and "documents" or "chunks".
        """
        if isinstance(data, ChunkCounts):
            return *split_counts(ChunkCounts.count(data, pattern), share, seed), 0, "chunks"
        split = None if pattern is None else Split.of(pattern)
        train, other = (ChunkCounter(split, (), self.errors, self.threads) for _ in range(2))
        sources = read_sources(data, self.text_column, self.errors)
        with counting_bar(train, sources, show=self.progress):
            for source in sources:
                sampler = DocumentSampler(source, seed)
                with source.blamed():
                    for documents in source:
                        if isinstance(documents, Counts):
                            train.add(documents)
                            continue
                        is_held = sampler.draw(documents, share)
                        for counter, mask in ((other, is_held), (train, ~is_held)):
                            if mask.any():
                                counter.add(documents.select(mask))
        counts = ChunkCounts(train.take())
        other.split = counts.split
        heldout = ChunkCounts(other.take())
        if counts.unique and heldout.unique:
            return counts, heldout, other.dropped_bytes, "documents"
        dropped = round(share * (train.dropped_bytes + other.dropped_bytes))
        return *split_counts(heldout + counts, share, seed), dropped, "chunks"


def split_counts(counts: ChunkCounts, share: float, seed: int) -> tuple[ChunkCounts, ChunkCounts]:
    """Split counts in two. Each occurrence of a chunk goes to the second with probability `share`.

    >>> kept, taken = split_counts(ChunkCounts.count("to be " * 100), 0.5, seed=0)
    >>> kept + taken == ChunkCounts.count("to be " * 100)
    True
    """
    numbers = counts.arrays.counts.astype(np.int64)
    taken = np.random.default_rng(seed).binomial(numbers, share)
    return _with_counts(counts, numbers - taken), _with_counts(counts, taken)


def _with_counts(counts: ChunkCounts, numbers: Any) -> ChunkCounts:
    """Return the same chunks with other counts, without chunks whose count is 0."""
    data, offsets = counts.arrays[:2]
    kept = table(data, offsets, numbers.astype(np.uint64)).filter(mask_array(numbers > 0))
    chunks: Any = kept["chunk"].combine_chunks()
    data, offsets = bytes_and_offsets(chunks if isinstance(chunks, pa.Array) else chunks.chunk(0))
    return ChunkCounts(sorted_counts(ChunkArrays(data, offsets, kept["count"].to_numpy(), counts.split)))

"""Data for experiments: chunk counts to train on, and held-out chunk counts to encode."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from ..analysis.counted_text import CountedText
from ..analysis.groups import GroupedDocuments
from ..choices import Normalization
from ..counts import ChunkCounts
from ..counts.counter import ChunkArrays, ChunkCounter, sorted_counts
from ..data.corpus import Corpus, Data, Files
from ..data.documents import Counts, Documents
from ..data.options import ReadOptions
from ..data.sampling import DocumentSampler
from ..data.source import Source
from ..errors import ArgumentError, DataError, Setting
from ..formats.counts_parquet import table
from ..patterns import Split, split_given
from ..util.arrow import bytes_and_offsets, mask_array
from ..util.progress import counting_bar
from ..util.surrogates import Errors

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
    documents: DividedDocuments | None = field(default=None, compare=False)
    """The documents behind the counts; None if chunks are held out instead of documents."""

    @classmethod
    def of(
        cls,
        data: ExperimentData | Data | None = None,
        heldout: Data | None = None,
        *,
        texts: str | Iterable[str] | None = None,
        files: Files | None = None,
        pattern: Split | str | None = None,
        normalization: Normalization | None = None,
        heldout_share: float = HELDOUT_SHARE,
        seed: int = 0,
        text_column: str = "text",
        document: str = "file",
        errors: Errors = "strict",
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
        normalization: Unicode normalization form of the text, such as NFC.
        heldout_share: fraction to hold out, between 0 and 1.
        seed: random seed for choosing what to hold out.
        text_column, document, errors, threads, progress: as in `ChunkCounts.count`.

        >>> data = ExperimentData.of(["to be or not to be"] * 100)
        >>> data.counts.total + data.heldout.total, 0 < data.heldout.total < data.counts.total
        (600, True)
        >>> ExperimentData.of(texts=["be.txt"], heldout="to be").counts.total
        2

        """
        if isinstance(data, ExperimentData) and texts is files is None:
            return data
        options = ReadOptions(text_column, document=document, errors=errors)
        corpus = Corpus(data, texts, files, options)  # type: ignore[arg-type]
        held = None if heldout is None else Corpus(heldout, options=corpus.options)
        split = split_given(pattern, normalization)
        return cls.of_corpus(corpus, held, split, heldout_share, seed, (), threads, progress)

    @classmethod
    def of_corpus(
        cls,
        corpus: Corpus,
        heldout: Corpus | None,
        pattern: Split | str | None,
        heldout_share: float,
        seed: int,
        found_tokens: Sequence[str] = (),
        threads: int | None = None,
        progress: bool = False,
    ) -> ExperimentData:
        """Count data and held-out text; see `of`. `found_tokens` are removed from the data before it is split."""
        _check_share(heldout_share)
        parameters: dict[str, Any] = {"data": source_names(corpus)}
        if heldout is not None:
            parameters["held-out text"] = source_names(heldout)
            counts, _ = _count(corpus, pattern, found_tokens, threads, progress)
            other, dropped = _count(heldout, counts.split, (), threads, progress)
        else:
            trained = ChunkCounter(pattern, found_tokens, corpus.options.errors, threads)
            held = ChunkCounter(pattern, (), corpus.options.errors, threads)
            counts, other, dropped, unit = _count_divided(corpus, trained, held, heldout_share, seed, progress)
            parameters |= {"held-out text": f"{heldout_share} of the {unit}", "seed": seed}
        for name, each in {"data": counts, "held-out text": other}.items():
            if not each.unique:
                remedy = () if heldout is not None else (" or change ", Setting("heldout_share"))
                raise DataError(f"the {name} contains no chunks", remedy=("provide more data", *remedy))
        parameters |= {"pattern": counts.split.name, "chunks": counts.total, "unique": counts.unique}
        parameters |= {"chunks held out": other.total}
        is_divided = heldout is not None or unit == "documents"
        documents = DividedDocuments(corpus, heldout, heldout_share, seed) if is_divided else None
        return cls(counts, other, dropped, parameters, documents)

    @classmethod
    def by_group(
        cls,
        grouped: GroupedDocuments,
        pattern: Split | str | None,
        errors: Errors,
        heldout_share: float,
        seed: int,
        on_documents: Callable[[], object] = lambda: None,
    ) -> tuple[dict[str, ExperimentData], dict[str, ExperimentData]]:
        """Count the documents of each group, and hold out two random fractions of each.

        The first result is for a search. The second differs in the held-out text, which is for testing what was found.
        """
        _check_share(heldout_share, most=0.5)
        counters: dict[str, _DividedCounter] = {}
        for source, parts in grouped:
            sampler = DocumentSampler(source, seed)
            with source.blamed():
                for group, documents in parts:
                    if group not in counters:
                        training, *others = (ChunkCounter(pattern, (), errors) for _ in range(3))
                        counters[group] = _DividedCounter(training, others, heldout_share, seed)
                    counters[group].add(documents, sampler)
                    on_documents()
        searched: dict[str, ExperimentData] = {}
        tested: dict[str, ExperimentData] = {}
        for group, counter in sorted(counters.items()):
            counts, heldout, dropped, _ = counter.finish()
            if not all(each.unique for each in (counts, *heldout)):
                remedy = "provide more documents, or leave the group out"
                raise DataError(f"group {group} has too little text to hold some out", remedy=remedy)
            searched[group], tested[group] = (cls(counts, *each) for each in zip(heldout, dropped, strict=True))
        return searched, tested

    @property
    def text(self) -> CountedText:
        """The held-out text, to evaluate on."""
        return CountedText.from_counts(self.heldout, self.dropped)


class DividedDocuments:
    """The documents to train on, and those held out: other documents, or a random fraction of the same.

    >>> documents = DividedDocuments(Corpus(["to be", "or not", "to be"]), None, 0.5, seed=0)
    >>> sum(len(some) for some in documents.heldout())
    2
    """

    def __init__(self, corpus: Corpus, heldout: Corpus | None, fraction: float, seed: int) -> None:
        """Store what to read."""
        _check_share(fraction)
        self.corpus, self._heldout, self._fraction, self._seed = corpus, heldout, fraction, seed

    @property
    def are_of_one_corpus(self) -> bool:
        """Whether a fraction of the documents is held out, instead of others."""
        return self._heldout is None

    def training(self) -> Source:
        """Return the documents to train on, which can be read several times."""
        return Source("", lambda _: self._documents(self.corpus, is_held=False if self._heldout is None else None))

    def counted(self, split: Split, found_tokens: Sequence[str] = (), corpus: Corpus | None = None) -> ExperimentData:
        """Count the documents, or others to train on; see `ExperimentData.of_corpus`."""
        trained_on = corpus or self.corpus
        return ExperimentData.of_corpus(trained_on, self._heldout, split, self._fraction, self._seed, found_tokens)

    def heldout(self) -> Iterator[Documents]:
        """Yield the held-out documents."""
        return self._documents(self._heldout or self.corpus, is_held=True if self._heldout is None else None)

    def _documents(self, corpus: Corpus, is_held: bool | None) -> Iterator[Documents]:
        """Yield the documents that are held out, those that are not, or all."""
        for source in corpus.sources:
            sampler = DocumentSampler(source, self._seed)
            with source.blamed():
                for documents in source:
                    if isinstance(documents, Counts):
                        raise DataError("expected documents, got chunk counts", remedy="pass the documents")
                    if is_held is None:
                        yield documents
                        continue
                    mask = sampler.draw(documents, self._fraction) == is_held
                    if mask.any():
                        yield documents.select(np.asarray(mask))


def _check_share(heldout_share: float, most: float = 1) -> None:
    if not 0 < heldout_share < most:
        raise ArgumentError("heldout_share", heldout_share, f"must be between 0 and {most}, exclusive")


def source_names(corpus: Corpus) -> list[str]:
    """Return the names of the files that contain the data, at most ten.

    >>> source_names(Corpus(["to be", "or not"]))
    ['in memory']
    """
    return names_of(corpus.sources)


def names_of(sources: Iterable[Source]) -> list[str]:
    """Return the names of sources, at most ten."""
    names = list(dict.fromkeys(source.name or IN_MEMORY for source in sources))
    names = [name for name in names if name != IN_MEMORY] or names
    return names if len(names) <= MAX_NAMES else [*names[:MAX_NAMES], f"and {len(names) - MAX_NAMES} more"]


def _count(
    corpus: Corpus, pattern: Split | str | None, found_tokens: Sequence[str], threads: int | None, progress: bool
) -> tuple[ChunkCounts, int]:
    """Count data, and the bytes that the pattern does not match."""
    if isinstance(corpus.data, ChunkCounts):
        return ChunkCounts.count(corpus.data, pattern), 0
    counter = ChunkCounter(pattern, found_tokens, corpus.options.errors, threads)
    with counting_bar(counter, corpus.sources, show=progress):
        counter.add_sources(corpus.sources)
    return ChunkCounts(counter.take()), counter.dropped_bytes


def _count_divided(
    corpus: Corpus, train: ChunkCounter, other: ChunkCounter, fraction: float, seed: int, progress: bool
) -> tuple[ChunkCounts, ChunkCounts, int, str]:
    """Count a random fraction of the documents, or of the chunks, with `other`, and the rest with `train`.

    Chunk counts among the documents are trained on. Returns the two counts, the dropped bytes of the second, and
    "documents" or "chunks".
    """
    if isinstance(corpus.data, ChunkCounts):
        return *split_counts(ChunkCounts.count(corpus.data, train.split), fraction, seed), 0, "chunks"
    divided = _DividedCounter(train, [other], fraction, seed)
    with counting_bar(train, corpus.sources, show=progress):
        for source in corpus.sources:
            sampler = DocumentSampler(source, seed)
            with source.blamed():
                for documents in source:
                    divided.add(documents, sampler)
    counts, (heldout,), (dropped,), unit = divided.finish()
    return counts, heldout, dropped, unit


class _DividedCounter:
    """Counts random fractions of the documents, each with a separate counter, and the rest for training."""

    def __init__(self, training: ChunkCounter, others: Sequence[ChunkCounter], fraction: float, seed: int) -> None:
        self._training, self._others, self._fraction, self._seed = training, others, fraction, seed

    def add(self, documents: Documents, sampler: DocumentSampler) -> None:
        if isinstance(documents, Counts):
            self._training.add(documents)
            return
        parts = np.minimum(sampler.random(documents) // self._fraction, len(self._others))
        for part, counter in enumerate((*self._others, self._training)):
            mask = parts == part
            if mask.any():
                counter.add(documents.select(mask))

    def finish(self) -> tuple[ChunkCounts, list[ChunkCounts], list[int], str]:
        """Return the counts to train on, those of the other counters and their dropped bytes, and the unit."""
        counts = ChunkCounts(self._training.take())
        for each in self._others:
            each.split = counts.split
        heldout = [ChunkCounts(each.take()) for each in self._others]
        dropped = [each.dropped_bytes for each in self._others]
        if counts.unique and all(each.unique for each in heldout):
            return counts, heldout, dropped, "documents"
        dropped = [round(self._fraction * (self._training.dropped_bytes + sum(dropped)))] * len(heldout)
        counts = sum(heldout, counts)
        for part in range(len(heldout)):
            # The same seed would take more of the same chunks each time.
            left = 1 - part * self._fraction
            counts, heldout[part] = split_counts(counts, self._fraction / left, self._seed + part)
        return counts, heldout, dropped, "chunks"


def split_counts(counts: ChunkCounts, fraction: float, seed: int) -> tuple[ChunkCounts, ChunkCounts]:
    """Split counts in two. Each occurrence of a chunk goes to the second with probability `fraction`.

    >>> kept, taken = split_counts(ChunkCounts.count("to be " * 100), 0.5, seed=0)
    >>> kept + taken == ChunkCounts.count("to be " * 100)
    True
    """
    numbers = counts.arrays.counts.astype(np.int64)
    taken = np.random.default_rng(seed).binomial(numbers, fraction)
    return _with_counts(counts, numbers - taken), _with_counts(counts, taken)


def _with_counts(counts: ChunkCounts, numbers: Any) -> ChunkCounts:
    """Return the same chunks with other counts, without chunks whose count is 0."""
    data, offsets = counts.arrays[:2]
    kept = table(data, offsets, numbers.astype(np.uint64)).filter(mask_array(numbers > 0))
    chunks: Any = kept["chunk"].combine_chunks()
    data, offsets = bytes_and_offsets(chunks if isinstance(chunks, pa.Array) else chunks.chunk(0))
    return ChunkCounts(sorted_counts(ChunkArrays(data, offsets, kept["count"].to_numpy(), counts.split)))

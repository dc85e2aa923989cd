"""`ChunkCounts`: a dataset as a dictionary chunk → count, the reusable input of training."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..arguments import check_integer, check_path, check_threads
from ..choices import Normalization
from ..data.corpus import Corpus, Data, Files
from ..data.options import Reading, ReadOptions, Sampling
from ..data.sampling import Selection
from ..errors import ArgumentError, ArgumentTypeError
from ..model.checks import check_special_tokens
from ..options import accepting
from ..patterns import Split, split_given
from ..storage.atomic import replacing
from ..util.lazy import lazy
from ..util.progress import counting_bar
from .arrays import ArrayCounts, total_of
from .counter import ChunkArrays, ChunkCounter, load_counts

if TYPE_CHECKING:
    from typing_extensions import Unpack

SUFFIXES = (".parquet", ".csv")


class ChunkCounts(ArrayCounts, Mapping[str, int]):
    """How often each chunk occurs in a dataset, most frequent first; chunks of equal count are ordered by their bytes.

    A mapping from chunk to count that is far smaller than the text, can be saved, and adds up across files and
    machines. Bytes that are not valid UTF-8 appear in chunks as `surrogateescape` decodes them.

    >>> counts = ChunkCounts.count(["to be or not to be"])
    >>> counts
    ChunkCounts(total=6, unique=5)
    >>> counts.most_common(2)
    [(' be', 2), (' not', 1)]
    >>> (counts + counts)[" be"]
    4
    """

    def __init__(self, arrays: ChunkArrays) -> None:
        """Wrap sorted arrays of the core; use `count` or `load` to create counts."""
        if not isinstance(arrays, ChunkArrays):
            raise ArgumentTypeError("arrays", arrays, "must be ChunkArrays", remedy="use ChunkCounts.count")
        self.arrays: ChunkArrays = arrays

    @classmethod
    @accepting(ReadOptions, Sampling)
    def count(
        cls,
        data: Data | None = None,
        pattern: Split | str | None = None,
        *,
        normalization: Normalization | None = None,
        texts: str | Iterable[str] | None = None,
        files: Files | None = None,
        special_tokens: Sequence[str] | Mapping[str, int] = (),
        progress: Callable[[int], object] | bool | None = None,
        threads: int | None = None,
        **reading: Unpack[Reading],
    ) -> ChunkCounts:
        """Count the chunks of a dataset.

        Parameters
        ----------
        data: a text, path, glob, folder or URL; chunk counts; arrow data, data frames or datasets; an iterable of
            strings; or a list of any of these. See https://batchbpe.github.io/batchbpe/data.html.
        pattern: name or regular expression; by default the pattern of the counts in `data`, or gpt4.
        normalization: Unicode normalization form of the text, such as NFC; by default that of the counts in `data`, or
            none. Decoding then returns the normalized text.
        texts: strings to count instead of `data`, even if they look like paths.
        files: paths, globs, folders or URLs to read instead of `data`; "-" is standard input.
        special_tokens: removed from the text before it is split.
        {reading}
        progress: True shows a progress bar; a function is called with the number of bytes read so far.
        threads: number of threads; all cores by default.

        """
        split = split_given(pattern, normalization)
        return count_corpus(Corpus.of(data, texts, files, reading), split, special_tokens, progress, threads)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, freq_cutoff: int = 1) -> ChunkCounts:
        """Load counts from parquet, or from a csv file of the paper's program; either may be compressed (.gz, .zst).

        The path can also be a folder of counts that `batchbpe.spark` has made. Chunks that occur fewer than
        `freq_cutoff` times are left out. Those of a folder are not even loaded, which saves memory.

        >>> ChunkCounts.load("nowhere.csv")
        Traceback (most recent call last):
        ...
        FileNotFoundError: file not found: nowhere.csv
        """
        check_path("path", path)
        check_integer("freq_cutoff", freq_cutoff)
        return cls(load_counts(Path(path), freq_cutoff=freq_cutoff)).at_least(freq_cutoff)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save as .parquet, or as .csv with the two columns of the paper's program."""
        from ..formats import counts_parquet as format  # imports pyarrow

        check_suffix("path", path)
        batches = format.table(*self.arrays[:3]).to_batches(max_chunksize=format.ROWS)
        as_csv = Path(path).suffix.lower() == ".csv"
        with replacing(path) as temporary:
            format.write(batches, self.split, self.total, self.unique, temporary, as_csv=as_csv)

    @classmethod
    def mix(
        cls,
        parts: Mapping[str, ChunkCounts | tuple[ChunkCounts, float]],
        *,
        alpha: float | None = None,
        freq_cutoff: int = 1,
    ) -> ChunkCounts:
        """Add up counts in proportion to weights. The counts of the result are relative.

        Each part is multiplied by an integer, which makes weights exact to 0.05% and loses no chunk.

        Parameters
        ----------
        parts: counts of the same pattern by name, each with its weight: the fraction of the bytes of the mixture that
            come from this part. Weights are normalized to a sum of 1.
        alpha: instead of weights, make them proportional to sizeᵅ, with sizes in bytes. 1 is plain addition, 0 uniform.
        freq_cutoff: leave out chunks that occur fewer times in a part.

        >>> en, de = ChunkCounts.count("to be or not"), ChunkCounts.count("zu sein")  # 12 and 7 bytes
        >>> dict(ChunkCounts.mix({"en": (en, 24), "de": (de, 7)}))
        {' be': 2, ' not': 2, ' or': 2, 'to': 2, ' sein': 1, 'zu': 1}
        >>> ChunkCounts.mix({"en": en, "de": de}, alpha=1) == en + de
        True

        """
        from .mixture import Mixture

        if not isinstance(parts, Mapping):
            raise ArgumentTypeError("parts", parts, "must be a dict of names and counts")
        given = {name: part if isinstance(part, tuple) else (part,) for name, part in parts.items()}
        for name, part in given.items():
            if len(part) not in (1, 2):
                raise ArgumentTypeError(f"parts.{name}", part, "must be counts, or a tuple of counts and a weight")
        weights = {name: part[1] for name, part in given.items() if len(part) == 2}
        for name, (counts, *_) in given.items():
            if not isinstance(counts, ChunkCounts):
                raise ArgumentTypeError(f"parts.{name}", counts, "must be ChunkCounts", remedy="use ChunkCounts.count")
        return Mixture({name: part[0] for name, part in given.items()}, weights, alpha=alpha).count(
            freq_cutoff=freq_cutoff
        )

    @property
    def pattern(self) -> str:
        """The regular expression that made the chunks."""
        return self.split.pattern

    @property
    def split(self) -> Split:
        """How the chunks were made."""
        return self.arrays.split

    @property
    def chunk_bytes(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Number of bytes of each chunk."""
        return np.diff(self.arrays.offsets)

    @property
    def total_bytes(self) -> int:
        """Number of bytes of all chunks, with repetition.

        >>> ChunkCounts.count("to be or not to be").total_bytes
        18
        """
        return total_of(self.arrays.counts, self.chunk_bytes)

    def most_common(self, n: int | None = None) -> list[tuple[str, int]]:
        """Return the n most frequent chunks and their counts, or all."""
        if n is not None:
            check_integer("n", n)
        n = self.unique if n is None else max(0, min(n, self.unique))
        return list(zip(self._chunks(n), self.arrays.counts[:n].tolist(), strict=True))

    def at_least(self, freq_cutoff: int) -> ChunkCounts:
        """Return the chunks that occur at least `freq_cutoff` times, without copying them.

        >>> list(ChunkCounts.count("to be or not to be").at_least(2))
        [' be']
        """
        check_integer("freq_cutoff", freq_cutoff)
        data, offsets, counts, split = self.arrays
        rarer = self.unique
        if freq_cutoff < 1 << 64:
            rarer = int(np.searchsorted(counts[::-1], np.uint64(max(freq_cutoff, 0))))
        n = self.unique - rarer
        return ChunkCounts(ChunkArrays(data, offsets[: n + 1], counts[:n], split))

    def stop_words(self, stop_list_size: int) -> list[bytes]:
        """Return the most frequent chunks of more than one character.

        >>> ChunkCounts.count("to be, or not to be,").stop_words(2)
        [b' be', b' not']
        """
        check_integer("stop_list_size", stop_list_size, least=0)
        data, offsets = self.arrays[:2]
        words: list[bytes] = []
        for index in range(self.unique):
            if len(words) == stop_list_size:
                break
            word = data[offsets[index] : offsets[index + 1]].tobytes()
            if len(word.decode("utf-8", "surrogateescape")) > 1:
                words.append(word)
        return words

    def _repr_html_(self) -> str:
        """Display the size and the most frequent chunks in a notebook."""
        from ..analysis.inspection import inspect_counts

        return inspect_counts(self, top=5)._repr_html_()

    def __add__(self, other: object) -> ChunkCounts:
        """Add up the counts of two datasets."""
        if not isinstance(other, ChunkCounts):
            return NotImplemented
        return ChunkCounts.count([self, other], self.split)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the chunks, most frequent first."""
        return self._chunks(self.unique)

    def __getitem__(self, chunk: str) -> int:
        """Return the count of a chunk. The first call builds a dict of all chunks."""
        return self._dict[chunk]

    @lazy
    def _dict(self) -> dict[str, int]:
        return dict(self.most_common())

    def items(self) -> ItemsView[str, int]:
        """Iterate over the chunks and their counts, most frequent first."""
        return _Items(self)

    def values(self) -> ValuesView[int]:
        """Iterate over the counts, highest first."""
        return _Values(self)

    def _chunks(self, n: int) -> Iterator[str]:
        step = 1 << 16
        for start in range(0, n, step):
            offsets = self.arrays.offsets[start : min(start + step, n) + 1]
            data = self.arrays.data[offsets[0] : offsets[-1]].tobytes()
            for begin, end in itertools.pairwise((offsets - offsets[0]).tolist()):
                yield data[begin:end].decode("utf-8", "surrogateescape")


class _Items(ItemsView[str, int]):
    def __iter__(self) -> Iterator[tuple[str, int]]:
        counts: ChunkCounts = self._mapping  # type: ignore[attr-defined]
        return zip(counts, counts.values(), strict=True)


class _Values(ValuesView[int]):
    def __iter__(self) -> Iterator[int]:
        counts: ChunkCounts = self._mapping  # type: ignore[attr-defined]
        return map(int, counts.arrays.counts)


def count_corpus(
    corpus: Corpus,
    split: Split | None,
    special_tokens: Sequence[str] | Mapping[str, int] = (),
    progress: Callable[[int], object] | bool | None = None,
    threads: int | None = None,
) -> ChunkCounts:
    """Count the chunks of a corpus; see `ChunkCounts.count`."""
    if progress is not None and not isinstance(progress, bool) and not callable(progress):
        raise ArgumentTypeError("progress", progress, "must be True, False or a function")
    check_threads(threads)
    check_special_tokens(special_tokens)
    given = corpus.data
    if isinstance(given, ChunkCounts) and split in (None, given.split) and corpus.sampling.is_everything:
        return given
    counter = ChunkCounter(split, list(special_tokens), corpus.options.errors, threads)
    if callable(progress):
        counter.on_progress = lambda _: progress(counter.bytes_read)
    with counting_bar(counter, corpus.sources, show=progress is True):
        counter.add_sources(corpus.sources, Selection(corpus.sampling).of)
    return ChunkCounts(counter.finish())


def check_suffix(parameter: str, path: str | os.PathLike[str]) -> None:
    """Raise unless a path has the suffix of a file of counts.

    >>> check_suffix("path", "counts.txt")
    Traceback (most recent call last):
    ...
    batchbpe.errors.ArgumentError: path must end in .parquet or .csv, got 'counts.txt'
    """
    check_path(parameter, path)
    if Path(path).suffix.lower() not in SUFFIXES:
        raise ArgumentError(parameter, os.fspath(path), f"must end in {' or '.join(SUFFIXES)}")

"""Text to chunks to counts: named patterns, `split`, and `ChunkCounts`, a dataset as a dictionary chunk → count."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, ItemsView, Iterator, Mapping, Sequence, ValuesView
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from . import _core
from .data import corpus
from .data.files import decompressed, kind
from .data.tables import MAX_DOCUMENT_BYTES
from .errors import short
from .model import check_special_tokens
from .storage.atomic import replacing

Bytes = npt.NDArray[np.uint8]
Offsets = npt.NDArray[np.int64]
Counts = npt.NDArray[np.uint64]
Progress = Callable[[int], object]

BLOCK = 1 << 22


class ChunkCounts(Mapping[str, int]):
    """How often each chunk occurs in a dataset: commonest first, those of equal count in the order of their bytes.

    A mapping from chunks to counts that is a few hundred times smaller than the text, can be saved, and adds up
    across files and machines. Bytes that are no UTF-8 appear in chunks as `surrogateescape` has them.

    >>> counts = ChunkCounts.count(["to be or not to be"])
    >>> counts
    ChunkCounts(total=6, unique=5)
    >>> counts.most_common(2)
    [(' be', 2), (' not', 1)]
    >>> (counts + counts)[" be"]
    4
    """

    def __init__(self, data: Bytes, offsets: Offsets, counts: Counts, pattern: str) -> None:
        """Take chunks in a row, where each begins, and their counts, in order; use `count` or `load` to make one."""
        self.data, self.offsets, self.counts, self.pattern = data, offsets, counts, pattern

    @classmethod
    def count(
        cls,
        data: corpus.Data,
        pattern: str | None = None,
        *,
        special_tokens: Sequence[str] | Mapping[str, int] = (),
        text_column: str = "text",
        errors: Literal["strict", "replace"] = "strict",
        max_document_bytes: int = MAX_DOCUMENT_BYTES,
        progress: Progress | bool | None = None,
        threads: int | None = None,
    ) -> ChunkCounts:
        """Count the chunks of a corpus, which is anything that `corpus.documents` takes.

        `pattern` is a name or a regular expression; by default that of the counts in `data`, or else gpt4. Special
        tokens are cut out of the text and not counted. `errors` says what to do about bytes that are no UTF-8.
        `max_document_bytes` bounds what is read at once from files, see `corpus.documents`.
        `progress` is called with the number of bytes read so far; True shows a bar instead, also in a notebook.
        """
        if errors not in ("strict", "replace"):
            raise ValueError(f'errors={short(errors)}: give "strict" or "replace"')
        if isinstance(data, ChunkCounts) and pattern in (None, data.pattern):
            return data
        from .counting import Counter
        from .progress import counting_bar

        check_special_tokens(special_tokens)
        sources = corpus.sources(data, text_column=text_column, errors=errors, max_document_bytes=max_document_bytes)
        counter = Counter(pattern, list(special_tokens), errors, threads)
        if callable(progress):
            counter.moved = lambda _: progress(counter.read)
        with counting_bar(counter, sources, show=progress is True):
            for source in sources:
                with source.named():
                    for documents in source:
                        counter.add(documents)
        return counter.finish()

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ChunkCounts:
        """Load counts from parquet, or from a csv as the paper's program writes it; either may be .gz or .zst.

        >>> ChunkCounts.load("nowhere.csv")
        Traceback (most recent call last):
        ...
        FileNotFoundError: there is no file nowhere.csv
        """
        from .formats import counts as files

        path = Path(path)
        if not path.is_file():
            raise FileNotFoundError(f"there is no file {path}")
        try:
            with decompressed(path, kind(path)[1]) as plain:
                (data, offsets, counts), pattern, total = files.read(plain)
            if not pattern:
                raise ValueError("the pattern is empty: put the one there that the chunks were made with")
            # Only a file that says how many chunks it has promises that each is there once.
            if total is not None and _core.is_in_order(data, offsets, counts):
                loaded = cls(data, offsets, counts, pattern)
            else:
                loaded = in_order(data, offsets, counts, pattern)
            if total not in (None, loaded.total):
                raise ValueError(f"it is damaged: its counts add up to {loaded.total}, not to {total}; make it again")
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
        return loaded

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save as parquet, or, if the name ends in .csv, as the two columns of the paper's program."""
        from .formats import counts as files

        suffix = Path(path).suffix.lower()
        if suffix not in (".csv", ".parquet"):
            raise ValueError(f"{path}: give a name that ends in .parquet or .csv, by which it is known again")
        batches = files.table(self.data, self.offsets, self.counts).to_batches(max_chunksize=files.ROWS)
        with replacing(path) as temporary:
            files.write(batches, self.pattern, self.total, self.unique, temporary, as_csv=suffix == ".csv")

    @property
    def total(self) -> int:
        """How many chunks there are, each as often as it occurs."""
        blocks = np.array_split(self.counts, len(self.counts) // BLOCK + 1)
        # In halves, since the sum may have more than 64 bits.
        return sum((int((part >> 32).sum()) << 32) + int((part & 0xFFFF_FFFF).sum()) for part in blocks)

    @property
    def unique(self) -> int:
        """How many different chunks there are."""
        return len(self.counts)

    def most_common(self, n: int | None = None) -> list[tuple[str, int]]:
        """Give the n commonest chunks and their counts, or all."""
        n = self.unique if n is None else max(0, min(n, self.unique))
        return list(zip(self._chunks(n), self.counts[:n].tolist(), strict=True))

    def at_least(self, freq_cutoff: int) -> ChunkCounts:
        """Give the chunks that occur at least so many times. Nothing is copied.

        >>> list(ChunkCounts.count("to be or not to be").at_least(2))
        [' be']
        """
        rarer = (
            np.searchsorted(self.counts[::-1], np.uint64(max(freq_cutoff, 0))) if freq_cutoff < 1 << 64 else self.unique
        )
        n = self.unique - int(rarer)
        return ChunkCounts(self.data, self.offsets[: n + 1], self.counts[:n], self.pattern)

    def stop_words(self, stop_list_size: int) -> tuple[list[int], list[bytes]]:
        """Give the commonest chunks of more than one character: their places, and their bytes.

        >>> ChunkCounts.count("to be, or not to be,").stop_words(2)
        ([0, 2], [b' be', b' not'])
        """
        places: list[int] = []
        words: list[bytes] = []
        for place in range(self.unique):
            if len(words) == stop_list_size:
                break
            word = self.data[self.offsets[place] : self.offsets[place + 1]].tobytes()
            if len(word.decode("utf-8", "surrogateescape")) > 1:
                places.append(place)
                words.append(word)
        return places, words

    def __add__(self, other: object) -> ChunkCounts:
        """Add up the counts of two datasets."""
        if not isinstance(other, ChunkCounts):
            return NotImplemented
        return ChunkCounts.count([self, other], self.pattern)

    def __len__(self) -> int:
        """Give the number of different chunks."""
        return self.unique

    def __iter__(self) -> Iterator[str]:
        """Go through the chunks, the commonest first."""
        return self._chunks(self.unique)

    def __getitem__(self, chunk: str) -> int:
        """Give the count of a chunk; the first time makes a dict of all."""
        return self._dict[chunk]

    @cached_property
    def _dict(self) -> dict[str, int]:
        return dict(self.most_common())

    def items(self) -> ItemsView[str, int]:
        """Go through the chunks and their counts, the commonest first."""
        return _Items(self)

    def values(self) -> ValuesView[int]:
        """Go through the counts, the highest first."""
        return _Values(self)

    def __eq__(self, other: object) -> bool:
        """Whether the other has the same chunks, counts and pattern."""
        if not isinstance(other, ChunkCounts):
            return super().__eq__(other)
        return self.pattern == other.pattern and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in ("data", "offsets", "counts")
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Say how large it is."""
        return f"ChunkCounts(total={self.total}, unique={self.unique})"

    def _chunks(self, n: int) -> Iterator[str]:
        step = 1 << 16
        for start in range(0, n, step):
            offsets = self.offsets[start : min(start + step, n) + 1]
            data = self.data[offsets[0] : offsets[-1]].tobytes()
            places = (offsets - offsets[0]).tolist()
            for begin, end in itertools.pairwise(places):
                yield data[begin:end].decode("utf-8", "surrogateescape")


class _Items(ItemsView[str, int]):
    def __iter__(self) -> Iterator[tuple[str, int]]:
        counts: ChunkCounts = self._mapping  # type: ignore[attr-defined]
        return zip(counts, counts.values(), strict=True)


class _Values(ValuesView[int]):
    def __iter__(self) -> Iterator[int]:
        counts: ChunkCounts = self._mapping  # type: ignore[attr-defined]
        return map(int, counts.counts)


def in_order(data: Bytes, offsets: Offsets, counts: Counts, pattern: str) -> ChunkCounts:
    """Make counts of chunks that may be in any order, and there more than once."""
    table = _core.ChunkTable(pattern, [], 1)
    table.add_counts(data, offsets, counts)
    return ChunkCounts(*table.finish()[:3], pattern=pattern)

"""Text to chunks to counts: named patterns, `split`, and `ChunkCounts`, a dataset as a dictionary chunk → count."""

from __future__ import annotations

import codecs
import itertools
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from . import _core, corpus
from .files import replacing

PATTERNS: dict[str, str] = dict(_core.patterns())
"""The regular expression of each named pattern: gpt2, gpt4 (the paper's default), cl100k, o200k."""

Bytes = npt.NDArray[np.uint8]
Offsets = npt.NDArray[np.int64]
Counts = npt.NDArray[np.uint64]
Progress = Callable[[int], object]

BLOCK = 1 << 22


def pattern_of(name: str) -> str:
    """Give the regular expression of a named pattern, or the argument if it is no name.

    >>> pattern_of("gpt2") == PATTERNS["gpt2"], pattern_of(r" ?\\w+")
    (True, ' ?\\\\w+')
    """
    if not isinstance(name, str):
        raise TypeError(f"pattern is {name!r}: give one of {', '.join(PATTERNS)}, or a regular expression")
    return PATTERNS.get(name, name)


def split(text: str, pattern: str = "gpt4") -> list[str]:
    """Cut a text into chunks. Merges never cross from one chunk into another.

    >>> split("I'll go to 12345 cafés.")
    ['I', "'ll", ' go', ' to', ' ', '123', '45', ' cafés', '.']
    """
    return _core.split_text(pattern_of(pattern), text)


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
        special_tokens: Iterable[str] = (),
        text_column: str = "text",
        errors: Literal["strict", "replace"] = "strict",
        progress: Progress | None = None,
        threads: int | None = None,
    ) -> ChunkCounts:
        """Count the chunks of a corpus, which is anything that `corpus.documents` takes.

        `pattern` is a name or a regular expression; by default that of the counts in `data`, or else gpt4. Special
        tokens are cut out of the text and not counted. `errors` says what to do about bytes that are no UTF-8.
        `progress` is called with the number of bytes read so far.
        """
        if errors not in ("strict", "replace"):
            raise ValueError(f'errors={errors!r}: give "strict" or "replace"')
        if isinstance(data, ChunkCounts) and pattern in (None, data.pattern):
            return data
        counter = _Counter(pattern, list(special_tokens), errors, progress, threads)
        for documents in corpus.documents(data, text_column=text_column):
            counter.add(documents)
        return counter.finish()

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ChunkCounts:
        """Load counts from parquet, or from a csv as the paper's program writes it.

        >>> ChunkCounts.load("nowhere.csv")
        Traceback (most recent call last):
        ...
        FileNotFoundError: there is no file nowhere.csv
        """
        from .formats import counts as files

        path = Path(path)
        if not path.is_file():
            raise FileNotFoundError(f"there is no file {path}")
        (data, offsets, counts), pattern = files.read(path)
        if not _core.is_in_order(data, offsets, counts):
            return _in_order(data, offsets, counts, pattern)
        return cls(data, offsets, counts, pattern)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save as parquet, or, if the name ends in .csv, as the two columns of the paper's program."""
        from .formats import counts as files

        arrays = self.data, self.offsets, self.counts
        with replacing(path) as temporary:
            files.write(arrays, self.pattern, self.total, temporary, as_csv=Path(path).suffix == ".csv")

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
        n = self.unique if n is None else min(n, self.unique)
        return list(zip(self._chunks(n), self.counts[:n].tolist(), strict=True))

    def at_least(self, freq_cutoff: int) -> ChunkCounts:
        """Give the chunks that occur at least so many times. Nothing is copied.

        >>> list(ChunkCounts.count("to be or not to be").at_least(2))
        [' be']
        """
        n = self.unique - int(np.searchsorted(self.counts[::-1], np.uint64(max(freq_cutoff, 0))))
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
        """Give the count of a chunk; this looks through all of them."""
        value = np.frombuffer(chunk.encode("utf-8", "surrogateescape"), dtype=np.uint8)
        places = np.flatnonzero(np.diff(self.offsets) == len(value))
        equal = (self.data[self.offsets[places, None] + np.arange(len(value))] == value).all(axis=1)
        if not equal.any():
            raise KeyError(chunk)
        return int(self.counts[places[equal.argmax()]])

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


class _Counter:
    """Adds up whatever a corpus consists of."""

    def __init__(
        self,
        pattern: str | None,
        special_tokens: Sequence[str],
        errors: str,
        progress: Progress | None,
        threads: int | None,
    ) -> None:
        self.pattern = None if pattern is None else pattern_of(pattern)
        self.special_tokens, self.errors, self.progress, self.threads = special_tokens, errors, progress, threads
        self.table: _core.ChunkTable | None = None
        self.only: ChunkCounts | None = None  # the counts, as long as there is nothing to add to them
        self.read = 0

    def add(self, documents: corpus.Documents) -> None:
        if isinstance(documents, corpus.CountsFile):
            documents = ChunkCounts.load(documents.path)
        if isinstance(documents, ChunkCounts):
            self._add_counts(documents)
        elif isinstance(documents, Mapping):
            self._add_counts(_from_mapping(documents, self.pattern))
        elif isinstance(documents, corpus.TextFile):
            self._add_file(documents)
        elif isinstance(documents, list):
            self._started().add_strings(documents)
            self._report(sum(map(len, documents)))
        else:
            from .formats.counts import bytes_and_offsets

            data, offsets = bytes_and_offsets(documents)
            self._started().add_documents(data, offsets)
            self._report(len(data))

    def _started(self) -> _core.ChunkTable:
        if self.table is None:
            self.pattern = self.pattern or PATTERNS["gpt4"]
            self.table = _core.ChunkTable(self.pattern, self.special_tokens, self.threads)
            if self.only is not None:
                self.table.add_counts(self.only.data, self.only.offsets, self.only.counts)
                self.only = None
        return self.table

    def _add_counts(self, counts: ChunkCounts) -> None:
        self.pattern = self.pattern or counts.pattern
        if counts.pattern != self.pattern:
            raise ValueError(
                "counts made with different patterns do not add: "
                f"{counts.pattern!r} is not {self.pattern!r}; count the text again with one pattern"
            )
        if self.table is None and self.only is None:
            self.only = counts
        else:
            self._started().add_counts(counts.data, counts.offsets, counts.counts)
        self._report(len(counts.data))

    def _add_file(self, file: corpus.TextFile) -> None:
        table = self._started()
        decoder = codecs.getincrementaldecoder("utf-8")("replace") if self.errors == "replace" else None
        done, rest = 0, b""
        with file.open() as stream:
            last = False
            while not last:
                # As much again as could not be used yet: a file with no place to cut is still read in linear time.
                block = stream.read(max(BLOCK, len(rest)))
                last = not block
                self._report(len(block))
                rest += decoder.decode(block, last).encode() if decoder else block
                try:
                    used = table.add_block(rest, done, last)
                except ValueError as error:
                    raise ValueError(f"{file.name}: {error}") from None
                done, rest = done + used, rest[used:]

    def _report(self, size: int) -> None:
        self.read += size
        if self.progress:
            self.progress(self.read)

    def finish(self) -> ChunkCounts:
        if self.only is not None:
            return self.only
        table = self._started()
        if table.dropped:
            warnings.warn(
                f"{table.dropped} bytes lie between the matches of the pattern {self.pattern!r} and are dropped: "
                "what is encoded with it does not decode to the same text",
                stacklevel=4,
            )
        return ChunkCounts(*table.finish(), pattern=self.pattern or "")


def _from_mapping(mapping: Mapping[Any, int], pattern: str | None) -> ChunkCounts:
    """A dictionary of counts; as in the paper's program, a last item with the count 0 names the pattern."""
    rows = []
    for chunk, count in mapping.items():
        if not isinstance(chunk, str | bytes):
            raise TypeError(f"the chunk {chunk!r} is a {type(chunk).__name__}: give str or bytes")
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or not 0 <= count < 1 << 64:
            raise ValueError(f"the count {count!r} of chunk {chunk!r} is no whole number from 0 to 2**64 - 1")
        rows.append((chunk if isinstance(chunk, bytes) else chunk.encode("utf-8", "surrogateescape"), int(count)))
    if rows and rows[-1][1] == 0:
        pattern = rows.pop()[0].decode()
    rows = [(chunk, count) for chunk, count in rows if count]
    data = np.frombuffer(b"".join(chunk for chunk, _ in rows), np.uint8)
    offsets = np.cumsum([0, *(len(chunk) for chunk, _ in rows)], dtype=np.int64)
    counts = np.array([count for _, count in rows], np.uint64)
    return _in_order(data, offsets, counts, pattern or PATTERNS["gpt4"])


def _in_order(data: Bytes, offsets: Offsets, counts: Counts, pattern: str) -> ChunkCounts:
    table = _core.ChunkTable(pattern, [], 1)
    table.add_counts(data, offsets, counts)
    return ChunkCounts(*table.finish(), pattern=pattern)

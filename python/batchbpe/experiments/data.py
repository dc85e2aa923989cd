"""What an experiment works on: counts to train on, and text held out to encode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..analysis.evaluation import Text
from ..counting import Counter
from ..counts import ChunkCounts, in_order
from ..data import corpus
from ..data.arrow_strings import those
from ..data.readers import TextFile
from ..data.sampling import Luck
from ..data.tables import CountsFile
from ..patterns import pattern_of
from ..progress import counting_bar

HELD_OUT = 0.1
"""The share that is held out where nothing is given."""
NAMES = 10
"""So many files are named, of any number."""


@dataclass(frozen=True)
class Data:
    """Counts to train on and counts to encode, made with the same pattern."""

    counts: ChunkCounts
    heldout: ChunkCounts
    dropped: int = 0
    """How many bytes of the held-out text are in no chunk."""
    parameters: dict[str, Any] = field(default_factory=dict)
    """Where they come from."""

    @classmethod
    def of(
        cls,
        data: Data | corpus.Data,
        heldout: corpus.Data | None = None,
        *,
        pattern: str | None = None,
        share: float = HELD_OUT,
        seed: int = 0,
        text_column: str = "text",
        errors: str = "strict",
        threads: int | None = None,
        progress: bool = False,
    ) -> Data:
        """Count data and held-out text; without that, a share of the documents is held out.

        Of chunk counts, or of a single document, it is a share of the chunks instead, each as likely as another.

        >>> data = Data.of(["to be or not to be"] * 100)
        >>> data.counts.total + data.heldout.total, 0 < data.heldout.total < data.counts.total
        (600, True)
        """
        if isinstance(data, Data):
            return data
        if not 0 < share < 1:
            raise ValueError(f"share={share}: give a share between 0 and 1 to hold out")
        counting = _Counting(text_column, errors, threads, progress)
        parameters: dict[str, Any] = {"data": named(data)}
        if heldout is not None:
            parameters["held-out text"] = named(heldout)
            counts, _ = counting.all(data, pattern)
            other, dropped = counting.all(heldout, counts.pattern)
        else:
            counts, other, dropped, of = counting.apart(data, pattern, share, seed)
            parameters |= {"held-out text": f"{share} of the {of}", "seed": seed}
        for name, each in {"data": counts, "held-out text": other}.items():
            if not each.unique:
                hint = "" if heldout is not None else f"; {share} of the data was held out, by chance"
                raise ValueError(f"the {name} has no chunks: give more{hint}")
        parameters |= {"pattern": counts.pattern, "chunks": counts.total, "unique": counts.unique}
        return cls(counts, other, dropped, parameters | {"chunks held out": other.total})

    @property
    def text(self) -> Text:
        """The held-out text, to evaluate on."""
        return Text.of_counts(self.heldout, self.dropped)


def named(data: corpus.Data) -> list[str]:
    """Give the names of the files that data is in.

    >>> named(["to be", "or not"])
    ['in memory']
    """
    if isinstance(data, ChunkCounts):
        return ["in memory"]
    names = list(dict.fromkeys(source.name or "in memory" for source in corpus.sources(data)))
    names = [name for name in names if name != "in memory"] or names
    return names if len(names) <= NAMES else [*names[:NAMES], f"and {len(names) - NAMES} more"]


@dataclass(frozen=True)
class _Counting:
    text_column: str
    errors: str
    threads: int | None
    progress: bool

    def all(self, data: corpus.Data, pattern: str | None) -> tuple[ChunkCounts, int]:
        """Count data; also how many bytes are in no chunk."""
        if isinstance(data, ChunkCounts):
            return ChunkCounts.count(data, pattern), 0
        counter = Counter(pattern, (), self.errors, self.threads)
        sources = corpus.sources(data, text_column=self.text_column, errors=self.errors)
        with counting_bar(counter, sources, show=self.progress):
            for source in sources:
                with source.named():
                    for documents in source:
                        counter.add(documents)
        return counter.take(), counter.dropped

    def apart(
        self, data: corpus.Data, pattern: str | None, share: float, seed: int
    ) -> tuple[ChunkCounts, ChunkCounts, int, str]:
        """Count data and a share of its documents apart, or of its chunks. Counts among documents are trained on."""
        if isinstance(data, ChunkCounts):
            return *thinned(ChunkCounts.count(data, pattern), share, seed), 0, "chunks"
        pattern = None if pattern is None else pattern_of(pattern)
        train, other = (Counter(pattern, (), self.errors, self.threads) for _ in range(2))
        sources = corpus.sources(data, text_column=self.text_column, errors=self.errors)
        with counting_bar(train, sources, show=self.progress):
            for source in sources:
                luck = Luck(source, seed)
                for documents in source:
                    if isinstance(documents, CountsFile | Mapping):
                        train.add(documents)
                        continue
                    held = luck.draw(documents, share)
                    for counter, taken in ((other, held), (train, ~held)):
                        if taken.any():
                            whole = isinstance(documents, TextFile)
                            counter.add(documents if whole else those(documents, taken))
        counts = train.take()
        apart = other.take() if other.table else ChunkCounts.count([], counts.pattern)
        if counts.unique and apart.unique:
            return counts, apart, other.dropped, "documents"
        dropped = round(share * (train.dropped + other.dropped))
        return *thinned(apart + counts, share, seed), dropped, "chunks"


def thinned(counts: ChunkCounts, share: float, seed: int) -> tuple[ChunkCounts, ChunkCounts]:
    """Cut counts in two, each occurrence of a chunk being in the second with probability `share`.

    >>> kept, taken = thinned(ChunkCounts.count("to be " * 100), 0.5, seed=0)
    >>> kept + taken == ChunkCounts.count("to be " * 100)
    True
    """
    numbers = counts.counts.astype(np.int64)
    taken = np.random.default_rng(seed).binomial(numbers, share)
    return _with(counts, numbers - taken), _with(counts, taken)


def _with(counts: ChunkCounts, numbers: Any) -> ChunkCounts:
    """Give the same chunks with other counts, without those that have none."""
    import pyarrow as pa

    from ..data.arrow_strings import bytes_and_offsets
    from ..formats.counts import table

    some = those(table(counts.data, counts.offsets, numbers.astype(np.uint64)), numbers > 0)
    chunks = some["chunk"].combine_chunks()
    data, offsets = bytes_and_offsets(chunks if isinstance(chunks, pa.Array) else chunks.chunk(0))
    return in_order(data, offsets, some["count"].to_numpy(), counts.pattern)

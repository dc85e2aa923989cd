"""What an experiment works on: counts to train on, and text held out to encode."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

import numpy as np

from .. import corpus
from ..chunks import ChunkCounts, in_order, pattern_of
from ..counting import Counter
from ..evaluation import Text
from ..progress import counting_bar
from ..readers import TextFile
from ..tables import CountsFile, those

HELD_OUT = 0.1
"""The share that is held out where nothing is given."""


@dataclass(frozen=True)
class Data:
    """Counts to train on and counts to encode, made with the same pattern."""

    counts: ChunkCounts
    heldout: ChunkCounts
    parameters: dict[str, Any] = field(default_factory=dict)
    """Where they come from."""

    @classmethod
    def of(
        cls,
        data: corpus.Data,
        heldout: corpus.Data | None = None,
        *,
        pattern: str | None = None,
        share: float = HELD_OUT,
        seed: int = 0,
        text_column: str = "text",
        threads: int | None = None,
        progress: bool = False,
    ) -> Data:
        """Count data and held-out text; without that, a share of the documents is held out.

        Of chunk counts, or of a single document, it is a share of the chunks instead, each as likely as another.

        >>> data = Data.of(["to be or not to be"] * 100)
        >>> data.counts.total + data.heldout.total, 0 < data.heldout.total < data.counts.total
        (600, True)
        """
        if not 0 < share < 1:
            raise ValueError(f"share={share}: give a share between 0 and 1 to hold out")
        if heldout is not None:
            how_to: Any = {"text_column": text_column, "threads": threads, "progress": progress}
            counts = ChunkCounts.count(data, pattern, **how_to)
            other = ChunkCounts.count(heldout, counts.pattern, **how_to)
            how: Any = "given"
        elif isinstance(data, ChunkCounts):
            (counts, other), how = thinned(ChunkCounts.count(data, pattern), share, seed), "chunks"
        else:
            counts, other = _documents(data, pattern, share, seed, text_column, threads, progress)
            how = "documents"
            if not other.unique or not counts.unique:
                (counts, other), how = thinned(other + counts, share, seed), "chunks"
        for name, each in {"data": counts, "held-out text": other}.items():
            if not each.unique:
                raise ValueError(f"the {name} has no chunks: give more")
        parameters = {"held out": how, "pattern": counts.pattern, "chunks": counts.total, "unique": counts.unique}
        parameters |= {"chunks held out": other.total} | ({} if how == "given" else {"share": share, "seed": seed})
        return cls(counts, other, parameters)

    @property
    def text(self) -> Text:
        """The held-out text, to evaluate on."""
        return Text.of_counts(self.heldout)


def _documents(
    data: corpus.Data,
    pattern: str | None,
    share: float,
    seed: int,
    text_column: str,
    threads: int | None,
    progress: bool,
) -> tuple[ChunkCounts, ChunkCounts]:
    """Count documents, a share of them apart. Counts among them are all trained on."""
    pattern = None if pattern is None else pattern_of(pattern)
    train, other = (Counter(pattern, threads=threads) for _ in range(2))
    sources = corpus.sources(data, text_column=text_column)
    with counting_bar(train, sources, show=progress):
        for source in sources:
            luck = np.random.default_rng([seed, zlib.crc32(PurePath(source.name).name.encode())])
            for documents in source:
                if isinstance(documents, CountsFile | Mapping):
                    train.add(documents)
                elif isinstance(documents, TextFile):
                    (other if luck.random() < share else train).add(documents)
                else:
                    held = luck.random(len(documents)) < share
                    for counter, taken in ((other, held), (train, ~held)):
                        if taken.any():
                            counter.add(those(documents, taken))
    counts = train.take()
    return counts, other.take() if other.table else ChunkCounts.count([], counts.pattern)


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

    from ..formats.counts import bytes_and_offsets, table

    some = those(table(counts.data, counts.offsets, numbers.astype(np.uint64)), numbers > 0)
    chunks = some["chunk"].combine_chunks()
    data, offsets = bytes_and_offsets(chunks if isinstance(chunks, pa.Array) else chunks.chunk(0))
    return in_order(data, offsets, some["count"].to_numpy(), counts.pattern)

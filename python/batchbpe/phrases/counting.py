"""Count pairs and runs of eligible chunks, in data that is read several times."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import compress
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .. import _core
from ..counts.text_counter import TextCounter
from ..data.corpus import Corpus
from ..data.documents import Counts, Documents
from ..data.sampling import DocumentSampler, Selection
from ..data.source import Source
from ..errors import DataError, Setting, short
from ..model import Model
from ..util.lazy import lazy
from ..util.progress import counting_bar
from ..util.utf8 import is_utf8
from .options import KINDS, PhraseChunks, check_phrase_chunks
from .sampling import fraction_of


class RunArrays(NamedTuple):
    """Runs and counts as the core exchanges them."""

    data: npt.NDArray[np.uint8]
    """The ids of all runs, four bytes each."""
    offsets: npt.NDArray[np.int64]
    """The offset of each run in `data`, and the end of the last one."""
    counts: npt.NDArray[np.uint64]
    model_id: str
    """Identifies the model whose tokens these are; see `Model.tokens_id`."""
    kind: str
    """Which chunks a run may contain."""
    min_count: int
    """Runs were cut at pairs of chunks that occur fewer times."""


class EligibleChunks:
    """The chunks that the phrases of a model may contain.

    >>> model = Model(split=r"\\w+|.", merges={(97, 97): 256})
    >>> EligibleChunks(model, lambda chunk: "a" in chunk).ids.tolist()
    [97, 256]
    """

    def __init__(self, model: Model, phrase_chunks: PhraseChunks) -> None:
        """Find the tokens that are such chunks."""
        check_phrase_chunks(phrase_chunks)
        others = {*model.found_tokens.values(), *model.phrases.values()}
        tokens = {token: value for token, value in model.vocab.items() if token not in others}
        if callable(phrase_chunks):
            is_eligible = [is_utf8(value) and _admits(phrase_chunks, value.decode()) for value in tokens.values()]
        else:
            is_eligible = _core.matches_whole(KINDS.get(phrase_chunks, phrase_chunks), [*tokens.values()])
        self.model = model
        self.ids = np.array([*compress(tokens, is_eligible)], np.uint32)
        """The ids of the chunks."""
        self.kind = phrase_chunks if isinstance(phrase_chunks, str) else _describe(phrase_chunks, self.ids)
        """What `phrase_chunks` is, for files and messages."""

    @lazy
    def encoder(self) -> _core.Encoder:
        """The encoder of the model."""
        return self.model.encoder()


def _admits(function: Callable[[str], bool], chunk: str) -> bool:
    try:
        return bool(function(chunk))
    except Exception as error:
        raise ValueError(f"phrase_chunks failed for the chunk {short(chunk)}: {error!r}") from error


def _describe(function: Callable[[str], bool], ids: npt.NDArray[np.uint32]) -> str:
    """Return the name of a function and a checksum, because many functions have the same name."""
    return f"{getattr(function, '__name__', type(function).__name__)} {zlib.crc32(ids.tobytes()):08x}"


@dataclass(frozen=True)
class RunReader:
    """Reads a dataset as often as necessary, to count the pairs and the runs in it."""

    corpus: Corpus
    special_tokens: Sequence[str]
    progress: bool
    threads: int | None
    fraction: float = 1.0
    """How much of the selected text to count."""

    def sketch(self, chunks: EligibleChunks) -> _core.Sketch:
        """Count the pairs of chunks. The data is read again for the runs."""
        check_rereadable(self.corpus)
        sketch = self._count(_core.ChunkTable.of_pairs, chunks, "counting pairs").table.finish_pairs()
        if self.fraction < 1 and not sketch.counters().any():
            reason = f"the sample (fraction {self.fraction:.3g}) contains no pairs of chunks"
            raise DataError(reason, remedy=("increase ", Setting("phrase_sample")))
        return sketch

    def runs(self, chunks: EligibleChunks, sketch: _core.Sketch | None = None, min_count: int = 1) -> RunArrays:
        """Count runs, cut at the pairs whose counter in the sketch is below `min_count`.

        The sketch may be from another model with the same pattern. Pairs with a chunk that is not eligible there are
        not cut.
        """
        create_table = partial(_core.ChunkTable.of_runs, sketch=sketch, min_count=min_count)
        arrays = self._count(create_table, chunks, "counting runs").take_arrays()
        return RunArrays(*arrays, chunks.model.tokens_id, chunks.kind, min_count)

    def _count(self, create_table: Callable[..., _core.ChunkTable], chunks: EligibleChunks, title: str) -> TextCounter:
        sources = self.corpus.sources
        arguments = chunks.encoder, chunks.ids, self.special_tokens, self.threads
        counter = TextCounter(partial(create_table, *arguments), self.corpus.options.errors)
        select = partial(self._select, Selection(self.corpus.sampling))
        with counting_bar(counter, sources, show=self.progress, title=title):
            counter.add_sources(sources, select)
        return counter

    def _select(self, selection: Selection, source: Source) -> Iterator[Documents]:
        sampler = DocumentSampler(
            source, self.corpus.sampling.seed + 1
        )  # independent of the documents that are selected
        for documents in selection.of(source):
            if isinstance(documents, Counts):
                raise no_text()
            yield documents if self.fraction == 1 else fraction_of(documents, self.fraction, sampler)


def check_rereadable(corpus: Corpus) -> None:
    """Raise unless a corpus has text and can be read more than once.

    >>> check_rereadable(Corpus(["to be", iter(["or not"])]))
    Traceback (most recent call last):
    ...
    batchbpe.errors.DataError: phrases need to read the data several times, but a list_iterator can be read only once; save it to a file, or pass a list of texts
    """  # noqa: E501  the last line is an error message
    if any(source.is_counts for source in corpus.sources):
        raise no_text()
    if corpus.read_once:
        reason = f"phrases need to read the data several times, but {corpus.read_once} can be read only once"
        raise DataError(reason, remedy="save it to a file, or pass a list of texts")


def no_text() -> DataError:
    """Return the error for data that has no text."""
    remedy = "pass the text that was counted, or train without phrases"
    return DataError("phrases need text, but these are chunk counts", remedy=remedy)

"""Count pairs and runs of chunks that are single tokens, in data that is read several times."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from .. import _core
from ..counts.counter import ChunkArrays, ChunkCounter
from ..data.corpus import Corpus
from ..data.documents import Counts, Documents, TextFile, Texts
from ..data.sampling import DocumentSampler, Selection
from ..errors import ArgumentError, ArgumentTypeError, DataError, Setting, short
from ..model import Model
from ..model.encoder import encoder_for
from ..patterns import PATTERNS, resolve_pattern
from ..util.lazy import lazy
from ..util.progress import counting_bar
from ..util.surrogates import Errors

PhraseChunks: TypeAlias = "str | Callable[[str], bool]"
"""Which chunks a phrase may consist of: a name in `KINDS`, a regular expression for the whole chunk, or a function."""
KINDS: Mapping[str, str] = {
    "letters": r"[^\r\n]*\p{L}[^\r\n]*",
    "text": r"[^\S\r\n]*[^\s\p{N}][^\p{N}\r\n]*",
}
"""letters: chunks with a letter. text: also punctuation, but no digits. Neither has newlines."""
SAMPLED_BLOCK = 1 << 16
"""A share of a text file, or of a longer string, is a share of its blocks of about this many bytes or characters."""


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


@dataclass(frozen=True)
class ChunksOfPhrases:
    """The chunks that the phrases of a model may consist of.

    >>> model = Model(pattern=r"\\w+|.", merges={(97, 97): 256})
    >>> chunks = ChunksOfPhrases(model, lambda chunk: "a" in chunk)
    >>> chunks.eligible.tolist()
    [97, 256]
    """

    model: Model
    chunks: PhraseChunks
    eligible: npt.NDArray[np.uint32] = field(init=False)
    """The ids of tokens that may be such chunks."""
    kind: str = field(init=False)
    """What `chunks` is, for files and messages."""

    def __post_init__(self) -> None:
        """Find the eligible tokens."""
        others = {*self.model.found_tokens.values(), *self.model.phrases.values()}
        tokens = [(token, value) for token, value in self.model.vocab.items() if token not in others]
        if callable(self.chunks):
            kind = getattr(self.chunks, "__name__", type(self.chunks).__name__)
            is_eligible = [_decodes(value) and self._admits(value.decode()) for _, value in tokens]
        else:
            kind = check_phrase_chunks(self.chunks)
            is_eligible = _core.matches_whole(KINDS.get(kind, kind), [value for _, value in tokens])
        eligible = np.array([token for (token, _), each in zip(tokens, is_eligible, strict=True) if each], np.uint32)
        if callable(self.chunks):  # many functions have the same name
            kind += f" {zlib.crc32(eligible.tobytes()):08x}"
        object.__setattr__(self, "eligible", eligible)
        object.__setattr__(self, "kind", kind)

    def _admits(self, chunk: str) -> bool:
        assert callable(self.chunks)
        try:
            return bool(self.chunks(chunk))
        except Exception as error:
            raise ValueError(f"phrase_chunks failed for the chunk {short(chunk)}: {error!r}") from error

    @lazy
    def encoder(self) -> _core.Encoder:
        """The encoder of the model."""
        return encoder_for(self.model)


def check_phrase_chunks(chunks: object) -> str:
    """Return a kind of chunks, or raise unless it is a name or a regular expression.

    >>> check_phrase_chunks("numbers")
    Traceback (most recent call last):
    ...
    batchbpe.errors.ArgumentError: phrase_chunks must be 'letters', 'text', a regular expression or a function, got 'numbers'; a literal word is not accepted
    """  # noqa: E501  the last line is an error message
    expected = f"must be {', '.join(map(repr, KINDS))}, a regular expression or a function"
    if not isinstance(chunks, str):
        raise ArgumentTypeError("phrase_chunks", chunks, expected)
    if chunks in PATTERNS:
        raise ArgumentError("phrase_chunks", chunks, expected, remedy="the name of a pattern is not accepted")
    if chunks not in KINDS:
        try:
            resolve_pattern(chunks)
        except ArgumentError as error:
            raise ArgumentError("phrase_chunks", chunks, expected, remedy=error.remedy) from None
    return chunks


def _decodes(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


class RunCounter(ChunkCounter):
    """Counts runs or pairs instead of chunks. It feeds documents to the core like `ChunkCounter`."""

    def __init__(self, start: Callable[[], _core.ChunkTable], pattern: str, errors: Errors) -> None:
        """Start with no runs. `start` creates a table, which splits text with `pattern`."""
        super().__init__(None, errors=errors)
        self.pattern = pattern
        self._start = start
        self._share, self._due = 1.0, 0.0

    def add_share(self, documents: Documents, share: float, sampler: DocumentSampler) -> None:
        """Count a share of the documents, or of the blocks of a text file or long string, which is one document."""
        if isinstance(documents, TextFile):
            self._share, self._due = share, sampler.start()
            self.add(documents)
            return
        if isinstance(documents, Texts) and documents.has_longer_than(SAMPLED_BLOCK):
            documents = Texts([block for text in documents.strings for block in blocks_of_lines(text)])
        self.add(documents.select(sampler.draw(documents, share)))

    def _add_block(self, block: bytes, offset: int, last: bool) -> int:
        if self._share == 1:
            return super()._add_block(block, offset, last)
        start, end = 0, len(block) if last else block.rfind(b"\n") + 1
        while start < end:
            stop = block.find(b"\n", start + SAMPLED_BLOCK, end) + 1 or end
            self._due += self._share
            if self._due >= 1:
                self._due -= 1
                super()._add_block(block[start:stop], offset + start, True)
            start = stop
        return end

    def _started(self) -> _core.ChunkTable:
        if self._table is None:
            self._table = self._start()
        return self._table

    def _add_counts(self, counts: ChunkArrays) -> None:
        raise no_text()

    def finish_pairs(self) -> _core.Sketch:
        """Return the counters of pairs."""
        return self._started().finish_pairs()


def blocks_of_lines(text: str) -> Iterator[str]:
    """Cut a long text at newlines, which runs do not cross.

    >>> [len(block) for block in blocks_of_lines("to be or not to be\\n" * 10_000)]
    [65550, 65550, 58900]
    """
    start = 0
    while len(text) - start > SAMPLED_BLOCK:
        end = text.find("\n", start + SAMPLED_BLOCK) + 1
        if not end:
            break
        yield text[start:end]
        start = end
    yield text[start:]


@dataclass(frozen=True)
class RunReader:
    """Reads a dataset as often as necessary, to count the pairs and the runs in it."""

    corpus: Corpus
    special_tokens: Sequence[str]
    progress: bool
    threads: int | None
    share: float = 1.0
    """How much of the selected text to count."""

    def sketch(self, chunks: ChunksOfPhrases) -> _core.Sketch:
        """Count the pairs of chunks."""
        start = self._table(_core.ChunkTable.of_pairs, chunks)
        sketch = self._read(start, chunks, "counting pairs").finish_pairs()
        if self.share < 1 and not sketch.counters().any():
            reason = f"no text with pairs of chunks was selected by the share {self.share:.3g}"
            raise DataError(reason, remedy=("increase ", Setting("phrase_sample")))
        return sketch

    def runs(self, chunks: ChunksOfPhrases, sketch: _core.Sketch | None = None, min_count: int = 1) -> RunArrays:
        """Count runs, cut at the pairs whose counter in the sketch is below `min_count`.

        The sketch may be of another model with the same pattern. Pairs with a chunk that is not eligible there are not
        cut.
        """
        if sketch is not None:
            check_rereadable(self.corpus)
        start = self._table(_core.ChunkTable.of_runs, chunks, sketch, min_count)
        arrays = self._read(start, chunks, "counting runs").take()
        return RunArrays(*arrays[:3], chunks.model.tokens_id, chunks.kind, min_count)

    def _table(
        self, create: Callable[..., _core.ChunkTable], chunks: ChunksOfPhrases, *more: object
    ) -> Callable[[], _core.ChunkTable]:
        return lambda: create(chunks.encoder, chunks.eligible, self.special_tokens, self.threads, *more)

    def _read(self, start: Callable[[], _core.ChunkTable], chunks: ChunksOfPhrases, title: str) -> RunCounter:
        sources, sampling = self.corpus.sources, self.corpus.sampling
        counter = RunCounter(start, chunks.model.pattern, self.corpus.options.errors)
        selection = Selection(sampling)
        with counting_bar(counter, sources, show=self.progress, title=title):
            for source in sources:
                sampler = DocumentSampler(source, sampling.seed + 1)  # independent of the documents that are selected
                with source.blamed():
                    for documents in selection.of(source):
                        if self.share < 1 and not isinstance(documents, Counts):
                            counter.add_share(documents, self.share, sampler)
                        else:
                            counter.add(documents)
        return counter


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
    return DataError("phrases need text, but this is a count of chunks", remedy=remedy)

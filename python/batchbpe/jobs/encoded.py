"""Documents → ids: batches of documents are encoded on all cores, in order, while the next ones are read."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np

from .._core import Encoder, threads_or_all
from ..data.documents import ArrowTexts, Documents, TextFile, Texts
from ..data.options import Sampling
from ..data.sampling import Selection
from ..data.source import Source
from ..data.text_files import read_blocks
from ..errors import plural
from ..tokenizer import Tokenizer
from ..tokenizer.special import Special, special_of
from ..util.progress import Meter, bar
from ..util.surrogates import Errors, combine_documents
from .marks import NO_MARKS, Ids, Marks, Offsets
from .resume import ReadErrors
from .validation import Mask, is_validation

LONG = 1 << 20
"""Encoding a longer document, in bytes, may take long if it is a single chunk."""


class Encoded:
    """Ids of documents, with marks, and where each document ends.

    The last document continues in the next batch if no end follows its ids. `is_validation` has a value for each
    document, and one for what follows the last end. A position counts ids and ends: that after the first document is
    its length plus one.
    """

    def __init__(self, ids: Ids, ends: Offsets, is_validation: Mask | None = None) -> None:
        """Wrap what the core returns."""
        self.ids, self.ends, self.is_validation = ids, ends, is_validation

    @property
    def size(self) -> int:
        """The position after everything."""
        return len(self.ids) + len(self.ends)

    def split(self, position: int) -> tuple[Encoded, Encoded]:
        """Return what comes before and after a position.

        >>> whole = Encoded(np.array([7, 8, 9], np.uint32), np.array([1, 3]))
        >>> [(part.ids.tolist(), part.ends.tolist()) for part in whole.split(3)]
        [([7, 8], [1]), ([9], [1])]
        """
        documents = int(np.searchsorted(self.ends + np.arange(len(self.ends)), position))
        tokens, mask = position - documents, self.is_validation
        return (
            Encoded(self.ids[:tokens], self.ends[:documents], None if mask is None else mask[: documents + 1]),
            Encoded(self.ids[tokens:], self.ends[documents:] - tokens, None if mask is None else mask[documents:]),
        )

    def parts(self) -> tuple[Encoded, ...]:
        """Return the documents for training and those for validation, or all of them if there is no validation.

        >>> mixed = Encoded(np.array([7, 8, 9], np.uint32), np.array([1, 3]), np.array([False, True, False]))
        >>> [(part.ids.tolist(), part.ends.tolist()) for part in mixed.parts()]
        [([7], [1]), ([8, 9], [2])]
        """
        if self.is_validation is None:
            return (self,)
        return self._part(~self.is_validation), self._part(self.is_validation)

    def is_open(self, was_open: bool) -> bool:
        """Return whether a document has begun and not ended after this, given whether one had before.

        >>> Encoded(np.array([7], np.uint32), np.zeros(0, np.int64)).is_open(False)
        True
        """
        return bool(len(self.ids) > self.ends[-1]) if len(self.ends) else was_open or len(self.ids) > 0

    def closing(self, marks: Marks) -> Encoded:
        """Return the end of a document that continues after this.

        >>> end = Encoded(np.array([7], np.uint32), np.zeros(0, np.int64)).closing(Marks(eos=2))
        >>> end.ids.tolist(), end.ends.tolist()
        ([2], [1])
        """
        ids = marks.around(self.ids[:0], is_first=False, is_last=True)
        mask = None if self.is_validation is None else np.repeat(self.is_validation[-1:], 2)
        return Encoded(ids, np.array([len(ids)]), mask)

    def lengths(self) -> Offsets:
        """Return the number of ids of each document, and of what follows the last end."""
        return np.diff(np.concatenate([[0], self.ends, [len(self.ids)]]))

    def _part(self, mask: Mask) -> Encoded:
        lengths = self.lengths()
        ends = np.cumsum(lengths[:-1][mask[:-1]])
        changes = np.flatnonzero(np.diff(mask)) + 1
        if len(changes) > len(self.ids) >> 7:
            return Encoded(self.ids[np.repeat(mask, lengths)], ends)
        # Copying runs of documents is faster than a mask of ids, unless they are short.
        bounds = [0, *self.ends[changes - 1].tolist(), len(self.ids)]
        runs = [self.ids[start:end] for start, end in [*pairwise(bounds)][0 if mask[0] else 1 :: 2]]
        return Encoded(runs[0] if len(runs) == 1 else np.concatenate([self.ids[:0], *runs]), ends)


@contextmanager
def encoding_bar(sources: Sequence[Source], *, show: bool) -> Iterator[Callable[[int], object]]:
    """Yield a function that receives the number of tokens, and shows how much of the sources has been read."""
    meter = Meter(sources)
    with bar("encoding", meter.size, show=show) as update:
        yield lambda tokens: update(meter.done, plural(tokens, "token"))


@dataclass(frozen=True)
class DocumentEncoder:
    """How documents are encoded.

    >>> encoder = DocumentEncoder(Tokenizer.train("aaabdaaabac", 259), Marks(eos=0))
    >>> for batch in encoder.batches([Texts(["aaab", "ac"]), Texts(["d"])]):
    ...     print([(encoded.ids.tolist(), encoded.ends.tolist()) for encoded in batch])
    [([258, 0, 97, 99, 0], [2, 5])]
    [([100, 0], [2])]
    """

    tokenizer: Tokenizer
    marks: Marks = NO_MARKS
    allow_special: bool = False
    """Encode special tokens in the text as tokens, instead of as plain text."""
    errors: Errors = "strict"
    validation: float | None = None
    """Fraction of the documents for validation."""
    threads: int | None = None

    def sources(self, sources: Iterable[Source], sampling: Sampling) -> Iterator[Encoded]:
        """Encode the documents of some sources. Read errors are raised as `DataError`, never as `OSError`."""
        selection = Selection(sampling)
        for source in sources:
            with ReadErrors().of(source):
                for batch in self.batches(selection.of(source)):
                    yield from batch

    def batches(self, documents: Iterable[Documents]) -> Iterator[Iterable[Encoded]]:
        """Encode batches of documents in order; a text file is encoded block by block.

        Each thread encodes a separate batch while the next ones are read.
        """
        at_once = threads_or_all(self.threads)
        encode = partial(self._encode, self.tokenizer.core_encoder)
        pool = ThreadPoolExecutor(at_once)
        pending: deque[Future[Iterable[Encoded]]] = deque()
        try:
            for future in _submit(pool, encode, documents, at_once):
                pending.append(future)
                if len(pending) > at_once:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)

    def _encode(self, encoder: Encoder, documents: Documents, threads: int) -> Iterator[Encoded]:
        special = special_of(self.allow_special)
        if isinstance(documents, TextFile) and documents.opens_once and self.validation is not None:
            documents = documents.in_memory()
        match documents:
            case TextFile():
                yield from self._encode_file(documents, encoder, special, threads)
            case Texts(strings):
                try:
                    ids, offsets = encoder.encode_batch_to_numpy(strings, special, threads)
                except UnicodeEncodeError:
                    strings = combine_documents(strings, self.errors)
                    ids, offsets = encoder.encode_batch_to_numpy(strings, special, threads)
                yield self._marked(documents, ids, offsets)
            case ArrowTexts():
                yield self.encode(documents, threads)
            case _:
                documents.sizes()  # raises an error for chunk counts

    def encode(self, documents: ArrowTexts, threads: int = 1) -> Encoded:
        """Encode one batch."""
        encoder, special = self.tokenizer.core_encoder, special_of(self.allow_special)
        return self._marked(documents, *encoder.encode_documents(*documents.buffers(), special, threads))

    def is_validation(self, documents: Documents) -> Mask:
        """Return whether each document is for validation."""
        return is_validation(documents, self.validation or 0.0, self.errors)

    def _marked(self, documents: Documents, ids: Ids, offsets: Offsets) -> Encoded:
        ids, offsets = self.marks.added(ids, offsets)
        mask = None if self.validation is None else np.append(self.is_validation(documents), False)
        return Encoded(ids, offsets[1:], mask)

    def _encode_file(self, file: TextFile, encoder: Encoder, special: Special, threads: int) -> Iterator[Encoded]:
        encoded: list[Encoded] = []
        mask = None if self.validation is None else self.is_validation(file)
        is_first = True

        def use(block: bytes, offset: int, is_last: bool) -> int:
            nonlocal is_first
            ids, used = encoder.encode_block(block, offset, is_last, special, threads)
            ids = self.marks.around(ids, is_first=is_first, is_last=is_last)
            ends = np.array([len(ids)] if is_last else [], np.int64)
            encoded.append(Encoded(ids, ends, None if mask is None else np.repeat(mask, 1 + is_last)))
            is_first = False
            return used

        for _ in read_blocks(file, self.errors, use):
            yield encoded.pop()


def _submit(
    pool: ThreadPoolExecutor,
    encode: Callable[[Documents, int], Iterator[Encoded]],
    batches: Iterable[Documents],
    threads: int,
) -> Iterator[Future[Iterable[Encoded]]]:
    done: Future[Iterable[Encoded]]
    try:
        for documents in batches:
            if documents.has_longer_than(LONG):
                # Encoded lazily, on the caller's thread, which receives Ctrl-C.
                done = Future()
                done.set_result(encode(documents, threads))
                yield done
            else:
                yield pool.submit(list, encode(documents, 1))
    except Exception as error:  # raised after the batches that were read before it
        done = Future()
        done.set_exception(error)
        yield done

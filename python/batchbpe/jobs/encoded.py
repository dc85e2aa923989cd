"""Documents → ids: batches of documents are encoded on all cores, in order, while the next ones are read."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from .._core import Encoder, threads_or_all
from ..data.documents import ArrowTexts, Documents, TextFile, Texts
from ..data.options import Sampling
from ..data.sampling import Selection
from ..data.source import Source
from ..data.text_files import read_blocks
from ..errors import ArgumentError, listed, plural
from ..tokenizer import Tokenizer
from ..tokenizer.special import Special, special_of
from ..util.progress import Meter, bar
from ..util.surrogates import Errors, combine_documents
from .resume import ReadErrors

Ids = npt.NDArray[np.uint32]
LONG = 1 << 20
"""Encoding a longer document, in bytes, may take long if it is a single chunk."""


class Encoded:
    """Ids of documents, and where each document ends. The last one continues in the next batch if no end follows it."""

    def __init__(self, ids: Ids, ends: npt.NDArray[np.int64]) -> None:
        """Wrap what the core returns."""
        self.ids, self.ends = ids, ends

    def with_end(self, end: int | None) -> Encoded:
        """Return the ids with `end` after each document.

        >>> batch = Encoded(np.array([7, 8, 9], np.uint32), np.array([1, 3])).with_end(0)
        >>> batch.ids.tolist(), batch.ends.tolist()
        ([7, 0, 8, 9, 0], [2, 5])
        """
        if end is None:
            return self
        return Encoded(np.insert(self.ids, self.ends, end), self.ends + np.arange(1, len(self.ends) + 1))


def id_dtype(tokenizer: Tokenizer) -> np.dtype[Any]:
    """Return the type of ids in files: uint16 if all ids fit, otherwise uint32.

    >>> id_dtype(Tokenizer.train("aaabdaaabac", 259))
    dtype('uint16')
    """
    return np.dtype("<u2" if tokenizer.n_vocab <= 1 << 16 else "<u4")


def end_token(tokenizer: Tokenizer, end_of_text: str | None) -> int | None:
    """Return the id of the special token that is appended to each document."""
    if end_of_text is not None and end_of_text not in tokenizer.special_tokens:
        names = tokenizer.special_tokens
        reason = "must be a special token of the model" + (f" ({listed(names)})" if names else ", which has none")
        raise ArgumentError("end_of_text", end_of_text, reason)
    return None if end_of_text is None else tokenizer.special_tokens[end_of_text]


@contextmanager
def encoding_bar(sources: Sequence[Source], *, show: bool) -> Iterator[Callable[[int], object]]:
    """Yield a function that receives the number of tokens, and shows how much of the sources has been read."""
    meter = Meter(sources)
    with bar("encoding", meter.size, show=show) as update:
        yield lambda tokens: update(meter.done, plural(tokens, "token"))


def encode_sources(
    tokenizer: Tokenizer,
    sources: Iterable[Source],
    sampling: Sampling,
    threads: int | None,
    errors: Errors,
    *,
    allow_special: bool = False,
) -> Iterator[Encoded]:
    """Encode the documents of some sources. Read errors are raised as `DataError`, never as `OSError`."""
    selection = Selection(sampling)
    for source in sources:
        with ReadErrors().of(source):
            documents = selection.of(source)
            for batch in encode_documents(tokenizer, documents, threads, errors, allow_special=allow_special):
                yield from batch


def encode_documents(
    tokenizer: Tokenizer,
    documents: Iterable[Documents],
    threads: int | None,
    errors: Errors = "strict",
    *,
    allow_special: bool = False,
) -> Iterator[Iterable[Encoded]]:
    """Encode batches of documents in order; a text file is encoded block by block.

    Each thread encodes a separate batch while the next ones are read. Special tokens in the text are encoded as plain
    text, or with `allow_special` as tokens.

    >>> tokenizer = Tokenizer.train("aaabdaaabac", 259)
    >>> for batch in encode_documents(tokenizer, [Texts(["aaab", "ac"]), Texts(["d"])], None):
    ...     print([(encoded.ids.tolist(), encoded.ends.tolist()) for encoded in batch])
    [([258, 97, 99], [1, 3])]
    [([100], [1])]
    """
    at_once = threads_or_all(threads)
    special = special_of(allow_special)
    pool = ThreadPoolExecutor(at_once)
    pending: deque[Future[Iterable[Encoded]]] = deque()
    try:
        for future in _submit(pool, tokenizer.core_encoder, documents, special, at_once, errors):
            pending.append(future)
            if len(pending) > at_once:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def _submit(
    pool: ThreadPoolExecutor,
    encoder: Encoder,
    batches: Iterable[Documents],
    special: Special,
    threads: int,
    errors: Errors,
) -> Iterator[Future[Iterable[Encoded]]]:
    done: Future[Iterable[Encoded]]
    try:
        for documents in batches:
            if documents.has_longer_than(LONG):
                # Encoded lazily, on the caller's thread, which receives Ctrl-C.
                done = Future()
                done.set_result(_encode(encoder, documents, special, threads, errors))
                yield done
            else:
                yield pool.submit(list, _encode(encoder, documents, special, 1, errors))
    except Exception as error:  # raised after the batches that were read before it
        done = Future()
        done.set_exception(error)
        yield done


def _encode(
    encoder: Encoder, documents: Documents, special: Special, threads: int, errors: Errors
) -> Iterator[Encoded]:
    match documents:
        case TextFile():
            yield from _encode_file(encoder, documents, special, threads, errors)
        case Texts(strings):
            try:
                ids, offsets = encoder.encode_batch_to_numpy(strings, special, threads)
            except UnicodeEncodeError:
                ids, offsets = encoder.encode_batch_to_numpy(combine_documents(strings, errors), special, threads)
            yield Encoded(ids, offsets[1:])
        case ArrowTexts():
            ids, offsets = encoder.encode_documents(*documents.buffers(), special, threads)
            yield Encoded(ids, offsets[1:])
        case _:
            documents.sizes()  # raises an error for chunk counts


def _encode_file(encoder: Encoder, file: TextFile, special: Special, threads: int, errors: Errors) -> Iterator[Encoded]:
    encoded: list[Encoded] = []

    def use(block: bytes, offset: int, last: bool) -> int:
        ids, used = encoder.encode_block(block, offset, last, special, threads)
        encoded.append(Encoded(ids, np.array([len(ids)] if last else [], np.int64)))
        return used

    for _ in read_blocks(file, errors, use):
        yield encoded.pop()

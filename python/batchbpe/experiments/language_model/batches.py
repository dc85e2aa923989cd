"""Documents → ids: what each training step and each evaluation window contains.

What a step contains is determined by the bytes of the documents, so it is the same text for every vocabulary.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ...errors import DataError
from ...tokenizer import Tokenizer

T = TypeVar("T")
Ids = npt.NDArray[np.int64]
IGNORED = -1
"""Target of positions that are not predicted."""
LOOK_BACK = 64
"""How far before the end of a step a space is searched for to cut a document at, in bytes."""
BLOCK = 4 << 20
"""Number of bytes of text that are encoded at a time."""


@dataclass(frozen=True)
class Piece:
    """A part of a document, within one step."""

    text: bytes
    is_first: bool
    """Whether the document begins here."""
    is_last: bool
    """Whether the document ends here."""


def steps(documents: Sequence[bytes], step_bytes: int, seed: int) -> Iterator[list[Piece]]:
    """Yield what each training step contains: documents in a random order, cut after `step_bytes` bytes.

    A cut is moved back to a space that is close, or to the beginning of a character, so that steps may be a little
    shorter. The number of steps is that of the bytes divided by `step_bytes`, rounded down.

    >>> [[piece.text for piece in step] for step in steps([b"to be or not", b"yes"], 6, seed=0)]
    [[b'to be'], [b' or']]
    """
    left = sum(map(len, documents)) // step_bytes
    step: list[Piece] = []
    room = step_bytes
    for index in np.random.default_rng(seed).permutation(len(documents)):
        document, start = documents[index], 0
        while start < len(document) and left:
            end = _cut(document, start, start + room)
            if end > start:  # not if the rest of the step is shorter than a character
                step.append(Piece(document[start:end], start == 0, end == len(document)))
            room -= end - start
            if end < len(document) or not room:
                yield step
                step, room, left = [], step_bytes, left - 1
            start = end


def _cut(document: bytes, start: int, end: int) -> int:
    """Return where to cut a document: at `end`, or before it at a space or the beginning of a character."""
    if end >= len(document):
        return len(document)
    space = document.rfind(b" ", max(start + 1, end - LOOK_BACK), end + 1)
    if space > start:
        return space
    while end > start and document[end] & 0xC0 == 0x80:
        end -= 1
    return end


class Encoder:
    """Encodes documents for the model, whose vocabulary has one more token: the end of a document.

    The same token stands before the first token of a document.
    """

    def __init__(self, name: str, tokenizer: Tokenizer, threads: int | None = None) -> None:
        """Store the tokenizer and its name, for errors."""
        self.name, self.tokenizer, self._threads = name, tokenizer, threads
        self.end = tokenizer.n_vocab
        """The id of the end of a document."""
        self.vocabulary = self.end + 1
        """The number of embeddings."""

    def encode(self, texts: Sequence[bytes]) -> list[Ids]:
        """Return the ids of texts. If they lose bytes of the text, raise an error."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # dropped text is an error below
            strings = [text.decode("utf-8") for text in texts]
            ids, offsets = self.tokenizer.encode_batch_to_numpy(strings, "none", threads=self._threads)
        if self.tokenizer.decode_bytes(ids) != b"".join(texts):
            raise DataError(
                f"the tokenizer {self.name} does not encode all bytes of the text, so its bits per byte are unknown",
                remedy="use a pattern that matches all text, all 256 bytes, and no normalization",
            )
        return [ids[start:end].astype(np.int64) for start, end in pairwise(offsets.tolist())]

    def token_bytes(self) -> list[bytes]:
        """Return the bytes of each token. Ids without a token, and the end of a document, have a name instead."""
        found = [f"<id {token}>".encode() for token in range(self.end)] + [b"<end of document>"]
        for token, value in self.tokenizer.vocab.items():
            found[token] = value
        return found

    def tokens(self, documents: Sequence[bytes]) -> int:
        """Return the number of tokens of documents, without the ends. Documents that it cannot encode are an error."""
        return sum(len(ids) for block in _blocks(documents, len) for ids in self.encode(block))

    def batches(self, steps: Iterable[list[Piece]], context: int) -> Iterator[tuple[Ids, Ids]]:
        """Yield the inputs and targets of each step, as rows of `context` ids."""
        for block in _blocks(steps, lambda step: sum(len(piece.text) for piece in step)):
            ids = iter(self.encode([piece.text for step in block for piece in step]))
            for step in block:
                yield packed(self._stream([(piece, next(ids)) for piece in step]), context)

    def _stream(self, step: Sequence[tuple[Piece, Ids]]) -> Ids:
        """Return the ids of a step, with the end of a document before and after each document."""
        end = np.array([self.end])
        parts = [end] if step[0][0].is_first else []
        for piece, ids in step:
            parts += [ids, end] if piece.is_last else [ids]
        return np.concatenate(parts)

    def windows(self, documents: Sequence[bytes], context: int) -> list[Window]:
        """Return the windows in which each token of the documents, and each end, is predicted once.

        Every window but the first of a document begins with a quarter of the previous one, as context.
        """
        new = context - context // 4
        found = []
        for index, ids in enumerate(self.encode(documents)):
            whole = np.concatenate([[self.end], ids, [self.end]])
            first = np.maximum(0, np.arange(0, len(whole) - 1 - context // 4, new))
            for start in first.tolist() or [0]:
                part = whole[start : start + context + 1]
                targets = part[1:].copy()
                targets[: context // 4 if start else 0] = IGNORED
                found.append(Window(index, part[:-1], targets))
        return found


@dataclass(frozen=True)
class Window:
    """A part of a held-out document that fits into the context of the model."""

    document: int
    inputs: Ids
    targets: Ids
    """The ids to predict, or `IGNORED` for those that another window predicts."""


def packed(stream: Ids, context: int) -> tuple[Ids, Ids]:
    """Return inputs and targets: rows of the ids of a step. The last row is padded.

    >>> packed(np.array([5, 6, 7, 8]), 2)
    (array([[5, 6],
           [7, 0]]), array([[ 6,  7],
           [ 8, -1]]))
    """
    length = len(stream) - 1
    size = -(-length // context) * context
    inputs, targets = np.zeros(size, np.int64), np.full(size, IGNORED)
    inputs[:length], targets[:length] = stream[:-1], stream[1:]
    return inputs.reshape(-1, context), targets.reshape(-1, context)


def padded(windows: Sequence[Window]) -> tuple[Ids, Ids]:
    """Return the inputs and targets of windows as rows of equal length."""
    size = max(len(window.inputs) for window in windows)
    inputs, targets = np.zeros((len(windows), size), np.int64), np.full((len(windows), size), IGNORED)
    for row, window in enumerate(windows):
        inputs[row, : len(window.inputs)], targets[row, : len(window.targets)] = window.inputs, window.targets
    return inputs, targets


def _blocks(items: Iterable[T], size_of: Callable[[T], int]) -> Iterator[list[T]]:
    """Collect items into lists of about `BLOCK` bytes."""
    block: list[T] = []
    size = 0
    for item in items:
        block.append(item)
        size += size_of(item)
        if size >= BLOCK:
            yield block
            block, size = [], 0
    if block:
        yield block

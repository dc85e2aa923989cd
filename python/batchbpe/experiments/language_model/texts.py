"""The documents of the experiment: those that models are trained on, and those that they are evaluated on."""

from __future__ import annotations

import hashlib
import heapq
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ...analysis.counted_text import texts_of
from ...data.documents import Documents, TextFile, invalid_utf8
from ...errors import ArgumentError, DataError, Setting, plural
from ...util.surrogates import Errors, combine_surrogates
from ..data import DividedDocuments
from .options import Options

SURROGATES = re.compile("[\ud800-\udfff]")
MIN_STEPS = 32
"""Minimum number of training steps."""
MIN_DOCUMENTS = 2
"""Minimum number of held-out documents: with a single one, the noise of documents is unknown."""

MORE_DOCUMENTS = ("provide more documents, or ", Setting("heldout"), "; ", Setting("document"), " splits text files")
"""How to have held-out documents."""


@dataclass(frozen=True)
class Texts:
    """Documents in UTF-8, the same for all vocabularies."""

    training: Sequence[bytes]
    heldout: Sequence[bytes]
    left_out: int = 0
    """Number of documents that are not trained on because they equal a held-out document."""

    @classmethod
    def of(
        cls, documents: DividedDocuments, options: Options, *, is_exact: bool, seed: int, errors: Errors = "strict"
    ) -> Texts:
        """Choose documents at random, with about the bytes that `options` say. If `is_exact`, fewer are an error."""
        held = choose(_bytes_of(documents.heldout(), errors), options.heldout_bytes, seed)
        if len(held) < MIN_DOCUMENTS:
            reason = f"there must be at least {MIN_DOCUMENTS} held-out documents with text, got {len(held)}"
            raise DataError(reason, remedy=MORE_DOCUMENTS)
        copies = dict.fromkeys(held, 0)
        others = _without(copies, _bytes_of(documents.training(), errors))
        training = choose(others, options.training_bytes, seed)
        left_out = sum(copies.values())
        size = sum(map(len, training))
        if size < options.training_bytes and is_exact:
            reason = f"must be at most {size:,}, the number of bytes in the training documents"
            raise ArgumentError("training_bytes", options.training_bytes, reason)
        if min(size, options.training_bytes) < MIN_STEPS * options.step_bytes:
            reason = f"too little text to train on: {min(size, options.training_bytes):,} bytes are fewer than "
            step = plural(MIN_STEPS, "step")
            reason = f"{reason}{step} of {options.step_bytes:,} bytes"
            if left_out:
                reason += f", without copies of held-out documents ({left_out:,})"
            raise DataError(reason, remedy=("provide more text, or reduce ", Setting("step_bytes")))
        return cls(training, held, left_out)

    @property
    def heldout_sizes(self) -> list[int]:
        """The number of bytes of each held-out document."""
        return [len(text) for text in self.heldout]

    @property
    def digest(self) -> str:
        """A checksum of the documents."""
        return digest([*self.training, b"", *self.heldout])


def choose(documents: Iterable[bytes], most: int, seed: int) -> list[bytes]:
    """Choose documents at random until they have `most` bytes, in their order. Memory is bounded by `most`.

    The last one chosen may exceed the limit. Empty documents are left out.

    >>> choose([b"to", b"be", b"", b"or"], 4, seed=0), len(choose([b"to", b"be", b"or"], 5, seed=0))
    ([b'be', b'or'], 3)
    """
    generator = np.random.default_rng(seed)
    kept: list[tuple[float, int, bytes]] = []  # those with the smallest numbers, the largest of them first
    size = 0
    for index, text in enumerate(documents):
        number = float(generator.random())
        if text and (size < most or number < -kept[0][0]):
            heapq.heappush(kept, (-number, index, text))
            size += len(text)
            while size - len(kept[0][2]) >= most:
                size -= len(heapq.heappop(kept)[2])
    return [text for _, _, text in sorted(kept, key=lambda each: each[1])]


def digest(documents: Sequence[bytes]) -> str:
    """Return a checksum of documents.

    >>> digest([b"to", b"be"]) == digest([b"tobe"])
    False
    """
    total = hashlib.sha256()
    for text in documents:
        total.update(len(text).to_bytes(8, "little") + text)
    return total.hexdigest()


def _without(copies: dict[bytes, int], texts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the texts that are not keys of `copies`, and count the others in it."""
    for text in texts:
        if text in copies:
            copies[text] += 1
        else:
            yield text


def _bytes_of(batches: Iterable[Documents], errors: Errors) -> Iterator[bytes]:
    for documents in batches:
        try:
            for text in texts_of(documents, errors):
                yield (combine_surrogates(text, errors) if SURROGATES.search(text) else text).encode("utf-8")
        except UnicodeDecodeError as error:
            name = documents.name if isinstance(documents, TextFile) else ""
            raise invalid_utf8(f"invalid UTF-8 at byte {error.start}", where=name) from None

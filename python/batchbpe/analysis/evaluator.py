"""`Evaluator`: encode a text with several tokenizers, and count the tokens.

The text is counted once for each pattern, and each tokenizer encodes every unique chunk once. This is exact, because
tokens never cross chunk boundaries. Other tokenizers, and subclasses that override `encode`, encode every document.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt

from .._core import MAX_ID
from ..counts import ChunkCounts
from ..counts.counter import dropped_text
from ..data.documents import Counts, Documents
from ..errors import ArgumentError, ArgumentTypeError, DataError, short, warn
from ..model import Model
from ..tokenizer import Tokenizer
from ..tokenizer.paper import BatchTokenizer
from ..util.surrogates import Errors, check_errors
from .counted_text import CountedText, repeatable, texts_of
from .metrics import Evaluation

Frequencies = npt.NDArray[np.uint64]


class TextEncoder(Protocol):
    """Anything that encodes text: a `Tokenizer`, a `tiktoken.Encoding`, your own class.

    `encode` may also return an object with the attribute `ids`, as `tokenizers.Tokenizer` does. The vocabulary size is
    read from the attribute `vocab_size` or `n_vocab`, if there is one.

    >>> class Bytes:
    ...     vocab_size = 256
    ...
    ...     def encode(self, text):
    ...         return list(text.encode())
    >>> from batchbpe import evaluate
    >>> evaluate(Bytes(), "to be")[0].tokens
    5
    """

    def encode(self, text: str, /) -> Sequence[int]:
        """Encode a text to ids."""


Tokenizers: TypeAlias = "Mapping[str, TokenizerLike] | TokenizerLike | Iterable[TokenizerLike]"
"""Tokenizers by name, one tokenizer, or several."""
TokenizerLike: TypeAlias = "TextEncoder | Model | str | os.PathLike[str]"
"""A tokenizer or the path of one."""


def named_tokenizers(given: Tokenizers) -> dict[str, TextEncoder]:
    """Return tokenizers by name, and load those that are paths.

    Without given names, a path is named after the file, and an object by its attribute `name` or its class.

    >>> tokenizer = Tokenizer.train("to be", 256)
    >>> list(named_tokenizers([tokenizer, tokenizer]))
    ['batchbpe', 'batchbpe 2']
    """
    tokenizers: Iterable[Any]
    if isinstance(given, Mapping):
        names, tokenizers = list(map(str, given)), given.values()
    elif isinstance(given, str | os.PathLike | Model) or _encodes(given):
        names, tokenizers = unique_names([given]), [given]
    elif isinstance(given, Iterable):
        tokenizers = list(given)
        names = unique_names(tokenizers)
    else:
        expected = "must be a tokenizer, its path, or a list or dict of these"
        raise ArgumentTypeError("tokenizers", given, expected)
    if not names:
        raise ArgumentError("tokenizers", given, "must contain at least one tokenizer")
    return dict(zip(names, map(_loaded, tokenizers), strict=True))


def unique_names(tokenizers: Sequence[Any]) -> list[str]:
    """Return a name for each tokenizer or path: the name of a file, or its path if the name is not unique.

    >>> unique_names(["a/mine.model", "b/mine.model", "c/gpt2.json"])
    ['a/mine.model', 'b/mine.model', 'gpt2.json']
    """
    names = [_name(each) for each in tokenizers]
    repeated = [name for name in names if names.count(name) > 1]
    unique: list[str] = []
    for each, name in zip(tokenizers, names, strict=True):
        longer = os.fspath(each) if name in repeated and isinstance(each, str | os.PathLike) else name
        numbered = (longer if number == 1 else f"{longer} {number}" for number in count(1))
        unique.append(next(name for name in numbered if name not in unique))
    return unique


def _name(tokenizer: object) -> str:
    if isinstance(tokenizer, str | os.PathLike):
        return Path(tokenizer).name
    name = getattr(tokenizer, "name", None)
    return name if isinstance(name, str) and name else type(tokenizer).__name__


def _encodes(tokenizer: object) -> TypeGuard[TextEncoder]:
    return callable(getattr(tokenizer, "encode", None)) and not isinstance(tokenizer, str)


def _loaded(tokenizer: TokenizerLike) -> TextEncoder:
    """Return an object that encodes: of a path, a model or a `BatchTokenizer`, the `Tokenizer`."""
    if isinstance(tokenizer, str | os.PathLike):
        return Tokenizer.from_file(tokenizer)
    if isinstance(tokenizer, Model):
        return Tokenizer(tokenizer)
    if isinstance(tokenizer, BatchTokenizer) and type(tokenizer).encode is BatchTokenizer.encode:
        return tokenizer.tokenizer
    if not _encodes(tokenizer):
        raise ArgumentTypeError("tokenizers", tokenizer, "must contain objects with a method encode(text), or paths")
    return tokenizer


class Evaluator:
    """Evaluate tokenizers on a text that is added in parts.

    >>> from batchbpe.data.documents import Texts
    >>> evaluator = Evaluator({"mine": Tokenizer.train("to be or not to be", 258)})
    >>> for document in ["to be", "or not"]:
    ...     evaluator.add(Texts([document]))
    >>> evaluator.results()[0].tokens
    9
    """

    def __init__(
        self, tokenizers: Mapping[str, TextEncoder], *, errors: Errors = "strict", threads: int | None = None
    ) -> None:
        """Start with an empty text."""
        check_errors(errors)
        self._tokenizers, self._errors, self._threads = tokenizers, errors, threads
        counted = [each.model.split for each in tokenizers.values() if encodes_chunks(each)]
        # Bytes and characters are measured by chunks, so at least one pattern is needed.
        self.text = CountedText(counted or ["gpt4"], threads, errors)
        self._by_document = {
            name: _DocumentEncoder(name, each) for name, each in tokenizers.items() if not encodes_chunks(each)
        }

    def add(self, documents: Documents) -> None:
        """Add documents, or chunk counts, to the text."""
        documents = repeatable(documents)
        self.text.add(documents)
        if not self._by_document:
            return
        if isinstance(documents, Counts):
            raise DataError(
                f"chunk counts cannot be encoded by {short(next(iter(self._by_document)))}, which encodes documents",
                remedy="evaluate on the documents instead",
            )
        for text in texts_of(documents, self._errors):
            for encoder in self._by_document.values():
                encoder.add(text)

    def results(self) -> list[Evaluation]:
        """Return the metrics of each tokenizer."""
        return [
            evaluate_text(name, tokenizer, self.text, threads=self._threads)
            if encodes_chunks(tokenizer)
            else self._by_document[name].evaluate(self.text, self._threads)
            for name, tokenizer in self._tokenizers.items()
        ]


def evaluate_text(name: str, tokenizer: Tokenizer, text: CountedText, *, threads: int | None = None) -> Evaluation:
    """Evaluate a tokenizer on a text that was counted with its pattern.

    >>> counts = ChunkCounts.count("to be or not to be")
    >>> evaluate_text("mine", Tokenizer.train(counts, 258), CountedText.from_counts(counts)).tokens
    14
    """
    split = tokenizer.model.split
    if split not in text.chunks:
        raise DataError(f"the text was not counted with the pattern of {name}, {split}")
    chunks = text.chunks[split]
    encoder = tokenizer.core_encoder
    ids, sizes = encoder.encode_chunks(chunks.arrays.data, chunks.arrays.offsets, threads)
    frequencies = np.zeros(tokenizer.n_vocab, np.uint64)
    np.add.at(frequencies, ids, np.repeat(chunks.arrays.counts, sizes))
    if dropped := text.dropped[split]:
        warn((f"{name}: " if name else "") + dropped_text(dropped, split))
    single = None
    if text.words is not None:
        single = _single_token_words(tokenizer, text.words, threads)
    return _evaluation(name, len(tokenizer.vocab), frequencies, text, single, dropped)


def encodes_chunks(tokenizer: object) -> TypeGuard[Tokenizer]:
    """Return whether the core can encode chunks for a tokenizer: it `is_plain`, without phrases or added tokens.

    >>> class Lower(Tokenizer):
    ...     def encode(self, text, *options):
    ...         return super().encode(text.lower(), *options)
    >>> tokenizer = Tokenizer.train("to be", 256)
    >>> encodes_chunks(tokenizer), encodes_chunks(Lower(tokenizer.model))
    (True, False)
    """
    return is_plain(tokenizer) and not tokenizer.phrases and not tokenizer.added_tokens


def is_plain(tokenizer: object) -> TypeGuard[Tokenizer]:
    """Return whether a tokenizer is a `Tokenizer` whose `encode` is not overridden."""
    return (
        isinstance(tokenizer, Tokenizer)
        and type(tokenizer).encode is Tokenizer.encode
        and "encode" not in vars(tokenizer)
    )


def encoded(name: str, tokenizer: TextEncoder, text: str) -> npt.NDArray[np.int64]:
    """Encode a text, in which special tokens are ordinary text, and check the ids.

    >>> encoded("mine", Tokenizer.train("to be", 256), "to").tolist()
    [116, 111]
    """
    ids: Sequence[int] | npt.NDArray[np.uint32]
    if is_plain(tokenizer):
        ids = tokenizer.encode_to_numpy(text, "none")
    else:
        ids = tokenizer.encode(text)
        ids = getattr(ids, "ids", ids)  # of `tokenizers.Encoding`
    try:
        array = np.asarray(ids if len(ids) else np.zeros(0, np.int64))
    except (TypeError, ValueError):
        array = np.asarray(None)
    if array.ndim != 1 or array.dtype.kind not in "iu" or (array < 0).any() or (array > MAX_ID).any():
        raise ArgumentTypeError(f"tokenizers[{name!r}].encode", ids, f"must return a list of ids from 0 to {MAX_ID}")
    return array.astype(np.int64)


class _DocumentEncoder:
    """Token frequencies of a tokenizer that encodes document by document."""

    def __init__(self, name: str, tokenizer: TextEncoder) -> None:
        self._name, self._tokenizer = name, tokenizer
        self._frequencies: Frequencies = np.zeros(0, np.uint64)

    def add(self, text: str) -> None:
        ids = self._encode(text)
        size = int(ids.max(initial=-1)) + 1
        if size > len(self._frequencies):
            self._frequencies = np.pad(self._frequencies, (0, size - len(self._frequencies)))
        np.add.at(self._frequencies, ids, np.uint64(1))

    def _encode(self, text: str) -> npt.NDArray[np.int64]:
        return encoded(self._name, self._tokenizer, text)

    def evaluate(self, text: CountedText, threads: int | None) -> Evaluation:
        words = text.words
        if words is None:
            single = None
        elif is_plain(self._tokenizer):
            single = _single_token_words(self._tokenizer, words, threads)
        else:
            single = sum(count for word, count in words.items() if len(self._encode(f" {word}")) == 1)
        return _evaluation(self._name, self._vocab_size(), self._frequencies, text, single, 0)

    def _vocab_size(self) -> int:
        if isinstance(self._tokenizer, Tokenizer):
            return len(self._tokenizer.vocab)
        sizes = (getattr(self._tokenizer, name, None) for name in ("vocab_size", "n_vocab"))
        used = int(np.count_nonzero(self._frequencies))
        return next((size for size in sizes if isinstance(size, int)), used)


def _evaluation(
    name: str, vocab_size: int, frequencies: Frequencies, text: CountedText, single: int | None, dropped: int
) -> Evaluation:
    return Evaluation(
        name=name,
        vocab_size=vocab_size,
        tokens=int(frequencies.sum()),
        bytes=text.bytes,
        characters=text.characters,
        words=None if text.words is None else text.words.total,
        single_token_words=single,
        dropped=dropped,
        frequencies=frequencies,
    )


def _single_token_words(tokenizer: Tokenizer, words: ChunkCounts, threads: int | None) -> int:
    """Return the number of words that are one token after a space."""
    spaced, offsets = _with_spaces(words)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # dropped text is reported for the whole text
        _, ends = tokenizer.core_encoder.encode_documents(spaced, offsets, "none", threads)
    return int(words.arrays.counts[np.diff(ends) == 1].sum())


def _with_spaces(words: ChunkCounts) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Put a space before each word, as most words in a text have."""
    spaced = np.insert(words.arrays.data, words.arrays.offsets[:-1], ord(" "))
    return spaced, words.arrays.offsets + np.arange(len(words.arrays.offsets))

"""Evaluate tokenizers on a text: the length of its encoding and the use of the vocabulary.

The text is counted once for each pattern, and each tokenizer encodes every unique chunk once. This is exact, because
tokens never cross chunk boundaries. Other tokenizers, and subclasses that override `encode`, encode every document.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TypeGuard

import numpy as np
import numpy.typing as npt

from .._core import MAX_ID
from ..counts import ChunkCounts
from ..counts.counter import dropped_text
from ..data.corpus import Corpus, Data, Files
from ..data.documents import Counts, Documents
from ..data.options import Reading, ReadOptions, Sampling
from ..data.sampling import Selection
from ..data.source import Source
from ..errors import ArgumentError, ArgumentTypeError, DataError, Setting, plural, short, warn
from ..options import accepting
from ..tokenizer import Tokenizer
from ..tokenizer.paper import BatchTokenizer
from ..util.progress import Meter, bar, format_size
from ..util.surrogates import Errors, check_errors
from .counted_text import CountedText, repeatable, texts_of
from .metrics import Evaluation

if TYPE_CHECKING:
    from typing_extensions import Unpack

Frequencies = npt.NDArray[np.uint64]


class TextEncoder(Protocol):
    """Anything that encodes text: a `Tokenizer`, a `tiktoken.Encoding`, your own class.

    The vocabulary size is read from the attribute `vocab_size` or `n_vocab`, if there is one.

    >>> class Bytes:
    ...     vocab_size = 256
    ...
    ...     def encode(self, text):
    ...         return list(text.encode())
    >>> evaluate({"bytes": Bytes()}, "to be")[0].tokens
    5
    """

    def encode(self, text: str, /) -> Sequence[int]:
        """Encode a text to ids."""


@accepting(ReadOptions, Sampling)
def evaluate(
    tokenizers: Mapping[str, TextEncoder],
    data: Data | None = None,
    *,
    texts: str | Iterable[str] | None = None,
    files: Files | None = None,
    threads: int | None = None,
    progress: bool = False,
    **reading: Unpack[Reading],
) -> list[Evaluation]:
    """Evaluate tokenizers on the same text.

    Special tokens in the text are encoded as ordinary text. A tokenizer that is not a `Tokenizer`, or that overrides
    `Tokenizer.encode`, is called as `encode(document)` for every document and every unique word, which is slower.

    Parameters
    ----------
    tokenizers: tokenizers by name.
    data: anything that `ChunkCounts.count` accepts. Words are unknown in chunk counts, and only tokenizers with the
        same pattern can encode them.
    texts: evaluate on these strings, whatever they look like, instead of `data`.
    files: evaluate on these paths, globs, folders or URLs instead of `data`; "-" is standard input.
    {reading}
    threads: number of threads; all cores by default.
    progress: whether to display a progress bar.

    >>> plain, merged = (Tokenizer.train("to be or not to be", size) for size in (256, 258))
    >>> [result.tokens for result in evaluate({"bytes": plain, "merged": merged}, "to be")]
    [5, 3]
    >>> evaluate({"bytes": plain}, texts=["notes.txt"], limit_bytes=5)[0].tokens
    9

    """
    corpus = Corpus.of(data, texts, files, reading)
    evaluator = Evaluator(tokenizers, errors=corpus.options.errors, threads=threads)
    selection = Selection(corpus.sampling)
    with reading_bar(corpus.sources, show=progress) as update:
        for source in corpus.sources:
            with source.blamed():
                for documents in selection.of(source):
                    evaluator.add(documents)
                    update()
    check_text(evaluator.text.bytes, corpus.sources, corpus.sampling, corpus.given)
    return evaluator.results()


def check_text(size: int, sources: Iterable[Source], sampling: Sampling, data: object) -> None:
    """Raise if the data contains no text.

    >>> evaluate({"mine": Tokenizer.train("to be", 256)}, "")
    Traceback (most recent call last):
    ...
    batchbpe.errors.DataError: no text found in ''; pass data that is not empty
    """
    if not size:
        names = [source.name for source in sources if source.name]
        value = short(data)
        if names:
            value = names[0] if len(names) == 1 else plural(len(names), "file")
        is_sample = sampling.sample < 1
        remedy = ("raise ", Setting("sample"), " or pass more data") if is_sample else "pass data that is not empty"
        raise DataError(f"no text found in {value}", remedy=remedy)


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
        """Check the tokenizers and start with an empty text."""
        if not isinstance(tokenizers, Mapping):
            raise ArgumentTypeError("tokenizers", tokenizers, "must be a dict of names and tokenizers")
        if not tokenizers:
            raise ArgumentError("tokenizers", dict(tokenizers), "must contain at least one tokenizer")
        for tokenizer in tokenizers.values():
            if isinstance(tokenizer, str) or not callable(getattr(tokenizer, "encode", None)):
                raise ArgumentTypeError("tokenizers", tokenizer, "must contain objects with a method encode(text)")
        check_errors(errors)
        tokenizers = {name: _unwrapped(tokenizer) for name, tokenizer in tokenizers.items()}
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
            else self._by_document[name].evaluate(self.text)
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
        spaced, offsets = _with_spaces(text.words)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # dropped text has been reported above, for the whole text
            _, ends = encoder.encode_documents(spaced, offsets, ([], []), threads)
        single = int(text.words.arrays.counts[np.diff(ends) == 1].sum())
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


def _unwrapped(tokenizer: TextEncoder) -> TextEncoder:
    """Return the tokenizer that a `BatchTokenizer` contains, unless a subclass overrides `encode`."""
    if isinstance(tokenizer, BatchTokenizer) and type(tokenizer).encode is BatchTokenizer.encode:
        return tokenizer.tokenizer
    return tokenizer


class _DocumentEncoder:
    """Token frequencies of a tokenizer that encodes document by document."""

    def __init__(self, name: str, tokenizer: TextEncoder) -> None:
        self._name, self._tokenizer = name, tokenizer
        self._frequencies: Frequencies = np.zeros(0, np.uint64)

    def add(self, text: str) -> None:
        found = np.bincount(self._encode(text)).astype(np.uint64)
        longer, shorter = sorted((self._frequencies, found), key=len, reverse=True)
        self._frequencies = longer.copy()
        self._frequencies[: len(shorter)] += shorter

    def _encode(self, text: str) -> npt.NDArray[np.int64]:
        ids: Sequence[int] | npt.NDArray[np.uint32]
        if is_plain(self._tokenizer):
            ids = self._tokenizer.encode_to_numpy(text, "none")
        else:
            ids = self._tokenizer.encode(text)
        try:
            array = np.asarray(ids if len(ids) else np.zeros(0, np.int64))
        except (TypeError, ValueError):
            array = np.asarray(None)
        if array.ndim != 1 or array.dtype.kind not in "iu" or (array < 0).any() or (array > MAX_ID).any():
            raise ArgumentTypeError(
                f"tokenizers[{self._name!r}].encode", ids, f"must return a list of ids from 0 to {MAX_ID}"
            )
        return array.astype(np.int64)

    def evaluate(self, text: CountedText) -> Evaluation:
        words = text.words
        single = (
            None if words is None else sum(count for word, count in words.items() if len(self._encode(f" {word}")) == 1)
        )
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


def _with_spaces(words: ChunkCounts) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Put a space before each word, as most words in a text have."""
    spaced = np.insert(words.arrays.data, words.arrays.offsets[:-1], ord(" "))
    return spaced, words.arrays.offsets + np.arange(len(words.arrays.offsets))


@contextmanager
def reading_bar(sources: Sequence[Source], *, show: bool) -> Iterator[Callable[[], object]]:
    """Display progress through the sources. The function that is returned updates the display."""
    meter = Meter(sources)
    with bar("counting", meter.size, show=show) as update:
        yield lambda: update(meter.done, format_size(meter.done))

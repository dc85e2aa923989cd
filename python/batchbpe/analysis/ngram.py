"""`ngram_bits`: how well an n-gram model of a tokenizer's tokens predicts text.

https://batchbpe.github.io/batchbpe/ngram.html#definition has the formulas.

All text is encoded to one array, with a mark before, between and after the documents. The core does the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from .._core import predict_tokens
from ..arguments import check_integer, check_threads
from ..data.corpus import Corpus, Data
from ..data.documents import Counts, Documents, TextFile, Texts, invalid_utf8
from ..data.options import Reading, ReadOptions, Sampling
from ..data.sampling import Selection
from ..errors import ArgumentError, ArgumentTypeError, DataError, UserError, short, warn
from ..options import accepting
from ..tokenizer import Tokenizer
from ..util.progress import Meter, bar, format_size
from ..util.surrogates import Errors, combine_documents
from .counted_text import texts_of
from .evaluation import check_text
from .evaluator import TextEncoder, TokenizerLike, encoded, is_plain, named_tokenizers
from .tables import Table, Tabular, with_computed

if TYPE_CHECKING:
    from typing_extensions import Unpack

Ids = npt.NDArray[np.uint32]
Sizes = npt.NDArray[np.int64]

MAX_ORDER = 100
MARK = (1 << 32) - 1
"""The mark until all ids are known. No id is as large."""


@dataclass(frozen=True, eq=False)
class NgramBits(Tabular):
    """What an n-gram model needs for held-out documents, each with its end. Documents without text are left out."""

    order: int
    """The number of tokens in the longest n-grams."""
    bits: npt.NDArray[np.float64] = field(repr=False)
    """The bits of each held-out document."""
    bytes: Sizes = field(repr=False)
    """The size of each held-out document in UTF-8."""
    tokens: int
    """The number of held-out tokens, including a token at the end of each document."""
    training_tokens: int
    """The number of training tokens, including a token at the end of each document."""
    ngrams: tuple[int, ...]
    """The number of different n-grams in the training text, by length from 1 to that of the longest that occur."""
    discounts: tuple[tuple[float, float, float], ...] = field(repr=False)
    """What is subtracted from counts of 1, of 2, and of 3 or more, by length."""
    seen: tuple[str, ...] = ()
    """The files that are in both texts. If there are any, the bits do not say how well the tokenizer predicts."""

    @property
    def bits_per_byte(self) -> float:
        """Bits of all held-out documents divided by their bytes; lower is better."""
        return float(self.bits.sum() / self.bytes.sum())

    def __repr__(self) -> str:
        """Return the fields that are not arrays, and the bits per byte."""
        return with_computed(self, bits_per_byte=self.bits_per_byte)

    def tables(self) -> list[Table]:
        """Return the result, and the number of n-grams of each length."""
        rows = {
            "bits per byte": f"{self.bits_per_byte:.4f}",
            "held-out documents": f"{len(self.bits):,}",
            "held-out tokens": f"{self.tokens:,}",
            "training tokens": f"{self.training_tokens:,}",
        }
        sizes = {f"different {length}-grams": f"{size:,}" for length, size in enumerate(self.ngrams, start=1)}
        return [([f"{self.order}-gram model", ""], [[*row] for row in (rows | sizes).items()]), *self.cautions()]

    def cautions(self) -> list[Table]:
        """Return a table of the files that are in both texts, if there are any."""
        rows = [[file] for file in self.seen]
        return [(["not held out, so bits per byte are meaningless"], rows)] if rows else []


@accepting(ReadOptions, Sampling)
def ngram_bits(
    tokenizer: TokenizerLike,
    train: Data,
    heldout: Data,
    *,
    order: int = 5,
    threads: int | None = None,
    progress: bool = False,
    **reading: Unpack[Reading],
) -> NgramBits:
    """Train an n-gram model on the tokens of a text, and return how well it predicts held-out documents.

    The model is interpolated modified Kneser–Ney. Bits per byte compare tokenizers with different vocabularies on the
    same documents. Special tokens in the text are encoded as ordinary text.

    Parameters
    ----------
    tokenizer: a tokenizer, the path of a model file, or any object with methods `encode(text)` and `decode(ids)` and an
        attribute `vocab_size` or `n_vocab`.
    train: the documents to train on: anything that `train` accepts, except chunk counts.
    heldout: the documents to predict. They must decode to themselves.
    order: number of tokens in the longest n-grams.
    {reading}
    sample and limit_bytes select from `train`; all of `heldout` is predicted. 30 to 60 bytes of memory
    are needed per training token.
    threads: number of threads; all cores by default.
    progress: whether to display a progress bar.

    >>> tokenizer = Tokenizer.train("to be or not to be", 258)
    >>> result = ngram_bits(tokenizer, ["to be or not to be", "to be"], ["not to be"], order=3)
    >>> result
    NgramBits(order=3, tokens=8, training_tokens=19, ngrams=(9, 13, 13), seen=(), bits_per_byte=1.1278)

    """
    training = Corpus.of(train, None, None, reading)
    predicted = Corpus(heldout, options=training.options)
    (result,) = corpus_bits(
        named_tokenizers([tokenizer]), training, predicted, order=order, threads=threads, progress=progress
    ).values()
    return result


def corpus_bits(
    tokenizers: Mapping[str, TextEncoder],
    train: Corpus,
    heldout: Corpus,
    *,
    order: int = 5,
    threads: int | None = None,
    progress: bool = False,
) -> dict[str, NgramBits]:
    """Do what `ngram_bits` does, for several tokenizers, and corpora that are each read once with their own options.

    >>> tokenizers = {"mine": Tokenizer.train("to be or not to be", 258)}
    >>> corpus_bits(tokenizers, Corpus(["to be"]), Corpus(["to be"]))["mine"].tokens
    4
    """
    check_order("order", order)
    check_threads(threads)
    known, predicted = (
        {name: _Text(name, each, threads, is_restored=is_restored) for name, each in tokenizers.items()}
        for is_restored in (False, True)
    )
    _read(train, "training text", [*known.values()], show=progress)
    _read(heldout, "held-out text", [*predicted.values()], show=progress)
    seen = sorted(_files(train) & _files(heldout))
    if seen:
        warn(f"{seen[0]} is both training and held-out text, so its bits per byte are meaningless; use other documents")
    # Texts are removed as they are used, since only their ids are in memory for all tokenizers at once.
    return {
        name: replace(_predicted(each, known.pop(name), predicted.pop(name), order, threads), seen=tuple(seen))
        for name, each in tokenizers.items()
    }


def _files(corpus: Corpus) -> set[str]:
    """Return the files of a corpus, with one name for each."""
    names = [source.name for source in corpus.sources if source.name]
    return {str(Path(name).resolve()) if Path(name).exists() else name for name in names}


def _read(corpus: Corpus, what: str, texts: Sequence[_Text], *, show: bool) -> None:
    """Add the documents of a corpus to the text of each tokenizer. Errors say what is read."""
    try:
        meter, selection = Meter(corpus.sources), Selection(corpus.sampling)
        with bar(f"encoding {what}", meter.size, show=show) as update:
            for source in corpus.sources:
                with source.blamed():
                    for documents in selection.of(source):
                        some = [text for text in _texts(documents, corpus.options.errors) if text]
                        for text in texts:
                            text.add(some)
                        update(meter.done, format_size(meter.done))
        check_text(texts[0].sizes, corpus.sources, corpus)
    except UserError as error:
        error.where = f"{what}, {error.where}" if error.where else what
        raise


def _predicted(tokenizer: TextEncoder, known: _Text, predicted: _Text, order: int, threads: int | None) -> NgramBits:
    mark = max(known.largest, predicted.largest) + 1
    training_ids, heldout_ids = known.ids(mark), predicted.ids(mark)
    choices = _choices(tokenizer, training_ids, heldout_ids)
    bits, ngrams, discounts = predict_tokens(training_ids, heldout_ids, mark, choices, order, threads)
    starts = np.flatnonzero(heldout_ids[:-1] == mark)
    return NgramBits(
        order,
        np.add.reduceat(bits, starts),
        np.array(predicted.sizes, np.int64),
        len(bits),
        len(training_ids) - 1,
        tuple(ngrams),
        tuple(discounts),
    )


def check_order(parameter: str, order: int) -> None:
    """Raise unless an order is in range.

    >>> check_order("order", 0)
    Traceback (most recent call last):
    ...
    batchbpe.errors.ArgumentError: order must be at least 1, got 0
    """
    check_integer(parameter, order, 1)
    if order > MAX_ORDER:
        raise ArgumentError(parameter, order, f"must be at most {MAX_ORDER}")


class _Text:
    """Documents as ids, with a mark before, between and after them."""

    def __init__(self, name: str, tokenizer: TextEncoder, threads: int | None, *, is_restored: bool) -> None:
        """Start without documents. If `is_restored`, documents that do not decode to themselves are an error."""
        self._name, self._tokenizer, self._threads, self._is_restored = name, tokenizer, threads, is_restored
        self._parts = [np.array([MARK], np.uint32)]
        self.sizes: list[int] = []
        self.largest = 0

    def add(self, texts: list[str]) -> None:
        ids, offsets = self._encode(texts)
        for text, start, end in zip(texts, offsets[:-1], offsets[1:], strict=True):
            data = text.encode()
            if self._is_restored and self._decode(ids[start:end]) != data:
                raise DataError(
                    f"{self._name} does not restore the document {short(text, 60)}",
                    remedy="use a tokenizer that loses and changes no text",
                )
            self.sizes.append(len(data))
        self.largest = max(self.largest, int(ids.max(initial=0)))
        self._parts.append(np.insert(ids, offsets[1:], MARK))

    def _encode(self, texts: list[str]) -> tuple[Ids, Sizes]:
        if is_plain(self._tokenizer):
            return self._tokenizer.encode_batch_to_numpy(texts, "none", threads=self._threads)
        parts = [encoded(self._name, self._tokenizer, text).astype(np.uint32) for text in texts]
        return np.concatenate([np.zeros(0, np.uint32), *parts]), np.cumsum([0, *map(len, parts)])

    def _decode(self, ids: Ids) -> bytes:
        if isinstance(self._tokenizer, Tokenizer):
            return self._tokenizer.decode_bytes(ids)
        decode = getattr(self._tokenizer, "decode", None)
        if not callable(decode):
            raise ArgumentTypeError("tokenizer", self._tokenizer, "must have a method decode(ids)")
        text = decode(ids.tolist())
        return text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)

    def ids(self, mark: int) -> Ids:
        """Return all ids and marks, and forget them."""
        parts, self._parts = self._parts, []
        ids = np.concatenate(parts)
        ids[ids == MARK] = mark
        return ids


def _texts(documents: Documents, errors: Errors) -> list[str]:
    """Return documents as strings without surrogates."""
    if isinstance(documents, Counts):
        documents.sizes()  # raises
    if isinstance(documents, TextFile):
        documents = documents.in_memory()  # raises if it is too large
    try:
        texts = [*texts_of(documents, errors)]
    except UnicodeDecodeError as error:
        raise invalid_utf8(f"invalid UTF-8 at byte {error.start} of the text") from None
    return combine_documents(texts, errors) if isinstance(documents, Texts) else texts


def _choices(tokenizer: TextEncoder, *texts: Ids) -> int:
    """Return the number of tokens that can occur in ordinary text, with the mark."""
    if isinstance(tokenizer, Tokenizer):
        model = tokenizer.model
        never = {*model.decode_only, *model.special_tokens.values()} - {*model.merges.values(), *model.byte_ids}
        return len(model.vocab.keys() - never) + 1
    sizes = (getattr(tokenizer, name, None) for name in ("vocab_size", "n_vocab"))
    size = next((size for size in sizes if isinstance(size, int)), None)
    if size is None:
        raise ArgumentTypeError("tokenizer", tokenizer, "must have an attribute vocab_size or n_vocab")
    used = len(np.unique(np.concatenate(texts)))
    if used > size + 1:
        raise DataError(f"the tokenizer has {size} tokens, but {used - 1} different ids occur in the text")
    return size + 1

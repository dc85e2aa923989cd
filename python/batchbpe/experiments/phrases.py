"""How many of the tokens should be phrases: the encoded length of held-out text for different fractions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from ..analysis.counted_text import texts_of
from ..analysis.plots import COLORS, axes, styled
from ..data.corpus import Corpus, Data, Files
from ..data.documents import Counts, Documents
from ..data.options import ReadOptions
from ..data.sampling import DocumentSampler
from ..data.source import Source
from ..errors import ArgumentError, DataError, Setting
from ..phrases.counting import check_rereadable
from ..phrases.options import KINDS
from ..tokenizer import Tokenizer
from ..util.surrogates import Errors
from .data import HELDOUT_SHARE, source_names
from .result import Result, signed
from .trainings import percent_change, recorded_options, vocabularies_bar

SHARES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5)


@styled
def phrases(
    data: Data | None = None,
    heldout: Data | None = None,
    *,
    texts: str | Iterable[str] | None = None,
    files: Files | None = None,
    vocab_sizes: Sequence[int] = (50_304,),
    shares: Sequence[float] = SHARES,
    kinds: Sequence[str] = tuple(KINDS),
    heldout_share: float = HELDOUT_SHARE,
    seed: int = 0,
    text_column: str = "text",
    document: str = "file",
    errors: Errors = "strict",
    progress: bool = False,
    **options: Any,
) -> Result:
    """Train with different fractions of phrases, and with "auto", and compare the encoded length of held-out text.

    Parameters
    ----------
    data: documents; anything that `ChunkCounts.count` accepts and that can be read several times, except counts.
    heldout: documents to encode; by default, a random fraction of the data.
    texts, files: as in `ChunkCounts.count`, instead of `data`.
    vocab_sizes: sizes of the vocabularies.
    shares: fractions of the vocabulary that are phrases; the first is the reference.
    kinds: values of `phrase_chunks`.
    heldout_share, seed: fraction of the documents to hold out, and random seed for choosing them.
    text_column, document, errors: as in `ChunkCounts.count`.
    progress: whether to display a progress bar.
    options: other options of `train`.

    >>> result = phrases(["to be or not to be"] * 50, vocab_sizes=[262], shares=[0, 0.01], kinds=["letters"])
    >>> result.table.column_names
    ['vocab_size', 'kind', 'share', 'phrases', 'tokens', 'change']

    """
    if not shares or not vocab_sizes or not kinds:
        raise ArgumentError("shares", list(shares), "must contain at least one number, as must vocab_sizes and kinds")
    corpus = Corpus(data, texts, files, ReadOptions(text_column, document=document, errors=errors))
    check_rereadable(corpus)
    split = _HeldOut(corpus, None if heldout is None else Corpus(heldout, options=corpus.options), heldout_share, seed)
    held = list(split.heldout())
    if not held:
        remedy = ("provide more documents, or ", Setting("heldout"), "; ", Setting("document"), " splits text files")
        raise DataError("the held-out text is empty", remedy=remedy)
    rows: list[dict[str, Any]] = []
    wanted: list[float | Literal["auto"]] = [*shares, "auto"]
    settings = [(size, kind, share) for size in vocab_sizes for kind in kinds for share in wanted]
    with vocabularies_bar(len(settings), show=progress) as on_progress:
        for done, (size, kind, share) in enumerate(settings):
            number = share if share == "auto" else round(share * size)
            phrase_options: dict[str, Any] = {"phrases": number, "phrase_chunks": kind} if number else {}
            tokenizer = Tokenizer.train(split.training(), size, **phrase_options, **options)
            encoded = len(tokenizer.encode_batch_to_numpy(held, "none")[0])
            if share == shares[0]:
                reference = encoded
            row = {"vocab_size": size, "kind": kind, "share": str(share), "phrases": len(tokenizer.phrases)}
            rows.append({**row, "tokens": encoded, "change": percent_change(encoded, reference)})
            on_progress(done + 1)
    findings = {
        f"auto, {row['vocab_size']:,} tokens, {row['kind']}": (
            f"{row['phrases']:,} phrases, {signed(row['change'])}% tokens"
        )
        for row in rows
        if row["share"] == "auto"
    }
    parameters = {"data": source_names(corpus), "seed": seed, "held-out documents": len(held)}
    return Result(
        "phrases",
        {**parameters, **recorded_options(options)},
        {"phrases": pa.Table.from_pylist(rows)},
        {"phrases": _figure(rows)},
        findings,
    )


class _HeldOut:
    """The documents to train on, and those held out: `heldout`, or a random fraction of the data."""

    def __init__(self, corpus: Corpus, heldout: Corpus | None, fraction: float, seed: int) -> None:
        if not 0 < fraction < 1:
            raise ArgumentError("heldout_share", fraction, "must be between 0 and 1, exclusive")
        self._corpus, self._heldout, self._fraction, self._seed = corpus, heldout, fraction, seed

    def training(self) -> Source:
        return Source("", lambda _: self._documents(self._corpus, is_held=False if self._heldout is None else None))

    def heldout(self) -> Iterator[str]:
        corpus = self._heldout or self._corpus
        for documents in self._documents(corpus, is_held=True if self._heldout is None else None):
            yield from texts_of(documents, corpus.options.errors)

    def _documents(self, corpus: Corpus, is_held: bool | None) -> Iterator[Documents]:
        """Yield the documents that are held out, those that are not, or all."""
        for source in corpus.sources:
            sampler = DocumentSampler(source, self._seed)
            with source.blamed():
                for documents in source:
                    if isinstance(documents, Counts):
                        raise DataError("phrases need documents, not chunk counts", remedy="pass the documents")
                    if is_held is None:
                        yield documents
                        continue
                    mask = sampler.draw(documents, self._fraction) == is_held
                    if mask.any():
                        yield documents.select(np.asarray(mask))


def _figure(rows: list[dict[str, Any]]) -> Any:
    sizes = list(dict.fromkeys(row["vocab_size"] for row in rows))
    figure, panels = axes(len(sizes))
    for panel, size in zip(panels, sizes, strict=True):
        for color, kind in zip(COLORS, dict.fromkeys(row["kind"] for row in rows), strict=False):
            chosen = [row for row in rows if (row["vocab_size"], row["kind"]) == (size, kind)]
            fixed = [row for row in chosen if row["share"] != "auto"]
            x = [100 * row["phrases"] / size for row in fixed]
            panel.plot(x, [row["change"] for row in fixed], marker="o", markersize=4, color=color, label=kind)
            for row in chosen[len(fixed) :]:
                x = [100 * row["phrases"] / size]
                panel.plot(x, [row["change"]], marker="*", markersize=14, color=color, markeredgecolor="white")
        panel.axhline(0, color="#888888", linewidth=0.8)
        panel.set(xlabel="phrases in the vocabulary, %", ylabel="change in encoded length, %")
        panel.set_title(f"{size:,} tokens; the star is auto")
        panel.legend()
    return figure

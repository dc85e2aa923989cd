"""How many of the tokens should be phrases: the encoded length of held-out text for different fractions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import pyarrow as pa

from ..analysis.counted_text import texts_of
from ..analysis.plots import COLORS, axes, styled
from ..data.corpus import Corpus, Data, Files
from ..data.options import ReadOptions
from ..errors import ArgumentError, DataError, Setting
from ..phrases.counting import check_rereadable
from ..phrases.options import KINDS
from ..tokenizer import Tokenizer
from ..util.surrogates import Errors
from .data import HELDOUT_SHARE, DividedDocuments, source_names
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
    other = None if heldout is None else Corpus(heldout, options=corpus.options)
    documents = DividedDocuments(corpus, other, heldout_share, seed)
    held = [text for some in documents.heldout() for text in texts_of(some, errors)]
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
            tokenizer = Tokenizer.train(documents.training(), size, **phrase_options, **options)
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

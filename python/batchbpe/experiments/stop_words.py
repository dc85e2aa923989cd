"""The effect of stop words, which are whole-chunk tokens for the most frequent chunks (the paper's Figures 3 and 4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from ..analysis.evaluation import evaluate_text
from ..counts import ChunkCounts
from ..data.corpus import Data, Files
from ..errors import ArgumentError
from ..tokenizer import Tokenizer
from .data import ExperimentData
from .plots import axes, draw_tokens, explain_hollow, line, styled
from .result import Result, signed
from .trainings import check_size, recorded_options, runs_bar, train_all

SIZES = (0, 1, 3, 6, 12, 25, 50, 80, 130, 200)
PREFIX = " in"
WORDS = 100
"""Number of chunks whose tokens are compared."""
EXAMPLES = 8
"""Number of these that a figure displays."""


@styled
def stop_words(
    data: ExperimentData | Data | None = None,
    *,
    texts: str | Iterable[str] | None = None,
    files: Files | None = None,
    vocab_size: int = 50_304,
    sizes: Sequence[int] = SIZES,
    prefix: str = PREFIX,
    progress: bool = False,
    **options: Any,
) -> Result:
    """Train with different numbers of stop words, and compare the encoded length of held-out text.

    Parameters
    ----------
    data: anything that `ChunkCounts.count` accepts, or an `ExperimentData`.
    texts, files: as in `ChunkCounts.count`, instead of `data`.
    vocab_size: size of each vocabulary.
    sizes: numbers of stop words; the first is the reference.
    prefix: a stop word with which other chunks start. Their tokens are compared between the first and the last size.
    progress: whether to display a progress bar.
    options: other options of `train`, for all vocabularies.

    >>> result = stop_words("to be or not to be, to bet " * 50, vocab_size=262, sizes=[0, 1], prefix=" be")
    >>> result.tables["words"].column_names
    ['word', 'count', '0_stop_words', '1_stop_words']

    """
    if not sizes:
        raise ArgumentError("sizes", list(sizes), "must contain at least one number")
    data = ExperimentData.of(data, texts=texts, files=files)
    available = len(data.counts.stop_words(max(sizes))[0])
    sizes = list(dict.fromkeys(min(size, available) for size in sizes))
    if vocab_size <= 256 + max(sizes):
        reason = f"must be at least {257 + max(sizes)} (256 bytes + {max(sizes)} stop words + 1 merge)"
        raise ArgumentError("vocab_size", vocab_size, reason)
    settings = [{"vocab_size": vocab_size, **options, "stop_list_size": size} for size in sizes]
    text = data.text
    rows: list[dict[str, Any]] = []
    tokenizers: list[Tokenizer] = []
    with runs_bar(len(settings), show=progress) as on_progress:
        for run in train_all(data.counts, settings, on_progress=on_progress):
            if not rows:
                check_size(run)
            encoded = evaluate_text("", run.tokenizer, text).tokens
            rows.append(
                {
                    "stop_list_size": run.options["stop_list_size"],
                    "vocab_size": len(run.tokenizer.vocab),
                    "tokens": encoded,
                    "change": 100 * (encoded / rows[0]["tokens"] - 1) if rows else 0.0,
                }
            )
            tokenizers = [*tokenizers[:1], run.tokenizer]
    changed, seen = _words(data.counts, prefix, tokenizers[0], tokenizers[-1])
    names = [f"{size}_stop_words" for size in (sizes[0], sizes[-1])]
    words = pa.table(
        {
            "word": [word for word, *_ in changed],
            "count": [count for _, count, *_ in changed],
            **{name: ["|".join(row[2 + place]) for row in changed] for place, name in enumerate(names)},
        }
    )
    changes = [row["change"] for row in rows]
    prefixes = _prefixes(data.counts, max(sizes))
    shared = sum(bool(row["chunks"]) for row in prefixes.to_pylist())
    figures = {"stop_words": _figure(rows, vocab_size)}
    findings = {
        "the encoded length changes by −0.0083 % to +0.0483 %": f"{signed(min(changes))} % to {signed(max(changes))} %",
        "stop words are prefixes of other chunks": f"{shared} of {prefixes.num_rows} stop words are",
    }
    if seen:
        findings["such chunks are then tokenized differently"] = (
            f"{len(changed)} of the {seen} most frequent chunks that start with {prefix!r} are"
        )
    if changed:
        figures["words"] = _words_figure(changed[:EXAMPLES], seen, len(changed), (sizes[0], sizes[-1]), prefix)
    return Result(
        "stop-words",
        {**data.parameters, "vocab_size": vocab_size, "prefix": prefix, **recorded_options(options)},
        {"stop_words": pa.Table.from_pylist(rows), "prefixes": prefixes, "words": words},
        figures,
        findings,
    )


def _prefixes(counts: ChunkCounts, size: int) -> pa.Table:
    """Count the longer chunks that start with each stop word, and their occurrences."""
    _, words = counts.stop_words(size)
    found = {word: [0, 0] for word in words}
    longest = max(map(len, words), default=0)
    offsets, data, numbers = counts.arrays.offsets.tolist(), counts.arrays.data.tobytes(), counts.arrays.counts.tolist()
    for i, count in enumerate(numbers):
        chunk = data[offsets[i] : offsets[i + 1]]
        for length in range(2, min(longest, len(chunk) - 1) + 1):
            if (seen := found.get(chunk[:length])) is not None:
                seen[0] += 1
                seen[1] += count
    rows = [
        {"stop_word": word.decode("utf-8", "replace"), "chunks": chunks, "occurrences": occurrences}
        for word, (chunks, occurrences) in found.items()
    ]
    return pa.Table.from_pylist(rows) if rows else pa.table({"stop_word": [], "chunks": [], "occurrences": []})


def _words(counts: ChunkCounts, prefix: str, first: Tokenizer, last: Tokenizer) -> tuple[list[tuple[Any, ...]], int]:
    """Find frequent chunks that start with a token and that two tokenizers divide differently.

    Returns these, and the number of chunks compared.
    """
    found: list[tuple[Any, ...]] = []
    seen = 0
    for word, count in counts.most_common():
        if seen == WORDS:
            break
        if word.startswith(prefix) and word != prefix and (tokens := _tokens(first, word))[0] == prefix:
            seen += 1
            if (others := _tokens(last, word)) != tokens:
                found.append((word, count, tokens, others))
    return found, seen


def _tokens(tokenizer: Tokenizer, word: str) -> list[str]:
    return [tokenizer.decode([token]) for token in tokenizer.encode_ordinary(word)]


def _figure(rows: list[dict[str, Any]], vocab_size: int) -> Any:
    figure, (panel,) = axes()
    short = [row["vocab_size"] < vocab_size for row in rows]
    line(panel, [row["stop_list_size"] for row in rows], [row["change"] for row in rows], zero=True, hollow=short)
    panel.set(xlabel="number of stop words", ylabel="change in encoded length, %")
    panel.set_title(f"Encoded length of held-out text, compared with {rows[0]['stop_list_size']} stop words")
    explain_hollow(figure, short, vocab_size)
    return figure


def _words_figure(examples: list[tuple[Any, ...]], seen: int, changed: int, sizes: tuple[int, int], prefix: str) -> Any:
    figure, panels = axes(2, height=0.9 + 0.28 * len(examples), width=6.8)
    for place, (panel, size) in enumerate(zip(panels, sizes, strict=True)):
        draw_tokens(panel, [row[2 + place] for row in examples], f"with {size} stop words")
    title = f"{changed} of the {seen} most frequent chunks with the prefix “{prefix}” are tokenized differently"
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    return figure

"""The effect of stop words, whole-chunk tokens for the most frequent chunks (the paper's Figures 3 and 4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from ..analysis.plots import axes, draw_tokens, explain_hollow, line, styled
from ..counts import ChunkCounts
from ..data.corpus import Data, Files
from ..errors import ArgumentError
from ..tokenizer import Tokenizer
from .data import ExperimentData
from .result import Result, signed
from .trainings import recorded_options, train_with_reference

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
    available = len(data.counts.stop_words(max(sizes)))
    sizes = list(dict.fromkeys(min(size, available) for size in sizes))
    if vocab_size <= 256 + max(sizes):
        reason = f"must be at least {257 + max(sizes)} (256 bytes + {max(sizes)} stop words + 1 merge)"
        raise ArgumentError("vocab_size", vocab_size, reason)
    settings = [{"vocab_size": vocab_size, **options, "stop_list_size": size} for size in sizes]
    results = train_with_reference(data, settings, progress=progress)
    rows = [
        {"stop_list_size": size, **trained.lengths(results[0])} for size, trained in zip(sizes, results, strict=True)
    ]
    changes = [row["change"] for row in rows]
    prefixes = _prefixes(data.counts, max(sizes))
    shared = sum(map(bool, prefixes["chunks"].to_pylist()))
    words, seen = _words(data.counts, prefix, results[0].tokenizer, results[-1].tokenizer)
    figures = {"stop_words": _figure(rows, vocab_size)}
    findings = {
        "the encoded length changes by −0.0083% to +0.0483%": f"{signed(min(changes))}% to {signed(max(changes))}%",
        "stop words are prefixes of other chunks": f"{shared} of {prefixes.num_rows} stop words are",
    }
    if seen:
        findings["such chunks are then tokenized differently"] = (
            f"{len(words)} of the {seen} most frequent chunks that start with {prefix!r} are"
        )
    if words:
        title = f"{len(words)} of the {seen} most frequent chunks with the prefix “{prefix}” are tokenized differently"
        figures["words"] = _words_figure(words[:EXAMPLES], (sizes[0], sizes[-1]), title)
    words_table = {
        "word": [word.text for word in words],
        "count": [word.occurrences for word in words],
        f"{sizes[0]}_stop_words": ["|".join(word.first) for word in words],
        f"{sizes[-1]}_stop_words": ["|".join(word.last) for word in words],
    }
    return Result(
        "stop-words",
        {**data.parameters, "vocab_size": vocab_size, "prefix": prefix, **recorded_options(options)},
        {"stop_words": pa.Table.from_pylist(rows), "prefixes": prefixes, "words": pa.table(words_table)},
        figures,
        findings,
    )


def _prefixes(counts: ChunkCounts, size: int) -> pa.Table:
    """Count the longer chunks that start with each stop word, and their occurrences."""
    words = counts.stop_words(size)
    found = {word: [0, 0] for word in words}
    longest = max(map(len, words), default=0)
    offsets, data, numbers = counts.arrays.offsets.tolist(), counts.arrays.data.tobytes(), counts.arrays.counts.tolist()
    for i, count in enumerate(numbers):
        chunk = data[offsets[i] : offsets[i + 1]]
        for length in range(2, min(longest, len(chunk) - 1) + 1):
            if (seen := found.get(chunk[:length])) is not None:
                seen[0] += 1
                seen[1] += count
    return pa.table(
        {
            "stop_word": [word.decode("utf-8", "replace") for word in found],
            "chunks": [chunks for chunks, _ in found.values()],
            "occurrences": [occurrences for _, occurrences in found.values()],
        }
    )


class _Word(NamedTuple):
    text: str
    occurrences: int
    first: list[str]
    """Its tokens with the first number of stop words."""
    last: list[str]
    """Its tokens with the last number of stop words."""


def _words(counts: ChunkCounts, prefix: str, first: Tokenizer, last: Tokenizer) -> tuple[list[_Word], int]:
    """Find frequent chunks that start with the token `prefix` and that two tokenizers split differently.

    Returns these, and the number of chunks compared.
    """
    found: list[_Word] = []
    seen = 0
    for text, count in counts.most_common():
        if seen == WORDS:
            break
        if text.startswith(prefix) and text != prefix and (tokens := _tokens(first, text))[0] == prefix:
            seen += 1
            if (others := _tokens(last, text)) != tokens:
                found.append(_Word(text, count, tokens, others))
    return found, seen


def _tokens(tokenizer: Tokenizer, text: str) -> list[str]:
    return [tokenizer.decode([token]) for token in tokenizer.encode_ordinary(text)]


def _figure(rows: list[dict[str, Any]], vocab_size: int) -> Any:
    figure, (panel,) = axes()
    short = [row["vocab_size"] < vocab_size for row in rows]
    line(panel, [row["stop_list_size"] for row in rows], [row["change"] for row in rows], zero=True, hollow=short)
    panel.set(xlabel="number of stop words", ylabel="change in encoded length, %")
    panel.set_title(f"Encoded length of held-out text, compared with {rows[0]['stop_list_size']} stop words")
    explain_hollow(figure, short, vocab_size)
    return figure


def _words_figure(examples: Sequence[_Word], sizes: tuple[int, int], title: str) -> Any:
    figure, (left, right) = axes(2, height=0.9 + 0.28 * len(examples), width=6.8)
    draw_tokens(left, [word.first for word in examples], f"with {sizes[0]} stop words")
    draw_tokens(right, [word.last for word in examples], f"with {sizes[1]} stop words")
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    return figure

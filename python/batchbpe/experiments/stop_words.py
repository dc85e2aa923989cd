"""What whole-chunk tokens for the commonest chunks do (the paper's Figures 3 and 4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from ..chunks import ChunkCounts
from ..evaluation import evaluate_text
from ..tokenizer import Tokenizer
from .data import Data
from .plots import axes, line, styled, tokens
from .result import Result
from .runs import check_size, runs_bar, train_all

SIZES = (0, 1, 3, 6, 12, 25, 50, 80, 130, 200)
PREFIX = " in"
EXAMPLES = 8


def stop_words(
    data: Data,
    *,
    vocab_size: int = 50_304,
    sizes: Sequence[int] = SIZES,
    prefix: str = PREFIX,
    progress: bool = False,
    **options: Any,
) -> Result:
    """Train with so many stop words each, the first being the reference, and encode the held-out text.

    `prefix` is a stop word that others begin with: how these are cut with the fewest and with the most stop words.

    >>> result = stop_words(Data.of("to be or not to be, to bet " * 50), vocab_size=262, sizes=[0, 1], prefix=" be")
    >>> result.tables["words"].column_names
    ['word', 'count', '0_stop_words', '1_stop_words']
    """
    if not sizes:
        raise ValueError("sizes is empty: give at least one")
    settings = [{"vocab_size": vocab_size, **options, "stop_list_size": size} for size in sizes]
    text = data.text
    rows: list[dict[str, Any]] = []
    first: Tokenizer | None = None
    with runs_bar(len(settings), show=progress) as moved:
        for run in train_all(data.counts, settings, moved=moved):
            if first is None:
                check_size(run)
                first = run.tokenizer
            size, encoded = run.options["stop_list_size"], evaluate_text("", run.tokenizer, text).tokens
            change = 100 * (encoded / rows[0]["tokens"] - 1) if rows else 0.0
            rows.append({"stop_list_size": size, "tokens": encoded, "change": change})
    assert first is not None
    last = run.tokenizer
    cut = _words(data.counts, prefix, first, last)
    names = [f"{size}_stop_words" for size in (sizes[0], sizes[-1])]
    words = pa.table(
        {
            "word": [word for word, *_ in cut],
            "count": [count for _, count, *_ in cut],
            **{name: ["|".join(row[2 + place]) for row in cut] for place, name in enumerate(names)},
        }
    )
    changes = [row["change"] for row in rows]
    found = _prefixes(data.counts, max(sizes))
    begin = sum(bool(row["chunks"]) for row in found.to_pylist())
    figures = {"stop_words": _figure(rows)}
    if cut:
        figures["words"] = _tokens(cut, sizes, prefix)
    return Result(
        "stop-words",
        {**data.parameters, "vocab_size": vocab_size, "prefix": prefix, **options},
        {"stop_words": pa.Table.from_pylist(rows), "prefixes": found, "words": words},
        figures,
        {
            "encoded length changes by −0.0083 % … +0.0483 %": f"{min(changes):+.4f} % … {max(changes):+.4f} %",
            "a stop word may be the beginning of other chunks": f"{begin} of {found.num_rows} stop words are",
        },
    )


def _prefixes(counts: ChunkCounts, size: int) -> pa.Table:
    """How many longer chunks begin with each stop word, and how often these occur."""
    _, words = counts.stop_words(size)
    found = {word: [0, 0] for word in words}
    longest = max(map(len, words), default=0)
    offsets, data, numbers = counts.offsets.tolist(), counts.data.tobytes(), counts.counts.tolist()
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


def _words(counts: ChunkCounts, prefix: str, *tokenizers: Tokenizer) -> list[tuple[Any, ...]]:
    """The commonest chunks that begin with a stop word's token, cut by each tokenizer."""
    found: list[tuple[Any, ...]] = []
    for word, count in counts.most_common():
        if len(found) == EXAMPLES:
            break
        if word.startswith(prefix) and word != prefix:
            cuts = [_cut(tokenizer, word) for tokenizer in tokenizers]
            if cuts[0][0] == prefix:
                found.append((word, count, *cuts))
    return found


def _cut(tokenizer: Tokenizer, word: str) -> list[str]:
    return [tokenizer.decode([token]) for token in tokenizer.encode_ordinary(word)]


@styled
def _figure(rows: list[dict[str, Any]]) -> Any:
    figure, (panel,) = axes()
    line(panel, [row["stop_list_size"] for row in rows], [row["change"] for row in rows], zero=True)
    panel.set(xlabel="stop_list_size", ylabel="change in encoded length, %")
    panel.set_title("encoded length with more and more stop words")
    return figure


@styled
def _tokens(cut: list[tuple[Any, ...]], sizes: Sequence[int], prefix: str) -> Any:
    figure, panels = axes(2, height=0.9 + 0.28 * len(cut))
    for place, (panel, size) in enumerate(zip(panels, (sizes[0], sizes[-1]), strict=True)):
        tokens(panel, [row[2 + place] for row in cut], f"with {size} stop words")
    figure.suptitle(f"Chunks that begin as the stop word “{prefix}”, in tokens", x=0.01, ha="left", fontsize=12)
    return figure

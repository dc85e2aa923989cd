"""What whole-chunk tokens for the commonest chunks do (the paper's Figures 3 and 4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from ..analysis.evaluation import evaluate_text
from ..counts import ChunkCounts
from ..data import corpus
from ..tokenizer import Tokenizer
from .data import Data
from .plots import axes, explain_hollow, line, styled, tokens
from .result import Result, signed
from .trainings import check_size, runs_bar, train_all

SIZES = (0, 1, 3, 6, 12, 25, 50, 80, 130, 200)
PREFIX = " in"
WORDS, EXAMPLES = 100, 8
"""So many words are looked at, and so many shown."""


@styled
def stop_words(
    data: Data | corpus.Data,
    *,
    vocab_size: int = 50_304,
    sizes: Sequence[int] = SIZES,
    prefix: str = PREFIX,
    progress: bool = False,
    **options: Any,
) -> Result:
    """Train with so many stop words each, the first being the reference, and encode the held-out text.

    `prefix` is a stop word that others begin with: how these are cut with the fewest and with the most stop words.

    >>> result = stop_words("to be or not to be, to bet " * 50, vocab_size=262, sizes=[0, 1], prefix=" be")
    >>> result.tables["words"].column_names
    ['word', 'count', '0_stop_words', '1_stop_words']
    """
    if not sizes:
        raise ValueError("sizes is empty: give at least one")
    data = Data.of(data)
    there = len(data.counts.stop_words(max(sizes))[0])
    sizes = list(dict.fromkeys(min(size, there) for size in sizes))
    if vocab_size <= 256 + max(sizes):
        raise ValueError(f"vocab_size={vocab_size} is too small for {max(sizes)} stop words: {257 + max(sizes)} is not")
    settings = [{"vocab_size": vocab_size, **options, "stop_list_size": size} for size in sizes]
    text = data.text
    rows: list[dict[str, Any]] = []
    tokenizers: list[Tokenizer] = []
    with runs_bar(len(settings), show=progress) as moved:
        for run in train_all(data.counts, settings, moved=moved):
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
    cut, seen = _words(data.counts, prefix, tokenizers[0], tokenizers[-1])
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
    figures = {"stop_words": _figure(rows, vocab_size)}
    findings = {
        "encoded length changes by −0.0083 % … +0.0483 %": f"{signed(min(changes))} % … {signed(max(changes))} %",
        "a stop word may be the beginning of other chunks": f"{begin} of {found.num_rows} stop words are",
    }
    if seen:
        findings["such chunks are then cut in other ways"] = (
            f"{len(cut)} of the {seen} commonest that begin with {prefix!r} are"
        )
    if cut:
        figures["words"] = _tokens(cut[:EXAMPLES], seen, len(cut), (sizes[0], sizes[-1]), prefix)
    return Result(
        "stop-words",
        {**data.parameters, "vocab_size": vocab_size, "prefix": prefix, **options},
        {"stop_words": pa.Table.from_pylist(rows), "prefixes": found, "words": words},
        figures,
        findings,
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


def _words(counts: ChunkCounts, prefix: str, first: Tokenizer, last: Tokenizer) -> tuple[list[tuple[Any, ...]], int]:
    """Find those of the commonest chunks beginning with a token that are cut in another way, and how many were seen."""
    found: list[tuple[Any, ...]] = []
    seen = 0
    for word, count in counts.most_common():
        if seen == WORDS:
            break
        if word.startswith(prefix) and word != prefix and (cut := _cut(first, word))[0] == prefix:
            seen += 1
            if (other := _cut(last, word)) != cut:
                found.append((word, count, cut, other))
    return found, seen


def _cut(tokenizer: Tokenizer, word: str) -> list[str]:
    return [tokenizer.decode([token]) for token in tokenizer.encode_ordinary(word)]


def _figure(rows: list[dict[str, Any]], vocab_size: int) -> Any:
    figure, (panel,) = axes()
    short = [row["vocab_size"] < vocab_size for row in rows]
    line(panel, [row["stop_list_size"] for row in rows], [row["change"] for row in rows], zero=True, hollow=short)
    panel.set(xlabel="stop words", ylabel="change in the number of tokens, %")
    panel.set_title(f"held-out text, against {rows[0]['stop_list_size']} stop words: below 0 it is shorter")
    explain_hollow(figure, short, vocab_size)
    return figure


def _tokens(cut: list[tuple[Any, ...]], seen: int, changed: int, sizes: tuple[int, int], prefix: str) -> Any:
    figure, panels = axes(2, height=0.9 + 0.28 * len(cut), width=6.8)
    for place, (panel, size) in enumerate(zip(panels, sizes, strict=True)):
        tokens(panel, [row[2 + place] for row in cut], f"with {size} stop words")
    title = f"{changed} of the {seen} commonest chunks that begin with the token “{prefix}” are cut in another way"
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    return figure

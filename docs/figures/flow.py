"""How data flows through the package."""

from __future__ import annotations

from .drawing import MARGIN, RIGHT, WIDTH, Figure
from .example import TEXT, Example


def flow(example: Example) -> Figure:
    """Draw the steps from text to ids, with Rust in orange and Python in blue."""
    figure = Figure(
        "The flow of data through batchbpe",
        "Rust splits and counts the text and keeps the table of pairs. Python chooses which pairs to merge. The result "
        "is a model, with which Rust encodes text.",
    )
    for x, kind, language in ((MARGIN, "orange", "Rust"), (MARGIN + 80, "blue", "Python")):
        figure.box(x, figure.y, 14, kind=kind, height=14)
        figure.text(x + 22, figure.y + 12, language, "sans")
    figure.text(RIGHT, figure.y + 12, f"{len(TEXT)} bytes of text", "sans muted", "end")
    figure.y += 34
    _step(figure, "split", "orange", f"{len(example.chunks)} chunks")
    _step(figure, "count", "orange", f"{len(example.counts)} different chunks")
    _step(figure, "stop words, cutoff", "blue", f"{len(example.trained())} chunks, with their counts", turns=True)
    _loop(figure, example)
    _step(figure, "Model", "blue", "pattern, stop words, merges")
    _step(figure, "encode", "orange", f"{len(TEXT)} bytes as {len(example.plain.encode(TEXT))} ids")
    figure.y -= 10
    return figure


def _step(figure: Figure, text: str, kind: str, result: str, *, turns: bool = False) -> None:
    """Draw a step and an arrow to the next, with what it results in. If the arrow `turns`, it has no head yet."""
    middle, width = WIDTH / 2, 230
    figure.box(middle - width / 2, figure.y, width, text, kind, height=30)
    figure.line([(middle, figure.y + 30), (middle, figure.y + 56)], "strong", arrow=not turns)
    figure.text(middle + 14, figure.y + 48, result, "sans muted")
    figure.y += 58


def _loop(figure: Figure, example: Example) -> None:
    """Draw the training loop, with the pairs of the first batch."""
    first, top, middle = example.choices[0], figure.y + 12, WIDTH / 2
    width, height = (RIGHT - MARGIN) / 2 - 62, 92
    left, right = MARGIN + width, RIGHT - width
    figure.line([(middle, figure.y - 2), (middle, top), (left + 4, top)], "strong", arrow=True)
    top -= 10
    for x, kind, lines in (
        (MARGIN, "orange", ("PairTable", "counts", "and merges")),
        (right, "blue", ("policy", "chooses", "a batch")),
    ):
        figure.box(x, top, width, kind=kind, height=height)
        for n, text in enumerate(lines):
            figure.text(x + width / 2, top + 30 + 22 * n, text, "sans" if n else "", "middle")
    for y, ends, text in (
        (top + 48, (left + 4, right - 4), f"{len(first.candidates)} pairs"),
        (top + 82, (right - 4, left + 4), f"{len(first.taken)} of them"),
    ):
        figure.line([(x, y) for x in ends], "strong", arrow=True)
        figure.text(middle, y - 7, text, "sans muted", "middle")
    x, y = MARGIN + width / 2, top + height
    figure.line([(x, y), (x, y + 18), (middle, y + 18), (middle, y + 42)], "strong", arrow=True)
    merges = sum(len(choice.taken) for choice in example.choices)
    figure.text(middle + 14, y + 34, f"{merges} merges, in {len(example.choices)} batches", "sans muted")
    figure.y = y + 44

"""Encoding: merges within a chunk, and phrases across chunks."""

from __future__ import annotations

from batchbpe import reference
from batchbpe.boundaries import boundaries_of

from .drawing import BOX, MARGIN, RIGHT, ROW, Figure, visible
from .example import Example

CHUNK = " heather"
SCALE = 48
"""The width of a character."""


def encoding(example: Example) -> Figure:
    """Draw the merges that encode one chunk, and chunks that are looked up whole."""
    steps = list(example.steps(CHUNK))
    figure = Figure(
        "Encoding one chunk",
        f"The bytes of {CHUNK.strip()!r} are merged {len(steps) - 1} times, always the pair whose token has the lowest "
        "id. A chunk that is a token by itself takes one look-up.",
    )
    figure.heading("Lowest id first")
    figure.note("Under each seam: the token that its pair would become.")
    figure.y += 4
    made = None
    for ids, found in steps:
        best = min((token for token in found if token), default=None)
        at = found.index(best)
        x: float = MARGIN
        for index, token in enumerate(ids):
            width = SCALE * len(example.vocab[token])
            figure.box(x, figure.y, width, visible(example.vocab[token]), "blue" if token == made else "plain")
            x += width
            if best is None:
                figure.text(x - width / 2, figure.y + 40, str(token), "blue", "middle")
            elif index < len(found):
                label, kind = (str(found[index]), "") if found[index] else ("–", "muted")
                figure.text(x, figure.y + 40, label, "blue bold" if index == at else kind, "middle")
                if index == at:
                    figure.line([(x - 14, figure.y + 46), (x + 14, figure.y + 46)], "blue")
        made = best
        figure.y += 58
    figure.text(RIGHT, figure.y - 18, "ids", "sans muted", "end")
    figure.y += 4
    figure.heading("One look-up: the whole chunk is a token")
    stop_words = [chunk.decode() for chunk in example.model.stop_words]
    for whole in (" heat", " weather", *stop_words):
        (token,) = example.plain.encode(whole)
        end = figure.token(MARGIN, figure.y, whole)
        figure.arrow(end + 10, figure.y + 11)
        figure.text(end + 42, figure.y + 16, str(token), "blue")
        figure.text(end + 80, figure.y + 16, "stop word" if whole in stop_words else "", "sans muted")
        figure.y += ROW + 4
    return figure


def phrases(example: Example) -> Figure:
    """Draw the chunks that are one token each, the phrases, and the longest match."""
    tokenizer = example.tokenizer
    chunks = example.chunks[-19:]
    figure = Figure(
        "Phrases",
        "Chunks that are a single token each form runs. Frequent sequences of chunks in these runs become phrases. "
        "Encoding takes the longest phrase that starts at a chunk.",
    )
    figure.heading("Chunks that are one token each form runs")
    parts = [[example.vocab[token] for token in example.plain.encode(chunk)] for chunk in chunks]
    figure.tokens((texts, "blue" if len(texts) == 1 and texts[0].strip().isalpha() else "plain") for texts in parts)
    figure.y += 12
    figure.heading("Phrases, merged in these runs")
    inside = boundaries_of(example.split.pattern).is_inside
    for its_chunks, phrase in tokenizer.phrases.items():
        x = MARGIN + 44.0
        figure.text(MARGIN, figure.y + 16, str(phrase), "blue")
        texts = [tokenizer.decode([token]) for token in its_chunks]
        for n, text in enumerate(texts):
            if n:
                assert not inside(texts[n - 1] + text)
                figure.line([(x + 5, figure.y - 1), (x + 5, figure.y + BOX + 1)], "orange")
                x += 10
            x = figure.token(x, figure.y, text)
        figure.y += ROW
    figure.line([(MARGIN + 49, figure.y + 2), (MARGIN + 49, figure.y + 18)], "orange")
    figure.text(MARGIN + 60, figure.y + 15, "hard boundary: no chunk can contain both sides", "sans orange")
    figure.y += 38
    text = "".join(chunks)
    assert reference.split(text, example.split) == chunks
    ids = tokenizer.encode(text)
    names = {*tokenizer.phrases.values()}
    figure.heading(f"Longest match: {len(example.plain.encode(text))} tokens become {len(ids)}")
    figure.tokens(([tokenizer.decode([token])], "blue" if token in names else "plain") for token in ids)
    return figure

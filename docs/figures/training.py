"""Training: counts, batches and the pair table."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path

from .drawing import CELL, MARGIN, RIGHT, ROW, Figure, visible
from .example import CUTOFF, Example, Pair


def counting(example: Example) -> Figure:
    """Draw how the text becomes chunks, and chunks become counts."""
    stop_words = {chunk.decode(): token for chunk, token in example.model.stop_words.items()}
    figure = Figure(
        "From text to chunk counts",
        f"The text is split into {len(example.chunks)} chunks, {len(example.counts)} of them different. The most "
        f"frequent becomes a stop word, and chunks that occur fewer than {CUTOFF} times are left out.",
    )
    figure.heading(f"The text in {len(example.chunks)} chunks (a dot is a space)")
    figure.tokens(([chunk], "gray" if n % 2 else "plain") for n, chunk in enumerate(example.chunks))
    figure.y += 12
    figure.heading(f"{len(example.counts)} different chunks")
    left, most = MARGIN + 13 * CELL, max(example.counts.values())
    for chunk, count in example.counts.items():
        kind, fate = "", "kept"
        if chunk in stop_words:
            kind, fate = "blue", f"stop word: id {stop_words[chunk]}"
        elif count < CUTOFF:
            kind, fate = "orange", "below the cutoff"
        figure.text(left - 4 * CELL, figure.y + 12, visible(chunk), anchor="end")
        figure.text(left - CELL, figure.y + 12, str(count), anchor="end")
        figure.bar(left, figure.y + 1, round(130 * count / most), 13, kind)
        figure.text(left + 146, figure.y + 12, fate, f"sans {kind or 'muted'}")
        figure.y += 20
    return figure


def batch(example: Example) -> Figure:
    """Draw the first batch: the ranked pairs, and why each is taken or skipped."""
    choice = example.choices[0]
    pairs, n_pairs = choice.candidates, len(choice.candidates)
    firsts, lasts = ([pair[side] for pair in pairs] for side in (0, 1))
    figure = Figure(
        "A safe batch",
        f"The {n_pairs} most frequent pairs. {len(choice.taken)} are taken, because no better pair ends with their "
        "first token or starts with their last token. The others are skipped.",
    )
    figure.heading(f"The first batch: {len(choice.taken)} of {n_pairs} pairs")
    pair_at, count_at, last_at, first_at, why_at = (MARGIN + CELL * n for n in (5, 12.5, 19, 26.5, 29.5))
    for right, lines in (
        (pair_at - CELL, ["rank"]),
        (count_at, ["count"]),
        (last_at, ["first", "as last"]),
        (first_at, ["last", "as first"]),
    ):
        for n, line in enumerate(lines):
            figure.text(right, figure.y + 12 + 17 * n, line, "sans muted", "end")
    figure.y += 42
    ids = itertools.count(choice.first_id)
    for rank, (pair, count) in enumerate(zip(pairs, choice.counts, strict=True)):
        as_last = lasts.index(pair[0]) if pair[0] in lasts[:rank] else None
        as_first = firsts.index(pair[1]) if pair[1] in firsts[:rank] else None
        is_taken = as_last is None and as_first is None
        assert is_taken == (pair in choice.taken)
        y = figure.y + 16
        figure.text(pair_at - CELL, y, str(rank), "muted", "end")
        _pair(figure, pair_at, example, pair, "blue" if is_taken else "plain")
        figure.text(count_at, y, str(count), anchor="end")
        for right, found in ((last_at, as_last), (first_at, as_first)):
            text, kind = ("–", "muted") if found is None else (str(found), "orange")
            figure.text(right - CELL, y, text, kind, "end")
        if is_taken:
            figure.text(why_at, y, f"taken: id {next(ids)}", "sans blue")
        else:
            token, at, verb = (pair[1], as_first, "starts") if as_last is None else (pair[0], as_last, "ends")
            better = "".join(visible(example.vocab[each]) for each in pairs[at or 0])
            figure.text(why_at, y, f"skipped: {visible(example.vocab[token])} {verb} “{better}”", "sans orange")
        figure.y += ROW
    figure.line([(MARGIN, figure.y + 4), (RIGHT, figure.y + 4)])
    figure.y += 10
    for rank, pair in enumerate(choice.beyond, start=n_pairs):
        figure.text(pair_at - CELL, figure.y + 16, str(rank), "muted", "end")
        _pair(figure, pair_at, example, pair)
        figure.text(why_at, figure.y + 16, "not searched yet", "sans muted")
        figure.y += ROW
    return figure


def _pair(figure: Figure, x: float, example: Example, pair: Pair, kind: str = "plain") -> None:
    """Draw the two tokens of a pair side by side."""
    for token in pair:
        x = figure.token(x, figure.y, example.vocab[token], kind)


def batches(path: Path) -> Figure:
    """Draw the sizes of recorded batches."""
    sizes = [int(line) for line in path.read_text(encoding="utf-8").split()[1:]]
    figure = Figure(
        "The sizes of the batches of a training run",
        f"{sum(sizes):,} merges in {len(sizes)} batches. The largest has {max(sizes)} pairs. The last ones are small.",
    )
    figure.heading(f"{sum(sizes):,} merges in {len(sizes)} batches")
    figure.note("pairs in each batch")
    left, top, height = MARGIN + 34, figure.y + 6, 180
    bottom, step, scale = top + height, (RIGHT - left) / len(sizes), height / 450
    for size in range(0, 450, 100):
        y = round(bottom - size * scale, 1)
        figure.line([(left, y), (RIGHT, y)])
        figure.text(left - 6, y + 5, str(size), "muted", "end")
    points: list[tuple[float, float]] = [(left, bottom)]
    for n, size in enumerate(sizes):
        y = round(bottom - size * scale, 1)
        points += [(round(left + n * step, 1), y), (round(left + (n + 1) * step, 1), y)]
    figure.line(points, "blue")
    for n in (1, 50, 100, 150, 200, len(sizes)):
        anchor = "end" if n == len(sizes) else "middle"
        figure.text(round(left + (n - 0.5) * step, 1), bottom + 18, str(n), "muted", anchor)
    figure.y = bottom + 24
    figure.note("number of the batch", left)
    return figure


def table(example: Example) -> Figure:
    """Draw the cells of some chunks before and after one merge, the counts that change, and a list of places."""
    pair, token = example.choices[0].taken[0], example.choices[0].first_id
    name = " ".join(visible(example.vocab[each]) for each in pair)
    figure = Figure(
        "One merge in the pair table",
        f"The pair {name} becomes token {token} in the cells of each chunk. Only the counts of the pairs with its left "
        "and right neighbors change.",
    )
    shown = [item for item in example.trained() if item[0] in (" weather", " other", " heat")]
    figure.heading("Cells before")
    for chunk, count in shown:
        ids = [*chunk.encode()]
        starts = [n for n in range(len(ids)) if tuple(ids[n : n + 2]) == pair]
        marked = {n + k for n in starts for k in (0, 1)}
        _cells(figure, chunk, count, [(str(each), "orange" if n in marked else "plain") for n, each in enumerate(ids)])
    figure.y += 6
    figure.heading(f"After merging {name} into {token}")
    for chunk, count in shown:
        ids = _merged([*chunk.encode()], pair, token)
        _cells(figure, chunk, count, [(str(each), "blue" if each == token else "plain") for each in ids])
    figure.y += 6
    _changes(figure, example, pair)
    figure.y += 12
    _places(figure, example, pair, token)
    figure.y += 12
    figure.heading("A chunk at the end of training")
    chunk, count = shown[0]
    (last,) = example.plain.encode(chunk)
    end = (str(last), "blue")
    _cells(figure, chunk, count, [end, *[("", "gray")] * (len(chunk) - 2), end])
    return figure


def _merged(cells: list[int], pair: Pair, token: int) -> list[int]:
    """Return cells after merging a pair of tokens of one cell each: the new token has its id in both."""
    for n in range(len(cells) - 1):
        if (cells[n], cells[n + 1]) == pair:
            cells[n : n + 2] = [token, token]
    return cells


def _cells(figure: Figure, chunk: str, count: int, row: Iterable[tuple[str, str]]) -> None:
    """Draw the cells of a chunk, with its characters above them and its count at the right."""
    for n, (character, (text, kind)) in enumerate(zip(chunk, row, strict=True)):
        x = MARGIN + 44 * n
        figure.text(x + 22, figure.y + 12, visible(character), "muted", "middle")
        figure.box(x, figure.y + 18, 44, text, kind)
    figure.text(RIGHT, figure.y + 34, f"× {count}", "muted", "end")
    figure.y += ROW + 20


def _changes(figure: Figure, example: Example, pair: Pair) -> None:
    """Draw how the counts of a real table change when a pair is merged."""
    pairs = example.table()
    before = example.pairs(pairs)
    pairs.merge([pair])
    after = example.pairs(pairs)
    lost = {each: (count, after.get(each, 0)) for each, count in before.items() if after.get(each, 0) != count}
    assert all(left < count for count, left in lost.values())
    figure.heading("Counts that change")
    top = figure.y
    for each, (count, left) in lost.items():
        _pair(figure, MARGIN, example, each, "orange")
        figure.text(MARGIN + 9 * CELL, figure.y + 16, str(count), anchor="end")
        figure.arrow(MARGIN + 9.7 * CELL, figure.y + 11)
        figure.text(MARGIN + 13.5 * CELL, figure.y + 16, str(left), anchor="end")
        figure.text(MARGIN + 15 * CELL, figure.y + 16, "merged" if each == pair else "falls", "sans muted")
        figure.y += ROW
    bottom, figure.y = figure.y, top
    for each, count in after.items():
        if each not in before:
            _pair(figure, MARGIN + 29 * CELL, example, each, "blue")
            figure.text(MARGIN + 38.5 * CELL, figure.y + 16, str(count), anchor="end")
            figure.text(MARGIN + 40 * CELL, figure.y + 16, "new", "sans muted")
            figure.y += ROW
    figure.y = max(bottom, figure.y)
    figure.note(f"{len(before) - len(lost)} other pairs are not touched.")


def _places(figure: Figure, example: Example, pair: Pair, token: int) -> None:
    """Draw the list of places of another pair, of which the merge has taken some."""
    other = pair[1], ord("e")
    cells = [-1]
    for chunk, _ in example.trained():
        cells += [*chunk.encode(), -1] if len(chunk) > 1 else []  # a chunk of one token has no pairs, and no cells
    places = [n for n in range(len(cells) - 1) if (cells[n], cells[n + 1]) == other]
    cells = _merged(cells, pair, token)
    figure.heading(f"The places of {chr(other[0])} {chr(other[1])} and their cells, afterwards")
    x: float = MARGIN
    for place in places:
        is_there = (cells[place], cells[place + 1]) == other
        figure.box(x, figure.y, 36, str(place), "plain" if is_there else "gray")
        figure.text(x + 44, figure.y + 16, f"{cells[place]} {cells[place + 1]}", "" if is_there else "muted")
        kind, text = ("blue", "still there") if is_there else ("orange", "skipped")
        figure.text(x + 44, figure.y + 36, text, f"sans {kind}")
        x += 142
    figure.y += 42

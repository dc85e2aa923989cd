"""Draw a sentence in colored tokens, encoded with vocabularies of several sizes: `python examples/draw_tokens.py`.

The picture is docs/tokens.svg. The tokenizer is trained on the source of Python's standard library.
"""

from __future__ import annotations

import html
import sys
import sysconfig
from pathlib import Path

from batchbpe import ChunkCounts, Tokenizer
from batchbpe.analysis.display import COLORS

SENTENCE = "The tokenizer is trained in safe batches: Rust counts and merges, Python chooses."
SIZES = (300, 1000, 8000)
WIDTH, HEIGHT, LEFT = 8.4, 30, 120
"""Width of a character, height of a row, and width of the column of labels, in pixels."""


def main() -> None:
    """Train, encode and draw."""
    folder = Path(sysconfig.get_path("stdlib"))
    texts = (path.read_text(encoding="utf-8", errors="replace") for path in sorted(folder.glob("*.py")))
    counts = ChunkCounts.count(texts=texts)
    rows = []
    for number, size in enumerate(SIZES):
        tokenizer = Tokenizer.train(counts, size)
        rows.append(_row(f"size {size:,}", tokenizer, number * HEIGHT + 8))
    width, height = LEFT + WIDTH * len(SENTENCE) + 100, HEIGHT * len(SIZES) + 10
    style = "font-family='ui-monospace, Menlo, Consolas, monospace' font-size='14'"
    sys.stdout.write(
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width:.0f} {height}' width='{width:.0f}' {style}>"
        f"{''.join(rows)}</svg>\n"
    )


def _row(label: str, tokenizer: Tokenizer, top: int) -> str:
    parts = [f"<text x='8' y='{top + 16}' fill='#777'>{label}</text>"]
    column = 0
    ids = tokenizer.encode(SENTENCE)
    for number, token in enumerate(ids):
        text = tokenizer.decode([token])
        left, width = LEFT + column * WIDTH, len(text) * WIDTH
        color = COLORS[number % len(COLORS)]
        parts.append(f"<rect x='{left:.1f}' y='{top}' width='{width:.1f}' height='22' rx='2' fill='{color}'/>")
        word = text.strip()  # renderers treat spaces at the ends differently
        if word:
            start, length = left + text.index(word) * WIDTH, len(word) * WIDTH
            position = f"x='{start:.1f}' y='{top + 16}' textLength='{length:.1f}' lengthAdjust='spacingAndGlyphs'"
            parts.append(f"<text {position} fill='#111'>{html.escape(word)}</text>")
        column += len(text)
    parts.append(f"<text x='{LEFT + column * WIDTH + 10:.1f}' y='{top + 16}' fill='#777'>{len(ids)} tokens</text>")
    return "".join(parts)


if __name__ == "__main__":
    main()

"""Draw docs/figures/*.svg, the pictures of docs/how-it-works.md: `make docs`.

Their content is computed: batchbpe runs on a short text (figures/example.py). The chart shows recorded batches.
"""

from pathlib import Path

from figures.encoding import encoding, phrases
from figures.example import Example
from figures.flow import flow
from figures.training import batch, batches, counting, table

FOLDER = Path(__file__).parent / "figures"


def files() -> dict[str, str]:
    """Return the contents of the files by name."""
    example = Example()
    drawn = {draw.__name__: draw(example) for draw in (flow, counting, batch, table, encoding, phrases)}
    drawn["batches"] = batches(FOLDER / "batches.csv")
    return {f"{name}.svg": figure.svg() for name, figure in drawn.items()}


if __name__ == "__main__":
    for name, content in files().items():
        (FOLDER / name).write_text(content, encoding="utf-8", newline="\n")

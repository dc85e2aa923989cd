"""Any grid of options: a vocabulary for each combination, a leaderboard at the end; it goes on where it was stopped."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa

from .. import corpus, policies
from ..chunks import pattern_of
from ..evaluation import evaluate_text
from ..record import identity
from .batching import POLICIES
from .data import HELD_OUT, Data
from .plots import axes, line, styled, with_thousands
from .result import Result
from .runs import train_all

GRID: dict[str, Callable[[str], Any]] = {
    "pattern": str,
    "vocab_size": int,
    "policy": str,
    "stop_list_size": int,
    "freq_cutoff": int,
    "cap_divisor": int,
    "max_batch_size": int,
}
"""What can be varied, and how it is read from a command."""
RUNS = "runs.jsonl"


def sweep(
    data: corpus.Data,
    heldout: corpus.Data | None = None,
    *,
    grid: Mapping[str, Sequence[Any]],
    folder: Path | None = None,
    share: float = HELD_OUT,
    seed: int = 0,
    text_column: str = "text",
    progress: bool = False,
) -> Result:
    """Train and evaluate every combination. With a folder, each is kept there, and not done again.

    >>> grid = {"vocab_size": [258, 260], "stop_list_size": [0, 1]}
    >>> sweep("to be or not to be " * 50, grid=grid).table["vocab_size"].to_pylist()
    [260, 260, 258, 258]
    """
    grid = _checked(grid)
    kept = _Kept(folder, _described(data, heldout, share, seed, text_column))
    combinations = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
    for pattern in grid["pattern"]:
        todo = [each for each in combinations if each["pattern"] == pattern and not kept.has(each)]
        if not todo:
            continue
        given = Data.of(data, heldout, pattern=pattern, share=share, seed=seed, text_column=text_column)
        text = given.text
        settings = [
            {name: getattr(policies, value) if name == "policy" else value for name, value in each.items()}
            for each in ({name: value for name, value in each.items() if name != "pattern"} for each in todo)
        ]
        for each, run in zip(todo, train_all(given.counts, settings, progress=progress), strict=True):
            found = evaluate_text("", run.tokenizer, text)
            kept.add(
                {
                    **each,
                    "tokens": found.tokens,
                    "bytes_per_token": found.bytes_per_token,
                    "renyi_efficiency": found.renyi_efficiency,
                    "vocabulary_used": found.vocabulary_used,
                    "seconds": run.seconds,
                }
            )
    rows = sorted((kept.row(each) for each in combinations), key=lambda row: (row["tokens"], str(row)))
    best = {name: rows[0][name] for name in grid}
    return Result(
        "sweep",
        {"grid": dict(grid), "share": share, "seed": seed},
        {"leaderboard": pa.Table.from_pylist(rows)},
        {"sweep": _figure(rows, grid)},
        {"the shortest encoding": ", ".join(f"{name}={value}" for name, value in best.items())},
    )


def _checked(grid: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
    for name, values in grid.items():
        if name not in GRID:
            raise ValueError(f"{name!r} is nothing to vary: choose among {', '.join(GRID)}")
        if not values or isinstance(values, str):
            raise ValueError(f"{name}={values!r}: give a list of values")
    for policy in grid.get("policy", ()):
        if policy not in POLICIES:
            raise ValueError(f"policy={policy!r}: give one of {', '.join(POLICIES)}")
    for pattern in grid.get("pattern", ()):
        pattern_of(pattern)
    if "vocab_size" not in grid:
        raise ValueError("vocab_size is not in the grid: give at least one")
    return {"pattern": ["gpt4"], **grid}


def _described(data: Any, heldout: Any, *options: Any) -> Any:
    """What the data is, to be known again."""
    sources = [source for each in (data, heldout) if each is not None for source in corpus.sources(each)]
    return json.loads(json.dumps([[identity(source) for source in sources], options]))


class _Kept:
    """The rows found so far, in memory or also in a file, a line each."""

    def __init__(self, folder: Path | None, described: Any) -> None:
        self.rows: list[dict[str, Any]] = []
        self.path = folder and folder / RUNS
        if self.path and self.path.exists():
            lines = self.path.read_text(encoding="utf-8").splitlines()
            # The last line may have been cut by a crash.
            if not lines or json.loads(lines[0]) != described:
                raise ValueError(f"{self.path} was begun with other data or options: give another folder")
            whole = [line for line in lines[1:] if line.endswith("}")]
            self.rows = [json.loads(line) for line in whole]
            self._write([lines[0], *whole], "w")
        elif self.path:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._write([json.dumps(described)], "w")

    def _write(self, lines: list[str], mode: str) -> None:
        assert self.path
        with self.path.open(mode, encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)

    def row(self, each: dict[str, Any]) -> dict[str, Any]:
        """Give the row of a combination."""
        return next(row for row in self.rows if each.items() <= row.items())

    def has(self, each: dict[str, Any]) -> bool:
        """Say whether a combination is done."""
        return any(each.items() <= row.items() for row in self.rows)

    def add(self, row: dict[str, Any]) -> None:
        """Keep a row."""
        self.rows.append(row)
        if self.path:
            self._write([json.dumps(row)], "a")


@styled
def _figure(rows: list[dict[str, Any]], grid: Mapping[str, Sequence[Any]]) -> Any:
    figure, (panel,) = axes(height=4.6)
    others = [name for name, values in grid.items() if name != "vocab_size" and len(values) > 1]
    lines: dict[str, list[tuple[int, float]]] = {}
    for row in rows:
        label = ", ".join(f"{name} {row[name]}" for name in others) or "all"
        lines.setdefault(label, []).append((row["vocab_size"], row["bytes_per_token"]))
    for label, points in list(lines.items())[:8]:
        line(panel, *zip(*sorted(points), strict=True), label=label)
    panel.set(xlabel="vocabulary", ylabel="bytes per token")
    panel.set_title("the best eight" if len(lines) > 8 else "how long a token is on held-out text")
    with_thousands(panel.xaxis)
    if others:
        figure.legend(loc="outside lower center")
    return figure

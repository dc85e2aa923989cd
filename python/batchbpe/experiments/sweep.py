"""Any grid of options: a vocabulary for each combination, a leaderboard at the end; it goes on where it was stopped."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa

from .. import corpus, policies
from ..chunks import pattern_of
from ..evaluation import evaluate_text
from ..files import replacing
from ..record import identity
from .batching import POLICIES
from .data import HELD_OUT, Data
from .plots import axes, line, styled, with_thousands
from .result import Result
from .runs import check_size, runs_bar, train_all

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
DEFAULTS: dict[str, Any] = {
    "pattern": "gpt4",
    "policy": "continue_search",
    "stop_list_size": 0,
    "freq_cutoff": 1,
    "cap_divisor": 2,
    "max_batch_size": 0,
}
"""What a combination has where the grid does not say."""
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
    todo = [each for each in combinations if not kept.has(each)]
    done = len(combinations) - len(todo)
    with runs_bar(len(combinations), show=progress) as moved:
        for pattern in grid["pattern"]:
            some = [each for each in todo if each["pattern"] == pattern]
            if some:
                moved(done)
                given = Data.of(data, heldout, pattern=pattern, share=share, seed=seed, text_column=text_column)
                for row in _found(given, some, partial(lambda before, share: moved(before + share), done)):
                    kept.add(row)
                done += len(some)
    rows = [
        {name: value for name, value in kept.row(each).items() if name in grid or name not in GRID}
        for each in combinations
    ]
    rows.sort(key=lambda row: (row["tokens"], str(row)))
    best = {name: rows[0][name] for name in grid}
    return Result(
        "sweep",
        {"grid": dict(grid), "share": share, "seed": seed},
        {"leaderboard": pa.Table.from_pylist(rows)},
        {"sweep": _figure(rows, grid)},
        {"the shortest encoding": ", ".join(f"{name}={value}" for name, value in best.items())},
    )


def _found(
    data: Data, combinations: Sequence[Mapping[str, Any]], moved: Callable[[float], object]
) -> Iterator[dict[str, Any]]:
    """Train and evaluate combinations with one pattern, each to a row."""
    settings: list[dict[str, Any]] = [
        {name: getattr(policies, value) if name == "policy" else value for name, value in each.items()}
        for each in ({name: value for name, value in each.items() if name != "pattern"} for each in combinations)
    ]
    text = data.text
    for each, run in zip(combinations, train_all(data.counts, settings, moved=moved), strict=True):
        if each.get("freq_cutoff", 1) <= 1:
            check_size(run)
        found = evaluate_text("", run.tokenizer, text)
        yield {
            **DEFAULTS,
            **each,
            "tokens": found.tokens,
            "bytes_per_token": found.bytes_per_token,
            "renyi_efficiency": found.renyi_efficiency,
            "vocabulary_used": found.vocabulary_used,
            "vocabulary": len(run.tokenizer.vocab),
            "seconds": run.seconds,
        }


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
        if not self.path:
            return
        lines = [json.dumps(described)]
        if self.path.exists():
            # The last line may have been cut by a crash.
            before, *rows = [line for line in self.path.read_text(encoding="utf-8").splitlines() if line[-1:] in "]}"]
            if before != lines[0]:
                raise ValueError(f"{self.path} was begun with other data or options: give another folder")
            self.rows = [json.loads(line) for line in rows]
            lines += rows
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(self.path) as path:
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def row(self, each: Mapping[str, Any]) -> dict[str, Any]:
        """Give the row of a combination."""
        wanted = {**DEFAULTS, **each}.items()
        return next(row for row in self.rows if wanted <= row.items())

    def has(self, each: Mapping[str, Any]) -> bool:
        """Say whether a combination is done."""
        wanted = {**DEFAULTS, **each}.items()
        return any(wanted <= row.items() for row in self.rows)

    def add(self, row: dict[str, Any]) -> None:
        """Keep a row."""
        self.rows.append(row)
        if self.path:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")


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

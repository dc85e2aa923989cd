"""Any grid of options: a vocabulary for each combination, a leaderboard at the end; it goes on where it was stopped."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa

from .. import policies
from ..analysis.evaluation import evaluate_text
from ..data import corpus
from ..errors import short
from ..jobs.resume import identity
from ..patterns import pattern_of
from ..storage.atomic import writing
from ..storage.locks import locked
from ..storage.sealed import load_sealed, save_sealed
from .batching import POLICIES
from .data import HELD_OUT, Data, named
from .plots import axes, styled
from .report import RUNS, VERSION
from .result import Result
from .trainings import check_size, runs_bar, train_all

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
BARS = 24
"""So many combinations are drawn."""
LONG = 24
"""So many characters of a pattern are."""


@styled
def sweep(
    data: corpus.Data,
    heldout: corpus.Data | None = None,
    *,
    grid: Mapping[str, Sequence[Any]],
    folder: Path | None = None,
    resume: bool = True,
    share: float = HELD_OUT,
    seed: int = 0,
    text_column: str = "text",
    errors: str = "strict",
    progress: bool = False,
) -> Result:
    """Train and evaluate every combination. With a folder, each is kept there, and not done again.

    Without `resume`, those that the folder has are removed. No two sweeps may use a folder at the same time.

    >>> grid = {"vocab_size": [258, 260], "stop_list_size": [0, 1]}
    >>> sweep("to be or not to be " * 50, grid=grid).table["vocab_size"].to_pylist()
    [260, 260, 258, 258]
    """
    grid, folder = _checked(grid), None if folder is None else Path(folder)
    with ExitStack() as stack:
        if folder is not None:
            with writing(folder):
                folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(locked(folder))
        kept = _Kept(folder, _described(data, heldout, share, seed, text_column, errors), resume)
        combinations = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
        todo = [each for each in combinations if not kept.has(each)]
        done = len(combinations) - len(todo)
        with runs_bar(len(combinations), show=progress) as moved:
            for pattern in grid["pattern"]:
                some = [each for each in todo if each["pattern"] == pattern]
                if some:
                    moved(done)
                    how: Any = {"share": share, "seed": seed, "text_column": text_column, "errors": errors}
                    given = Data.of(data, heldout, pattern=pattern, **how)
                    for row in _found(given, some, partial(lambda before, more: moved(before + more), done)):
                        kept.add(row)
                    done += len(some)
    rows = [
        {name: value for name, value in kept.row(each).items() if name in grid or name not in GRID}
        for each in combinations
    ]
    lossy = sorted({str(row["pattern"]) for row in rows if row["dropped"]})
    needless = {"dropped": not lossy, "vocabulary": all(row["vocabulary"] == row["vocab_size"] for row in rows)}
    rows = [{name: value for name, value in row.items() if not needless.get(name)} for row in rows]
    # What loses a part of the text is no shorter encoding of it.
    rows.sort(key=lambda row: (bool(row.get("dropped")), -row["bytes_per_token"], str(row)))
    alike = sum(row["bytes_per_token"] == rows[0]["bytes_per_token"] for row in rows)
    best = ", ".join(f"{name}={rows[0][name]}" for name in grid)
    findings = {"the shortest encoding": best if alike == 1 else f"{alike} combinations alike, as {best}"}
    if lossy:
        findings["patterns that lose a part of the text, and come last"] = ", ".join(lossy)
    held = named(heldout) if heldout is not None else f"{share} of the documents, or of the chunks"
    return Result(
        "sweep",
        {"data": named(data), "held-out text": held, "seed": seed, "grid": dict(grid)},
        {"leaderboard": pa.Table.from_pylist(rows)},
        {"sweep": _figure(rows, grid)},
        findings,
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
            "bytes_per_token": found.bytes_per_token or 0.0,
            "renyi_efficiency": found.renyi_efficiency,
            "vocabulary_used": found.vocabulary_used,
            "vocabulary": len(run.tokenizer.vocab),
            "dropped": found.dropped / max(1, found.bytes),
            "seconds": run.seconds,
        }


def _checked(grid: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
    for name, values in grid.items():
        if name not in GRID:
            raise ValueError(f"{short(name)} is nothing to vary: choose among {', '.join(GRID)}")
        if not values or isinstance(values, str):
            raise ValueError(f"{name}={short(values)}: give a list of values")
        large = [value for value in values if isinstance(value, int) and value >= 1 << 63]
        if large:
            raise ValueError(f"{name}={large[0]} is too large: give less than 2**63")
    for policy in grid.get("policy", ()):
        if policy not in POLICIES:
            raise ValueError(f"policy={short(policy)}: give one of {', '.join(POLICIES)}")
    for pattern in grid.get("pattern", ()):
        pattern_of(pattern)
    if "vocab_size" not in grid:
        raise ValueError("vocab_size is not in the grid: give at least one")
    return {name: list(dict.fromkeys(values)) for name, values in {"pattern": ["gpt4"], **grid}.items()}


def _described(data: Any, heldout: Any, *options: Any) -> Any:
    """What the data is, to be known again."""
    sources = [source for each in (data, heldout) if each is not None for source in corpus.sources(each)]
    return json.loads(json.dumps([[identity(source) for source in sources], options]))


class _Kept:
    """The rows found so far, in memory or also in a file."""

    def __init__(self, folder: Path | None, described: Any, resume: bool) -> None:
        self.rows: list[dict[str, Any]] = []
        self.path, self.described = folder and folder / RUNS, described
        if not self.path or not self.path.exists():
            return
        if not resume:
            self.path.unlink()
            return
        before = load_sealed(self.path, VERSION, "remove it to start again")
        self.rows = before["runs"]
        if before["of"] != described:
            raise ValueError(f"{self.path} was begun with other data or options: give another folder")

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
            save_sealed({"version": VERSION, "of": self.described, "runs": self.rows}, self.path)


def _short(value: Any) -> str:
    return str(value) if len(str(value)) <= LONG else f"{str(value)[:LONG]}…"


def _figure(rows: list[dict[str, Any]], grid: Mapping[str, Sequence[Any]]) -> Any:
    """Draw the combinations that lose no text, or all if each does."""
    varied = [name for name, values in grid.items() if len(values) > 1] or ["vocab_size"]
    whole = [row for row in rows if not row.get("dropped")] or rows
    shown = whole[:BARS]
    longer = [100 * (rows[0]["bytes_per_token"] / row["bytes_per_token"] - 1) for row in shown]
    figure, (panel,) = axes(height=1.6 + 0.26 * len(shown))
    panel.bar_label(panel.barh(range(len(shown)), longer), [f"{value:.3f}" for value in longer], padding=3, fontsize=9)
    panel.set_yticks(range(len(shown)), [", ".join(_short(row[name]) for name in varied) for row in shown], fontsize=9)
    panel.invert_yaxis()
    panel.margins(x=0.14, y=0.02)
    panel.grid(visible=False, axis="y")
    panel.set(xlabel="longer than the first on held-out text, %", xlim=(0, max(1e-3, *longer) * 1.2))
    of = f"the best {len(shown)} of {len(rows)}" if len(shown) < len(rows) else f"{len(rows)}"
    names = ", ".join(varied).replace("_", " ")
    title = f"{of} {'combination' if len(rows) == 1 else 'combinations'} of {names};\nthe shortest encoding comes first"
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    return figure

"""Train and evaluate a vocabulary for every combination of a grid of options. A sweep can be resumed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..analysis.plots import axes, styled
from ..choices import Normalization
from ..data.corpus import Corpus, Data, Files
from ..data.options import ReadOptions
from ..errors import ArgumentError, DataError
from ..jobs.resume import identity
from ..options import defaults
from ..patterns import Split
from ..policies import Policy, policy_name, resolve_policy
from ..storage.atomic import writing
from ..storage.checked_json import load_sealed, save_sealed
from ..storage.locks import locked
from ..training.options import TrainingOptions
from ..util.surrogates import Errors
from .data import HELDOUT_SHARE, ExperimentData, source_names
from .report import SWEEP_FILE, VERSION
from .result import Result
from .trainings import Trained, check_size, train_all, vocabularies_bar

DEFAULTS: dict[str, Any] = {"pattern": "gpt4"} | {
    name: default for name, default in defaults(TrainingOptions).items() if not isinstance(default, bool)
}
"""Values of the options that are not in the grid."""
GRID: dict[str, type] = {"vocab_size": int} | {name: type(default) for name, default in DEFAULTS.items()}
"""Options that can be varied, and their types."""
MAX_BARS = 24
"""Maximum number of combinations in the figure."""
MAX_LABEL = 24
"""Maximum length of a value in the figure, in characters."""


@styled
def sweep(
    data: Data | None = None,
    heldout: Data | None = None,
    *,
    texts: str | Iterable[str] | None = None,
    files: Files | None = None,
    grid: Mapping[str, Sequence[Any]],
    folder: str | os.PathLike[str] | None = None,
    resume: bool = True,
    normalization: Normalization | None = None,
    heldout_share: float = HELDOUT_SHARE,
    seed: int = 0,
    text_column: str = "text",
    document: str = "file",
    errors: Errors = "strict",
    progress: bool = False,
) -> Result:
    """Train and evaluate every combination of options, and rank them by compression of held-out text.

    Parameters
    ----------
    data: anything that `ChunkCounts.count` accepts.
    heldout: text to encode; by default, a fraction of the data is held out.
    texts, files: as in `ChunkCounts.count`, instead of `data`.
    grid: lists of values by option name; `vocab_size` is required. A policy is a name or a function. Functions are
        identified by their names, even when a sweep is resumed.
    folder: folder in which the result of each combination is saved. Two sweeps cannot use it at the same time.
    resume: whether to reuse the results in the folder. If not, they are removed.
    normalization, heldout_share, seed, text_column, document, errors: as in `ExperimentData.of`.
    progress: whether to display a progress bar.

    >>> grid = {"vocab_size": [258, 260], "stop_list_size": [0, 1]}
    >>> sweep("to be or not to be " * 50, grid=grid).table["vocab_size"].to_pylist()
    [260, 260, 258, 258]

    """
    corpus = Corpus(data, texts, files, ReadOptions(text_column, document=document, errors=errors))
    other = None if heldout is None else Corpus(heldout, options=corpus.options)
    grid, policies = _normalized(grid)
    folder = None if folder is None else Path(folder)
    with ExitStack() as stack:
        if folder is not None:
            with writing(folder):
                folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(locked(folder))
        options: list[Any] = [heldout_share, seed, text_column, errors, *([normalization] if normalization else [])]
        options += [{"document": document}] if document != "file" else []
        results = _Results(folder, _description(corpus, other, *options), resume)
        combinations = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
        todo = [each for each in combinations if results.find(each) is None]
        done = len(combinations) - len(todo)
        on_progress = stack.enter_context(vocabularies_bar(len(combinations), show=progress))
        for pattern in grid["pattern"]:
            some = [each for each in todo if each["pattern"] == pattern]
            if not some:
                continue
            on_progress(done)
            counted = ExperimentData.of_corpus(corpus, other, Split.of(pattern, normalization), heldout_share, seed)
            settings = [_training_options(each, policies) for each in some]
            moved = partial(lambda before, more: on_progress(before + more), done)
            for each, trained in zip(some, train_all(counted, settings, on_progress=moved), strict=True):
                if each.get("freq_cutoff", 1) <= 1:
                    check_size(trained)
                results.add(_row(each, trained))
            done += len(some)
    saved = [found for each in combinations if (found := results.find(each))]
    rows = [{name: value for name, value in row.items() if name in grid or name not in GRID} for row in saved]
    lossy = sorted({str(row["pattern"]) for row in rows if row["dropped"]})
    redundant = {"dropped": not lossy, "vocabulary": all(row["vocabulary"] == row["vocab_size"] for row in rows)}
    rows = [{name: value for name, value in row.items() if not redundant.get(name)} for row in rows]
    # Patterns that drop text come last, because part of the text is not encoded.
    rows.sort(key=lambda row: (bool(row.get("dropped")), -row["bytes_per_token"], str(row)))
    alike = sum(row["bytes_per_token"] == rows[0]["bytes_per_token"] for row in rows)
    best = ", ".join(f"{name}={rows[0][name]}" for name in grid)
    findings = {"shortest encoding": best if alike == 1 else f"{alike} equal combinations, such as {best}"}
    if lossy:
        findings["patterns that drop text (ranked last)"] = ", ".join(lossy)
    held = source_names(other) if other else f"{heldout_share} of the documents, or of the chunks"
    return Result(
        "sweep",
        {"data": source_names(corpus), "held-out text": held, "seed": seed, "grid": dict(grid)},
        {"leaderboard": pa.Table.from_pylist(rows)},
        {"sweep": _figure(rows, grid)},
        findings,
    )


def _training_options(combination: Mapping[str, Any], policies: Mapping[str, Policy]) -> dict[str, Any]:
    options = {name: value for name, value in combination.items() if name != "pattern"}
    return options | ({"policy": policies[options["policy"]]} if "policy" in options else {})


def _row(combination: Mapping[str, Any], trained: Trained) -> dict[str, Any]:
    found = trained.evaluation
    return {
        **DEFAULTS,
        **combination,
        "tokens": found.tokens,
        "bytes_per_token": found.bytes_per_token or 0.0,
        "renyi_efficiency": found.renyi_efficiency,
        "vocabulary_used": found.vocabulary_used,
        "vocabulary": len(trained.tokenizer.vocab),
        "dropped": found.dropped / max(1, found.bytes),
        "seconds": trained.seconds,
    }


def _normalized(grid: Mapping[str, Sequence[Any]]) -> tuple[dict[str, Sequence[Any]], dict[str, Policy]]:
    """Check a grid, add the default pattern, and replace policies by their names; return the policies by name."""
    for name, values in grid.items():
        if name not in GRID:
            raise ArgumentError("grid", name, f"must only contain {', '.join(GRID)}")
        if not values or isinstance(values, str):
            raise ArgumentError("grid", {name: values}, "must contain a list of values for each option")
        large = [value for value in values if isinstance(value, int) and value >= 1 << 63]
        if large:
            raise ArgumentError("grid", {name: large[0]}, "must contain integers below 2**63")
    policies: dict[str, Policy] = {}
    for policy in grid.get("policy", ()):
        if policies.setdefault(policy_name(policy), resolve_policy(policy)) is not resolve_policy(policy):
            raise ArgumentError("grid", {"policy": policy_name(policy)}, "must contain policies with different names")
    for pattern in grid.get("pattern", ()):
        Split.of(pattern)
    if "vocab_size" not in grid:
        raise ArgumentError("grid", dict(grid), "must contain vocab_size")
    named = {"pattern": ["gpt4"], **grid, **({"policy": list(policies)} if policies else {})}
    return {name: list(dict.fromkeys(values)) for name, values in named.items()}, policies


def _description(corpus: Corpus, heldout: Corpus | None, *options: Any) -> Any:
    """Describe data and options, so that a sweep is only resumed with the same ones."""
    sources = [*corpus.sources, *(heldout.sources if heldout else [])]
    return json.loads(json.dumps([[identity(source) for source in sources], options]))


class _Results:
    """The rows of finished combinations, in memory and, with a folder, in a file."""

    def __init__(self, folder: Path | None, description: Any, resume: bool) -> None:
        self.rows: list[dict[str, Any]] = []
        self.path, self.description = folder and folder / SWEEP_FILE, description
        if not self.path or not self.path.exists():
            return
        if not resume:
            self.path.unlink()
            return
        saved = load_sealed(self.path, VERSION, "remove it to start again")
        self.rows = saved["runs"]
        if saved["of"] != description:
            remedy = "use another folder"
            raise DataError("this sweep was started with other data or options", where=str(self.path), remedy=remedy)

    def find(self, combination: Mapping[str, Any]) -> dict[str, Any] | None:
        wanted = {**DEFAULTS, **combination}.items()
        return next((row for row in self.rows if wanted <= row.items()), None)

    def add(self, row: dict[str, Any]) -> None:
        self.rows.append(row)
        if self.path:
            save_sealed({"version": VERSION, "of": self.description, "runs": self.rows}, self.path)


def _label(value: Any) -> str:
    return str(value) if len(str(value)) <= MAX_LABEL else f"{str(value)[:MAX_LABEL]}…"


def _figure(rows: list[dict[str, Any]], grid: Mapping[str, Sequence[Any]]) -> Any:
    """Draw the combinations that drop no text, or all combinations if each drops some."""
    varied = [name for name, values in grid.items() if len(values) > 1] or ["vocab_size"]
    complete = [row for row in rows if not row.get("dropped")] or rows
    drawn = complete[:MAX_BARS]
    longer = [100 * (rows[0]["bytes_per_token"] / row["bytes_per_token"] - 1) for row in drawn]
    figure, (panel,) = axes(height=1.6 + 0.26 * len(drawn))
    panel.bar_label(panel.barh(range(len(drawn)), longer), [f"{value:.3f}" for value in longer], padding=3, fontsize=9)
    panel.set_yticks(range(len(drawn)), [", ".join(_label(row[name]) for name in varied) for row in drawn], fontsize=9)
    panel.invert_yaxis()
    panel.margins(x=0.14, y=0.02)
    panel.grid(visible=False, axis="y")
    panel.set(xlabel="increase in encoded length over the best, %", xlim=(0, max(1e-3, *longer) * 1.2))
    number = f"Best {len(drawn)} of {len(rows)}" if len(drawn) < len(rows) else f"{len(rows)}"
    names = ", ".join(varied).replace("_", " ")
    combinations = "combination" if len(rows) == 1 else "combinations"
    title = f"{number} {combinations} of {names},\nby encoded length of held-out text"
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    return figure

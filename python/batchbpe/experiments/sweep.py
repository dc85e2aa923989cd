"""Train and evaluate a vocabulary for every combination of a grid of options. A sweep can be resumed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from ..analysis.plots import axes, styled
from ..arguments import check_integer
from ..choices import Normalization
from ..counts import ChunkCounts
from ..data.corpus import Corpus, Data, Files
from ..data.options import ReadOptions
from ..errors import ArgumentError
from ..jobs.resume import identity
from ..policies import POLICIES
from ..storage.atomic import writing
from ..storage.locks import locked
from ..util.surrogates import Errors
from .data import HELDOUT_SHARE, ExperimentData, source_names
from .grid import DEFAULTS, Combination, Grid
from .result import Result
from .runs import Runs
from .trainings import Trained, check_size, train_all, vocabularies_bar

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
    grid: Mapping[str, Sequence[Any] | Mapping[str, Any]],
    folder: str | os.PathLike[str] | None = None,
    resume: bool = True,
    keep: int | Literal["all"] = 0,
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
    data: anything that `train` accepts; omitted if the grid contains `data`.
    heldout: text to encode; by default, a fraction of the data is held out.
    texts, files: as in `train`, instead of `data`.
    grid: values by option of `train`, as a list or as a dict of names and values; `vocab_size` is required. In a list,
        functions and other callable objects are identified by their names, even when a sweep is resumed. `data` (and
        `groups`) may be varied too, by name, if `heldout` is given. Phrases need documents instead of chunk counts.
    folder: folder in which the result of each combination is saved. Two sweeps cannot use it at the same time.
    resume: whether to reuse the results in the folder. If not, they are removed.
    keep: number of models to keep, best first, or "all". They are in `Result.models`, and in the folder as files.
    normalization, heldout_share, seed, text_column, document, errors: as in `ExperimentData.of`.
    progress: whether to display a progress bar.

    >>> grid = {"vocab_size": [258, 260], "stop_list_size": [0, 1]}
    >>> sweep("to be or not to be " * 50, grid=grid).table["vocab_size"].to_pylist()
    [260, 260, 258, 258]
    >>> grid = {"vocab_size": [260], "policy": {"standard": "serial", "first": lambda candidates: candidates[:1]}}
    >>> list(sweep("to be or not to be " * 50, grid=grid, keep=1).models)
    ['vocab_size=260, policy=first']

    """
    if keep != "all":
        check_integer("keep", keep, least=0)
    options = ReadOptions(text_column, document=document, errors=errors)
    if isinstance(data, ChunkCounts):
        grid = {"pattern": [data.split], **grid}
    named = Grid.of(grid, normalization)
    corpus = _corpus(named, data, texts, files, heldout, options)
    other = None if heldout is None else Corpus(heldout, options=options)
    combinations = list(named.combinations())
    for each in combinations:
        named.found_tokens(each)  # invalid options raise an error before anything is counted

    def counted(each: Combination) -> ExperimentData:
        own = named.data(each)
        trained_on = corpus if own is None else Corpus(own, options=options)
        assert trained_on is not None  # `_corpus` has checked it
        tokens = named.found_tokens(each)
        return ExperimentData.of_corpus(trained_on, other, named.split(each), heldout_share, seed, tokens)

    folder = None if folder is None else Path(folder)
    with ExitStack() as stack:
        if folder is not None:
            with writing(folder):
                folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(locked(folder))
        reading: list[Any] = [heldout_share, seed, text_column, errors, *([normalization] if normalization else [])]
        reading += [{"document": document}] if document != "file" else []
        runs = Runs(folder, _description(corpus, other, *reading), combinations, resume, keep)
        on_progress = stack.enter_context(vocabularies_bar(len(combinations), show=progress))
        for each, trained in train_grid(named, runs.todo(), counted, on_progress):
            check_trained(trained)
            runs.add(_row(each, trained), trained.tokenizer.model)
        for each, trained in train_grid(named, runs.without_model(), counted, lambda _: None):
            runs.add_model(each, trained.tokenizer.model)
    known = {"pattern", *named.values}
    rows = [
        {name: value for name, value in row.items() if name in known or name not in DEFAULTS} for row in runs.best()
    ]
    lossy = sorted({str(row["pattern"]) for row in rows if row["dropped"]})
    is_complete = all(row["vocabulary"] == row.get("vocab_size") for row in rows)
    redundant = {"dropped": not lossy, "vocabulary": is_complete}
    rows = [{name: value for name, value in row.items() if not redundant.get(name)} for row in rows]
    alike = sum(row["bytes_per_token"] == rows[0]["bytes_per_token"] for row in rows)
    values = {name: list(dict.fromkeys(each[name] for each in combinations)) for name in combinations[0]}
    best = ", ".join(f"{name}={rows[0][name]}" for name in values)
    findings = {"shortest encoding": best if alike == 1 else f"{alike} equal combinations, such as {best}"}
    if lossy:
        findings["patterns that drop text (ranked last)"] = ", ".join(lossy)
    held = source_names(other) if other else f"{heldout_share} of the documents, or of the chunks"
    trained_on = source_names(corpus) if corpus else "in the grid"
    return Result(
        "sweep",
        {"data": trained_on, "held-out text": held, "seed": seed, "grid": values},
        {"leaderboard": _table(rows)},
        {"sweep": _figure(rows, values)},
        findings,
        runs.models,
    )


def _corpus(named: Grid, data: Any, texts: Any, files: Any, heldout: object, options: ReadOptions) -> Corpus | None:
    """Return the data for combinations that have none of their own, or None if all have."""
    own = [named.data(each) is not None for each in named.combinations()]
    if any(own) and heldout is None:
        reason = "must be given if the grid contains data, so that all vocabularies encode the same text"
        raise ArgumentError("heldout", heldout, reason)
    if not all(own):
        return Corpus(data, texts, files, options)
    for name, value in {"data": data, "texts": texts, "files": files}.items():
        if value is not None:
            raise ArgumentError(name, value, "must be omitted if it is in the grid")
    return None


def train_grid(
    named: Grid,
    combinations: Iterable[Combination],
    counted: Callable[[Combination], ExperimentData],
    on_progress: Callable[[float], object],
) -> Iterator[tuple[Combination, Trained]]:
    """Train combinations. Those that are trained on the same chunks are counted once."""
    by_data: dict[Any, list[Combination]] = {}
    for each in combinations:
        key = (each.get("data"), each.get("groups"), named.split(each), named.found_tokens(each))
        by_data.setdefault(key, []).append(each)
    done = 0
    for some in by_data.values():
        on_progress(done)
        moved = partial(lambda before, more: on_progress(before + more), done)
        trained = train_all(counted(some[0]), [named.options(each) for each in some], on_progress=moved)
        yield from zip(some, trained, strict=True)
        done += len(some)


def check_trained(trained: Trained) -> None:
    """Raise if there was too little data. Cutoffs, phrases and policies of one's own may make vocabularies smaller."""
    options = trained.options
    is_usual = options.get("policy") in (None, *POLICIES.values()) and not options.get("phrases")
    if is_usual and "vocab_size" in options and options.get("freq_cutoff", 1) <= 1:
        check_size(trained)


def _row(combination: Combination, trained: Trained) -> dict[str, Any]:
    found = trained.evaluation
    return {
        **combination,
        "tokens": found.tokens,
        "bytes_per_token": found.bytes_per_token or 0.0,
        "renyi_efficiency": found.renyi_efficiency,
        "vocabulary_used": found.vocabulary_used,
        "vocabulary": len(trained.tokenizer.vocab),
        "dropped": found.dropped / max(1, found.bytes),
        "seconds": trained.seconds,
    }


def _description(corpus: Corpus | None, heldout: Corpus | None, *options: Any) -> Any:
    """Describe data and options, so that a sweep is only resumed with the same ones."""
    sources = [source for each in (corpus, heldout) if each for source in each.sources]
    return json.loads(json.dumps([[identity(source) for source in sources], options]))


def _table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return rows as a table. A column with numbers and strings, such as auto, becomes one of strings."""
    kinds = {name: {type(row[name]) for row in rows if row[name] is not None} for name in rows[0]}
    mixed = {name for name, types in kinds.items() if str in types and len(types) > 1}
    return pa.Table.from_pylist(
        [{name: str(value) if name in mixed else value for name, value in row.items()} for row in rows]
    )


def _label(value: Any) -> str:
    return str(value) if len(str(value)) <= MAX_LABEL else f"{str(value)[:MAX_LABEL]}…"


def _figure(rows: list[dict[str, Any]], grid: Mapping[str, Sequence[Any]]) -> Any:
    """Draw the combinations that drop no text, or all combinations if each drops some."""
    varied = [name for name, values in grid.items() if len(values) > 1] or [*grid][:2]
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

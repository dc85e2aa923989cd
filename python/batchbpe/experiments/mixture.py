"""Search the weights of languages, or of other groups, in the training data: total length against equal costs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa

from ..analysis.evaluation import check_two_groups, reading_bar, required_groups
from ..analysis.plots import COLORS, abbreviate_numbers, axes, styled
from ..arguments import check_integer
from ..choices import Normalization, Objective, Unit
from ..counts import ChunkCounts
from ..counts.mixture import Mixture
from ..data.corpus import Corpus, Data, Files
from ..data.options import ReadOptions
from ..errors import ArgumentError, ArgumentTypeError, plural
from ..model import Model
from ..patterns import Split, split_given
from ..util.surrogates import Errors
from .data import HELDOUT_SHARE, ExperimentData, names_of
from .mixture_search import ALPHAS, Search, Trial, of_size, pareto_front, ranked
from .result import Result, model_path, signed
from .trainings import Trained, check_size, percent_change, recorded_options, train_all, vocabularies_bar

UNITS = tuple(unit for unit in get_args(Unit) if unit != "word")
"""Units of text. Chunk counts contain no words."""


@styled
def mixture(
    groups: Mapping[str, Data] | Data | None = None,
    *,
    texts: Mapping[str, str | Iterable[str]] | None = None,
    files: Mapping[str, Files] | Files | None = None,
    group_column: str | None = None,
    by_file: bool = False,
    vocab_sizes: Sequence[int] = (50_304,),
    objective: Objective = "total",
    per: Unit = "character",
    trials: int = 100,
    keep: int | Literal["all"] = 0,
    pattern: Split | str | None = None,
    normalization: Normalization | None = None,
    heldout_share: float = HELDOUT_SHARE,
    seed: int = 0,
    text_column: str = "text",
    document: str = "file",
    errors: Errors = "strict",
    progress: bool = False,
    **options: Any,
) -> Result:
    """Train on mixtures of groups with different weights, and evaluate each on held-out text of every group.

    The search chooses what is best on the held-out text, so its metrics there are optimistic. The findings, and the
    table "test", are from other text that is neither trained on nor searched on.

    The mixtures are ranked by the objective. Those on the Pareto front are not inferior to any other in both total
    length and Gini coefficient. Front and best mixture are determined for each vocabulary size. The search cannot be
    resumed.

    Parameters
    ----------
    groups: data by group; or, with `group_column` or `by_file`, anything that `ChunkCounts.count` accepts.
    texts, files: as in `evaluate`, instead of `groups`.
    group_column: column of tables, or field of jsonl files, that contains the group of each document.
    by_file: whether each file is a group.
    vocab_sizes: sizes of the vocabularies; each mixture is trained with every size.
    objective: "total" (fewest tokens for all groups together), "worst" (lowest cost of the most expensive group),
        "gini" (most equal costs), or "bytes-per-token" (highest mean over the groups, each counting the same).
    per: unit of text whose cost in tokens is compared: "character", "byte", or "text" if all groups have the same
        content.
    trials: number of mixtures.
    keep: number of the best models to keep for each size, together with those on the Pareto front; 0 for none, or
        "all". They are in `Result.models`.
    pattern, normalization: as in `ChunkCounts.count`.
    heldout_share, seed: fraction of each group to hold out for the search, and again for the test; and random seed for
        choosing them and for the search.
    text_column, document, errors: as in `ChunkCounts.count`.
    progress: whether to display a progress bar.
    options: other options of `train`, for all vocabularies.

    >>> texts = {"en": ["to be or not to be"] * 50, "de": ["Sein oder Nichtsein"] * 20}
    >>> result = mixture(texts=texts, vocab_sizes=[262], objective="gini", trials=8)
    >>> result.tables["groups"].slice(0, 2).to_pylist()[0]["group"], result.table.num_rows
    ('de', 8)

    """
    if isinstance(vocab_sizes, str) or not isinstance(vocab_sizes, Iterable):
        raise ArgumentTypeError("vocab_sizes", vocab_sizes, "must be a list of integers")
    sizes = sorted({*vocab_sizes})
    _check_options(sizes, objective, per, trials, keep)
    check_integer("seed", seed, least=0)
    corpus = Corpus(groups, texts, files, ReadOptions(text_column, document=document, errors=errors))
    sources, grouped = required_groups(corpus, group_column, by_file)
    split = split_given(pattern, normalization)
    with reading_bar(sources, show=progress) as update:
        data, tested = ExperimentData.by_group(grouped, split, errors, heldout_share, seed, update)
    check_two_groups(data)
    search = Search({group: each.counts.total_bytes for group, each in data.items()}, trials, objective, seed)
    with vocabularies_bar(trials * len(sizes), show=progress) as on_progress:
        heldout, test = _HeldOut(data, per), _HeldOut(tested, per)
        found, tests, models = _train(data, search, sizes, heldout, test, keep, options, on_progress)
    fronts = {size: pareto_front(of_size(found, size)) for size in sizes}
    best = {size: ranked(of_size(found, size), objective)[0] for size in sizes}
    on_front = {trial.number for front in fronts.values() for trial in front}
    best_first = ranked(found, objective)
    rows = [_row(trial, trial.number in on_front, trial.number in models) for trial in best_first]
    test_rows = [{"trial": trial.number, **_metrics(tests[trial.number])} for trial in best_first]
    by_group = [
        {
            "trial": trial.number,
            "group": group,
            "weight": weight,
            "tokens": trial.tokens[group],
            f"tokens_per_{per}": trial.costs[group],
        }
        for trial in found
        for group, weight in trial.weights.items()
    ]
    tables = {"trials": rows, "groups": by_group, "test": test_rows}
    return Result(
        "mixture",
        {
            "data": names_of(sources),
            "groups": {group: f"{each.counts.total_bytes:,} bytes" for group, each in data.items()},
            "held-out text": f"{heldout_share} of each group, and as much for the test",
            "seed": seed,
            "objective": objective,
            "unit": per,
            "mixtures": trials,
            "vocab_sizes": sizes,
            **recorded_options(options),
        },
        {name: pa.Table.from_pylist(each) for name, each in tables.items()},
        {"front": _figure(found, fronts, best, objective)},
        _findings(found, tests, fronts, best, objective, per),
        {_model_name(trial): models[trial.number] for trial in best_first if trial.number in models},
    )


def _check_options(sizes: Sequence[int], objective: str, per: str, trials: int, keep: int | Literal["all"]) -> None:
    if not sizes:
        raise ArgumentError("vocab_sizes", list(sizes), "must contain at least one size")
    for name, value, known in (("objective", objective, get_args(Objective)), ("per", per, UNITS)):
        if value not in known:
            raise ArgumentError(name, value, f"must be one of {', '.join(map(repr, known))}")
    check_integer("trials", trials, least=1)
    if keep != "all":
        check_integer("keep", keep, least=0)


class _HeldOut:
    """The held-out text of each group, to evaluate on."""

    def __init__(self, data: Mapping[str, ExperimentData], per: Unit) -> None:
        self._data = data
        texts = {group: each.text for group, each in data.items()}
        self._bytes = {group: text.bytes for group, text in texts.items()}
        counts = {"byte": self._bytes, "character": {group: text.characters for group, text in texts.items()}}
        self._units = counts.get(per) or dict.fromkeys(data, 1)

    def evaluated(self, number: int, weights: Mapping[str, float], trained: Trained) -> Trial:
        """Count the tokens of each group."""
        tokens: dict[str, int] = {}
        for group, data in self._data.items():
            arrays = data.heldout.arrays
            _, lengths = trained.tokenizer.core_encoder.encode_chunks(arrays.data, arrays.offsets, None)
            tokens[group] = int(lengths.astype(np.uint64) @ arrays.counts)
        costs = {group: tokens[group] / units for group, units in self._units.items()}
        bytes_per_token = sum(self._bytes[group] / tokens[group] for group in tokens) / len(tokens)
        return Trial(number, trained.options["vocab_size"], weights, tokens, costs, bytes_per_token)


def _train(
    data: Mapping[str, ExperimentData],
    search: Search,
    sizes: Sequence[int],
    heldout: _HeldOut,
    test: _HeldOut,
    keep: int | Literal["all"],
    options: Mapping[str, Any],
    on_progress: Callable[[float], object],
) -> tuple[list[Trial], dict[int, Trial], dict[int, Model]]:
    """Train what the search proposes. Return the results, and by trial those of the test and the models to keep."""
    found: list[Trial] = []
    tests: dict[int, Trial] = {}
    models: dict[int, Model] = {}
    counts = {group: each.counts for group, each in data.items()}
    # Chunks of any mixture, which determine the memory that it needs.
    together = ExperimentData(ChunkCounts.mix(counts, alpha=1), next(iter(data.values())).heldout)
    while proposed := search.propose(found):
        tried = [(weights, size) for weights in proposed for size in sizes]
        settings = [{**options, "data": Mixture(counts, weights), "vocab_size": size} for weights, size in tried]
        moved = partial(lambda before, more: on_progress(before + more), len(found))
        for (weights, _), trained in zip(tried, train_all(together, settings, on_progress=moved), strict=True):
            if len(found) < len(sizes):
                check_size(trained)
            number = len(found) + 1
            found.append(heldout.evaluated(number, weights, trained))
            tests[number] = test.evaluated(number, weights, trained)
            models[number] = trained.tokenizer.model
        # A trial that is not among them now will never be.
        most = len(found) if keep == "all" else keep
        kept = {trial.number for size in sizes for trial in search.best(of_size(found, size), most)} if keep else {}
        models = {number: model for number, model in models.items() if number in kept}
    return found, tests, models


def _model_name(trial: Trial) -> str:
    return f"trial-{trial.number}"


def _row(trial: Trial, on_front: bool, is_kept: bool) -> dict[str, Any]:
    return {
        "trial": trial.number,
        "vocab_size": trial.vocab_size,
        **_metrics(trial),
        "front": on_front,
        "model": model_path(Path(), _model_name(trial)).as_posix() if is_kept else "",
    }


def _metrics(trial: Trial) -> dict[str, Any]:
    return {
        "tokens": trial.total,
        "bytes_per_token": trial.bytes_per_token,
        "worst_group": trial.worst,
        "worst": trial.costs[trial.worst],
        "gini": trial.gini,
    }


def _findings(
    found: Sequence[Trial],
    tests: Mapping[int, Trial],
    fronts: Mapping[int, Sequence[Trial]],
    best: Mapping[int, Trial],
    objective: Objective,
    per: Unit,
) -> dict[str, str]:
    findings: dict[str, str] = {}
    for size, trial in best.items():
        plain, tested = tests[of_size(found, size)[0].number], tests[trial.number]
        weights = ", ".join(f"{group} {weight:.4f}" for group, weight in trial.weights.items())
        findings[f"best mixture ({objective}), {size:,} tokens"] = f"trial {trial.number}: {weights}"
        findings[f"compared with adding up all groups on test text, {size:,} tokens"] = (
            f"{signed(percent_change(tested.total, plain.total))}% tokens; "
            f"Gini coefficient {plain.gini:.4f} → {tested.gini:.4f}; tokens per {per} of the most expensive group "
            f"{plain.costs[plain.worst]:.4f} ({plain.worst}) → {tested.costs[tested.worst]:.4f} ({tested.worst})"
        )
        findings[f"Pareto front, {size:,} tokens"] = plural(len(fronts[size]), "mixture")
    return findings


def _figure(
    found: Sequence[Trial],
    fronts: Mapping[int, Sequence[Trial]],
    best: Mapping[int, Trial],
    objective: Objective,
) -> Any:
    figure, panels = axes(len(fronts), height=4.4)
    for panel, (size, front) in zip(panels, fronts.items(), strict=True):
        trials = of_size(found, size)
        panel.plot([each.total for each in trials], [each.gini for each in trials], ".", color=COLORS[4], alpha=0.5)
        panel.plot([each.total for each in front], [each.gini for each in front], "o-", markersize=4)
        panel.plot([best[size].total], [best[size].gini], "*", markersize=14, color=COLORS[1], markeredgecolor="white")
        for alpha, trial in zip(ALPHAS[:2], trials, strict=False):
            panel.annotate(f" α={alpha:g}", (trial.total, trial.gini), fontsize=8)
        panel.set(xlabel="tokens of the held-out text", ylabel="Gini coefficient of the costs")
        abbreviate_numbers(panel.xaxis)
        panel.set_title(f"{size:,} tokens; line: Pareto front; star: best {objective}")
    return figure

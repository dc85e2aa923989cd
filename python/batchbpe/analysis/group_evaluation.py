"""Evaluate tokenizers on groups of documents, such as languages, and compare what text costs each group in tokens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from ..choices import Unit
from ..data.corpus import Corpus, Data, Files
from ..data.options import Reading, ReadOptions, Sampling, from_keywords
from ..data.source import Source
from ..errors import ArgumentError, ArgumentTypeError, Setting, listed
from ..options import accepting
from . import groups
from .evaluation import Evaluator, TextEncoder, check_text, reading_bar
from .metrics import Evaluation, gini, parity

if TYPE_CHECKING:
    from typing_extensions import Unpack


@dataclass(frozen=True)
class GroupEvaluation:
    """Metrics of one tokenizer by group.

    >>> from batchbpe import Tokenizer
    >>> texts = {"en": "to be", "de": ["Sein"]}
    >>> evaluate_groups({"bytes": Tokenizer.train("a", 256)}, texts, per="text").tokenizers["bytes"].costs
    {'de': 4.0, 'en': 5.0}
    """

    name: str
    evaluations: Mapping[str, Evaluation]
    """Metrics by group."""
    costs: Mapping[str, float]
    """Tokens per unit by group. Groups without units or tokens are missing."""
    parity: Mapping[str, float]
    """Cost of each group divided by that of the reference group. Empty if the latter has no cost."""

    @property
    def gini(self) -> float:
        """Gini coefficient of the costs: 0 if text costs the same in all groups."""
        return gini(list(self.costs.values()))


@dataclass(frozen=True)
class GroupComparison:
    """Metrics of tokenizers by group; see `evaluate_groups`.

    >>> from batchbpe import Tokenizer
    >>> result = evaluate_groups({"bytes": Tokenizer.train("a", 256)}, {"en": "to be", "zh": "生存"})
    >>> result.metrics("bytes")["zh"]["parity"]
    3.0
    """

    unit: Unit
    """Unit of text whose cost is compared."""
    reference_group: str | None
    """Group with a parity of 1. None if no group has a cost."""
    tokenizers: Mapping[str, GroupEvaluation]
    """Metrics by tokenizer. The first is the reference for changes in length."""
    empty_groups: Sequence[str]
    """Groups without text, which are omitted everywhere else."""

    def metrics(self, name: str) -> dict[str, dict[str, float | None]]:
        """Return the metrics of a tokenizer by group and name, including its cost and parity."""
        one, reference = self.tokenizers[name], next(iter(self.tokenizers.values()))
        return {
            group: {
                **evaluation.metrics(reference.evaluations[group]),
                f"tokens_per_{self.unit}": one.costs.get(group),
                "parity": one.parity.get(group),
            }
            for group, evaluation in one.evaluations.items()
        }


@accepting(ReadOptions, Sampling)
def evaluate_groups(
    tokenizers: Mapping[str, TextEncoder],
    data: Mapping[str, Data] | Data | None = None,
    *,
    texts: Mapping[str, str | Iterable[str]] | None = None,
    files: Mapping[str, Files] | Files | None = None,
    group_column: str | None = None,
    by_file: bool = False,
    per: Unit = "character",
    parity: str | None = None,
    threads: int | None = None,
    progress: bool = False,
    **reading: Unpack[Reading],
) -> GroupComparison:
    """Evaluate tokenizers on each group of documents.

    Parameters
    ----------
    tokenizers: tokenizers by name; see `evaluate`.
    data: data by group; or, with `group_column` or `by_file`, anything that `ChunkCounts.count` accepts.
    texts: strings by group, whatever they look like, instead of `data`.
    files: paths, globs, folders or URLs by group; or, with `group_column` or `by_file`, without groups.
    group_column: column of tables, or field of jsonl files, that contains the group of each document.
    by_file: whether each file is a group.
    per: unit of text whose cost in tokens is compared. "text" is for groups that contain the same text in different
        languages.
    parity: the group with which the others are compared; by default the cheapest for the first tokenizer.
    threads, progress: as in `evaluate`.
    {reading}
    sample and limit_bytes select from each group. They cannot be combined with `group_column`.

    >>> from batchbpe import Tokenizer
    >>> texts = {"en": "to be or not to be", "de": "Sein oder Nichtsein"}
    >>> result = evaluate_groups({"mine": Tokenizer.train(texts["en"], 260)}, texts)
    >>> result.reference_group, round(result.tokenizers["mine"].parity["de"], 2)
    ('en', 1.64)

    """
    if per not in get_args(Unit):
        raise ArgumentError("per", per, f"must be one of {', '.join(map(repr, get_args(Unit)))}")
    options, sampling = from_keywords(reading)
    sources, grouped = grouped_documents(data, texts, files, group_column, by_file, options, sampling)
    evaluators: dict[str, Evaluator] = {}
    Evaluator(tokenizers, errors=options.errors)  # reports wrong arguments even if there are no documents
    with reading_bar(sources, show=progress) as update:
        for source, parts in grouped:
            with source.blamed():
                for group, documents in parts:
                    if group not in evaluators:
                        evaluators[group] = Evaluator(tokenizers, errors=options.errors, threads=threads)
                    evaluators[group].add(documents)
                    update()
    size = sum(evaluator.text.bytes for evaluator in evaluators.values())
    check_text(size, sources, sampling, data if data is not None else texts if texts is not None else files)
    return _compared(tokenizers, dict(sorted(evaluators.items())), per, parity)


def grouped_documents(
    data: Any,
    texts: Any,
    files: Any,
    group_column: str | None,
    by_file: bool,
    options: ReadOptions,
    sampling: Sampling,
) -> tuple[list[Source], groups.GroupedDocuments]:
    """Return the sources to read, and their documents by group; see `evaluate_groups`."""
    if group_column is not None and by_file:
        raise ArgumentError("group_column", group_column, ("must be omitted if ", Setting("by_file"), " is set"))
    if group_column is not None:
        _check_complete(sampling)
        sources = Corpus(data, texts, files, options).sources
        return sources, groups.by_column(sources, group_column)
    if by_file:
        sources = Corpus(data, texts, files, options).sources
        return sources, groups.by_file(sources, sampling)
    by_name = _sources_by_name(data, texts, files, options)
    return [source for some in by_name.values() for source in some], groups.by_name(by_name, sampling)


def _check_complete(sampling: Sampling) -> None:
    for name in ("sample", "limit_bytes"):
        value = getattr(sampling, name)
        if value != getattr(Sampling, name):
            raise ArgumentError(name, value, ("must be omitted with ", Setting("group_column")))


def _sources_by_name(data: Any, texts: Any, files: Any, options: ReadOptions) -> dict[str, list[Source]]:
    """Return the sources of each value of a dict, whichever of the three it was passed as."""
    if isinstance(texts, Mapping) and data is files is None:
        return {str(group): Corpus(texts=each, options=options).sources for group, each in texts.items()}
    if isinstance(files, Mapping) and data is texts is None:
        return {str(group): Corpus(files=each, options=options).sources for group, each in files.items()}
    if not isinstance(data, Mapping) or not texts is files is None:
        data = Corpus(data, texts, files, options).given
    if not isinstance(data, Mapping):
        remedy = ("use a dict, or ", Setting("group_column"), " or ", Setting("by_file"))
        raise ArgumentTypeError("data", data, "must be a dict of group names and their data", remedy=remedy)
    for group, value in data.items():
        if isinstance(value, int):
            raise ArgumentTypeError(f"data[{group!r}]", value, "must be text, files or other data")
    return {str(group): Corpus(each, options=options).sources for group, each in data.items()}


def _compared(
    tokenizers: Mapping[str, TextEncoder], evaluators: Mapping[str, Evaluator], per: Unit, chosen: str | None
) -> GroupComparison:
    full = {group: evaluator for group, evaluator in evaluators.items() if evaluator.text.bytes}
    if chosen is not None and chosen not in full:
        wanted = "a group that contains text" if chosen in evaluators else "one of the groups"
        raise ArgumentError("parity", chosen, f"must be {wanted} ({listed(full)})")
    by_group = {group: evaluator.results() for group, evaluator in full.items()}
    evaluations = {
        name: {group: results[index] for group, results in by_group.items()} for index, name in enumerate(tokenizers)
    }
    costs = {name: _costs(by_group, per) for name, by_group in evaluations.items()}
    first = next(iter(costs.values()))
    if chosen is not None and chosen not in first:
        what = "tokens" if per == "text" else f"{per}s or no tokens"
        raise ArgumentError("parity", chosen, f"must be a group with a cost; this one has no {what}")
    reference = chosen or min(first, key=lambda group: first[group], default=None)
    return GroupComparison(
        unit=per,
        reference_group=reference,
        tokenizers={
            name: GroupEvaluation(
                name,
                evaluations[name],
                costs[name],
                # The pattern of a tokenizer may drop the whole text of the reference group.
                parity(costs[name], reference) if reference in costs[name] else {},
            )
            for name in tokenizers
        },
        empty_groups=[group for group in evaluators if group not in full],
    )


def _costs(by_group: Mapping[str, Evaluation], per: Unit) -> dict[str, float]:
    costs = {group: evaluation.cost(per) for group, evaluation in by_group.items()}
    return {group: cost for group, cost in costs.items() if cost is not None}

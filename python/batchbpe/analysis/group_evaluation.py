"""Compare what text costs in tokens between groups of documents, such as languages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from ..choices import Unit
from ..errors import ArgumentError, listed
from .metrics import Evaluation, gini, parity
from .tables import Table, Tabular, formatted


@dataclass(frozen=True)
class GroupEvaluation:
    """Metrics of one tokenizer by group.

    >>> from batchbpe import Tokenizer, evaluate
    >>> result = evaluate({"bytes": Tokenizer.train("a", 256)}, {"en": "to be", "de": ["Sein"]}, per="text")
    >>> result.groups.tokenizers["bytes"].costs
    {'de': 4.0, 'en': 5.0}
    """

    name: str
    evaluations: Mapping[str, Evaluation] = field(repr=False)
    """Metrics by group."""
    costs: Mapping[str, float]
    """Tokens per unit by group. Groups without units or tokens are missing."""
    parity: Mapping[str, float]
    """Cost of each group divided by that of the reference group. Empty if the latter has no cost."""

    @property
    def gini(self) -> float:
        """Gini coefficient of the costs: 0 if text costs the same in all groups."""
        return gini(list(self.costs.values()))


@dataclass(frozen=True, repr=False)
class GroupComparison(Tabular):
    """Metrics of tokenizers by group, from the cheapest group for the first tokenizer to the most expensive.

    >>> from batchbpe import Tokenizer, evaluate
    >>> result = evaluate({"bytes": Tokenizer.train("a", 256)}, {"en": "to be", "zh": "生存"})
    >>> result.groups.metrics("bytes")["zh"]["parity"]
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

    @property
    def names(self) -> list[str]:
        """The groups that contain text."""
        return list(next(iter(self.tokenizers.values())).evaluations)

    @property
    def labels(self) -> dict[str, str]:
        """Labels of the metrics that only groups have."""
        return {
            self.cost_name: "tokens" if self.unit == "text" else f"tokens per {self.unit}",
            "parity": "parity" if self.reference_group is None else f"parity ({self.reference_group} = 1)",
        }

    @property
    def cost_name(self) -> str:
        """The name of the cost among the metrics."""
        return f"tokens_per_{self.unit}"

    def metrics(self, name: str) -> dict[str, dict[str, float | None]]:
        """Return the metrics of a tokenizer by group and name, including its cost and parity."""
        one, reference = self.tokenizers[name], next(iter(self.tokenizers.values()))
        return {
            group: {
                **evaluation.metrics(reference.evaluations[group]),
                self.cost_name: one.costs.get(group),
                "parity": one.parity.get(group),
            }
            for group, evaluation in one.evaluations.items()
        }

    def tables(self) -> Iterator[Table]:
        """Yield a table for each metric: a row for each group, a column for each tokenizer."""
        metrics = {name: self.metrics(name) for name in self.tokenizers}

        def rows(metric: str) -> list[list[str]]:
            cells = formatted(metrics[name][group][metric] for group in self.names for name in metrics)
            width = len(metrics)
            return [[group, *cells[i * width : (i + 1) * width]] for i, group in enumerate(self.names)]

        gini_row = ["Gini coefficient", *formatted(each.gini for each in self.tokenizers.values())]
        # The cost of a whole text is its number of tokens, which is an integer.
        cost = "tokens" if self.unit == "text" else self.cost_name
        yield [self.labels[self.cost_name], *metrics], [*rows(cost), gini_row]
        yield [self.labels["parity"], *metrics], rows("parity")
        if cost != "tokens":
            yield ["tokens", *metrics], rows("tokens")
        if any(each["dropped"] for by_group in metrics.values() for each in by_group.values()):
            yield ["bytes dropped", *metrics], rows("dropped")


def compare_groups(
    by_group: Mapping[str, Sequence[Evaluation]], per: Unit, reference: str | None, empty_groups: Sequence[str] = ()
) -> GroupComparison:
    """Compare groups, given the metrics of the same tokenizers on each.

    >>> from batchbpe import Tokenizer, evaluate
    >>> tokenizer = Tokenizer.train("a", 256)
    >>> results = {group: evaluate({"bytes": tokenizer}, text) for group, text in {"en": "to be", "zh": "生存"}.items()}
    >>> compare_groups(results, "character", "zh").tokenizers["bytes"].parity["en"]
    0.3333333333333333
    """
    if reference is not None and reference not in by_group:
        wanted = "a group that contains text" if reference in empty_groups else "one of the groups"
        raise ArgumentError("parity", reference, f"must be {wanted} ({listed(by_group)})")
    names = [each.name for each in next(iter(by_group.values()))]
    costs = [_costs({group: each[index] for group, each in by_group.items()}, per) for index in range(len(names))]
    if reference is not None and reference not in costs[0]:
        what = "tokens" if per == "text" else f"{per}s or no tokens"
        raise ArgumentError("parity", reference, f"must be a group with a cost; this one has no {what}")
    order = sorted(by_group, key=lambda group: costs[0].get(group, inf))
    chosen = reference or next((group for group in order if group in costs[0]), None)
    return GroupComparison(
        unit=per,
        reference_group=chosen,
        tokenizers={
            name: GroupEvaluation(
                name,
                {group: by_group[group][index] for group in order},
                {group: costs[index][group] for group in order if group in costs[index]},
                # The pattern of a tokenizer may drop the whole text of the reference group.
                parity(costs[index], chosen) if chosen in costs[index] else {},
            )
            for index, name in enumerate(names)
        },
        empty_groups=empty_groups,
    )


def _costs(by_group: Mapping[str, Evaluation], per: Unit) -> dict[str, float]:
    costs = {group: evaluation.cost(per) for group, evaluation in by_group.items()}
    return {group: cost for group, cost in costs.items() if cost is not None}

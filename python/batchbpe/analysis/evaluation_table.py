"""`EvaluationTable`: what `evaluate` returns, as text, in a notebook, as a data frame and as a figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import nan
from typing import TYPE_CHECKING, Any, overload

from ..errors import ArgumentError, listed
from .auditing import Audit
from .evaluator import TextEncoder
from .group_evaluation import GroupComparison
from .lower_bound import Bound, bounds_tables
from .metrics import METRICS, Evaluation
from .plots import axes, styled
from .tables import Table, Tabular, formatted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .ngram import NgramBits

EXTRA = {
    "bits_per_byte": "bits per byte",
    "bound": "lower bound on tokens",
    "above_bound": "above the bound, %",
}
"""Labels of what is only computed if asked for."""


@dataclass(frozen=True, repr=False, eq=False)
class EvaluationTable(Tabular, Sequence[Evaluation]):
    """The metrics of each tokenizer, by index or by name. The first tokenizer is the reference for changes in length.

    >>> from batchbpe import evaluate
    >>> tokenizers = {size: Tokenizer.train("to be or not to be", size) for size in (256, 258)}
    >>> result = evaluate({f"{size} tokens": each for size, each in tokenizers.items()}, "to be")
    >>> [each.tokens for each in result], result["258 tokens"].bytes_per_token
    ([5, 3], 1.6666666666666667)
    >>> print("\\n".join(str(result).splitlines()[:4]))
                                 256 tokens  258 tokens
    vocabulary size                     256         258
    tokens                                5           3
    change in length, %              0.0000    -40.0000
    """

    evaluations: Sequence[Evaluation]
    """Metrics on the whole text, one for each tokenizer."""
    tokenizers: Mapping[str, TextEncoder]
    groups: GroupComparison | None = None
    """Metrics by group, if the documents are grouped."""
    audits: Mapping[str, Audit] = field(default_factory=dict)
    """Tokens worth checking by tokenizer, if asked for."""
    ngrams: Mapping[str, NgramBits] = field(default_factory=dict)
    """Bits of the text in n-gram models by tokenizer, if asked for."""
    bounds: Mapping[str, Bound] = field(default_factory=dict)
    """How many tokens any vocabulary of the same size needs, by tokenizer, if asked for."""
    unbounded: Mapping[str, str] = field(default_factory=dict)
    """Why there is no such bound, by tokenizer."""

    def __len__(self) -> int:
        """Return the number of tokenizers."""
        return len(self.evaluations)

    @overload
    def __getitem__(self, index: int | str) -> Evaluation: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Evaluation]: ...
    def __getitem__(self, index: int | str | slice) -> Evaluation | Sequence[Evaluation]:
        """Return the metrics of a tokenizer, by index or by name."""
        if not isinstance(index, str):
            return self.evaluations[index]
        if index not in self.tokenizers:
            raise KeyError(f"no tokenizer {index!r} among {listed(self.tokenizers)}")
        return next(each for each in self if each.name == index)

    def to_pandas(self) -> Any:
        """Return all metrics as a data frame: a row for each tokenizer, or for each tokenizer and group.

        There are columns of bits per byte and bounds if these were asked for. Bounds are of the whole text, so there
        are none with groups.

        >>> from batchbpe import evaluate
        >>> result = evaluate({"bytes": Tokenizer.train("a", 256)}, {"en": "to be", "de": ["Sein"]})
        >>> result.to_pandas().loc["bytes", "parity"].to_dict()
        {'de': 1.0, 'en': 1.0}
        """
        try:
            import pandas as pd
        except ImportError:
            raise ImportError("to_pandas requires pandas; run pip install pandas") from None
        by_name = {name: self._metrics(name) for name in self.tokenizers}
        rows = [
            {key: nan if value is None else value for key, value in each.items()}
            for by_group in by_name.values()
            for each in by_group.values()
        ]
        keys = [(name, group) for name, by_group in by_name.items() for group in by_group]
        index = pd.MultiIndex.from_tuples(keys, names=["tokenizer", "group"])
        return pd.DataFrame(rows, index if self.groups else index.droplevel("group"))

    @styled
    def plot(self, metric: str | None = None) -> Figure:
        """Draw a metric of each tokenizer, by group if there are groups.

        Parameters
        ----------
        metric: a column of `to_pandas`; by default bytes per token, or the cost of each group.

        >>> from batchbpe import evaluate
        >>> figure = evaluate(Tokenizer.train("a", 256), "to be").plot("tokens")
        >>> figure.axes[0].get_xlabel()
        'tokens'

        """
        extra = self._extra(self[0].name)
        labels = {**METRICS, **(self.groups.labels if self.groups else {name: EXTRA[name] for name in extra})}
        metric = metric or (self.groups.cost_name if self.groups else "bytes_per_token")
        if metric not in labels:
            raise ArgumentError("metric", metric, f"must be one of {', '.join(labels)}")
        values = {name: [each[metric] for each in self._metrics(name).values()] for name in self.tokenizers}
        rows = self.groups.names if self.groups else list(values)
        figure, (panel,) = axes(height=1.2 + 0.28 * len(rows))
        if self.groups:
            for name, numbers in values.items():
                points = [nan if number is None else number for number in numbers]
                panel.plot(points, range(len(rows)), "o", markersize=6, label=name)
            figure.legend(loc="outside upper left", ncols=4)
        else:
            lengths = [each or 0 for (each,) in values.values()]
            panel.bar_label(panel.barh(range(len(rows)), lengths), formatted(lengths), padding=3)
            panel.margins(x=0.15)
        panel.set_yticks(range(len(rows)), rows)
        panel.set(xlabel=labels[metric], ylim=(len(rows) - 0.5, -0.5))  # the first row is at the top
        panel.grid(visible=False, axis="y")
        return figure

    def _metrics(self, name: str) -> Mapping[str, Mapping[str, float | None]]:
        """Return the metrics of a tokenizer by group. Without groups, there is one with an empty name."""
        return self.groups.metrics(name) if self.groups else {"": {**self[name].metrics(self[0]), **self._extra(name)}}

    def _extra(self, name: str) -> dict[str, float | None]:
        """Return what was asked for, except audits: the values of `EXTRA`, those without a value as None."""
        found: dict[str, float | None] = {}
        if self.ngrams:
            found["bits_per_byte"] = self.ngrams[name].bits_per_byte
        if self.bounds or self.unbounded:
            bound = self.bounds.get(name)
            found |= {"bound": bound.tokens if bound else None, "above_bound": bound.above if bound else None}
        return found

    def tables(self) -> Iterator[Table]:
        """Yield the tables: those of the groups first, then the metrics, then what was asked for."""
        if self.groups:
            yield from self.groups.tables()
        metrics = [each.metrics(self[0]) for each in self]
        is_lossy = any(each.dropped for each in self)
        labels = {name: label for name, label in METRICS.items() if name != "dropped" or is_lossy}
        yield (
            ["all groups" if self.groups else "", *self.tokenizers],
            [[label, *formatted(each[name] for each in metrics)] for name, label in labels.items()],
        )
        if self.ngrams:
            bits = [each.bits_per_byte for each in self.ngrams.values()]
            changes = [100 * (each / bits[0] - 1) for each in bits]
            yield (
                [f"{self.ngrams[self[0].name].order}-gram model", *self.tokenizers],
                [["bits per byte", *formatted(bits)], ["change, %", *formatted(changes)]],
            )
            yield from self.ngrams[self[0].name].cautions()
        if self.bounds:
            yield from bounds_tables(self.bounds)
        if self.unbounded:
            yield ["no bound for", "because"], [[*row] for row in self.unbounded.items()]
        for name, audit in self.audits.items():
            yield audit.table(f"audit of {name}")

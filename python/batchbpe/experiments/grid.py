"""The grid of a sweep: named values of the options of `train`, and their combinations."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import product
from numbers import Integral
from pathlib import Path
from typing import Any, TypeAlias

from ..choices import Normalization
from ..counts import ChunkCounts
from ..data.options import ReadOptions, Sampling
from ..errors import ArgumentError
from ..formats import load_any
from ..model import Model
from ..options import picked
from ..patterns import Split
from ..phrases.options import PhraseOptions
from ..policies import policy_name, resolve_policy
from ..training.options import TrainingOptions
from ..training.train import train

Name: TypeAlias = "str | float | None"
"""What identifies a value in tables and files: the value itself if it is a string or a number."""
Combination: TypeAlias = "dict[str, Name]"
"""The names of the values of one vocabulary, by option."""
_FIXED = {"texts", "files", "progress", "on_counts", "on_batch", "threads"}
_FIXED |= {each.name for options in (ReadOptions, Sampling) for each in fields(options)}
DEFAULTS: dict[str, Any] = {"vocab_size": None, "pattern": "gpt4"} | {
    name: parameter.default
    for name, parameter in inspect.signature(train).parameters.items()
    if name not in {"vocab_size", "pattern", *_FIXED}
}
"""Options that can be varied, and the values of those that are not in the grid."""
NO_LIST = "must contain a list of values for each option"


@dataclass(frozen=True)
class Grid:
    """The values of each option by name.

    >>> grid = Grid.of({"vocab_size": [300, 400], "policy": {"plain": "serial"}})
    >>> list(grid.combinations())
    [{'pattern': 'gpt4', 'vocab_size': 300, 'policy': 'plain'}, {'pattern': 'gpt4', 'vocab_size': 400, 'policy': 'plain'}]
    """  # noqa: E501

    values: Mapping[str, Mapping[Name, Any]]
    normalization: Normalization | None = None
    """Normalization of the text, unless it is in the grid."""

    @classmethod
    def of(
        cls, grid: Mapping[str, Sequence[Any] | Mapping[str, Any]], normalization: Normalization | None = None
    ) -> Grid:
        """Check a grid and name its values."""
        for name in grid:
            if name not in DEFAULTS:
                raise ArgumentError("grid", name, f"must only contain {', '.join(DEFAULTS)}")
        if not grid.keys() & {"vocab_size", "add_tokens"}:
            raise ArgumentError("grid", dict(grid), "must contain vocab_size")
        if normalization is not None and "normalization" in grid:
            raise ArgumentError("normalization", normalization, "must be omitted if it is in the grid")
        return cls({option: _named(option, values) for option, values in grid.items()}, normalization)

    def combinations(self) -> Iterator[Combination]:
        """Yield every combination. The pattern is always part of it."""
        for names in product(*self.values.values()):
            combination = dict(zip(self.values, names, strict=True))
            split = self._split_of_data(combination)
            yield {"pattern": split.name if split else DEFAULTS["pattern"], **combination}

    def value(self, option: str, combination: Mapping[str, Name]) -> Any:
        """Return the value of an option, or None if it is not in the grid."""
        return self.values[option][combination[option]] if option in self.values else None

    def split(self, combination: Mapping[str, Name]) -> Split:
        """Return how the text of a combination is split: the pattern of the grid, of the model or of the counts."""
        normalization = self.value("normalization", combination) or self.normalization
        pattern = self.value("pattern", combination) or self._split_of_data(combination) or DEFAULTS["pattern"]
        return Split.of(pattern, normalization)

    def _split_of_data(self, combination: Mapping[str, Name]) -> Split | None:
        """Return the split of a model, or of chunk counts, in the grid."""
        models = (self.value(option, combination) for option in ("base", "like"))
        counts = (self.value("data", combination), *(self.value("groups", combination) or {}).values())
        return next((each.split for each in (*models, *counts) if isinstance(each, Model | ChunkCounts)), None)

    def data(self, combination: Mapping[str, Name]) -> Any:
        """Return the data of a combination, or that of all its groups; None if it has none of its own."""
        groups = self.value("groups", combination)
        return self.value("data", combination) if groups is None else [*groups.values()]

    def options(self, combination: Mapping[str, Name]) -> dict[str, Any]:
        """Return the options of `train`, except those that concern the data and how it is split."""
        kept = (option for option in self.values if option not in ("data", "pattern", "normalization"))
        return {option: self.value(option, combination) for option in kept}

    def found_tokens(self, combination: Mapping[str, Name]) -> tuple[str, ...]:
        """Return the tokens that are removed from the text before it is split. Invalid options raise an error."""
        options = self.options(combination)
        picked(PhraseOptions, options)
        return tuple(picked(TrainingOptions, options).found_tokens)


def chosen(row: Mapping[str, Any]) -> dict[str, Name]:
    """Return the options of a row or combination that differ from the defaults.

    >>> chosen({"pattern": "gpt4", "vocab_size": 300, "tokens": 7})
    {'vocab_size': 300}
    """
    return {name: row[name] for name, default in DEFAULTS.items() if row.get(name, default) != default}


def label(row: Mapping[str, Any]) -> str:
    """Describe a combination.

    >>> label({"pattern": "gpt4", "vocab_size": 300, "policy": "serial"})
    'vocab_size=300, policy=serial'
    """
    return ", ".join(f"{name}={value}" for name, value in chosen(row).items())


def _named(option: str, values: Any) -> dict[Name, Any]:
    """Return values by name: the given names, or those that the values have."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ArgumentError("grid", {option: values}, NO_LIST)
    pairs = [*values.items()] if isinstance(values, Mapping) else [(_name(option, value), value) for value in values]
    if not pairs:
        raise ArgumentError("grid", {option: values}, NO_LIST, remedy="leave the option out to use its default")
    named: dict[Name, Any] = {}
    for name, value in pairs:
        checked = _checked(option, value)
        if name in named and named[name] is not checked and value != name:
            reason, remedy = "must contain values with different names", _remedy(option)
            raise ArgumentError("grid", {option: name}, reason, remedy=remedy)
        named[name if name is None else _plain(name)] = checked
    return named


def _name(option: str, value: Any) -> Name:
    """Return the name of a value that was not given one."""
    if value is None or isinstance(value, str | float | Integral):
        return None if value is None else _plain(value)
    if isinstance(value, os.PathLike):
        return str(Path(value))
    if isinstance(value, Split):
        return value.name
    if callable(value):
        return policy_name(value)
    if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        return ", ".join(value)
    reason = "must contain names for values that have none"
    raise ArgumentError("grid", {option: value}, reason, remedy=_remedy(option))


def _plain(name: Any) -> str | float:
    """Return a name as JSON can store it: a number as a Python number, anything else as a string."""
    if isinstance(name, Integral) and not isinstance(name, bool):
        return int(name)
    return name if isinstance(name, bool | float) else str(name)


def _checked(option: str, value: Any) -> Any:
    """Check what can be checked before training, and load models."""
    if isinstance(value, Integral) and int(value) >= 1 << 63:
        raise ArgumentError("grid", {option: int(value)}, "must contain integers below 2**63")
    if option == "policy":
        return resolve_policy(value)
    if value is None:
        return None
    if option == "pattern":
        return Split.of(value)
    return load_any(option, value) if option in ("base", "like") else value


def _remedy(option: str) -> str:
    return f"use a dict of names and values, such as {{{option!r}: {{'mine': …}}}}"

"""`Mixture`: parts of a dataset and how much of each, as given in Python or in a mixture file.

Counts add up, so a weighted sum of counts is a new dataset, without reading the text again. Each part is multiplied by
an integer factor. The counts of a mixture are therefore relative, and its chunks are exactly those of its parts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from glob import escape, has_magic
from math import fsum, gcd
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arguments import check_integer, check_number, check_path, check_string
from ..choices import Normalization
from ..data.corpus import Corpus, Data, Files
from ..data.files import URL, Location
from ..data.options import Reading, ReadOptions, Sampling
from ..data.paths import files_at
from ..errors import ArgumentError, ArgumentTypeError, DataError, listed, parse_json, short, with_unique_keys
from ..formats.file_errors import locate_errors
from ..options import accepting
from ..patterns import Split, split_given
from ..util.documentation import page
from . import ChunkCounts, count_corpus
from .arrays import added_up
from .counter import ChunkArrays

if TYPE_CHECKING:
    from typing_extensions import Unpack

LEAST_FACTOR = 1000
"""The smallest factor of a part, before common divisors are removed: weights are exact to 0.05%."""
MAX_BYTES = 1 << 63
"""Maximum size of a mixture. Smaller factors are used if it would be exceeded."""


@dataclass(frozen=True, repr=False)
class Mixture:
    """Parts of a dataset with their weights. `train` accepts a mixture as its data.

    A weight is the fraction of the bytes of the mixture that come from that part. Weights are normalized to a sum of 1.

    >>> mixture = Mixture({"en": ["to be"], "de": ["nicht zu sein"]}, {"en": 0.5, "de": 0.5})
    >>> mixture.count()["to"], mixture.count()["nicht"]  # 5 and 13 bytes
    (13, 5)
    """

    parts: Mapping[str, Data | Files]
    """The data of each part: anything that `ChunkCounts.count` accepts."""
    weights: Mapping[str, float] | None = None
    """The weight of each part."""
    _: KW_ONLY
    alpha: float | None = None
    """Instead of weights: they are proportional to sizeᵅ, with sizes in bytes. 1 is plain addition, 0 uniform."""
    are_files: bool = False
    """Whether all strings in the parts are paths or URLs, as in a mixture file, and never texts."""

    def __post_init__(self) -> None:
        """Check the weights."""
        if not isinstance(self.parts, Mapping) or not self.parts:
            raise ArgumentTypeError("parts", self.parts, "must be a dict with at least one part")
        for name in self.parts:
            check_string("parts", name)
        if self.alpha is not None:
            if self.weights:
                raise ArgumentError("alpha", self.alpha, "must be omitted if parts have weights")
            check_number("alpha", self.alpha)
            if self.alpha > 1:
                raise ArgumentError("alpha", self.alpha, "must be at most 1")
            return
        weights = self.weights or {}
        for name in self.parts:
            check_number(f"parts.{name}.weight", weights.get(name), "set a weight for each part, or alpha")
        unknown = weights.keys() - self.parts.keys()
        if unknown:
            raise ArgumentError("weights", min(map(str, unknown)), f"must only contain parts ({listed(self.parts)})")
        if not any(weights.values()):
            raise ArgumentError("weights", dict(weights), "must contain a weight greater than 0")

    def __repr__(self) -> str:
        """Show the names and weights, but not the data.

        >>> Mixture({"en": ["to be"], "de": ["zu sein"]}, {"en": 3, "de": 1})
        Mixture(en=3, de=1)
        """
        shown = [f"{name}={weight}" for name, weight in (self.weights or {}).items()] or list(self.parts)
        return f"Mixture({', '.join([*shown, *[f'alpha={self.alpha}'] * (self.alpha is not None)])})"

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Mixture:
        """Load a mixture file, in YAML or JSON. Paths in it are relative to its folder.

        https://batchbpe.github.io/batchbpe/mixtures.html#mixture-files describes its fields.

        >>> Mixture.load("nowhere.yaml")
        Traceback (most recent call last):
        ...
        FileNotFoundError: file not found: nowhere.yaml
        """
        check_path("path", path)
        path = Path(path)
        if not path.is_file():
            raise FileNotFoundError(f"file not found: {path}")
        with locate_errors(path):
            fields = _checked("", _parsed(path), "parts", "alpha")
            alpha = _number("alpha", fields["alpha"]) if "alpha" in fields else None
            parts: dict[str, Any] = {}
            weights: dict[str, float] = {}
            for name, part in _checked("parts", fields.get("parts")).items():
                part = _checked(f"parts.{name}", part, "data", "weight")
                parts[name] = _locations(f"parts.{name}.data", part.get("data"), path)
                if "weight" in part:
                    weights[name] = _number(f"parts.{name}.weight", part["weight"])
            return cls(parts, weights, alpha=alpha, are_files=True)

    @accepting(ReadOptions, Sampling)
    def count(
        self,
        pattern: Split | str | None = None,
        *,
        normalization: Normalization | None = None,
        freq_cutoff: int = 1,
        special_tokens: Sequence[str] | Mapping[str, int] = (),
        progress: Callable[[int], object] | bool | None = None,
        threads: int | None = None,
        **reading: Unpack[Reading],
    ) -> ChunkCounts:
        """Count the parts, and add up the counts in proportion to the weights.

        Parameters
        ----------
        pattern, normalization, special_tokens, threads: as in `ChunkCounts.count`.
        freq_cutoff: leave out chunks that occur fewer times in a part.
        {reading}
        sample, seed and limit_bytes apply to each part.
        progress: as in `ChunkCounts.count`, for each part.

        """
        split = split_given(pattern, normalization)
        return self.mixed(split, freq_cutoff, special_tokens, progress, threads, reading)[0]

    def mixed(
        self,
        split: Split | None = None,
        freq_cutoff: int = 1,
        special_tokens: Sequence[str] | Mapping[str, int] = (),
        progress: Callable[[int], object] | bool | None = None,
        threads: int | None = None,
        reading: Reading | None = None,
    ) -> tuple[ChunkCounts, dict[str, float]]:
        """Return the counts of the mixture, and the normalized weight of each part; see `count`."""
        check_integer("freq_cutoff", freq_cutoff)
        given: list[tuple[str, Any]] = sorted(self.parts.items())  # any order gives the same result
        corpora = {
            name: Corpus.of(None if self.are_files else part, None, part if self.are_files else None, reading or {})
            for name, part in given
            if not self.weights or self.weights[name]
        }
        for corpus in corpora.values():
            corpus.sources  # noqa: B018  a missing file is an error before anything is read
        counts: dict[str, ChunkCounts] = {}
        for name, corpus in corpora.items():
            if corpus.counts_folder:  # may contain far more rare chunks than fit into memory
                loaded = ChunkCounts.load(corpus.counts_folder, freq_cutoff=freq_cutoff)
                corpus = Corpus.of(loaded, None, None, reading or {})
            counts[name] = count_corpus(corpus, split, special_tokens, progress, threads).at_least(freq_cutoff)
        _check_parts(counts)
        sizes = {name: each.total_bytes for name, each in counts.items()}
        weights = {
            name: float(self.weights[name]) if self.weights else float(size) ** (self.alpha or 0)
            for name, size in sizes.items()
        }
        factors = factors_of(sizes, weights)
        scaled = ((*each.arrays[:2], each.arrays.counts * np.uint64(factors[name])) for name, each in counts.items())
        mixed = ChunkCounts(ChunkArrays(*added_up(scaled, threads), next(iter(counts.values())).split))
        total = fsum(weights.values())
        return mixed, {name: weight / total for name, weight in weights.items()}


def factors_of(sizes: Mapping[str, int], weights: Mapping[str, float]) -> dict[str, int]:
    """Return the number by which the counts of each part are multiplied, from their sizes in bytes and their weights.

    The smallest factor is about `LEAST_FACTOR`, so that rounding hardly changes the weights. It is smaller if the
    mixture would exceed `MAX_BYTES`, or if the factors have a common divisor.

    >>> factors_of({"en": 300, "de": 100}, {"en": 0.5, "de": 0.5})
    {'en': 1, 'de': 3}
    """
    exact = {name: Fraction(weights[name]) / size for name, size in sizes.items()}
    scale = min(LEAST_FACTOR / min(exact.values()), MAX_BYTES / sum(map(Fraction, weights.values())))
    factors = {name: max(1, round(scale * factor)) for name, factor in exact.items()}
    divisor = gcd(*factors.values())
    return {name: factor // divisor for name, factor in factors.items()}


def _check_parts(counts: Mapping[str, ChunkCounts]) -> None:
    """Raise unless all parts have chunks and were counted in the same way."""
    first, split = next((name, each.split) for name, each in counts.items())
    for name, each in counts.items():
        if not each.unique:
            raise DataError(f"part {name} contains no chunks", remedy="remove it, or lower the cutoff")
        if each.split != split:
            problem = f"{first} was counted with the pattern {split}, but {name} with {each.split}"
            raise DataError(problem, remedy="count the parts of a mixture with the same pattern")


def _parsed(path: Path) -> Any:
    """Parse a mixture file. Scalars in YAML stay strings, so that `no` is Norwegian and not False."""
    if path.suffix.lower() == ".json":
        return parse_json(path.read_bytes(), object_pairs_hook=with_unique_keys)
    try:
        import yaml
    except ImportError:
        raise ImportError("YAML files require PyYAML; run pip install 'batchbpe[yaml]', or use a .json file") from None

    class Loader(yaml.BaseLoader):  # type: ignore[misc]  # it constructs strings, lists and dicts only
        def construct_mapping(self, node: Any, deep: bool = False) -> dict[str, Any]:
            pairs = self.construct_pairs(node, deep)
            if not all(isinstance(key, str) for key, _ in pairs):
                raise DataError("keys must be strings", where=f"line {node.start_mark.line + 1}")
            return with_unique_keys(pairs)

    try:
        return yaml.load(path.read_bytes(), Loader)
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise DataError(f"invalid YAML ({error.problem})", where=line) from None
    except (yaml.YAMLError, RecursionError):
        raise DataError("invalid YAML", remedy=f"see {page('mixtures')}") from None


def _checked(field: str, value: Any, *known: str) -> dict[str, Any]:
    """Raise unless a field is a mapping, with no other fields than those known, if any are. "" is the whole file."""
    where = f'field "{field}"' if field else ""
    if not isinstance(value, dict) or not value:
        raise DataError("must be a mapping that is not empty", where=where, remedy=f"see {page('mixtures')}")
    unknown = next((name for name in value if known and name not in known), None)
    if unknown is not None:
        raise DataError(f"must only contain {' and '.join(known)}, got {short(unknown)}", where=where)
    return value


def _number(field: str, value: Any) -> float:
    """Return a number, which YAML has read as a string."""
    is_scalar = isinstance(value, str | int | float)  # the repr of anything else may be huge
    try:
        return float(value if is_scalar and not isinstance(value, bool) else "")
    except (ValueError, OverflowError):
        shown = f", got {short(value)}" if is_scalar else ""
        raise DataError(f"must be a number{shown}", where=f'field "{field}"') from None


def _locations(field: str, value: Any, path: Path) -> list[Location]:
    """Return the files of a part."""
    given = value if isinstance(value, list) else [value]
    if not given or not all(isinstance(each, str) and each for each in given):
        raise DataError("must be a path, or a list of paths", where=f'field "{field}"')
    parent = str(path.parent)
    folders = [
        escape(parent) if has_magic(each) else parent for each in given
    ]  # if the folder's name looks like a glob
    paths = [
        each if re.match(URL, each) else os.path.join(folder, os.path.expanduser(each))  # noqa: PTH111, PTH118  as in files_at
        for folder, each in zip(folders, given, strict=True)
    ]
    try:
        return [location for each in paths for location in files_at(each)]
    except OSError as error:
        raise type(error)(f'{path}, field "{field}": {error}') from None

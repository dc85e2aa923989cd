"""The search for a mixture: which weights to try next, given what was found with others.

The first weights are α-smoothed: proportional to sizeᵅ. Random points around them follow, then smaller steps from the
best points found. What is tried depends on the results alone, not on how many vocabularies are trained at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..analysis.metrics import gini
from ..choices import Objective
from ..util.lazy import lazy

ALPHAS = (1.0, 0.0, 0.5, 0.75, 0.25)
"""The first weights to try. 1 is plain addition, the reference."""
ROUND = 16
"""Number of mixtures that are chosen at once."""
EXPLORED = 0.4
"""Fraction of the mixtures that are tried before the search continues from the best ones."""
SPREAD = 0.7
"""Standard deviation of the logarithm of a weight around an α-smoothed one."""
STEPS = (0.3, 0.03)
"""The same, for steps from a good mixture: at the start and at the end of the search."""
TILTS = (-2.0, 8.0)
"""How much more weight a group gets if it is expensive: the power of its cost, at least and at most."""
EQUALIZING: tuple[Objective, ...] = ("worst", "gini")
"""Objectives that are better if costs are more equal."""
DECIMALS = 6
"""Weights are rounded, so that the numbers in the tables reproduce the vocabularies."""

Weights = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Trial:
    """The result of a vocabulary that was trained on a mixture.

    >>> trial = Trial(1, 300, {"de": 0.5, "en": 0.5}, {"de": 30, "en": 20}, {"de": 3.0, "en": 1.0}, 2.5)
    >>> trial.total, trial.worst, trial.gini
    (50, 'de', 0.25)
    """

    number: int
    vocab_size: int
    weights: Mapping[str, float]
    tokens: Mapping[str, int]
    """Number of tokens of the held-out text of each group."""
    costs: Mapping[str, float]
    """Tokens per unit of text of each group."""
    bytes_per_token: float
    """Mean over the groups, so that each counts the same."""

    @property
    def total(self) -> int:
        """Number of tokens of all groups."""
        return sum(self.tokens.values())

    @property
    def worst(self) -> str:
        """The group with the highest cost."""
        return max(self.costs, key=lambda group: self.costs[group])

    @lazy
    def gini(self) -> float:
        """Gini coefficient of the costs."""
        return gini(list(self.costs.values()))


OBJECTIVES: Mapping[Objective, Callable[[Trial], float]] = {
    "total": lambda trial: trial.total,
    "worst": lambda trial: trial.costs[trial.worst],
    "gini": lambda trial: trial.gini,
    "bytes-per-token": lambda trial: -trial.bytes_per_token,
}
"""What is minimized."""


def of_size(trials: Iterable[Trial], vocab_size: int) -> list[Trial]:
    """Return the trials with a vocabulary size."""
    return [trial for trial in trials if trial.vocab_size == vocab_size]


def ranked(trials: Sequence[Trial], objective: Objective) -> list[Trial]:
    """Sort trials by an objective, best first."""
    return sorted(trials, key=lambda trial: (OBJECTIVES[objective](trial), trial.number))


def pareto_front(trials: Sequence[Trial]) -> list[Trial]:
    """Return the trials to which no other is preferable in both total and Gini coefficient, ordered by total."""
    front: list[Trial] = []
    for trial in sorted(trials, key=lambda each: (each.total, each.gini)):
        if not front or trial.gini < front[-1].gini or (trial.total, trial.gini) == (front[-1].total, front[-1].gini):
            front.append(trial)
    return front


class Search:
    """Chooses the weights to try.

    >>> search = Search({"en": 3000, "de": 1000}, trials=2, objective="total", seed=0)
    >>> search.propose([])
    [{'en': 0.75, 'de': 0.25}, {'en': 0.5, 'de': 0.5}]
    >>> search.propose([])
    []
    """

    def __init__(self, sizes: Mapping[str, int], trials: int, objective: Objective, seed: int) -> None:
        """Start the search.

        Parameters
        ----------
        sizes: size of each group in bytes.
        trials: number of mixtures to propose in total.
        objective: what to optimize.
        seed: random seed.

        """
        self._groups, self._log_sizes = list(sizes), np.log(list(sizes.values()))
        self._trials, self._objective, self._done = trials, objective, 0
        self._random = np.random.default_rng(seed)

    def propose(self, trials: Sequence[Trial]) -> list[dict[str, float]]:
        """Return the weights to try next, given the results so far, or an empty list at the end of the search."""
        number = min(ROUND, self._trials - self._done)
        sizes = list(dict.fromkeys(trial.vocab_size for trial in trials))
        by_size = [of_size(trials, size) for size in sizes]
        points = [self._point(index, by_size) for index in range(self._done, self._done + number)]
        self._done += number
        return [self._weights(point) for point in points]

    def best(self, trials: Sequence[Trial], number: int) -> list[Trial]:
        """Return the best trials, and those on the Pareto front."""
        return [*ranked(trials, self._objective)[:number], *pareto_front(trials)]

    def _point(self, index: int, by_size: Sequence[Sequence[Trial]]) -> Weights:
        """Return the logarithms of weights, up to a constant."""
        if index < len(ALPHAS):
            return ALPHAS[index] * self._log_sizes
        explored = EXPLORED * self._trials
        if not by_size or index < explored:
            return self._random.random() * self._log_sizes + self._noise(SPREAD)
        trials = by_size[index % len(by_size)]
        # Half of the steps start from the best mixture, the others from the front, to find all of it.
        front = pareto_front(trials)
        is_best, other = self._random.random() < 0.5, self._random.integers(len(front))
        start = ranked(trials, self._objective)[0] if is_best else front[other]
        costs = np.log([start.costs[group] for group in self._groups])
        # More of what is expensive makes costs more equal, which other objectives do not ask for.
        is_tilted = self._objective in EQUALIZING or not is_best
        tilt: Weights = (self._random.uniform(*TILTS) if is_tilted else 0.0) * (costs - costs.mean())
        first, last = STEPS
        spread = first * (last / first) ** ((index - explored) / (self._trials - explored))
        weights: Weights = np.log([start.weights[group] for group in self._groups])
        return weights + tilt + self._noise(spread)

    def _noise(self, spread: float) -> Weights:
        return self._random.normal(0, spread, len(self._groups))

    def _weights(self, point: Weights) -> dict[str, float]:
        weights = np.exp(point - point.max())
        rounded = np.maximum(np.round(weights / weights.sum(), DECIMALS), 10.0**-DECIMALS)
        return dict(zip(self._groups, rounded.tolist(), strict=True))

"""Paired comparison: how much the bits of each vocabulary differ from those of the first, with an interval.

Two things vary by chance: which documents were held out, and the seed, which determines the initial parameters and the
order of the documents. Documents are resampled (a bootstrap), the same ones for all vocabularies. Two or three seeds
are too few to resample: that would underestimate their variance by a half or a third. Their noise is estimated from
all vocabularies together, as in an analysis of variance with seeds as blocks, and added to every resample as a
t-distributed number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

Bits = npt.NDArray[np.float64]
Verdict = Literal["reference", "better", "worse", "cannot be told apart"]
LEVEL = 0.95
"""Probability that the interval contains the true difference."""
REPETITIONS = 10_000
"""Number of times that documents are resampled."""
CELLS = 1 << 22
"""Maximum number of document counts that are drawn at a time."""


@dataclass(frozen=True)
class Difference:
    """The difference from the reference in percent, and the ends of its interval."""

    percent: float
    low: float | None = None
    high: float | None = None
    is_one_seed: bool = False
    """Whether it was measured with one seed, so that the interval does not cover the noise of seeds."""

    @property
    def kind(self) -> Verdict:
        """Whether the interval is below zero, above zero, or contains it."""
        if self.low is None or self.high is None:
            return "reference"
        return "better" if self.high < 0 else "worse" if self.low > 0 else "cannot be told apart"

    @property
    def verdict(self) -> str:
        """The kind of the difference, and whether it is of one seed.

        >>> Difference(-1.0, -2.0, -0.5).verdict, Difference(-1.0, -2.0, 0.5, True).verdict, Difference(0.0).verdict
        ('better', 'cannot be told apart (one seed)', 'reference')
        """
        return f"{self.kind} (one seed)" if self.is_one_seed else self.kind


def differences(
    bits: Sequence[Bits], *, level: float = LEVEL, repetitions: int = REPETITIONS, seed: int = 0
) -> list[Difference]:
    """Compare vocabularies with the first one.

    Parameters
    ----------
    bits: for each vocabulary, the bits of each held-out document, in one row for each seed. The documents and the
        seeds are the same for all vocabularies.
    level: probability that an interval contains the true difference.
    repetitions, seed: how often documents are resampled, and the random seed for it.

    With a single seed, the interval does not cover the noise of seeds, and the verdict says so.

    >>> first = np.array([[10.0, 20.0, 30.0], [11.0, 20.0, 31.0]])
    >>> differences([first, 0.9 * first])[1]
    Difference(percent=-10.0, low=-10.0, high=-10.0, is_one_seed=False)

    """
    totals = np.array([each.sum(1) for each in bits])  # by vocabulary and seed
    by_document = np.array([each.mean(0) for each in bits])
    means = by_document.sum(1)
    generator = np.random.default_rng(seed)
    resampled = _resampled(by_document, repetitions, generator)
    spread, freedom = seed_noise(totals)
    documents = by_document.shape[1]
    correction = np.sqrt(documents / (documents - 1)) if documents > 1 else 1.0
    found = [Difference(0.0)]
    for index in range(1, len(bits)):
        log_ratio = np.log(means[index] / means[0])
        # Resamples vary a little less than new documents would.
        draws = log_ratio + correction * (np.log(resampled[index] / resampled[0]) - log_ratio)
        if freedom:
            noise = generator.standard_t(freedom, repetitions) * spread * np.sqrt(2 / totals.shape[1])
            draws = draws + noise
        low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
        change, low, high = (round(float(100 * np.expm1(each)), 9) for each in (log_ratio, low, high))
        found.append(Difference(change, low, high, is_one_seed=totals.shape[1] == 1))
    return found


def seed_noise(totals: Bits) -> tuple[float, int]:
    """Return the relative standard deviation that is due to the seed, and its degrees of freedom.

    `totals` has a row for each vocabulary and a column for each seed. What a seed changes for all vocabularies cancels
    in a paired difference, so it is not part of the noise.

    >>> seed_noise(np.array([[100.0, 200.0], [110.0, 220.0]]))
    (0.0, 1)
    """
    vocabularies, seeds = totals.shape
    freedom = (vocabularies - 1) * (seeds - 1)
    if not freedom:
        return 0.0, 0
    logs = np.log(totals)
    residuals = logs - logs.mean(0) - logs.mean(1, keepdims=True) + logs.mean()
    return float(np.sqrt((residuals.round(12) ** 2).sum() / freedom)), freedom


def _resampled(by_document: Bits, repetitions: int, generator: np.random.Generator) -> Bits:
    """Return the total of each vocabulary for each resample of the documents."""
    documents = by_document.shape[1]
    uniform = np.full(documents, 1 / documents)
    parts = []
    for start in range(0, repetitions, at_once := max(1, CELLS // documents)):
        counts = generator.multinomial(documents, uniform, size=min(at_once, repetitions - start))
        parts.append(by_document @ counts.T)
    return np.concatenate(parts, axis=1)


def at_flops(flops: Sequence[float], bits: Bits, wanted: float) -> Bits | None:
    """Interpolate the bits of each document, which are rows for each evaluation, at a number of operations.

    The three evaluations that are closest determine a parabola over the logarithm of the operations. Return None
    outside of what was measured.

    >>> at_flops([100, 200, 400], np.array([[8.0, 9.0], [6.0, 9.0], [5.0, 9.0]]), 200).tolist()
    [6.0, 9.0]
    """
    tolerance = 1e-9 * wanted
    if not flops[0] - tolerance <= wanted <= flops[-1] + tolerance:
        return None
    distances = np.log(np.array(flops) / wanted)
    nearest = np.sort(np.argsort(np.abs(distances), kind="stable")[:3])
    found: Bits = np.zeros(bits.shape[1])
    for each in nearest:
        others = distances[nearest[nearest != each]]
        found += np.prod(others / (others - distances[each])) * bits[each]
    return found

"""The linear program of mixture inference: the weights of groups that explain the order of merges best.

A row says that a merge occurs at least as often as a rival, a pair that could have been merged instead:

    Σ weight(group) · (rate of the merge − rate of the rival) + slack(merge) + slack(rival) ≥ 0

The weights are at least 0 and add up to 1. The sum of all slacks, which are at least 0, is minimized. Rows are added
when they are violated, and the solver continues from its last solution.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import DataError

Pair = tuple[int, int]
Rates = npt.NDArray[np.float64]
"""How often pairs occur per million bytes of each group: a row per pair, a column per group."""
ROUNDING = 1e-7
"""Slacks up to the tolerance of the solver are 0."""
INTERRUPTIBLE = 0.1
"""Seconds after which Ctrl-C stops the solver."""
LONGEST_STEP = 10.0
"""Seconds to wait for the solver to stop, which it does after the current iteration. Python could crash at exit if it
still ran."""


def solver() -> Any:
    """Return the module of the solver, which is an optional dependency."""
    try:
        import highspy
    except ImportError:
        raise ImportError("mixture inference requires highspy; run pip install 'batchbpe[solver]'") from None
    return highspy


class OrderProgram:
    """The rows so far, and the solution of the last `solve`."""

    def __init__(self, groups: int) -> None:
        """Create a program without rows, whose solution is equal weights."""
        highspy = solver()
        self._highs, self._inf = highspy.Highs(), highspy.kHighsInf
        self._optimal = highspy.HighsModelStatus.kOptimal
        self._highs.setOptionValue("output_flag", False)
        self._highs.setOptionValue("threads", 1)
        self._highs.setOptionValue("presolve", "off")  # saves no time here, and cannot be interrupted
        self._highs.HandleUserInterrupt = True
        self._groups = groups
        self._columns = groups
        ones = np.ones(groups)
        self._highs.addVars(groups, np.zeros(groups), ones)
        self._highs.addRow(1, 1, groups, np.arange(groups, dtype=np.int32), ones)
        self._of_merge: dict[int, int] = {}
        self._of_rival: dict[Pair, int] = {}
        self._values: Rates = ones / groups
        self.rows = 0
        """Number of rows that compare a merge with a rival."""

    @property
    def weights(self) -> Rates:
        """The weight of each group."""
        weights = np.clip(self._values[: self._groups], 0, 1)  # the solver allows a tiny violation
        return np.asarray(weights / weights.sum())

    @property
    def merge_slacks(self) -> Mapping[int, float]:
        """The slacks of merges, by their position, where they are not 0."""
        return self._slacks(self._of_merge)

    @property
    def rival_slacks(self) -> Mapping[Pair, float]:
        """The slacks of rivals, where they are not 0."""
        return self._slacks(self._of_rival)

    def _slacks(self, columns: Mapping[Any, int]) -> dict[Any, float]:
        slacks = {key: float(self._values[column]) for key, column in columns.items() if column < len(self._values)}
        return {key: slack for key, slack in slacks.items() if slack > ROUNDING}

    def add(self, differences: Rates, merges: Sequence[int], rivals: Sequence[Pair]) -> None:
        """Add rows: the rate of each merge minus that of its rival, the position of the merge, and the rival."""
        rows, size = len(differences), self._groups + 2
        columns, before = np.empty((rows, size), np.int32), self._columns
        columns[:, : self._groups] = np.arange(self._groups)
        columns[:, -2] = [self._of_merge.setdefault(merge, self._new(self._of_merge, merge)) for merge in merges]
        columns[:, -1] = [self._of_rival.setdefault(rival, self._new(self._of_rival, rival)) for rival in rivals]
        new = self._columns - before
        none: Any = np.zeros(0, np.int32)
        upper = np.full(new, self._inf)
        self._highs.addCols(new, np.ones(new), np.zeros(new), upper, 0, np.zeros(new, np.int32), none, np.zeros(0))
        values = np.concatenate([differences, np.ones((rows, 2))], axis=1)
        starts = np.arange(0, rows * size, size, dtype=np.int32)
        upper = np.full(rows, self._inf)
        self._highs.addRows(rows, np.zeros(rows), upper, rows * size, starts, columns.ravel(), values.ravel())
        self.rows += rows

    def _new(self, columns: Mapping[Any, int], key: Any) -> int:
        """Return the number of the next column if `key` has none."""
        if key in columns:
            return columns[key]
        self._columns += 1
        return self._columns - 1

    def solve(self) -> None:
        """Minimize the sum of the slacks. Ctrl-C stops the solver."""
        try:
            self._highs.startSolve()
            while not self._highs.wait(INTERRUPTIBLE)[0]:
                pass
        except BaseException:
            self._highs.cancelSolve()
            self._highs.wait(LONGEST_STEP)
            raise
        status = self._highs.getModelStatus()
        if status != self._optimal:
            name = self._highs.modelStatusToString(status)
            raise DataError(f"the solver found no optimal weights ({name})", remedy="use fewer merges, or other groups")
        self._values = np.array(self._highs.getSolution().col_value)

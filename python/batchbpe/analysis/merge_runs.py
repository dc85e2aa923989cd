"""Whether a vocabulary was trained in batches, judging by the order of its merges alone.

In a safe batch, no merge uses a token that the batch makes, and no two merges can overlap. Cutting the merges greedily
into the longest such runs therefore gives longer runs if they were made in batches. In a vocabulary trained one pair at
a time, the mean length of the runs grows with about the cube root of the number of merges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import DataError
from ..formats import Loadable, load_any
from ..model import Model
from .tables import Table, Tabular

Pairs = Sequence[tuple[int, int]]
MAX_MERGES = 4096
"""Number of merges that are examined, from the first one: later ones add little."""
MIN_MERGES = 500
"""From fewer merges, nothing is concluded."""
THRESHOLD = 1.9
"""Scores above this are a sign of batches.

https://batchbpe.github.io/batchbpe/mixture-inference.html has the error rates.
"""


@dataclass(frozen=True)
class BatchingSigns(Tabular):
    """What the order of merges says about batches; see `batching_signs`."""

    merges: int
    """Number of merges examined."""
    mean_run: float
    """Mean number of consecutive merges that could be one safe batch. 0 if there are no merges."""
    score: float
    """`mean_run` divided by the cube root of `merges`. 0 if there are no merges."""
    in_batches: bool | None
    """Whether the score exceeds the threshold. None if there are too few merges to tell.

    False does not exclude batches of a few pairs, nor policies with nearly the order of `serial`, such as `exact`.
    """

    def tables(self) -> list[Table]:
        """Return the figures and the conclusion."""
        conclusion = {True: "yes", False: "no", None: f"fewer than {MIN_MERGES} merges"}[self.in_batches]
        rows = [
            ["merges examined", f"{self.merges:,}"],
            ["mean run", f"{self.mean_run:,.3f}"],
            ["score", f"{self.score:,.3f}"],
            [f"in batches (score above {THRESHOLD})", conclusion],
        ]
        return [(["order of merges", ""], rows)]


def batching_signs(tokenizer: Loadable) -> BatchingSigns:
    """Measure signs that a vocabulary was trained in batches: that of a tokenizer, a model, or a path.

    >>> batching_signs(Tokenizer.train("aaabdaaabac", 259))
    BatchingSigns(merges=3, mean_run=1.0, score=0.693, in_batches=None)
    """
    model = load_any("tokenizer", tokenizer)
    pairs = merge_sequence(model)[:MAX_MERGES]
    mean = len(pairs) / len(longest_runs(pairs, 256 + len(model.stop_words))) if pairs else 0.0
    score = mean / len(pairs) ** (1 / 3) if pairs else 0.0
    is_enough = len(pairs) >= MIN_MERGES
    return BatchingSigns(len(pairs), round(mean, 3), round(score, 3), score > THRESHOLD if is_enough else None)


def merge_sequence(model: Model) -> list[tuple[int, int]]:
    """Return the pairs that a model merges, in order of rank, with the ids that training would give.

    These are 0 to 255 for bytes, and consecutive ids after the stop words for merges, whatever the ids of the model.

    >>> merge_sequence(Model(split=r"\\w+", merges={(97, 98): 300, (300, 99): 290}))
    [(97, 98), (256, 99)]
    """
    ids = {token: byte for byte, token in enumerate(model.byte_ids) if token is not None}
    pairs: list[tuple[int, int]] = []
    for number, ((first, last), token) in enumerate(model.merges.items(), start=256 + len(model.stop_words)):
        missing = next((part for part in (first, last) if part not in ids), None)
        if missing is not None:
            reason = f"merge {len(pairs)}, ({first}, {last}), uses token {missing} before it is made"
            raise DataError(reason, remedy="use a vocabulary whose merges are in the order of training")
        ids[token] = number
        pairs.append((ids[first], ids[last]))
    return pairs


def run_end(pairs: Pairs, start: int, first_id: int) -> int:
    """Return where the longest run that could be one safe batch ends. `first_id` is the id that the first merge makes.

    >>> run_end([(97, 98), (99, 100), (256, 101)], 0, 256)
    2
    """
    firsts: set[int] = set()
    lasts: set[int] = set()
    for index in range(start, len(pairs)):
        first, last = pairs[index]
        if max(first, last) >= first_id + start or first in lasts or last in firsts:
            return index if index > start else start + 1
        firsts.add(first)
        lasts.add(last)
    return len(pairs)


def longest_runs(pairs: Pairs, first_id: int) -> list[int]:
    """Return where each run starts if merges are cut, from the first one, into the longest runs.

    >>> longest_runs([(97, 98), (99, 100), (256, 101), (98, 99)], 256)
    [0, 2]
    """
    starts: list[int] = []
    start = 0
    while start < len(pairs):
        starts.append(start)
        start = run_end(pairs, start, first_id)
    return starts

"""Leaf pruning (arXiv 2512.03989): remove the rarest tokens that nothing is merged from."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

from ..errors import ArgumentError, ArgumentTypeError, DataError
from .surgery import checked_size, reduced

if TYPE_CHECKING:
    from . import Model


def pruned(model: Model, n: int, counts: Any) -> Model:
    """Remove the rarest leaves: see `Model.pruned`."""
    n = checked_size(model, n)
    frequencies = _frequencies(model, counts)
    pairs = {token: pair for pair, token in model.merges.items()}
    uses = Counter(chain.from_iterable(pairs.values()))
    kept = {*chain.from_iterable(model.phrases), *model.found_tokens.values(), *model.hidden}
    leaves = [(frequencies[token], -token) for token in pairs if not uses[token] and token not in kept]
    heapq.heapify(leaves)
    removed: set[int] = set()
    while model.vocab_size - len(removed) > n:
        if not leaves:
            reason = f"must be at least {model.vocab_size - len(removed)}, since only merges can be removed"
            raise ArgumentError("n", n, reason)
        frequency, leaf = heapq.heappop(leaves)
        removed.add(-leaf)
        todo = [*pairs[-leaf]]
        while todo:
            part = todo.pop()
            if part in model.hidden:
                todo += pairs[part]
            else:
                frequencies[part] += frequency
        todo = [*pairs[-leaf]]
        while todo:  # only now, since a leaf in the heap must have its final count
            part = todo.pop()
            uses[part] -= 1
            if not uses[part] and part in model.hidden:
                todo += pairs[part]
            elif not uses[part] and part in pairs and part not in kept:
                heapq.heappush(leaves, (frequencies[part], -part))
    merges = {pair: token for pair, token in model.merges.items() if token not in removed}
    return reduced(model, merges, model.hidden, removed, {"operation": "pruned", "n": n})


def _frequencies(model: Model, counts: Any) -> list[int]:
    """Return how often each id occurs in the text that was counted, up to the largest id."""
    import numpy as np  # not above, because every command would import it

    frequencies = np.zeros(model.next_id, np.uint64)
    if isinstance(counts, Mapping) and hasattr(counts, "arrays"):  # ChunkCounts, which is above this layer
        if counts.split != model.split:  # type: ignore[attr-defined]
            raise DataError(f"the counts were made with the pattern {counts.split}, but the model has {model.split}")  # type: ignore[attr-defined]
        ids, sizes = model.encoder().encode_chunks(counts.arrays.data, counts.arrays.offsets, None)
        np.add.at(frequencies, ids, np.repeat(counts.arrays.counts, sizes))
    else:
        given = np.asarray(counts)
        if given.ndim != 1 or given.dtype.kind not in "iu" or len(given) > len(frequencies) or (given < 0).any():
            reason = "must be chunk counts, or how often each id occurs, as an array"
            raise ArgumentTypeError("counts", counts, reason, remedy="use ChunkCounts.count")
        frequencies[: len(given)] = given
    found: list[int] = frequencies.tolist()
    return found

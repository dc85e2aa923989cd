"""The certificate behind `bound`: prices of byte positions → a number of tokens that no vocabulary can undercut.

Each byte position k of each unique chunk has a price z_k ≥ 0. A token that covers the positions i to j of a chunk saves
j − i − 1 tokens, and the prices of these positions pay for a part. What remains, or 0, is the token's gain there. Its
gains in all chunks, multiplied by the counts of the chunks, are its value P_t. Then any K tokens and any segmentation
need at least

    Σ bytes − Σ count · z − (sum of the K largest P_t)

tokens: a segmentation saves Σ (length − 1) over its tokens, and its tokens do not overlap, so that the prices pay at
most Σ count · z of it, and the gains of at most K tokens the rest. This holds for any prices. Good prices, which
`bound_solver` searches for, only make the bound tight.

Prices are integers in units of 2^-bits, and all sums are integers below 2^53, even those in floating point. So nothing
is rounded but the result: up, since a number of tokens is an integer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..counts import ChunkCounts
from ..errors import DataError

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

MAX_BITS = 16
"""Precision of prices: finer units improve the bound by less than a millionth."""
TOO_LARGE = "the counts are too large for an exact bound"


class Chunks:
    """The chunks that have prices, one after the other, and the number of tokens of those that have none.

    A chunk without prices counts as one token, which it needs in any case. These are the longest and rarest chunks: a
    chunk has a number of substrings proportional to the square of its length.

    >>> chunks = Chunks(ChunkCounts.count("to be or not to be"), max_edges=9)
    >>> chunks.data.tobytes(), chunks.counts.tolist(), chunks.others
    (b' be orto', [2, 1, 1], 2)
    """

    def __init__(self, counts: ChunkCounts, max_edges: int) -> None:
        """Choose the chunks: those whose bytes occur most often for each of their substrings of several bytes."""
        if counts.total_bytes.bit_length() > 52:
            raise DataError(TOO_LARGE, remedy="use a sample of the data")
        lengths, frequencies = counts.chunk_bytes, counts.arrays.counts.astype(np.int64)
        order = np.lexsort((np.arange(len(lengths)), lengths / np.maximum(frequencies, 1)))
        edges = np.cumsum(lengths[order] * (lengths[order] - 1) // 2)
        chosen = np.sort(order[edges <= max_edges])
        self.counts, self.lengths = frequencies[chosen], lengths[chosen]
        self.others = int(frequencies.sum() - self.counts.sum())
        self.firsts: Ints = np.cumsum(self.lengths) - self.lengths
        within = np.arange(self.lengths.sum()) - np.repeat(self.firsts, self.lengths)
        self.data = counts.arrays.data[np.repeat(counts.arrays.offsets[chosen], self.lengths) + within]
        self.ends: Ints = np.repeat(self.firsts + self.lengths, self.lengths)
        """Where the chunk of each position ends."""
        self.weights: Ints = np.repeat(self.counts, self.lengths)
        """How often the chunk of each position occurs."""
        self.bytes = int(self.weights.sum())
        # A value is at most the sum, over all positions, of the count times the length of the rest of the chunk.
        self.longest = int(self.lengths.max(initial=1))
        largest = self.bytes * self.longest
        self.bits = min(MAX_BITS, 52 - largest.bit_length())
        if self.bits < 0:
            raise DataError(TOO_LARGE, remedy="use a sample of the data")


@dataclass(frozen=True)
class Tokens:
    """Tokens and every place where they occur (an edge), in order of position and length."""

    starts: Ints
    lengths: Ints
    ids: Ints
    """The index of the token of each edge."""
    values: Floats
    """P_t of each token, an integer in units of prices."""


def valuable_tokens(chunks: Chunks, prices: Ints, threshold: int) -> Tokens:
    """Return all tokens of at least two bytes whose value is greater than the threshold.

    Tokens are extended byte by byte. `reach` bounds the gains of all extensions of a token in its places: if their sum
    is not above the threshold, neither the token nor any extension of it is, so that it is not extended.

    >>> chunks = Chunks(ChunkCounts.count("to be or not to be"), max_edges=100)
    >>> tokens = valuable_tokens(chunks, np.zeros(len(chunks.data), np.int64), threshold=2 << chunks.bits)
    >>> (tokens.values / (1 << chunks.bits)).tolist()  # of " be" and " not"
    [4.0, 3.0]
    """
    unit = 1 << chunks.bits
    sums: Ints = np.concatenate([[0], np.cumsum(unit - prices)])
    reach = _largest_ahead(chunks, sums)
    starts: Ints = np.arange(len(chunks.data))
    ids: Ints = chunks.data.astype(np.int64)
    found: list[tuple[Ints, Ints, Ints]] = []
    values: list[Floats] = []
    number = 0
    for length in range(2, chunks.longest + 1):
        fits = starts + length <= chunks.ends[starts]
        starts, ids = starts[fits], ids[fits]
        unique, ids = np.unique(ids * 256 + chunks.data[starts + length - 1], return_inverse=True)
        base, weights = sums[starts] + unit, chunks.weights[starts]
        attainable = np.maximum(reach[starts + length - 1] - base, 0)
        extended = np.bincount(ids, attainable * weights, len(unique)) > threshold
        kept = extended[ids]
        starts, ids, base, weights = starts[kept], (np.cumsum(extended) - 1)[ids[kept]], base[kept], weights[kept]
        if not len(starts):
            break
        value = np.bincount(ids, np.maximum(sums[starts + length] - base, 0) * weights).astype(np.float64)
        chosen = value > threshold
        places = chosen[ids]
        new_ids = (np.cumsum(chosen) - 1 + number)[ids[places]]
        found.append((starts[places], np.full(len(new_ids), length), new_ids))
        values.append(value[chosen])
        number += len(values[-1])
    if not found:
        nothing = np.zeros(0, np.int64)
        return Tokens(nothing, nothing, nothing, np.zeros(0))
    all_starts, lengths, all_ids = map(np.concatenate, zip(*found, strict=True))
    order = np.argsort(all_starts, kind="stable")
    return Tokens(all_starts[order], lengths[order], all_ids[order], np.concatenate(values))


def certified(chunks: Chunks, prices: Ints, size: int, values: Floats, threshold: int) -> int:
    """Return the bound for `size` tokens. All tokens whose values are not listed must be worth at most the threshold.

    The sum of the K largest values is at most K·θ + Σ max(0, P_t − θ) for any θ ≥ 0. With θ at least the threshold,
    tokens that are not listed add nothing to it.
    """
    assert threshold >= 0 and (prices >= 0).all(), "prices are not valid"
    slot = max(threshold, int(kth_largest(values, size)))
    excess = sum(int(value) - slot for value in values[values > slot].tolist())
    paid = int((chunks.weights * prices).sum())
    least = (chunks.bytes << chunks.bits) - paid - size * slot - excess
    return chunks.others + max(int(chunks.counts.sum()), -(-least >> chunks.bits))


def kth_largest(values: Floats, k: int) -> float:
    """Return the k-th largest value, or 0 if there are fewer.

    >>> kth_largest(np.array([3.0, 1.0, 2.0]), 2)
    2.0
    """
    return float(np.partition(values, len(values) - k)[len(values) - k]) if len(values) >= k else 0.0


def _largest_ahead(chunks: Chunks, sums: Ints) -> Ints:
    """Return, for each position, the largest of the sums after it, up to the end of its chunk."""
    largest = sums[1:].copy()
    step = 1
    while step < chunks.longest:
        # The maximum over 2·step positions, from the maxima over step positions.
        np.maximum(largest, largest[np.minimum(np.arange(len(largest)) + step, chunks.ends - 1)], out=largest)
        step *= 2
    return largest

"""`bound`: a number of tokens that no vocabulary of the same size can undercut on the same chunk counts."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any

import numpy as np

from ..arguments import check_integer, check_number
from ..counts import ChunkCounts
from ..counts.arrays import total_of
from ..errors import ArgumentError, ArgumentTypeError, DataError, UserError
from ..formats import Loadable
from ..patterns import Split
from ..tokenizer import Tokenizer
from ..util.progress import bar
from .bound_certificate import Chunks, Ints, certified, valuable_tokens
from .bound_solver import Relaxation
from .evaluator import is_plain
from .loading import loaded
from .tables import Table, Tabular, formatted, with_computed

STEPS = 50
"""Steps between two computations of the bound, which take longer than a step."""
FIRST_CANDIDATES = 40
"""The first candidates save at least 1/40 of what each of K equal tokens would save if they saved all bytes."""
CANDIDATES = 5
"""Later candidates have at least 1/5 of the value of the K-th best token. With 1/2, the search needs more steps."""

MORE = "allow more seconds (--bound-seconds, bound_seconds, max_seconds) or steps (max_steps)"


@dataclass(frozen=True)
class Bound(Tabular):
    """A certified lower bound on the number of tokens, and how it was found.

    >>> from batchbpe import ChunkCounts, Tokenizer
    >>> counts = ChunkCounts.count("to be or not to be")
    >>> found = bound(Tokenizer.train(counts, 258), counts)
    >>> found.tokens, found.encoded, found.size
    (11, 14, 2)
    """

    tokens: int
    """No `size` tokens and no segmentation encode the counts with fewer tokens."""
    size: int
    """Number of tokens besides the 256 bytes that can occur within chunks."""
    encoded: int | None
    """Number of tokens of the tokenizer on the counts, if one was given."""
    converged: bool
    """Whether the search ended because the bound rose by less than `tolerance`. If not, more steps raise it further."""
    steps: int
    """Number of steps of the search."""
    modeled: float
    """Fraction of the bytes in chunks that are modeled; each of the other chunks counts as one token."""
    seconds: float = field(compare=False)

    @property
    def above(self) -> float | None:
        """How far the tokenizer is above the bound, in percent. The best vocabulary is between the two."""
        return 100 * (self.encoded / self.tokens - 1) if self.encoded is not None else None

    def __repr__(self) -> str:
        """Return the fields, and how far the tokenizer is above the bound."""
        return with_computed(self, above=self.above)

    def tables(self) -> list[Table]:
        """Return the bound, and what the tokenizer needs if one was given."""
        (header, rows), *remedy = bounds_tables({"tokens": self})
        encoded = [["tokens of this tokenizer", f"{self.encoded:,}"], rows[-1]] if self.encoded is not None else []
        return [(header, [*rows[:-1], *encoded]), *remedy]


def bound(
    tokenizer_or_size: Loadable | int,
    counts: ChunkCounts,
    *,
    tolerance: float = 5e-4,
    max_steps: int = 1000,
    max_seconds: float | None = None,
    max_edges: int = 8_000_000,
    progress: bool = False,
) -> Bound:
    """Bound the number of tokens that any vocabulary of the same size needs to encode these counts.

    The bound is valid whenever the search ends; more steps make it tighter. It is the same for any number of threads,
    since only one is used. See https://batchbpe.github.io/batchbpe/bound.html.

    Parameters
    ----------
    tokenizer_or_size: a tokenizer without phrases or added tokens whose pattern is that of the counts, or its path; or
        the number of tokens besides the 256 bytes. Special tokens do not count, and neither do hidden tokens.
    counts: the bound is about these counts. Counts with a cutoff have another bound than all counts.
    tolerance: stop when 100 steps raise the bound by less than this fraction.
    max_steps: stop after this many steps.
    max_seconds: stop after about this many seconds. The result then depends on the speed of the machine.
    max_edges: model as many chunks as have this many substrings in total. Memory is at most about 300 bytes for each.
    progress: whether to display a progress bar.

    >>> from batchbpe import ChunkCounts
    >>> counts = ChunkCounts.count("to be or not to be")
    >>> [bound(size, counts).tokens for size in (0, 1, 2, 5)]
    [18, 14, 11, 6]

    """
    started = time.perf_counter()
    _check(counts, tolerance, max_steps, max_seconds, max_edges)
    encoded = None
    if isinstance(tokenizer_or_size, int | Real):
        check_integer("tokenizer_or_size", tokenizer_or_size, least=0)
        size = int(tokenizer_or_size)
    else:
        tokenizer = loaded("tokenizer_or_size", tokenizer_or_size)
        size, encoded = multi_byte_tokens(tokenizer), encoded_length(tokenizer, counts)

    def result(tokens: int, converged: bool, steps: int, modeled: float) -> Bound:
        return Bound(tokens, size, encoded, converged, steps, modeled, time.perf_counter() - started)

    if size == 0 or size >= np.count_nonzero(counts.chunk_bytes > 1):  # every token is a byte; or a chunk
        return result(counts.total if size else counts.total_bytes, True, 0, 1.0)
    deadline = math.inf if max_seconds is None else started + max_seconds
    with bar("bounding", max_steps, show=progress) as update:
        update(0, "finding candidates")
        search = _Search(Chunks(counts, max_edges), size)
        while search.steps < max_steps and search.gain >= tolerance and time.perf_counter() < deadline:
            search.round(min(STEPS, max_steps - search.steps), deadline)
            used = (time.perf_counter() - started) / max_seconds if max_seconds else 0.0
            update(max(search.steps, max_steps * min(1.0, used)), f"at least {search.best:,} tokens")
    return result(search.best, search.gain < tolerance, search.steps, search.chunks.bytes / counts.total_bytes)


def bounds(
    tokenizers: Mapping[str, Any],
    parts: Sequence[Mapping[Split, ChunkCounts]],
    max_seconds: float | None = None,
    *,
    progress: bool = False,
) -> tuple[dict[str, Bound], dict[str, str]]:
    """Return the bound of each tokenizer on the sum of the parts of a text, or why it has none.

    The parts are counted with the patterns of all tokenizers that can have a bound.

    >>> tokenizer, counts = Tokenizer.train("to be or not to be", 258), ChunkCounts.count("to be or not to be")
    >>> bounds({"mine": tokenizer}, [{counts.split: counts}])[0]["mine"].tokens
    11
    """
    texts: dict[Split, ChunkCounts] = {}
    known: dict[tuple[Split, int], Bound] = {}
    found: dict[str, Bound] = {}
    missing: dict[str, str] = {}
    for name, tokenizer in tokenizers.items():
        try:
            size, split = multi_byte_tokens(tokenizer), tokenizer.model.split
            if split not in texts:
                texts[split] = sum((part[split] for part in parts[1:]), parts[0][split])
            if (split, size) not in known:
                known[split, size] = bound(size, texts[split], max_seconds=max_seconds, progress=progress)
            found[name] = replace(known[split, size], encoded=encoded_length(tokenizer, texts[split]))
        except UserError as error:
            missing[name] = str(error) if error.parameter is None else f"the tokenizer {error.reason}"
    return found, missing


def bounds_tables(bounds: Mapping[str, Bound]) -> list[Table]:
    """Return a table with a column of each bound, and one of what to do if some have not converged."""
    rows: dict[str, list[str]] = {
        "tokens besides bytes": [f"{each.size:,}" for each in bounds.values()],
        "lower bound on tokens": [f"{each.tokens:,}" for each in bounds.values()],
        "above the bound, %": formatted(each.above for each in bounds.values()),
    }
    names = [name if each.converged else f"{name} (not converged)" for name, each in bounds.items()]
    early = [[name, MORE] for name, each in bounds.items() if not each.converged]
    return [
        (["any vocabulary of the same size", *names], [[label, *values] for label, values in rows.items()]),
        *([(["not converged", "for a higher bound"], early)] if early else []),
    ]


def multi_byte_tokens(tokenizer: object) -> int:
    """Return the number of different tokens of at least two bytes that can occur within chunks.

    >>> multi_byte_tokens(Tokenizer.train("to be or not to be", 260, special_tokens=["<s>"]))
    3
    """
    if not is_plain(tokenizer):
        raise ArgumentTypeError("tokenizer_or_size", tokenizer, "must be a Tokenizer whose encode is not overridden")
    for kind in ("phrases", "added_tokens"):
        if getattr(tokenizer, kind):
            reason = f"must not have {kind.replace('_', ' ')}, which are not within chunks"
            raise ArgumentError("tokenizer_or_size", tokenizer, reason)
    model = tokenizer.model
    if None in model.byte_ids:
        missing = f"{model.byte_ids.count(None)} bytes have no token, so that encoding leaves them out"
        raise ArgumentError("tokenizer_or_size", tokenizer, f"must have a token for each byte, but {missing}")
    return sum(len(value) > 1 for value in model.token_ids)


def encoded_length(tokenizer: Tokenizer, counts: ChunkCounts) -> int:
    """Return the number of tokens of the counts. They must have been counted with the tokenizer's pattern.

    >>> counts = ChunkCounts.count("to be or not to be")
    >>> encoded_length(Tokenizer.train(counts, 258), counts)
    14
    """
    if tokenizer.model.split != counts.split:
        raise DataError(
            f"the counts have the pattern {counts.split}, the tokenizer {tokenizer.model.split}",
            remedy="count the data with the tokenizer's pattern",
        )
    _, sizes = tokenizer.core_encoder.encode_chunks(counts.arrays.data, counts.arrays.offsets, 1)
    return total_of(counts.arrays.counts, sizes.astype(np.int64))


class _Search:
    """Rounds of steps on candidate tokens. After each round, the prices select the candidates of the next round."""

    def __init__(self, chunks: Chunks, size: int) -> None:
        self.chunks, self._size = chunks, size
        self.steps, self.gain = 0, math.inf
        self._bests = [chunks.others + int(chunks.counts.sum())]
        # Without prices, the value of a token is the number of tokens that it saves if nothing else does.
        threshold = (chunks.bytes << chunks.bits) // (FIRST_CANDIDATES * size)
        tokens = valuable_tokens(chunks, np.zeros(len(chunks.data), np.int64), threshold)
        self._relaxation = Relaxation(chunks, size, tokens)

    @property
    def best(self) -> int:
        """The largest bound so far."""
        return self._bests[-1]

    def round(self, steps: int, deadline: float) -> None:
        """Make some steps, compute the bound, and choose new candidates.

        The mean of the prices gives a better bound than the last prices, which go back and forth. But the last ones say
        which candidates the next steps need.
        """
        relaxation, unit = self._relaxation, 1 << self.chunks.bits
        done, total = self.steps, np.zeros(len(self.chunks.data))
        for _ in range(steps):
            relaxation.step()
            total += relaxation.prices
            self.steps += 1
            if time.perf_counter() > deadline:
                break
        found = self.best
        for prices in (total / (self.steps - done), relaxation.prices):
            rounded: Ints = np.rint(np.minimum(prices, self.chunks.longest) * unit).astype(np.int64)
            threshold = int(relaxation.slot_price(prices) * unit / CANDIDATES)
            tokens = valuable_tokens(self.chunks, rounded, threshold)
            found = max(found, certified(self.chunks, rounded, self._size, tokens.values, threshold))
        self._relaxation = Relaxation(self.chunks, self._size, tokens, relaxation)
        self._bests.append(found)
        if len(self._bests) > 3:  # one round may be a step back, after which new candidates are found
            self.gain = (self.best - self._bests[-3]) / self.best


def _check(counts: object, tolerance: object, max_steps: object, max_seconds: object, max_edges: object) -> None:
    if not isinstance(counts, ChunkCounts):
        raise ArgumentTypeError("counts", counts, "must be ChunkCounts", remedy="use ChunkCounts.count")
    if not counts.unique:
        raise DataError("the counts are empty", remedy="pass data that is not empty")
    check_integer("max_steps", max_steps, least=1)
    check_integer("max_edges", max_edges, least=1)
    check_number("tolerance", tolerance)
    if max_seconds is not None:
        check_number("max_seconds", max_seconds)

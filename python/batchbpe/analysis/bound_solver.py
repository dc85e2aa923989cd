"""Search for prices that make the bound tight: the linear relaxation of choosing tokens, by a first-order method.

The relaxation lets a token be chosen, and an edge (a token in a place) be used, in part: x_t and f_e from 0 to 1, with
f_e ≤ x_t, Σ x_t ≤ K, and Σ f_e ≤ 1 over the edges that cover a byte. It maximizes Σ count · (length − 1) · f_e. The
prices z of the byte positions are the dual variables of the last constraint. `Relaxation` makes steps of the
primal-dual hybrid gradient method (Chambolle and Pock 2011) with diagonal step sizes (Pock and Chambolle 2011) and
over-relaxation. A step is linear in the number of edges. Nothing here has to be exact: see `bound_certificate`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .bound_certificate import Chunks, Floats, Ints, Tokens, kth_largest

PRIMAL_STEP = 0.5
"""Primal steps are longer by this factor and dual steps shorter. 0.25 to 1 converge about equally fast."""
RELAXATION = 1.9
"""How far to move along each step. Up to 2 converges; 1.9 needs fewer steps than 1."""
FIRST_PRICE = 0.7
"""The price of all positions at the start: the fraction of the tokens that vocabularies typically save."""


class State(NamedTuple):
    """The variables of the saddle point problem."""

    flows: Floats
    chosen: Floats
    prices: Floats
    links: Floats
    """Prices of f_e ≤ x_t."""


class Relaxation:
    """The relaxation restricted to candidate tokens, and the current point.

    >>> from ..counts import ChunkCounts
    >>> from .bound_certificate import valuable_tokens
    >>> chunks = Chunks(ChunkCounts.count("to be or not to be"), max_edges=100)
    >>> relaxation = Relaxation(chunks, 1, valuable_tokens(chunks, np.zeros(len(chunks.data), np.int64), 0))
    >>> for _ in range(200):
    ...     relaxation.step()
    >>> float(relaxation.state.chosen.max().round(2))  # of " be"
    1.0
    """

    def __init__(self, chunks: Chunks, size: int, tokens: Tokens, previous: Relaxation | None = None) -> None:
        """Start with these candidates, at the point that the `previous` relaxation has reached."""
        self._chunks, self._size, self.tokens = chunks, size, tokens
        self._starts, self._ends, self._ids = tokens.starts, tokens.starts + tokens.lengths, tokens.ids
        self._weights = chunks.weights[self._starts].astype(np.float64)
        self._savings = tokens.lengths - 1.0
        self._occurrences = np.bincount(self._ids, self._weights, len(tokens.values))
        # Steps are those of the problem in which each constraint of a chunk is multiplied by the chunk's count. A
        # primal step is the inverse of the number of constraints of a variable, a dual step of variables.
        covering = self._covered(np.ones(len(self._starts)))
        self._flow_steps = PRIMAL_STEP / (tokens.lengths + 1.0)
        self._price_steps = 1 / PRIMAL_STEP / np.maximum(covering, 1)
        self._chosen_steps = PRIMAL_STEP / self._occurrences
        self._slot = 0.0
        self.state = self._first() if previous is None else self._continued(previous)

    def step(self) -> None:
        """Make one step of the method."""
        flows, chosen, prices, links = self.state
        new_flows = np.clip(flows + self._flow_steps * (self._savings - self._paid(prices) - links), 0, 1)
        demand = np.bincount(self._ids, self._weights * links, len(chosen))
        new_chosen = self._within_size(chosen + self._chosen_steps * demand)
        ahead, chosen_ahead = 2 * new_flows - flows, 2 * new_chosen - chosen
        new_prices = np.maximum(prices - self._price_steps * (1 - self._covered(ahead)), 0)
        new_links = np.maximum(links - 0.5 / PRIMAL_STEP * (chosen_ahead[self._ids] - ahead), 0)
        new = (new_flows, new_chosen, new_prices, new_links)
        self.prices = new_prices
        self.state = State(*(old + RELAXATION * (each - old) for old, each in zip(self.state, new, strict=True)))

    def slot_price(self, prices: Floats) -> float:
        """Return the value of the K-th best candidate: what one more token would save."""
        gains = np.maximum(self._savings - self._paid(prices), 0)
        values = np.bincount(self._ids, self._weights * gains, len(self.tokens.values)).astype(np.float64)
        return kth_largest(values, self._size)

    def _first(self) -> State:
        edges, number = len(self._starts), len(self.tokens.values)
        self.prices = np.full(len(self._chunks.data), FIRST_PRICE)
        chosen = np.full(number, min(1.0, self._size / max(1, number)))
        return State(np.zeros(edges), chosen, self.prices, np.zeros(edges))

    def _continued(self, previous: Relaxation) -> State:
        """Take over the variables of edges that the previous relaxation has as well."""
        self.prices = previous.prices
        old, new = previous._keys(), self._keys()
        found = np.minimum(np.searchsorted(old, new), max(0, len(old) - 1))
        known = old[found] == new if len(old) else np.zeros(len(new), np.bool_)
        flows, links = np.zeros(len(new)), np.maximum(self._savings - self._paid(self.prices), 0)
        flows[known], links[known] = previous.state.flows[found[known]], previous.state.links[found[known]]
        chosen = np.zeros(len(self.tokens.values))
        chosen[self._ids[known]] = previous.state.chosen[previous._ids[found[known]]]
        return State(flows, chosen, previous.state.prices, links)

    def _keys(self) -> Ints:
        """Return a number for each edge; the numbers are in ascending order."""
        return self._starts * (1 + self._chunks.longest) + self.tokens.lengths

    def _paid(self, prices: Floats) -> Floats:
        """Return the sum of the prices of the positions under each edge."""
        sums = np.concatenate([[0.0], np.cumsum(prices)])
        return np.asarray(sums[self._ends] - sums[self._starts])

    def _covered(self, flows: Floats) -> Floats:
        """Return the sum of the flows of the edges over each position."""
        size = len(self._chunks.data) + 1
        changes = np.bincount(self._starts, flows, size) - np.bincount(self._ends, flows, size)
        return np.asarray(np.cumsum(changes)[:-1])

    def _within_size(self, chosen: Floats) -> Floats:
        """Project onto 0 ≤ x ≤ 1 and Σ x ≤ K: subtract from each x its step times one price of a slot."""
        if np.clip(chosen, 0, 1).sum() <= self._size:
            return np.clip(chosen, 0, 1)
        low, high = 0.0, max(1.0, 2 * self._slot)
        while np.clip(chosen - self._chosen_steps * high, 0, 1).sum() > self._size:
            low, high = high, 2 * high
        for _ in range(30):
            middle = (low + high) / 2
            is_low = np.clip(chosen - self._chosen_steps * middle, 0, 1).sum() > self._size
            low, high = (middle, high) if is_low else (low, middle)
        self._slot = high
        return np.clip(chosen - self._chosen_steps * high, 0, 1)

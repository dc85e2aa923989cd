"""How `encode` samples an encoding at random: the arguments `dropout`, `sampling` and `seed`."""

from __future__ import annotations

from numbers import Real
from typing import Literal

from ..arguments import check_integer
from ..errors import ArgumentError, ArgumentTypeError, Setting

SamplingName = Literal["uniform"]
"""How an encoding is sampled, other than by dropping merges."""
Sampled = tuple[float | None, int] | None
"""The dropout, or None for uniform sampling, and the seed, as the core takes them; None for the ordinary encoding."""

_MAX_SEED = 2**64 - 1


def resolve_sampling(dropout: float | None, sampling: SamplingName | None, seed: int | None) -> Sampled:
    """Check the arguments and combine them.

    >>> resolve_sampling(0.1, None, 3), resolve_sampling(None, "uniform", 3), resolve_sampling(0, None, 3)
    ((0.1, 3), (None, 3), None)
    """
    if dropout is None and sampling is None:
        if seed is not None:
            reason = ("must be omitted unless ", Setting("dropout"), " or ", Setting("sampling"), " is given")
            raise ArgumentError("seed", seed, reason)
        return None
    if dropout is not None:
        if sampling is not None:
            raise ArgumentError("sampling", sampling, ("must be omitted if ", Setting("dropout"), " is given"))
        if isinstance(dropout, bool) or not isinstance(dropout, Real):
            raise ArgumentTypeError("dropout", dropout, "must be a number")
        if not 0 <= dropout <= 1:
            raise ArgumentError("dropout", dropout, "must be between 0 and 1")
    elif sampling != "uniform":
        raise ArgumentError("sampling", sampling, "must be 'uniform'", remedy="use dropout to drop merges")
    if seed is None:
        remedy = ("pass ", Setting("seed", 0), ", and another seed for another sample")
        raise ArgumentError("seed", seed, "must be given to sample an encoding", remedy=remedy)
    check_integer("seed", seed, least=0)
    if seed > _MAX_SEED:
        raise ArgumentError("seed", seed, f"must be at most {_MAX_SEED}")
    return None if dropout == 0 else (None if dropout is None else float(dropout), int(seed))

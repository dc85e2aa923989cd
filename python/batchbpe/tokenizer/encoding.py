"""The options of the methods that encode text, and sampling an encoding at random."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter
from itertools import pairwise
from numbers import Real
from typing import Any, Literal, TypedDict, TypeVar

import numpy as np
import numpy.typing as npt

from .._core import Encoder
from ..arguments import check_integer
from ..errors import ArgumentError, ArgumentTypeError, Setting
from ..util.surrogates import Errors
from .special import Special

SamplingName = Literal["uniform"]
"""How an encoding is sampled, other than by dropping merges."""

F = TypeVar("F", bound=Callable[..., Any])

_MAX_SEED = 2**64 - 1


class EncodingOptions(TypedDict, total=False):
    """Keyword arguments of the methods that encode text; `encode` describes them."""

    errors: Errors
    threads: int | None
    dropout: float | None
    sampling: SamplingName | None
    seed: int | None


def encoding(function: F) -> F:
    """Show the options in the signature of a function that takes them as `**options`.

    Python fills in each default of a keyword-only parameter on every call, which would take a tenth of the time that
    encoding a short text takes.
    """
    signature = inspect.signature(function)
    parameters = [each for each in signature.parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
    for name, kind in EncodingOptions.__annotations__.items():
        default = "strict" if name == "errors" else None
        parameters.append(Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind.__forward_arg__))
    function.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return function


@dataclass(frozen=True)
class Sampler:
    """Encodes texts like the core's `Encoder`, but at random. `dropout` is None for uniform sampling."""

    encoder: Encoder
    dropout: float | None
    seed: int

    def encode(self, text: str, special: Special, threads: int | None) -> list[int]:
        """Return the ids of a text."""
        return self.encode_batch([text], special, threads)[0]

    def encode_to_numpy(self, text: str, special: Special, threads: int | None) -> npt.NDArray[np.uint32]:
        """Return the ids of a text as an array."""
        return self.encode_batch_to_numpy([text], special, threads)[0]

    def encode_batch(self, texts: list[str], special: Special, threads: int | None) -> list[list[int]]:
        """Return the ids of each text."""
        ids, offsets = self.encode_batch_to_numpy(texts, special, threads)
        return [ids[start:end].tolist() for start, end in pairwise(offsets.tolist())]

    def encode_batch_to_numpy(
        self, texts: list[str], special: Special, threads: int | None
    ) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
        """Return the concatenated ids of all texts, and where the ids of each text start."""
        return self.encoder.encode_sampled(texts, special, threads, self.dropout, self.seed)


def encoder_for(encoder: Encoder, options: EncodingOptions) -> Encoder | Sampler:
    """Return what encodes texts as the options say, after checking them.

    >>> from batchbpe import Model
    >>> encoder = Model(split=r"\\w+", merges={(97, 97): 256}).encoder()
    >>> encoder_for(encoder, {"dropout": 1, "seed": 3}).encode("aaa", None, None)
    [97, 97, 97]
    """
    if not options:
        return encoder
    for name in options.keys() - EncodingOptions.__annotations__:
        raise TypeError(f"encode() got an unexpected keyword argument {name!r}")
    dropout, sampling, seed = options.get("dropout"), options.get("sampling"), options.get("seed")
    if dropout is None and sampling is None:
        if seed is not None:
            reason = ("must be omitted unless ", Setting("dropout"), " or ", Setting("sampling"), " is given")
            raise ArgumentError("seed", seed, reason)
        return encoder
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
    return encoder if dropout == 0 else Sampler(encoder, dropout, seed)

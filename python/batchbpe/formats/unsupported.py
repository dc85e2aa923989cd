"""What a format cannot represent: the error that refuses it, and the warning that it was left out.

Each format names the optional fields of `Model` that it supports. A field that it does not name, such as one that is
added to `Model` later, is refused, or left out if the export may be inexact.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import MISSING, fields, replace
from typing import Any

from ..errors import DataError, Message, Setting, plural, short, warn
from ..model import Model
from .phrase_pattern import is_exportable

OPTIONAL_FIELDS = tuple(
    each.name
    for each in fields(Model)
    if each.default_factory is not MISSING and each.name not in ("special_tokens", "training")
)
"""The tokens that a model can do without, in mappings to their ids. Every format supports special tokens."""
_NAMES = {"added_tokens": "added tokens that are not special"}
_REMEDIES: dict[str, Message] = {
    "stop_words": ("train with ", Setting("stop_list_size", 0), " or choose another format"),
    "phrases": ("train with ", Setting("phrases", 0), " or choose another format"),
}


def check_supported(model: Model, format: str, supported: Collection[str], remedy: Message = "") -> None:
    """Raise if a model has tokens in fields other than those supported.

    >>> check_supported(Model(split=r"\\w+", merges={}, stop_words={b"the": 256}), "minbpe v1", ["phrases"])
    Traceback (most recent call last):
    ...
    batchbpe.errors.DataError: minbpe v1 does not support stop words; the model has 1, such as b'the'; train with stop_list_size=0 or choose another format
    """  # noqa: E501  the last line is an error message
    for name in OPTIONAL_FIELDS:
        tokens = getattr(model, name)
        if not tokens or name in supported:
            continue
        example = next(iter(tokens))
        shown = short(model.vocab[tokens[example]] if name == "phrases" else example)
        raise DataError(
            f"{format} does not support {_NAMES.get(name, _words(name))}; the model has {len(tokens)}, such as {shown}",
            remedy=remedy or _REMEDIES.get(name, "choose another format"),
        )


def without_unsupported(model: Model, tool: str, supported: Collection[str], *, by_rank: bool = False) -> Model:
    """Return a model with no tokens in fields other than those supported, and warn about what is left out.

    Phrases that contain such tokens, or that cannot be exported exactly, are left out too. Only tiktoken encodes
    `by_rank`.
    """
    dropped = [name for name in OPTIONAL_FIELDS if name not in supported]
    missing = {token for name in dropped for token in getattr(model, name).values()}
    kept = {
        parts: token
        for parts, token in model.phrases.items()
        if missing.isdisjoint(parts) and is_exportable(model, parts, by_rank=by_rank)
    }
    changes: dict[str, Any] = {"phrases": kept} | {name: {} for name in dropped}
    smaller = replace(model, **changes)
    numbers = {name: len(getattr(model, name)) - len(getattr(smaller, name)) for name in OPTIONAL_FIELDS}
    left_out = [plural(number, _words(name).removesuffix("s")) for name, number in numbers.items() if number]
    if left_out:
        warn(f"the file for {tool} does not contain {' and '.join(left_out)} of the model")
    return smaller


def _words(name: str) -> str:
    return name.replace("_", " ")

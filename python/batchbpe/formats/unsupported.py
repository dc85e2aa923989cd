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
from ..patterns import Split
from .phrase_pattern import is_exportable

OPTIONAL_FIELDS = tuple(
    each.name
    for each in fields(Model)
    if each.default_factory is not MISSING and each.name not in ("special_tokens", "training", "carried")
)
"""The fields that may be empty. Every format supports special tokens, and `carried` has its own warnings."""
_NAMES = {
    "added_tokens": "added tokens that are not special",
    "flags": "flags of special tokens",
    "decode_only": "decode-only tokens",
}
_BY_TOKEN = ("stop_words", "phrases", "added_tokens")
"""The fields with ids that a phrase could consist of."""
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
    check_visible(model, format)
    for name in OPTIONAL_FIELDS:
        tokens = getattr(model, name)
        if not tokens or name in supported:
            continue
        example = next(iter(tokens))
        token = {"phrases": tokens[example], "decode_only": example}.get(name)
        shown = short(example if token is None else model.vocab[token])
        raise DataError(
            f"{format} does not support {_NAMES.get(name, _words(name))}; the model has {len(tokens)}, such as {shown}",
            remedy=remedy or _REMEDIES.get(name, "choose another format"),
        )


def check_visible(model: Model, format: str) -> None:
    """Raise if a model has hidden tokens. They are never left out: text would be encoded to ids beyond `n_vocab`.

    >>> check_visible(Model(split=r"\\w+", merges={(97, 97): 256}, hidden={256}), "tiktoken")
    Traceback (most recent call last):
    ...
    batchbpe.errors.DataError: tiktoken does not support hidden tokens; the model has 1, such as b'aa'; use format="batchbpe", or format="transformers" without allow_inexact
    """  # noqa: E501  the last line is an error message
    if model.hidden:
        shown = short(model.vocab_with_hidden[min(model.hidden)])
        formats = Setting("format", "batchbpe"), ", or ", Setting("format", "transformers")
        raise DataError(
            f"{format} does not support hidden tokens; the model has {len(model.hidden)}, such as {shown}",
            remedy=("use ", *formats, " without ", Setting("allow_inexact")),
        )


def without_unsupported(model: Model, tool: str, supported: Collection[str], *, by_rank: bool = False) -> Model:
    """Return a model with no tokens in fields other than those supported, and warn about what is left out.

    Phrases that contain such tokens, or that cannot be exported exactly, are left out too. Only tiktoken encodes
    `by_rank`.
    """
    check_visible(model, tool)
    dropped = [name for name in OPTIONAL_FIELDS if name not in supported]
    missing = {token for name in dropped if name in _BY_TOKEN for token in getattr(model, name).values()}
    kept = {
        parts: token
        for parts, token in model.phrases.items()
        if missing.isdisjoint(parts) and is_exportable(model, parts, by_rank=by_rank)
    }
    changes: dict[str, Any] = {"phrases": kept} | {name: {} for name in dropped}
    if "added_tokens" in dropped:
        changes.setdefault("flags", {name: model.flags[name] for name in model.flags if name in model.special_tokens})
    smaller = replace(model, **changes)
    numbers = {name: len(getattr(model, name)) - len(getattr(smaller, name)) for name in OPTIONAL_FIELDS}
    left_out = [plural(number, _singular(name)) for name, number in numbers.items() if number]
    if left_out:
        warn(f"the file for {tool} does not contain {' and '.join(left_out)} of the model")
    return smaller


def _singular(name: str) -> str:
    return "decode-only token" if name == "decode_only" else _words(name).removesuffix("s")


def _words(name: str) -> str:
    return name.replace("_", " ")


def check_bare_split(split: Split, format: str, remedy: Message = "choose another format") -> None:
    """Raise unless a split is only a regular expression.

    >>> check_bare_split(Split(r"\\w+", normalization="NFC"), "minbpe v1")
    Traceback (most recent call last):
    ...
    batchbpe.errors.DataError: minbpe v1 stores a single regular expression, not NFC > '\\\\w+'; choose another format
    """
    if not split.is_bare:
        raise DataError(f"{format} stores a single regular expression, not {split}", remedy=remedy)

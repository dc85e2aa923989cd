"""What a new vocabulary takes from the tokenizer that `like` names: everything but tokens that training makes.

These are the split, special and added tokens, and what the model carries (post-processor, padding, roles, chat
template, …) with the new ids. Merges, stop words, phrases and decode-only tokens are not taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from ..errors import Setting, SplitMismatchError
from ..formats import Loadable, load_any
from ..formats.byte_level import from_byte_level
from ..formats.carried import renumbered
from ..model import Model
from ..model.checks import check_special_tokens


def load_like(source: Loadable) -> Model:
    """Return the model of the tokenizer that `like` names."""
    remedy = ("use a byte-level tokenizer, or ", Setting("pattern"), " and ", Setting("special_tokens"))
    return load_any("like", source, remedy)


def tokens_of(like: Model) -> list[str]:
    """Return the special and added tokens, in the order of their ids.

    DeepSeek's files have added tokens such as "õ", the byte-level spelling of a byte that the vocabulary lacks. A new
    vocabulary has all bytes, so they are left out.

    >>> tokens_of(Model(r"\\w+", {}, special_tokens={"<s>": 257}, added_tokens={"  ": 256}))
    ['  ', '<s>']
    """
    missing = {byte for byte, token in enumerate(like.byte_ids) if token is None}
    spelled = {name: from_byte_level(name) or b"" for name in like.found_tokens}
    kept = (name for name, value in spelled.items() if len(value) != 1 or value[0] not in missing)
    return sorted(kept, key=like.found_tokens.__getitem__)


def completed(model: Model, like: Model, ids: Mapping[str, int]) -> Model:
    """Add tokens with these ids, and everything else from `like`, to a trained model.

    Tokens that `like` lacks are special.

    >>> like = Model(r"\\w+", {}, special_tokens={"<s>": 0}, byte_ids=range(1, 257), flags={"<s>": {"lstrip"}})
    >>> completed(Model(r"\\w+", {}), like, {"<s>": 256}).flags
    mappingproxy({'<s>': frozenset({'lstrip'})})
    """
    added = {name: token for name, token in ids.items() if name in like.added_tokens}
    whole = replace(
        model,
        special_tokens={name: token for name, token in ids.items() if name not in added},
        added_tokens=added,
        flags={name: flags for name, flags in like.flags.items() if name in ids},
    )
    return replace(whole, carried=renumbered(like.carried, whole))


def counting_for(like: Loadable | None, special_tokens: Sequence[str]) -> tuple[Model | None, list[str]]:
    """Return the model of `like`, and the tokens that counts for training like it leave out.

    >>> like = Model(r"\\w+", {}, special_tokens={"<s>": 256})
    >>> counting_for(like, ["</s>"])[1]
    ['<s>', '</s>']
    """
    check_special_tokens(special_tokens)
    if like is None:
        return None, [*special_tokens]
    model = load_like(like)
    names = [*dict.fromkeys([*tokens_of(model), *special_tokens])]
    ids = {name: token for token, name in enumerate(names, 256)}
    completed(Model(model.split, merges={}), model, ids)  # raises as training would
    return model, names


@contextmanager
def fixed_split(given_models: Mapping[str, Model]) -> Iterator[None]:
    """Make errors about counts with another split say how to count with that of `base` or `like`, which is fixed.

    >>> with fixed_split({"base": Model(r"\\w+", {})}):
    ...     raise SplitMismatchError("counted with the pattern gpt4", remedy="use gpt4")
    Traceback (most recent call last):
    ...
    batchbpe.errors.SplitMismatchError: counted with the pattern gpt4; count the text again with pattern=model.split
    """
    try:
        yield
    except SplitMismatchError as error:
        if given_models:
            error.remedy = ("count the text again with ", Setting("like", "MODEL", call="pattern=model.split"))
        raise

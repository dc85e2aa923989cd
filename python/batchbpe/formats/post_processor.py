"""What a post-processor of a tokenizer.json does to a single text: it adds tokens around it, and trims offsets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from .carried import flat


class Wrapping(NamedTuple):
    """The effect of a post-processor on a single text."""

    before: tuple[int, ...] = ()
    """Ids of the tokens before the text."""
    after: tuple[int, ...] = ()
    """Ids of the tokens after the text."""
    types: tuple[tuple[int, ...], int, tuple[int, ...]] = ((), 0, ())
    """Type ids of the tokens before the text, of the text, and after it."""
    trim: bool | None = None
    """None if offsets include whitespace; otherwise whether a space is added before the text."""


@lru_cache(maxsize=16)
def wrapping_of(state: bytes | None) -> Wrapping | None:
    """Return the effect of a post-processor, given as JSON, or None if it cannot be described like this.

    >>> wrapping_of(b'{"type": "BertProcessing", "cls": ["<s>", 1], "sep": ["</s>", 2]}')
    Wrapping(before=(1,), after=(2,), types=((0,), 0, (0,)), trim=None)
    """
    wrapping, is_wrapped = Wrapping(), False
    for part in flat(json.loads(state), "processors") if state else ():
        kind = part["type"]
        if kind in ("ByteLevel", "RobertaProcessing") and part["trim_offsets"]:
            if wrapping.trim is not None:
                return None
            wrapping = wrapping._replace(trim=part["add_prefix_space"])
        if kind == "ByteLevel":
            continue
        if is_wrapped:
            return None
        is_wrapped = True
        if kind == "TemplateProcessing":
            pieces = [*_pieces(part)]
            texts = [index for index, (token, _) in enumerate(pieces) if token is None]
            if len(texts) != 1:
                return None
            first, last = pieces[: texts[0]], pieces[texts[0] + 1 :]
            kept = pieces[texts[0]][1]
        elif kind in ("RobertaProcessing", "BertProcessing"):
            first, last, kept = [(part["cls"][1], 0)], [(part["sep"][1], 0)], 0
        else:
            return None
        (before, types_before), (after, types_after) = _columns(first), _columns(last)
        wrapping = wrapping._replace(before=before, after=after, types=(types_before, kept, types_after))
    return wrapping


def _pieces(template: Any) -> Iterator[tuple[int | None, int]]:
    """Yield the id and the type id of each token of a template for a single text. The text has the id None."""
    for piece in template["single"]:
        ((kind, value),) = piece.items()
        for token in template["special_tokens"][value["id"]]["ids"] if kind == "SpecialToken" else [None]:
            yield token, value["type_id"]


def _columns(pieces: list[Any]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(token for token, _ in pieces), tuple(type_id for _, type_id in pieces)

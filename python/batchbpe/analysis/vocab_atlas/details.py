"""The part of the page about one vocabulary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .markup import Vocabulary, text, token

MEANINGS = {
    "decode-only": "no merge makes them, and no rule looks them up",
    "added token": "their text contains an added token",
    "normalization": "their text is normalized to another",
    "pattern": "their text is split into several chunks, or dropped",
    "merges": "other merges come first",
}
"""Why tokens are unreachable."""


def details(index: int, each: Vocabulary) -> str:
    """Render everything about a vocabulary.

    >>> from . import atlas
    >>> from ...tokenizer import Tokenizer
    >>> "longest" in details(0, atlas(Tokenizer.train("to be", 256)).content["vocabularies"][0])
    True
    """
    rows = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in _rows(each))
    summary = f"{text(each['name'])} <small>{each['numbers']['tokens']:,} tokens</small>"
    return f'<details class="vocabulary"><summary>{summary}</summary><dl id="v{index}">{rows}</dl></details>'


def _rows(each: Vocabulary) -> Iterator[tuple[str, str]]:
    if each["source"] is not None:
        yield "file", f"{text(each['source'])} ({text(each['format'] or 'unknown format')})"
    yield "split", f"<code>{text(each['split'])}</code>"
    if each["pattern"] != each["split"]:
        yield "pattern", f'<code class="long">{text(each["pattern"])}</code>'
    numbers = {kind: number for kind, number in each["numbers"].items() if number and kind != "tokens"}
    largest = numbers.pop("largest id", 0)
    kinds = ", ".join(f"{number:,} {kind}" for kind, number in numbers.items())
    yield "numbers", text(f"{kinds}; the largest id is {largest:,}")
    if each["same_as"]:
        yield "same as", text(", ".join(each["same_as"]))
    for cause, found in each["causes"].items():
        yield f"unreachable: {cause}", f"{_tokens(found)} <small>{MEANINGS[cause]}</small>"
    if (found := each["unreachable_in_text"]) and found["number"]:
        yield "unreachable alone, but in the text", _tokens(found)
    for kind in ("residues", "unused", "scaffolds", "partial_utf8", "duplicates"):
        if each[kind] and each[kind]["number"]:
            yield {"partial_utf8": "partial UTF-8"}.get(kind, kind), _tokens(each[kind])
    if each["missing_bytes"]:
        yield "missing bytes", _bytes(each["missing_bytes"], each["missing_utf8_bytes"])
    longest = (f"<span>{token(one)} <small>{one['bytes']:,}</small></span>" for one in each["longest"])
    yield "longest, in bytes", f'<div class="longest">{" ".join(longest)}</div>'
    exact = [engine for engine, export in each["exports"].items() if export["exact"]]
    yield "exact exports", text(", ".join(exact) or "none")
    for engine, export in each["exports"].items():
        if export["reason"]:
            yield f"{'only' if export['exact'] else 'not for'} {text(engine)}", text(export["reason"])


def _tokens(found: Mapping[str, Any]) -> str:
    examples = " ".join(map(token, found["examples"]))
    more = " …" * (found["number"] > len(found["examples"]))
    return f"<b>{found['number']:,}</b> {examples}{more}"


def _bytes(missing: list[int], in_utf8: list[int]) -> str:
    shown = " ".join(f"{byte:02X}" for byte in in_utf8)
    others = len(missing) - len(in_utf8)
    notes = [f"<code>{shown}</code>"] * bool(in_utf8) + [f"{others} that UTF-8 never contains"] * bool(others)
    return f"<b>{len(missing)}</b> {', and '.join(notes)}"

"""Phrases as a regular expression, for tools that have none: all phrases, or else the pattern of the model.

tiktoken and Hugging Face then find each phrase as one chunk, which is a token. The phrases are written as a tree, with
the longest first, because engines try the alternatives one after the other.

A phrase ends where its last chunk ends. Text that follows could make that chunk longer, so each phrase is followed by
an *edge*, a condition on that text. The rest of a phrase splits as it does alone: no supported pattern looks behind,
and none looks beyond the next chunk, except in white space, which is not supported. The edges follow from the patterns:

- A contraction is matched first. A number ends after a certain number of digits. Nothing that follows matters.
- A word becomes longer if a letter follows, a shorter number if a digit follows, symbols if a symbol or a newline
  follows.
- A single symbol belongs to a word that follows, or with gpt2, if it is an apostrophe, to a contraction.
- In o200k a word is upper case and then lower case, and many letters are both. A word that contains a lower-case
  letter ends before upper case. A word of upper case alone ends before neither. Any other word, such as one in Chinese,
  becomes longer if upper case and then lower case follow. A contraction belongs to the word before it, even if the two
  chunks of a phrase are only its beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

from .._core import matches_whole, patterns, split_text
from ..errors import DataError, Setting, plural, short, warn
from ..model import Model
from ..patterns import describe_pattern

_LETTER, _SYMBOL = r"\p{L}", r"[^\s\p{L}\p{N}]"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_BOTH_CASES = r"[\p{Lm}\p{Lo}\p{M}]"
_CONTRACTION = "'(?:[sdmt]|ll|ve|re)"
_ANY_CASE = "'(?i:[sdmt]|ll|ve|re)"
_PREFIX = r"[^\r\n\p{L}\p{N}]?"
_UNCASED = rf"{_PREFIX}{_UPPER}*{_BOTH_CASES}+"


class _Edge(NamedTuple):
    """Which last chunks an edge is for, and what must not follow them; "" if nothing matters."""

    chunk: str
    not_followed_by: str
    after: str = r"(?s).+"
    """The chunk before the last one."""


def _numbers(digits: int, space: str = "") -> list[_Edge]:
    """Return the edges of numbers with at most `digits` digits, or with any number of digits if that is 0."""
    if not digits:
        return [_Edge(rf"{space}\p{{N}}+", r"\p{N}")]
    shorter = [_Edge(rf"\p{{N}}{{1,{digits - 1}}}", r"\p{N}")] if digits > 1 else []
    return [*shorter, _Edge(rf"\p{{N}}{{{digits}}}", "")]


def _like_gpt2(digits: int) -> list[_Edge]:
    return [
        _Edge(_CONTRACTION, ""),
        _Edge(rf" ?{_LETTER}+", _LETTER),
        *_numbers(digits, "" if digits else " ?"),
        _Edge("'", rf"{_SYMBOL}|[sdmt]|ll|ve|re"),
        _Edge(rf" ?{_SYMBOL}+", _SYMBOL),
    ]


def _like_gpt4(digits: int) -> list[_Edge]:
    return [
        _Edge(_ANY_CASE, ""),
        _Edge(rf"{_PREFIX}{_LETTER}+", _LETTER),
        *_numbers(digits),
        _Edge(_SYMBOL, r"[^\s\p{N}]|[\r\n]"),
        _Edge(rf" ?{_SYMBOL}+", rf"{_SYMBOL}|[\r\n]"),
    ]


def _like_o200k(digits: int) -> list[_Edge]:
    word = rf"{_PREFIX}[\p{{L}}\p{{M}}]+"
    return [
        _Edge(word + _ANY_CASE, ""),
        _Edge("'l", rf"{_LOWER}|{_ANY_CASE}|L", after=word),
        _Edge("'[rv]", rf"{_LOWER}|{_ANY_CASE}|E", after=word),
        _Edge(rf"{_PREFIX}[\p{{Lu}}\p{{Lt}}]+", rf"[\p{{L}}\p{{M}}]|{_ANY_CASE}"),
        _Edge(_UNCASED, rf"{_UPPER}*{_LOWER}|{_ANY_CASE}"),
        _Edge(rf"{_PREFIX}{_UPPER}*{_LOWER}+", rf"{_LOWER}|{_ANY_CASE}"),
        *_numbers(digits),
        _Edge(_SYMBOL, r"[^\s\p{N}]|[\r\n]"),
        _Edge(rf" ?{_SYMBOL}+", rf"{_SYMBOL}|[\r\n]"),
    ]


_EDGES: Mapping[str, Sequence[_Edge]] = {
    "gpt2": _like_gpt2(0),
    "starcoder": _like_gpt2(1),
    "qwen2": _like_gpt4(1),
    "nanochat": _like_gpt4(2),
    "cl100k-1digit": _like_gpt4(1),
    "cl100k-2digits": _like_gpt4(2),
    **dict.fromkeys(("gpt4", "cl100k", "llama3"), _like_gpt4(3)),
    "o200k": _like_o200k(3),
    "o200k-1digit": _like_o200k(1),
    "o200k-2digits": _like_o200k(2),
}
"""The edges for each pattern. The first that matches the last chunk of a phrase applies."""
_SUPPORTED = {regex: _EDGES[name] for name, regex in patterns() if name in _EDGES}
_SPECIAL = frozenset(r"\.+*?()|[]{}^$")
_LOOKAHEADS = sorted(
    {f"(?!{edge.not_followed_by})" for edges in _EDGES.values() for edge in edges if edge.not_followed_by}, key=len
)
MAX_WORDS = 24
"""Phrases of more chunks are not exported: tiktoken's engine limits the depth of groups."""
_END = "\0"
"""Marks the end of a phrase in a tree; no phrase contains it."""


def pattern_with_phrases(model: Model) -> str:
    """Return a regular expression that finds the phrases of a model and otherwise its chunks.

    >>> merges = {(32, 97): 256, (32, 98): 257}
    >>> model = Model(dict(patterns())["gpt2"], merges, phrases={(256, 257): 258, (256, 257, 257): 259})
    >>> pattern_with_phrases(model).removesuffix(model.pattern)
    '(?: a b(?: b(?!\\\\p{L})|(?!\\\\p{L})))|'
    """
    edges = _SUPPORTED.get(model.pattern)
    if edges is None:
        names = ", ".join(_EDGES)
        raise DataError(
            f"phrases can be exported only with the patterns {names}; the model has {describe_pattern(model.pattern)}",
            remedy=("use ", Setting("format", "batchbpe"), " or ", Setting("format", "transformers")),
        )
    tree: dict[str, Any] = {}  # the values are such trees again, and at the end of a phrase its edge
    phrases = _phrases(model)
    ends = sorted({(chunks[-2], chunks[-1]) for chunks in phrases})
    edge_of = dict(zip(ends, _edges_of(ends, edges), strict=True))
    for chunks in phrases:
        node = tree
        for character in "".join(chunks):
            node = node.setdefault(character, {})
        node[_END] = edge_of[chunks[-2], chunks[-1]]
    if max(map(len, phrases)) > MAX_WORDS:
        reason = f"phrases of more than {MAX_WORDS} chunks are nested too deeply for other tools"
        raise DataError(reason, remedy=("train with a smaller ", Setting("max_words")))
    return f"(?:{_render(tree)})|{model.pattern}"


def _phrases(model: Model) -> list[list[str]]:
    """Return the chunks of each phrase. Raise if the pattern splits one differently."""
    phrases = []
    for parts, phrase in model.phrases.items():
        try:
            chunks = [model.vocab[part].decode() for part in parts]
        except UnicodeDecodeError:
            chunks = []
        if not chunks or split_text(model.pattern, "".join(chunks)) != chunks or _END in "".join(chunks):
            reason = f"phrase {phrase}, {short(model.vocab[phrase])}, is not split into its chunks by the pattern"
            raise DataError(reason, remedy="remove it from the model")
        phrases.append(chunks)
    return phrases


def _edges_of(ends: Sequence[tuple[str, str]], edges: Sequence[_Edge]) -> list[str]:
    """Return the look-ahead for phrases that end in each pair of chunks."""
    found: list[str | None] = [None] * len(ends)
    before, last = ([end[side].encode() for end in ends] for side in (0, 1))
    for edge in edges:
        both = zip(matches_whole(edge.after, before), matches_whole(edge.chunk, last), strict=True)
        for place, matches in enumerate(both):
            if all(matches) and found[place] is None:
                found[place] = f"(?!{edge.not_followed_by})" if edge.not_followed_by else ""
    if None in found:
        chunk = ends[found.index(None)][1]
        reason = f"phrases that end in the chunk {short(chunk)} cannot be exported exactly"
        kinds = (Setting("phrase_chunks", "letters"), " or ", Setting("phrase_chunks", "text"))
        raise DataError(reason, remedy=("train with ", *kinds))
    return [each or "" for each in found]


def _render(tree: Mapping[str, Any]) -> str:
    """Write the branches of a tree as alternatives. The end of a phrase comes last, so longer ones are preferred."""
    branches = []
    for character, node in tree.items():
        if character == _END:
            continue
        literal = _escaped(character)
        while len(node) == 1 and _END not in node:  # a chain needs no group
            ((character, node),) = node.items()
            literal += _escaped(character)
        rest = _render(node)
        branches.append(f"{literal}(?:{rest})" if "|" in rest and len(node) > 1 else literal + rest)
    if _END in tree:
        branches.append(str(tree[_END]))
    return "|".join(branches)


def check_not_in_chunks(model: Model) -> None:
    """Raise if a chunk can contain the text of a phrase, where encoding by ranks would use the phrase.

    This is so only in o200k, where "語" and "A" are two words, but "語Ab" is one, and "they" and "'" are two chunks,
    but "they're" is one.
    """
    if "\\p{Lu}" not in model.pattern:
        return
    neighbours = sorted({pair for parts in model.phrases for pair in pairwise(parts)})
    lefts, rights = ([model.vocab[pair[side]] for pair in neighbours] for side in (0, 1))
    for left, right in ((_UNCASED, r"(?s)[\p{Lu}\p{Lt}].*"), (r"(?s).*[\p{L}\p{M}]", "(?i)'[lrv]?")):
        both = zip(matches_whole(left, lefts), matches_whole(right, rights), strict=True)
        for place, matches in enumerate(both):
            if all(matches):
                phrase = short(lefts[place] + rights[place])
                reason = f"tiktoken would use phrases that contain {phrase} inside words too"
                raise DataError(reason, remedy=("use ", Setting("format", "huggingface")))


def without_unsupported(model: Model, tool: str) -> Model:
    """Return a model without stop words, which other tools do not have, and without phrases that need them.

    tiktoken does not have added tokens that are not special either. If the other phrases cannot be exported exactly,
    there are none. A warning says what is left out.
    """
    needed = {*model.stop_words.values()}
    phrases = {parts: token for parts, token in model.phrases.items() if needed.isdisjoint(parts)}
    smaller = replace(model, stop_words={}, phrases=phrases)
    try:
        if phrases:
            pattern_with_phrases(smaller)
            if tool == "tiktoken":
                check_not_in_chunks(smaller)
    except DataError:
        smaller = replace(smaller, phrases={})
    missing = {"stop word": len(model.stop_words), "phrase": len(model.phrases) - len(smaller.phrases)}
    if tool == "tiktoken":
        missing["added token"] = len(model.added_tokens)
        smaller = replace(smaller, added_tokens={})
    left_out = " and ".join(plural(number, name) for name, number in missing.items() if number)
    if left_out:
        warn(f"the file for {tool} does not contain {left_out} of the model")
    return smaller


def _escaped(character: str) -> str:
    return f"\\{character}" if character in _SPECIAL else character


def split_pattern(pattern: str) -> tuple[str, list[str]]:
    """Return the pattern of a model and the texts of its phrases, from what `pattern_with_phrases` returned.

    For any other pattern, return it and no phrases.

    >>> gpt2 = dict(patterns())["gpt2"]
    >>> split_pattern(rf"(?: a b(?: b(?!\\p{{L}})|(?!\\p{{L}})))|{gpt2}") == (gpt2, [" a b b", " a b"])
    True
    """
    if pattern.startswith("(?:"):
        for original in _SUPPORTED:
            if pattern.endswith(f")|{original}"):
                tree = pattern[3 : -len(original) - 2]
                for lookahead in reversed(_LOOKAHEADS):
                    tree = tree.replace(lookahead, "")
                try:
                    return original, list(_texts(tree, [0]))
                except (IndexError, ValueError):
                    break
    return pattern, []


def _texts(tree: str, at: list[int]) -> list[str]:
    """Return the texts that alternatives without conditions match, up to the end of their group."""
    texts, prefixes = [], [""]
    while at[0] < len(tree) and tree[at[0]] != ")":
        character = tree[at[0]]
        at[0] += 1
        if character == "|":
            texts += prefixes
            prefixes = [""]
        elif character == "(":
            if tree[at[0] : at[0] + 2] != "?:":
                raise ValueError("not a tree of phrases")
            at[0] += 2
            rest = _texts(tree, at)
            at[0] += 1
            prefixes = [prefix + text for prefix in prefixes for text in rest]
        else:
            if character == "\\":
                character = tree[at[0]]
                at[0] += 1
            prefixes = [prefix + character for prefix in prefixes]
    return texts + prefixes


def has_phrases(pattern: str) -> bool:
    """Return whether a pattern is what `pattern_with_phrases` returned.

    >>> has_phrases(dict(patterns())["gpt2"])
    False
    """
    return bool(split_pattern(pattern)[1])


def model_with_phrases(
    pattern: str, ids: Mapping[bytes, int], create: Callable[[str, dict[bytes, int]], Model]
) -> Model:
    """Create a model from what another tool stores: a pattern with phrases, and the ids of all tokens.

    `create` receives the pattern and the ids without the phrases.
    """
    original, texts = split_pattern(pattern)
    values = dict.fromkeys(text.encode() for text in texts)
    plain = {value: token for value, token in ids.items() if value not in values}
    phrases: dict[tuple[int, ...], int] = {}
    for value in values:
        if value not in ids:
            raise DataError(f"the pattern contains the phrase {short(value)}, which is not a token")
        chunks = [chunk.encode() for chunk in split_text(original, value.decode())]
        missing = next((chunk for chunk in chunks if chunk not in plain), None)
        if missing is not None:
            raise DataError(f"chunk {short(missing)} of phrase {short(value)} is not a token")
        phrases[tuple(plain[chunk] for chunk in chunks)] = ids[value]
    return replace(create(original, plain), phrases=phrases)

r"""Phrases as a regular expression, for tools that have none: all phrases, or else the pattern of the model.

tiktoken and Hugging Face then find each phrase as one chunk, which is a token. The phrases are written as a tree, with
the longest first, because engines try the alternatives one after the other.

A phrase ends where its last chunk ends, unless what follows changes its chunks: " of the" must not match the start of
" of them". So each phrase is followed by a negative look-ahead, which is computed (see `boundaries`). A phrase then
matches exactly where the pattern finds its chunks, and the text after it is split as before, because the pattern does
not look behind.

What is not a phrase is encoded as before, except that both tools look whole chunks up among all tokens, and that
tiktoken merges any two neighbors that are a token together. Therefore no phrase may be a chunk by itself, and for
tiktoken none may be a part of a chunk.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from .._core import patterns
from ..boundaries import Boundaries, NotSupportedError, boundaries_of
from ..errors import DataError, Message, Setting, plural, short, warn
from ..model import MAX_PHRASE_BYTES, Model

_SPECIAL = frozenset(r"\.+*?()|[]{}^$")
_MAX_DEPTH = 24
"""Groups that would be nested more deeply are written out: tiktoken's engine has a limit."""
_END = "\0\0"
"""Marks the end of a phrase in a tree, where other keys are single characters."""
_FORMER = frozenset(
    {
        "",
        r"(?!\p{L})",
        r"(?!\p{N})",
        r"(?![^\s\p{L}\p{N}])",
        r"(?![^\s\p{N}]|[\r\n])",
        r"(?![^\s\p{L}\p{N}]|[\r\n])",
        r"(?![^\s\p{L}\p{N}]|[sdmt]|ll|ve|re)",
        r"(?![\p{L}\p{M}]|'(?i:[sdmt]|ll|ve|re))",
        r"(?![\p{Ll}\p{Lm}\p{Lo}\p{M}]|'(?i:[sdmt]|ll|ve|re))",
        r"(?![\p{Ll}\p{Lm}\p{Lo}\p{M}]|'(?i:[sdmt]|ll|ve|re)|L)",
        r"(?![\p{Ll}\p{Lm}\p{Lo}\p{M}]|'(?i:[sdmt]|ll|ve|re)|E)",
        r"(?![\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]|'(?i:[sdmt]|ll|ve|re))",
    }
)
"""The look-aheads of files that were written when the patterns in `_FORMERLY_SUPPORTED` had fixed ones."""
_FORMERLY_SUPPORTED = frozenset(regex for name, regex in patterns() if name not in ("deepseek", "kimi"))


_OTHER_FORMATS: Message = ("use ", Setting("format", "batchbpe"), " or ", Setting("format", "transformers"))


def pattern_with_phrases(model: Model) -> str:
    """Return a regular expression that finds the phrases of a model and otherwise its chunks. Raise if there is none.

    >>> merges = {(32, 97): 256, (32, 98): 257}
    >>> model = Model(dict(patterns())["gpt2"], merges, phrases={(256, 257): 258, (256, 257, 257): 259})
    >>> pattern_with_phrases(model).removesuffix(model.pattern)
    '(?: a b(?: b(?!\\\\p{L})|(?!\\\\p{L})))|'
    """
    boundaries = _boundaries(model)
    lookaheads = {}
    for parts, token in model.phrases.items():
        try:
            lookaheads[model.vocab[token].decode()] = _lookahead_after(boundaries, model, parts)
        except NotSupportedError as error:
            reason = f"phrase {token}, {short(model.vocab[token])}, {error}"
            raise DataError(reason, remedy=_OTHER_FORMATS) from None
    return f"(?:{_render(_tree(lookaheads))})|{model.pattern}"


def check_not_in_chunks(model: Model) -> None:
    """Raise if a chunk can contain the text of a phrase, where encoding by ranks would use the phrase.

    >>> check_not_in_chunks(Model(dict(patterns())["gpt2"], {}, phrases={(39, 118): 256}))
    Traceback (most recent call last):
    ...
    batchbpe.errors.DataError: phrase 256, b"'v", can be inside a chunk, where tiktoken would use it too; use format="huggingface"
    """  # noqa: E501  the last line is an error message
    boundaries = _boundaries(model)
    for token in model.phrases.values():
        if boundaries.is_inside(model.vocab[token].decode(errors="replace")):
            reason = (
                f"phrase {token}, {short(model.vocab[token])}, can be inside a chunk, where tiktoken would use it too"
            )
            raise DataError(reason, remedy=("use ", Setting("format", "huggingface")))


def _boundaries(model: Model) -> Boundaries:
    try:
        return boundaries_of(model.pattern)
    except NotSupportedError as error:
        reason = f"phrases cannot be exported with the pattern {model.split}: {error}"
        raise DataError(reason, remedy=_OTHER_FORMATS) from None


def _lookahead_after(boundaries: Boundaries, model: Model, parts: tuple[int, ...]) -> str:
    """Return the look-ahead that stands after a phrase. Raise `NotSupportedError` if it cannot be found exactly."""
    chunks = [model.vocab[part].decode(errors="replace") for part in parts]
    text = "".join(chunks)
    if boundaries.chunks(text) != chunks:
        raise NotSupportedError("is not split into its chunks by the pattern")
    if boundaries.is_chunk(text):
        raise NotSupportedError("can be a single chunk, too")
    return _lookahead(boundaries, text)


def _lookahead(boundaries: Boundaries, text: str) -> str:
    condition = boundaries.condition(text)
    return f"(?!{condition})" if condition else ""


def _tree(lookaheads: Mapping[str, str]) -> dict[str, Any]:
    """Return a tree of the characters of phrases, with the look-ahead of each at its end."""
    tree: dict[str, Any] = {}
    for text, lookahead in lookaheads.items():
        node = tree
        for character in text:
            node = node.setdefault(character, {})
        node[_END] = lookahead
    return tree


def _render(tree: Mapping[str, Any], depth: int = 1) -> str:
    """Write the branches of a tree as alternatives. The end of a phrase comes last, so longer ones are preferred."""
    branches = []
    for character, node in tree.items():
        if character == _END:
            continue
        literal = _escaped(character)
        while len(node) == 1 and _END not in node:  # a chain needs no group
            ((character, node),) = node.items()
            literal += _escaped(character)
        if len(node) == 1:
            branches.append(literal + node[_END])
        elif depth < _MAX_DEPTH:
            branches.append(f"{literal}(?:{_render(node, depth + 1)})")
        else:
            branches += (literal + rest for rest in _written_out(node))
    if _END in tree:
        branches.append(str(tree[_END]))
    return "|".join(branches)


def _written_out(tree: Mapping[str, Any]) -> Iterator[str]:
    """Return each phrase of a tree, longer ones first."""
    stack: list[tuple[str, Any]] = [("", tree)]
    while stack:
        written, node = stack.pop()
        if isinstance(node, str):
            yield written + node
            continue
        if _END in node:
            stack.append((written, node[_END]))
        others = [(written + _escaped(character), each) for character, each in node.items() if character != _END]
        stack += reversed(others)


def without_unsupported(model: Model, tool: str) -> Model:
    """Return a model without stop words, which other tools do not have, and without phrases that need them.

    Phrases that cannot be exported exactly are left out too, and for tiktoken, added tokens that are not special. A
    warning says what is left out.
    """
    needed = {*model.stop_words.values()}
    phrases = {
        parts: token
        for parts, token in model.phrases.items()
        if needed.isdisjoint(parts) and _is_exact(model, parts, by_rank=tool == "tiktoken")
    }
    smaller = replace(model, stop_words={}, phrases=phrases)
    missing = {"stop word": len(model.stop_words), "phrase": len(model.phrases) - len(smaller.phrases)}
    if tool == "tiktoken":
        missing["added token"] = len(model.added_tokens)
        smaller = replace(smaller, added_tokens={})
    left_out = " and ".join(plural(number, name) for name, number in missing.items() if number)
    if left_out:
        warn(f"the file for {tool} does not contain {left_out} of the model")
    return smaller


def _is_exact(model: Model, parts: tuple[int, ...], *, by_rank: bool) -> bool:
    try:
        boundaries = boundaries_of(model.pattern)
        _lookahead_after(boundaries, model, parts)
    except NotSupportedError:
        return False
    value = model.vocab[model.phrases[parts]]
    return model.token_ids[value] == model.phrases[parts] and not (by_rank and boundaries.is_inside(value.decode()))


def _escaped(character: str) -> str:
    return f"\\{character}" if character in _SPECIAL else character


@lru_cache(maxsize=1)  # the formats ask several times
def split_pattern(pattern: str) -> tuple[str, tuple[str, ...]]:
    """Return the pattern of a model and the texts of its phrases, from what `pattern_with_phrases` returned.

    For any other pattern, return it and no phrases.

    >>> gpt2 = dict(patterns())["gpt2"]
    >>> split_pattern(rf"(?: a b(?: b(?!\\p{{L}})|(?!\\p{{L}})))|{gpt2}") == (gpt2, (" a b b", " a b"))
    True
    >>> split_pattern(r"(?:ab|c)|\\p{L}")
    ('(?:ab|c)|\\\\p{L}', ())
    """
    try:
        lookaheads, end = _parse(pattern)
        original = pattern[end:]
        boundaries = boundaries_of(original)
        is_former = original in _FORMERLY_SUPPORTED and _FORMER.issuperset(lookaheads.values())
        expected = {}
        for text, lookahead in lookaheads.items():
            if len(boundaries.chunks(text)) < 2:
                raise _NotATreeError
            expected[text] = lookahead if is_former else _lookahead(boundaries, text)
        is_phrases = f"(?:{_render(_tree(expected))})|" == pattern[:end]
    except (_NotATreeError, NotSupportedError):
        is_phrases = False
    return (original, (*lookaheads,)) if is_phrases else (pattern, ())


class _NotATreeError(Exception):
    """A regular expression is not a tree of phrases."""


_TOKENS = re.compile(
    r"(?P<open>\(\?:)|(?P<ahead>\(\?!)|(?P<or>\|)|(?P<close>\))|(?P<text>(?:[^\\()|]|\\.)+)", re.DOTALL
)
_INSIDE_GROUP = re.compile(r"\\.|\[\^?\]?|[\]()]", re.DOTALL)


def _parse(pattern: str) -> tuple[dict[str, str], int]:
    """Return the phrases and their look-aheads in a regular expression that starts with a tree, and the end of it.

    >>> _parse("(?:a(?:b(?!c)|))|x")
    ({'ab': '(?!c)', 'a': ''}, 17)
    """
    found: dict[str, str] = {}
    prefixes: list[str] = []  # what stands before the groups that are open
    text, is_done = "", False  # the alternative so far, and whether nothing may follow but the next one
    size = at = 0
    while prefixes or not at:
        token = _TOKENS.match(pattern, at)
        if not token or (not at and token.lastgroup != "open"):
            raise _NotATreeError
        kind, at = token.lastgroup, token.end()
        if is_done and kind not in ("or", "close"):
            raise _NotATreeError
        if kind == "text":
            text += re.sub(r"\\(.)", r"\1", token[0], flags=re.DOTALL)
            continue
        size += len(text.encode("utf-8", "surrogatepass"))
        if size > MAX_PHRASE_BYTES:
            reason = f"the phrases of a pattern must have at most {MAX_PHRASE_BYTES:,} bytes in total"
            raise DataError(f"{reason}, got {size:,} or more, up to {short(text)}")
        if kind == "open":
            prefixes.append(text)
        elif kind == "ahead":
            at = _group_end(pattern, at)
            found[text], is_done = pattern[token.start() : at], True
        else:
            if not is_done:
                found[text] = ""
            text, is_done = (prefixes[-1], False) if kind == "or" else (prefixes.pop(), True)
    if not pattern.startswith("|", at):
        raise _NotATreeError
    return found, at + 1


def _group_end(pattern: str, at: int) -> int:
    r"""Return the end of the group that `at` is in.

    >>> _group_end(r"(?!a[)\]]|(b))c", 1)
    14
    """
    depth = sets = 0
    for token in _INSIDE_GROUP.finditer(pattern, at):
        if token[0].startswith("["):
            sets += 1
        elif token[0] == "]":
            sets -= sets > 0
        elif not sets:
            depth += {"(": 1, ")": -1}.get(token[0], 0)
            if depth < 0:
                return token.end()
    raise _NotATreeError


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
    boundaries = boundaries_of(original)
    values = dict.fromkeys(text.encode() for text in texts)
    plain = {value: token for value, token in ids.items() if value not in values}
    phrases: dict[tuple[int, ...], int] = {}
    for value in values:
        if value not in ids:
            raise DataError(f"the pattern contains the phrase {short(value)}, which is not a token")
        chunks = [chunk.encode() for chunk in boundaries.chunks(value.decode())]
        missing = next((chunk for chunk in chunks if chunk not in plain), None)
        if missing is not None:
            raise DataError(f"chunk {short(missing)} of phrase {short(value)} is not a token")
        phrases[tuple(plain[chunk] for chunk in chunks)] = ids[value]
    return replace(create(original, plain), phrases=phrases)

r"""Phrases as a regular expression, for tools that do not support them: all phrases, or else the pattern of the model.

tiktoken and Hugging Face then find each phrase as one chunk, which is a token. The pattern of the model follows the
phrases, which are written as a tree, so that common beginnings are written once:

    pattern      = "(?:" alternatives ")|" the pattern of the model
    alternatives = alternative { "|" alternative }
    alternative  = literal "(?:" alternatives ")"   phrases that start with the literal
                 | literal [ look-ahead ]           a phrase ends here; inside a group, the literal can be empty
    literal      = characters; a backslash escapes those that are special in a regular expression
    look-ahead   = "(?!" a regular expression ")"

Branches are in the order in which the phrases first need them. The alternative with an empty literal is the last of its
group, because engines try alternatives in order, and the longest phrase must be found. Groups are nested up to
`_MAX_DEPTH`; deeper phrases are written out one by one. `split_pattern` accepts exactly what `pattern_with_phrases`
writes: it renders the phrases that it has found again, and compares.

A phrase ends where its last chunk ends, unless what follows changes its chunks: " of the" must not match the start of
" of them". So each phrase is followed by a negative look-ahead, which is computed (see `boundaries`). A phrase then
matches exactly where the pattern finds its chunks, and the text after it is split as before, because the pattern does
not look behind.

Other text is encoded as before, except that both tools look whole chunks up among all tokens, and that tiktoken merges
any two neighbors that are a token together. Therefore no phrase may be a chunk by itself, and for tiktoken no phrase
may be part of a chunk.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from .._core import patterns
from ..boundaries import Boundaries, NotSupportedError, boundaries_of
from ..errors import DataError, Message, Setting, short
from ..model import Model
from ..model.checks import MAX_PHRASE_BYTES

_SPECIAL = frozenset(r"\.+*?()|[]{}^$")
_MAX_DEPTH = 24
"""Groups that would be nested more deeply are written out: tiktoken's engine has a limit."""
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
"""The look-aheads in files from when the patterns in `_FORMERLY_SUPPORTED` had fixed look-aheads."""
_FORMERLY_SUPPORTED = frozenset(regex for name, regex in patterns() if name not in ("deepseek", "kimi"))
_OTHER_FORMATS: Message = ("use ", Setting("format", "batchbpe"), " or ", Setting("format", "transformers"))


def pattern_with_phrases(model: Model) -> str:
    """Return a regular expression that finds the phrases of a model and otherwise its chunks. Raise if there is none.

    Without phrases, this is the pattern of the model.

    >>> merges = {(32, 97): 256, (32, 98): 257}
    >>> model = Model(dict(patterns())["gpt2"], merges, phrases={(256, 257): 258, (256, 257, 257): 259})
    >>> pattern_with_phrases(model).removesuffix(model.pattern)
    '(?: a b(?: b(?!\\\\p{L})|(?!\\\\p{L})))|'
    """
    if not model.phrases:
        return model.pattern
    boundaries = _boundaries(model)
    lookaheads = {}
    for parts, token in model.phrases.items():
        try:
            lookaheads[model.vocab[token].decode()] = _lookahead_after(boundaries, model, parts)
        except NotSupportedError as error:
            reason = f"phrase {token}, {short(model.vocab[token])}, {error}"
            raise DataError(reason, remedy=_OTHER_FORMATS) from None
    return f"{_Tree.build(lookaheads).render()}{model.pattern}"


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
    """Return the look-ahead that follows a phrase. Raise `NotSupportedError` if it cannot be found exactly."""
    chunks = [model.vocab[part].decode(errors="replace") for part in parts]
    text = "".join(chunks)
    if boundaries.chunks(text) != chunks:
        raise NotSupportedError("is not split into its chunks by the pattern")
    if boundaries.is_chunk(text):
        raise NotSupportedError("can be a single chunk too")
    return _lookahead(boundaries, text)


def _lookahead(boundaries: Boundaries, text: str) -> str:
    condition = boundaries.condition(text)
    return f"(?!{condition})" if condition else ""


def is_exportable(model: Model, parts: tuple[int, ...], *, by_rank: bool) -> bool:
    """Return whether a tool that merges by rank (tiktoken), or another one, can find a phrase exactly."""
    try:
        boundaries = boundaries_of(model.pattern)
        _lookahead_after(boundaries, model, parts)
    except NotSupportedError:
        return False
    value = model.vocab[model.phrases[parts]]
    return model.token_ids[value] == model.phrases[parts] and not (by_rank and boundaries.is_inside(value.decode()))


@dataclass(slots=True)
class _Tree:
    """Phrases that start with the same text."""

    branches: dict[str, _Tree] = field(default_factory=dict)
    """The phrases that continue with each character."""
    lookahead: str | None = None
    """The look-ahead of the phrase that ends here, or None if no phrase does."""

    @classmethod
    def build(cls, lookaheads: Mapping[str, str]) -> _Tree:
        """Create a tree from the look-ahead of each phrase."""
        root = cls()
        for text, lookahead in lookaheads.items():
            node = root
            for character in text:
                if character not in node.branches:
                    node.branches[character] = cls()
                node = node.branches[character]
            node.lookahead = lookahead
        return root

    def render(self) -> str:
        """Write the part of the pattern before that of the model."""
        return f"(?:{'|'.join(self._alternatives(depth=1))})|"

    def _alternatives(self, depth: int) -> Iterator[str]:
        for character, node in self.branches.items():
            literal = _escaped(character)
            while len(node.branches) == 1 and node.lookahead is None:  # a chain needs no group
                ((character, node),) = node.branches.items()
                literal += _escaped(character)
            if not node.branches:
                yield f"{literal}{node.lookahead}"
            elif depth < _MAX_DEPTH:
                yield f"{literal}(?:{'|'.join(node._alternatives(depth + 1))})"
            else:
                yield from (literal + rest for rest in node._written_out())
        if self.lookahead is not None:
            yield self.lookahead

    def _written_out(self) -> Iterator[str]:
        """Yield each phrase, longer ones first, without recursion: phrases can be long."""
        stack = [("", self)]
        while stack:
            literal, node = stack.pop()
            if not node.branches:
                yield f"{literal}{node.lookahead}"
                continue
            if node.lookahead is not None:
                stack.append((literal, _Tree(lookahead=node.lookahead)))
            stack += reversed([(literal + _escaped(character), each) for character, each in node.branches.items()])


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
        lookaheads, end = _Reader(pattern).read()
        original = pattern[end:]
        boundaries = boundaries_of(original)
        is_former = original in _FORMERLY_SUPPORTED and _FORMER.issuperset(lookaheads.values())
        expected = {}
        for text, lookahead in lookaheads.items():
            if len(boundaries.chunks(text)) < 2:
                raise _NotATreeError
            expected[text] = lookahead if is_former else _lookahead(boundaries, text)
        is_phrases = _Tree.build(expected).render() == pattern[:end]
    except (_NotATreeError, NotSupportedError):
        is_phrases = False
    return (original, (*lookaheads,)) if is_phrases else (pattern, ())


class _NotATreeError(Exception):
    """A regular expression is not a tree of phrases."""


class _Reader:
    """Reads the tree at the start of a regular expression. It accepts more than `_Tree.render` writes.

    >>> _Reader("(?:a(?:b(?!c)|))|x").read()
    ({'ab': '(?!c)', 'a': ''}, 17)
    """

    _LITERAL = re.compile(r"(?:[^\\()|]|\\.)*", re.DOTALL)
    _INSIDE_GROUP = re.compile(r"\\.|\[\^?\]?|[\]()]", re.DOTALL)

    def __init__(self, pattern: str) -> None:
        self._pattern, self._at = pattern, 0

    def read(self) -> tuple[dict[str, str], int]:
        """Return the look-ahead of each phrase, and where the pattern of the model starts."""
        lookaheads: dict[str, str] = {}
        size = 0
        self._expect("(?:")
        prefixes = [""]  # the text before each group that is open
        while prefixes:
            text = prefixes[-1] + self._literal()
            size += len(text.encode("utf-8", "surrogatepass"))
            if size > MAX_PHRASE_BYTES:
                reason = f"the phrases of a pattern must have at most {MAX_PHRASE_BYTES:,} bytes in total"
                raise DataError(f"{reason}, got {size:,} or more, up to {short(text)}")
            if self._skip("(?:"):
                prefixes.append(text)
                continue
            lookaheads[text] = self._lookahead()
            while prefixes and self._skip(")"):
                prefixes.pop()
            self._expect("|")
        return lookaheads, self._at

    def _skip(self, token: str) -> bool:
        """Continue after a token if it is next, and return whether it is."""
        is_next = self._pattern.startswith(token, self._at)
        self._at += len(token) * is_next
        return is_next

    def _expect(self, token: str) -> None:
        if not self._skip(token):
            raise _NotATreeError

    def _literal(self) -> str:
        written = self._LITERAL.match(self._pattern, self._at)[0]  # type: ignore[index]  # it may be empty
        self._at += len(written)
        return re.sub(r"\\(.)", r"\1", written, flags=re.DOTALL)

    def _lookahead(self) -> str:
        """Return the look-ahead that is next, or an empty string."""
        start, depth, sets = self._at, 0, 0
        if not self._skip("(?!"):
            return ""
        for token in self._INSIDE_GROUP.finditer(self._pattern, self._at):
            if token[0].startswith("["):
                sets += 1
            elif token[0] == "]":
                sets -= sets > 0
            elif not sets:
                depth += {"(": 1, ")": -1}.get(token[0], 0)
                if depth < 0:
                    self._at = token.end()
                    return self._pattern[start : self._at]
        raise _NotATreeError


def has_phrases(pattern: str) -> bool:
    """Return whether a pattern is what `pattern_with_phrases` returned for a model with phrases."""
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

"""`Model`: all that a tokenizer is. Frozen, and valid once made: training makes it, formats translate it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from .errors import short

MAX_ID = (1 << 24) - 1
MAX_BYTES = 1 << 28
"""Of all tokens together: a small file can describe a token of any length, by doubling it again and again."""

MAX_SPECIAL_BYTES = 1 << 20
"""Of all special tokens together."""
MAX_DEPTH, MAX_LINES, MAX_SHOWN = 100, 10_000, 200
"""Of a tree that is printed: levels, lines, and bytes of a token."""


class UnknownTokenError(KeyError, ValueError):
    """No token has that id: to tiktoken a KeyError, to minbpe and the paper's program a ValueError."""

    def __init__(self, token: object, largest: int) -> None:
        """Name the id, and the largest that there is."""
        super().__init__(f"there is no token {short(token)}; the largest id is {largest}")

    __str__ = Exception.__str__  # KeyError's own shows the message in quotes


@dataclass(frozen=True, repr=False, eq=False)
class MergeTree:
    """A token, and the two that it was merged from, if it was. Printed, it is the tree, a token a line.

    A tree may be deep, and have more tokens than fit in memory when it is drawn: `str` shows 100 levels and 10,000
    lines at most, "… N more tokens" in place of the others, and the first 60 bytes of a long token.
    """

    token: int
    value: bytes
    parts: tuple[MergeTree, MergeTree] | tuple[()] = ()

    def __str__(self) -> str:
        """Draw the tree, a token a line."""
        lines: list[str] = []
        todo: list[tuple[str, str, int, MergeTree]] = [("", "", 0, self)]
        sizes: dict[int, int] = {}
        while todo:
            before, below, depth, tree = todo.pop()
            if len(lines) >= MAX_LINES:
                rest = sum(_size(other[-1], sizes) for other in todo) + _size(tree, sizes)
                return "\n".join([*lines, f"… {rest:,} more tokens"])
            if depth >= MAX_DEPTH:
                lines.append(f"{before}… {_size(tree, sizes):,} more tokens")
                continue
            lines.append(f"{before}{tree.token} {_text(tree.value)}")
            if tree.parts:
                first, last = tree.parts
                todo.append((f"{below}└─ ", f"{below}   ", depth + 1, last))
                todo.append((f"{below}├─ ", f"{below}│  ", depth + 1, first))
        return "\n".join(lines)

    def __repr__(self) -> str:
        """Name the token and its parts, not what they consist of."""
        parts = "".join(f", {part.token}" for part in self.parts)
        return f"MergeTree({self.token}, {_text(self.value)}{parts})"

    def __eq__(self, other: object) -> bool:
        """Whether the other is the same tree."""
        if not isinstance(other, MergeTree):
            return NotImplemented
        todo, seen = [(self, other)], set()
        while todo:
            one, two = todo.pop()
            if one is two or (id(one), id(two)) in seen:
                continue
            seen.add((id(one), id(two)))
            if (one.token, one.value, len(one.parts)) != (two.token, two.value, len(two.parts)):
                return False
            todo += zip(one.parts, two.parts, strict=True)
        return True

    def __hash__(self) -> int:
        """Give a number that equal trees share."""
        return hash((self.token, self.value))


def _text(value: bytes) -> str:
    if len(value) <= MAX_SHOWN:
        return repr(value.decode("utf-8", "backslashreplace"))
    return f"{value[:60].decode('utf-8', 'backslashreplace')!r}… ({len(value):,} bytes)"


def _size(root: MergeTree, sizes: dict[int, int]) -> int:
    """Count the tokens of a tree; parts that it has more than once are looked at once."""
    todo = [root]
    while todo:
        tree = todo[-1]
        missing = [part for part in tree.parts if id(part) not in sizes]
        todo += missing
        if not missing:
            sizes[id(todo.pop())] = 1 + sum(sizes[id(part)] for part in tree.parts)
    return sizes[id(root)]


def check_special_size(special_tokens: Iterable[str]) -> None:
    """Raise if special tokens are so long that looking for them takes too much memory.

    >>> check_special_size(["<|endoftext|>", "x" * 2_000_000])
    Traceback (most recent call last):
    ...
    ValueError: special tokens may have 1,048,576 bytes in all, not 2,000,013: shorten 'xxx…xxx' (2,000,000 characters)
    """
    sizes = {name: len(name.encode("utf-8", "surrogatepass")) for name in special_tokens}
    size = sum(sizes.values())
    if size > MAX_SPECIAL_BYTES:
        longest = short(max(sizes, key=lambda name: sizes[name]), limit=9)
        raise ValueError(f"special tokens may have {MAX_SPECIAL_BYTES:,} bytes in all, not {size:,}: shorten {longest}")


def check_special_tokens(special_tokens: Sequence[str] | Mapping[str, int]) -> None:
    """Raise unless these are different texts, in an order or with ids.

    >>> check_special_tokens("<|endoftext|>")
    Traceback (most recent call last):
    ...
    TypeError: special_tokens='<|endoftext|>': give a list of texts, or a dict with their ids
    """
    if isinstance(special_tokens, str) or not isinstance(special_tokens, Sequence | Mapping):
        raise TypeError(f"special_tokens={short(special_tokens)}: give a list of texts, or a dict with their ids")
    for name in special_tokens:
        if not isinstance(name, str) or not name:
            raise TypeError(f"the special token {short(name)} is no text: give a str that is not empty")
        if isinstance(special_tokens, Mapping) and type(special_tokens[name]) is not int:
            raise TypeError(f"special token {short(name)}: the id {short(special_tokens[name])} is no int")
    check_special_size(special_tokens)
    if len(set(special_tokens)) < len(special_tokens):
        raise ValueError(f"special_tokens={short(special_tokens)}: one is there twice")


@dataclass(frozen=True)
class Model:
    """A pattern, and tokens with their ids: bytes, stop words, merges in the order they were made, special tokens.

    >>> model = Model(pattern=r"\\w+", merges={(97, 97): 256, (256, 98): 257})
    >>> model.vocab[257]
    b'aab'
    >>> Model(pattern=r"\\w+", merges={(97, 256): 257})
    Traceback (most recent call last):
    ...
    ValueError: merge 0, (97, 256) -> 257: there is no token 256 before it; put merges in the order they were made
    """

    pattern: str
    """The regular expression that cuts text into chunks."""
    merges: Mapping[tuple[int, int], int]
    stop_words: Mapping[bytes, int] = field(default_factory=dict)
    special_tokens: Mapping[str, int] = field(default_factory=dict)
    byte_ids: tuple[int, ...] = tuple(range(256))
    """The id of each byte."""
    training: Mapping[str, Any] = field(default_factory=dict)
    """How it was trained: for the record, nothing depends on it."""

    def __post_init__(self) -> None:
        """Check everything, so that whoever holds a model need not."""
        self.vocab  # noqa: B018  builds it, which checks the ids

    @cached_property
    def vocab(self) -> dict[int, bytes]:
        """The bytes of every token, by id, special tokens included."""
        if not isinstance(self.pattern, str):
            raise TypeError(f"pattern is {short(self.pattern)}: give a regular expression as a str")
        if not self.pattern:
            raise ValueError("the pattern is empty: give a regular expression")
        if len(self.byte_ids) != 256 or len(set(self.byte_ids)) != 256:
            raise ValueError("byte_ids must be 256 different ids, one for each byte")
        size = 0
        vocab = {token: bytes([byte]) for byte, token in enumerate(self.byte_ids)}
        for rank, ((first, last), token) in enumerate(self.merges.items()):
            try:
                value = vocab[first] + vocab[last]
            except KeyError as missing:
                raise ValueError(
                    f"merge {rank}, ({first}, {last}) -> {token}: there is no token {missing} before it; "
                    "put merges in the order they were made"
                ) from None
            if token in vocab:
                raise ValueError(
                    f"merge {rank}, ({first}, {last}) -> {token}: the id is taken by {short(vocab[token])}"
                )
            size += len(value)
            if size > MAX_BYTES:
                what = f"merge {rank}, ({first}, {last}) -> {token}"
                raise ValueError(f"{what}: the tokens have over {MAX_BYTES} bytes in all")
            vocab[token] = value
        for word in self.stop_words:
            if not isinstance(word, bytes):
                raise TypeError(f"the stop word {short(word)} is a {type(word).__name__}: give bytes")
        for name in self.special_tokens:
            if not isinstance(name, str):
                raise TypeError(f"the special token {short(name)} is a {type(name).__name__}: give a str")
        check_special_size(self.special_tokens)
        special_tokens = ((name.encode("utf-8"), token) for name, token in self.special_tokens.items())
        for value, token in (*self.stop_words.items(), *special_tokens):
            if not value:
                raise ValueError(f"the token {token} is empty: give it at least one byte")
            if token in vocab:
                raise ValueError(f"{short(value)}: the id {token} is taken by {short(vocab[token])}; choose another")
            vocab[token] = value
        if set(map(type, vocab)) != {int} or min(vocab) < 0 or max(vocab) > MAX_ID:
            wrong = next(token for token in vocab if type(token) is not int or not 0 <= token <= MAX_ID)
            raise ValueError(
                f"the id {short(wrong)} of {short(vocab[wrong])} is out of range: ids go from 0 to {MAX_ID}"
            )
        return {token: vocab[token] for token in sorted(vocab)}

    @property
    def n_vocab(self) -> int:
        """One more than the largest id."""
        return next(reversed(self.vocab)) + 1

    def merge_tree(self, token: int) -> MergeTree:
        """Show how a token is built."""
        if token not in self.vocab:
            raise UnknownTokenError(token, self.n_vocab - 1)
        made = {merged: pair for pair, merged in self.merges.items()}
        needed, todo = set(), [token]
        while todo:
            part = todo.pop()
            if part not in needed:
                needed.add(part)
                todo += made.get(part, ())
        trees = {part: MergeTree(part, self.vocab[part]) for part in needed - made.keys()}
        for (first, last), merged in self.merges.items():  # each after its parts
            if merged in needed:
                trees[merged] = MergeTree(merged, self.vocab[merged], (trees[first], trees[last]))
        return trees[token]

"""`Model`: all that a tokenizer is. Frozen, and valid once made: training makes it, formats translate it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

MAX_ID = (1 << 24) - 1
MAX_BYTES = 1 << 28
"""Of all tokens together: a small file can describe a token of any length, by doubling it again and again."""


class UnknownTokenError(KeyError, ValueError):
    """No token has that id: to tiktoken a KeyError, to minbpe and the paper's program a ValueError."""

    def __init__(self, token: object, largest: int) -> None:
        """Name the id, and the largest that there is."""
        super().__init__(f"there is no token {token!r}; the largest id is {largest}")

    __str__ = Exception.__str__  # KeyError's own shows the message in quotes


@dataclass(frozen=True)
class MergeTree:
    """A token, and the two that it was merged from, if it was; printed, the whole tree."""

    token: int
    value: bytes
    parts: tuple[MergeTree, MergeTree] | tuple[()] = ()

    def __str__(self) -> str:
        """Draw the tree, a token a line."""
        lines = []
        todo: list[tuple[str, str, MergeTree]] = [("", "", self)]
        while todo:
            before, below, tree = todo.pop()
            lines.append(f"{before}{tree.token} {tree.value.decode('utf-8', 'backslashreplace')!r}")
            if tree.parts:
                first, last = tree.parts
                todo += [(f"{below}└─ ", f"{below}   ", last), (f"{below}├─ ", f"{below}│  ", first)]
        return "\n".join(lines)


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
            raise TypeError(f"pattern is {self.pattern!r}: give a regular expression as a str")
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
                raise ValueError(f"merge {rank}, ({first}, {last}) -> {token}: the id is taken by {vocab[token]!r}")
            size += len(value)
            if size > MAX_BYTES:
                what = f"merge {rank}, ({first}, {last}) -> {token}"
                raise ValueError(f"{what}: the tokens have over {MAX_BYTES} bytes in all")
            vocab[token] = value
        for word in self.stop_words:
            if not isinstance(word, bytes):
                raise TypeError(f"the stop word {word!r} is a {type(word).__name__}: give bytes")
        for name in self.special_tokens:
            if not isinstance(name, str):
                raise TypeError(f"the special token {name!r} is a {type(name).__name__}: give a str")
        special_tokens = ((name.encode("utf-8"), token) for name, token in self.special_tokens.items())
        for value, token in (*self.stop_words.items(), *special_tokens):
            if not value:
                raise ValueError(f"the token {token} is empty: give it at least one byte")
            if token in vocab:
                raise ValueError(f"{value!r}: the id {token} is taken by {vocab[token]!r}; choose another")
            vocab[token] = value
        if set(map(type, vocab)) != {int} or min(vocab) < 0 or max(vocab) > MAX_ID:
            wrong = next(token for token in vocab if type(token) is not int or not 0 <= token <= MAX_ID)
            raise ValueError(f"the id {wrong!r} of {vocab[wrong]!r} is out of range: ids go from 0 to {MAX_ID}")
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

"""`MergeTree`: a token and the tokens it was merged from, printed as a tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

MAX_DEPTH = 100
"""Levels of a tree that are printed."""
MAX_LINES = 10_000
"""Lines of a tree that are printed."""
MAX_SHOWN_BYTES = 200
"""Tokens longer than this are abbreviated."""


class Line(NamedTuple):
    """A line of a tree that is drawn."""

    tree: MergeTree | None
    """The tree whose token is on the line. None if the line is about tokens that are left out."""
    text: str
    """The token, or how many are left out."""
    depth: int
    branch: str
    """What is before the text."""


@dataclass(frozen=True, repr=False, eq=False)
class MergeTree:
    """A token and, unless it is a leaf, the tokens it was made from.

    `str` draws the tree with one token per line, and a notebook displays it so that parts can be folded. A tree can be
    deep, and drawn out it can have more nodes than fit in memory, so `str` shows at most 100 levels and 10,000 lines,
    replaces the rest with "… N more tokens", and shows the first 60 bytes of a long token.

    >>> ab = MergeTree(256, b"ab", (MergeTree(97, b"a"), MergeTree(98, b"b")))
    >>> print(ab)
    256 'ab'
    ├─ 97 'a'
    └─ 98 'b'
    >>> ab
    MergeTree(256, 'ab', 97, 98)
    """

    token: int
    """The id of the token."""
    value: bytes
    """Its bytes."""
    parts: tuple[MergeTree, ...] = ()
    """The two tokens it was merged from, or the chunks of a phrase."""

    def __str__(self) -> str:
        """Draw the tree with one token per line."""
        return "\n".join(f"{line.branch}{line.text}" for line in self.lines(MAX_LINES))

    def lines(self, max_lines: int) -> Iterator[Line]:
        """Yield up to `max_lines` lines of the tree, and one more if tokens are left out at the end."""
        stack: list[tuple[str, str, int, MergeTree]] = [("", "", 0, self)]
        sizes: dict[int, int] = {}
        for _ in range(max_lines):
            if not stack:
                return
            branch, indent, depth, tree = stack.pop()
            if depth >= MAX_DEPTH:
                yield Line(None, f"… {_size(tree, sizes):,} more tokens", depth, branch)
                continue
            yield Line(tree, f"{tree.token} {_abbreviate(tree.value)}", depth, branch)
            if tree.parts:
                *others, last = tree.parts
                stack.append((f"{indent}└─ ", f"{indent}   ", depth + 1, last))
                stack += ((f"{indent}├─ ", f"{indent}│  ", depth + 1, part) for part in reversed(others))
        if stack:
            rest = sum(_size(waiting[-1], sizes) for waiting in stack)
            yield Line(None, f"… {rest:,} more tokens", 0, "")

    def _repr_html_(self) -> str:
        """Display the tree in a notebook."""
        from ..analysis.tree_html import tree_as_html

        return tree_as_html(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Draw the tree in IPython."""
        printer.text(str(self))

    def __repr__(self) -> str:
        """Show the token and the ids of its parts, but not the whole tree."""
        parts = "".join(f", {part.token}" for part in self.parts)
        return f"MergeTree({self.token}, {_abbreviate(self.value)}{parts})"

    def __eq__(self, other: object) -> bool:
        """Compare node by node, without recursion because trees can be deep."""
        if not isinstance(other, MergeTree):
            return NotImplemented
        stack, seen = [(self, other)], set()
        while stack:
            one, two = stack.pop()
            if one is two or (id(one), id(two)) in seen:
                continue
            seen.add((id(one), id(two)))
            if (one.token, one.value, len(one.parts)) != (two.token, two.value, len(two.parts)):
                return False
            stack += zip(one.parts, two.parts, strict=True)
        return True

    def __hash__(self) -> int:
        """Hash the token, which equal trees share."""
        return hash((self.token, self.value))


def _abbreviate(value: bytes) -> str:
    if len(value) <= MAX_SHOWN_BYTES:
        return repr(value.decode("utf-8", "backslashreplace"))
    return f"{value[:60].decode('utf-8', 'backslashreplace')!r}… ({len(value):,} bytes)"


def _size(root: MergeTree, sizes: dict[int, int]) -> int:
    """Count the nodes of a tree. `sizes` caches the sizes of subtrees by identity, since parts are shared."""
    stack = [root]
    while stack:
        tree = stack[-1]
        missing = [part for part in tree.parts if id(part) not in sizes]
        stack += missing
        if not missing:
            sizes[id(stack.pop())] = 1 + sum(sizes[id(part)] for part in tree.parts)
    return sizes[id(root)]

"""`MergeTree`: a token and the tokens it was merged from, printed as a tree."""

from __future__ import annotations

from dataclasses import dataclass

MAX_DEPTH = 100
"""Levels of a tree that are printed."""
MAX_LINES = 10_000
"""Lines of a tree that are printed."""
MAX_SHOWN_BYTES = 200
"""Tokens longer than this are abbreviated."""


@dataclass(frozen=True, repr=False, eq=False)
class MergeTree:
    """A token and, unless it is a leaf, the tokens it was made from.

    `str` draws the tree with one token per line. A tree can be deep, and drawn out it can have more nodes than fit in
    memory, so `str` shows at most 100 levels and 10,000 lines, replaces the rest with "… N more tokens", and shows the
    first 60 bytes of a long token.

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
        lines: list[str] = []
        stack: list[tuple[str, str, int, MergeTree]] = [("", "", 0, self)]
        sizes: dict[int, int] = {}
        while stack:
            branch, indent, depth, tree = stack.pop()
            if len(lines) >= MAX_LINES:
                rest = _size(tree, sizes) + sum(_size(waiting[-1], sizes) for waiting in stack)
                return "\n".join([*lines, f"… {rest:,} more tokens"])
            if depth >= MAX_DEPTH:
                lines.append(f"{branch}… {_size(tree, sizes):,} more tokens")
                continue
            lines.append(f"{branch}{tree.token} {_abbreviate(tree.value)}")
            if tree.parts:
                *others, last = tree.parts
                stack.append((f"{indent}└─ ", f"{indent}   ", depth + 1, last))
                stack += ((f"{indent}├─ ", f"{indent}│  ", depth + 1, part) for part in reversed(others))
        return "\n".join(lines)

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

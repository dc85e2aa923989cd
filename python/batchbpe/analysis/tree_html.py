"""A merge tree as HTML: tokens in color, with parts that can be folded."""

from __future__ import annotations

import html
from collections.abc import Iterator

from ..model.tree import MergeTree
from .display import COLORS, quoted_token

MAX_LINES = 1000
"""Lines of a tree that a notebook displays."""
OPEN_LEVELS = 5
"""Levels of a tree that are not folded at first."""
_TOKEN = "color:#111;border-radius:2px;padding:0 2px;white-space:pre-wrap"


def tree_as_html(tree: MergeTree) -> str:
    """Render a token, and below it, indented, the tokens that it was merged from.

    >>> tree = Tokenizer.train("aaabdaaabac", 257).merge_tree(256)
    >>> html = tree_as_html(tree)
    >>> html.count("<details open>"), html.count("&#x27;a&#x27;")
    (1, 2)
    """
    style = "font-family:monospace;line-height:1.7"
    return f'<div style="{style}">{"".join(_elements(tree))}</div>'


def _elements(root: MergeTree) -> Iterator[str]:
    depths: list[int] = []  # of the elements that are open
    for tree, text, depth, _ in root.lines(MAX_LINES):
        while depths and depths[-1] >= depth:
            depths.pop()
            yield "</div></details>"
        if tree is None:
            yield f"<div>{text}</div>"
            continue
        style = f"background:{COLORS[depth % len(COLORS)]};{_TOKEN}"
        label = f'<span style="{style}">{html.escape(quoted_token(tree.value))}</span> {tree.token}'
        if not tree.parts:
            yield f'<div style="padding-left:1.1em">{label}</div>'
            continue
        yield f"<details{' open' * (depth < OPEN_LEVELS)}><summary>{label}</summary>"
        yield '<div style="margin-left:.35em;padding-left:1.1em;border-left:1px solid #8888">'
        depths.append(depth)
    yield "</div></details>" * len(depths)

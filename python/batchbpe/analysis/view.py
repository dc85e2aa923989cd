"""Tokens to be looked at: in colours, in a notebook or a terminal."""

from __future__ import annotations

import html
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from .inspection import shown

if TYPE_CHECKING:
    from ..tokenizer import Tokenizer

COLOURS = ("#d7e8ff", "#ffe2c7", "#d9f2d0", "#f4d9ec", "#fff3b8")


class Encoding(Sequence[int]):
    """The ids of a text, which a notebook shows as the text in coloured tokens.

    >>> from batchbpe import Tokenizer
    >>> encoding = Tokenizer.train("aaabdaaabac", 259).view("aaabd")
    >>> encoding
    Encoding([258, 100])
    >>> encoding.tokens
    [b'aaab', b'd']
    """

    def __init__(self, tokenizer: Tokenizer, ids: Sequence[int]) -> None:
        """Take ids and the tokenizer that they are of."""
        self.tokenizer, self.ids = tokenizer, list(ids)

    def __len__(self) -> int:
        """Give the number of tokens."""
        return len(self.ids)

    def __getitem__(self, place: Any) -> Any:
        """Give an id, or some."""
        return self.ids[place]

    def __repr__(self) -> str:
        """Show the ids."""
        return f"Encoding({self.ids})"

    @property
    def tokens(self) -> list[bytes]:
        """The bytes of each token."""
        return [self.tokenizer.vocab[token] for token in self.ids]

    def _repr_html_(self) -> str:
        """Give the text in coloured tokens, each with its id and bytes where the mouse rests."""
        spans = []
        for place, (token, value) in enumerate(zip(self.ids, self.tokens, strict=True)):
            colour = COLOURS[place % len(COLOURS)]
            title = html.escape(f"{token}: {shown(value)}")
            style = f"background:{colour};color:#111;border-radius:2px"
            spans.append(f'<span style="{style}" title="{title}">{html.escape(printable(value))}</span>')
        style = "white-space:pre-wrap;font-family:monospace;line-height:1.6"
        return f'<div style="{style}">{"".join(spans)}</div><div>{len(self):,} tokens</div>'

    def show(self) -> None:
        """Print the text in coloured tokens, or with | between them where there are no colours."""
        from rich.console import Console

        console = Console(highlight=False, soft_wrap=True)
        if console.is_terminal:
            console.print(coloured(self.tokenizer, self.ids))
        else:
            sys.stdout.write("|".join(shown(token)[1:-1] for token in self.tokens) + "\n")


def printable(token: bytes) -> str:
    """Give a token as text; bytes that are no character of their own in hexadecimal.

    >>> printable(b" a"), printable(b"\\xc3"), printable(b"\\x00\\n")
    (' a', '\\\\xc3', '\\\\x00\\n')
    """
    try:
        return "".join(c if c.isprintable() or c in "\n\t" else repr(c)[1:-1] for c in token.decode("utf-8"))
    except UnicodeDecodeError:
        return repr(token)[2:-1]


def coloured(tokenizer: Tokenizer, ids: Iterable[int]) -> Any:
    """Give a text of rich, each token in the next colour.

    >>> from batchbpe import Tokenizer
    >>> coloured(Tokenizer.train("aaabdaaabac", 259), [258, 195, 10]).plain
    'aaab\\\\xc3\\n'
    """
    from rich.text import Text

    text = Text()
    for place, token in enumerate(ids):
        text.append(printable(tokenizer.vocab[token]), style=f"black on {COLOURS[place % len(COLOURS)]}")
    return text

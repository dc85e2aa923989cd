"""Display tokens in colour, in a notebook or a terminal.

Tokens that contain only part of a character, or of a letter with marks or an emoji sequence, are joined, so that text
stays readable in any script.
"""

from __future__ import annotations

import html
import sys
import unicodedata
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

from ..errors import plural
from .display import printable, quoted_token

if TYPE_CHECKING:
    from rich.text import Text

    from ..tokenizer import Tokenizer

COLOURS = ("#d7e8ff", "#ffe2c7", "#d9f2d0", "#f4d9ec", "#fff3b8")
_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_JOINERS = "\u200c\u200d"
"""They make emoji sequences, and shape letters of Persian and Indic scripts."""
_LINE_BREAK = '<span style="opacity:.5;user-select:none">↵</span>\n'
"""A visible line break in html. The sign is not copied with the text."""


@dataclass(frozen=True)
class Piece:
    """One token, several consecutive tokens that share characters, or text without tokens that the pattern drops.

    >>> Piece((230, 151, 165), "日".encode()).text
    '日₃'
    """

    ids: tuple[int, ...]
    value: bytes
    special: bool = False

    @property
    def text(self) -> str:
        """The piece on one line, followed by the number of tokens if there are several."""
        return self.printed(keep="") + self.count

    def printed(self, keep: str = "\n\t") -> str:
        r"""Return the piece as text, in which unprintable characters other than `keep` are escaped.

        >>> Piece((0,), "\u200d".encode()).printed(), Piece((0,), b"a\x00").printed()
        ('\\u200d', 'a\\x00')
        """
        is_joiner = self.value.decode("utf-8", "replace") in tuple(_JOINERS)
        return printable(self.value, keep if is_joiner else keep + _JOINERS)

    @property
    def count(self) -> str:
        """The number of tokens as a subscript; empty if there is one."""
        return str(len(self.ids)).translate(_SUBSCRIPTS) if len(self.ids) > 1 else ""

    @property
    def description(self) -> str:
        """The ids and the quoted text.

        >>> Piece((230, 151, 165), "日".encode()).description
        "230 151 165: '日' (3 tokens)"
        """
        if not self.ids:
            return f"{quoted_token(self.value)} (dropped by the pattern)"
        note = " (special token)" if self.special else f" ({len(self.ids)} tokens)" if len(self.ids) > 1 else ""
        return f"{' '.join(map(str, self.ids))}: {quoted_token(self.value)}{note}"


class Encoding(Sequence[int]):
    """The ids of a text, displayed by a notebook as the text in coloured tokens.

    >>> from batchbpe import Tokenizer
    >>> encoding = Tokenizer.train("aaabdaaabac", 259).view("aaabd")
    >>> encoding
    Encoding([258, 100])
    >>> encoding.tokens
    [b'aaab', b'd']
    """

    def __init__(self, tokenizer: Tokenizer, ids: Iterable[int]) -> None:
        """Store ids and the tokenizer that they belong to."""
        self.tokenizer, self.ids = tokenizer, list(ids)

    def __len__(self) -> int:
        """Return the number of tokens."""
        return len(self.ids)

    @overload
    def __getitem__(self, index: int) -> int: ...

    @overload
    def __getitem__(self, index: slice) -> list[int]: ...

    def __getitem__(self, index: int | slice) -> int | list[int]:
        """Return one id, or a list of ids for a slice."""
        return self.ids[index]

    def __repr__(self) -> str:
        """Show the ids."""
        return f"Encoding({self.ids})"

    @property
    def tokens(self) -> list[bytes]:
        """The bytes of each token."""
        return [self.tokenizer.vocab[token] for token in self.ids]

    @property
    def pieces(self) -> list[Piece]:
        """The tokens, joined where a character is split into several.

        >>> from batchbpe import Tokenizer
        >>> [piece.ids for piece in Tokenizer.train("a", 256).view("a日").pieces]
        [(97,), (230, 151, 165)]
        """
        return list(_pieces(self.tokenizer, self.ids))

    def _repr_html_(self) -> str:
        """Render the text in coloured tokens, with a sign at each line break; hovering over a token shows its ids."""
        return f"{pieces_as_html(self.pieces)}<div>{plural(len(self), 'token')}</div>"

    def show(self) -> None:
        """Print the text in coloured tokens, or with | between tokens if the output does not support 256 colours.

        A subscript is the number of tokens that a character is split into.

        >>> from batchbpe import Tokenizer
        >>> Tokenizer.train("aaabdaaabac", 259).view("aaab日").show()
        aaab|日₃
        """
        from rich.console import Console

        console = Console(highlight=False, soft_wrap=True)
        if console.color_system in ("256", "truecolor", "windows"):  # with fewer colours, all tokens would look alike
            console.print(coloured(self.tokenizer, self.ids))
        else:
            sys.stdout.write("|".join(piece.text for piece in self.pieces) + "\n")


def pieces_as_html(pieces: Iterable[Piece], marked: Container[int] = ()) -> str:
    """Render pieces in colours, with a sign at each line break. `marked` has the places of those to underline."""
    spans = []
    for place, piece in enumerate(pieces):
        style = f"background:{COLOURS[place % len(COLOURS)]};color:#111;border-radius:2px"
        if not piece.ids:
            style = "text-decoration:line-through;opacity:.6"
        if piece.special:
            style += ";outline:1px solid #b00020;font-weight:bold"
        if place in marked:
            style += ";box-shadow:inset 0 -3px #b3261e"
        elif len(piece.ids) > 1:
            style += ";border-bottom:2px dotted #555"
        title = html.escape(piece.description)
        text = html.escape(piece.printed()).replace("\n", _LINE_BREAK)
        spans.append(f'<span style="{style}" title="{title}">{text}</span>')
    # Each line gets the direction of its own text: right to left in Arabic and Hebrew.
    style = "white-space:pre-wrap;font-family:monospace;line-height:1.6;unicode-bidi:plaintext;overflow-wrap:anywhere"
    return f'<div dir="auto" style="{style}">{"".join(spans)}</div>'


def coloured(tokenizer: Tokenizer, ids: Iterable[int]) -> Text:
    """Return the text as a `rich.text.Text` in which each token has the next colour.

    >>> from batchbpe import Tokenizer
    >>> coloured(Tokenizer.train("aaabdaaabac", 259), [258, 195, 10]).plain
    'aaab\\\\xc3\\n'
    """
    from rich.text import Text

    text = Text()
    for place, piece in enumerate(_pieces(tokenizer, list(ids))):
        style = f"black on {COLOURS[place % len(COLOURS)]}" + (" bold underline" if piece.special else "")
        text.append(piece.printed() + piece.count, style=style)
    return text


def _pieces(tokenizer: Tokenizer, ids: Sequence[int]) -> Iterator[Piece]:
    """Join tokens until they end at the end of a character and its marks. An invalid byte counts as one character."""
    vocab: Any = tokenizer.vocab
    special = set(tokenizer.special_tokens.values())
    values = [vocab[token] for token in ids]
    characters = b"".join(values).decode("utf-8", "surrogateescape")
    ends = iter(_ends(characters))
    start, position, end = 0, 0, 0
    for place, value in enumerate(values):
        position += len(value)
        while end < position:
            end = next(ends)
        if end == position:
            first = start
            start = place + 1
            yield Piece(tuple(ids[first:start]), b"".join(values[first:start]), ids[place] in special)


def _ends(text: str) -> Iterator[int]:
    """Yield the offset in bytes at which each character ends, with its marks and what is joined to it."""
    offset = 0
    for place, character in enumerate(text):
        code = ord(character)
        is_invalid_byte = 0xDC80 <= code <= 0xDCFF
        offset += 1 if code < 0x80 or is_invalid_byte else 2 if code < 0x800 else 3 if code < 0x10000 else 4
        if not _belong(character, text[place + 1 : place + 2]):
            yield offset


def _belong(character: str, following: str) -> bool:
    """Return whether a mark, a joiner or a skin tone follows a character, or an emoji follows a joiner."""
    if following.isascii():
        return False
    category = unicodedata.category(following)
    is_joined = following == "\u200d" or (character == "\u200d" and category == "So")
    return is_joined or category[0] == "M" or "\U0001f3fb" <= following <= "\U0001f3ff"

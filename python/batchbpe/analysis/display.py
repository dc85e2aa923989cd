"""Display tokens as text, and in color in a notebook or a terminal.

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

if TYPE_CHECKING:
    from ..tokenizer import Tokenizer

COLORS = ("#d7e8ff", "#ffe2c7", "#d9f2d0", "#f4d9ec", "#fff3b8")
MAX_BYTES = 60
"""Maximum number of bytes of a token that `quoted_token` displays."""
_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_JOINERS = "\u200c\u200d"
"""They make emoji sequences, and shape letters of Persian and Indic scripts."""
_LINE_BREAK = '<span style="opacity:.5;user-select:none">↵</span>\n'
"""A visible line break in html. The sign is not copied with the text."""


def decoded(value: bytes) -> str | None:
    """Return bytes as text, or None if they are not valid UTF-8."""
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return None


def quoted_token(token: bytes) -> str:
    """Return a token in quotes, on one line; tokens longer than 60 bytes are truncated.

    >>> quoted_token(b" the"), quoted_token(b"\\n\\xff"), quoted_token("né".encode())
    ("' the'", "'\\\\n\\\\xff'", "'né'")
    """
    if len(token) > MAX_BYTES:
        return quoted_token(token[:MAX_BYTES]) + "…"
    text = decoded(token)
    return repr(token)[1:] if text is None else repr(text)


def _escaped(character: str) -> str:
    if "\udc80" <= character <= "\udcff":  # an invalid byte, as `surrogateescape` decodes it
        return f"\\x{ord(character) - 0xDC00:02x}"
    return repr(character)[1:-1]


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
        r"""Return the piece as text, in which invalid UTF-8 and unprintable characters other than `keep` are escaped.

        >>> Piece((0,), "\u200d".encode()).printed(), Piece((0,), b"a\x00").printed(), Piece((0,), b" a\xc3").printed()
        ('\\u200d', 'a\\x00', ' a\\xc3')
        """
        text = self.value.decode("utf-8", "surrogateescape")
        if len(text) > 1:  # a joiner on its own would be invisible
            keep += _JOINERS
        return "".join(c if c.isprintable() or c in keep else _escaped(c) for c in text)

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
    """The ids of a text, displayed by a notebook as the text in colored tokens.

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
        vocab: Any = self.tokenizer.vocab
        return [vocab[token] for token in self.ids]

    @property
    def pieces(self) -> list[Piece]:
        """The tokens, joined until they end at the end of a character and its marks.

        An invalid byte counts as one character.

        >>> from batchbpe import Tokenizer
        >>> [piece.ids for piece in Tokenizer.train("a", 256).view("a日").pieces]
        [(97,), (230, 151, 165)]
        """
        ids, values, special = self.ids, self.tokens, set(self.tokenizer.special_tokens.values())
        ends = _character_ends(b"".join(values).decode("utf-8", "surrogateescape"))
        pieces: list[Piece] = []
        first = position = end = 0
        for index, value in enumerate(values):
            position += len(value)
            while end < position:
                end = next(ends)
            if end == position:
                joined = slice(first, index + 1)
                pieces.append(Piece(tuple(ids[joined]), b"".join(values[joined]), ids[index] in special))
                first = index + 1
        return pieces

    def _repr_html_(self) -> str:
        """Render the text in colored tokens, with a sign at each line break; hovering over a token shows its ids."""
        return f"{pieces_as_html(self.pieces)}<div>{plural(len(self), 'token')}</div>"

    def show(self) -> None:
        """Print the text in colored tokens, or with | between tokens if the output does not support 256 colors.

        A subscript is the number of tokens that a character is split into.

        >>> from batchbpe import Tokenizer
        >>> Tokenizer.train("aaabdaaabac", 259).view("aaab日").show()
        aaab|日₃
        """
        from rich.console import Console
        from rich.text import Text

        console = Console(highlight=False, soft_wrap=True)
        if console.color_system not in ("256", "truecolor", "windows"):  # in fewer colors, all tokens would look alike
            sys.stdout.write("|".join(piece.text for piece in self.pieces) + "\n")
            return
        text = Text()
        for index, piece in enumerate(self.pieces):
            style = f"black on {COLORS[index % len(COLORS)]}" + (" bold underline" if piece.special else "")
            text.append(piece.printed() + piece.count, style=style)
        console.print(text)


def pieces_as_html(pieces: Iterable[Piece], marked: Container[int] = ()) -> str:
    """Render pieces in color, with a sign at each line break. `marked` contains the indices of those to underline."""
    spans = []
    for index, piece in enumerate(pieces):
        style = f"background:{COLORS[index % len(COLORS)]};color:#111;border-radius:2px"
        if not piece.ids:
            style = "text-decoration:line-through;opacity:.6"
        if piece.special:
            style += ";outline:1px solid #b00020;font-weight:bold"
        if index in marked:
            style += ";box-shadow:inset 0 -3px #b3261e"
        elif len(piece.ids) > 1:
            style += ";border-bottom:2px dotted #555"
        title = html.escape(piece.description)
        text = html.escape(piece.printed()).replace("\n", _LINE_BREAK)
        spans.append(f'<span style="{style}" title="{title}">{text}</span>')
    # Each line has the direction of its text: right to left in Arabic and Hebrew.
    style = "white-space:pre-wrap;font-family:monospace;line-height:1.6;unicode-bidi:plaintext;overflow-wrap:anywhere"
    return f'<div dir="auto" style="{style}">{"".join(spans)}</div>'


def _character_ends(text: str) -> Iterator[int]:
    """Yield the offset in bytes at which each character ends, with its marks and what is joined to it."""
    offset = 0
    for index, character in enumerate(text):
        offset += len(character.encode("utf-8", "surrogateescape"))
        if not _belong(character, text[index + 1 : index + 2]):
            yield offset


def _belong(character: str, following: str) -> bool:
    """Return whether a mark, a joiner or a skin tone follows a character, or an emoji follows a joiner."""
    if following.isascii():
        return False
    category = unicodedata.category(following)
    is_joined = following == "\u200d" or (character == "\u200d" and category == "So")
    return is_joined or category[0] == "M" or "\U0001f3fb" <= following <= "\U0001f3ff"

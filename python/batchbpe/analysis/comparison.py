"""Compare how tokenizers split the same text. A notebook displays a `Comparison` side by side."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from ..arguments import check_string
from ..errors import ArgumentTypeError, plural
from ..tokenizer import Tokenizer
from ..tokenizer.special import special_of
from ..util.lazy import lazy
from ..util.surrogates import Errors, combine_surrogates
from .display import Encoding, Piece, pieces_as_html

Offsets = npt.NDArray[np.int64]


class Comparison:
    """The tokens of a text in several tokenizers.

    >>> one, two = (Tokenizer.train("aaabdaaabac", size) for size in (257, 259))
    >>> comparison = Comparison({"one": one, "two": two}, "aaabd")
    >>> comparison
    Comparison(one=4 tokens, two=2 tokens)
    >>> comparison.differences
    array([[0, 4]])
    """

    def __init__(self, tokenizers: Mapping[str, Tokenizer], text: str, *, errors: Errors = "strict") -> None:
        """Encode a text with tokenizers, given by name. Special tokens are encoded as such."""
        check_string("text", text)
        for tokenizer in tokenizers.values():
            if not isinstance(tokenizer, Tokenizer):
                raise ArgumentTypeError("others", tokenizer, "must be tokenizers", remedy="see Tokenizer.from_file")
        self.text = combine_surrogates(text, errors, where="text")
        self.bytes = self.text.encode()
        self.tokenizers = dict(tokenizers)
        self.ids = {name: each.encode_to_numpy(self.text, "all") for name, each in tokenizers.items()}

    @lazy
    def spans(self) -> dict[str, tuple[Offsets, Offsets]]:
        """The offsets in bytes at which the text of each token starts and ends.

        If a tokenizer normalizes the text, this is the text before. Of several tokens that a sequence of characters
        becomes, the first has all of it, and the others are empty.
        """
        return {name: self._spans(name) for name in self.tokenizers}

    def _spans(self, name: str) -> tuple[Offsets, Offsets]:
        tokenizer = self.tokenizers[name]
        _, starts, ends = tokenizer.core_encoder.encode_with_spans(self.text, special_of(True))
        return starts, ends

    @lazy
    def common(self) -> Offsets:
        """The offsets in bytes at which all tokenizers cut the text, including its start and end."""
        is_common = np.ones(len(self.bytes) + 1, bool)
        for span in self.spans.values():
            is_cut = np.zeros(len(self.bytes) + 1, bool)
            is_cut[[0, -1]] = True
            for offsets in span:
                is_cut[offsets] = True
            is_common &= is_cut
        return np.flatnonzero(is_common)

    @lazy
    def differences(self) -> Offsets:
        """The smallest parts of the text that tokenizers cut differently: rows of start and end, in bytes."""
        common = self.common
        # By their ends: the empty tokens of a changed part are at its end.
        numbers = (np.diff(np.searchsorted(ends, common, side="right")) for _, ends in self.spans.values())
        first = next(numbers, np.zeros(len(common) - 1, np.int64))
        differ = first > 1
        for tokens in numbers:
            differ |= (tokens > 1) | (tokens != first)
        return np.stack([common[:-1][differ], common[1:][differ]], axis=1)

    def __repr__(self) -> str:
        """Show the numbers of tokens."""
        sizes = (f"{name}={plural(len(ids), 'token')}" for name, ids in self.ids.items())
        return f"Comparison({', '.join(sizes)})"

    def _repr_html_(self) -> str:
        """Render the text in colored tokens, one column per tokenizer.

        Tokens that differ are underlined. Text that the pattern drops is struck through.
        """
        columns = "".join(map(self._column, self.tokenizers))
        return f'<div style="display:flex;flex-wrap:wrap;gap:24px;align-items:flex-start">{columns}</div>'

    def _column(self, name: str) -> str:
        pieces, spans = zip(*self._pieces(name), strict=True) if self.bytes else ((), ())
        starts, ends = np.array(spans, np.int64).reshape(-1, 2).T
        before = np.searchsorted(self.differences[:, 1], starts, side="right")
        after = np.searchsorted(self.differences[:, 0], ends)
        tokens = len(self.ids[name])
        per_token = f" · {len(self.bytes) / tokens:.2f} bytes per token" if tokens else ""
        return (
            '<div style="flex:1 1 280px;min-width:0">'
            f"<div><b>{html.escape(name)}</b> · {plural(tokens, 'token')}{per_token}</div>"
            f"{pieces_as_html(pieces, set(np.flatnonzero(after > before).tolist()))}</div>"
        )

    def _pieces(self, name: str) -> Iterator[tuple[Piece, tuple[int, int]]]:
        """Yield the pieces of the text and their spans, including text that is dropped, which has no ids."""
        starts, ends = (offsets.tolist() for offsets in self.spans[name])
        ids, end, first = self.ids[name].tolist(), 0, 0
        for index, start in enumerate([*starts, len(self.bytes)]):
            if start > end or index == len(ids):
                for piece in Encoding(self.tokenizers[name], ids[first:index]).pieces:
                    last = first + len(piece.ids) - 1
                    yield piece, (starts[first], ends[last])
                    first = last + 1
            if start > end:
                yield Piece((), self.bytes[end:start]), (end, start)
            end = max(end, ends[index] if index < len(ids) else start)


def unique_names(names: list[str]) -> list[str]:
    """Number names that occur more than once.

    >>> unique_names(["mine", "mine", "other"])
    ['mine', 'mine (2)', 'other']
    """
    before = [names[:index].count(name) for index, name in enumerate(names)]
    return [f"{name} ({times + 1})" if times else name for name, times in zip(names, before, strict=True)]

"""Compare how tokenizers split the same text. A notebook displays a `Comparison` side by side."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from ..arguments import check_string
from ..errors import ArgumentTypeError, plural
from ..tokenizer import Tokenizer
from ..tokenizer.special import resolve_special
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
        """The offsets in bytes at which each token starts and ends."""
        return {name: self._spans(name) for name in self.tokenizers}

    def _spans(self, name: str) -> tuple[Offsets, Offsets]:
        vocab, ids = self.tokenizers[name].vocab, self.ids[name]
        used = np.unique(ids)
        sizes = np.array([len(vocab[token]) for token in used.tolist()], np.int64)[np.searchsorted(used, ids)]
        ends = np.cumsum(sizes)
        if not len(ends) or ends[-1] == len(self.bytes):
            return ends - sizes, ends
        # The pattern drops some of the text: `missing[i]` bytes before `offsets[i]`, which counts the remaining bytes.
        tokenizer = self.tokenizers[name]
        special = resolve_special(tokenizer.special_tokens, "all", None)
        dropped = tokenizer.core_encoder.dropped_spans(self.text, special).reshape(-1, 2)
        missing = np.concatenate([[0], np.cumsum(dropped[:, 1] - dropped[:, 0])])
        offsets = dropped[:, 0] - missing[:-1]
        starts = ends - sizes
        starts += missing[np.searchsorted(offsets, starts, side="right")]
        return starts, starts + sizes

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
        numbers = (np.diff(np.searchsorted(starts, common)) for starts, _ in self.spans.values())
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
        pieces = list(self._pieces(name))
        starts = np.cumsum([0, *(len(piece.value) for piece in pieces)])
        before = np.searchsorted(self.differences[:, 1], starts[:-1], side="right")
        after = np.searchsorted(self.differences[:, 0], starts[1:])
        tokens = len(self.ids[name])
        per_token = f" · {len(self.bytes) / tokens:.2f} bytes per token" if tokens else ""
        return (
            '<div style="flex:1 1 280px;min-width:0">'
            f"<div><b>{html.escape(name)}</b> · {plural(tokens, 'token')}{per_token}</div>"
            f"{pieces_as_html(pieces, set(np.flatnonzero(after > before).tolist()))}</div>"
        )

    def _pieces(self, name: str) -> Iterator[Piece]:
        """Yield the pieces of the text, including text that the pattern drops, which has no ids."""
        starts, ends = (offsets.tolist() for offsets in self.spans[name])
        ids, end, first = self.ids[name].tolist(), 0, 0
        for index, start in enumerate([*starts, len(self.bytes)]):
            if start > end or index == len(ids):
                yield from Encoding(self.tokenizers[name], ids[first:index]).pieces
                first = index
            if start > end:
                yield Piece((), self.bytes[end:start])
            end = ends[index] if index < len(ids) else start


def unique_names(names: list[str]) -> list[str]:
    """Number names that occur more than once.

    >>> unique_names(["mine", "mine", "other"])
    ['mine', 'mine (2)', 'other']
    """
    before = [names[:index].count(name) for index, name in enumerate(names)]
    return [f"{name} ({times + 1})" if times else name for name, times in zip(names, before, strict=True)]

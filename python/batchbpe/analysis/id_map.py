"""`IdMap`: how the ids of a vocabulary relate to those of another, to give a language model the new vocabulary.

https://batchbpe.github.io/batchbpe/embeddings.html shows how to extend or transplant an embedding matrix with it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from .._core import Encoder
from ..arguments import check_integer
from ..formats import Loadable
from ..model import Model, UnknownTokenError
from ..storage.atomic import replacing
from ..util.lazy import lazy
from ..util.utf8 import is_utf8
from .loading import loaded
from .tables import Table, Tabular

if TYPE_CHECKING:
    import pyarrow as pa

Ids = npt.NDArray[np.int64]
MAX_EXAMPLES = 5
"""Number of tokens of each change that are displayed."""
_ORDINARY = ("stop words", "bytes and merges", "phrases")
_KINDS = (*_ORDINARY, "added", "decode-only", "special")
"""Kinds of tokens, in the order in which a token with the same bytes is looked for."""


class IdMap(Tabular):
    """The parts of each new id in the old vocabulary; see `Tokenizer.id_map`.

    >>> from batchbpe import Tokenizer
    >>> base = Tokenizer.train("aaabdaaabac", 257)
    >>> id_map = Tokenizer.train("aaabdaaabac", 259, base=base, special_tokens=["<s>"]).id_map(base)
    >>> id_map
    IdMap(kept=257, moved=0, added=2, removed=0)
    >>> id_map.parts(257)
    [97, 98]
    """

    old_ids: Ids
    """For each new id, the old id of the same token, or -1."""
    ids: Ids
    """The parts of all new ids, one after another: old ids. A kept or moved token has one part, its old id."""
    offsets: Ids
    """New id i has the parts from `offsets[i]` to `offsets[i + 1]`. There is one offset more than new ids."""

    def __init__(self, tokenizer: Loadable, base: Loadable) -> None:
        """Compare the vocabulary of `tokenizer`, the new one, with that of `base`."""
        self.tokenizer, self.base = loaded("tokenizer", tokenizer), loaded("base", base)
        new, old = self.tokenizer.model, self.base.model
        self.old_ids = _same_tokens(new, old)
        self.ids, self.offsets = _all_parts(new, old, self.old_ids)

    @lazy
    def tokens(self) -> Ids:
        """The new ids that are tokens, in ascending order. Between them, there may be gaps.

        >>> from batchbpe import Model, Tokenizer
        >>> tokenizer = Tokenizer(Model(split="[a-z]+", merges={}, special_tokens={"<s>": 300}))
        >>> tokenizer.id_map(tokenizer).tokens[-2:].tolist()
        [255, 300]
        """
        return np.fromiter(self.tokenizer.vocab, np.int64)

    @lazy
    def removed(self) -> Ids:
        """The old ids whose tokens no new id has, in ascending order. `reverse.parts` returns what replaces them.

        >>> from batchbpe import Tokenizer
        >>> base, tokenizer = (Tokenizer.train(text, 257) for text in ("abab", "baba"))
        >>> id_map = tokenizer.id_map(base)
        >>> id_map.removed.tolist(), id_map.reverse.parts(256)
        ([256], [97, 98])
        """
        return np.setdiff1d(np.fromiter(self.base.vocab, np.int64), self.old_ids)

    @lazy
    def reverse(self) -> IdMap:
        """The map in the other direction: the parts of each old id in the new vocabulary."""
        return IdMap(self.base, self.tokenizer)

    @lazy
    def counts(self) -> dict[str, int]:
        """The number of tokens with the same id in both vocabularies, with another id, of new and of removed tokens.

        >>> from batchbpe import Tokenizer
        >>> base = Tokenizer.train("aaabdaaabac", 257, special_tokens=["<s>"])
        >>> Tokenizer.train("aaabdaaabac", 259, special_tokens=["<s>"]).id_map(base).counts
        {'kept': 256, 'moved': 1, 'added': 2, 'removed': 0}
        """
        found = {change: int((self.changes == change).sum()) for change in ("kept", "moved", "added")}
        return found | {"removed": len(self.removed)}

    @lazy
    def changes(self) -> npt.NDArray[np.str_]:
        """For each of `tokens`: "kept", "moved" or "added".

        >>> from batchbpe import Tokenizer
        >>> one, two = (Tokenizer.train("aaabdaaabac", size) for size in (257, 259))
        >>> id_map = two.id_map(one)
        >>> id_map.tokens[id_map.changes == "added"].tolist()
        [257, 258]
        """
        old_ids = self.old_ids[self.tokens]
        return np.where(old_ids < 0, "added", np.where(old_ids == self.tokens, "kept", "moved"))

    def parts(self, id: int) -> list[int]:
        """Return the parts of one new id: old ids. An id that is not a token has none.

        >>> from batchbpe import Tokenizer
        >>> one, two = (Tokenizer.train("aaabdaaabac", size) for size in (257, 259))
        >>> two.id_map(one).parts(258)
        [256, 97, 98]
        """
        check_integer("id", id, least=0)
        if id >= len(self.old_ids):
            raise UnknownTokenError.of_id(id, len(self.old_ids) - 1)
        parts: list[int] = self.ids[self.offsets[id] : self.offsets[id + 1]].tolist()
        return parts

    def table(self) -> pa.Table:
        """Return all tokens as an arrow table: those of the new vocabulary by id, then those removed by old id.

        The columns are `change` ("kept", "moved", "added" or "removed"), `id` (null if removed), `old_id` (null if
        added), `token` (the token on one line; unprintable characters and invalid UTF-8 are escaped), `bytes`, and
        `parts`: old ids, or the new ids that replace a token that was removed.

        >>> from batchbpe import Tokenizer
        >>> one, two = (Tokenizer.train("aaabdaaabac", size) for size in (257, 258))
        >>> two.id_map(one).table().to_pylist()[-1]
        {'change': 'added', 'id': 257, 'old_id': None, 'token': 'ab', 'bytes': b'ab', 'parts': [97, 98]}
        """
        from .id_table import table_of

        return table_of(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the table as .parquet, .csv or .json: an array of objects.

        In csv and json, bytes are the hexadecimal column `hex`. In csv, parts are separated by spaces.

        >>> import tempfile
        >>> from batchbpe import Tokenizer
        >>> one, two = (Tokenizer.train("aaabdaaabac", size) for size in (257, 258))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     two.id_map(one).save(f"{folder}/ids.csv")
        ...     print(Path(f"{folder}/ids.csv").read_text().splitlines()[-1])
        "added",257,,"ab","6162","97 98"
        """
        from .id_table import check_suffix, write_table

        check_suffix("path", path)
        with replacing(path) as temporary:
            write_table(self.table(), temporary, Path(path).suffix)

    def tables(self) -> Iterator[Table]:
        """Yield the number of tokens for each change, and examples."""
        from .id_table import example_tables, examples

        yield ["change", "tokens"], [[change, f"{number:,}"] for change, number in self.counts.items()]
        yield from example_tables(self, examples(self, MAX_EXAMPLES))

    def __repr__(self) -> str:
        """Show the number of tokens for each change."""
        return f"IdMap({', '.join(f'{change}={number}' for change, number in self.counts.items())})"


def _by_kind(model: Model) -> Iterator[tuple[str, Sequence[int], Sequence[bytes]]]:
    """Yield the ids and the bytes of the tokens of each kind."""
    vocab = model.vocab
    merged = [token for token in (*model.byte_ids, *model.visible_merges.values()) if token is not None]
    phrases = [*model.phrases.values()]
    yield "stop words", [*model.stop_words.values()], [*model.stop_words]
    yield "bytes and merges", merged, [*map(vocab.__getitem__, merged)]
    yield "phrases", phrases, [*map(vocab.__getitem__, phrases)]
    yield "decode-only", [*model.decode_only], [*model.decode_only.values()]
    for kind, found in {"added": model.added_tokens, "special": model.special_tokens}.items():
        yield kind, [*found.values()], [name.encode() for name in found]


def _same_tokens(new: Model, old: Model) -> Ids:
    """Return the old id of each new id, or -1.

    A token is the same if it has the same bytes: at the same id; otherwise, one of the same kind; otherwise, one of
    another kind. But a special token is not the same as one that ordinary text is encoded to.
    """
    tables = {kind: dict(zip(values[::-1], ids[::-1], strict=True)) for kind, ids, values in _by_kind(old)}
    same: dict[int, int] = {}
    for kind, ids, values in _by_kind(new):
        excluded = ("special",) if kind in _ORDINARY else _ORDINARY if kind == "special" else ()
        table: dict[bytes, int] = {}
        for other in (*(other for other in reversed(_KINDS) if other not in excluded), kind):
            table |= tables[other]
        same.update((token, table[value]) for token, value in zip(ids, values, strict=True) if value in table)
    get = old.vocab.get
    same.update((token, token) for token, value in new.vocab.items() if get(token) == value)
    old_ids = np.full(new.n_vocab, -1, np.int64)
    old_ids[np.fromiter(same, np.int64)] = np.fromiter(same.values(), np.int64)
    return old_ids


def _all_parts(new: Model, old: Model, old_ids: Ids) -> tuple[Ids, Ids]:
    """Return the parts of all new ids, and the offset of each."""
    vocab = new.vocab
    tokens = np.fromiter(vocab, np.int64)
    known = tokens[old_ids[tokens] >= 0]
    missing = tokens[old_ids[tokens] < 0].tolist()
    across_chunks = {*new.found_tokens.values(), *new.phrases.values()}
    texts = [token for token in missing if token in across_chunks and is_utf8(vocab[token])]
    chunks = sorted({*missing} - {*texts})
    encoder = old.encoder()  # that of the tokenizer would warn about bytes that are left out here in its next text
    encoded = [
        (known, old_ids[known], np.ones(len(known), np.int64)),
        (np.array(texts, np.int64), *_encode_texts(encoder, [vocab[token].decode() for token in texts])),
        (np.array(chunks, np.int64), *_encode_chunks(encoder, [vocab[token] for token in chunks])),
    ]
    offsets = np.zeros(new.n_vocab + 1, np.int64)
    for group, _, sizes in encoded:
        offsets[group + 1] = sizes
    offsets = np.cumsum(offsets)
    parts = np.empty(offsets[-1], np.int64)
    for group, ids, sizes in encoded:
        parts[_positions(offsets[group], sizes)] = ids
    return parts, offsets


def _encode_chunks(encoder: Encoder, values: list[bytes]) -> tuple[Ids, Ids]:
    """Return the ids of all chunks, and the number of ids of each."""
    offsets = np.cumsum([0, *map(len, values)], dtype=np.int64)
    ids, sizes = encoder.encode_chunks(np.frombuffer(b"".join(values), np.uint8), offsets, None)
    return ids.astype(np.int64), sizes.astype(np.int64)


def _encode_texts(encoder: Encoder, texts: list[str]) -> tuple[Ids, Ids]:
    """Return the ids of all texts, and the number of ids of each. Unlike `encode_batch`, this does not warn."""
    encoded = [encoder.encode_with_spans(text, "none")[0].astype(np.int64) for text in texts]
    return np.concatenate([np.zeros(0, np.int64), *encoded]), np.array([*map(len, encoded)], np.int64)


def _positions(starts: Ids, sizes: Ids) -> Ids:
    """Return the positions of the items of rows that start at `starts`.

    >>> _positions(np.array([5, 1]), np.array([2, 3])).tolist()
    [5, 6, 1, 2, 3]
    """
    return np.repeat(starts - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())


def rows_of(ids: Ids, offsets: Ids, rows: Ids) -> tuple[Ids, Ids]:
    """Return the parts of some ids, and the number of parts of each."""
    sizes = offsets[rows + 1] - offsets[rows]
    return ids[_positions(offsets[rows], sizes)], sizes

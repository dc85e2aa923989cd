"""What a new vocabulary changes: tokens, ids, and the texts that it encodes differently."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from .._core import Encoder
from ..counts import ChunkCounts
from ..data.corpus import Corpus, Data, Files
from ..data.documents import Counts, Documents
from ..data.options import Reading, ReadOptions, Sampling
from ..data.sampling import Selection
from ..errors import DataError
from ..formats import Loadable
from ..options import accepting
from ..util.surrogates import combine_documents
from ..util.utf8 import is_utf8
from .comparison import Comparison
from .counted_text import repeatable, texts_of
from .display import quoted_token
from .evaluation import check_text, reading_bar
from .id_map import IdMap, Ids
from .tables import Table, Tabular

if TYPE_CHECKING:
    from typing_extensions import Unpack

MAX_SEARCHED = 100
"""Maximum number of texts that are searched for examples."""


@dataclass(frozen=True)
class Example:
    """A part of a text that is encoded differently."""

    text: bytes
    """The part. It ends where both vocabularies cut the text."""
    before: tuple[bytes, ...]
    """Its tokens before."""
    after: tuple[bytes, ...]
    """Its tokens now."""


@dataclass(frozen=True, repr=False)
class Changes(Tabular):
    """What a new vocabulary changes.

    >>> from batchbpe import Tokenizer
    >>> model = Tokenizer.train("aaabdaaabac", 259).model
    >>> found = changes(model, model.without(["aaab"]), texts=["aaab", "aa"])
    >>> found.changed, found.texts, found.tokens_before, found.tokens_after
    (1, 2, 2, 3)
    >>> found.examples
    (Example(text=b'aaab', before=(b'aaab',), after=(b'aa', b'ab')),)
    """

    id_map: IdMap
    """Tokens that were kept, moved, added and removed: see `IdMap.counts`."""
    unit: Literal["document", "chunk"]
    """What `texts` are. If the data is chunk counts, they are chunks, as often as they occur."""
    texts: int
    """Number of texts in the data."""
    changed: int
    """Number of texts that become other tokens. A token with another id is not another token."""
    tokens_before: int
    """Number of tokens of the data before."""
    tokens_after: int
    """Number of tokens of the data now."""
    examples: tuple[Example, ...]
    """The longest parts that are encoded differently, from up to 100 texts."""

    @property
    def summary(self) -> dict[str, int | str]:
        """The numbers by what they count, for display."""
        before, after = self.id_map.base, self.id_map.tokenizer
        rows: dict[str, int | str] = {"tokens": f"{len(before):,} → {len(after):,}", **self.id_map.counts}
        if after.model.hidden:
            rows["hidden"] = len(after.model.hidden)
        if self.texts:
            share = 100 * self.changed / self.texts
            rows[f"{self.unit}s encoded differently"] = f"{self.changed:,} of {self.texts:,} ({share:.2f}%)"
            change = 100 * (self.tokens_after / max(1, self.tokens_before) - 1)
            rows["tokens of the data"] = f"{self.tokens_before:,} → {self.tokens_after:,} ({change:+.2f}%)"
        return rows

    def tables(self) -> Iterator[Table]:
        """Yield the summary, and the examples if there are any."""
        rows = self.summary.items()
        yield ["vocabulary", ""], [[name, value if isinstance(value, str) else f"{value:,}"] for name, value in rows]
        if self.examples:
            yield self.examples_table()

    def examples_table(self) -> Table:
        """Return the tokens of each example before and after."""
        pairs = [(each.before, each.after) for each in self.examples]
        return ["before", "after"], [[" + ".join(map(quoted_token, tokens)) for tokens in pair] for pair in pairs]


@accepting(ReadOptions, Sampling)
def changes(
    before: Loadable,
    after: Loadable,
    data: Data | None = None,
    *,
    texts: str | Iterable[str] | None = None,
    files: Files | None = None,
    examples: int = 10,
    threads: int | None = None,
    progress: bool = False,
    **reading: Unpack[Reading],
) -> Changes:
    """Compare two vocabularies: their tokens, and how they encode the same data.

    Special tokens in the data are encoded as ordinary text.

    Parameters
    ----------
    before, after: tokenizers, models, or paths.
    data: anything that `ChunkCounts.count` accepts. Without data, only tokens are compared.
    texts: compare on these strings instead of `data`, whatever they look like.
    files: compare on these paths, globs, folders or URLs instead of `data`.
    {reading}
    examples: maximum number of examples.
    threads: number of threads; all cores by default.
    progress: whether to display a progress bar.

    >>> from batchbpe import Tokenizer
    >>> model = Tokenizer.train("to be or not to be", 258).model
    >>> changes(model, model.without(["to"])).id_map
    IdMap(kept=257, moved=0, added=0, removed=1)

    """
    comparing = _Comparing(IdMap(after, before), threads)
    if data is texts is files is None:
        return comparing.result(examples)
    corpus = Corpus.of(data, texts, files, reading)
    selection = Selection(corpus.sampling)
    with reading_bar(corpus.sources, show=progress) as update:
        for source in corpus.sources:
            with source.blamed():
                for documents in selection.of(source):
                    comparing.add(documents, corpus.options.errors)
                    update()
    check_text(comparing.texts, corpus.sources, corpus)
    return comparing.result(examples)


class _Comparing:
    """Encodes texts with both vocabularies."""

    def __init__(self, id_map: IdMap, threads: int | None) -> None:
        self.id_map, self._threads = id_map, threads
        self.texts = 0
        self._unit: Literal["document", "chunk"] = "document"
        self._changed = self._before = self._after = 0
        self._searched: list[str] = []

    def add(self, documents: Documents, errors: Literal["strict", "replace"]) -> None:
        documents = repeatable(documents)
        if isinstance(documents, Counts):
            self._unit = "chunk"
            self._add_counts(documents.source)  # type: ignore[arg-type]  # `repeatable` has loaded them
            return
        strings = [*combine_documents([*texts_of(documents, errors)], errors)]
        encoded = [text.encode() for text in strings]
        offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
        joined = np.frombuffer(b"".join(encoded), np.uint8)

        def encode(encoder: Encoder) -> tuple[Ids, Ids]:
            ids, ends = encoder.encode_documents(joined, offsets, "none", self._threads)
            return ids.astype(np.int64), np.diff(ends)

        differs = self._compare(encode, np.ones(len(strings), np.int64))
        self._search(strings[row] for row in np.flatnonzero(differs))

    def _add_counts(self, counts: ChunkCounts) -> None:
        for tokenizer in (self.id_map.base, self.id_map.tokenizer):
            if counts.split != tokenizer.model.split:
                reason = f"chunk counts of the pattern {counts.split} cannot be encoded with {tokenizer.model.split}"
                raise DataError(reason, remedy="pass the documents instead")
        data, offsets, numbers = counts.arrays[:3]

        def encode(encoder: Encoder) -> tuple[Ids, Ids]:
            ids, sizes = encoder.encode_chunks(data, offsets, self._threads)
            return ids.astype(np.int64), sizes.astype(np.int64)

        differs = self._compare(encode, numbers.astype(np.int64))
        chunks = (data[offsets[row] : offsets[row + 1]].tobytes() for row in np.flatnonzero(differs))
        self._search(chunk.decode() for chunk in chunks if is_utf8(chunk))

    def _compare(self, encode: Callable[[Encoder], tuple[Ids, Ids]], weights: Ids) -> npt.NDArray[np.bool_]:
        """Encode texts to ids, and the number of ids of each. Return which texts differ."""
        old, old_sizes = encode(self.id_map.base.core_encoder)
        new, new_sizes = encode(self.id_map.tokenizer.core_encoder)
        differs: npt.NDArray[np.bool_] = old_sizes != new_sizes
        rows = np.repeat(np.arange(len(differs)), np.where(differs, 0, old_sizes))
        same_length = [np.repeat(~differs, sizes) for sizes in (old_sizes, new_sizes)]
        differs[rows[old[same_length[0]] != self.id_map.old_ids[new[same_length[1]]]]] = True
        self.texts += int(weights.sum())
        self._changed += int(weights[differs].sum())
        self._before += int((old_sizes * weights).sum())
        self._after += int((new_sizes * weights).sum())
        return differs

    def _search(self, changed: Iterator[str]) -> None:
        self._searched += islice(changed, MAX_SEARCHED - len(self._searched))

    def result(self, examples: int) -> Changes:
        tokenizers = {"before": self.id_map.base, "after": self.id_map.tokenizer}
        found: dict[bytes, Example] = {}
        for text in self._searched:
            found |= _longest(Comparison(tokenizers, text), examples)
        longest = sorted(found.values(), key=lambda each: -len(each.text))[:examples]
        return Changes(self.id_map, self._unit, self.texts, self._changed, self._before, self._after, tuple(longest))


def _longest(comparison: Comparison, limit: int) -> dict[bytes, Example]:
    """Return the longest different parts of a text that are encoded differently."""
    spans = comparison.differences
    found: dict[bytes, Example] = {}
    for start, end in spans[np.argsort(spans[:, 0] - spans[:, 1], kind="stable")].tolist():
        text = comparison.bytes[start:end]
        if len(found) == limit:
            break
        if text not in found:
            before, after = (_tokens(comparison, name, start, end) for name in ("before", "after"))
            found[text] = Example(text, before, after)
    return found


def _tokens(comparison: Comparison, name: str, start: int, end: int) -> tuple[bytes, ...]:
    starts, ends = comparison.spans[name]
    inside = comparison.ids[name][np.searchsorted(starts, start) : np.searchsorted(ends, end, side="right")]
    return tuple(comparison.tokenizers[name].vocab[token] for token in inside.tolist())

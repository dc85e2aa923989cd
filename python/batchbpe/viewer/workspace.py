"""`Workspace`: the tokenizers, chunk counts and text that a page shows."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice

import numpy as np

from ..analysis.comparison import Comparison
from ..analysis.evaluation import evaluate
from ..analysis.id_map import IdMap
from ..counts import ChunkCounts
from ..errors import DataError
from ..tokenizer import Tokenizer
from .vocabulary import TokenCounts, Vocabulary

MAX_TEXT = 4 << 20
"""Maximum size of a text, in bytes."""
MAX_MODELS = 4
"""Number of columns of tokens that fit side by side."""
REMEMBERED = 8
"""Number of texts whose token counts are kept."""
MAX_REPLAYED = 4
"""Number of tokenizers with fewer merges that are kept; each is as large as its model."""
SAMPLE = """Tokenizers cut text into pieces, and no two of them agree where.
def total(prices: list[float]) -> float:
    return sum(prices) * 1.19  # VAT
東京で美味しいラーメンを食べました。
اللغة العربية تُكتب من اليمين إلى اليسار.
हिन्दी में लिखा हुआ एक वाक्य।
Emoji are sequences, too: 👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽
"""


@dataclass
class Workspace:
    """What was loaded, by name, and what was computed from it.

    >>> workspace = Workspace({"mine": Tokenizer.train("aaabdaaabac", 259)})
    >>> workspace.after(0, 1).encode("aaab")
    [256, 97, 98]
    """

    tokenizers: Mapping[str, Tokenizer] = field(default_factory=dict)
    counts: Mapping[str, ChunkCounts] = field(default_factory=dict)
    text: str = SAMPLE
    """The initial text."""

    def __post_init__(self) -> None:
        """Index the vocabularies."""
        if len(self.tokenizers) > MAX_MODELS:
            raise DataError(f"at most {MAX_MODELS} models fit side by side, got {len(self.tokenizers)}")
        self.models = list(self.tokenizers.values())
        self.vocabularies = [Vocabulary(tokenizer) for tokenizer in self.models]
        self.token_counts: dict[str, list[TokenCounts]] = {}
        self.id_map = lru_cache(maxsize=None)(self._id_map)
        self.after = lru_cache(maxsize=MAX_REPLAYED)(self._after)

    def count_data(self, files: list[str], *, progress: bool = False) -> None:
        """Count the tokens of a corpus, under the key "data"."""
        results = evaluate(self.tokenizers, files=files, errors="replace", progress=progress)
        counts = [np.zeros(tokenizer.n_vocab, np.int64) for tokenizer in self.models]
        for by_id, each in zip(counts, results, strict=True):  # frequencies can end before the highest id
            by_id[: len(each.frequencies)] = each.frequencies
        self.token_counts["data"] = list(map(TokenCounts, counts))

    def compare(self, text: str) -> tuple[str, Comparison]:
        """Encode a text with all tokenizers. Return the comparison, and the key of its token counts."""
        comparison = Comparison(self.tokenizers, text, errors="replace")
        key = hashlib.blake2b(comparison.bytes, digest_size=8).hexdigest()
        self.token_counts.pop(key, None)  # so that it becomes the latest
        self.token_counts[key] = [
            TokenCounts(np.bincount(ids, minlength=tokenizer.n_vocab))
            for ids, tokenizer in zip(comparison.ids.values(), self.models, strict=True)
        ]
        texts = [each for each in self.token_counts if each != "data"]
        for oldest in texts[:-REMEMBERED]:
            self.token_counts.pop(oldest, None)
        return key, comparison

    def _id_map(self, before: int, after: int) -> IdMap:
        """Compare the vocabularies of two tokenizers."""
        return IdMap(self.models[after], self.models[before])

    def replay(self, text: str, index: int, merges: int | None = None) -> Comparison:
        """Encode a text with one tokenizer, or with its first `merges` merges."""
        tokenizer = self.models[index] if merges is None else self.after(index, merges)
        return Comparison({list(self.tokenizers)[index]: tokenizer}, text, errors="replace")

    def _after(self, index: int, merges: int) -> Tokenizer:
        """Return a tokenizer as it was after its first merges, before phrases were added."""
        tokenizer = self.models[index]
        model = tokenizer.model
        if merges >= len(model.merges) and not model.phrases:
            return tokenizer
        first = dict(islice(model.merges.items(), merges))
        hidden = model.hidden.intersection(first.values())
        return Tokenizer(replace(model, merges=first, phrases={}, training={}, hidden=hidden))

"""How good tokenizers are on a text: how short they make it, and how much of their vocabulary it takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .readers import CountsFile, Documents, TextFile
from .tokenizer import Tokenizer


@dataclass(frozen=True)
class Evaluation:
    """What a tokenizer makes of a text."""

    name: str
    vocab_size: int
    tokens: int
    bytes: int
    characters: int
    words: int
    """What stands between white space."""
    vocabulary_used: int
    """How many different tokens the text has."""

    @property
    def bytes_per_token(self) -> float:
        """The more the better: the text is shorter."""
        return self.bytes / max(1, self.tokens)

    @property
    def characters_per_token(self) -> float:
        """The more the better: the text is shorter."""
        return self.characters / max(1, self.tokens)

    @property
    def tokens_per_word(self) -> float:
        """Fertility: 1 would be a token for each word."""
        return self.tokens / max(1, self.words)

    def change(self, reference: Evaluation) -> float:
        """Give the percent change in encoded length against another tokenizer, the paper's metric."""
        return 100 * (self.tokens - reference.tokens) / max(1, reference.tokens)


def evaluate(
    tokenizers: Mapping[str, Tokenizer], documents: Iterable[Documents], *, threads: int | None = None
) -> list[Evaluation]:
    """Encode documents with each tokenizer.

    >>> from batchbpe.corpus import documents
    >>> serial, batch = (Tokenizer.train("to be or not to be", size) for size in (256, 258))
    >>> [it.tokens for it in evaluate({"bytes": serial, "merged": batch}, documents("to be"))]
    [5, 3]
    """
    size = characters = words = 0
    tokens = dict.fromkeys(tokenizers, 0)
    used = {name: np.zeros(tokenizer.n_vocab, bool) for name, tokenizer in tokenizers.items()}
    for texts in map(_strings, documents):
        size += sum(len(text.encode()) for text in texts)
        characters += sum(map(len, texts))
        words += sum(len(text.split()) for text in texts)
        for name, tokenizer in tokenizers.items():
            ids, _ = tokenizer.encode_batch_to_numpy(texts, "none", threads=threads)
            tokens[name] += len(ids)
            used[name][ids] = True
    return [
        Evaluation(
            name=name,
            vocab_size=len(tokenizer.vocab),
            tokens=tokens[name],
            bytes=size,
            characters=characters,
            words=words,
            vocabulary_used=int(used[name].sum()),
        )
        for name, tokenizer in tokenizers.items()
    ]


def _strings(documents: Any) -> list[str]:
    if isinstance(documents, TextFile):
        with documents.open() as stream:
            try:
                return [stream.read().decode("utf-8")]
            except UnicodeDecodeError as error:
                raise ValueError(f"{documents.name} is no UTF-8 at byte {error.start}") from None
    if isinstance(documents, CountsFile | dict):
        raise ValueError("chunk counts are no text to encode: give documents")
    return documents if isinstance(documents, list) else documents.to_pylist()

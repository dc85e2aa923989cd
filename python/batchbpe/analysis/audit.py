"""An audit of a vocabulary: tokens that nothing encodes to, that a text does not need, or that are no text."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..tokenizer import Tokenizer


@dataclass(frozen=True)
class Audit:
    """Ids of tokens that deserve a look. Special tokens are not among them."""

    unreachable: list[int]
    """Whose own bytes are encoded as something else."""
    duplicates: list[int]
    """With the same bytes as another: a stop word and a merge."""
    partial_utf8: list[int]
    """Of more than one byte that begin or end within a character."""
    longest: list[int]
    """The ten longest."""
    unused: list[int] | None
    """That the text does not have; None if there was none."""
    scaffolds: list[int] | None
    """Of those, the ones that are a step to a token that it has."""


def audit(tokenizer: Tokenizer, frequencies: npt.NDArray[np.uint64] | None = None) -> Audit:
    """Look at each token; with how often each occurs in a text, as an `Evaluation` has it, also at that.

    >>> tokenizer = Tokenizer.train("aaabdaaabac", 259)
    >>> frequencies = np.bincount(tokenizer.encode("aaab"), minlength=259)
    >>> audit(tokenizer, frequencies).scaffolds
    [97, 98, 256, 257]
    """
    model = tokenizer.model
    special = set(model.special_tokens.values())
    vocab = {token: value for token, value in model.vocab.items() if token not in special}
    by_bytes: dict[bytes, list[int]] = defaultdict(list)
    for token, value in vocab.items():
        by_bytes[value].append(token)
    unused = scaffolds = None
    if frequencies is not None:
        unused = [token for token in vocab if not frequencies[token]]
        needed = {token for token in vocab if frequencies[token]}
        for (first, last), token in reversed(list(model.merges.items())):
            if token in needed:
                needed |= {first, last}
        scaffolds = [token for token in unused if token in needed]
    return Audit(
        unreachable=_unreachable(tokenizer, vocab),
        duplicates=sorted(token for tokens in by_bytes.values() if len(tokens) > 1 for token in tokens),
        partial_utf8=[token for token, value in vocab.items() if len(value) > 1 and not _is_text(value)],
        longest=sorted(vocab, key=lambda token: (-len(vocab[token]), token))[:10],
        unused=unused,
        scaffolds=scaffolds,
    )


def _is_text(value: bytes) -> bool:
    try:
        value.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _unreachable(tokenizer: Tokenizer, vocab: dict[int, bytes]) -> list[int]:
    """What is text is encoded as text, cut by the pattern; what is none can only be a part of a chunk."""
    encoder = tokenizer._loaded.encoder
    texts = {token: value.decode("utf-8") for token, value in vocab.items() if _is_text(value)}
    others = {token: value for token, value in vocab.items() if token not in texts}
    ids, offsets = tokenizer.encode_batch_to_numpy(texts.values(), "none")
    encoded = dict(zip(texts, np.split(ids, offsets[1:-1]), strict=True))
    data = np.frombuffer(b"".join(others.values()), np.uint8)
    ids, sizes = encoder.encode_chunks(data, np.cumsum([0, *map(len, others.values())], dtype=np.int64), None)
    encoded |= dict(zip(others, np.split(ids, np.cumsum(sizes)[:-1]), strict=True))
    return sorted(token for token, ids in encoded.items() if ids.tolist() != [token])

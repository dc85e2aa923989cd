"""Audit a vocabulary: find tokens that cannot be reached, are not used, or are not valid text."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import InitVar, dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from ..formats import Loadable
from ..model import Model
from ..tokenizer import Tokenizer
from ..util.utf8 import is_utf8
from .display import quoted_token
from .loading import loaded
from .tables import Table, Tabular

RESIDUE = 0.1
"""A token is a residue if a smaller fraction of its occurrences stays."""
MAX_EXAMPLES = 8
"""Number of tokens of each kind that are displayed."""


@dataclass(frozen=True, repr=False)
class Audit(Tabular):
    """Ids of tokens worth checking. Special tokens are excluded.

    >>> found = audit(Tokenizer.train("aaabdaaabac", 259))
    >>> found.longest[:2]
    [258, 256]
    >>> print("\\n".join(str(found).splitlines()[:3]))
    audit          tokens  examples
    unreachable         0
    duplicates          0
    """

    unreachable: list[int]
    """Tokens whose own bytes are encoded differently."""
    duplicates: list[int]
    """Tokens with the same bytes as another, such as a stop word and a merge."""
    partial_utf8: list[int]
    """Tokens of several bytes that start or end inside a character."""
    longest: list[int]
    """The ten longest tokens."""
    unused: list[int] | None
    """Tokens that do not occur in the text. None if no frequencies were given."""
    scaffolds: list[int] | None
    """Unused tokens from which a token in the text was made."""
    residues: list[int] | None
    """Tokens that encoding the text makes, but merges further nearly always; see `residues`."""
    vocab: InitVar[Mapping[int, bytes]]
    """The bytes of each token, for display."""

    def __post_init__(self, vocab: Mapping[int, bytes]) -> None:
        """Keep the tokens that are displayed."""
        shown = {token: vocab[token] for ids in self._kinds().values() for token in ids[:MAX_EXAMPLES]}
        object.__setattr__(self, "_shown", shown)

    def _kinds(self) -> dict[str, list[int]]:
        """Return the ids of each kind that was looked for."""
        return {each.name: ids for each in fields(self) if (ids := getattr(self, each.name)) is not None}

    def table(self, title: str = "audit") -> Table:
        """Return the number of tokens and examples of each kind."""
        shown: Mapping[int, bytes] = self._shown  # type: ignore[attr-defined]
        rows = []
        for kind, ids in self._kinds().items():
            examples = [f"{token} {quoted_token(shown[token])}" for token in ids[:MAX_EXAMPLES]]
            more = ["…"] * (len(ids) > MAX_EXAMPLES)
            rows.append([{"partial_utf8": "partial UTF-8"}.get(kind, kind), f"{len(ids):,}", " ".join(examples + more)])
        return [title, "tokens", "examples"], rows

    def tables(self) -> list[Table]:
        """Return the table."""
        return [self.table()]


def audit(tokenizer: Loadable, *, frequencies: npt.NDArray[np.uint64] | None = None) -> Audit:
    """Find tokens worth checking. `evaluate(tokenizer, data, audit=True)` also finds those that are not used in a text.

    Parameters
    ----------
    tokenizer: the tokenizer to audit, or its path.
    frequencies: number of occurrences of each token in a text, such as `Evaluation.frequencies`.

    >>> tokenizer = Tokenizer.train("aaabdaaabac", 259)
    >>> audit(tokenizer, frequencies=np.bincount(tokenizer.encode("aaab"))).scaffolds
    [97, 98, 256, 257]

    """
    tokenizer = loaded("tokenizer", tokenizer)
    model = tokenizer.model
    found = set(model.found_tokens.values())
    vocab = {token: value for token, value in model.vocab.items() if token not in found}
    by_bytes: dict[bytes, list[int]] = defaultdict(list)
    for token, value in vocab.items():
        by_bytes[value].append(token)
    unused = scaffolds = None
    if frequencies is not None:
        used = set(np.flatnonzero(frequencies).tolist())
        unused = [token for token in vocab if token not in used]
        needed = used & vocab.keys()
        needed |= {part for parts, token in model.phrases.items() if token in used for part in parts}
        for (first, last), token in reversed(list(model.merges.items())):
            if token in needed:
                needed |= {first, last}
        scaffolds = [token for token in unused if token in needed]
    return Audit(
        unreachable=_unreachable(tokenizer, vocab),
        duplicates=sorted(token for tokens in by_bytes.values() if len(tokens) > 1 for token in tokens),
        partial_utf8=[token for token, value in vocab.items() if len(value) > 1 and not is_utf8(value)],
        longest=sorted(vocab, key=lambda token: (-len(vocab[token]), token))[:10],
        unused=unused,
        scaffolds=scaffolds,
        residues=None if frequencies is None else residues(model, frequencies),
        vocab=model.vocab,
    )


def final_shares(model: Model, frequencies: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return which fraction of each token's occurrences stays. The others are steps to longer tokens.

    `frequencies` are how often each id occurs in a text. The result is NaN for a token that encoding never makes.

    >>> tokenizer = Tokenizer.train("aaabdaaabac", 258)  # aa, then ab
    >>> final_shares(tokenizer.model, np.bincount(tokenizer.encode("aab"), minlength=258))[[97, 98, 256, 257]]
    array([ 0.,  1.,  1., nan])
    """
    final = np.zeros(model.next_id, np.float64)
    final[: len(frequencies)] = frequencies
    made = final.tolist()
    for (first, last), token in reversed([*model.merges.items()]):
        made[first] += made[token]
        made[last] += made[token]
    shares: npt.NDArray[np.float64] = np.divide(final, made, out=np.full(len(made), np.nan), where=np.array(made) > 0)
    return shares


def residues(model: Model, frequencies: npt.NDArray[Any], threshold: float = RESIDUE) -> list[int]:
    """Return the tokens, other than bytes, of whose occurrences less than `threshold` stays (arXiv 2602.04706).

    >>> tokenizer = Tokenizer.train("aaabdaaabac", 259)  # aa, then ab, then aaab
    >>> residues(tokenizer.model, np.bincount(tokenizer.encode("aaab"), minlength=259))
    [256, 257]
    """
    rare = np.flatnonzero(final_shares(model, frequencies) < threshold)
    return [token for token in rare.tolist() if len(model.vocab.get(token, b"")) > 1]


def _unreachable(tokenizer: Tokenizer, vocab: dict[int, bytes]) -> list[int]:
    """Find tokens that do not encode to themselves: as text, or as one chunk if they are not valid UTF-8."""
    encoder = tokenizer.core_encoder
    texts = {token: value.decode("utf-8") for token, value in vocab.items() if is_utf8(value)}
    others = {token: value for token, value in vocab.items() if token not in texts}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about tokens with bytes that the pattern does not match
        ids, offsets = tokenizer.encode_batch_to_numpy(texts.values(), "none")
    encoded = dict(zip(texts, np.split(ids, offsets[1:-1]), strict=True))
    data = np.frombuffer(b"".join(others.values()), np.uint8)
    ids, sizes = encoder.encode_chunks(data, np.cumsum([0, *map(len, others.values())], dtype=np.int64), None)
    encoded |= dict(zip(others, np.split(ids, np.cumsum(sizes)[:-1]), strict=True))
    return sorted(token for token, ids in encoded.items() if ids.tolist() != [token])

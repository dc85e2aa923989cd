"""What one vocabulary contains, as far as it is known without a text, and how many tokens vocabularies share."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ...formats.pre_tokenizers import NOT_IN_UTF8
from ...model import Model
from ...tokenizer import Tokenizer
from ...util.utf8 import is_utf8
from ..auditing import Audit
from ..inspection import TokenInfo
from ..scripts import SCRIPT_NAMES, SCRIPTS, script_codes
from .exports import Export, exports_of

CONTENTS = (*SCRIPTS, "other letters", "digits", "whitespace", "symbols", "parts of characters")
"""What tokens contain: the script of the first letter, or, without letters, digits, only whitespace, or others."""
CAUSES = ("decode-only", "added token", "normalization", "pattern", "merges")
"""Why a token is unreachable, in the order in which a cause is looked for. `causes` explains them."""
Codes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Facts:
    """What a vocabulary contains, without a text. Special and added tokens are only in `numbers`; see `facts_of`."""

    format: str | None
    """The format of the file, if there is one."""
    split: str
    numbers: Mapping[str, int]
    """How many tokens there are, in total and of each kind; `largest id` and `merges listed` are no kinds."""
    mean_bytes: float
    """Mean length of the ordinary tokens."""
    same_as: Sequence[str]
    """Other vocabularies that are equal in everything that changes ids."""
    contents: Mapping[str, int]
    """Number of ordinary tokens for each of `CONTENTS`."""
    unreachable: Mapping[str, list[int]]
    """Tokens whose own bytes are encoded differently, by cause."""
    duplicates: list[int]
    partial_utf8: list[int]
    missing_bytes: list[int]
    longest: list[TokenInfo]
    exports: Mapping[str, Export]
    """Whether each engine can load an exact export."""

    @property
    def missing_utf8_bytes(self) -> list[int]:
        """The missing bytes that text can contain."""
        return [byte for byte in self.missing_bytes if byte not in NOT_IN_UTF8]


def facts_of(
    tokenizer: Tokenizer, audit: Audit, *, contents: Codes, same_as: Sequence[str] = (), source: Path | None = None
) -> Facts:
    """Return the facts about a vocabulary. `contents` are those of its ordinary tokens; see `ordinary` and `Union`.

    >>> from batchbpe.analysis import audit
    >>> tokenizer = Tokenizer.train("aaabdaaabac", 259, special_tokens=["<s>"])
    >>> union = Union([ordinary(tokenizer.model).values()])
    >>> facts = facts_of(tokenizer, audit(tokenizer), contents=union.contents(0))
    >>> facts.numbers["tokens"], facts.contents["Latin"], facts.contents["parts of characters"]
    (259, 54, 128)
    """
    from ...formats import format_of

    model = tokenizer.model
    values = ordinary(model).values()
    numbers = {
        "tokens": model.vocab_size,
        "largest id": model.n_vocab - 1,
        "bytes": 256 - model.byte_ids.count(None),
        "merges": len(model.visible_merges),
        "stop words": len(model.stop_words),
        "phrases": len(model.phrases),
        "special tokens": len(model.special_tokens),
        "added tokens": len(model.added_tokens),
        "decode-only": len(model.decode_only),
        "hidden": len(model.hidden),
    }
    format = None if source is None else "transformers" if source.is_dir() else format_of(source)
    if source is not None and format in ("huggingface", "transformers") and (listed := merges_listed(source)):
        numbers["merges listed"] = listed
    return Facts(
        format=format,
        split=model.split.name,
        numbers=numbers,
        mean_bytes=sum(map(len, values)) / len(values) if values else 0.0,
        same_as=same_as,
        contents=dict(zip(CONTENTS, np.bincount(contents, minlength=len(CONTENTS)).tolist(), strict=True)),
        unreachable=causes(model, audit.unreachable),
        duplicates=audit.duplicates,
        partial_utf8=audit.partial_utf8,
        missing_bytes=[byte for byte, token in enumerate(model.byte_ids) if token is None],
        longest=described(model, audit.longest),
        exports=exports_of(model),
    )


def ordinary(model: Model) -> dict[int, bytes]:
    """Return the tokens that are not special or added, and not hidden.

    >>> max(ordinary(Tokenizer.train("aaab", 258, special_tokens=["<s>"]).model))
    256
    """
    found = {*model.found_tokens.values()}
    return {token: value for token, value in model.vocab.items() if token not in found}


def described(model: Model, tokens: Iterable[int]) -> list[TokenInfo]:
    """Describe tokens.

    >>> described(Tokenizer.train("aaab", 257).model, [256])
    [TokenInfo(id=256, text='aa', hex='6161', bytes=2)]
    """
    return [TokenInfo.of(token, model.vocab[token]) for token in tokens]


def causes(model: Model, unreachable: Iterable[int]) -> dict[str, list[int]]:
    """Return why tokens are unreachable: the first of `CAUSES` that applies.

    - decode-only: the file has no merge that makes the token, and no rule to look it up;
    - added token: its text contains an added token, which is found first;
    - normalization: its text is normalized to another;
    - pattern: its text is split into several chunks, or dropped (a longer text may still contain it within one);
    - merges: other merges come first.

    >>> from batchbpe.analysis import audit
    >>> model = Model(r"[a-z]+|[^a-z]", {(97, 32): 256, (98, 99): 257, (97, 98): 258, (258, 99): 259})
    >>> causes(model, audit(Tokenizer(model)).unreachable)
    {'pattern': [256], 'merges': [259]}
    """
    found: dict[str, list[int]] = {}
    for token in unreachable:
        found.setdefault(_cause(model, token), []).append(token)
    return {cause: found[cause] for cause in CAUSES if cause in found}


def _cause(model: Model, token: int) -> str:
    value = model.vocab[token]
    if token in model.decode_only:
        return "decode-only"
    if not is_utf8(value):
        return "merges"
    text = value.decode()
    if any(name in text for name in model.added_tokens):
        return "added token"
    if model.split.normalize(text) != text:
        return "normalization"
    return "merges" if model.split.chunks(text) == [text] else "pattern"


def merges_listed(path: Path) -> int | None:
    """Return how many merges a tokenizer.json lists, or None for another file.

    More than the model has means that several make the same token, of which only one can apply.
    """
    path = path / "tokenizer.json" if path.is_dir() else path
    try:
        fields = json.loads(path.read_bytes())
        return len(fields["model"]["merges"])
    except (ValueError, KeyError, TypeError, OSError, RecursionError):
        return None


class Union:
    """The tokens of several vocabularies, by their bytes.

    >>> union = Union([[b"a", b"to"], [b"to", b"be", b"42"]])
    >>> union.shared().tolist()
    [[2, 1], [1, 3]]
    >>> [CONTENTS[code] for code in union.contents(1)]
    ['Latin', 'Latin', 'digits']
    """

    def __init__(self, vocabularies: Iterable[Iterable[bytes]]) -> None:
        """Number the different tokens. A vocabulary may contain one several times."""
        numbers: dict[bytes, int] = {}
        self._numbers = [
            np.array([numbers.setdefault(value, len(numbers)) for value in values], np.int64) for values in vocabularies
        ]
        self._contents = _content_codes([*numbers])

    def contents(self, index: int) -> Codes:
        """Return the contents of each token of a vocabulary, as indices of `CONTENTS`."""
        codes: Codes = self._contents[self._numbers[index]]
        return codes

    def shared(self) -> Codes:
        """Return how many different tokens each vocabulary shares with each; on the diagonal, how many it has."""
        size = len(self._numbers)
        shared = np.zeros((size, size), np.int64)
        for block in self._blocks():
            shared += np.rint(block @ block.T).astype(np.int64)
        return shared

    def _blocks(self) -> Iterator[npt.NDArray[np.float32]]:
        """Yield which vocabularies contain which tokens, for 2¹⁶ tokens at once: sums of ones are exact in float32."""
        ordered = [np.unique(numbers) for numbers in self._numbers]
        for start in range(0, len(self._contents), 1 << 16):
            block = np.zeros((len(ordered), min(1 << 16, len(self._contents) - start)), np.float32)
            for row, numbers in zip(block, ordered, strict=True):
                first, last = np.searchsorted(numbers, [start, start + len(row)])
                row[numbers[first:last] - start] = 1
            yield block


def _content_codes(values: Sequence[bytes]) -> Codes:
    codes = script_codes(values).astype(np.int64)
    none = SCRIPT_NAMES.index("no letters")
    for index in np.flatnonzero(codes == none).tolist():
        codes[index] = CONTENTS.index(_content(values[index]))
    return codes


def _content(value: bytes) -> str:
    """Return what a token without letters contains."""
    text = value.decode("utf-8", "ignore")
    if not text:
        return "parts of characters"
    if text.isspace():
        return "whitespace"
    return "digits" if any(unicodedata.category(c)[0] == "N" for c in text) else "symbols"

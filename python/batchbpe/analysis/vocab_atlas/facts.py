"""What one vocabulary contains, and how many tokens vocabularies share."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ...formats import format_of
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
"""Why a token is unreachable, in the order in which a cause is looked for. `causes_of` explains them."""
MAX_EXAMPLES = 12
"""Number of tokens of a kind that are described."""
Codes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Tokens:
    """Tokens of a vocabulary.

    >>> Tokens.of(Tokenizer.train("aaab", 257).model, [97, 256]).examples[0].text
    'aa'
    """

    ids: list[int]
    examples: list[TokenInfo]
    """The first few; those of several bytes before single bytes, which say little."""

    @classmethod
    def of(cls, model: Model, ids: Iterable[int]) -> Tokens:
        """Choose the examples."""
        found = list(ids)
        chosen = sorted(found, key=lambda token: len(model.vocab[token]) == 1)[:MAX_EXAMPLES]
        return cls(found, _described(model, chosen))


@dataclass(frozen=True)
class Facts:
    """What a vocabulary contains. What is known only from a text is None without one. See `facts_of`."""

    format: str | None
    """The format of the file, if there is one."""
    split: str
    """The name of the pattern, and what happens before."""
    pattern: str
    identity: str
    """`Model.identity`: equal for vocabularies that are equal in everything that changes ids."""
    numbers: Mapping[str, int]
    """How many tokens there are, in total and of each kind; `largest id` and `merges listed` are not kinds."""
    mean_bytes: float
    """Mean length of the ordinary tokens, which are all but special and added tokens."""
    contents: Mapping[str, int]
    """Number of ordinary tokens for each of `CONTENTS`."""
    unreachable: Tokens
    """Ordinary tokens whose own bytes are encoded differently."""
    causes: Mapping[str, Tokens]
    """Why: see `causes_of`."""
    duplicates: Tokens
    partial_utf8: Tokens
    longest: list[TokenInfo]
    missing_bytes: list[int]
    unused: Tokens | None
    scaffolds: Tokens | None
    residues: Tokens | None
    unreachable_in_text: Tokens | None
    """Tokens that are unreachable on their own and that the text contains."""
    exports: Mapping[str, Export]
    """Whether each engine can load an exact export."""

    @property
    def missing_utf8_bytes(self) -> list[int]:
        """The missing bytes that text can contain."""
        return [byte for byte in self.missing_bytes if byte not in NOT_IN_UTF8]


def facts_of(tokenizer: Tokenizer, audit: Audit, contents: Codes, source: Path | None = None) -> Facts:
    """Return the facts about a vocabulary. `contents` are those of its ordinary tokens; see `Union`.

    >>> from batchbpe.analysis import audit
    >>> tokenizer = Tokenizer.train("aaabdaaabac", 259, special_tokens=["<s>"])
    >>> facts = facts_of(tokenizer, audit(tokenizer), Union().add(ordinary(tokenizer.model).values()))
    >>> facts.numbers["tokens"], facts.contents["Latin"], facts.contents["parts of characters"]
    (259, 54, 128)
    """
    model = tokenizer.model
    values = ordinary(model).values()
    unused = None if audit.unused is None else set(audit.unused)
    format = None if source is None else "transformers" if source.is_dir() else format_of(source)
    listed = merges_listed(source) if source is not None and format in ("huggingface", "transformers") else None

    def tokens(ids: list[int] | None) -> Tokens | None:
        return None if ids is None else Tokens.of(model, ids)

    return Facts(
        format=format,
        split=model.split.name,
        pattern=model.pattern,
        identity=model.identity,
        numbers=_numbers(model) | ({} if listed is None else {"merges listed": listed}),
        mean_bytes=sum(map(len, values)) / len(values) if values else 0.0,
        contents=dict(zip(CONTENTS, np.bincount(contents, minlength=len(CONTENTS)).tolist(), strict=True)),
        unreachable=Tokens.of(model, audit.unreachable),
        causes={cause: Tokens.of(model, ids) for cause, ids in causes_of(model, audit.unreachable).items()},
        duplicates=Tokens.of(model, audit.duplicates),
        partial_utf8=Tokens.of(model, audit.partial_utf8),
        longest=_described(model, audit.longest),
        missing_bytes=[byte for byte, token in enumerate(model.byte_ids) if token is None],
        unused=tokens(audit.unused),
        scaffolds=tokens(audit.scaffolds),
        residues=tokens(audit.residues),
        unreachable_in_text=tokens(None if unused is None else [id for id in audit.unreachable if id not in unused]),
        exports=exports_of(model),
    )


def _numbers(model: Model) -> dict[str, int]:
    return {
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


def ordinary(model: Model) -> dict[int, bytes]:
    """Return the tokens that are not special or added, and not hidden.

    >>> max(ordinary(Tokenizer.train("aaab", 258, special_tokens=["<s>"]).model))
    256
    """
    found = {*model.found_tokens.values()}
    return {token: value for token, value in model.vocab.items() if token not in found}


def _described(model: Model, tokens: Iterable[int]) -> list[TokenInfo]:
    return [TokenInfo.of(token, model.vocab[token]) for token in tokens]


def causes_of(model: Model, unreachable: Iterable[int]) -> dict[str, list[int]]:
    """Return why tokens are unreachable: the first of `CAUSES` that applies.

    - decode-only: the file has no merge that makes the token, and no rule to look it up;
    - added token: its text contains an added token, which is found first;
    - normalization: its text is normalized to another;
    - pattern: its text is split into several chunks, or dropped (a longer text may still contain it within one);
    - merges: other merges come first.

    >>> from batchbpe.analysis import audit
    >>> model = Model(r"[a-z]+|[^a-z]", {(97, 32): 256, (98, 99): 257, (97, 98): 258, (258, 99): 259})
    >>> causes_of(model, audit(Tokenizer(model)).unreachable)
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

    >>> union = Union()
    >>> [[CONTENTS[code] for code in union.add(values)] for values in ([b"a", b"to"], [b"to", b"42"])]
    [['Latin', 'Latin'], ['Latin', 'digits']]
    >>> union.shared().tolist()
    [[2, 1], [1, 2]]
    """

    def __init__(self) -> None:
        """Start without vocabularies."""
        self._numbers: dict[bytes, int] = {}
        self._contents: Codes = np.zeros(0, np.int64)
        self._vocabularies: list[Codes] = []

    def add(self, values: Iterable[bytes]) -> Codes:
        """Add a vocabulary, in which a token may occur several times. Return what each token contains."""
        numbers = self._numbers
        known = len(numbers)
        found = np.array([numbers.setdefault(value, len(numbers)) for value in values], np.int64)
        self._contents = np.concatenate([self._contents, _content_codes([*islice(numbers, known, None)])])
        self._vocabularies.append(np.unique(found))
        codes: Codes = self._contents[found]
        return codes

    def shared(self) -> Codes:
        """Return how many different tokens each vocabulary shares with each; on the diagonal, how many it has."""
        size = len(self._vocabularies)
        shared = np.zeros((size, size), np.int64)
        for start in range(0, len(self._numbers), 1 << 16):  # sums of this many ones are exact in float32
            block = np.zeros((size, 1 << 16), np.float32)
            for row, numbers in zip(block, self._vocabularies, strict=True):
                first, last = np.searchsorted(numbers, [start, start + len(row)])
                row[numbers[first:last] - start] = 1
            shared += np.rint(block @ block.T).astype(np.int64)
        return shared


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

"""Search, filter and sort the tokens of a vocabulary."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ..analysis.display import decoded
from ..analysis.scripts import SCRIPT_NAMES, script_codes
from ..errors import ArgumentError
from ..tokenizer import Tokenizer
from ..util.lazy import lazy

Mask = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.int64]
KINDS = ("byte", "stop word", "merge", "phrase", "special", "added", "decode-only", "hidden")
SORTS = ("id", "text", "bytes", "count")


@dataclass(frozen=True)
class Query:
    """Which tokens to list, and in which order. The defaults list all of them by id."""

    search: str = ""
    """Text, `0x` and bytes in hex, or `#` and an id. A number also finds the token with that id."""
    kind: str = ""
    script: str = ""
    least: int = 0
    """Minimum number of bytes."""
    most: int = 1 << 30
    """Maximum number of bytes."""
    partial: bool = False
    """Only tokens that are not valid UTF-8."""
    unused: bool = False
    """Only tokens that do not occur in the corpus."""
    sort: str = "id"
    descending: bool = False

    def __post_init__(self) -> None:
        """Reject choices that do not exist."""
        choices = {"kind": ("", *KINDS), "script": ("", *SCRIPT_NAMES), "sort": SORTS}
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise ArgumentError(name, getattr(self, name), f"must be one of {', '.join(map(repr, allowed))}")


@dataclass(frozen=True, eq=False)
class TokenCounts:
    """How often each token occurs in a text, indexed by id. Compared by identity, so that results can be cached."""

    by_id: Indices


class Vocabulary:
    """An index of the tokens of a tokenizer.

    >>> vocabulary = Vocabulary(Tokenizer.train("aaabdaaabac", 259))
    >>> vocabulary.find(Query(search="ab", sort="bytes", descending=True)).tolist()
    [258, 257]
    >>> vocabulary.built_from(97), vocabulary.kind(258), vocabulary.rank[258]
    ([256, 257], 'merge', 2)
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Index the kinds of the tokens. Everything else is computed when it is needed."""
        model = tokenizer.model
        self.model = model
        self.ids: Indices = np.array(list(model.vocab), np.int64)
        self.values = list(model.vocab.values())
        groups = (model.stop_words, model.merges, model.phrases, model.special_tokens, model.added_tokens)
        self._kind_by_id = np.zeros(model.next_id, np.int8)
        byte_ids = [token for token in model.byte_ids if token is not None]
        ids_of_kinds = [byte_ids, *(group.values() for group in groups), model.decode_only.keys(), model.hidden]
        for code, ids in enumerate(ids_of_kinds):
            self._kind_by_id[list(ids)] = code
        self._kinds = self._kind_by_id[self.ids]
        self.rank = {token: rank for rank, token in enumerate(model.merges.values())}
        self.find = lru_cache(maxsize=16)(self._find)

    def kind(self, token: int) -> str:
        """Return the kind of a token."""
        return KINDS[self._kind_by_id[token]]

    @lazy
    def parts(self) -> dict[int, tuple[int, ...]]:
        """The tokens from which merges and phrases were made."""
        parts: dict[int, tuple[int, ...]] = {token: pair for pair, token in self.model.merges.items()}
        return parts | {token: phrase for phrase, token in self.model.phrases.items()}

    @lazy
    def _built(self) -> dict[int, list[int]]:
        built: dict[int, list[int]] = defaultdict(list)
        for token, parts in self.parts.items():
            for part in dict.fromkeys(parts):
                built[part].append(token)
        return built

    def built_from(self, token: int) -> list[int]:
        """Return the tokens of which a token is a part."""
        return self._built.get(token, [])

    @lazy
    def facets(self) -> dict[str, dict[str, int]]:
        """The number of tokens of each kind and script."""

        def numbers(names: tuple[str, ...], codes: npt.NDArray[np.int8]) -> dict[str, int]:
            found = np.bincount(codes, minlength=len(names)).tolist()
            return {name: number for name, number in zip(names, found, strict=True) if number}

        return {"kind": numbers(KINDS, self._kinds), "script": numbers(SCRIPT_NAMES, self._scripts)}

    @lazy
    def _lengths(self) -> Indices:
        return np.array([len(value) for value in self.values], np.int64)

    @lazy
    def _partial(self) -> Mask:
        return np.array([decoded(value) is None for value in self.values], bool)

    @lazy
    def _scripts(self) -> npt.NDArray[np.int8]:
        return script_codes(self.values)

    def _find(self, query: Query, token_counts: TokenCounts | None = None) -> Indices:
        """Return the ids that a query selects. Without `token_counts`, no token is known to be unused."""
        chosen = self._search(query.search)
        if query.kind:
            chosen &= self._kinds == KINDS.index(query.kind)
        if query.script:
            chosen &= self._scripts == SCRIPT_NAMES.index(query.script)
        if query.least > 0 or query.most < 1 << 30:
            chosen &= (self._lengths >= query.least) & (self._lengths <= query.most)
        if query.partial:
            chosen &= self._partial
        counts = np.ones(len(self.ids), np.int64) if token_counts is None else token_counts.by_id[self.ids]
        if query.unused:
            chosen &= counts == 0
        indices = np.flatnonzero(chosen)
        if query.sort == "text":
            indices = np.array(sorted(indices.tolist(), key=self.values.__getitem__), np.int64)
        elif query.sort != "id":
            keys = self._lengths if query.sort == "bytes" else counts
            indices = indices[np.argsort(keys[indices], kind="stable")]
        return self.ids[indices[::-1] if query.descending else indices]

    def _search(self, search: str) -> Mask:
        number = re.fullmatch(r"#?(\d{1,9})", search)
        is_named: Mask = self.ids == (int(number[1]) if number else -1)
        if search.startswith("#") and number:
            return is_named
        needle = search.encode("utf-8", "surrogatepass")
        if re.fullmatch(r"0x(?:[0-9a-fA-F]{2}| )+", search):
            needle = bytes.fromhex(search[2:])
        if not needle:
            return np.ones(len(self.ids), bool)
        found: Mask = is_named | np.array([needle in value for value in self.values], bool)
        return found

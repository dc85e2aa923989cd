"""`Model`: everything that defines a tokenizer. Immutable, and validated when it is created.

Training creates models, formats translate them to and from files, and `Tokenizer` runs them.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from .._core import Encoder, RankedTokens
from ..arguments import check_integer, check_iterable
from ..choices import Dependents
from ..errors import ArgumentTypeError, DataError, short
from ..patterns import Split
from ..util.lazy import lazy
from . import pruning, surgery, union
from .checks import FLAGS, check_phrases, check_tokens, checked_flags, checked_hidden, checked_ranks
from .merges import Merges
from .tree import MergeTree

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..counts import ChunkCounts

NOT_COMPARED = ("training", "carried")
"""Fields that do not change how text is encoded."""
_NEW = ("flags", "decode_only", "hidden")
"""Fields that are part of `identity` only if they are not empty, so that checksums of older files remain valid."""


class UnknownTokenError(DataError, KeyError):
    """A token does not exist. It is a `KeyError` as in tiktoken, and a `ValueError` as in minbpe.

    >>> raise UnknownTokenError.of_id(300, largest=279)
    Traceback (most recent call last):
    ...
    batchbpe.model.UnknownTokenError: token id 300 does not exist; the largest id is 279
    """

    @classmethod
    def of_id(cls, token: object, largest: int) -> UnknownTokenError:
        """Create the error for an id that no token has."""
        return cls(f"token id {short(token)} does not exist; the largest id is {largest}")


@dataclass(frozen=True, repr=False, eq=False)
class Model:
    """A split and the tokens: bytes, stop words, merges in the order they were made, phrases, special and added tokens.

    The mappings are copied and read-only. Models with the same split and tokens are equal, however they were trained.

    >>> model = Model(split=r"\\w+", merges={(97, 97): 256, (256, 98): 257})
    >>> model
    Model(tokens=258, merges=2, stop_words=0, special_tokens=0, pattern='\\\\w+')
    >>> model.vocab[257]
    b'aab'
    >>> Model(split=r"\\w+", merges={(97, 256): 257})
    Traceback (most recent call last):
    ...
    batchbpe.errors.DataError: merge 0, (97, 256) -> 257: token 256 is not defined; add the merge that makes it
    """

    split: Split
    """How text becomes chunks. A string, a regular expression, is converted."""
    merges: Mapping[tuple[int, int], int]
    """The pairs of ids that are merged, in order of rank, and the ids they become.

    Each token is made by one merge, which may use tokens that later merges make. Published lists may have several
    merges that make the same token, but only one of them can ever apply: see
    https://batchbpe.github.io/batchbpe/formats.html#one-merge-per-token.
    """
    stop_words: Mapping[bytes, int] = field(default_factory=dict)
    """Chunks that are tokens of their own: they are looked up before anything is merged."""
    special_tokens: Mapping[str, int] = field(default_factory=dict)
    """Tokens such as <|endoftext|>, which are encoded only on request."""
    byte_ids: tuple[int | None, ...] = tuple(range(256))
    """The id of each byte. A byte without an id (`None`) is left out of a chunk before the rest is merged."""
    training: Mapping[str, Any] = field(default_factory=dict)
    """How the model was trained. This is for information only and not part of equality."""
    phrases: Mapping[tuple[int, ...], int] = field(default_factory=dict)
    """Sequences of tokens that are whole chunks, such as those of " of" and " the", and the ids they become."""
    added_tokens: Mapping[str, int] = field(default_factory=dict)
    """Tokens that are not special but are found in every text before it is split, between special tokens.

    Hugging Face calls them added tokens with `special=False`. The longest token that starts first is found first.
    """
    flags: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """How special and added tokens are found, where it differs from `default_flags`. See `FLAGS`."""
    decode_only: Mapping[int, bytes] = field(default_factory=dict)
    """Tokens that no text is encoded to, by id. Their bytes may be those of other tokens."""
    carried: Mapping[str, Any] = field(default_factory=dict)
    """What the file that the model was loaded from has besides, such as a chat template, as JSON: for exports.

    It does not change how text is encoded and is not part of equality.
    """
    hidden: frozenset[int] = field(default_factory=frozenset)
    """Tokens of merges that are only steps to other tokens: no text is encoded to them. Any collection is converted.

    After all merges have been applied, each hidden token is replaced by the pair it was merged from.
    """

    def __post_init__(self) -> None:
        """Copy the arguments into read-only mappings and validate them."""
        if not isinstance(self.split, Split):
            object.__setattr__(self, "split", Split(self.split))
        for name in (each.name for each in fields(self) if each.name not in ("split", "byte_ids", "hidden")):
            value = getattr(self, name)
            if not isinstance(value, Mapping):
                raise ArgumentTypeError(name, value, "must be a mapping")
            if name != "merges":
                copied = deepcopy(dict(value)) if name in NOT_COMPARED else dict(value)
                object.__setattr__(self, name, MappingProxyType(copied))
        check_iterable("byte_ids", self.byte_ids, "must be 256 different ids, one for each byte")
        object.__setattr__(self, "byte_ids", tuple(self.byte_ids))
        object.__setattr__(self, "merges", Merges(checked_ranks(self.byte_ids, self.merges)))
        check_tokens(self)
        changed = {name: flags for name, flags in checked_flags(self) if flags != self.default_flags(name)}
        object.__setattr__(self, "flags", MappingProxyType(changed))
        if self.phrases:
            check_phrases(self)
        object.__setattr__(self, "hidden", checked_hidden(self))

    @property
    def pattern(self) -> str:
        """The regular expression that splits text into chunks."""
        return self.split.pattern

    @property
    def ranked(self) -> RankedTokens:
        """The bytes and the merges as the core stores them.

        >>> len(Model(split=r"\\w+", merges={(97, 97): 256}).ranked)
        257
        """
        return self.merges.ranked  # type: ignore[attr-defined, no-any-return]  # they are always `Merges`

    @property
    def n_vocab(self) -> int:
        """The largest id plus one: `len(model.vocab)` unless there are gaps between ids. Hidden tokens do not count.

        >>> Model(split=r"\\w+", merges={}, special_tokens={"<e>": 300}).n_vocab
        301
        """
        return self._largest_id + 1

    @property
    def next_id(self) -> int:
        """The first id that is free for new tokens: `n_vocab`, or more if hidden tokens have larger ids.

        >>> model = Model(split=r"\\w+", merges={(97, 97): 300}, hidden={300})
        >>> model.n_vocab, model.next_id
        (256, 301)
        """
        return max(self._largest_id, *self.hidden) + 1 if self.hidden else self.n_vocab

    @property
    def _others(self) -> list[Collection[int]]:
        """The ids of all tokens but bytes and merges."""
        ids: list[Mapping[Any, int]] = [self.stop_words, self.special_tokens, self.phrases, self.added_tokens]
        return [*(each.values() for each in ids), self.decode_only.keys()]

    @lazy
    def _largest_id(self) -> int:
        made = self.ranked.largest_id
        if made in self.hidden:
            visible = (*self.visible_merges.values(), *self.byte_ids)
            made = max((token for token in visible if token is not None), default=0)
        return max(made, *(max(ids, default=0) for ids in self._others))

    @lazy
    def visible_merges(self) -> Mapping[tuple[int, int], int]:
        """The merges that make visible tokens.

        >>> model = Model(split=r"\\w+", merges={(97, 97): 256, (256, 98): 257}, hidden={256})
        >>> dict(model.visible_merges)
        {(256, 98): 257}
        """
        if not self.hidden:
            return self.merges
        return MappingProxyType({pair: token for pair, token in self.merges.items() if token not in self.hidden})

    @lazy
    def vocab_size(self) -> int:
        """The number of tokens, without hidden tokens.

        >>> Model(split=r"\\w+", merges={}, special_tokens={"<e>": 300}).vocab_size
        257
        """
        shared = len(self.ranked.used([*self.found_tokens.values()]))  # special or added tokens that a merge makes
        return (
            256 - self.byte_ids.count(None) + len(self.merges) - len(self.hidden) + sum(map(len, self._others)) - shared
        )

    @lazy
    def vocab(self) -> Mapping[int, bytes]:
        """The bytes of every token by id, in ascending order of id, including special and added tokens.

        >>> Model(split=r"\\w+", merges={(97, 97): 256}).vocab[256]
        b'aa'
        """
        if not self.hidden:
            return self.vocab_with_hidden
        visible = {token: value for token, value in self.vocab_with_hidden.items() if token not in self.hidden}
        return MappingProxyType(visible)

    @lazy
    def vocab_with_hidden(self) -> Mapping[int, bytes]:
        """The bytes of every token, as `vocab`, and of hidden tokens.

        >>> model = Model(split=r"\\w+", merges={(97, 97): 256}, hidden={256})
        >>> model.vocab_with_hidden.keys() - model.vocab.keys()
        {256}
        """
        vocab = self.ranked.vocab()
        vocab.update((token, word) for word, token in self.stop_words.items())
        vocab.update((token, b"".join(map(vocab.__getitem__, parts))) for parts, token in self.phrases.items())
        vocab.update((token, name.encode()) for name, token in self.found_tokens.items())
        vocab.update(self.decode_only)
        return MappingProxyType(dict(sorted(vocab.items())))

    @lazy
    def found_tokens(self) -> Mapping[str, int]:
        """The tokens that are found in a text before it is split: special and added tokens.

        >>> dict(Model(split=r"\\w+", merges={}, special_tokens={"<s>": 256}, added_tokens={"  ": 257}).found_tokens)
        {'<s>': 256, '  ': 257}
        """
        return MappingProxyType({**self.special_tokens, **self.added_tokens})

    @lazy
    def token_ids(self) -> Mapping[bytes, int]:
        """The ids of all tokens by their bytes, except special, added, decode-only and hidden tokens.

        A stop word takes precedence over a merge with the same bytes, as in encoding.

        >>> Model(split=r"\\w+", merges={(97, 97): 257}, stop_words={b"aa": 256}).token_ids[b"aa"]
        256
        """
        ids: dict[bytes, int] = {}
        for token in (*self.stop_words.values(), *self.byte_ids, *self.visible_merges.values(), *self.phrases.values()):
            if token is not None:
                ids.setdefault(self.vocab[token], token)
        return MappingProxyType(ids)

    @lazy
    def identity(self) -> str:
        """Identifies all fields but `training` and `carried`: the same in every process.

        >>> model = Model(split=r"\\w+", merges={})
        >>> model.identity == Model(split=r"\\w+", merges={}, training={"data": "a.txt"}).identity
        True
        """
        compared = (each for each in fields(self) if each.name not in ("merges", *NOT_COMPARED))
        return self._identity_with(each.name for each in compared if each.name not in _NEW or getattr(self, each.name))

    @lazy
    def tokens_id(self) -> str:
        """Identifies the pattern, bytes, merges, stop words and hidden tokens: the same in every process.

        >>> model = Model(split=r"\\w+", merges={})
        >>> model.tokens_id == Model(split=r"\\w+", merges={}, special_tokens={"<s>": 256}).tokens_id
        True
        """
        return self._identity_with(["split", "byte_ids", "stop_words", *(["hidden"] if self.hidden else [])])

    def _identity_with(self, names: Iterable[str]) -> str:
        """Return a checksum of the merges, whose order is their rank, and of other fields, which have no order."""
        merges = array("I", chain.from_iterable((*pair, token) for pair, token in self.merges.items()))
        others = tuple(_canonical(getattr(self, name)) for name in names)
        return hashlib.blake2b(repr(others).encode() + merges.tobytes(), digest_size=16).hexdigest()

    def encoder(self) -> Encoder:
        """Build the core's encoder. This takes about 0.03 s for 100,000 tokens, so callers keep it.

        >>> Model(split=r"\\w+", merges={(97, 97): 256}).encoder().encode("aaa", None, None)
        [256, 97]
        """
        return Encoder(
            self.split,
            self.ranked,
            list(self.stop_words.items()),
            self._found(self.special_tokens),
            self._found(self.added_tokens),
            list(self.phrases.items()),
            [(value, token) for token, value in self.decode_only.items()],
            [*self.hidden],
        )

    def _found(self, tokens: Mapping[str, int]) -> list[tuple[str, int, list[bool]]]:
        flags_of = self.flags_of
        return [(name, token, [flag in flags_of(name) for flag in FLAGS]) for name, token in tokens.items()]

    def default_flags(self, name: str) -> frozenset[str]:
        """Return the flags that a special or added token has unless `flags` says otherwise.

        >>> sorted(Model(split=r"\\w+", merges={}, added_tokens={"  ": 256}).default_flags("  "))
        ['normalized']
        """
        return frozenset({"normalized"} if name in self.added_tokens else ())

    def flags_of(self, name: str) -> frozenset[str]:
        """Return how a special or added token is found.

        >>> model = Model(split=r"\\w+", merges={}, special_tokens={"<mask>": 256}, flags={"<mask>": {"lstrip"}})
        >>> model.flags_of("<mask>")
        frozenset({'lstrip'})
        """
        return self.flags.get(name, self.default_flags(name))

    def merge_tree(self, token: int) -> MergeTree:
        """Return the tree of merges that builds a token, through hidden tokens as well.

        >>> print(Model(split=r"\\w+", merges={(97, 97): 256}).merge_tree(256))
        256 'aa'
        ├─ 97 'a'
        └─ 97 'a'
        """
        check_integer("token", token)
        vocab = self.vocab_with_hidden
        if token not in vocab:
            raise UnknownTokenError.of_id(token, self.n_vocab - 1)
        pairs: dict[int, tuple[int, ...]] = {merged: pair for pair, merged in self.merges.items()}
        pairs |= {phrase: parts for parts, phrase in self.phrases.items()}
        needed: set[int] = set()
        stack = [token]
        while stack:
            part = stack.pop()
            if part not in needed:
                needed.add(part)
                stack += pairs.get(part, ())
        trees = {part: MergeTree(part, vocab[part]) for part in needed - pairs.keys()}
        for merged in sorted(needed & pairs.keys(), key=lambda token: len(vocab[token])):  # parts are shorter
            trees[merged] = MergeTree(merged, vocab[merged], tuple(trees[part] for part in pairs[merged]))
        return trees[token]

    def without(self, tokens: Iterable[int | bytes | str], *, dependents: Dependents = "hide") -> Model:
        """Remove tokens. The others keep their ids.

        Parameters
        ----------
        tokens: ids, or the bytes or the text of tokens: all tokens with these bytes, including special tokens. Single
            bytes cannot be removed. Phrases of a removed token are removed, too.
        dependents: what happens to tokens that are merged from a removed token. "hide": nothing; the removed token
            becomes a hidden step to them, with an id after all others. "rebuild": they are merged from the two tokens
            that the remaining merges make of their bytes, and removed if more than two are left. "remove": they are
            removed.

        >>> model = Model(split=r"\\w+", merges={(97, 98): 256, (98, 99): 257, (256, 99): 258})  # ab, bc, abc
        >>> model.without([b"ab"]).hidden
        frozenset({259})
        >>> dict(model.without([b"ab"], dependents="rebuild").merges)
        {(98, 99): 257, (97, 257): 258}
        >>> dict(model.without(["ab"], dependents="remove").merges)
        {(98, 99): 257}

        """
        return surgery.without(self, tokens, dependents)

    def pruned(self, n: int, counts: ChunkCounts | Sequence[int] | npt.NDArray[Any]) -> Model:
        """Reduce the model to `n` tokens by removing the rarest leaves (arXiv 2512.03989). The others keep their ids.

        A leaf is a token that no other token and no phrase is made from. The leaf with the smallest count is removed
        first, of several the one with the largest id. Its count is then added to those of its two parts. Bytes, stop
        words, phrases, special and added tokens are not removed.

        Parameters
        ----------
        n: number of tokens, as in `vocab_size`.
        counts: chunk counts with the same split, which the model encodes, or how often each id occurs.

        >>> from batchbpe import ChunkCounts
        >>> model = Model(split=r"\\w+|\\s", merges={(97, 98): 256, (98, 99): 257, (256, 99): 258})  # ab, bc, abc
        >>> dict(model.pruned(258, ChunkCounts.count("abc bc bc", model.split)).merges)
        {(97, 98): 256, (98, 99): 257}

        """
        return pruning.pruned(self, n, counts)

    def truncated(self, n: int) -> Model:
        """Reduce the model to its first `n` tokens: merges in order of rank, then phrases. They keep their ids.

        Bytes, stop words, special, added and decode-only tokens are not removed. If the merges of some tokens come
        before those of their parts, these may be missing, and there are fewer tokens.

        The first tokens of a vocabulary that was trained in batches are not those of a smaller vocabulary: it encodes
        text to about 2% more tokens than one that was trained with `n` tokens. This function warns about it, judging
        by `training`; see https://batchbpe.github.io/batchbpe/surgery.html.

        >>> dict(Model(split=r"\\w+", merges={(97, 98): 256, (256, 99): 257}).truncated(257).merges)
        {(97, 98): 256}
        """
        return surgery.truncated(self, n)

    def with_split(self, split: Split | str) -> Model:
        """Replace the split: a `Split`, the name of a pattern, or a regular expression.

        Phrases that the new split does not cut into their chunks are removed.

        >>> Model(split=r"\\w+", merges={}).with_split("gpt4")
        Model(tokens=256, merges=0, stop_words=0, special_tokens=0, pattern='gpt4')
        """
        return surgery.with_split(self, split)

    def renumbered(self) -> Model:
        """Close the gaps between ids. Afterwards, `n_vocab` is `vocab_size`.

        The order is bytes, stop words, merges by rank, phrases, decode-only tokens, special and added tokens, and
        hidden tokens last. Within each kind but merges, ids keep their order. Carried parts get the new ids.

        >>> model = Model(split=r"\\w+", merges={(97, 98): 300}, special_tokens={"<s>": 256}).renumbered()
        >>> dict(model.merges), dict(model.special_tokens)
        ({(97, 98): 256}, {'<s>': 257})
        """
        return surgery.renumbered(self)

    def merged_with(self, other: Model) -> Model:
        """Add the tokens of another model with the same split that this model lacks. No id of this model changes.

        The order of new ids is stop words, merges, phrases, special and added tokens. Merges are added after
        those of this model, if their tokens can be reached: the other merges make two tokens of the bytes, which are
        the pair. Decode-only tokens are not added.

        >>> one, two = (Model(split=r"\\w+", merges=merges) for merges in ({(97, 98): 256}, {(98, 99): 256}))
        >>> dict(one.merged_with(two).merges)
        {(97, 98): 256, (98, 99): 257}
        """
        return union.merged_with(self, other)

    def __repr__(self) -> str:
        """Show the numbers of tokens and the pattern, by name if it has one."""
        shown = ["merges", "stop_words", "special_tokens"]
        shown += (name for name in ("phrases", "added_tokens", "decode_only", "hidden") if getattr(self, name))
        counts = (f"{name}={len(getattr(self, name))}" for name in shown)
        return f"Model(tokens={self.vocab_size}, {', '.join(counts)}, pattern={short(self.split.name, 60)})"

    def __eq__(self, other: object) -> bool:
        """Compare all fields but `training` and `carried`."""
        if not isinstance(other, Model):
            return NotImplemented
        return self is other or self.identity == other.identity

    def __hash__(self) -> int:
        """Hash all fields but `training` and `carried`."""
        return hash(self.identity)

    def __reduce__(self) -> Any:
        """Pickle the fields as plain dicts, since read-only mappings cannot be pickled."""
        values = (getattr(self, each.name) for each in fields(self))
        return type(self), tuple(dict(value) if isinstance(value, Mapping) else value for value in values)

    def __copy__(self) -> Model:
        """Return the model itself, which is immutable."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Model:
        """Return the model itself, which is immutable."""
        return self


def _canonical(value: Any) -> Any:
    """Return the value of a field such that equal values, including numpy strings, have the same repr."""
    if isinstance(value, Mapping):
        return sorted((_canonical(token), _canonical(key)) for key, token in value.items())
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, Split):
        return value.to_json()
    if isinstance(value, str):
        return str.__str__(value)
    return bytes(value) if isinstance(value, bytes) else value

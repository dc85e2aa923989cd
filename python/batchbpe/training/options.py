"""The options of training. Invalid ones raise an error before anything is counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any, Literal, Protocol, get_args

from .._core import MAX_ID, MAX_MERGES
from ..arguments import check_bool, check_integer
from ..choices import Ties
from ..errors import ArgumentError, ArgumentTypeError, DataError, Message, Setting, plural, short
from ..model import Model, check_special_tokens
from ..patterns import describe_pattern, resolve_pattern
from ..phrases.counting import PhraseChunks, check_phrase_chunks
from ..policies import Policy, policy_name, resolve_policy


class HasModel(Protocol):
    """A tokenizer."""

    @property
    def model(self) -> Model:
        """Its model."""


@dataclass(frozen=True)
class TrainingOptions:
    """The options of training. Invalid options raise an error here, before anything is counted."""

    vocab_size: int
    """Total number of tokens: 256 bytes, stop words, merges and special tokens."""
    stop_list_size: int = 0
    """Number of stop words: the most frequent chunks get whole-chunk tokens."""
    freq_cutoff: int = 1
    """Ignore chunks that occur fewer times."""
    special_tokens: Sequence[str] | Mapping[str, int] = ()
    """A list of names, which get the last ids, or a mapping from name to id. Those of `base` need not be listed."""
    cap_divisor: int = 2
    """Search at most `merges_remaining // cap_divisor` pairs per batch."""
    max_batch_size: int = 0
    """Search at most this many pairs per batch; 0 for no limit."""
    policy: Policy | str = "continue_search"
    """Chooses which of the pairs searched are merged: a function, or a name from `batchbpe.policies`."""
    overlapping: bool = False
    """Count "aa" four times in "aaaaa", as QuickTokenizer does, instead of twice."""
    ties: Ties = "ids"
    """Order of pairs with equal counts: "ids", the smallest first, or that of "huggingface"."""
    base: Model | None = None
    """Model or tokenizer to extend. All its tokens, including special tokens, keep their ids."""

    def __post_init__(self) -> None:
        """Check everything that can be checked without the data."""
        object.__setattr__(self, "policy", resolve_policy(self.policy))
        check_special_tokens(self.special_tokens)
        check_bool("overlapping", self.overlapping)
        if self.ties not in get_args(Ties):
            raise ArgumentError("ties", self.ties, f"must be one of {', '.join(map(repr, get_args(Ties)))}")
        check_integer("vocab_size", self.vocab_size)
        for name, least in {"stop_list_size": 0, "freq_cutoff": 0, "cap_divisor": 1, "max_batch_size": 0}.items():
            check_integer(name, getattr(self, name), least)
        object.__setattr__(self, "base", getattr(self.base, "model", self.base))
        if self.base is not None and not isinstance(self.base, Model):
            raise ArgumentTypeError("base", self.base, "must be a Tokenizer or a Model")
        largest = min(MAX_ID, 256 + MAX_MERGES)
        if self.vocab_size > largest:
            raise ArgumentError("vocab_size", self.vocab_size, f"must be at most {largest}")
        if self.base:
            self._check_base(self.base)
        self._check_smallest()

    def _check_base(self, base: Model) -> None:
        for name in self.special_tokens:
            if name in base.added_tokens:
                reason: Message = ("must not contain added tokens of ", Setting("base"), f" such as {short(name)}")
                raise ArgumentError("special_tokens", list(self.special_tokens), reason)
        first = base.n_vocab
        new = self.vocab_size - base.vocab_size - len(self.new_special_tokens)
        for name, token in self.special_tokens.items() if isinstance(self.special_tokens, Mapping) else ():
            kept = base.special_tokens.get(name, token)
            if kept != token:
                reason = (f"must not move {short(name)}, which has the id {kept} in ", Setting("base"))
                raise ArgumentError("special_tokens", {name: token}, reason)
            if name not in base.special_tokens and token in base.vocab:
                reason = ("must not have the ids of other tokens of ", Setting("base"))
                raise ArgumentError("special_tokens", {name: token}, reason)
            if first <= token < first + new:
                reason = f"must not have the ids {first} to {first + new - 1}, which new tokens need"
                raise ArgumentError("special_tokens", {name: token}, reason)
        if self.stop_list_size:
            reason = ("must be 0 with ", Setting("base"), ", since stop words come before merges")
            raise ArgumentError("stop_list_size", self.stop_list_size, reason)

    def _check_smallest(self) -> None:
        """Raise if the tokens that are known before counting do not fit."""
        special, base = len(self.new_special_tokens), self.base
        tokens = base.vocab_size if base else 256
        if self.vocab_size < tokens + special:
            known: Message = ("tokens of ", Setting("base")) if base else ("bytes",)
            parts = (f"{tokens} ", *known, f" + {plural(special, 'new special token' if base else 'special token')}")
            reason: Message = (f"must be at least {tokens + special} (", *parts, ")")
            raise ArgumentError("vocab_size", self.vocab_size, reason)
        if base is None and isinstance(self.special_tokens, Mapping):
            first = self.vocab_size - special
            for name, token in self.special_tokens.items():
                if token < first:
                    reason = f"must have ids of at least {first} (bytes, stop words and merges have the lower ones)"
                    raise ArgumentError("special_tokens", {name: token}, reason)

    @property
    def new_special_tokens(self) -> Sequence[str] | Mapping[str, int]:
        """The special tokens that the base does not have."""
        known = self.base.special_tokens if self.base else {}
        if isinstance(self.special_tokens, Mapping):
            return {name: token for name, token in self.special_tokens.items() if name not in known}
        return [name for name in self.special_tokens if name not in known]

    @property
    def found_tokens(self) -> list[str]:
        """The tokens that are removed from the text before it is split; see `Model.found_tokens`."""
        return [*(self.base.found_tokens if self.base else ()), *self.new_special_tokens]

    def as_metadata(self) -> dict[str, Any]:
        """Return what a model file records about its training."""
        plain = ("vocab_size", "stop_list_size", "freq_cutoff", "cap_divisor", "max_batch_size")
        numbers = {name: int(getattr(self, name)) for name in plain}
        base = {"base_vocab_size": self.base.vocab_size} if self.base else {}
        choices = {"policy": policy_name(self.policy), "overlapping": bool(self.overlapping), "ties": self.ties}
        return numbers | base | choices


@dataclass(frozen=True)
class PhraseOptions:
    """The options of training phrases. Invalid options raise an error here, before anything is counted."""

    phrases: int | Literal["auto"] = 0
    """Number of phrases, which are part of `vocab_size`, or "auto" to balance them with merges."""
    phrase_chunks: PhraseChunks = "letters"
    """Which chunks a phrase may consist of: "letters", "text", a regular expression, or a function."""
    max_words: int = 4
    """Largest number of chunks in a phrase."""
    phrase_sample: float | None = None
    """Share of the text from which phrases are learned; by default as much as makes 256 MiB."""

    def __post_init__(self) -> None:
        """Check the values."""
        if self.phrases != "auto":
            if isinstance(self.phrases, str):
                raise ArgumentError("phrases", self.phrases, "must be a number or 'auto'")
            check_integer("phrases", self.phrases, least=0)
            object.__setattr__(self, "phrases", int(self.phrases))
        for each in fields(self)[1:]:
            if not self.phrases and getattr(self, each.name) != each.default:
                reason = ("has no effect without ", Setting("phrases"))
                raise ArgumentError(each.name, getattr(self, each.name), reason)
        if not callable(self.phrase_chunks):
            check_phrase_chunks(self.phrase_chunks)
        check_integer("max_words", self.max_words, least=2)
        if self.phrase_sample is not None:
            if isinstance(self.phrase_sample, bool) or not isinstance(self.phrase_sample, Real):
                raise ArgumentTypeError("phrase_sample", self.phrase_sample, "must be a number")
            if not 0 < self.phrase_sample <= 1:
                raise ArgumentError("phrase_sample", self.phrase_sample, "must be greater than 0 and at most 1")


def check_room(phrase_options: PhraseOptions, options: TrainingOptions) -> None:
    """Raise if a number of phrases leaves no room for the tokens that are known before counting.

    >>> check_room(PhraseOptions(50), TrainingOptions(300))
    Traceback (most recent call last):
    ...
    batchbpe.errors.ArgumentError: phrases must be at most 44, which vocab_size leaves, got 50
    """
    base = options.base
    if base and base.phrases:
        problem = f" already has {plural(len(base.phrases), 'phrase')}"
        raise DataError((Setting("base"), problem), remedy="use a model without phrases")
    known = base.vocab_size if base else 256 + options.stop_list_size
    room = options.vocab_size - known - len(options.new_special_tokens)
    if phrase_options.phrases != "auto" and phrase_options.phrases > room:
        reason = (f"must be at most {room}, which ", Setting("vocab_size"), " leaves")
        raise ArgumentError("phrases", phrase_options.phrases, reason)


def pattern_for(options: TrainingOptions, pattern: str | None) -> str | None:
    """Return the pattern to count with: the given one, or that of the base. They must agree.

    >>> pattern_for(TrainingOptions(300), "gpt2")
    'gpt2'
    """
    base = options.base
    if base is None or pattern is None:
        return base.pattern if base else pattern
    if resolve_pattern(pattern) != base.pattern:
        reason = ("must be the pattern of ", Setting("base"), f", {describe_pattern(base.pattern)}")
        raise ArgumentError("pattern", pattern, reason)
    return pattern

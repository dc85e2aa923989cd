"""The options of training. Invalid ones raise an error before anything is counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import TYPE_CHECKING, Any, Protocol, get_args

from .._core import MAX_ID, MAX_MERGES
from ..arguments import check_integer
from ..choices import Normalization, PolicyName, Ties
from ..errors import ArgumentError, ArgumentTypeError, Message, Setting, plural, short
from ..model import Model
from ..model.checks import check_special_tokens
from ..options import check_choice, check_numbers, details, option, shell_options
from ..patterns import Split, split_given

if TYPE_CHECKING:
    from ..policies import Policy


class HasModel(Protocol):
    """A tokenizer."""

    @property
    def model(self) -> Model:
        """Its model."""


@dataclass(frozen=True, kw_only=True)
class Search:
    """How the pairs of a batch are found."""

    cap_divisor: int = option(2, "Search at most (remaining merges / cap divisor) pairs per batch.", least=1)
    max_batch_size: int = option(0, "Search at most this many pairs per batch; 0 means no limit.", least=0)
    policy: Policy | str = option(
        "continue_search",
        "How to choose the pairs of a batch: serial, naive, positional or continue_search.",
        choices=get_args(PolicyName),
    )

    def __post_init__(self) -> None:
        """Check the values."""
        from ..policies import resolve_policy  # imports numpy

        object.__setattr__(self, "policy", resolve_policy(self.policy))
        check_numbers(self)


@dataclass(frozen=True, kw_only=True)
class TrainingOptions(Search):
    """The training options. Invalid options raise an error here, before anything is counted."""

    vocab_size: int = field(metadata=details("Total number of tokens: bytes, stop words, merges and special tokens."))
    stop_list_size: int = option(0, "Number of stop words: frequent chunks that become single tokens.", least=0)
    freq_cutoff: int = option(1, "Ignore chunks that occur fewer times.", least=0)
    special_tokens: Sequence[str] | Mapping[str, int] = option(
        (),
        "A list of names, which get the last ids, or a mapping from name to id. Those of `base` need not be listed.",
        shell=False,
    )
    overlapping: bool = option(False, 'Count "aa" four times in "aaaaa", as QuickTokenizer does, instead of twice.')
    ties: Ties = option(
        "ids", "Order of pairs with equal counts: ids (smallest first) or huggingface.", choices=get_args(Ties)
    )
    base: Model | None = option(
        None, "Model or tokenizer to extend. All its tokens, including special tokens, keep their ids.", shell=False
    )

    def __post_init__(self) -> None:
        """Check everything that can be checked without the data."""
        check_special_tokens(self.special_tokens)
        check_integer("vocab_size", self.vocab_size)
        super().__post_init__()
        check_choice(self, "ties")
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
        from ..policies import policy_name

        values = {each.name: getattr(self, each.name) for each in shell_options(type(self))}
        plain = {name: int(value) if isinstance(value, Integral) else value for name, value in values.items()}
        base = {"base_vocab_size": self.base.vocab_size} if self.base else {}
        return plain | base | {"policy": policy_name(self.policy), "overlapping": bool(self.overlapping)}


def split_for(
    options: TrainingOptions, pattern: Split | str | None, normalization: Normalization | None = None
) -> Split | None:
    """Return the split to count with: the given one, or that of the base. They must agree.

    >>> print(split_for(TrainingOptions(vocab_size=300), "gpt2"))
    gpt2
    """
    if options.base is None:
        return split_given(pattern, normalization)
    split = Split.of(options.base.split if pattern is None else pattern, normalization)
    if split != options.base.split:
        reason = ("must be the pattern of ", Setting("base"), f", {options.base.split}")
        raise ArgumentError("pattern", str(split if isinstance(pattern, Split) or normalization else pattern), reason)
    return split

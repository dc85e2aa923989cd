"""The options of training. Invalid ones raise an error before anything is counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, cast, get_args

from .._core import MAX_ID, MAX_MERGES
from ..arguments import check_integer
from ..choices import Normalization, PolicyName, Ties
from ..errors import ArgumentError, Message, Setting, plural, short
from ..formats import load_any
from ..formats.roles import with_listed
from ..model import Model
from ..model.checks import check_special_tokens
from ..options import HelpGroup, check_choice, check_numbers, option, shell_options
from ..patterns import Split, split_given
from .like import completed, load_like, tokens_of

if TYPE_CHECKING:
    from ..policies import Policy


@dataclass(frozen=True, kw_only=True)
class Search:
    """How the pairs of a batch are found."""

    cap_divisor: int = option(
        2, "Search at most (remaining merges / cap divisor) pairs per batch.", least=1, group="Merging"
    )
    max_batch_size: int = option(
        0, "Search at most this many pairs per batch; 0 means no limit.", least=0, group="Merging"
    )
    policy: Policy | str = option(
        "continue_search",
        "How to choose the pairs of a batch: serial, naive, positional, continue_search or exact.",
        choices=get_args(PolicyName),
        group="Merging",
    )

    def __post_init__(self) -> None:
        """Check the values."""
        from ..policies import resolve_policy  # imports numpy

        object.__setattr__(self, "policy", resolve_policy(self.policy))
        check_numbers(self)


@dataclass(frozen=True, kw_only=True)
class TrainingOptions(Search):
    """The training options. Invalid options raise an error here, before anything is counted."""

    GROUP: ClassVar[HelpGroup] = "Vocabulary"

    vocab_size: int = option(
        cast("int", None),  # always a number once the options have been checked
        "Total number of tokens: bytes, stop words, merges, special and added tokens.",
    )
    add_tokens: int | None = option(
        None, "Number of tokens to add to the base, special tokens included, instead of a total.", least=1
    )
    stop_list_size: int = option(0, "Number of stop words: frequent chunks that become single tokens.", least=0)
    freq_cutoff: int = option(1, "Ignore chunks that occur fewer times.", least=0)
    special_tokens: Sequence[str] | Mapping[str, int] = option(
        (),
        "A list of names, which get the last ids, or a mapping from name to id, added to those of `base` or `like`.",
        shell=False,
    )
    overlapping: bool = option(
        False, 'Count "aa" four times in "aaaaa", as QuickTokenizer does, instead of twice.', group="Merging"
    )
    ties: Ties = option(
        "ids",
        "Order of pairs with equal counts: ids (smallest first) or huggingface.",
        choices=get_args(Ties),
        group="Merging",
    )
    base: Model | None = option(
        None,
        "Tokenizer to extend, or its path. All its tokens, including special tokens, keep their ids.",
        shell=False,
    )
    like: Model | None = option(
        None,
        "Tokenizer, or its path, from which a new vocabulary takes everything but merges and stop words: the split, "
        "special and added tokens, post-processor, roles and chat template.",
        shell=False,
    )

    def __post_init__(self) -> None:
        """Check everything that can be checked without the data."""
        check_special_tokens(self.special_tokens)
        super().__post_init__()
        check_choice(self, "ties")
        self._load_models()
        self._check_size()
        if self.base:
            self._check_base(self.base)
        self._check_smallest()
        if self.like:  # raises if something that it carries names a token that will not exist
            self.completed(Model(self.like.split, merges={}))

    def _load_models(self) -> None:
        if self.base is not None and self.like is not None:
            reason: Message = ("cannot be combined with ", Setting("base"))
            remedy: Message = (Setting("base"), " extends a vocabulary, ", Setting("like"), " trains a new one")
            raise ArgumentError("like", self.like, reason, remedy=remedy)
        if self.base is not None:
            object.__setattr__(self, "base", load_any("base", self.base))
        if self.like is not None:
            object.__setattr__(self, "like", load_like(self.like))
        for name in self.special_tokens:
            for parameter, model in self.given_models.items():
                if name in model.added_tokens:
                    reason = ("must not contain added tokens of ", Setting(parameter), f" such as {short(name)}")
                    raise ArgumentError("special_tokens", list(self.special_tokens), reason, remedy="leave it out")

    @property
    def given_models(self) -> dict[str, Model]:
        """The base or the model that the new one is like, by the name of the option."""
        models = {"base": self.base, "like": self.like}
        return {name: model for name, model in models.items() if model is not None}

    def _check_size(self) -> None:
        """Raise unless there is one valid size. Afterwards, it is `vocab_size`."""
        largest = min(MAX_ID, 256 + MAX_MERGES)
        if self.add_tokens is None:
            check_integer("vocab_size", self.vocab_size)
            if self.vocab_size > largest:
                raise ArgumentError("vocab_size", self.vocab_size, f"must be at most {largest}")
            return
        if self.vocab_size is not None:
            reason: Message = ("cannot be combined with ", Setting("vocab_size"))
            raise ArgumentError("add_tokens", self.add_tokens, reason, remedy="use one of them")
        if self.base is None:
            reason, remedy = ("needs ", Setting("base")), ("use ", Setting("vocab_size"), " for a new vocabulary")
            raise ArgumentError("add_tokens", self.add_tokens, reason, remedy=remedy)
        most, special = largest - self.base.vocab_size, len(self.new_tokens)
        if self.add_tokens > most:
            raise ArgumentError("add_tokens", self.add_tokens, f"must be at most {most}")
        if self.add_tokens < special:
            reason = f"must be at least {special} (the number of new special tokens)"
            raise ArgumentError("add_tokens", self.add_tokens, reason)
        object.__setattr__(self, "vocab_size", self.base.vocab_size + self.add_tokens)
        object.__setattr__(self, "add_tokens", None)

    def _check_base(self, base: Model) -> None:
        first = base.next_id
        new = self.vocab_size - base.vocab_size - len(self.new_tokens)
        for name, token in self.special_tokens.items() if isinstance(self.special_tokens, Mapping) else ():
            kept = base.special_tokens.get(name, token)
            if kept != token:
                reason: Message = (f"must not move {short(name)}, which has the id {kept} in ", Setting("base"))
                raise ArgumentError("special_tokens", {name: token}, reason)
            if name not in base.special_tokens and token in base.vocab_with_hidden:
                reason = ("must not have the ids of other tokens of ", Setting("base"))
                remedy = f"use an id of at least {first + max(new, 0)}, or a list of names"
                raise ArgumentError("special_tokens", {name: token}, reason, remedy=remedy)
            if first <= token < first + new:
                reason = f"must not have the ids {first} to {first + new - 1}, which new tokens need"
                raise ArgumentError("special_tokens", {name: token}, reason)
        if self.stop_list_size:
            reason = ("must be 0 with ", Setting("base"), ", since stop words come before merges")
            raise ArgumentError("stop_list_size", self.stop_list_size, reason)

    def _check_smallest(self) -> None:
        """Raise if the tokens that are known before counting do not fit."""
        others, base = len(self.new_tokens), self.base
        tokens = base.vocab_size if base else 256
        if self.vocab_size < tokens + others:
            known: Message = ("tokens of ", Setting("base")) if base else ("bytes",)
            parts = (f"{tokens} ", *known, f" + {plural(others, self.new_kind)}")
            reason: Message = (f"must be at least {tokens + others} (", *parts, ")")
            raise ArgumentError("vocab_size", self.vocab_size, reason)
        if base is None and isinstance(self.special_tokens, Mapping):
            first = self.vocab_size - others
            for name, token in self.special_tokens.items():
                if token < first:
                    reason = f"must have ids of at least {first} (bytes, stop words and merges have the lower ones)"
                    raise ArgumentError("special_tokens", {name: token}, reason)

    @property
    def new_tokens(self) -> list[str]:
        """The tokens that come after the merges: those that `like` has, then other special tokens.

        >>> TrainingOptions(vocab_size=300, special_tokens=["<s>"]).new_tokens
        ['<s>']
        """
        taken = tokens_of(self.like) if self.like else []
        known = {*taken, *(self.base.special_tokens if self.base else ())}
        return [*taken, *(name for name in self.special_tokens if name not in known)]

    @property
    def new_kind(self) -> str:
        """What `new_tokens` are called in an error."""
        if self.base:
            return "new special token"
        return "special or added token" if self.like and self.like.added_tokens else "special token"

    @property
    def found_tokens(self) -> list[str]:
        """The tokens that are removed from the text before it is split; see `Model.found_tokens`."""
        return [*(self.base.found_tokens if self.base else ()), *self.new_tokens]

    @property
    def all_special_tokens(self) -> list[str]:
        """The special tokens that the model will have."""
        added = {name for model in self.given_models.values() for name in model.added_tokens}
        return [name for name in self.found_tokens if name not in added]

    def completed(self, model: Model) -> Model:
        """Add `new_tokens`, and everything else from `like`, to a trained model.

        Tokens without an id get the next free one.

        >>> options = TrainingOptions(vocab_size=300, special_tokens=["<s>"])
        >>> dict(options.completed(Model(split=r"\\w+", merges={})).special_tokens)
        {'<s>': 256}
        """
        given = self.special_tokens if isinstance(self.special_tokens, Mapping) else {}
        used = {*given.values(), *model.hidden}
        free = (token for token in count(model.n_vocab) if token not in used)
        ids = {name: given[name] if name in given else next(free) for name in self.new_tokens}
        if self.like:
            model = completed(model, self.like, ids)
        else:
            model = replace(model, special_tokens={**model.special_tokens, **ids})
        return with_listed(model, [name for name in self.special_tokens if name in ids])

    def as_metadata(self) -> dict[str, Any]:
        """Return what a model file records about its training."""
        from ..policies import policy_name

        values = {
            each.name: getattr(self, each.name) for each in shell_options(type(self)) if each.name != "add_tokens"
        }
        plain = {name: int(value) if isinstance(value, Integral) else value for name, value in values.items()}
        base = {"base_vocab_size": self.base.vocab_size} if self.base else {}
        return plain | base | {"policy": policy_name(self.policy), "overlapping": bool(self.overlapping)}


def split_for(
    given_models: Mapping[str, Model], pattern: Split | str | None, normalization: Normalization | None = None
) -> Split | None:
    """Return the split to count with: the given one, or that of `base` or `like`. They must agree.

    >>> print(split_for(TrainingOptions(vocab_size=300).given_models, "gpt2"))
    gpt2
    """
    for name, model in given_models.items():
        if pattern is None and normalization not in (None, model.split.normalization):
            reason = ("must be that of ", Setting(name), f", {model.split.normalization}")
            raise ArgumentError("normalization", normalization, reason, remedy="leave it out")
        split = model.split if pattern is None else Split.of(pattern, normalization)
        if split != model.split:
            shown = str(split if isinstance(pattern, Split) or normalization else pattern)
            reason = ("must be the pattern of ", Setting(name), f", {model.split}")
            raise ArgumentError("pattern", shown, reason, remedy="leave it out")
        return split
    return split_given(pattern, normalization)

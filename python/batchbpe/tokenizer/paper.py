"""`BatchTokenizer` and `QuickTokenizer`: the paper's classes, with its names and parameters.

They wrap an immutable `Tokenizer`, which `train`, `load` and `register_special_tokens` replace in one step. They
delegate to it everything that does not differ in the paper's program.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from ..arguments import check_bool, check_function, check_integer, check_path
from ..counts import ChunkCounts, check_suffix
from ..data import corpus
from ..errors import ArgumentTypeError
from ..model import Model
from ..model.checks import check_special_tokens
from ..patterns import Split
from ..training.loop import Batch
from . import Tokenizer
from .special import AllowedSpecial, DisallowedSpecial

if TYPE_CHECKING:
    from .codec import Codec as _Delegated  # type checkers see the delegated names as inherited
else:
    _Delegated = object

P = ParamSpec("P")
R = TypeVar("R")
Self = TypeVar("Self", bound="BatchTokenizer")

_SET_ELSEWHERE = {
    "pattern": "pass pattern to the constructor",
    "stop_list_size": "pass stop_list_size to the constructor",
    "freq_cutoff": "pass freq_cutoff to the constructor",
    "threads": "pass multiprocess to the constructor",
    "special_tokens": "call register_special_tokens first",
    "overlapping": "use QuickTokenizer",
}
"""Parameters of `Tokenizer.train` that `BatchTokenizer.train` does not have, and what to do instead."""


def _delegated(method: Callable[Concatenate[Tokenizer, P], R]) -> Callable[Concatenate[BatchTokenizer, P], R]:
    @wraps(method)
    def call(self: BatchTokenizer, /, *args: P.args, **options: P.kwargs) -> R:
        return method(self.tokenizer, *args, **options)

    return call


def _delegated_with_default(
    method: Callable[Concatenate[Tokenizer, P], R],
) -> Callable[Concatenate[BatchTokenizer, P], R]:
    """Delegate a method that encodes. By default, a collection of allowed special tokens disallows no others."""
    encode: Any = method

    @wraps(method)
    def call(
        self: BatchTokenizer,
        text: Any,
        allowed_special: AllowedSpecial = "none_raise",
        disallowed_special: DisallowedSpecial | None = None,
        **options: Any,
    ) -> Any:
        if disallowed_special is None and not isinstance(allowed_special, str):
            disallowed_special = ()
        return encode(self.tokenizer, text, allowed_special, disallowed_special, **options)

    return call  # type: ignore[return-value]


class BatchTokenizer(_Delegated):
    """The paper's tokenizer: created first, then trained.

    It delegates to a `Tokenizer`, its attribute `tokenizer`, and has all its methods and properties.

    >>> tokenizer = BatchTokenizer()
    >>> tokenizer.train("aaabdaaabac", 259)
    259
    >>> tokenizer.encode("aaabdaaabac")
    [258, 100, 258, 97, 99]
    >>> tokenizer.token_to_id("aaab")
    258

    If `allowed_special` is a collection, other special tokens are encoded as ordinary text, as in the paper's program;
    in `Tokenizer`, they raise an error.

    >>> tokenizer.register_special_tokens({"<a>": 259, "<b>": 260})
    >>> tokenizer.encode("<a><b>", allowed_special={"<a>"})
    [259, 60, 98, 62]
    """

    tokenizer: Tokenizer
    """The tokenizer in use. It is immutable; `train`, `load` and `register_special_tokens` replace it."""
    _overlapping = False

    def __init__(
        self,
        pattern: Split | str | None = None,
        multiprocess: bool = True,
        store_dict: bool | str | os.PathLike[str] = False,
        stop_list_size: int = 0,
        freq_cutoff: int = 1,
    ) -> None:
        """Create an untrained tokenizer, which encodes text to bytes.

        Parameters
        ----------
        pattern: name or regular expression; by default the pattern of the counts in the data, or gpt4.
        multiprocess: whether to use several threads.
        store_dict: file for the chunk counts that `train` makes, .csv or .parquet. True saves a csv file in the current
            folder, with the time in its name, as the paper's program does.
        stop_list_size: number of stop words: the most frequent chunks get whole-chunk tokens.
        freq_cutoff: ignore chunks that occur fewer times.

        """
        self.tokenizer = Tokenizer(Model(Split.of("gpt4" if pattern is None else pattern), merges={}))
        check_bool("multiprocess", multiprocess)
        if not isinstance(store_dict, bool):
            check_suffix("store_dict", store_dict)
        check_integer("stop_list_size", stop_list_size, least=0)
        check_integer("freq_cutoff", freq_cutoff, least=0)
        self._pattern: Split | str | None = pattern
        self.multiprocess = multiprocess
        self.store_dict = store_dict
        self.stop_list_size = stop_list_size
        self.freq_cutoff = freq_cutoff

    @classmethod
    def from_file(cls: type[Self], path: str | os.PathLike[str]) -> Self:
        """Load a tokenizer from a file in any supported format; see `Tokenizer.from_file`.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Tokenizer.train("aaabdaaabac", 259).save(f"{folder}/mine")
        ...     BatchTokenizer.from_file(f"{folder}/mine.model")
        BatchTokenizer(n_vocab=259)
        """
        return cls()._hold(Tokenizer.from_file(path))

    @classmethod
    def from_tiktoken(
        cls: type[Self],
        path: str | os.PathLike[str],
        pattern: str | None = None,
        special_tokens: Mapping[str, int] | None = None,
    ) -> Self:
        """Load a tokenizer from a .tiktoken rank file or a `tiktoken.Encoding`; see `Tokenizer.from_tiktoken`."""
        return cls()._hold(Tokenizer.from_tiktoken(path, pattern, special_tokens))

    @classmethod
    def from_huggingface(cls: type[Self], source: Any) -> Self:
        """Load a Hugging Face tokenizer; see `Tokenizer.from_huggingface`."""
        return cls()._hold(Tokenizer.from_huggingface(source))

    def _hold(self: Self, tokenizer: Tokenizer) -> Self:
        self._pattern, self.tokenizer = tokenizer.model.split, tokenizer
        return self

    def train(
        self,
        data: corpus.Data | None = None,
        vocab_size: int | None = None,
        cap_divisor: int = 2,
        max_batch_size: int = 0,
        verbose: bool = False,
        **options: Any,
    ) -> int:
        """Train a vocabulary of `vocab_size` tokens, registered special tokens included, and return its size.

        The size is smaller than requested if no pairs are left to merge. If training fails or is interrupted, the
        tokenizer does not change. `verbose` writes a line per batch to stderr. `options` are the other parameters of
        `Tokenizer.train`, without those that the constructor or `register_special_tokens` sets.
        """
        for name in options.keys() & _SET_ELSEWHERE.keys():
            raise TypeError(f"train() got an unexpected keyword argument {name!r}; {_SET_ELSEWHERE[name]}")
        on_counts, on_batch = options.pop("on_counts", None), options.pop("on_batch", None)
        check_function("on_counts", on_counts)
        check_function("on_batch", on_batch)

        def after_counting(counts: ChunkCounts) -> None:
            if self.store_dict:
                name = time.strftime("%Y-%m-%d-%H_%M-dataset-dict.csv") if self.store_dict is True else self.store_dict
                counts.save(name)
            if on_counts:
                on_counts(counts)

        def after_batch(batch: Batch) -> None:
            if verbose:
                sys.stderr.write(
                    f"batch {batch.number}: merged {batch.size} of {batch.searched} pairs searched, "
                    f"{batch.merges_wanted - batch.merges_done} merges remaining, {batch.seconds:.2f} s\n"
                )
            if on_batch:
                on_batch(batch)

        self.tokenizer = Tokenizer.train(
            data,
            vocab_size,
            pattern=self._pattern,
            stop_list_size=self.stop_list_size,
            freq_cutoff=self.freq_cutoff,
            special_tokens=self.special_tokens,
            cap_divisor=cap_divisor,
            max_batch_size=max_batch_size,
            overlapping=self._overlapping,
            on_counts=after_counting,
            on_batch=after_batch,
            threads=None if self.multiprocess else 1,
            **options,
        )
        return len(self.tokenizer)

    def register_special_tokens(self, special_tokens: Mapping[str, int]) -> None:
        """Replace the special tokens. `special_tokens` maps names to ids.

        >>> tokenizer = BatchTokenizer()
        >>> tokenizer.register_special_tokens({"<|endoftext|>": 256})
        >>> tokenizer.encode("a<|endoftext|>", allowed_special="all")
        [97, 256]
        """
        if not isinstance(special_tokens, Mapping):
            raise ArgumentTypeError("special_tokens", special_tokens, "must be a mapping from strings to ids")
        check_special_tokens(special_tokens)
        self.tokenizer = Tokenizer(replace(self.model, special_tokens=special_tokens), self.tokenizer._name)

    def load(self, model_file: str | os.PathLike[str]) -> None:
        """Replace the tokenizer with one from a file in any supported format; see `Tokenizer.from_file`.

        >>> import tempfile
        >>> tokenizer = BatchTokenizer()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Tokenizer.train("aaabdaaabac", 259).save(f"{folder}/mine")
        ...     tokenizer.load(f"{folder}/mine.model")
        >>> tokenizer.encode("aaab")
        [258]
        """
        check_path("model_file", model_file)
        self._hold(Tokenizer.from_file(model_file))

    encode = _delegated_with_default(Tokenizer.encode)
    encode_to_numpy = _delegated_with_default(Tokenizer.encode_to_numpy)
    encode_batch = _delegated_with_default(Tokenizer.encode_batch)
    encode_batch_to_numpy = _delegated_with_default(Tokenizer.encode_batch_to_numpy)

    save = _delegated(Tokenizer.save)
    export = _delegated(Tokenizer.export)
    to_tiktoken = _delegated(Tokenizer.to_tiktoken)
    view = _delegated(Tokenizer.view)
    compare = _delegated(Tokenizer.compare)
    show = _delegated(Tokenizer.show)
    _repr_html_ = _delegated(Tokenizer._repr_html_)

    def __len__(self) -> int:
        """Return the number of tokens."""
        return len(self.tokenizer)

    def __repr__(self) -> str:
        """Show the size of the vocabulary."""
        return f"{type(self).__name__}(n_vocab={self.n_vocab})"


for _name in set(dir(Tokenizer)) - set(dir(BatchTokenizer)):
    if not _name.startswith("_"):
        _member = getattr(Tokenizer, _name)
        _property = property(attrgetter(f"tokenizer.{_name}"), doc=_member.__doc__)
        setattr(BatchTokenizer, _name, _delegated(_member) if callable(_member) else _property)


class QuickTokenizer(BatchTokenizer):
    """A BatchTokenizer that counts overlapping pairs in a run of one token: "aaaaa" has four "aa" instead of two.

    >>> tokenizer = QuickTokenizer()
    >>> tokenizer.train("aaaaa abab", 257)
    257
    >>> tokenizer.vocab[256]
    b'aa'
    """

    _overlapping = True

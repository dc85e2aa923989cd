"""`Tokenizer`: a vocabulary at work. It encodes and decodes, and never changes."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from . import policies, training
from .compat import KnownNames
from .counts import ChunkCounts
from .data import corpus
from .errors import short
from .formats import Format, load_file, native, save_file
from .loaded import Loaded
from .model import MergeTree, Model, UnknownTokenError
from .patterns import pattern_of
from .storage.atomic import replacing_all, writing
from .surrogates import surrogate_error
from .training import Batch

if TYPE_CHECKING:
    import tiktoken

    from .analysis.view import Encoding

AllowedSpecial = Literal["none_raise", "all", "none"] | Collection[str]
DisallowedSpecial = Literal["all"] | Collection[str]
Ids = npt.NDArray[np.uint32]
Special = tuple[list[str], list[str]] | None
"""The special tokens that are tokens, and those that are a mistake; None if all are."""
T = TypeVar("T")


class Tokenizer(KnownNames):
    """A vocabulary at work. It never changes, so threads and processes may share one.

    >>> tokenizer = Tokenizer.train("aaabdaaabac", 259)
    >>> tokenizer.encode("aaabdaaabac")
    [258, 100, 258, 97, 99]
    >>> tokenizer.decode([258, 100])
    'aaabd'
    """

    def __init__(self, model: Model, name: str | None = None) -> None:
        """Make a tokenizer of a model; see also `train` and `from_file`."""
        self._loaded = Loaded(model)
        self._name = name

    @classmethod
    def train(
        cls,
        data: corpus.Data,
        vocab_size: int,
        *,
        pattern: str | None = None,
        stop_list_size: int = 0,
        freq_cutoff: int = 1,
        special_tokens: Sequence[str] | Mapping[str, int] = (),
        cap_divisor: int = 2,
        max_batch_size: int = 0,
        policy: policies.Policy = policies.continue_search,
        overlapping: bool = False,
        base: Tokenizer | None = None,
        text_column: str = "text",
        errors: Literal["strict", "replace"] = "strict",
        progress: Callable[[int], object] | None = None,
        on_batch: Callable[[Batch], object] | None = None,
        threads: int | None = None,
    ) -> Tokenizer:
        """Count a corpus (see `ChunkCounts.count`) and train on the counts (see `training.Options`).

        With a `base` its merges stay, and new ones follow. Its special tokens keep their ids, unless `special_tokens`
        names them, and more: then they get the last ids (a list) or those it says (a dict).

        >>> base = Tokenizer.train("aaabdaaabac", 257)
        >>> dict(Tokenizer.train("aaabdaaabac", 259, base=base).merges)
        {(97, 97): 256, (97, 98): 257, (256, 257): 258}
        """
        options = training.Options(
            vocab_size=vocab_size,
            stop_list_size=stop_list_size,
            freq_cutoff=freq_cutoff,
            special_tokens=special_tokens,
            cap_divisor=cap_divisor,
            max_batch_size=max_batch_size,
            policy=policy,
            overlapping=overlapping,
            base=base.model if isinstance(base, Tokenizer) else base,
        )
        # Nobody else holds the counts, so that training can let them go.
        model = training.train_on(
            ChunkCounts.count(
                data,
                base.pattern if base and pattern is None else pattern,
                special_tokens=list(options.all_special_tokens),
                text_column=text_column,
                errors=errors,
                progress=progress,
                threads=threads,
            ),
            options,
            on_batch=on_batch,
            threads=threads,
        )
        return Tokenizer(model)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Tokenizer:
        """Load a tokenizer from a file of any of the formats; which it is shows from its content."""
        return _named(load_file(path), path)

    @classmethod
    def from_tiktoken(
        cls, path: str | os.PathLike[str], pattern: str | None = None, special_tokens: Mapping[str, int] | None = None
    ) -> Tokenizer:
        """Load a .tiktoken file of ranks, or the ranks of a `tiktoken.Encoding`.

        The pattern and special tokens of OpenAI's files are known by their names; for others, give the pattern.
        """
        from .formats.tiktoken import load

        return _named(load(path, pattern and pattern_of(pattern), special_tokens), path)

    @classmethod
    def from_huggingface(cls, source: Any) -> Tokenizer:
        """Load a tokenizer.json or a folder that has one, or take an object of `tokenizers` or `transformers`."""
        from .formats import huggingface

        return _named(huggingface.load(source), source)

    def save(self, prefix: str | os.PathLike[str]) -> None:
        """Write `prefix`.model, which `from_file` loads, and `prefix`.vocab, which is there to be read."""
        if not os.fspath(prefix):
            raise ValueError("the path is empty: give the name of a file")
        path = Path(prefix)
        path = path if path.suffix == ".model" else path.with_name(path.name + ".model")
        readable = path.with_suffix(".vocab")
        with replacing_all([readable, path]) as (vocab, model):  # where the last is, both are
            with writing(readable):
                native.write_vocab(self.model, vocab)
            with writing(path):
                native.write(self.model, model)

    def export(self, path: str | os.PathLike[str], format: Format, *, allow_inexact: bool = False) -> None:
        """Write a file for another tool, or a folder for transformers.

        An export that would change an encoding is an error, unless `allow_inexact` accepts that.
        """
        save_file(self.model, path, format, allow_inexact=allow_inexact)

    def to_tiktoken(self) -> tiktoken.Encoding:
        """Give the same tokenizer as one of tiktoken, if that can be."""
        import tiktoken

        from .formats.dialects import check_not_empty
        from .formats.tiktoken import ranks_of

        check_not_empty(self.pattern, "tiktoken")
        special_tokens = dict(self.special_tokens)
        for first, next_ in pairwise(sorted(special_tokens)):
            if next_.startswith(first):
                raise ValueError(
                    f"the special token {short(next_)} begins with {short(first)}, "
                    "and tiktoken may take either: rename one"
                )
        ranks = ranks_of(self.model, remedy="export it as another format, which keeps them")
        return tiktoken.Encoding(self.name, pat_str=self.pattern, mergeable_ranks=ranks, special_tokens=special_tokens)

    def merge_tree(self, token: int) -> MergeTree:
        """Show how a token is built.

        >>> print(Tokenizer.train("aaabdaaabac", 259).merge_tree(258))
        258 'aaab'
        ├─ 256 'aa'
        │  ├─ 97 'a'
        │  └─ 97 'a'
        └─ 257 'ab'
           ├─ 97 'a'
           └─ 98 'b'
        """
        return self.model.merge_tree(token)

    @property
    def model(self) -> Model:
        """All that this tokenizer is."""
        return self._loaded.model

    @property
    def pattern(self) -> str:
        """The regular expression that cuts text into chunks."""
        return self.model.pattern

    @property
    def n_vocab(self) -> int:
        """One more than the largest id: the number of tokens, unless special tokens have ids far away."""
        return self.model.n_vocab

    @property
    def vocab(self) -> Mapping[int, bytes]:
        """The bytes of every token, by id."""
        return MappingProxyType(self.model.vocab)

    @property
    def merges(self) -> Mapping[tuple[int, int], int]:
        """The pairs that were merged, in order, and the tokens they became."""
        return MappingProxyType(self.model.merges)

    @property
    def special_tokens(self) -> Mapping[str, int]:
        """The special tokens and their ids."""
        return MappingProxyType(self.model.special_tokens)

    @property
    def stop_words(self) -> Mapping[str, int]:
        """The stop words and their ids."""
        return {word.decode("utf-8", "surrogateescape"): token for word, token in self.model.stop_words.items()}

    def encode(
        self,
        text: str,
        allowed_special: AllowedSpecial = "none_raise",
        disallowed_special: DisallowedSpecial | None = None,
        *,
        threads: int | None = None,
    ) -> list[int]:
        """Encode a text.

        Special tokens in it are encoded as such if `allowed_special` is "all" or names them. `disallowed_special` are
        those that are an error: by default all others, or none if `allowed_special` is "none". What is neither is plain
        text. They are matched longest first.

        >>> tokenizer = Tokenizer.train("aaabdaaabac", 260, special_tokens=["<eot>"])
        >>> tokenizer.encode("ab<eot>", allowed_special="all")
        [257, 259]
        """
        special = self._special(allowed_special, disallowed_special)
        try:  # as `_mended` does, which would take a third of the time of a short text
            return self._loaded.encoder.encode(text, special, threads)
        except UnicodeEncodeError as error:
            raise surrogate_error(error) from None

    def encode_ordinary(self, text: str, *, threads: int | None = None) -> list[int]:
        """Encode a text in which special tokens mean nothing special."""
        return _mended(self._loaded.encoder.encode, text, ([], []), threads)

    def encode_to_numpy(
        self,
        text: str,
        allowed_special: AllowedSpecial = "none_raise",
        disallowed_special: DisallowedSpecial | None = None,
        *,
        threads: int | None = None,
    ) -> Ids:
        """Encode a text into an array of uint32, without making a Python integer."""
        special = self._special(allowed_special, disallowed_special)
        return _mended(self._loaded.encoder.encode_to_numpy, text, special, threads)

    def encode_batch(
        self,
        text: Iterable[str],
        allowed_special: AllowedSpecial = "none_raise",
        disallowed_special: DisallowedSpecial | None = None,
        *,
        threads: int | None = None,
        num_threads: int | None = None,
    ) -> list[list[int]]:
        """Encode many texts in parallel. (`num_threads` is tiktoken's word for `threads`.)"""
        special = self._special(allowed_special, disallowed_special)
        threads = num_threads if threads is None else threads
        return _mended(self._loaded.encoder.encode_batch, _list(text), special, threads)

    def encode_ordinary_batch(
        self, text: Iterable[str], *, threads: int | None = None, num_threads: int | None = None
    ) -> list[list[int]]:
        """Encode many texts in which special tokens mean nothing special."""
        return self.encode_batch(text, "none", threads=threads, num_threads=num_threads)

    def encode_batch_to_numpy(
        self,
        text: Iterable[str],
        allowed_special: AllowedSpecial = "none_raise",
        disallowed_special: DisallowedSpecial | None = None,
        *,
        threads: int | None = None,
    ) -> tuple[Ids, npt.NDArray[np.int64]]:
        """Encode many texts in parallel into one array, and give the places in it where those of each text begin.

        >>> ids, offsets = Tokenizer.train("aaabdaaabac", 259).encode_batch_to_numpy(["aaab", "", "ac"])
        >>> ids.tolist(), offsets.tolist()
        ([258, 97, 99], [0, 1, 1, 3])
        """
        special = self._special(allowed_special, disallowed_special)
        return _mended(self._loaded.encoder.encode_batch_to_numpy, _list(text), special, threads)

    _not_allowed: Literal["all"] | tuple[()] = "all"
    """What `disallowed_special` is where `allowed_special` names tokens: tiktoken and the paper differ."""

    def _special(self, allowed: AllowedSpecial, disallowed: DisallowedSpecial | None) -> Special:
        """Resolve the words of tiktoken and of the paper: which special tokens are tokens, which are a mistake."""
        if allowed == "none_raise" and disallowed is None:
            return None
        special = self.model.special_tokens
        others: DisallowedSpecial
        if isinstance(allowed, str):
            if allowed not in ("none_raise", "all", "none"):
                raise ValueError(
                    f"allowed_special={short(allowed)}: "
                    'give "all", "none", "none_raise", or a set or list of special tokens'
                )
            others = "all" if allowed == "none_raise" else ()
            allowed = special if allowed == "all" else ()
        else:
            others = self._not_allowed
        disallowed = others if disallowed is None else disallowed
        if isinstance(disallowed, str) and disallowed != "all":
            raise ValueError(f'disallowed_special={short(disallowed)}: give "all", or a set or list of special tokens')
        for name, tokens in (("allowed_special", allowed), ("disallowed_special", disallowed)):
            if not isinstance(tokens, Collection) or not all(isinstance(token, str) for token in tokens):
                raise ValueError(f"{name}={short(tokens)}: give a set or list of special tokens")
        forbidden = special.keys() - set(allowed) if disallowed == "all" else set(disallowed)
        return sorted(special.keys() & set(allowed)), sorted(forbidden - {""})

    def view(self, text: str) -> Encoding:
        """Encode a text to be looked at: a notebook shows it in coloured tokens. Special tokens are plain text."""
        from .analysis.view import Encoding

        return Encoding(self, self.encode(text, "none"))

    def show(self, text: str) -> None:
        """Print a text in coloured tokens, or with | between them where there are no colours.

        >>> Tokenizer.train("aaabdaaabac", 259).show("aaabd")
        aaab|d
        """
        self.view(text).show()

    def decode(self, tokens: Iterable[int] | npt.NDArray[Any], errors: str = "replace") -> str:
        """Decode ids; where their bytes are no UTF-8, do what `errors` says, as in `bytes.decode`."""
        return self.decode_bytes(tokens).decode("utf-8", errors)

    def decode_bytes(self, tokens: Iterable[int] | npt.NDArray[Any]) -> bytes:
        """Give the bytes of ids, one after the other."""
        encoder = self._loaded.encoder
        try:
            if isinstance(tokens, np.ndarray):
                if tokens.dtype == np.uint32 and tokens.ndim == 1 and tokens.flags.c_contiguous:
                    return encoder.decode_numpy(tokens)
                tokens = tokens.tolist()
            tokens = tokens if isinstance(tokens, list) else list(tokens)
            return encoder.decode(tokens)
        except (OverflowError, ValueError):
            unknown = [token for token in tokens if token not in self.vocab]
            if not unknown:
                raise
            raise UnknownTokenError(int(unknown[0]), self.max_token_value) from None

    def decode_batch(
        self, batch: Iterable[Iterable[int]], errors: str = "replace", *, num_threads: int | None = None
    ) -> list[str]:
        """Decode many lists of ids. (`num_threads` is for users of tiktoken, and makes no difference.)"""
        return [self.decode(ids, errors) for ids in batch]

    def decode_bytes_batch(self, batch: Iterable[Iterable[int]], *, num_threads: int | None = None) -> list[bytes]:
        """Give the bytes of many lists of ids."""
        return [self.decode_bytes(ids) for ids in batch]

    def __repr__(self) -> str:
        """Say what it is."""
        return f"{type(self).__name__}(n_vocab={self.n_vocab})"


def _named(model: Model, source: Any) -> Tokenizer:
    """Make a tokenizer of what was loaded from a path, or taken from an object."""
    if not isinstance(source, str | os.PathLike):
        return Tokenizer(model, name=getattr(source, "name", None))
    try:
        return Tokenizer(model, name=Path(source).stem)
    except ValueError as error:
        raise ValueError(f"{os.fspath(source)}: {error}") from None


def _list(texts: Iterable[str]) -> list[str]:
    if isinstance(texts, str):
        raise TypeError(f"a list of texts is needed, not one: encode({short(texts[:20])}) encodes one")
    return texts if isinstance(texts, list) else list(texts)


def _mended(encode: Callable[[Any, Special, int | None], T], text: Any, special: Special, threads: int | None) -> T:
    """Call the core, and say of a lone surrogate what to do about it."""
    try:
        return encode(text, special, threads)
    except UnicodeEncodeError as error:
        raise surrogate_error(error) from None

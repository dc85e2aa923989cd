"""`BatchTokenizer` and `QuickTokenizer`: the paper's classes, with its names and parameters.

They hold an immutable `Tokenizer`, which `train`, `load` and `register_special_tokens` replace in one step.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ..arguments import check_bool, check_function, check_integer, check_path
from ..counts import ChunkCounts, check_suffix
from ..data import corpus
from ..data.options import MAX_DOCUMENT_BYTES
from ..errors import ArgumentTypeError
from ..formats import Format
from ..model import Model, check_special_tokens
from ..model.tree import MergeTree
from ..patterns import resolve_pattern
from ..policies import Policy
from ..training.loop import Batch
from ..util.surrogates import Errors
from . import Tokenizer
from .codec import Ids
from .special import AllowedSpecial, DisallowedSpecial

Self = TypeVar("Self", bound="BatchTokenizer")


class BatchTokenizer:
    """The paper's tokenizer: created first, then trained.

    It holds a `Tokenizer`, its attribute `tokenizer`. The most important methods of `Tokenizer` are defined here too;
    all others, such as `token_to_id`, are delegated to it. If `allowed_special` is a collection, other special tokens
    are encoded as ordinary text, as in the paper's program; in `Tokenizer`, they raise an error.

    >>> tokenizer = BatchTokenizer()
    >>> tokenizer.train("aaabdaaabac", 259)
    259
    >>> tokenizer.encode("aaabdaaabac")
    [258, 100, 258, 97, 99]
    >>> tokenizer.token_to_id("aaab")
    258
    """

    tokenizer: Tokenizer
    """The tokenizer in use. It is immutable; `train`, `load` and `register_special_tokens` replace it."""
    _overlapping = False

    def __init__(
        self,
        pattern: str | None = None,
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
        self.tokenizer = Tokenizer(Model(pattern=resolve_pattern("gpt4" if pattern is None else pattern), merges={}))
        check_bool("multiprocess", multiprocess)
        if not isinstance(store_dict, bool):
            check_suffix("store_dict", store_dict)
        check_integer("stop_list_size", stop_list_size, least=0)
        check_integer("freq_cutoff", freq_cutoff, least=0)
        self._pattern = pattern
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
        return cls._holding(Tokenizer.from_file(path))

    @classmethod
    def from_tiktoken(
        cls: type[Self],
        path: str | os.PathLike[str],
        pattern: str | None = None,
        special_tokens: Mapping[str, int] | None = None,
    ) -> Self:
        """Load a tokenizer from a .tiktoken rank file or a `tiktoken.Encoding`; see `Tokenizer.from_tiktoken`."""
        return cls._holding(Tokenizer.from_tiktoken(path, pattern, special_tokens))

    @classmethod
    def from_huggingface(cls: type[Self], source: Any) -> Self:
        """Load a Hugging Face tokenizer; see `Tokenizer.from_huggingface`."""
        return cls._holding(Tokenizer.from_huggingface(source))

    @classmethod
    def _holding(cls: type[Self], tokenizer: Tokenizer) -> Self:
        created = cls()
        created._pattern, created.tokenizer = tokenizer.pattern, tokenizer
        return created

    def train(
        self,
        data: corpus.Data | None = None,
        vocab_size: int | None = None,
        cap_divisor: int = 2,
        max_batch_size: int = 0,
        verbose: bool = False,
        *,
        texts: str | Iterable[str] | None = None,
        files: corpus.PathLike | Iterable[corpus.PathLike] | None = None,
        policy: Policy | str = "continue_search",
        base: Tokenizer | BatchTokenizer | Model | None = None,
        text_column: str = "text",
        errors: Errors = "strict",
        max_document_bytes: int = MAX_DOCUMENT_BYTES,
        progress: Callable[[int], object] | bool | None = None,
        on_batch: Callable[[Batch], object] | None = None,
    ) -> int:
        """Train a vocabulary of `vocab_size` tokens, registered special tokens included, and return its size.

        The size is smaller than requested if no pairs are left to merge. If training fails or is interrupted, the
        tokenizer does not change. `verbose` writes a line per batch to stderr; the other parameters are those of
        `Tokenizer.train`.
        """
        check_function("on_batch", on_batch)

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
            texts=texts,
            files=files,
            pattern=self._pattern,
            stop_list_size=self.stop_list_size,
            freq_cutoff=self.freq_cutoff,
            special_tokens=self.special_tokens,
            cap_divisor=cap_divisor,
            max_batch_size=max_batch_size,
            policy=policy,
            overlapping=self._overlapping,
            base=base.tokenizer if isinstance(base, BatchTokenizer) else base,
            text_column=text_column,
            errors=errors,
            max_document_bytes=max_document_bytes,
            progress=progress,
            on_counts=self._store,
            on_batch=after_batch,
            threads=None if self.multiprocess else 1,
        )
        return len(self.tokenizer)

    def _store(self, counts: ChunkCounts) -> None:
        if self.store_dict:
            name = time.strftime("%Y-%m-%d-%H_%M-dataset-dict.csv") if self.store_dict is True else self.store_dict
            counts.save(name)

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
        tokenizer = Tokenizer.from_file(model_file)
        self._pattern, self.tokenizer = tokenizer.pattern, tokenizer

    def save(self, prefix: str | os.PathLike[str]) -> None:
        """Write `prefix`.model, which `load` reads, and `prefix`.vocab, a human-readable list of the tokens."""
        self.tokenizer.save(prefix)

    def export(self, path: str | os.PathLike[str], format: Format, *, allow_inexact: bool = False) -> None:
        """Write a file for another tool; see `Tokenizer.export`."""
        self.tokenizer.export(path, format, allow_inexact=allow_inexact)

    def encode(
        self,
        text: str,
        allowed_special: AllowedSpecial = "none_raise",
        disallowed_special: DisallowedSpecial | None = None,
        *,
        errors: Errors = "strict",
        threads: int | None = None,
    ) -> list[int]:
        """Encode a text to a list of ids.

        The parameters are those of `Tokenizer.encode`, but if `allowed_special` is a collection, other special tokens
        are encoded as ordinary text unless `disallowed_special` says otherwise.

        >>> tokenizer = BatchTokenizer()
        >>> tokenizer.register_special_tokens({"<a>": 256, "<b>": 257})
        >>> tokenizer.encode("<a><b>", allowed_special={"<a>"})
        [256, 60, 98, 62]
        """
        disallowed = _paper_default(allowed_special, disallowed_special)
        return self.tokenizer.encode(text, allowed_special, disallowed, errors=errors, threads=threads)

    def encode_ordinary(self, text: str, *, errors: Errors = "strict", threads: int | None = None) -> list[int]:
        """Encode a text in which special tokens are ordinary text."""
        return self.tokenizer.encode_ordinary(text, errors=errors, threads=threads)

    def encode_to_numpy(
        self,
        text: str,
        allowed_special: AllowedSpecial = "none_raise",
        disallowed_special: DisallowedSpecial | None = None,
        *,
        errors: Errors = "strict",
        threads: int | None = None,
    ) -> Ids:
        """Encode a text to a uint32 array. The parameters are those of `encode`."""
        disallowed = _paper_default(allowed_special, disallowed_special)
        return self.tokenizer.encode_to_numpy(text, allowed_special, disallowed, errors=errors, threads=threads)

    def encode_batch(
        self,
        text: Iterable[str],
        allowed_special: AllowedSpecial = "none_raise",
        disallowed_special: DisallowedSpecial | None = None,
        *,
        errors: Errors = "strict",
        threads: int | None = None,
        num_threads: int | None = None,
    ) -> list[list[int]]:
        """Encode several texts in parallel. The parameters are those of `encode`."""
        disallowed = _paper_default(allowed_special, disallowed_special)
        return self.tokenizer.encode_batch(
            text, allowed_special, disallowed, errors=errors, threads=threads, num_threads=num_threads
        )

    def encode_batch_to_numpy(
        self,
        text: Iterable[str],
        allowed_special: AllowedSpecial = "none_raise",
        disallowed_special: DisallowedSpecial | None = None,
        *,
        errors: Errors = "strict",
        threads: int | None = None,
    ) -> tuple[Ids, npt.NDArray[np.int64]]:
        """Encode several texts to one array of ids and the offset of each text. See `Tokenizer`."""
        disallowed = _paper_default(allowed_special, disallowed_special)
        return self.tokenizer.encode_batch_to_numpy(text, allowed_special, disallowed, errors=errors, threads=threads)

    def decode(
        self,
        tokens: Iterable[int] | npt.NDArray[Any],
        errors: str = "replace",
        *,
        skip_special_tokens: bool = False,
    ) -> str:
        """Decode ids to text; see `Tokenizer.decode`."""
        return self.tokenizer.decode(tokens, errors, skip_special_tokens=skip_special_tokens)

    def decode_bytes(self, tokens: Iterable[int] | npt.NDArray[Any], *, skip_special_tokens: bool = False) -> bytes:
        """Decode ids to bytes; see `Tokenizer.decode_bytes`."""
        return self.tokenizer.decode_bytes(tokens, skip_special_tokens=skip_special_tokens)

    def merge_tree(self, token: int) -> MergeTree:
        """Return the tree of merges that builds a token."""
        return self.tokenizer.merge_tree(token)

    @property
    def model(self) -> Model:
        """The model: pattern, merges, stop words and special tokens."""
        return self.tokenizer.model

    @property
    def pattern(self) -> str:
        """The regular expression that splits text into chunks."""
        return self.tokenizer.pattern

    @property
    def vocab(self) -> Mapping[int, bytes]:
        """The bytes of every token by id (read-only)."""
        return self.tokenizer.vocab

    @property
    def merges(self) -> Mapping[tuple[int, int], int]:
        """The merged pairs in the order they were made, and the ids they became (read-only)."""
        return self.tokenizer.merges

    @property
    def special_tokens(self) -> Mapping[str, int]:
        """The special tokens and their ids (read-only)."""
        return self.tokenizer.special_tokens

    @property
    def stop_words(self) -> Mapping[str, int]:
        """The stop words and their ids."""
        return self.tokenizer.stop_words

    @property
    def vocab_size(self) -> int:
        """The number of tokens."""
        return self.tokenizer.vocab_size

    @property
    def n_vocab(self) -> int:
        """The largest id plus one; see `Tokenizer.n_vocab`."""
        return self.tokenizer.n_vocab

    def __getattr__(self, name: str) -> Any:
        """Delegate all other methods and properties to the `Tokenizer`."""
        if not name.startswith("__") and "tokenizer" in self.__dict__:  # it is missing while the object is copied
            try:
                return getattr(self.tokenizer, name)
            except AttributeError:
                pass
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    def __dir__(self) -> list[str]:
        """List the delegated names too."""
        return sorted({*super().__dir__(), *dir(self.tokenizer)})

    def __len__(self) -> int:
        """Return the number of tokens."""
        return len(self.tokenizer)

    def __repr__(self) -> str:
        """Show the size of the vocabulary."""
        return f"{type(self).__name__}(n_vocab={self.n_vocab})"


class QuickTokenizer(BatchTokenizer):
    """A BatchTokenizer that counts overlapping pairs in a run of one token: "aaaaa" has four "aa" instead of two.

    >>> tokenizer = QuickTokenizer()
    >>> tokenizer.train("aaaaa abab", 257)
    257
    >>> tokenizer.vocab[256]
    b'aa'
    """

    _overlapping = True


def _paper_default(allowed: AllowedSpecial, disallowed: DisallowedSpecial | None) -> DisallowedSpecial | None:
    """Disallow nothing by default if the allowed special tokens are named, as the paper's program does."""
    return () if disallowed is None and not isinstance(allowed, str) else disallowed

"""`Tokenizer`: encodes and decodes, and never changes. `BatchTokenizer` and `QuickTokenizer`: the paper's classes, which
hold one and replace it when they train."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from . import corpus, policies, training
from ._core import Encoder
from .chunks import ChunkCounts, pattern_of
from .formats import native
from .model import Model
from .training import Batch

AllowedSpecial = Literal["none_raise", "all", "none"] | Collection[str]
Ids = npt.NDArray[np.uint32]


class _Loaded:
    """A model, and the core's encoder for it, made when it is first needed."""

    def __init__(self, model: Model) -> None:
        self.model = model

    @cached_property
    def encoder(self) -> Encoder:
        model = self.model
        return Encoder(
            model.pattern,
            model.byte_ids,
            list(model.stop_words.items()),
            [(first, last, token) for (first, last), token in model.merges.items()],
            list(model.special_tokens.items()),
        )

    def __reduce__(self) -> tuple[type[_Loaded], tuple[Model]]:
        return _Loaded, (self.model,)


class Tokenizer:
    """A vocabulary at work. It never changes, so threads and processes may share one.

    >>> tokenizer = Tokenizer.train("aaabdaaabac", 259)
    >>> tokenizer.encode("aaabdaaabac")
    [258, 100, 258, 97, 99]
    >>> tokenizer.decode([258, 100])
    'aaabd'
    """

    def __init__(self, model: Model) -> None:
        """Make a tokenizer of a model; see also `train` and `from_file`."""
        self._loaded = _Loaded(model)

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
        text_column: str = "text",
        errors: Literal["strict", "replace"] = "strict",
        progress: Callable[[int], object] | None = None,
        on_batch: Callable[[Batch], object] | None = None,
        threads: int | None = None,
    ) -> Tokenizer:
        """Count a corpus (see `ChunkCounts.count`) and train on the counts (see `training.train`)."""
        model = training.train(
            ChunkCounts.count(
                data,
                pattern,
                special_tokens=special_tokens,
                text_column=text_column,
                errors=errors,
                progress=progress,
                threads=threads,
            ),
            vocab_size,
            stop_list_size=stop_list_size,
            freq_cutoff=freq_cutoff,
            special_tokens=special_tokens,
            cap_divisor=cap_divisor,
            max_batch_size=max_batch_size,
            policy=policy,
            overlapping=overlapping,
            on_batch=on_batch,
            threads=threads,
        )
        return Tokenizer(model)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Tokenizer:
        """Load what `save` has written."""
        return Tokenizer(native.load(path))

    @classmethod
    def from_tiktoken(
        cls, path: str | os.PathLike[str], pattern: str | None = None, special_tokens: Mapping[str, int] | None = None
    ) -> Tokenizer:
        """Load a .tiktoken file of ranks; for OpenAI's own, by their names, pattern and special tokens are known."""
        from .formats import tiktoken

        return Tokenizer(tiktoken.load(path, pattern and pattern_of(pattern), special_tokens))

    def save(self, prefix: str | os.PathLike[str]) -> None:
        """Write `prefix`.model, which `from_file` loads, and `prefix`.vocab, which is there to be read."""
        path = Path(prefix)
        path = path if path.suffix == ".model" else path.with_name(path.name + ".model")
        native.save(self.model, path)
        native.save_vocab(self.model, path.with_suffix(".vocab"))

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
        return self.model.vocab

    @property
    def merges(self) -> Mapping[tuple[int, int], int]:
        """The pairs that were merged, in order, and the tokens they became."""
        return self.model.merges

    @property
    def special_tokens(self) -> Mapping[str, int]:
        """The special tokens and their ids."""
        return self.model.special_tokens

    @property
    def stop_words(self) -> Mapping[str, int]:
        """The stop words and their ids."""
        return {word.decode("utf-8", "surrogateescape"): token for word, token in self.model.stop_words.items()}

    def encode(
        self, text: str, allowed_special: AllowedSpecial = "none_raise", *, threads: int | None = None
    ) -> list[int]:
        """Encode a text.

        Special tokens in it are encoded as such if `allowed_special` is "all" or names them, and as plain text if it
        is "none" or does not name them; "none_raise" makes any of them an error. They are matched longest first.

        >>> tokenizer = Tokenizer.train("aaabdaaabac", 260, special_tokens=["<eot>"])
        >>> tokenizer.encode("ab<eot>", allowed_special="all")
        [257, 259]
        """
        try:
            return self._loaded.encoder.encode(text, _allowed(allowed_special), threads)
        except (UnicodeEncodeError, TypeError) as error:
            raise _explained(error) from None

    def encode_ordinary(self, text: str, *, threads: int | None = None) -> list[int]:
        """Encode a text in which special tokens mean nothing special."""
        try:
            return self._loaded.encoder.encode(text, False, threads)
        except (UnicodeEncodeError, TypeError) as error:
            raise _explained(error) from None

    def encode_to_numpy(
        self, text: str, allowed_special: AllowedSpecial = "none_raise", *, threads: int | None = None
    ) -> Ids:
        """Encode a text into an array of uint32, without making a Python integer."""
        try:
            return self._loaded.encoder.encode_to_numpy(text, _allowed(allowed_special), threads)
        except (UnicodeEncodeError, TypeError) as error:
            raise _explained(error) from None

    def encode_batch(
        self, texts: Iterable[str], allowed_special: AllowedSpecial = "none_raise", *, threads: int | None = None
    ) -> list[list[int]]:
        """Encode many texts in parallel."""
        if isinstance(texts, str):
            raise TypeError(f"encode_batch takes a list of texts, not one: encode({texts[:20]!r}) encodes one")
        try:
            return self._loaded.encoder.encode_batch(list(texts), _allowed(allowed_special), threads)
        except (UnicodeEncodeError, TypeError) as error:
            raise _explained(error) from None

    def decode(self, ids: Iterable[int] | npt.NDArray[Any], errors: str = "replace") -> str:
        """Decode ids; where their bytes are no UTF-8, do what `errors` says, as in `bytes.decode`."""
        return self.decode_bytes(ids).decode("utf-8", errors)

    def decode_bytes(self, ids: Iterable[int] | npt.NDArray[Any]) -> bytes:
        """Give the bytes of ids, one after the other."""
        encoder = self._loaded.encoder
        if isinstance(ids, np.ndarray):
            if ids.dtype == np.uint32 and ids.ndim == 1 and ids.flags.c_contiguous:
                return encoder.decode_numpy(ids)
            ids = ids.tolist()
        ids = ids if isinstance(ids, list) else list(ids)
        try:
            return encoder.decode(ids)
        except OverflowError:
            wrong = next(token for token in ids if not 0 <= token < 1 << 32)
            raise ValueError(f"there is no token {wrong}: ids go from 0 to {self.n_vocab - 1}") from None

    def __repr__(self) -> str:
        """Say what it is."""
        return f"{type(self).__name__}(n_vocab={self.n_vocab})"


class BatchTokenizer(Tokenizer):
    """The paper's tokenizer: made first, then trained.

    `multiprocess=False` uses one thread. `store_dict` saves the chunk counts that `train` made: True as a csv in the
    current folder, named by the time as the paper's program does; a path there, as csv or parquet.

    >>> tokenizer = BatchTokenizer()
    >>> tokenizer.train("aaabdaaabac", 259)
    >>> tokenizer.encode("aaabdaaabac")
    [258, 100, 258, 97, 99]
    """

    _overlapping = False

    def __init__(
        self,
        pattern: str | None = None,
        multiprocess: bool = True,
        store_dict: bool | str | os.PathLike[str] = False,
        stop_list_size: int = 0,
        freq_cutoff: int = 1,
    ) -> None:
        """Make an untrained tokenizer, which encodes to bytes."""
        super().__init__(Model(pattern=pattern_of(pattern or "gpt4"), merges={}))
        self._pattern = pattern
        self.multiprocess = multiprocess
        self.store_dict = store_dict
        self.stop_list_size = stop_list_size
        self.freq_cutoff = freq_cutoff

    def train(  # type: ignore[override]
        self,
        data: corpus.Data,
        vocab_size: int,
        cap_divisor: int = 2,
        max_batch_size: int = 0,
        verbose: bool = False,
        *,
        policy: policies.Policy = policies.continue_search,
        text_column: str = "text",
        errors: Literal["strict", "replace"] = "strict",
        progress: Callable[[int], object] | None = None,
        on_batch: Callable[[Batch], object] | None = None,
    ) -> None:
        """Train a vocabulary of `vocab_size` tokens in all, special tokens registered before included.

        `n_vocab` is the size that was reached, which is less if no pairs were left. `verbose` writes a line for each
        batch to stderr. Until all is done the tokenizer stays as it was.
        """
        threads = None if self.multiprocess else 1
        counts = ChunkCounts.count(
            data,
            self._pattern,
            special_tokens=self.special_tokens,
            text_column=text_column,
            errors=errors,
            progress=progress,
            threads=threads,
        )
        if self.store_dict:
            name = time.strftime("%Y-%m-%d-%H_%M-dataset-dict.csv") if self.store_dict is True else self.store_dict
            counts.save(name)

        def told(batch: Batch) -> None:
            if verbose:
                sys.stderr.write(
                    f"batch {batch.number}: merged {batch.size} of {batch.searched} pairs searched, "
                    f"{batch.merges_wanted - batch.merges_done} merges remaining, {batch.seconds:.2f} s\n"
                )
            if on_batch:
                on_batch(batch)

        model = training.train(
            counts,
            vocab_size,
            stop_list_size=self.stop_list_size,
            freq_cutoff=self.freq_cutoff,
            special_tokens=self.special_tokens,
            cap_divisor=cap_divisor,
            max_batch_size=max_batch_size,
            policy=policy,
            overlapping=self._overlapping,
            on_batch=told,
            threads=threads,
        )
        self._loaded = _Loaded(model)

    def register_special_tokens(self, special_tokens: Mapping[str, int]) -> None:
        """Set the special tokens and their ids, in place of any before.

        >>> tokenizer = BatchTokenizer()
        >>> tokenizer.register_special_tokens({"<|endoftext|>": 256})
        >>> tokenizer.encode("a<|endoftext|>", allowed_special="all")
        [97, 256]
        """
        self._loaded = _Loaded(replace(self.model, special_tokens=dict(special_tokens)))

    def load(self, model_file: str | os.PathLike[str]) -> None:
        """Become the tokenizer that was saved in a .model file."""
        model = native.load(model_file)
        self._pattern = model.pattern
        self._loaded = _Loaded(model)


class QuickTokenizer(BatchTokenizer):
    """A BatchTokenizer that counts a pair in a run of one token at every place: "aaaaa" has four "aa", not two.

    >>> tokenizer = QuickTokenizer()
    >>> tokenizer.train("aaaaa abab", 257)
    >>> tokenizer.vocab[256]
    b'aa'
    """

    _overlapping = True


def _allowed(allowed_special: AllowedSpecial) -> bool | list[str] | None:
    """What the core is told: None to raise, True for all, False for none, or those that are tokens."""
    if isinstance(allowed_special, str):
        if allowed_special == "none_raise":
            return None
        if allowed_special in ("all", "none"):
            return allowed_special == "all"
    elif isinstance(allowed_special, Collection):
        return sorted(allowed_special)
    raise ValueError(
        f'allowed_special={allowed_special!r}: give "all", "none", "none_raise", or a set or list of special tokens'
    )


def _explained(error: UnicodeEncodeError | TypeError) -> Exception:
    if isinstance(error, UnicodeEncodeError):
        reason = "a lone surrogate is no character; text.encode('utf-16', 'surrogatepass').decode('utf-16', 'replace') mends the text"
        return UnicodeEncodeError(error.encoding, error.object, error.start, error.end, reason)
    return error

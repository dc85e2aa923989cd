"""`Tokenizer`: a vocabulary at work. It encodes and decodes, and never changes."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from . import corpus, policies, training
from ._core import Encoder, split_text
from .chunks import ChunkCounts, pattern_of, surrogate_error
from .formats import native
from .model import Model
from .training import Batch

AllowedSpecial = Literal["none_raise", "all", "none"] | Collection[str]
Ids = npt.NDArray[np.uint32]
T = TypeVar("T")


class Loaded:
    """A model, and the core's encoder for it, made when it is first needed."""

    def __init__(self, model: Model) -> None:
        """Take a model; only its pattern is tried."""
        if not isinstance(model, Model):
            raise TypeError(f"a Model is needed, not {model!r}: see Tokenizer.train and Tokenizer.from_file")
        split_text(model.pattern, "")
        self.model = model

    @cached_property
    def encoder(self) -> Encoder:
        """The core's encoder."""
        model = self.model
        return Encoder(
            model.pattern,
            model.byte_ids,
            list(model.stop_words.items()),
            [(first, last, token) for (first, last), token in model.merges.items()],
            list(model.special_tokens.items()),
        )

    def __reduce__(self) -> tuple[type[Loaded], tuple[Model]]:
        """Pickle the model alone."""
        return Loaded, (self.model,)


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
        self._loaded = Loaded(model)

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
        """Count a corpus (see `ChunkCounts.count`) and train on the counts (see `training.Options`)."""
        options = training.Options(
            vocab_size=vocab_size,
            stop_list_size=stop_list_size,
            freq_cutoff=freq_cutoff,
            special_tokens=special_tokens,
            cap_divisor=cap_divisor,
            max_batch_size=max_batch_size,
            policy=policy,
            overlapping=overlapping,
        )
        # Nobody else holds the counts, so that training can let them go.
        model = training.train_on(
            ChunkCounts.count(
                data,
                pattern,
                special_tokens=special_tokens,
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
        except UnicodeEncodeError as error:
            raise surrogate_error(error) from None

    def encode_ordinary(self, text: str, *, threads: int | None = None) -> list[int]:
        """Encode a text in which special tokens mean nothing special."""
        try:
            return self._loaded.encoder.encode(text, False, threads)
        except UnicodeEncodeError as error:
            raise surrogate_error(error) from None

    def encode_to_numpy(
        self, text: str, allowed_special: AllowedSpecial = "none_raise", *, threads: int | None = None
    ) -> Ids:
        """Encode a text into an array of uint32, without making a Python integer."""
        try:
            return self._loaded.encoder.encode_to_numpy(text, _allowed(allowed_special), threads)
        except UnicodeEncodeError as error:
            raise surrogate_error(error) from None

    def encode_batch(
        self, texts: Iterable[str], allowed_special: AllowedSpecial = "none_raise", *, threads: int | None = None
    ) -> list[list[int]]:
        """Encode many texts in parallel."""
        return self._batch(self._loaded.encoder.encode_batch, texts, allowed_special, threads)

    def _batch(
        self,
        encode: Callable[[list[str], bool | list[str] | None, int | None], T],
        texts: Iterable[str],
        allowed_special: AllowedSpecial,
        threads: int | None,
    ) -> T:
        if isinstance(texts, str):
            raise TypeError(f"a list of texts is needed, not one: encode({texts[:20]!r}) encodes one")
        try:
            return encode(texts if isinstance(texts, list) else list(texts), _allowed(allowed_special), threads)
        except UnicodeEncodeError as error:
            raise surrogate_error(error) from None

    def encode_batch_to_numpy(
        self, texts: Iterable[str], allowed_special: AllowedSpecial = "none_raise", *, threads: int | None = None
    ) -> tuple[Ids, npt.NDArray[np.int64]]:
        """Encode many texts in parallel into one array, and give the places in it where those of each text begin.

        >>> ids, offsets = Tokenizer.train("aaabdaaabac", 259).encode_batch_to_numpy(["aaab", "", "ac"])
        >>> ids.tolist(), offsets.tolist()
        ([258, 97, 99], [0, 1, 1, 3])
        """
        return self._batch(self._loaded.encoder.encode_batch_to_numpy, texts, allowed_special, threads)

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


def _allowed(allowed_special: AllowedSpecial) -> bool | list[str] | None:
    """What the core is told: None to raise, True for all, False for none, or those that are tokens."""
    if isinstance(allowed_special, str):
        if allowed_special == "none_raise":
            return None
        if allowed_special in ("all", "none"):
            return allowed_special == "all"
    elif isinstance(allowed_special, Collection) and all(isinstance(token, str) for token in allowed_special):
        return sorted(allowed_special)
    raise ValueError(
        f'allowed_special={allowed_special!r}: give "all", "none", "none_raise", or a set or list of special tokens'
    )

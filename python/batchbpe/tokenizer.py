"""`Tokenizer`: encode text to ids and decode ids to text with a `Model`. It is immutable."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from . import training
from ._core import Encoder
from .compat import CompatibleNames
from .counts import ChunkCounts
from .data import corpus
from .data.limits import MAX_DOCUMENT_BYTES
from .encoder import encoder_for
from .errors import ArgumentTypeError, DataError, short
from .formats import Format, huggingface, load_file, native, save_file
from .formats import tiktoken as rank_file
from .formats.dialects import check_not_empty
from .formats.located import check_path, locate_errors
from .lazy import lazy
from .merge_tree import MergeTree
from .model import Model, UnknownTokenError
from .patterns import check_pattern, resolve_pattern
from .policies import Policy
from .special import AllowedSpecial, DisallowedSpecial, resolve_special
from .storage.atomic import replacing_all, writing
from .surrogates import Errors, check_errors, combine_all, combine_surrogates
from .training import Batch

if TYPE_CHECKING:
    import tiktoken

    from .analysis.view import Encoding

Ids = npt.NDArray[np.uint32]
"""Ids as an array."""


class Tokenizer(CompatibleNames):
    """Encodes and decodes with a model. It never changes, so threads and processes can share it.

    Tokenizers are created by `train`, `from_file`, `from_tiktoken` and `from_huggingface`, or from a `Model`.
    Tokenizers with equal models are equal.

    >>> tokenizer = Tokenizer.train("aaabdaaabac", 259)
    >>> tokenizer.encode("aaabdaaabac")
    [258, 100, 258, 97, 99]
    >>> tokenizer.decode([258, 100])
    'aaabd'
    >>> len(tokenizer)
    259
    """

    def __init__(self, model: Model, name: str | None = None) -> None:
        """Create a tokenizer that runs a model.

        `name` is only for information, like the name of a `tiktoken.Encoding`.
        """
        if not isinstance(model, Model):
            raise ArgumentTypeError("model", model, "must be a Model", remedy="see Tokenizer.train and from_file")
        check_pattern(model.pattern)
        self._model = model
        self._name = name

    @classmethod
    def train(
        cls,
        data: corpus.Data | None = None,
        vocab_size: int = 0,
        *,
        texts: str | Iterable[str] | None = None,
        files: corpus.PathLike | Iterable[corpus.PathLike] | None = None,
        pattern: str | None = None,
        stop_list_size: int = 0,
        freq_cutoff: int = 1,
        special_tokens: Sequence[str] | Mapping[str, int] = (),
        cap_divisor: int = 2,
        max_batch_size: int = 0,
        policy: Policy | str = "continue_search",
        overlapping: bool = False,
        base: Tokenizer | Model | None = None,
        text_column: str = "text",
        errors: Literal["strict", "replace"] = "strict",
        max_document_bytes: int = MAX_DOCUMENT_BYTES,
        sample: float = 1.0,
        seed: int = 0,
        limit_bytes: int | None = None,
        progress: Callable[[int], object] | bool | None = None,
        on_counts: Callable[[ChunkCounts], object] | None = None,
        on_batch: Callable[[Batch], object] | None = None,
        threads: int | None = None,
    ) -> Tokenizer:
        """Train a tokenizer of `vocab_size` tokens.

        Parameters
        ----------
        data: a text, path, glob, directory or url; chunk counts; arrow data, data frames or datasets; an iterable of
            strings; or a list of any of these. See `batchbpe.data.corpus`.
        vocab_size: total number of tokens: 256 bytes, stop words, merges and special tokens.
        texts: train on these strings, whatever they look like, instead of `data`.
        files: train on these paths, globs, directories or urls instead of `data`.
        pattern: name or regular expression; by default that of `base` or of the counts in `data`, or gpt4.
        stop_list_size: number of stop words: the most frequent chunks get whole-chunk tokens.
        freq_cutoff: ignore chunks that occur fewer times.
        special_tokens: a list of names, which get the last ids, or a mapping from name to id.
        cap_divisor: search at most `merges_remaining // cap_divisor` pairs per batch.
        max_batch_size: search at most this many pairs per batch; 0 for no limit.
        policy: chooses which of these pairs are merged: a function, or a name from `batchbpe.policies`.
        overlapping: count "aa" four times in "aaaaa", as QuickTokenizer does, instead of twice.
        base: tokenizer to extend. Its tokens keep their ids, except for special tokens that `special_tokens` lists
            again.
        text_column: column of tables, or field of jsonl files, that holds the text.
        errors: "strict", or "replace" to replace invalid UTF-8 with U+FFFD.
        max_document_bytes: largest row, line, or part of a text file that cannot be cut.
        sample: share of the documents to use, chosen by `seed`.
        limit_bytes: stop after this many bytes of text.
        progress: True shows progress bars; a function is called with the number of bytes read so far.
        on_counts: called with the chunk counts before training.
        on_batch: called with a `Batch` after each batch.
        threads: number of threads; all cores by default.

        >>> base = Tokenizer.train("aaabdaaabac", 257)
        >>> dict(Tokenizer.train("aaabdaaabac", 259, base=base).merges)
        {(97, 97): 256, (97, 98): 257, (256, 257): 258}

        """
        return Tokenizer(
            training.train(
                data,
                vocab_size,
                texts=texts,
                files=files,
                pattern=pattern,
                stop_list_size=stop_list_size,
                freq_cutoff=freq_cutoff,
                special_tokens=special_tokens,
                cap_divisor=cap_divisor,
                max_batch_size=max_batch_size,
                policy=policy,
                overlapping=overlapping,
                base=getattr(base, "model", base),
                text_column=text_column,
                errors=errors,
                max_document_bytes=max_document_bytes,
                sample=sample,
                seed=seed,
                limit_bytes=limit_bytes,
                progress=progress,
                on_counts=on_counts,
                on_batch=on_batch,
                threads=threads,
            )
        )

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Tokenizer:
        """Load a tokenizer from a file or folder in any supported format, which is detected from the content.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Tokenizer.train("aaabdaaabac", 259).save(f"{folder}/mine")
        ...     Tokenizer.from_file(f"{folder}/mine.model").encode("aaab")
        [258]
        """
        return _from_source(load_file(path), path)

    @classmethod
    def from_tiktoken(
        cls, path: str | os.PathLike[str], pattern: str | None = None, special_tokens: Mapping[str, int] | None = None
    ) -> Tokenizer:
        """Load a tokenizer from a .tiktoken rank file or a `tiktoken.Encoding`.

        Rank files do not store the pattern and the special tokens. They are known for OpenAI's files by name; for
        other files, pass the pattern (a name or a regular expression) and the special tokens.

        >>> encoding = Tokenizer.train("aaabdaaabac", 259).to_tiktoken()
        >>> Tokenizer.from_tiktoken(encoding).encode("aaab")
        [258]
        """
        return _from_source(rank_file.load(path, pattern and resolve_pattern(pattern), special_tokens), path)

    @classmethod
    def from_huggingface(cls, source: Any) -> Tokenizer:
        """Load a tokenizer from a tokenizer.json, a folder with one, or an object of `tokenizers` or `transformers`.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Tokenizer.train("aaabdaaabac", 259).export(f"{folder}/tokenizer.json", "huggingface")
        ...     Tokenizer.from_huggingface(folder).encode("aaab")
        [258]
        """
        return _from_source(huggingface.load(source), source)

    def save(self, prefix: str | os.PathLike[str]) -> None:
        """Write `prefix`.model, which `from_file` loads, and `prefix`.vocab, a list of the tokens for people to read.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Tokenizer.train("aaabdaaabac", 259).save(f"{folder}/mine")
        ...     sorted(path.name for path in Path(folder).iterdir())
        ['mine.model', 'mine.vocab']
        """
        check_path(prefix)
        path = Path(prefix)
        path = path if path.suffix == ".model" else path.with_name(path.name + ".model")
        vocab_path = path.with_suffix(".vocab")
        with replacing_all([vocab_path, path]) as (temporary_vocab, temporary_model):
            with writing(vocab_path):
                native.write_vocab(self.model, temporary_vocab)
            with writing(path):
                native.write(self.model, temporary_model)

    def export(self, path: str | os.PathLike[str], format: Format, *, allow_inexact: bool = False) -> None:
        """Write a file for another tool, or a folder for transformers.

        An export that would encode differently raises an error. `allow_inexact` writes it nevertheless, without what
        the format cannot represent.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Tokenizer.train("aaabdaaabac", 259).export(f"{folder}/mine.tiktoken", "tiktoken")
        ...     Path(f"{folder}/mine.tiktoken").read_text().splitlines()[-1]
        'YWFhYg== 258'
        """
        save_file(self.model, path, format, allow_inexact=allow_inexact)

    def to_tiktoken(self) -> tiktoken.Encoding:
        """Convert to a `tiktoken.Encoding`. Raise if tiktoken would encode differently.

        >>> Tokenizer.train("aaabdaaabac", 259).to_tiktoken().encode("aaab")
        [258]
        """
        import tiktoken

        check_not_empty(self.pattern, "tiktoken")
        special_tokens = dict(self.special_tokens)
        for first, following in pairwise(sorted(special_tokens)):
            if following.startswith(first):
                raise DataError(
                    f"special token {short(following)} starts with {short(first)}, and tiktoken may match either",
                    remedy="rename one of them",
                )
        ranks = rank_file.ranks_of(self.model, remedy="export to another format to keep them")
        return tiktoken.Encoding(self.name, pat_str=self.pattern, mergeable_ranks=ranks, special_tokens=special_tokens)

    def merge_tree(self, token: int) -> MergeTree:
        """Return the tree of merges that builds a token.

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
        """The model: pattern, merges, stop words and special tokens.

        >>> Tokenizer.train("aaabdaaabac", 259).model
        Model(tokens=259, merges=3, stop_words=0, special_tokens=0, pattern='gpt4')
        """
        return self._model

    @lazy
    def _encoder(self) -> Encoder:
        return encoder_for(self._model)

    @property
    def pattern(self) -> str:
        """The regular expression that splits text into chunks.

        >>> Tokenizer.train("aaabdaaabac", 259, pattern="[a-z]+").pattern
        '[a-z]+'
        """
        return self.model.pattern

    @property
    def vocab_size(self) -> int:
        """The number of tokens, which is also `len(tokenizer)`.

        >>> tokenizer = Tokenizer(Model(pattern="[a-z]+", merges={}, special_tokens={"<e>": 300}))
        >>> tokenizer.vocab_size, tokenizer.n_vocab
        (257, 301)
        """
        return len(self.model.vocab)

    @property
    def n_vocab(self) -> int:
        """The largest id plus one, as in tiktoken: the number of embeddings that a language model needs.

        It is larger than `vocab_size` if there are gaps between ids, for example below the ids of special tokens.

        >>> Tokenizer.train("aaabdaaabac", 259).n_vocab
        259
        """
        return self.model.n_vocab

    @property
    def vocab(self) -> Mapping[int, bytes]:
        """The bytes of every token by id (read-only).

        >>> Tokenizer.train("aaabdaaabac", 259).vocab[258]
        b'aaab'
        """
        return self.model.vocab

    @property
    def merges(self) -> Mapping[tuple[int, int], int]:
        """The merged pairs in the order they were made, and the ids they became (read-only).

        >>> Tokenizer.train("aaabdaaabac", 259).merges[97, 97]
        256
        """
        return self.model.merges

    @property
    def special_tokens(self) -> Mapping[str, int]:
        """The special tokens and their ids (read-only).

        >>> Tokenizer.train("aaabdaaabac", 260, special_tokens=["<eot>"]).special_tokens["<eot>"]
        259
        """
        return self.model.special_tokens

    @property
    def stop_words(self) -> Mapping[str, int]:
        """The stop words and their ids. Bytes that are not valid UTF-8 become surrogates, as in `os.fsdecode`.

        >>> Tokenizer.train("to be or not to be", 258, stop_list_size=2).stop_words
        {' be': 256, ' not': 257}
        """
        return {word.decode("utf-8", "surrogateescape"): token for word, token in self.model.stop_words.items()}

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

        Parameters
        ----------
        text: the text. Surrogate pairs are combined into characters, as in tiktoken.
        allowed_special: special tokens that are encoded as tokens: "all", or a collection of them. "none" encodes all
            special tokens as ordinary text, and "none_raise" raises an error if the text contains one.
        disallowed_special: special tokens that raise an error: "all" others, or a collection of them. The default is
            no special token if `allowed_special` is "all" or "none", and all others if it is not.
        errors: "strict" raises an error for lone surrogates, "replace" replaces them with U+FFFD.
        threads: number of threads for a long text; None uses all cores.

        Special tokens that are neither allowed nor disallowed are encoded as ordinary text. If several special tokens
        start at the same place, the longest is matched.

        >>> tokenizer = Tokenizer.train("aaabdaaabac", 260, special_tokens=["<eot>"])
        >>> tokenizer.encode("ab<eot>", allowed_special="all")
        [257, 259]

        """
        special = None
        if allowed_special != "none_raise" or disallowed_special is not None:  # a call would take a tenth of the time
            special = resolve_special(self._model.special_tokens, allowed_special, disallowed_special)
        if errors != "strict":
            check_errors(errors)
        try:
            return self._encoder.encode(text, special, threads)
        except UnicodeEncodeError:
            return self._encoder.encode(combine_surrogates(text, errors), special, threads)

    def encode_ordinary(self, text: str, *, errors: Errors = "strict", threads: int | None = None) -> list[int]:
        """Encode a text in which special tokens are ordinary text.

        >>> Tokenizer.train("aaabdaaabac", 260, special_tokens=["<eot>"]).encode_ordinary("<eot>ab")
        [60, 101, 111, 116, 62, 257]
        """
        if errors != "strict":
            check_errors(errors)
        try:
            return self._encoder.encode(text, ([], []), threads)
        except UnicodeEncodeError:
            return self._encoder.encode(combine_surrogates(text, errors), ([], []), threads)

    def encode_to_numpy(
        self,
        text: str,
        allowed_special: AllowedSpecial = "none_raise",
        disallowed_special: DisallowedSpecial | None = None,
        *,
        errors: Errors = "strict",
        threads: int | None = None,
    ) -> Ids:
        """Encode a text to a uint32 array without creating Python integers. The parameters are those of `encode`.

        >>> Tokenizer.train("aaabdaaabac", 259).encode_to_numpy("aaabd")
        array([258, 100], dtype=uint32)
        """
        special = resolve_special(self._model.special_tokens, allowed_special, disallowed_special)
        check_errors(errors)
        try:
            return self._encoder.encode_to_numpy(text, special, threads)
        except UnicodeEncodeError:
            return self._encoder.encode_to_numpy(combine_surrogates(text, errors), special, threads)

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
        """Encode several texts in parallel. The parameters are those of `encode`.

        `num_threads` is the same as `threads`, under the name that tiktoken uses.

        >>> Tokenizer.train("aaabdaaabac", 259).encode_batch(["aaab", "ac"])
        [[258], [97, 99]]
        """
        if type(self).encode is not Tokenizer.encode:  # a subclass encodes in its own way
            return [self.encode(each, allowed_special, disallowed_special, errors=errors) for each in _as_list(text)]
        special = resolve_special(self._model.special_tokens, allowed_special, disallowed_special)
        check_errors(errors)
        texts = _as_list(text)
        threads = num_threads if threads is None else threads
        try:
            return self._encoder.encode_batch(texts, special, threads)
        except UnicodeEncodeError:
            return self._encoder.encode_batch(combine_all(texts, errors), special, threads)

    def encode_ordinary_batch(
        self,
        text: Iterable[str],
        *,
        errors: Errors = "strict",
        threads: int | None = None,
        num_threads: int | None = None,
    ) -> list[list[int]]:
        """Encode several texts in which special tokens are ordinary text.

        >>> Tokenizer.train("aaabdaaabac", 259).encode_ordinary_batch(["aaab", "ac"])
        [[258], [97, 99]]
        """
        return self.encode_batch(text, "none", errors=errors, threads=threads, num_threads=num_threads)

    def encode_batch_to_numpy(
        self,
        text: Iterable[str],
        allowed_special: AllowedSpecial = "none_raise",
        disallowed_special: DisallowedSpecial | None = None,
        *,
        errors: Errors = "strict",
        threads: int | None = None,
    ) -> tuple[Ids, npt.NDArray[np.int64]]:
        """Encode several texts in parallel to one array of ids, and return it with the offset of each text.

        The parameters are those of `encode`. Text i has the ids from `offsets[i]` to `offsets[i + 1]`.

        >>> ids, offsets = Tokenizer.train("aaabdaaabac", 259).encode_batch_to_numpy(["aaab", "", "ac"])
        >>> ids.tolist(), offsets.tolist()
        ([258, 97, 99], [0, 1, 1, 3])
        """
        special = resolve_special(self._model.special_tokens, allowed_special, disallowed_special)
        check_errors(errors)
        texts = _as_list(text)
        try:
            return self._encoder.encode_batch_to_numpy(texts, special, threads)
        except UnicodeEncodeError:
            return self._encoder.encode_batch_to_numpy(combine_all(texts, errors), special, threads)

    def view(self, text: str, *, errors: Errors = "strict") -> Encoding:
        """Encode a text for display: a notebook shows it with coloured tokens. Special tokens are encoded as such.

        >>> Tokenizer.train("aaabdaaabac", 259).view("aaabd")
        Encoding([258, 100])
        """
        from .analysis.view import Encoding

        return Encoding(self, self.encode(text, "all", errors=errors))

    def show(self, text: str, *, errors: Errors = "strict") -> None:
        """Print a text with coloured tokens, or with | between tokens if the output does not support 256 colours.

        A subscript is the number of tokens that a character is split into.

        >>> Tokenizer.train("aaabdaaabac", 259).show("aaabd")
        aaab|d
        """
        self.view(text, errors=errors).show()

    def decode(self, tokens: Iterable[int] | npt.NDArray[Any], errors: str = "replace") -> str:
        """Decode ids to text. `errors` says what to do about invalid UTF-8, as in `bytes.decode`.

        >>> Tokenizer.train("aaabdaaabac", 259).decode([258, 100])
        'aaabd'
        """
        return self.decode_bytes(tokens).decode("utf-8", errors)

    def decode_bytes(self, tokens: Iterable[int] | npt.NDArray[Any]) -> bytes:
        """Decode ids to bytes.

        >>> Tokenizer.train("aaabdaaabac", 259).decode_bytes([258, 255])
        b'aaab\\xff'
        """
        encoder = self._encoder
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
            raise UnknownTokenError.of_id(int(unknown[0]), self.max_token_value) from None

    def decode_batch(
        self, batch: Iterable[Iterable[int]], errors: str = "replace", *, num_threads: int | None = None
    ) -> list[str]:
        """Decode several lists of ids. `num_threads` is accepted for compatibility with tiktoken and ignored.

        >>> Tokenizer.train("aaabdaaabac", 259).decode_batch([[258], [97, 99]])
        ['aaab', 'ac']
        """
        return [self.decode(ids, errors) for ids in batch]

    def decode_bytes_batch(self, batch: Iterable[Iterable[int]], *, num_threads: int | None = None) -> list[bytes]:
        """Decode several lists of ids to bytes. `num_threads` is accepted for compatibility and ignored.

        >>> Tokenizer.train("aaabdaaabac", 259).decode_bytes_batch([[258], [255]])
        [b'aaab', b'\\xff']
        """
        return [self.decode_bytes(ids) for ids in batch]

    def __len__(self) -> int:
        """Return the number of tokens."""
        return self.vocab_size

    def __eq__(self, other: object) -> bool:
        """Compare the models. Names do not matter."""
        return self.model == other.model if isinstance(other, Tokenizer) else NotImplemented

    def __hash__(self) -> int:
        """Hash the model."""
        return hash(self.model)

    def __repr__(self) -> str:
        """Show the size of the vocabulary."""
        return f"{type(self).__name__}(n_vocab={self.n_vocab})"

    def __getstate__(self) -> dict[str, Any]:
        """Pickle everything but the encoder, which is built again when it is needed."""
        return {name: value for name, value in self.__dict__.items() if name != "_encoder"}


def _from_source(model: Model, source: Any) -> Tokenizer:
    """Create a tokenizer with the name of the file or object that the model was loaded from."""
    if not isinstance(source, str | os.PathLike):
        return Tokenizer(model, name=getattr(source, "name", None))
    with locate_errors(source):
        return Tokenizer(model, name=Path(source).stem)


def _as_list(texts: Iterable[str]) -> list[str]:
    if isinstance(texts, str):
        raise ArgumentTypeError("text", texts, "must be a list of strings", remedy="use encode for a single string")
    return texts if isinstance(texts, list) else list(texts)

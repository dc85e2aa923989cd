"""`Codec`: the half of `Tokenizer` that encodes text to ids and decodes ids to text, without files and training."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from .._core import Encoder
from ..arguments import check_bool, check_ids, check_iterable, check_string, check_threads
from ..errors import ArgumentError, ArgumentTypeError, DataError, Setting, UserError
from ..model import Model, UnknownTokenError
from ..model.tree import MergeTree
from ..util.lazy import lazy
from ..util.surrogates import Errors, check_errors, combine_surrogates
from .compat import CompatibleNames
from .encoding import EncodingOptions, Sampler, encoder_for, encoding
from .special import AllowedSpecial, DisallowedSpecial, Special, resolve_special
from .stream import DecodeStream

if TYPE_CHECKING:
    from typing_extensions import Unpack

Ids = npt.NDArray[np.uint32]
"""Ids as an array."""
T = TypeVar("T")


class Codec(CompatibleNames):
    """Base class of `Tokenizer`: the vocabulary, encoding and decoding. It is immutable."""

    def __init__(self, model: Model, name: str | None = None) -> None:
        """Create a tokenizer that runs a model.

        `name` is only for information, like the name of a `tiktoken.Encoding`.
        """
        if not isinstance(model, Model):
            raise ArgumentTypeError("model", model, "must be a Model", remedy="see Tokenizer.train and from_file")
        model.split.check()
        self._model = model
        self._name = name

    @property
    def model(self) -> Model:
        """The model: pattern, merges, stop words, special tokens and so on.

        >>> Tokenizer.train("aaabdaaabac", 259).model
        Model(tokens=259, merges=3, stop_words=0, special_tokens=0, pattern='gpt4')
        """
        return self._model

    @lazy
    def core_encoder(self) -> Encoder:
        """The encoder of the core, for code that calls it without the checks here. It is built when it is first used.

        >>> Tokenizer.train("aaabdaaabac", 259).core_encoder.encode_bytes(b"aaab", None)
        [258]
        """
        return self._model.encoder()

    @property
    def pattern(self) -> str:
        """The regular expression that splits text into chunks.

        >>> Tokenizer.train("aaabdaaabac", 259, pattern="[a-z]+").pattern
        '[a-z]+'
        """
        return self.model.pattern

    @property
    def vocab_size(self) -> int:
        """The number of tokens, as `len(tokenizer)`.

        >>> tokenizer = Tokenizer(Model(split="[a-z]+", merges={}, special_tokens={"<e>": 300}))
        >>> tokenizer.vocab_size, tokenizer.n_vocab
        (257, 301)
        """
        return self.model.vocab_size

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
    def added_tokens(self) -> Mapping[str, int]:
        """The added tokens and their ids (read-only): found in every text before it is split, but not special.

        >>> tokenizer = Tokenizer(Model(split=r"\\s+|\\S+", merges={}, added_tokens={"    ": 256}))
        >>> tokenizer.encode("     a"), dict(tokenizer.added_tokens)
        ([256, 32, 97], {'    ': 256})
        """
        return self.model.added_tokens

    @property
    def stop_words(self) -> Mapping[str, int]:
        """The stop words and their ids (read-only).

        Bytes that are not valid UTF-8 become surrogates, as in `os.fsdecode`.

        >>> Tokenizer.train("to be or not to be", 258, stop_list_size=2).stop_words[" be"]
        256
        """
        words = self.model.stop_words
        return MappingProxyType({word.decode("utf-8", "surrogateescape"): token for word, token in words.items()})

    @property
    def phrases(self) -> Mapping[tuple[int, ...], int]:
        """The phrases: sequences of tokens that are whole chunks, and the ids they become (read-only).

        >>> tokenizer = Tokenizer(Model(split=r" ?\\w+", merges={(32, 98): 256}, phrases={(97, 256): 257}))
        >>> tokenizer.encode("a b a b b"), tokenizer.phrases[97, 256]
        ([257, 32, 97, 256, 256], 257)
        """
        return self.model.phrases

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

    @encoding
    def encode(
        self,
        text: str,
        allowed_special: AllowedSpecial = "none_raise",
        disallowed_special: DisallowedSpecial | None = None,
        **options: Unpack[EncodingOptions],
    ) -> list[int]:
        """Encode a text to a list of ids.

        Parameters
        ----------
        text: the text. Surrogate pairs are combined into characters, as in tiktoken.
        allowed_special: special tokens that are encoded as tokens: "all", or a collection of them. "none" encodes all
            special tokens as ordinary text, and "none_raise" raises an error if the text contains one.
        disallowed_special: special tokens that raise an error: "all" others, or a collection of them. By default none
            if `allowed_special` is "all" or "none", and all others if it is not; in `BatchTokenizer`, none if it is a
            collection.
        errors: "strict" raises an error for lone surrogates, "replace" replaces them with U+FFFD.
        threads: number of threads for a long text; None uses all cores.
        dropout: probability of dropping a merge (BPE-dropout), from 0, the ordinary encoding, to 1, single bytes. At
            each step in a chunk, each possible merge is dropped independently, and the first of the others is made. A
            chunk ends when all are dropped. A stop word is dropped with the same probability, before all merges.
        sampling: "uniform" draws from all segmentations of a chunk into tokens, each with the same probability.
        seed: integer from 0 for `dropout` and `sampling`. The ids depend only on the model, text, options and seed.
            Text i of a batch also depends on i; a single text is encoded like the first of a batch.

        Special tokens that are neither allowed nor disallowed are encoded as ordinary text. If several special tokens
        start at the same position, the longest is matched. A sampled encoding has no phrases.

        >>> tokenizer = Tokenizer.train("aaabdaaabac", 260, special_tokens=["<eot>"])
        >>> tokenizer.encode("ab<eot>", allowed_special="all")
        [257, 259]
        >>> [tokenizer.encode("aaab", dropout=0.5, seed=seed) for seed in range(3)]
        [[97, 256, 98], [256, 257], [97, 256, 98]]

        """
        special = None
        if allowed_special != "none_raise" or disallowed_special is not None:  # skipping this makes short texts faster
            special = resolve_special(self._model.special_tokens, allowed_special, disallowed_special)
        if not options:  # and so does this
            try:
                return self.core_encoder.encode(text, special, None)
            except (TypeError, ValueError):
                pass  # raised again, and explained, below
        ids: list[int] = self._encode("encode", text, special, options)
        return ids

    @encoding
    def encode_ordinary(self, text: str, **options: Unpack[EncodingOptions]) -> list[int]:
        """Encode a text in which special tokens are ordinary text. The parameters are those of `encode`.

        >>> Tokenizer.train("aaabdaaabac", 260, special_tokens=["<eot>"]).encode_ordinary("<eot>ab")
        [60, 101, 111, 116, 62, 257]
        """
        if not options:
            try:
                return self.core_encoder.encode(text, "none", None)
            except (TypeError, ValueError):
                pass  # as in `encode`
        ids: list[int] = self._encode("encode", text, "none", options)
        return ids

    def encode_bytes(self, data: bytes, *, threads: int | None = None) -> list[int]:
        """Encode bytes that may be invalid UTF-8, in which special tokens are ordinary text.

        Valid UTF-8 has the ids of `encode_ordinary`. A pattern cannot split invalid UTF-8: as in tiktoken, the last
        chunk before the first invalid byte is encoded as one chunk with all bytes after it. If that chunk starts with
        whitespace, so are the whitespace tokens before it. `decode_bytes` restores the bytes.

        >>> Tokenizer.train("aaabdaaabac", 259).encode_bytes(b"aaab d\\xff")
        [258, 32, 100, 255]
        """
        try:
            return self.core_encoder.encode_bytes(data, threads)
        except (TypeError, ValueError):
            if not isinstance(data, bytes):
                remedy = "use encode for a string" if isinstance(data, str) else ""
                raise ArgumentTypeError("data", data, "must be bytes", remedy=remedy) from None
            check_threads(threads)
            raise

    @encoding
    def encode_to_numpy(
        self,
        text: str,
        allowed_special: AllowedSpecial = "none_raise",
        disallowed_special: DisallowedSpecial | None = None,
        **options: Unpack[EncodingOptions],
    ) -> Ids:
        """Encode a text to a uint32 array without creating Python integers. The parameters are those of `encode`.

        >>> Tokenizer.train("aaabdaaabac", 259).encode_to_numpy("aaabd")
        array([258, 100], dtype=uint32)
        """
        special = resolve_special(self._model.special_tokens, allowed_special, disallowed_special)
        ids: Ids = self._encode("encode_to_numpy", text, special, options)
        return ids

    @encoding
    def encode_batch(
        self,
        text: Iterable[str],
        allowed_special: AllowedSpecial = "none_raise",
        disallowed_special: DisallowedSpecial | None = None,
        *,
        num_threads: int | None = None,
        **options: Unpack[EncodingOptions],
    ) -> list[list[int]]:
        """Encode several texts in parallel. The parameters are those of `encode`.

        `num_threads` is the same as `threads`, under the name that tiktoken uses.

        >>> Tokenizer.train("aaabdaaabac", 259).encode_batch(["aaab", "ac"])
        [[258], [97, 99]]
        """
        if num_threads is not None:
            if options.get("threads") is not None:
                reason = ("must be omitted if ", Setting("threads"), " is given")
                raise ArgumentError("num_threads", num_threads, reason)
            check_threads(num_threads, "num_threads")
            options["threads"] = num_threads
        if type(self).encode is not Codec.encode:  # a subclass that overrides `encode` changes this too, as in tiktoken
            if isinstance(encoder_for(self.core_encoder, options), Sampler):
                cause = f"must be omitted if {type(self).__name__} overrides encode"
                raise ArgumentError("seed", options["seed"], cause)
            errors = options.get("errors", "strict")
            return [self.encode(each, allowed_special, disallowed_special, errors=errors) for each in _as_list(text)]
        special = resolve_special(self._model.special_tokens, allowed_special, disallowed_special)
        ids: list[list[int]] = self._encode("encode_batch", _as_list(text), special, options)
        return ids

    @encoding
    def encode_ordinary_batch(
        self,
        text: Iterable[str],
        *,
        num_threads: int | None = None,
        **options: Unpack[EncodingOptions],
    ) -> list[list[int]]:
        """Encode several texts in which special tokens are ordinary text.

        >>> Tokenizer.train("aaabdaaabac", 259).encode_ordinary_batch(["aaab", "ac"])
        [[258], [97, 99]]
        """
        return self.encode_batch(text, "none", num_threads=num_threads, **options)

    @encoding
    def encode_batch_to_numpy(
        self,
        text: Iterable[str],
        allowed_special: AllowedSpecial = "none_raise",
        disallowed_special: DisallowedSpecial | None = None,
        **options: Unpack[EncodingOptions],
    ) -> tuple[Ids, npt.NDArray[np.int64]]:
        """Encode several texts in parallel to one array of ids, and return it with the offset of each text.

        The parameters are those of `encode`. Text i has the ids from `offsets[i]` to `offsets[i + 1]`.

        >>> ids, offsets = Tokenizer.train("aaabdaaabac", 259).encode_batch_to_numpy(["aaab", "", "ac"])
        >>> ids.tolist(), offsets.tolist()
        ([258, 97, 99], [0, 1, 1, 3])
        """
        special = resolve_special(self._model.special_tokens, allowed_special, disallowed_special)
        found: tuple[Ids, npt.NDArray[np.int64]] = self._encode(
            "encode_batch_to_numpy", _as_list(text), special, options
        )
        return found

    def _encode(self, method: str, text: Any, special: Special, options: EncodingOptions) -> Any:
        """Encode a text or several, with a method of the core's encoder."""
        errors, threads = options.get("errors", "strict"), options.get("threads")
        check_errors(errors)
        encode = getattr(encoder_for(self.core_encoder, options), method)
        try:
            return encode(text, special, threads)
        except (TypeError, ValueError) as error:
            return self._retry(encode, text, special, errors, threads, error, is_batch="batch" in method)

    def _retry(
        self,
        encode: Callable[[Any, Special, int | None], T],
        text: Any,
        special: Special,
        errors: Errors,
        threads: int | None,
        error: Exception,
        is_batch: bool = False,
    ) -> T:
        """Encode again with combined surrogates, which the core has rejected. Explain an `error` with another cause."""
        texts = {f"text[{index}]": each for index, each in enumerate(text)} if is_batch else {"text": text}
        for name, each in texts.items():
            check_string(name, each)
        check_threads(threads)
        if isinstance(error, UnicodeEncodeError):
            combined = [combine_surrogates(each, errors, where=name) for name, each in texts.items()]
            return encode(combined if is_batch else combined[0], special, threads)
        if is_batch and isinstance(error, ValueError):
            for name, each in texts.items():  # find the text that contains a disallowed special token
                try:
                    self.core_encoder.encode(each, special, 1)
                except ValueError as rejected:
                    raise DataError(str(rejected), where=name) from None
        raise error from None

    def decode(
        self,
        tokens: Iterable[int] | npt.NDArray[Any],
        errors: str = "replace",
        *,
        skip_special_tokens: bool = False,
    ) -> str:
        """Decode ids to text. `errors` says what to do about invalid UTF-8, as in `bytes.decode`.

        `skip_special_tokens` leaves out special tokens.

        >>> tokenizer = Tokenizer.train("aaabdaaabac", 260, special_tokens=["<eot>"])
        >>> tokenizer.decode([258, 259]), tokenizer.decode([258, 259], skip_special_tokens=True)
        ('aaab<eot>', 'aaab')
        """
        try:
            return self.core_encoder.decode_text(tokens, errors, skip_special_tokens)
        except (TypeError, OverflowError, ValueError) as error:
            ids = self._known_ids(tokens, error, skip_special_tokens)
            return self.core_encoder.decode_text(ids, errors, skip_special_tokens)

    def decode_bytes(self, tokens: Iterable[int] | npt.NDArray[Any], *, skip_special_tokens: bool = False) -> bytes:
        """Decode ids to bytes. `skip_special_tokens` leaves out special tokens.

        >>> Tokenizer.train("aaabdaaabac", 259).decode_bytes([258, 255])
        b'aaab\\xff'
        """
        try:
            return self.core_encoder.decode_bytes(tokens, skip_special_tokens)
        except (TypeError, OverflowError, ValueError) as error:
            ids = self._known_ids(tokens, error, skip_special_tokens)
            return self.core_encoder.decode_bytes(ids, skip_special_tokens)

    def _known_ids(self, tokens: Any, error: Exception, skip_special_tokens: bool) -> list[int]:
        """Return the ids of an array or iterable that the core rejected. Raise if something is wrong with them."""
        if isinstance(error, UnicodeDecodeError):
            raise error
        check_bool("skip_special_tokens", skip_special_tokens)
        ids = tokens.tolist() if isinstance(tokens, np.ndarray) else tokens
        if isinstance(ids, Iterable) and not isinstance(ids, str | list):
            ids = list(ids)
        check_ids(ids)
        for token in ids:
            if token not in self.vocab:
                raise UnknownTokenError.of_id(int(token), self.max_token_value) from None
        if ids is tokens:
            raise error
        return ids  # type: ignore[no-any-return]

    def decode_stream(self, errors: str = "replace", *, skip_special_tokens: bool = False) -> DecodeStream:
        """Return a stream that decodes ids step by step, and returns text as soon as characters are complete.

        What its steps and `finish` return is, joined, what `decode` returns for all ids. The parameters are those of
        `decode`.

        >>> stream = Tokenizer.train("aaabdaaabac", 259).decode_stream()
        >>> stream.step(258) + stream.step([195, 169]) + stream.finish()
        'aaabé'
        """
        return DecodeStream(self, errors, skip_special_tokens=skip_special_tokens)

    def decode_batch(
        self,
        batch: Iterable[Iterable[int]],
        errors: str = "replace",
        *,
        skip_special_tokens: bool = False,
        num_threads: int | None = None,
    ) -> list[str]:
        """Decode several lists of ids. `num_threads` is accepted for compatibility with tiktoken and ignored.

        The other parameters are those of `decode`.

        >>> Tokenizer.train("aaabdaaabac", 259).decode_batch([[258], [97, 99]])
        ['aaab', 'ac']
        """
        check_iterable("batch", batch, "must be a list of lists of integers")
        return _collect(self.decode(ids, errors, skip_special_tokens=skip_special_tokens) for ids in batch)

    def decode_bytes_batch(
        self,
        batch: Iterable[Iterable[int]],
        *,
        skip_special_tokens: bool = False,
        num_threads: int | None = None,
    ) -> list[bytes]:
        """Decode several lists of ids to bytes. `num_threads` is accepted for compatibility and ignored.

        `skip_special_tokens` leaves out special tokens.

        >>> Tokenizer.train("aaabdaaabac", 259).decode_bytes_batch([[258], [255]])
        [b'aaab', b'\\xff']
        """
        check_iterable("batch", batch, "must be a list of lists of integers")
        return _collect(self.decode_bytes(ids, skip_special_tokens=skip_special_tokens) for ids in batch)

    def __len__(self) -> int:
        """Return the number of tokens."""
        return self.vocab_size

    def __eq__(self, other: object) -> bool:
        """Compare the models. Names do not matter."""
        return self.model == other.model if isinstance(other, Codec) else NotImplemented

    def __hash__(self) -> int:
        """Hash the model."""
        return hash(self.model)

    def __repr__(self) -> str:
        """Show the size of the vocabulary."""
        return f"{type(self).__name__}(n_vocab={self.n_vocab})"

    def __getstate__(self) -> dict[str, Any]:
        """Pickle everything but the encoder, which is rebuilt when it is first used."""
        return {name: value for name, value in self.__dict__.items() if name != "core_encoder"}


def _as_list(texts: Iterable[str]) -> list[str]:
    if isinstance(texts, list):
        return texts
    remedy = "use encode for a single string" if isinstance(texts, str) else ""
    check_iterable("text", texts, "must be a list of strings", remedy)
    return list(texts)


def _collect(results: Iterator[T]) -> list[T]:
    """Return the results for a batch. An error gives the index."""
    decoded: list[T] = []
    try:
        decoded.extend(results)  # on an error, those before it remain
    except UserError as error:
        error.where = f"batch[{len(decoded)}]"
        raise
    return decoded

"""`Tokenizer` methods with the names that tiktoken and Hugging Face tokenizers use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import index

from ..arguments import check_ids, check_integer
from ..errors import ArgumentError, ArgumentTypeError, listed, short
from ..formats.byte_level import from_byte_level, to_byte_level
from ..model import Model, UnknownTokenError


class CompatibleNames:
    """Mixin for `Tokenizer`: methods of `tiktoken.Encoding`, then methods of `tokenizers.Tokenizer`."""

    _model: Model
    _name: str | None

    @property
    def name(self) -> str:
        """The name given to the tokenizer, or the stem of the file it was loaded from, or "batchbpe".

        >>> Tokenizer.train("aaabdaaabac", 259).name
        'batchbpe'
        """
        return self._name or "batchbpe"

    @property
    def max_token_value(self) -> int:
        """The largest id.

        >>> Tokenizer.train("aaabdaaabac", 259).max_token_value
        258
        """
        return self._model.n_vocab - 1

    @property
    def special_tokens_set(self) -> set[str]:
        """The special tokens.

        >>> Tokenizer.train("aaabdaaabac", 260, special_tokens=["<eot>"]).special_tokens_set
        {'<eot>'}
        """
        return set(self._model.special_tokens)

    @property
    def eot_token(self) -> int:
        """The id of <|endoftext|>.

        >>> Tokenizer.train("aaabdaaabac", 260, special_tokens=["<|endoftext|>"]).eot_token
        259
        """
        special_tokens = self._model.special_tokens
        if "<|endoftext|>" not in special_tokens:
            known = (
                f"the special tokens are: {listed(special_tokens)}"
                if special_tokens
                else "the model has no special tokens"
            )
            raise UnknownTokenError(f"special token '<|endoftext|>' does not exist; {known}")
        return special_tokens["<|endoftext|>"]

    def is_special_token(self, token: int) -> bool:
        """Return whether an id belongs to a special token.

        >>> Tokenizer.train("aaabdaaabac", 260, special_tokens=["<eot>"]).is_special_token(259)
        True
        """
        return token in self._model.special_tokens.values()

    def token_byte_values(self) -> list[bytes]:
        """Return the bytes of all tokens except special and added tokens, sorted.

        >>> Tokenizer.train("aaabdaaabac", 259).token_byte_values()[97:101]
        [b'a', b'aa', b'aaab', b'ab']
        """
        return sorted(self._model.token_ids)

    def encode_single_token(self, text_or_bytes: str | bytes) -> int:
        """Return the id of the token with this text or these bytes.

        >>> Tokenizer.train("aaabdaaabac", 259).encode_single_token("aaab")
        258
        """
        if not isinstance(text_or_bytes, str | bytes):
            raise ArgumentTypeError("text_or_bytes", text_or_bytes, "must be a str or bytes")
        model = self._model
        if isinstance(text_or_bytes, str) and text_or_bytes in model.found_tokens:
            return model.found_tokens[text_or_bytes]
        try:
            value = text_or_bytes.encode() if isinstance(text_or_bytes, str) else text_or_bytes
        except UnicodeEncodeError:
            raise ArgumentError("text_or_bytes", text_or_bytes, "must not contain surrogates") from None
        if value in model.token_ids:
            return model.token_ids[value]
        for name, token in model.found_tokens.items():
            if name.encode() == value:
                return token
        raise UnknownTokenError(f"{short(text_or_bytes)} is not a single token")

    def decode_single_token_bytes(self, token: int) -> bytes:
        """Return the bytes of one id.

        >>> Tokenizer.train("aaabdaaabac", 259).decode_single_token_bytes(258)
        b'aaab'
        """
        try:
            return self._model.vocab[index(token)]
        except TypeError:
            raise ArgumentTypeError("token", token, "must be an integer") from None
        except KeyError:
            raise UnknownTokenError.of_id(token, self.max_token_value) from None

    def decode_tokens_bytes(self, tokens: Iterable[int]) -> list[bytes]:
        """Return the bytes of each id.

        >>> Tokenizer.train("aaabdaaabac", 259).decode_tokens_bytes([258, 100])
        [b'aaab', b'd']
        """
        try:
            return [self.decode_single_token_bytes(token) for token in tokens]
        except TypeError:
            check_ids(tokens)
            raise

    def decode_with_offsets(self, tokens: Iterable[int]) -> tuple[str, list[int]]:
        """Decode ids and return, for each id, the index of the character in which its bytes start.

        >>> Tokenizer.train("aaabdaaabac", 259).decode_with_offsets([258, 195, 169, 97])
        ('aaabéa', [0, 4, 4, 5])
        """
        values = self.decode_tokens_bytes(tokens)
        offsets = []
        characters_started = 0
        for value in values:
            starts_inside = value[0] & 0xC0 == 0x80
            offsets.append(max(0, characters_started - starts_inside))
            characters_started += sum(byte & 0xC0 != 0x80 for byte in value)
        return b"".join(values).decode("utf-8", "strict"), offsets

    def token_to_id(self, token: str) -> int | None:
        """Return the id of a token in its byte-level spelling, or None if there is no such token.

        >>> Tokenizer.train(" to to", 258).token_to_id("Ġto")
        257
        """
        found = self._model.found_tokens
        try:
            return found[token] if token in found else self._model.token_ids.get(from_byte_level(token) or b"")
        except TypeError:
            raise ArgumentTypeError("token", token, "must be a string") from None

    def id_to_token(self, id: int) -> str | None:
        """Return the byte-level spelling of a token, or None if there is no such id.

        >>> Tokenizer.train(" to to", 258).id_to_token(257)
        'Ġto'
        """
        check_integer("id", id)
        model = self._model
        if id in model.found_tokens.values():
            return model.vocab[id].decode()
        return to_byte_level(model.vocab[id]) if id in model.vocab else None

    def get_vocab(self, with_added_tokens: bool = True) -> dict[str, int]:
        """Return the ids of all tokens by their byte-level spelling.

        A stop word takes precedence over a merge with the same bytes. `with_added_tokens` includes special and
        added tokens, as they are.

        >>> Tokenizer.train(" to to", 258).get_vocab()["Ġto"]
        257
        """
        found: Mapping[str, int] = self._model.found_tokens if with_added_tokens else {}
        return {to_byte_level(value): token for value, token in self._model.token_ids.items()} | dict(found)

    def get_vocab_size(self, with_added_tokens: bool = True) -> int:
        """Return the number of tokens. `with_added_tokens` includes special and added tokens.

        >>> tokenizer = Tokenizer.train("aaabdaaabac", 260, special_tokens=["<eot>"])
        >>> tokenizer.get_vocab_size(), tokenizer.get_vocab_size(with_added_tokens=False)
        (260, 259)
        """
        model = self._model
        return len(model.vocab) - (0 if with_added_tokens else len(model.found_tokens))

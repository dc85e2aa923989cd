"""The names that users of tiktoken and of Hugging Face know, for what a tokenizer can do anyway."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import index

from .errors import listed, short
from .formats.huggingface import spelt, unspelt
from .loaded import Loaded
from .model import UnknownTokenError


class KnownNames:
    """What `Tokenizer` inherits."""

    _loaded: Loaded
    _name: str | None

    # tiktoken's

    @property
    def name(self) -> str:
        """The name of the file it was loaded from."""
        return self._name or "batchbpe"

    @property
    def max_token_value(self) -> int:
        """The largest id."""
        return self._loaded.model.n_vocab - 1

    @property
    def special_tokens_set(self) -> set[str]:
        """The special tokens."""
        return set(self._loaded.model.special_tokens)

    @property
    def eot_token(self) -> int:
        """The id of <|endoftext|>."""
        special_tokens = self._loaded.model.special_tokens
        if "<|endoftext|>" not in special_tokens:
            raise KeyError(f"there is no special token '<|endoftext|>', only {listed(special_tokens)}")
        return special_tokens["<|endoftext|>"]

    def is_special_token(self, token: int) -> bool:
        """Whether an id is that of a special token."""
        return token in self._loaded.model.special_tokens.values()

    def token_byte_values(self) -> list[bytes]:
        """Give the bytes of all tokens but the special ones, in their order as bytes."""
        return sorted(self._loaded.ids)

    def encode_single_token(self, text_or_bytes: str | bytes) -> int:
        """Give the id of a token by its text or bytes.

        >>> from batchbpe import Tokenizer
        >>> Tokenizer.train("aaabdaaabac", 259).encode_single_token("aaab")
        258
        """
        if not isinstance(text_or_bytes, str | bytes):
            raise TypeError(f"{short(text_or_bytes)} is no str or bytes")
        model = self._loaded.model
        if isinstance(text_or_bytes, str) and text_or_bytes in model.special_tokens:
            return model.special_tokens[text_or_bytes]
        value = text_or_bytes.encode() if isinstance(text_or_bytes, str) else text_or_bytes
        if value in self._loaded.ids:
            return self._loaded.ids[value]
        for name, token in model.special_tokens.items():
            if name.encode() == value:
                return token
        raise KeyError(f"there is no token {short(text_or_bytes)}: it is encoded as several")

    def decode_single_token_bytes(self, token: int) -> bytes:
        """Give the bytes of one id."""
        try:
            return self._loaded.model.vocab[index(token)]
        except KeyError:
            raise UnknownTokenError(token, self.max_token_value) from None

    def decode_tokens_bytes(self, tokens: Iterable[int]) -> list[bytes]:
        """Give the bytes of each id."""
        return [self.decode_single_token_bytes(token) for token in tokens]

    def decode_with_offsets(self, tokens: Iterable[int]) -> tuple[str, list[int]]:
        """Decode ids, and give for each one the place of the character that it begins in.

        >>> from batchbpe import Tokenizer
        >>> Tokenizer.train("aaabdaaabac", 259).decode_with_offsets([258, 195, 169, 97])
        ('aaabéa', [0, 4, 4, 5])
        """
        values = self.decode_tokens_bytes(tokens)
        offsets = []
        characters = 0  # begun so far
        for value in values:
            within = value[0] & 0xC0 == 0x80
            offsets.append(max(0, characters - within))
            characters += sum(byte & 0xC0 != 0x80 for byte in value)
        return b"".join(values).decode("utf-8", "strict"), offsets

    # Hugging Face's, whose tokens are spelt with a character for each byte

    def token_to_id(self, token: str) -> int | None:
        """Give the id of a token, spelt as byte-level BPE does, or None.

        >>> from batchbpe import Tokenizer
        >>> Tokenizer.train(" to to", 258).token_to_id("Ġto")
        257
        """
        special = self._loaded.model.special_tokens
        return special[token] if token in special else self._loaded.ids.get(unspelt(token) or b"")

    def id_to_token(self, id: int) -> str | None:
        """Give the token of an id, spelt as byte-level BPE does, or None."""
        model = self._loaded.model
        if self.is_special_token(id):
            return model.vocab[id].decode()
        return spelt(model.vocab[id]) if id in model.vocab else None

    def get_vocab(self, with_added_tokens: bool = True) -> dict[str, int]:
        """Give the ids of all tokens, spelt as byte-level BPE does; of two spelt alike, that of the stop word."""
        special: Mapping[str, int] = self._loaded.model.special_tokens if with_added_tokens else {}
        return {spelt(value): token for value, token in self._loaded.ids.items()} | dict(special)

    def get_vocab_size(self, with_added_tokens: bool = True) -> int:
        """Give the number of tokens."""
        model = self._loaded.model
        return len(model.vocab) - (0 if with_added_tokens else len(model.special_tokens))

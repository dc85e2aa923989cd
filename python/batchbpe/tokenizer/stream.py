"""`DecodeStream`: decode ids as a language model generates them, without cutting characters."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ..arguments import check_bool, check_string, is_index

if TYPE_CHECKING:
    from .codec import Codec


class DecodeStream:
    """Decodes ids step by step; see `Tokenizer.decode_stream`.

    A step that raises an error changes nothing. A stream must not be shared by threads.

    >>> stream = Tokenizer.train("aaabdaaabac", 259).decode_stream()
    >>> [stream.step(token) for token in (258, 195, 169, 195)], stream.finish()
    (['aaab', '', 'é', ''], '�')
    """

    def __init__(self, tokenizer: Codec, errors: str = "replace", *, skip_special_tokens: bool = False) -> None:
        """Start a text. The parameters are those of `Tokenizer.decode`."""
        check_string("errors", errors)
        codecs.lookup_error(errors)
        check_bool("skip_special_tokens", skip_special_tokens)
        self._decode_bytes: Callable[..., bytes] = tokenizer.decode_bytes
        self._skip = skip_special_tokens
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors)

    def step(self, tokens: int | Iterable[int]) -> str:
        """Return the text that one id, or several, complete: an empty string while a character is incomplete.

        >>> Tokenizer.train("aaabdaaabac", 259).decode_stream().step([258, 100])
        'aaabd'
        """
        ids = [tokens] if is_index(tokens) else tokens
        return self._decoder.decode(self._decode_bytes(ids, skip_special_tokens=self._skip))

    def finish(self) -> str:
        """Return the rest of the text, an incomplete character as `errors` says. The next step starts another text.

        >>> stream = Tokenizer.train("aaabdaaabac", 259).decode_stream("backslashreplace")
        >>> stream.step(195), stream.finish(), stream.step(169)
        ('', '\\\\xc3', '\\\\xa9')
        """
        try:
            return self._decoder.decode(b"", final=True)
        finally:
            self._decoder.reset()

"""The byte-level spelling of tokens that GPT-2 and Hugging Face use: one printable character per byte."""

from __future__ import annotations

_PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_OTHERS = sorted(set(range(256)) - set(_PRINTABLE))
_CHARACTERS = {byte: chr(byte) for byte in _PRINTABLE} | {byte: chr(0x100 + n) for n, byte in enumerate(_OTHERS)}
_BYTES = {character: byte for byte, character in _CHARACTERS.items()}


def to_byte_level(token: bytes) -> str:
    """Spell the bytes of a token as byte-level BPE does.

    >>> to_byte_level(" café".encode())
    'ĠcafÃ©'
    """
    return "".join(map(_CHARACTERS.__getitem__, token))


def from_byte_level(token: str) -> bytes | None:
    """Return the bytes of a byte-level spelling, or None if the string is not such a spelling.

    >>> from_byte_level("ĠcafÃ©").decode(), from_byte_level("a b")
    (' café', None)
    """
    try:
        return bytes(map(_BYTES.__getitem__, token))
    except KeyError:
        return None

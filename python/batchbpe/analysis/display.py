"""Render the bytes of tokens as text for people."""

from __future__ import annotations

MAX_BYTES = 60
"""Maximum number of bytes of a token that `quoted_token` displays."""


def quoted_token(token: bytes) -> str:
    """Return a token in quotes, on one line; tokens longer than 60 bytes are truncated.

    >>> quoted_token(b" the"), quoted_token(b"\\n\\xff"), quoted_token("né".encode())
    ("' the'", "'\\\\n\\\\xff'", "'né'")
    """
    if len(token) > MAX_BYTES:
        return quoted_token(token[:MAX_BYTES]) + "…"
    try:
        return repr(token.decode("utf-8"))
    except UnicodeDecodeError:
        return repr(token)[1:]


def printable(token: bytes, keep: str = "\n\t") -> str:
    """Return bytes as text in which invalid UTF-8 and unprintable characters are escaped.

    `keep` lists unprintable characters that are not escaped.

    >>> printable(b" a\\xc3"), printable(b"\\x00\\n"), printable(b"a\\n", keep="")
    (' a\\\\xc3', '\\\\x00\\n', 'a\\\\n')
    """
    text = token.decode("utf-8", "surrogateescape")
    return "".join(c if c.isprintable() or c in keep else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # `surrogateescape` maps invalid bytes to these
        return f"\\x{code - 0xDC00:02x}"
    return repr(character)[1:-1]

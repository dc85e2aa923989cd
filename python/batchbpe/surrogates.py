"""Strings of Python that hold surrogates, which UTF-8 cannot encode."""

from __future__ import annotations


def surrogate_error(error: UnicodeEncodeError) -> UnicodeEncodeError:
    """Say what to do about a str that holds a lone surrogate, which no file and no model can."""
    mend = "text.encode('utf-16', 'surrogatepass').decode('utf-16', 'replace')"
    reason = f"a lone surrogate is no character; {mend} puts U+FFFD in its place"
    return UnicodeEncodeError(error.encoding, error.object, error.start, error.end, reason)


def without_surrogates(text: str) -> str:
    """Put U+FFFD in place of lone surrogates.

    >>> without_surrogates("a\\ud800")
    'a\ufffd'
    """
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

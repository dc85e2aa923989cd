"""Whether bytes are text."""


def is_utf8(value: bytes) -> bool:
    """Return whether bytes are valid UTF-8.

    >>> is_utf8("é".encode()), is_utf8("é".encode()[:1]), is_utf8("\\ud800".encode("utf-8", "surrogatepass"))
    (True, False, False)
    """
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True

"""JSON files with a checksum, so that what is read back is what was written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .atomic import replacing


def checksum_of(data: bytes) -> str:
    """Give the checksum of a file's content."""
    return hashlib.sha256(data).hexdigest()


def checksum(fields: Mapping[str, Any]) -> str:
    """Give a checksum of what JSON can say, whatever its order and spaces.

    >>> checksum({"a": 1, "b": 2}) == checksum({"b": 2, "a": 1}) != checksum({"a": 1, "b": 3})
    True
    """
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    return checksum_of(text.encode("ascii"))


def sealed(fields: Mapping[str, Any]) -> bytes:
    """Give fields as JSON with a checksum of them."""
    fields = json.loads(json.dumps(fields))  # as it will be read
    text = json.dumps({**fields, "checksum": checksum(fields)}, indent=1, ensure_ascii=False) + "\n"
    return text.encode("utf-8", "surrogatepass")  # names of files may be any bytes


def save_sealed(fields: Mapping[str, Any], path: Path) -> None:
    """Write fields as JSON with a checksum, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_bytes(sealed(fields))


def load_sealed(path: Path, version: int, remedy: str) -> dict[str, Any]:
    """Read what `save_sealed` wrote; an error says what is wrong with the file, and gives the remedy."""
    try:
        fields = json.loads(path.read_bytes())
        known = fields.pop("checksum", None)
        is_whole = known == checksum(fields)
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise ValueError(f"{path} is damaged: it is not valid JSON; {remedy}") from None
    if known is None:
        raise ValueError(f"{path} has no checksum: it is damaged, or from another version of batchbpe; {remedy}")
    if not is_whole:
        raise ValueError(f"{path} is damaged (checksum); {remedy}")
    if fields.get("version") != version:
        raise ValueError(f"{path} is from another version of batchbpe; {remedy}")
    return fields  # type: ignore[no-any-return]

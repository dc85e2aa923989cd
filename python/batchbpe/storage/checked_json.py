"""JSON files with a checksum, so that a damaged file is an error."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import DataError, opening, parse_json
from .atomic import replacing


def checksum_of(data: bytes) -> str:
    """Return the checksum of a file's content."""
    return hashlib.sha256(data).hexdigest()


def checksum(fields: Mapping[str, Any]) -> str:
    """Return a checksum of JSON data that does not depend on the order of fields or on whitespace.

    >>> checksum({"a": 1, "b": 2}) == checksum({"b": 2, "a": 1}) != checksum({"a": 1, "b": 3})
    True
    """
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    return checksum_of(text.encode("ascii"))


def sealed(fields: Mapping[str, Any]) -> bytes:
    """Return fields as JSON with their checksum."""
    fields = json.loads(json.dumps(fields))  # as they will be read back
    text = json.dumps({**fields, "checksum": checksum(fields)}, indent=1, ensure_ascii=False) + "\n"
    return text.encode("utf-8", "surrogatepass")  # file names may contain any bytes


def save_sealed(fields: Mapping[str, Any], path: Path) -> None:
    """Write fields as JSON with a checksum, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_bytes(sealed(fields))


def load_sealed(path: Path, version: int, remedy: str) -> dict[str, Any]:
    """Load fields that `save_sealed` wrote. Errors about a damaged or outdated file end in `remedy`."""
    try:
        with opening(path):
            fields = parse_json(path.read_bytes())
        expected = fields.pop("checksum", None)
        is_intact = expected == checksum(fields)
    except (ValueError, TypeError, AttributeError):
        raise DataError("the file is damaged: invalid JSON", where=str(path), remedy=remedy) from None
    if expected is None:
        reason = "no checksum: the file is damaged, or from another version of batchbpe"
        raise DataError(reason, where=str(path), remedy=remedy)
    if not is_intact:
        raise DataError("the file is damaged (wrong checksum)", where=str(path), remedy=remedy)
    if fields.get("version") != version:
        raise DataError("the file is from another version of batchbpe", where=str(path), remedy=remedy)
    return fields  # type: ignore[no-any-return]

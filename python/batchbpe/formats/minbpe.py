"""minbpe's `.model` file. The format of the paper's program differs only in the first line.

Line 1 is the version, line 2 the pattern, line 3 the number of special tokens. Then there is one line for each special
token, with its text and id, and one line for each merge, with two ids. Merges have the ids 256, 257, … in file order.
"""

from __future__ import annotations

from pathlib import Path

from ..errors import DataError, short
from ..model import Model
from ..patterns import Split
from ..storage.atomic import replacing
from .carried import warn_not_written
from .file_errors import locate_errors
from .portability import WHOLE_TEXT, check_portable
from .unsupported import check_bare_split, check_supported

MINBPE, PAPER = VERSIONS = ("minbpe v1", "BatchBPE v1")
"""The first line of a file."""
SUPPORTED: frozenset[str] = frozenset()


def is_format(content: bytes) -> bool:
    """Return whether the content of a file starts with one of the versions."""
    return content.startswith(tuple(version.encode() for version in VERSIONS))


def load(path: Path) -> Model:
    """Read a model. Errors name the file and the line."""
    with locate_errors(path):
        return _parse(path.read_bytes())


def _parse(content: bytes) -> Model:
    lines = content.decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
    if lines[-1]:
        raise DataError(f"incomplete line {short(lines[-1])}; the file is truncated", where=f"line {len(lines)}")
    if lines[0] not in VERSIONS:
        raise DataError(f"expected {' or '.join(VERSIONS)}, got {short(lines[0])}", where="line 1")
    body = list(enumerate(lines, start=1))[1:-1]
    if len(body) < 2 or not body[1][1].isdecimal() or int(body[1][1]) > len(body) - 2:
        raise DataError("expected the number of special tokens that follow; the file may be truncated", where="line 3")
    first_merge = 2 + int(body[1][1])
    special_tokens: dict[str, int] = {}
    for number, line in body[2:first_merge]:
        name, _, token = line.rpartition(" ")
        if not name or not token.isdecimal():
            raise DataError(f"expected a special token and its id, got {short(line)}", where=f"line {number}")
        if name in special_tokens:
            raise DataError(f"duplicate special token {short(name)}", where=f"line {number}")
        special_tokens[name] = int(token)
    merges: dict[tuple[int, int], int] = {}
    for number, line in body[first_merge:]:
        parts = line.split(" ")
        if len(parts) != 2 or not all(part.isdecimal() for part in parts):
            raise DataError(f"expected two ids, got {short(line)}", where=f"line {number}")
        pair = int(parts[0]), int(parts[1])
        if pair in merges:
            raise DataError(f"{short(line)} repeats the pair of token {merges[pair]}", where=f"line {number}")
        merges[pair] = 256 + len(merges)
    # minbpe's BasicTokenizer writes an empty pattern.
    return Model(Split(body[0][1] or WHOLE_TEXT), merges=merges, special_tokens=special_tokens)


def save(model: Model, path: Path, *, version: str = MINBPE, allow_inexact: bool = False) -> None:
    """Write a model. Raise if the format cannot represent it, even if the export may be inexact."""
    check_supported(model, version, SUPPORTED)
    check_bare_split(model.split, version)
    for number, ((first, last), token) in enumerate(model.merges.items()):
        if max(first, last) >= token:
            reason = f"merge {number} makes token {token} from {first} and {last}, but {version} needs tokens in order"
            raise DataError(reason, remedy="choose another format")
    if model.byte_ids != tuple(range(256)) or [*model.merges.values()] != [*range(256, 256 + len(model.merges))]:
        raise DataError(
            f"{version} does not store ids: bytes must have ids 0 to 255, and merges ids from 256 in order",
            remedy="choose another format",
        )
    pattern = "" if model.pattern == WHOLE_TEXT else model.pattern
    check_portable(pattern or model.pattern, version)
    if pattern.strip() != pattern or "\n" in pattern:
        raise DataError(
            f"{version} stores the pattern on one line without whitespace at its ends, got {short(pattern)}",
            remedy="rewrite the pattern or choose another format",
        )
    for name in model.special_tokens:
        if name.split() != [name]:
            raise DataError(f"{version} does not support whitespace in special tokens", remedy=f"rename {short(name)}")
    # minbpe matches special tokens in file order, so a token must come before its prefixes.
    special = sorted(model.special_tokens.items(), key=lambda item: (-len(item[0]), item[1]))
    lines = [version, pattern, str(len(special)), *(f"{name} {token}" for name, token in special)]
    lines += (f"{first} {last}" for first, last in model.merges)
    warn_not_written(model, f"{version} file")
    with replacing(path) as temporary:
        temporary.write_bytes("".join(f"{line}\n" for line in lines).encode())

"""The `.model` of minbpe, and that of the paper's program, which differs in its first line.

Line 1 is the version, line 2 the pattern, line 3 the number of special tokens; then a line for each of these, its text
and its id, and one for each merge, the two ids. The merges have the ids from 256 on, in their order.
"""

from __future__ import annotations

from pathlib import Path

from ..errors import short
from ..model import Model
from ..storage.atomic import replacing
from .dialects import check_portable

VERSIONS = ("minbpe v1", "BatchBPE v1")
WHOLE = r"[\s\S]+"
"""What minbpe's BasicTokenizer does, which has no pattern."""


def load(path: Path) -> Model:
    """Read a model; an error names the file and the line."""
    try:
        return _parse(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _parse(content: bytes) -> Model:
    lines = content.decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
    if lines[-1]:
        raise ValueError(f"line {len(lines)}, {short(lines[-1])}, has no end: the file has been cut off")
    if lines[0] not in VERSIONS:
        raise ValueError(f"its first line is {short(lines[0])}, not {' or '.join(VERSIONS)}")
    body = list(enumerate(lines, start=1))[1:-1]
    if len(body) < 2 or not body[1][1].isdecimal() or int(body[1][1]) > len(body) - 2:
        raise ValueError("line 3 is not the number of special tokens that follow it; the file has been cut off")
    first_merge = 2 + int(body[1][1])
    special_tokens: dict[str, int] = {}
    for number, line in body[2:first_merge]:
        name, _, token = line.rpartition(" ")
        if not name or not token.isdecimal() or name in special_tokens:
            raise ValueError(f"line {number}: {short(line)} is no special token of its own and its id")
        special_tokens[name] = int(token)
    merges: dict[tuple[int, int], int] = {}
    for number, line in body[first_merge:]:
        parts = line.split(" ")
        if len(parts) != 2 or not all(part.isdecimal() for part in parts):
            raise ValueError(f"line {number}: {short(line)} are not the ids of two tokens")
        pair = int(parts[0]), int(parts[1])
        if pair in merges:
            raise ValueError(f"line {number}: {short(line)} repeats the merge to {merges[pair]}")
        merges[pair] = 256 + len(merges)
    return Model(pattern=body[0][1] or WHOLE, merges=merges, special_tokens=special_tokens)


def save(model: Model, path: Path, version: str = VERSIONS[0]) -> None:
    """Write a model, if this format can hold it."""
    if model.stop_words:
        raise ValueError(
            f"{version} has no place for stop words: train with stop_list_size=0, or choose another format"
        )
    if model.byte_ids != tuple(range(256)) or [*model.merges.values()] != [*range(256, 256 + len(model.merges))]:
        raise ValueError(
            f"{version} has no place for ids: bytes must have those from 0 to 255, merges those from 256 on; choose "
            "another format"
        )
    pattern = "" if model.pattern == WHOLE else model.pattern
    check_portable(pattern or model.pattern, version)
    if pattern.strip() != pattern or "\n" in pattern:
        raise ValueError(f"{version} has the pattern on a line, stripped of white space: {short(pattern)} does not fit")
    for name in model.special_tokens:
        if len(name.split()) != 1 or name.split() != [name]:
            raise ValueError(f"{version} has no place for white space in a special token: rename {short(name)}")
    # Where one special token begins another, minbpe takes what comes first.
    special = sorted(model.special_tokens.items(), key=lambda item: (-len(item[0]), item[1]))
    lines = [version, pattern, str(len(special)), *(f"{name} {token}" for name, token in special)]
    lines += (f"{first} {last}" for first, last in model.merges)
    with replacing(path) as temporary:
        temporary.write_bytes("".join(f"{line}\n" for line in lines).encode())

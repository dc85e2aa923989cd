"""The own file of a model: JSON, a merge a line. It says everything that `Model` says; see docs/formats.md."""

from __future__ import annotations

import json
import os
import unicodedata
from pathlib import Path
from typing import Any

from ..errors import short
from ..model import Model
from ..storage.atomic import replacing

FORMAT = "batchbpe"
IN_FOLDER = "batchbpe.model"
"""Its name in a folder for transformers, as tokenization_batchbpe.py has it."""
VERSION = 1


def save(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model, whole or not at all."""
    with replacing(path) as temporary:
        write(model, temporary)


def write(model: Model, path: Path) -> None:
    """Write a model into a file."""
    fields = {
        "format": FORMAT,
        "version": VERSION,
        "training": dict(model.training),
        "pattern": model.pattern,
        "special_tokens": dict(model.special_tokens),
        "byte_ids": list(model.byte_ids),
        "stop_words": {word.decode("utf-8", "surrogateescape"): token for word, token in model.stop_words.items()},
    }
    merges = ",\n".join(f"[{first},{last},{token}]" for (first, last), token in model.merges.items())
    head = "".join(f"{json.dumps(name)}: {json.dumps(value)},\n" for name, value in fields.items())
    path.write_text(f'{{\n{head}"merges": [\n{merges}\n]\n}}\n', encoding="utf-8")


def load(path: str | os.PathLike[str]) -> Model:
    """Read a model; an error names the file and the field that is wrong."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no model file {path}")
    try:
        fields = json.loads(path.read_bytes(), object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is no model file of batchbpe, or a damaged one: {error}") from None
    try:
        return _model(fields)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {short(key)} is there twice")
        found[key] = value
    return found


def _model(fields: Any) -> Model:
    if not isinstance(fields, dict) or fields.get("format") != FORMAT:
        raise ValueError(f'this is no model file of batchbpe: it has no "format": "{FORMAT}"')
    if type(fields.get("version")) is not int or fields["version"] != VERSION:
        raise ValueError(
            f"version is {short(fields.get('version'))}, but this program reads {VERSION}; use a newer one"
        )

    def field(name: str, kind: type) -> Any:
        if name not in fields:
            raise ValueError(f"the field {short(name)} is missing; the file is damaged")
        if not isinstance(fields[name], kind):
            raise ValueError(f"the field {short(name)} is a {type(fields[name]).__name__}, not a {kind.__name__}")
        return fields[name]

    merges: dict[tuple[int, int], int] = {}
    for rank, row in enumerate(field("merges", list)):
        if not isinstance(row, list) or len(row) != 3 or not all(type(token) is int for token in row):
            raise ValueError(f"merge {rank} is {short(row)}, not [first, last, id]")
        if (row[0], row[1]) in merges:
            raise ValueError(f"merge {rank}, {short(row)}, repeats the merge to {merges[row[0], row[1]]}")
        merges[row[0], row[1]] = row[2]
    stop_words: dict[bytes, int] = {}
    for word, token in field("stop_words", dict).items():
        value = word.encode("utf-8", "surrogateescape")
        if value in stop_words:
            raise ValueError(f"the stop word {short(word)} is there twice, as {stop_words[value]} and {token}")
        stop_words[value] = token
    return Model(
        pattern=field("pattern", str),
        merges=merges,
        stop_words=stop_words,
        special_tokens=field("special_tokens", dict),
        byte_ids=tuple(field("byte_ids", list)),
        training=field("training", dict),
    )


def write_vocab(model: Model, path: Path) -> None:
    """Write every token in words, for people to read: what it is made of, its text, its id."""
    parts = {token: pair for pair, token in model.merges.items()}
    with path.open("w", encoding="utf-8") as file:
        for token, value in model.vocab.items():
            made = "".join(f"[{_readable(model.vocab[part])}]" for part in parts.get(token, ()))
            file.write(f"{made} -> [{_readable(value)}] {token}\n" if made else f"[{_readable(value)}] {token}\n")


def _readable(token: bytes) -> str:
    """A token as text that stays on its line.

    >>> _readable(b"a\\n\\xff")
    'a\\\\u000a\\ufffd'
    """
    text = token.decode("utf-8", "replace")
    return "".join(f"\\u{ord(c):04x}" if unicodedata.category(c)[0] == "C" else c for c in text)

"""The native model file: JSON with one merge per line. It stores everything in `Model`.

See https://batchbpe.github.io/batchbpe/formats.html#models-namemodel.
"""

from __future__ import annotations

import json
import os
import re
import unicodedata
from pathlib import Path
from typing import Any

from ..errors import DataError, parse_json, short, with_unique_keys
from ..model import Model
from ..patterns import Split
from ..storage.atomic import replacing
from .carried import check_carried
from .file_errors import check_version, locate_errors, not_found

FORMAT = "batchbpe"
IN_FOLDER = "batchbpe.model"
"""Name of the file in a transformers folder."""
ADDED_IN = {"phrases": 2, "added_tokens": 3, "flags": 4, "decode_only": 4, "carried": 4, "hidden": 5}
"""Fields that version 1 of the format does not have, and the version that added each of them."""
VERSIONS = (1, 2, 3, 4, 5)
_JSON_NAMES: dict[Any, str] = {dict: "an object", list: "an array", (str, dict): "a string or an object"}


def is_format(content: bytes) -> bool:
    """Return whether the content of a file looks like a native model file."""
    return bool(re.match(rb"\s*\{", content) and re.search(rb'"format"\s*:\s*"batchbpe"', content))


def save(model: Model, path: str | os.PathLike[str], *, allow_inexact: bool = False) -> None:
    """Write a model, which is always exact. An existing file is replaced when the new one is complete."""
    with replacing(path) as temporary:
        temporary.write_text(render(model), encoding="utf-8", newline="\n")


def render(model: Model) -> str:
    """Return the content of a model file."""
    needed = [since for name, since in ADDED_IN.items() if getattr(model, name)]
    version = max([1, *needed, *([4] if _is_irregular(model) else [])])
    fields = {
        "format": FORMAT,
        "version": version,
        "training": dict(model.training),
        "pattern": model.split.to_json(),
        "special_tokens": dict(model.special_tokens),
        "added_tokens": dict(model.added_tokens),
        "flags": {name: sorted(flags) for name, flags in model.flags.items()},
        "byte_ids": list(model.byte_ids),
        "stop_words": {word.decode("utf-8", "surrogateescape"): token for word, token in model.stop_words.items()},
        "decode_only": [
            [token, value.decode("utf-8", "surrogateescape")] for token, value in model.decode_only.items()
        ],
        "carried": dict(model.carried),
        "hidden": sorted(model.hidden),
    }
    fields = {name: value for name, value in fields.items() if ADDED_IN.get(name, 1) <= version}
    head = "".join(f"{json.dumps(name)}: {json.dumps(value)},\n" for name, value in fields.items())
    merges = ",\n".join(f"[{first},{last},{token}]" for (first, last), token in model.merges.items())
    phrases = ",\n".join(f"[{','.join(map(str, (*parts, token)))}]" for parts, token in model.phrases.items())
    tail = f',\n"phrases": [\n{phrases}\n]' if version >= ADDED_IN["phrases"] else ""
    return f'{{\n{head}"merges": [\n{merges}\n]{tail}\n}}\n'


def _is_irregular(model: Model) -> bool:
    """Return whether a model has something that versions before 4 do not have, in a field that they do have."""
    made = {*model.byte_ids}
    for (first, last), token in model.merges.items():
        if first not in made or last not in made:
            return True  # a merge uses a token that a later merge makes
        made.add(token)
    return None in made or not isinstance(model.split.to_json(), str)


def load(path: str | os.PathLike[str]) -> Model:
    """Read a model. Errors name the file and the field.

    >>> import tempfile
    >>> model = Model(split=r"\\w+", merges={(97, 97): 256})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, f"{folder}/a.model")
    ...     load(f"{folder}/a.model") == model
    True
    """
    path = Path(path)
    if not path.is_file():
        raise not_found(path)
    with locate_errors(path):
        problem = "not a batchbpe model file, or damaged: "
        return _parse(parse_json(path.read_bytes(), problem, with_unique_keys))


def _parse(fields: Any) -> Model:
    if not isinstance(fields, dict) or fields.get("format") != FORMAT:
        raise DataError(f'not a batchbpe model file: expected an object with "format": "{FORMAT}"')
    version: Any = fields.get("version")
    check_version(version, *VERSIONS)
    for name, since in ADDED_IN.items():
        if version < since and fields.get(name):
            reason = f"version must be at least {since} in a file with {name}, got {version}"
            raise DataError(reason, remedy="the file is damaged")
    stop_words: dict[bytes, int] = {}
    for word, token in _field(fields, "stop_words", dict).items():
        value = _bytes("stop word", word)
        if value in stop_words:
            raise DataError(f"stop word {short(word)} occurs twice, with ids {stop_words[value]} and {short(token)}")
        stop_words[value] = token

    def optional(name: str, kind: type) -> Any:
        return _field(fields, name, kind) if version >= ADDED_IN[name] else kind()

    model = Model(
        split=Split.from_json(_field(fields, "pattern", (str, dict))),
        merges=_parse_rows(fields, "merges"),
        stop_words=stop_words,
        special_tokens=_field(fields, "special_tokens", dict),
        byte_ids=tuple(_field(fields, "byte_ids", list)),
        training=_field(fields, "training", dict),
        phrases=_parse_rows(fields, "phrases") if version >= ADDED_IN["phrases"] else {},
        added_tokens=optional("added_tokens", dict),
        flags=_parse_flags(optional("flags", dict)),
        decode_only=_parse_decode_only(optional("decode_only", list)),
        carried=optional("carried", dict),
        hidden=_parse_hidden(optional("hidden", list)),
    )
    check_carried(model)
    return model


def _bytes(kind: str, text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise DataError(f"{kind} {short(text)} has a surrogate at character {error.start}") from None


def _parse_flags(flags: dict[str, Any]) -> dict[str, frozenset[str]]:
    for name, given in flags.items():
        if not isinstance(given, list) or not all(isinstance(flag, str) for flag in given):
            raise DataError(f"must be an array of strings, got {short(given)}", where=f"flags of {short(name)}")
    return {name: frozenset(given) for name, given in flags.items()}


def _parse_decode_only(rows: list[Any]) -> dict[int, bytes]:
    tokens: dict[int, bytes] = {}
    for row in rows:
        if not isinstance(row, list) or [*map(type, row)] != [int, str]:
            raise DataError(f"expected an id and a string, got {short(row)}", where='field "decode_only"')
        if row[0] in tokens:
            raise DataError(f"id {row[0]} occurs twice", where='field "decode_only"')
        tokens[row[0]] = _bytes("decode-only token", row[1])
    return tokens


def _parse_hidden(ids: list[Any]) -> frozenset[int]:
    hidden: set[int] = set()
    for token in ids:
        if type(token) is not int:
            raise DataError(f"expected an id, got {short(token)}", where='field "hidden"')
        if token in hidden:
            raise DataError(f"id {token} occurs twice", where='field "hidden"')
        hidden.add(token)
    return frozenset(hidden)


def _parse_rows(fields: dict[str, Any], name: str) -> dict[Any, int]:
    kind, expected, parts_of = {
        "merges": ("merge", "[first, last, id] with integers", "the pair of token"),
        "phrases": ("phrase", "the ids of two or more tokens and an id, all integers", "the tokens of phrase"),
    }[name]
    tokens: dict[tuple[int, ...], int] = {}
    for number, row in enumerate(_field(fields, name, list)):
        is_row = isinstance(row, list) and (len(row) == 3 or (len(row) > 3 and name == "phrases"))
        if not is_row or {*map(type, row)} != {int}:
            raise DataError(f"expected {expected}, got {short(row)}", where=f"{kind} {number}")
        parts = tuple(row[:-1])
        if parts in tokens:
            raise DataError(f"{short(row)} repeats {parts_of} {tokens[parts]}", where=f"{kind} {number}")
        tokens[parts] = row[-1]
    return tokens


def _field(fields: dict[str, Any], name: str, kind: type | tuple[type, ...]) -> Any:
    if name not in fields:
        raise DataError(f'field "{name}" is missing', remedy="the file is damaged")
    if not isinstance(fields[name], kind):
        raise DataError(f"must be {_JSON_NAMES[kind]}, got {short(fields[name])}", where=f'field "{name}"')
    return fields[name]


def write_vocab(model: Model, path: Path) -> None:
    """Write a human-readable list of tokens: the parts that were merged, the text and the id."""
    parts: dict[int, tuple[int, ...]] = {token: pair for pair, token in model.merges.items()}
    parts |= {token: phrase for phrase, token in model.phrases.items()}
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for token, value in model.vocab.items():
            merged = "".join(f"[{_readable(model.vocab_with_hidden[part])}]" for part in parts.get(token, ()))
            file.write(f"{merged} -> [{_readable(value)}] {token}\n" if merged else f"[{_readable(value)}] {token}\n")


def _readable(token: bytes) -> str:
    """Return a token as text on one line, with control characters escaped."""
    text = token.decode("utf-8", "replace")
    return "".join(f"\\u{ord(c):04x}" if unicodedata.category(c)[0] == "C" else c for c in text)

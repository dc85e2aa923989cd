"""Mistral's `tekken.json`: tokens with their ranks, the pattern, and special tokens with the lowest ids.

`config` has the pattern and two sizes, `vocab` a list of objects with `rank` and `token_bytes` (base64), and
`special_tokens` a list of objects with `rank` and `token_str`. The id of a special token is its rank, and the id of any
other token is its rank plus the number of special tokens.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from .._core import MAX_ID
from ..errors import DataError, Message, Setting, parse_json, short, warn
from ..model import Model
from ..storage.atomic import replacing
from . import tiktoken
from .carried import warn_not_written
from .file_errors import locate_errors
from .portability import check_not_empty
from .unsupported import check_bare_split, check_supported

SUPPORTED = frozenset({"stop_words"})
VERSION = "v3"
"""The version written for models that were not loaded from such a file. The oldest one, which needs no other fields."""
_FORMER_SPECIAL_TOKENS = (
    "<unk> <s> </s> [INST] [/INST] [AVAILABLE_TOOLS] [/AVAILABLE_TOOLS] [TOOL_RESULTS] [/TOOL_RESULTS] [TOOL_CALLS] "
    "[IMG] <pad> [IMG_BREAK] [IMG_END] [PREFIX] [MIDDLE] [SUFFIX] [SYSTEM_PROMPT] [/SYSTEM_PROMPT] [TOOL_CONTENT]"
)
"""The special tokens of files up to version v7 that list none."""
_OTHER_PARTS = ("image", "audio", "multimodal", "model_settings_builder", "version", "type")
_REMEDY: Message = ("use ", Setting("format", "batchbpe"), " or ", Setting("format", "huggingface"))


def is_format(content: bytes) -> bool:
    """Return whether the content of a file looks like a tekken.json."""
    keys = (rb'"default_num_special_tokens"\s*:', rb'"token_bytes"\s*:')
    return bool(re.match(rb"\s*\{", content)) and all(re.search(key, content) for key in keys)


def load(path: Path) -> Model:
    """Read a file. Tokens that its configuration does not use are ignored, with a warning."""
    with locate_errors(path):
        return _parse(parse_json(path.read_bytes(), "not a valid tekken.json: "), path)


def _parse(fields: Any, path: Path) -> Model:
    config = _field(fields, "config", dict)
    n_special, n_all = (_field(config, f"default_{name}", int) for name in ("num_special_tokens", "vocab_size"))
    vocab = _field(fields, "vocab", list)
    size = n_all - n_special
    if not 0 <= n_special <= n_all or size > len(vocab):
        reason = (
            f"default_vocab_size ({n_all}) must be at least default_num_special_tokens ({n_special}), and at most that "
            f"and the {len(vocab)} tokens of vocab"
        )
        raise DataError(reason, where="config")
    if n_all > MAX_ID:
        raise DataError(f"default_vocab_size must be at most {MAX_ID}, got {n_all}", where="config")
    special = _special_tokens(fields, n_special, config.get("version"))
    if size < len(vocab):
        warn(f"{path}: ignored the last {len(vocab) - size:,} tokens, which default_vocab_size leaves out")
    ranks: dict[bytes, int] = {}
    for rank, entry in enumerate(vocab[:size]):
        try:
            token = base64.b64decode(entry["token_bytes"], validate=True)
        except (TypeError, KeyError, ValueError, binascii.Error):
            raise DataError(
                f"expected token_bytes in base64, got {short(entry)}", where=f"vocab, token {rank}"
            ) from None
        if entry.get("rank") != rank:
            raise DataError(f"expected the rank {rank}, got {short(entry.get('rank'))}", where=f"vocab, token {rank}")
        if ranks.setdefault(token, rank + len(special)) != rank + len(special):
            raise DataError(f"{short(token)} is listed twice", where=f"vocab, token {rank}")
    names = [name for name, _ in special]
    model = tiktoken.from_ranks(ranks, _field(config, "pattern", str), {name: id for id, name in enumerate(names)})
    others = {name: fields[name] for name in _OTHER_PARTS if fields.get(name) is not None}
    printed = [name for name, is_control in special if not is_control]
    part = {"config": {"version": config.get("version")}, **others, **({"printed": printed} if printed else {})}
    return replace(model, carried={"tekken": part})


def _special_tokens(fields: Mapping[str, Any], number: int, version: Any) -> list[tuple[str, bool]]:
    """Return the names of the special tokens in the order of their ids, and whether they are control tokens."""
    entries = fields.get("special_tokens")
    if entries is None:
        entries = [{"rank": rank, "token_str": name} for rank, name in enumerate(_FORMER_SPECIAL_TOKENS.split())]
        if version not in ("v1", "v2", "v3", "v7"):
            raise DataError(f"a file of version {short(version)} must have special_tokens")
    if not isinstance(entries, list) or len(entries) > number:
        raise DataError(f"must be an array of at most {number} tokens", where="special_tokens")
    special: list[tuple[str, bool]] = []
    for rank, entry in enumerate(entries):
        if not isinstance(entry, dict) or entry.get("rank") != rank or not isinstance(entry.get("token_str"), str):
            raise DataError(f"expected token_str and the rank {rank}, got {short(entry)}", where="special_tokens")
        special.append((entry["token_str"], bool(entry.get("is_control", True))))
    special += ((f"<SPECIAL_{rank}>", True) for rank in range(len(special), number))  # as mistral-common names them
    names = {name for name, _ in special}
    if len(names) < len(special):
        raise DataError("a special token is listed twice", where="special_tokens")
    return special


def _field(fields: Any, name: str, kind: type) -> Any:
    value = fields.get(name) if isinstance(fields, dict) else None
    if type(value) is not kind:
        names = {dict: "an object", list: "an array", int: "an integer", str: "a string"}
        raise DataError(f"{name} must be {names[kind]}, got {short(value)}")
    return value


def save(model: Model, path: Path, *, allow_inexact: bool = False) -> None:
    """Write a file. Raise if mistral-common would encode differently, even if the export may be inexact."""
    fields = to_json(model)
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(fields, indent=1, ensure_ascii=False), encoding="utf-8", newline="\n")


def to_json(model: Model) -> dict[str, Any]:
    """Return the content of a tekken.json.

    >>> special = {"<s>": 0, "</s>": 1}
    >>> model = Model(r"\\w+", {(99, 100): 258}, byte_ids=tuple(range(2, 258)), special_tokens=special)
    >>> to_json(model)["vocab"][256]
    {'rank': 256, 'token_bytes': 'YWI=', 'token_str': 'ab'}
    """
    check_supported(model, "tekken.json", SUPPORTED, _REMEDY)
    check_bare_split(model.split, "tekken.json", _REMEDY)
    check_not_empty(model.pattern, "mistral-common")
    special = sorted(model.special_tokens, key=model.special_tokens.__getitem__)
    ranks = {token: id - len(special) for token, id in tiktoken.ranks_of(model, remedy=_REMEDY).items()}
    tokens = sorted(ranks, key=ranks.__getitem__)
    numbers = [model.special_tokens[name] for name in special] + [ranks[token] for token in tokens]
    if numbers != [*range(len(special)), *range(len(tokens))] or tokens[:256] != [bytes([byte]) for byte in range(256)]:
        raise DataError(
            "tekken.json does not store ids: special tokens must have the lowest ids, then the bytes in order, then "
            "other tokens, without gaps",
            remedy=(
                *_REMEDY,
                ", or train with a ",
                Setting("base"),
                " that has no merges, and whose special tokens have the lowest ids",
            ),
        )
    carried = dict(model.carried.get("tekken", {}))
    warn_not_written(model, "tekken.json", ["tekken"])
    printed = carried.pop("printed", [])
    config = {
        "pattern": model.pattern,
        "num_vocab_tokens": len(tokens),
        "default_vocab_size": len(special) + len(tokens),
        "default_num_special_tokens": len(special),
        "version": VERSION,
    }
    return {
        **carried,
        "config": config | carried.get("config", {}),
        "vocab": [
            {"rank": rank, "token_bytes": base64.b64encode(token).decode(), "token_str": _text(token)}
            for rank, token in enumerate(tokens)
        ],
        "special_tokens": [
            {"rank": rank, "token_str": name, "is_control": name not in printed} for rank, name in enumerate(special)
        ],
    }


def _text(token: bytes) -> str | None:
    try:
        return token.decode()
    except UnicodeDecodeError:
        return None

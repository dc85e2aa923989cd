"""GGUF, the file format of llama.cpp: writing a file with only a vocabulary, and reading the vocabulary of any file.

The tokens are listed by id, in byte-level spelling; special and added tokens as text. The file names a pre-tokenizer
instead of storing a pattern (see `pre_tokenizers`). Special tokens are control tokens, added tokens are user-defined.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import DataError, Message, Setting, plural, short, warn
from ..model import Model
from ..storage.atomic import replacing
from . import gguf_metadata as metadata
from .byte_level import from_byte_level, to_byte_level
from .carried import warn_not_written
from .file_errors import locate_errors
from .huggingface import with_added
from .names import check_distinct, check_names, ids_by_name, unmerged_token
from .placeholders import unused_tokens
from .post_processor import wrapping_of
from .pre_tokenizers import KNOWN, NOT_IN_UTF8, PreTokenizer, by_name, differences, for_split
from .roles import roles_of, with_listed
from .token_types import (
    BYTE,
    CONTROL,
    DEFAULT_EOS,
    NORMAL,
    ROLES,
    SPECIAL,
    UNUSED,
    USER_DEFINED,
    changes,
    retyped,
    stripped,
)
from .tokenizer_json import parse
from .unsupported import check_supported, without_unsupported

FILE = "GGUF file"
SUPPORTED = frozenset({"stop_words", "added_tokens", "decode_only"})
_ROLES = {"bos": "bos", "eos": "eos", "pad": "padding", "unk": "unknown", "sep": "seperator", "mask": "mask"}
"""Roles, and what the keys for them are called. The misspelling is that of the format."""
_PREFIX = "tokenizer.ggml."
_TEMPLATE = "tokenizer.chat_template"
_REMEDY: Message = ("use ", Setting("allow_inexact", True), " if that is acceptable")


def is_format(content: bytes) -> bool:
    """Return whether a file starts like a GGUF file. The first four bytes are enough.

    >>> is_format(b"GGUF\\3"), is_format(b"GGML")
    (True, False)
    """
    return content.startswith(metadata.MAGIC)


def save(model: Model, path: Path, *, allow_inexact: bool = False) -> None:
    """Write a vocabulary-only file. Raise if llama.cpp would encode differently, unless the export may be inexact."""
    content = metadata.to_bytes(to_values(model, allow_inexact=allow_inexact))
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def to_values(model: Model, *, allow_inexact: bool = False) -> dict[str, Any]:
    """Return the metadata of a file.

    >>> from ..patterns import PATTERNS
    >>> values = to_values(Model(PATTERNS["gpt4"], {(32, 97): 256}, special_tokens={"<|endoftext|>": 257}))
    >>> values["tokenizer.ggml.pre"], values["tokenizer.ggml.tokens"][256:], values["tokenizer.ggml.merges"]
    ('dbrx', ['Ġa', '<|endoftext|>'], ['Ġ a'])
    """
    kept = replace(model, flags=_flags(model))
    if allow_inexact:
        kept = without_unsupported(kept, "llama.cpp", SUPPORTED)
    else:
        drop = Setting("allow_inexact", True)
        check_supported(kept, "GGUF", SUPPORTED, ("choose another format, or use ", drop, " to drop them"))
        check_distinct(kept, FILE)
    pre, kept = _pre_tokenizer(kept, allow_inexact)
    check_names(kept, FILE)
    tokens, types = _tokens(kept, pre)
    ids, by_token = _role_ids(model), dict(zip(tokens, types, strict=True))
    for difference in (
        *differences(model, pre),
        *changes(by_token, retyped(by_token, {"eos": ids["eos"]} if "eos" in ids else {})),
    ):
        if not allow_inexact:
            raise DataError(f"llama.cpp {difference}", remedy=_REMEDY)
        warn(f"llama.cpp {difference}")
    values: dict[str, Any] = {
        "general.architecture": "llama",  # any that llama.cpp knows
        "general.name": "batchbpe",  # not the name of the file: llama.cpp strips spaces if it contains phi-3
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre.name,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.merges": [" ".join(to_byte_level(kept.vocab[part]) for part in pair) for pair in kept.merges],
    }
    return values | _roles(model, ids) | _templates(model)


def _flags(model: Model) -> dict[str, frozenset[str]]:
    """Return the flags, with `normalized` as it is by default: llama.cpp does not normalize."""
    default = frozenset({"normalized"})
    return {name: (flags - default) | (model.default_flags(name) & default) for name, flags in model.flags.items()}


def _pre_tokenizer(model: Model, allow_inexact: bool) -> tuple[PreTokenizer, Model]:
    """Return the pre-tokenizer for a model, and the model, without its stop words if it can only be used so."""
    found = for_split(model.split)
    if not found:
        exact = dict.fromkeys(each.split.name for each in KNOWN if not each.differs)
        remedy: Message = ("train with a ", Setting("pattern"), f" that it knows: {', '.join(exact)}")
        raise DataError(f"llama.cpp does not know the pattern {model.split}", remedy=remedy)
    fitting = [each for each in found if each.ignore_merges or not model.stop_words]
    if not fitting and allow_inexact:
        return found[0], without_unsupported(model, "llama.cpp", SUPPORTED - {"stop_words"})
    if not fitting:
        looked_up = dict.fromkeys(each.split.name for each in KNOWN if each.ignore_merges)
        word = short(next(iter(model.stop_words)))
        raise DataError(
            f"llama.cpp merges all chunks with the pattern {model.split}, but the model has "
            f"{plural(len(model.stop_words), 'stop word')}, such as {word}",
            remedy=(
                "train with ",
                Setting("stop_list_size", 0),
                f" or one of the patterns {', '.join(looked_up)}, or use ",
                Setting("allow_inexact", True),
                " to drop them",
            ),
        )
    is_merged = unmerged_token(model) is None
    return next((each for each in fitting if is_merged or not each.ignore_merges), fitting[0]), model


def _tokens(model: Model, pre: PreTokenizer) -> tuple[list[str], list[int]]:
    """Return the names and the types of all tokens by id."""
    names = ids_by_name(model, FILE, whole_chunks=pre.ignore_merges)
    types = dict.fromkeys(names.values(), NORMAL)
    for name, token in model.found_tokens.items():
        if types.get(token) and names.get(name) != token:
            reason = f"token {token} is both {short(name)} and {short(to_byte_level(name.encode()))} in a {FILE}"
            raise DataError(reason, remedy=("use ", Setting("format", "batchbpe")))
        names[name] = token
        types[token] = CONTROL if name in model.special_tokens else USER_DEFINED
    unused = unused_tokens(model, types, tool="llama.cpp")
    by_id = {token: name for name, token in (names | unused).items()}
    for token, name in by_id.items():
        if "\0" in name:
            reason = f"llama.cpp cuts off the name of token {token} at its null character: {short(name)}"
            raise DataError(reason, remedy="rename it")
    ids = range(model.n_vocab)
    return [by_id[token] for token in ids], [types.get(token, UNUSED) for token in ids]


def _role_ids(model: Model) -> dict[str, int]:
    """Return the ids of special tokens with a role."""
    ids: dict[str, int] = {}
    for role, name in roles_of(model).items():
        token = model.found_tokens.get(name, model.token_ids.get(from_byte_level(name) or b""))
        if token is None:
            raise DataError(f"{role} is {short(name)}, which is not a token", remedy=("use ", Setting(role)))
        ids[role] = token
    return ids


def _roles(model: Model, ids: Mapping[str, int]) -> dict[str, Any]:
    """Return the values for roles, and whether a text is put between BOS and EOS."""
    if "eos" not in ids and model.n_vocab > DEFAULT_EOS:
        warn(f"llama.cpp ends a text at token {DEFAULT_EOS}, because no special token has the role eos")
    state = model.carried.get("post_processor")
    wrapping = wrapping_of(json.dumps(state).encode() if state else None)
    adds_bos = bool(wrapping and wrapping.before == (ids.get("bos"),))
    adds_eos = bool(wrapping and wrapping.after == (ids.get("eos"),))
    is_stored = wrapping and len(wrapping.before) == adds_bos and len(wrapping.after) == adds_eos
    written = ("tokenizer_config", "chat_template", *["post_processor"] * bool(is_stored))
    warn_not_written(model, FILE, written)
    return {
        **{f"tokenizer.ggml.{key}_token_id": ids[role] for role, key in _ROLES.items() if role in ids},
        "tokenizer.ggml.add_bos_token": adds_bos,
        "tokenizer.ggml.add_eos_token": adds_eos,
    }


def _templates(model: Model) -> dict[str, Any]:
    """Return the chat templates. Several are listed by name, except the default one."""
    config = model.carried.get("tokenizer_config", {})
    given = model.carried.get("chat_template") or config.get("chat_template") or []
    named = {"default": given} if isinstance(given, str) else {each["name"]: each["template"] for each in given}
    others = [name for name in named if name != "default"]
    return {
        **({_TEMPLATE: named["default"]} if "default" in named else {}),
        **({f"{_TEMPLATE}s": others} if others else {}),
        **{f"{_TEMPLATE}.{name}": named[name] for name in others},
    }


def load(path: Path) -> Model:
    """Read the vocabulary of a GGUF file. The tensors of a model are not read."""
    with locate_errors(path):
        return _model(metadata.read(path, ("tokenizer.", "general.name")))


def _model(values: Mapping[str, Any]) -> Model:
    kind = _value(values, "ggml.model", str)
    if kind != "gpt2":
        raise DataError(f"tokenizer.ggml.model {short(kind)} is not supported; only gpt2 (byte-level BPE) is")
    name = values.get("tokenizer.ggml.pre")
    if name not in [*by_name()]:
        reason = f"tokenizer.ggml.pre is {short(name)}" if name else "the file has no tokenizer.ggml.pre"
        known = ", ".join(sorted(by_name()))
        raise DataError(f"{reason}; supported are {known}", remedy="load the tokenizer.json of the model instead")
    pre = by_name()[name]
    tokens, merges = (_value(values, f"ggml.{name}", list, str) for name in ("tokens", "merges"))
    types = (
        _value(values, "ggml.token_type", list, int)
        if "tokenizer.ggml.token_type" in values
        else [NORMAL] * len(tokens)
    )
    if len(types) != len(tokens):
        raise DataError(f"tokenizer.ggml.token_type must have {len(tokens)} items, got {len(types)}")
    if BYTE in types:
        raise DataError("byte tokens (type 6) are not supported; only byte-level BPE is")
    for place, items in {"tokens": tokens, "merges": merges}.items():
        if cut := next((item for item in items if "\0" in item), None):
            raise DataError(
                f"{short(cut)} has a null character, where llama.cpp cuts it off", where=f"{_PREFIX}{place}"
            )
    for merge in merges:
        if merge.count(" ") != 1:
            raise DataError(
                f"expected two tokens with a space between them, got {short(merge)}", where=f"{_PREFIX}merges"
            )
    all_roles = {role: role for role in ROLES} | _ROLES
    ids = {role: _typed(values, f"{key}_token_id", -1) for role, key in all_roles.items()}
    ids = {role: id for role, id in ids.items() if 0 <= id < len(tokens)}
    by_token = retyped(dict(zip(tokens, types, strict=True)), ids)
    # llama.cpp encodes a byte as its token, whatever the type.
    is_used = {token: token and (type != UNUSED or len(token) == 1) for token, type in by_token.items()}
    used = {id: token for id, token in enumerate(tokens) if is_used[token]}
    vocab = {token: id for id, token in used.items()}
    if len(vocab) < len(used):
        twice = next(token for id, token in used.items() if vocab[token] != id)
        raise DataError(f"token {short(twice)} is listed twice", where=f"{_PREFIX}tokens")
    special = {token: id for token, id in vocab.items() if by_token[token] in SPECIAL}
    roles = {role: tokens[ids[role]] for role in _ROLES if role in ids and tokens[ids[role]] in special}
    found = {token: id for token, id in vocab.items() if token in special or by_token[token] == USER_DEFINED}
    flags = stripped(found, name, str(values.get("general.name", "")))
    added = [
        {"id": id, "content": token, "special": token in special, **({flags[token]: True} if token in flags else {})}
        for token, id in found.items()
    ]
    # Those that are spelled like another byte would become that byte, which the vocabulary lacks.
    like_bytes = [entry for entry in added if len(_other_bytes(entry["content"])) == 1]
    for entry in like_bytes:
        del vocab[entry["content"]]
        byte = _other_bytes(entry["content"])[0]
        if byte not in NOT_IN_UTF8:
            warn(f"the vocabulary lacks the byte 0x{byte:02X}, because {short(entry['content'])} is a special token")
    fields = {
        "added_tokens": [entry for entry in added if entry not in like_bytes],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False},
        "post_processor": _post_processor(values, pre, roles, special),
        "model": {
            "type": "BPE",
            "ignore_merges": pre.ignore_merges,
            "vocab": vocab,
            "merges": [*dict.fromkeys(merges)],
        },
    }
    model = with_added(replace(parse(json.dumps(fields).encode()), split=pre.split), like_bytes)
    return _with_roles(model, roles, values)


def _with_roles(model: Model, roles: Mapping[str, str], values: Mapping[str, Any]) -> Model:
    config: dict[str, Any] = {f"{role}_token": name for role, name in roles.items()}
    templates = {"default": _value(values, "chat_template", str)} if _TEMPLATE in values else {}
    others = _value(values, "chat_templates", list, str) if f"{_TEMPLATE}s" in values else []
    templates |= {name: _value(values, f"chat_template.{name}", str) for name in others}
    if others:
        config["chat_template"] = [{"name": name, "template": text} for name, text in templates.items()]
    carried = {**model.carried, **({"tokenizer_config": config} if config else {})}
    if templates and not others:
        carried["chat_template"] = templates["default"]
    return with_listed(
        replace(model, carried=carried), (name for name in model.special_tokens if name not in roles.values())
    )


def _post_processor(
    values: Mapping[str, Any], pre: PreTokenizer, roles: Mapping[str, str], special: Mapping[str, int]
) -> dict[str, Any] | None:
    """Return a post-processor that adds the BOS and EOS tokens that llama.cpp adds."""
    adds = {
        "bos": _typed(values, "add_bos_token", pre.adds_bos),
        "eos": _typed(values, "add_eos_token", False),
    }
    names = {role: name for role, name in roles.items() if adds.get(role)}
    if not names:
        return None

    def surrounded(text: str, type_id: int) -> list[dict[str, Any]]:
        parts = {"bos": names.get("bos"), text: None, "eos": names.get("eos")}
        return [
            {"SpecialToken" if name else "Sequence": {"id": name or part, "type_id": type_id}}
            for part, name in parts.items()
            if name or part == text
        ]

    return {
        "type": "TemplateProcessing",
        "single": surrounded("A", 0),
        "pair": surrounded("A", 0) + surrounded("B", 1),
        "special_tokens": {name: {"id": name, "ids": [special[name]], "tokens": [name]} for name in names.values()},
    }


def _other_bytes(name: str) -> bytes:
    """Return the bytes that are spelled like the text of a token, if they are not that text."""
    value = from_byte_level(name) or b""
    return b"" if value == name.encode() else value


def _typed(values: Mapping[str, Any], name: str, default: int) -> int:
    """Return a value or its default. Raise unless it has the type of the default."""
    value = values.get(_PREFIX + name, default)
    if type(value) is not type(default):
        expected = "true or false" if isinstance(default, bool) else "an integer"
        raise DataError(f"{_PREFIX}{name} must be {expected}, got {short(value)}")
    return value


def _value(values: Mapping[str, Any], name: str, kind: Any, items: type | None = None) -> Any:
    """Return a value. Raise unless it has a type, and its items have theirs."""
    value: Any = values.get(f"tokenizer.{name}")
    if not isinstance(value, kind) or (items and any(type(item) is not items for item in value)):
        expected = f"an array of {'strings' if items is str else 'integers'}" if items else "a string"
        raise DataError(f"tokenizer.{name} must be {expected}, got {short(value)}")
    return value

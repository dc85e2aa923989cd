"""`vocab.json` with `merges.txt`, the files from before `tokenizer.json`: converted to the content of a tokenizer.json.

They do not store how text is split. transformers derives it from the tokenizer class in tokenizer_config.json.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import DataError, parse_json, short
from ..patterns import PATTERNS, Split
from .carried import CONFIG, ROLES
from .file_errors import locate_errors
from .spelling import normalizer, pre_tokenizer

VOCAB, MERGES = "vocab.json", "merges.txt"
_ADDED, _SPECIAL = "added_tokens.json", "special_tokens_map.json"
_GPT2 = Split(PATTERNS["gpt2"])


class _Class(NamedTuple):
    """What a tokenizer class of transformers does unless its settings say otherwise."""

    split: Split = _GPT2
    roles: Mapping[str, Any] = {}
    surrounds: bool = False
    """Whether `cls_token` and `sep_token` surround each text."""


_END_ROLES = dict.fromkeys(("unk_token", "bos_token", "eos_token"), "<|endoftext|>")
_ROBERTA = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
_ROBERTA |= {"cls_token": "<s>", "sep_token": "</s>", "mask_token": "<mask>"}
_CLASSES = {
    "": _Class(roles=_END_ROLES),
    "GPT2": _Class(roles=_END_ROLES),
    "CodeGen": _Class(roles=_END_ROLES),
    "Roberta": _Class(roles=_ROBERTA, surrounds=True),
    "Bart": _Class(roles=_ROBERTA, surrounds=True),
    "Longformer": _Class(roles=_ROBERTA, surrounds=True),
    "GPTNeoX": _Class(Split(PATTERNS["gpt2"], normalization="NFC"), roles=_END_ROLES),
    "Cohere": _Class(Split(PATTERNS["smollm"], normalization="NFC")),
    "Qwen2": _Class(Split(PATTERNS["qwen2"], normalization="NFC"), roles={"eos_token": "<|endoftext|>"}),
    "Qwen3_5": _Class(Split(PATTERNS["qwen3.5"], normalization="NFC"), roles={"eos_token": "<|endoftext|>"}),
}
"""The classes by the beginning of their names. The empty name is for files without tokenizer_config.json."""


def files_of(path: Path) -> tuple[Path, Path] | None:
    """Return the two files if a path is a folder with both, or one of them. Names may start with that of the model.

    >>> files_of(Path("absent/vocab.json"))
    """
    if path.is_dir():
        both = path / VOCAB, path / MERGES
    elif name := re.fullmatch(rf"(.*){VOCAB}|(.*){MERGES}", path.name):
        prefix = name[1] or name[2] or ""
        both = path.with_name(prefix + VOCAB), path.with_name(prefix + MERGES)
    else:
        return None
    return both if all(each.is_file() for each in both) else None


def to_tokenizer_json(vocab_path: Path, merges_path: Path) -> dict[str, Any]:
    """Return the content of the tokenizer.json that transformers would write for these files."""
    vocab = _object(vocab_path)
    if not all(type(token) is int for token in vocab.values()):
        raise DataError("expected an object of tokens and their ids (integers)", where=str(vocab_path))
    with locate_errors(merges_path):
        lines = [line.rstrip("\r") for line in merges_path.read_text("utf-8-sig").split("\n")]
        merges = [line for line in lines if line and not line.startswith("#version")]
        for number, line in enumerate(lines, start=1):
            if line and not line.startswith("#version") and len(line.split(" ")) != 2:
                raise DataError(f"expected two tokens, got {short(line)}", where=f"line {number}")
    folder = vocab_path.parent
    config = _object(folder / CONFIG)
    name = str(config.get("tokenizer_class") or "").removesuffix("Fast").removesuffix("Tokenizer")
    if name not in _CLASSES:
        known = ", ".join(filter(None, _CLASSES))
        raise DataError(
            f"how {config['tokenizer_class']} splits text is not known; supported are {known}",
            where=str(folder / CONFIG),
            remedy="save a tokenizer.json with transformers, and load that",
        )
    kind = _CLASSES[name]
    roles = {**kind.roles, **{role: config[role] for role in ROLES if config.get(role)}}
    roles |= {role: token for role, token in _object(folder / _SPECIAL).items() if role in ROLES}
    added = _added_tokens(vocab, config, _object(folder / _ADDED), roles)
    prefix_space = bool(config.get("add_prefix_space", False))
    split = Split(kind.split.pattern, kind.split.steps, kind.split.normalization, prefix_space)
    ids = {entry["content"]: entry["id"] for entry in added}
    processor: dict[str, Any] = {"type": "RobertaProcessing", "trim_offsets": True, "add_prefix_space": prefix_space}
    if kind.surrounds:
        names = {part: _content(roles[f"{part}_token"]) for part in ("sep", "cls")}
        processor |= {part: [name, ids[name]] for part, name in names.items()}
    return {
        "added_tokens": added,
        "normalizer": normalizer(split),
        "pre_tokenizer": pre_tokenizer(split),
        "post_processor": processor if kind.surrounds else None,
        "model": {"type": "BPE", "vocab": vocab, "merges": merges},
    }


def _added_tokens(
    vocab: Mapping[str, int], config: Mapping[str, Any], added: Mapping[str, int], roles: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the added tokens: those with ids first, in ascending order, then others that have a role."""
    entries: dict[str, dict[str, Any]] = {}
    decoder = config.get("added_tokens_decoder")
    for token, entry in (decoder if isinstance(decoder, dict) else {}).items():
        if not isinstance(entry, dict) or not isinstance(entry.get("content"), str) or not token.isdecimal():
            raise DataError(f"expected an added token, got {short({token: entry})}", where="added_tokens_decoder")
        entries[entry["content"]] = {**entry, "id": int(token)}
    for name, token in added.items():
        entries.setdefault(name, {"content": name, "id": token, "special": False})
    following = max([len(vocab), *(entry["id"] + 1 for entry in entries.values())])
    for role in roles.values():
        name = _content(role)
        if name not in entries:
            token = vocab.get(name, following)
            flags = role if isinstance(role, dict) else {}
            entries[name] = {"normalized": False, **flags, "content": name, "id": token, "special": True}
            following = max(following, token + 1)
    return sorted(entries.values(), key=lambda entry: entry["id"])


def _content(role: Any) -> str:
    name = role.get("content") if isinstance(role, dict) else role
    if not isinstance(name, str):
        raise DataError(f"expected a special token, got {short(role)}")
    return name


def _object(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file, or an empty one if there is no such file."""
    if not path.is_file():
        return {}
    with locate_errors(path):
        value = parse_json(path.read_bytes(), f"not a valid {path.name}: ")
        if not isinstance(value, dict):
            raise DataError(f"expected an object, got {short(value)}")
        return value

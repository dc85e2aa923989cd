"""Name the parts of Hugging Face files that a `Model` does not store, so that loading can warn about them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import warn

CONFIG = "tokenizer_config.json"
END = "<|endoftext|>"
"""The special token that transformers exports use as the beginning and the end of a text."""
_ROLES = ("bos_token", "eos_token", "pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
_SWITCHES = ("add_bos_token", "add_eos_token", "add_prefix_space", "clean_up_tokenization_spaces")
_NO_LIMIT = 1e20
"""transformers writes larger values of `model_max_length` if there is no limit."""


def ignored_parts(fields: Mapping[str, Any]) -> list[str]:
    """Name the ignored parts of a tokenizer.json.

    >>> ignored_parts({"post_processor": {"type": "RobertaProcessing"}, "decoder": {"type": "ByteLevel"}})
    ['post-processor RobertaProcessing']
    """
    names = [f"post-processor {kind}" for kind in _types(fields.get("post_processor"), "processors")]
    names += (name for name in ("truncation", "padding") if fields.get(name))
    return names + [f"decoder {kind}" for kind in _types(fields.get("decoder"), "decoders")]


def _types(part: Any, parts: str) -> list[str]:
    """Return the types in a part, which may be a sequence. ByteLevel changes neither ids nor text."""
    if not isinstance(part, Mapping):
        return [] if part is None else [str(type(part).__name__)]
    if part.get("type") == "Sequence" and isinstance(part.get(parts), list):
        return [kind for each in part[parts] for kind in _types(each, parts)]
    templates = [part.get("single"), part.get("pair")]
    if part.get("type") == "TemplateProcessing" and "SpecialToken" not in str(templates):
        return []  # transformers adds it to every tokenizer
    return [] if part.get("type") == "ByteLevel" else [str(part.get("type"))]


def ignored_settings(config: Mapping[str, Any]) -> list[str]:
    """Name the ignored settings of a tokenizer_config.json.

    >>> ignored_settings({"chat_template": "…", "add_bos_token": True, "eos_token": {"content": "</s>"}})
    ['chat_template', 'add_bos_token', 'eos_token']
    """
    names = ["chat_template"] * bool(config.get("chat_template"))
    length = config.get("model_max_length")
    names += ["model_max_length"] * (isinstance(length, int | float) and length < _NO_LIMIT)
    names += (name for name in _SWITCHES if config.get(name))
    for name in _ROLES:
        value = config.get(name)
        value = value.get("content") if isinstance(value, Mapping) else value
        if value and not (name in ("bos_token", "eos_token") and str(value) == END):
            names.append(name)
    return names


def folder_settings(folder: Path) -> list[str]:
    """Name the ignored settings of a folder. Unreadable files are skipped: they are not needed for loading."""
    names = ["chat_template"] * (folder / "chat_template.jinja").is_file()
    return [*names, *(name for name in ignored_settings(read_config(folder)) if name not in names)]


def read_config(folder: Path) -> Mapping[str, Any]:
    """Return the content of tokenizer_config.json, or an empty mapping if it is missing or damaged."""
    try:
        config = json.loads((folder / CONFIG).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return config if isinstance(config, Mapping) else {}


def object_settings(tokenizer: Any) -> list[str]:
    """Name the ignored settings of a transformers tokenizer."""
    names = ("chat_template", "model_max_length", *_SWITCHES, *_ROLES)
    return ignored_settings({name: getattr(tokenizer, name, None) for name in names})


def warn_ignored(source: str, names: list[str]) -> None:
    """Warn if something was ignored."""
    if names:
        warn(f"{source}: ignored {', '.join(names)}, which batchbpe does not support")

"""The byte-level BPE subset of Hugging Face's `tokenizer.json`. See `tokenizer_json` for reading it.

Special and added tokens are written as `added_tokens`, and the pattern as a pre-tokenizer that splits by a regular
expression.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from .._core import Encoder
from ..errors import ArgumentTypeError, DataError, Setting, parse_json, short
from ..model import Model
from ..storage.atomic import replacing
from . import native
from .byte_level import from_byte_level, to_byte_level
from .file_errors import check_model_path, locate_errors, not_found
from .ignored import folder_settings, ignored_parts, object_settings, read_config, warn_ignored
from .phrase_pattern import pattern_with_phrases
from .placeholders import unused_tokens
from .portability import check_portable
from .tokenizer_json import AddedTokens, parse, pattern_for_oniguruma
from .unsupported import check_supported, without_unsupported

DOWNLOADED = "transformers.AutoTokenizer.from_pretrained({})"
"""Code that downloads a tokenizer by its name."""
SUPPORTED = frozenset({"phrases", "added_tokens"})


def is_format(content: bytes) -> bool:
    """Return whether the content of a file is JSON, and therefore may be a tokenizer.json."""
    return bool(re.match(rb"\s*\{", content))


def save(model: Model, path: Path, *, allow_inexact: bool = False) -> None:
    """Write a tokenizer.json. `allow_inexact` drops what it cannot represent."""
    fields = to_json(model, allow_inexact=allow_inexact)
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(fields, ensure_ascii=False), "utf-8")


def to_json(model: Model, *, allow_inexact: bool = False, fill_gaps: bool = False) -> dict[str, Any]:
    """Return the content of a tokenizer.json.

    `fill_gaps` adds placeholders for unused ids. No text is encoded to them.

    >>> to_json(Model(split=r"\\p{L}+", merges={(97, 97): 256}))["model"]["merges"]
    [['a', 'a']]
    """
    if allow_inexact:
        model = without_unsupported(model, "Hugging Face", SUPPORTED)
        _check_special(model)
    else:
        check(model)
    ids = (*model.byte_ids, *model.merges.values(), *model.phrases.values())
    merged = {token: model.vocab[token] for token in ids}
    vocab: dict[str, int] = {}
    for token, value in sorted(merged.items()):
        vocab.setdefault(to_byte_level(value), token)
    vocab |= model.found_tokens
    if fill_gaps:
        vocab |= unused_tokens(model, vocab.values())
    split = {"Regex": pattern_for_oniguruma(pattern_with_phrases(model))}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": token, "content": name, "special": name in model.special_tokens}
            | dict.fromkeys(("single_word", "lstrip", "rstrip"), False)
            | {"normalized": name in model.added_tokens}  # these are found after the others
            for name, token in sorted(model.found_tokens.items(), key=lambda item: item[1])
        ],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                # Text between matches is dropped, as by the core.
                {"type": "Split", "pattern": split, "behavior": "Removed", "invert": True},
                {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False},
            ],
        },
        "post_processor": None,
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": bool(model.phrases),  # a phrase is found as a whole
            "vocab": vocab,
            "merges": [[to_byte_level(merged[first]), to_byte_level(merged[last])] for first, last in model.merges],
        },
    }


def check(model: Model) -> None:
    """Raise if a tokenizer.json, which identifies tokens by their bytes, cannot represent the model."""
    keep, drop = Setting("format", "transformers"), Setting("allow_inexact", True)
    remedy = ("use ", keep, " to keep them, or ", drop, " to drop them")
    check_supported(model, "tokenizer.json", SUPPORTED, remedy)
    check_portable(model.pattern, "Oniguruma")
    seen: dict[bytes, int] = {model.vocab[token]: token for token in model.byte_ids}
    for token in (*model.merges.values(), *model.phrases.values()):
        other = seen.setdefault(model.vocab[token], token)
        if other != token:
            raise DataError(
                f"tokens {other} and {token} are both {short(model.vocab[token])}, "
                "but tokenizer.json identifies tokens by their bytes",
                remedy=("use ", keep, " to keep both, or ", drop, " to drop one"),
            )
    _check_special(model)
    if model.phrases:
        pattern_with_phrases(model)
        _check_whole_tokens(model)


def _check_whole_tokens(model: Model) -> None:
    """Raise if the bytes of a token do not encode to it: with phrases, whole chunks are looked up instead of merged."""
    import numpy as np  # not above, because every command would import it

    tokens = [*model.merges.values()]
    values = [model.vocab[token] for token in tokens]
    offsets = np.cumsum([0, *map(len, values)], dtype=np.int64)
    encoder = Encoder(model.pattern, model.ranked, [], [], [], [])
    ids, sizes = encoder.encode_chunks(np.frombuffer(b"".join(values), np.uint8), offsets, None)
    starts = np.cumsum(sizes) - sizes
    wrong = np.flatnonzero((sizes != 1) | (ids[starts] != np.array(tokens, np.uint32)))
    if len(wrong):
        value = short(values[wrong[0]])
        raise DataError(
            f"{value} is a token, but is encoded as {sizes[wrong[0]]} tokens, unlike in a tokenizer.json with phrases",
            remedy=("use ", Setting("format", "transformers")),
        )


def _check_special(model: Model) -> None:
    """Raise if the name of a special or added token is the byte-level spelling of another token."""
    ids = {model.vocab[token]: token for token in (*model.byte_ids, *model.merges.values())}
    for name in model.found_tokens:
        same_spelling = ids.get(from_byte_level(name) or b"")
        if same_spelling is not None:
            kind = "special" if name in model.special_tokens else "added"
            raise DataError(
                f"{kind} token {short(name)} is spelled like token {same_spelling} in tokenizer.json",
                remedy=f"rename the {kind} token",
            )


def load(source: Any) -> Model:
    """Load a tokenizer.json, a folder that contains one, or a tokenizers or transformers object."""
    if not isinstance(source, str | os.PathLike):
        return _load_object(source)
    check_model_path("source", source)
    path = Path(source)
    settings = folder_settings(path) if path.is_dir() else []
    if (path / native.IN_FOLDER).is_file():
        model = native.load(path / native.IN_FOLDER)
        added = path / "added_tokens.json"
        if added.is_file():
            with locate_errors(added):
                model = _with_added(model, _entries(_read_json(added), read_config(path)))
        warn_ignored(str(source), settings)
        return model
    if path.is_dir():
        path /= "tokenizer.json"
        if not path.is_file():
            raise FileNotFoundError(f"{path.parent} is not a transformers folder: it has no tokenizer.json")
    if not path.is_file():
        raise not_found(source, f"pass {DOWNLOADED}")
    with locate_errors(path):
        fields = _read_json(path)
        model = parse(fields)
    warn_ignored(str(source), ignored_parts(fields) + settings)
    return model


def _load_object(source: Any) -> Model:
    """Convert a tokenizers or transformers object."""
    name = type(source).__name__
    inner_model = getattr(getattr(source, "tokenizer", None), "model", None)  # if it is a BatchBPETokenizer
    if isinstance(inner_model, Model):
        flags = ("content", "special", "normalized", "lstrip", "rstrip", "single_word")
        added = source.added_tokens_decoder.items()
        model = _with_added(
            inner_model, [{"id": id} | {flag: getattr(token, flag) for flag in flags} for id, token in added]
        )
        warn_ignored(name, object_settings(source))
        return model
    backend = getattr(source, "backend_tokenizer", source)
    if not hasattr(backend, "to_str"):
        raise ArgumentTypeError("source", source, "must be a path or a fast tokenizer of tokenizers or transformers")
    fields = json.loads(backend.to_str())
    model = parse(fields)
    warn_ignored(name, ignored_parts(fields) + (object_settings(source) if backend is not source else []))
    return model


def _read_json(path: Path) -> Any:
    name = path.name if path.suffix == ".json" else "tokenizer.json"
    return parse_json(path.read_bytes(), f"not a valid {name}: ")


def _entries(added: Any, config: Mapping[str, Any]) -> list[Any]:
    """Return the tokens of an added_tokens.json, with their flags in a tokenizer_config.json if it has them."""
    if not isinstance(added, Mapping):
        raise DataError(f"expected an object of added tokens and their ids, got {short(added)}")
    decoder = config.get("added_tokens_decoder")
    entries = []
    for name, id in added.items():
        flags = decoder.get(str(id)) if isinstance(decoder, Mapping) else None
        entries.append({**(flags if isinstance(flags, Mapping) else {}), "content": name, "id": id})
    return entries


def _with_added(model: Model, entries: list[Any]) -> Model:
    """Add the tokens that transformers has added."""
    added = AddedTokens.parse(entries)
    special_tokens = {**model.special_tokens, **added.special}
    return replace(model, special_tokens=special_tokens, added_tokens={**model.added_tokens, **added.others})

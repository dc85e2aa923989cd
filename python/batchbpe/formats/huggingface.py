"""Hugging Face's `tokenizer.json` with byte-level BPE, and the files next to it. `tokenizer_json` reads the content.

Special and added tokens are written as `added_tokens`, the split as a pre-tokenizer (see `spelling`), and other parts
of the file that the model was loaded from as they were (see `carried`).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from operator import itemgetter
from pathlib import Path
from typing import Any

from ..errors import ArgumentTypeError, DataError, Setting, parse_json, short
from ..model import Model
from ..model.checks import FLAGS
from ..storage.atomic import replacing
from . import native, vocab_merges
from .byte_level import from_byte_level, to_byte_level
from .carried import CONFIG, ROLES, check_carried, of_folder, of_object, warn_not_written
from .file_errors import check_model_path, locate_errors, not_found
from .names import check_distinct, check_names, ids_by_name, unmerged_token
from .phrase_pattern import pattern_with_phrases
from .placeholders import unused_tokens
from .spelling import normalizer, pre_tokenizer
from .tokenizer_json import AddedTokens, parse
from .unsupported import check_supported, check_visible, without_unsupported

FILE = "tokenizer.json"
DOWNLOADED = "transformers.AutoTokenizer.from_pretrained({})"
"""Code that downloads a tokenizer by its name."""
SUPPORTED = frozenset({"phrases", "added_tokens", "stop_words", "flags", "decode_only"})
_MARK = "∎"
_DECODER = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}


def is_format(content: bytes) -> bool:
    """Return whether the content of a file is JSON, and therefore may be a tokenizer.json, or that of a merges.txt."""
    return bool(re.match(rb"\s*\{|#version", content))


def save(model: Model, path: Path, *, allow_inexact: bool = False) -> None:
    """Write a tokenizer.json. `allow_inexact` drops what it cannot represent."""
    fields = to_json(model, allow_inexact=allow_inexact)
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(fields, ensure_ascii=False), encoding="utf-8", newline="\n")
    warn_not_written(model, "tokenizer.json", {*model.carried} - {"tokenizer_config", "chat_template", "tekken"})


def to_json(model: Model, *, allow_inexact: bool = False, fill_gaps: bool = False) -> dict[str, Any]:
    """Return the content of a tokenizer.json.

    `fill_gaps` adds placeholders for unused ids. No text is encoded to them.

    >>> to_json(Model(split=r"\\p{L}+", merges={(97, 97): 256}))["model"]["merges"]
    [['a', 'a']]
    """
    if allow_inexact:
        model = _without_inexact(model)
        check_names(model, FILE)
    else:
        check(model)
    vocab = ids_by_name(model, FILE, whole_chunks=_has_whole_chunks(model))
    added = dict(sorted(model.found_tokens.items(), key=lambda item: item[1]))
    if fill_gaps:
        vocab |= unused_tokens(model, {*vocab.values(), *added.values()})
    # Hugging Face ignores the ids of added tokens that are not in the vocabulary, and numbers them itself.
    if numbered(added, vocab) != added:
        _check_not_bytes(model)
        vocab |= added
    check_carried(model)
    phrases = pattern_with_phrases(model) if model.phrases else None
    return _document(
        model,
        added,
        vocab,
        merges=[[to_byte_level(model.vocab[part]) for part in pair] for pair in model.merges],
        ignore_merges=_has_whole_chunks(model),
        normalizer=normalizer(model.split),
        pre_tokenizer=pre_tokenizer(model.split, phrases, portable=not allow_inexact),
    )


def vocabulary_only(model: Model) -> dict[str, Any]:
    """Return a tokenizer.json with the names, special and added tokens of a model, which cannot encode text.

    If two tokens have the same bytes, such as a stop word and a merge, the name of the second ends with a mark.

    >>> vocabulary_only(Model(split=r"\\w+", merges={(97, 97): 257}, stop_words={b"aa": 256}))["model"]["vocab"]["aa∎"]
    257
    """
    vocab = {**unused_tokens(model), **model.found_tokens}
    for token in sorted(model.vocab.keys() - {*model.found_tokens.values()}):
        name = to_byte_level(model.vocab[token])
        while name in vocab:
            name += _MARK
        vocab[name] = token
    document = _document(model, model.found_tokens, vocab)
    document["model"] = {"type": "WordLevel", "vocab": vocab, "unk_token": ""}  # raises an error for a text
    return document


def _document(
    model: Model,
    added: Mapping[str, int],
    vocab: Mapping[str, int],
    merges: Sequence[Sequence[str]] = (),
    ignore_merges: bool = False,
    normalizer: Any = None,
    pre_tokenizer: Any = None,
) -> dict[str, Any]:
    return {
        "version": "1.0",
        "truncation": model.carried.get("truncation"),
        "padding": model.carried.get("padding"),
        "added_tokens": [
            {"id": token, "content": name, "special": name in model.special_tokens}
            | {flag: flag in model.flags_of(name) for flag in FLAGS}
            for name, token in added.items()
        ],
        "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": model.carried.get("post_processor"),
        "decoder": model.carried.get("decoder", _DECODER),
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": ignore_merges,
            "vocab": dict(sorted(vocab.items(), key=itemgetter(1))),  # version 1.0 depends on the order
            "merges": merges,
        },
    }


def numbered(added: Iterable[str], vocab: Mapping[str, int]) -> dict[str, int]:
    """Return the ids that Hugging Face gives to added tokens: those in the vocabulary, or the next free ones.

    >>> numbered(["<s>", "</s>", "<pad>"], {"a": 0, "</s>": 1})
    {'<s>': 2, '</s>': 1, '<pad>': 3}
    """
    ids: dict[str, int] = {}
    following = len(vocab)
    for name in added:
        ids[name] = vocab.get(name, following)
        following = max(following, ids[name] + 1)
    return ids


def _check_not_bytes(model: Model) -> None:
    """Raise if an added token, put into the vocabulary, would be spelled like a missing byte."""
    for name in model.found_tokens:
        value = from_byte_level(name) or b""
        if len(value) == 1 and model.byte_ids[value[0]] is None:
            raise DataError(
                f"token {short(name)} is spelled like the byte 0x{value[0]:02X}, which the model does not have, and "
                "its id is not the next one after the vocabulary",
                remedy=("use ", Setting("format", "batchbpe")),
            )


def _has_whole_chunks(model: Model) -> bool:
    """Return whether some chunks are looked up instead of merged. In a tokenizer.json, this applies to all tokens."""
    return bool(model.stop_words or model.phrases)


def check(model: Model) -> None:
    """Raise if a tokenizer.json cannot represent the model."""
    keep, drop = Setting("format", "transformers"), Setting("allow_inexact", True)
    check_supported(model, "tokenizer.json", SUPPORTED, ("use ", keep, " to keep them, or ", drop, " to drop them"))
    pre_tokenizer(model.split)
    check_names(model, FILE)
    ids_by_name(model, FILE, whole_chunks=_has_whole_chunks(model))
    if model.phrases:
        pattern_with_phrases(model)
    _check_whole_chunks(model)


def _check_whole_chunks(model: Model) -> None:
    """Raise if tokens have the same bytes, or if looking whole chunks up would change how they are encoded."""
    check_distinct(model, FILE)
    if _has_whole_chunks(model) and (unmerged := unmerged_token(model)):
        value, count = unmerged
        reason = f"{short(value)} is a token, but is encoded as {count} tokens, unlike in a {FILE} with"
        field = "phrases" if model.phrases else "stop words"
        raise DataError(f"{reason} {field}", remedy=("use ", Setting("format", "transformers")))


def _without_inexact(model: Model) -> Model:
    """Return the model without what a tokenizer.json cannot represent."""
    check_visible(model, "Hugging Face")
    supported = SUPPORTED
    try:
        _check_whole_chunks(model)
    except DataError:
        supported -= {"stop_words"}
    return without_unsupported(model, "Hugging Face", supported)


def load(source: Any) -> Model:
    """Load a tokenizer.json, a vocab.json with merges.txt, a folder with either, their content, or an object.

    The content of a tokenizer.json can be bytes, or a string that starts with "{". Objects are those of tokenizers and
    transformers.
    """
    if is_content(source):
        return parse(source.encode() if isinstance(source, str) else bytes(source))
    if not isinstance(source, str | os.PathLike):
        return _load_object(source)
    check_model_path("source", source)
    path = Path(source)
    folder = path if path.is_dir() else path.parent
    if (path / native.IN_FOLDER).is_file():
        model = native.load(path / native.IN_FOLDER)
        carried = of_folder(folder)
        added = path / "added_tokens.json"
        if added.is_file():
            with locate_errors(added):
                entries = parse_json(added.read_bytes(), f"not a valid {added.name}: ")
                model = with_added(model, _entries(entries, carried.get("tokenizer_config", {})))
        return replace(model, carried={**model.carried, **carried})
    single = path / "tokenizer.json" if path.is_dir() else path
    files = vocab_merges.files_of(path)
    if files and (not path.is_dir() or not single.is_file()):
        with locate_errors(files[0]):
            model = parse(json.dumps(vocab_merges.to_tokenizer_json(*files)).encode())
        return replace(model, carried={**model.carried, **of_folder(folder)})
    if path.is_dir() and not single.is_file():
        raise FileNotFoundError(
            f"{path} is not a transformers folder: it has no tokenizer.json, and no {vocab_merges.VOCAB} with "
            f"{vocab_merges.MERGES}"
        )
    if not single.is_file():
        raise not_found(source, f"pass {DOWNLOADED}")
    with locate_errors(single):
        model = parse(single.read_bytes())
    if path.is_dir() or path.name == "tokenizer.json":
        model = replace(model, carried={**model.carried, **of_folder(folder)})
    if path.is_dir():
        with locate_errors(path / CONFIG):
            return with_added(model, _more_tokens(model))
    return model


def _more_tokens(model: Model) -> list[dict[str, Any]]:
    """Return the tokens of tokenizer_config.json, which transformers adds to those of a tokenizer.json.

    A token of `added_tokens_decoder` has the flags there. New tokens get the next ids.
    """
    config = model.carried.get("tokenizer_config", {})
    decoder = config.get("added_tokens_decoder") or {}
    entries = {decoder[token]["content"]: {"special": False, **decoder[token]} for token in sorted(decoder, key=int)}
    roles = [config.get(role) for role in ROLES]
    for names in ("additional_special_tokens", "extra_special_tokens"):
        more = config.get(names) or []
        roles += more.values() if isinstance(more, Mapping) else more
    for role in filter(None, roles):
        flags = {"content": role} if isinstance(role, str) else role
        if flags["content"] not in model.found_tokens:
            entries.setdefault(flags["content"], {**flags, "special": True})
    found, following = [], model.n_vocab
    for name, entry in entries.items():
        token = model.found_tokens.get(name, model.token_ids.get(from_byte_level(name) or b"", following))
        following = max(following, token + 1)
        found.append({**entry, "id": token})
    return found


def is_content(source: object) -> bool:
    """Return whether a value is the content of a tokenizer.json, and not a path."""
    return isinstance(source, bytes | bytearray) or (isinstance(source, str) and source.lstrip()[:1] == "{")


def _load_object(source: Any) -> Model:
    """Convert a tokenizers or transformers object."""
    model = getattr(source, "own_model", None)  # of a `batchbpe.transformers.BatchBPETokenizer`
    if not isinstance(model, Model):
        backend = getattr(source, "backend_tokenizer", source)
        if not hasattr(backend, "to_str"):
            reason = "must be a path or a fast tokenizer of tokenizers or transformers"
            raise ArgumentTypeError("source", source, reason)
        model = parse(backend.to_str().encode())
        if backend is source:
            return model
    return replace(model, carried={**model.carried, **of_object(source)})


def entries_of(added: Mapping[int, Any]) -> list[dict[str, Any]]:
    """Return the tokens of an `added_tokens_decoder`, whose values are of the class `AddedToken`."""
    names = ("content", "special", *FLAGS)
    return [{"id": id} | {name: getattr(token, name) for name in names} for id, token in added.items()]


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


def with_added(model: Model, entries: list[Any]) -> Model:
    """Add the tokens that transformers has added. A token that the model has gets the flags of the new one."""
    added = AddedTokens.parse(entries)
    model = _without_hidden_ids(model, {*added.ids.values()})
    special, others = (
        {name: token for name, token in tokens.items() if name not in added.ids}
        for tokens in (model.special_tokens, model.added_tokens)
    )
    return replace(
        model,
        special_tokens={**special, **added.special},
        added_tokens={**others, **added.others},
        flags={name: model.flags_of(name) for name in (*special, *others)} | added.flags,
    )


def _without_hidden_ids(model: Model, taken: set[int]) -> Model:
    """Move hidden tokens with ids that are taken. transformers counts from `n_vocab`, where they usually start."""
    free = count(max({model.next_id, *(token + 1 for token in taken)}))
    moved = {token: next(free) for token in model.hidden & taken}
    if not moved:
        return model
    merges = {(moved.get(a, a), moved.get(b, b)): moved.get(token, token) for (a, b), token in model.merges.items()}
    return replace(model, merges=merges, hidden=frozenset(moved.get(token, token) for token in model.hidden))

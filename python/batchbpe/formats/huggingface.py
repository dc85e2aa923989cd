"""Hugging Face's `tokenizer.json`, as far as it is byte-level BPE.

Tokens are spelt with a printable character for each byte. `added_tokens` are the special tokens. A pre-tokenizer that
splits by a regular expression is the pattern; what the post-processor adds around a text is no part of a model.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from .._core import has_scanner, patterns
from ..errors import short
from ..model import Model
from ..storage.atomic import replacing
from . import native, tiktoken
from .dialects import check_portable

_NAMED = dict(patterns())
# Oniguruma takes {1,3}+ for a repetition of {1,3}, and $ for the end of any line.
_CL100K = _NAMED["cl100k"].replace("{1,3}+", "{1,3}").replace("$", r"\z")
_TO_THEIRS = {_NAMED["cl100k"]: _CL100K}
_TO_OURS = {_CL100K: _NAMED["cl100k"]}

_PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_SPELLING = {byte: chr(byte) for byte in _PRINTABLE}
_SPELLING |= {byte: chr(0x100 + n) for n, byte in enumerate(sorted(set(range(256)) - set(_PRINTABLE)))}
_BYTES = {character: byte for byte, character in _SPELLING.items()}


def spelt(token: bytes) -> str:
    """Give a token as byte-level BPE spells it.

    >>> spelt(" café".encode())
    'ĠcafÃ©'
    """
    return "".join(map(_SPELLING.__getitem__, token))


def unspelt(token: str) -> bytes | None:
    """Give the bytes of a token as byte-level BPE spells it, or None if it is none.

    >>> unspelt("ĠcafÃ©").decode(), unspelt("a b")
    (' café', None)
    """
    try:
        return bytes(map(_BYTES.__getitem__, token))
    except KeyError:
        return None


def save(model: Model, path: Path, *, allow_inexact: bool = False) -> None:
    """Write a tokenizer.json."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(described(model, allow_inexact=allow_inexact), ensure_ascii=False), "utf-8")


def described(model: Model, *, allow_inexact: bool = False) -> dict[str, Any]:
    """Give what a tokenizer.json says."""
    if not allow_inexact:
        check(model)
    _check_special(model)
    merged = {token: model.vocab[token] for token in (*model.byte_ids, *model.merges.values())}
    vocab: dict[str, int] = {}
    for token, value in sorted(merged.items()):
        vocab.setdefault(spelt(value), token)
    vocab |= model.special_tokens
    split = {"Regex": _TO_THEIRS.get(model.pattern, model.pattern)}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": token, "content": name, "special": True}
            | dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
            for name, token in sorted(model.special_tokens.items(), key=lambda item: item[1])
        ],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [
                # What the pattern does not match is dropped, as here.
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
            "ignore_merges": False,
            "vocab": vocab,
            "merges": [[spelt(merged[first]), spelt(merged[last])] for first, last in model.merges],
        },
    }


def check(model: Model) -> None:
    """Raise if the model cannot be said in tokenizer.json, where a token is known by its bytes."""
    if model.stop_words:
        word = next(iter(model.stop_words))
        raise ValueError(
            f"tokenizer.json has no stop words, as {short(word)} is: "
            'export to a folder with format="transformers", which keeps them, '
            "or say allow_inexact=True to leave them out"
        )
    check_portable(model.pattern, "Oniguruma")
    seen: dict[bytes, int] = {model.vocab[token]: token for token in model.byte_ids}
    for token in model.merges.values():
        other = seen.setdefault(model.vocab[token], token)
        if other != token:
            raise ValueError(
                f"the tokens {other} and {token} are both {short(model.vocab[token])}, one for tokenizer.json: "
                'export to a folder with format="transformers", or say allow_inexact=True to leave one out'
            )
    _check_special(model)


def _check_special(model: Model) -> None:
    """Raise if a special token would take the place of another token."""
    ids = {model.vocab[token]: token for token in (*model.byte_ids, *model.merges.values())}
    for name in model.special_tokens:
        spelt_alike = ids.get(unspelt(name) or b"")
        if spelt_alike is not None:
            raise ValueError(f"the special token {short(name)} is spelt like the token {spelt_alike}: rename it")


def load(source: Any) -> Model:
    """Read a tokenizer.json, or a folder that has one, or an object of `tokenizers` or `transformers`."""
    own = getattr(getattr(source, "tokenizer", None), "model", None)  # of a BatchBPETokenizer
    if isinstance(own, Model):
        return _with_added(own, source.added_tokens_encoder)
    backend = getattr(source, "backend_tokenizer", source)
    if hasattr(backend, "to_str"):
        return parse(json.loads(backend.to_str()))
    if not isinstance(source, str | os.PathLike):
        raise TypeError(f"{short(source)} is no path, and no fast tokenizer of tokenizers or transformers")
    if not os.fspath(source):
        raise ValueError("the path is empty: give the name of a file or folder")
    path = Path(source)
    if (path / native.IN_FOLDER).is_file():
        added = path / "added_tokens.json"
        model = native.load(path / native.IN_FOLDER)
        return _with_added(model, json.loads(added.read_bytes()) if added.is_file() else {})
    path = path / "tokenizer.json" if path.is_dir() else path
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        fields = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is no tokenizer.json, or a damaged one: {error}") from None
    try:
        return parse(fields)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from None


def _with_added(model: Model, added: Mapping[str, int]) -> Model:
    """Give a model the tokens that were added in transformers."""
    return replace(model, special_tokens=dict(model.special_tokens) | dict(added))


def parse(fields: Any) -> Model:
    """Make a model of what a tokenizer.json says; an error names the part that is not supported."""
    if not isinstance(fields, dict) or not isinstance(fields.get("model"), dict):
        raise ValueError('it is no tokenizer.json: it has no "model"')
    if fields.get("version", "1.0") != "1.0":
        raise ValueError(f"its version is {short(fields['version'])}: only 1.0 is read")
    if fields.get("normalizer"):
        raise ValueError(f"the normalizer {_kind(fields['normalizer'])} is not supported: a model changes no text")
    model = fields["model"]
    if model.get("type", "BPE") != "BPE":
        raise ValueError(f"the model {model['type']} is not supported: only byte-level BPE is")
    for name in ("dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"):
        if model.get(name):
            raise ValueError(f"{name}={short(model[name])} of the model is not supported: only byte-level BPE is")
    special_tokens = _special_tokens(fields.get("added_tokens") or [])
    vocab = model.get("vocab")
    if not isinstance(vocab, dict) or not all(type(token) is int for token in vocab.values()):
        raise ValueError('the model has no "vocab" of tokens and their ids')
    merges = _merges(model.get("merges"))
    both = {spelt(first + last) for first, last in merges} & special_tokens.keys()
    if both:
        raise ValueError(f"the added token {short(min(both))} is also made by a merge: this is not supported")
    ranks: dict[bytes, int] = {}
    for name, token in vocab.items():
        if special_tokens.get(name) == token:
            continue
        value = unspelt(name)
        if value is None:
            raise ValueError(f"the token {short(name)} is not spelt as byte-level BPE does")
        if value:
            ranks[value] = token
    pattern = _pattern(fields.get("pre_tokenizer"))
    missing = [byte for byte in range(256) if bytes([byte]) not in ranks]
    if missing:
        raise ValueError(f"the byte {missing[0]} is no token: only byte-level vocabularies can be loaded")
    return _model(pattern, ranks, merges, special_tokens, ignore_merges=bool(model.get("ignore_merges")))


def _model(
    pattern: str,
    ranks: Mapping[bytes, int],
    merges: list[tuple[bytes, bytes]],
    special_tokens: Mapping[str, int],
    *,
    ignore_merges: bool,
) -> Model:
    for first, last in merges:
        unknown = next((part for part in (first, last, first + last) if part not in ranks), None)
        if unknown is not None:
            raise ValueError(
                f"the merge of {short(first)} and {short(last)} is about {short(unknown)}, which is no token"
            )
    made = {first + last for first, last in merges}
    if len(made) < len(merges) or ignore_merges:
        # Each token has a merge for every two tokens that it can be cut into: these are ranks in another dress.
        found = tiktoken.from_ranks(ranks, pattern, special_tokens)
        values = found.vocab
        order = {pair: rank for rank, pair in enumerate(merges)}
        places = [order.get((values[first], values[last]), -1) for first, last in found.merges]
        if -1 in places or places != sorted(places):
            raise ValueError("several merges make one token, and not as ranks would: this is not supported")
        return found
    apart = [value for value in ranks if len(value) > 1 and value not in made]
    if apart:
        raise ValueError(f"the token {short(apart[0])} is made by no merge: it is not supported")
    return Model(
        pattern=pattern,
        merges={(ranks[first], ranks[last]): ranks[first + last] for first, last in merges},
        special_tokens=dict(special_tokens),
        byte_ids=tuple(ranks[bytes([byte])] for byte in range(256)),
    )


def _kind(part: Any) -> str:
    return str(part.get("type")) if isinstance(part, dict) else repr(part)


def _special_tokens(added: Any) -> dict[str, int]:
    special_tokens: dict[str, int] = {}
    for entry in added:
        if not isinstance(entry, dict) or not isinstance(entry.get("content"), str) or type(entry.get("id")) is not int:
            raise ValueError(f"the added token {short(entry)} has no content and id")
        for name in ("lstrip", "rstrip", "single_word"):
            if entry.get(name):
                raise ValueError(f"{name} of the added token {short(entry['content'])} is not supported")
        special_tokens[entry["content"]] = entry["id"]
    return special_tokens


def _merges(merges: Any) -> list[tuple[bytes, bytes]]:
    if not isinstance(merges, list):
        raise ValueError('the model has no list of "merges"')
    found = []
    for rank, merge in enumerate(merges):
        parts = merge.split(" ") if isinstance(merge, str) else merge
        if not isinstance(parts, list) or len(parts) != 2 or not all(isinstance(part, str) for part in parts):
            raise ValueError(f"merge {rank} is {short(merge)}, not two tokens")
        first, last = unspelt(parts[0]), unspelt(parts[1])
        if not first or not last:
            raise ValueError(f"merge {rank}, {short(merge)}, is not spelt as byte-level BPE does")
        found.append((first, last))
    return found


def _pattern(pre_tokenizer: Any) -> str:
    """Find the one regular expression by which text is split."""
    parts = [pre_tokenizer]
    if isinstance(pre_tokenizer, dict) and pre_tokenizer.get("type") == "Sequence":
        parts = pre_tokenizer.get("pretokenizers") or []
    if not parts or not all(isinstance(part, dict) for part in parts):
        raise ValueError(f"the pre-tokenizer {_kind(pre_tokenizer)} is not supported: a Split, or ByteLevel, is")
    *splits, byte_level = parts
    if byte_level.get("type") != "ByteLevel":
        raise ValueError(f"the pre-tokenizer {_kind(byte_level)} is not supported as the last one: ByteLevel is")
    if byte_level.get("add_prefix_space"):
        raise ValueError("add_prefix_space of the pre-tokenizer ByteLevel is not supported: a model changes no text")
    for part in splits:
        if part.get("type") != "Split":
            raise ValueError(f"the pre-tokenizer {_kind(part)} is not supported: a Split, or ByteLevel, is")
    patterns = [_split(part) for part in splits]
    if byte_level.get("use_regex", True):
        patterns.append(_NAMED["gpt2"])
    if len(patterns) > 1:
        raise ValueError(f"{len(patterns)} regular expressions one after the other are not supported: one is")
    return patterns[0] if patterns else r"[\s\S]+"


def _split(part: Mapping[str, Any]) -> str:
    pattern = part.get("pattern")
    if not isinstance(pattern, dict) or not isinstance(pattern.get("Regex"), str):
        raise ValueError(f"the pattern {short(pattern)} of the pre-tokenizer Split is not supported: a Regex is")
    if (part.get("behavior"), bool(part.get("invert"))) not in (("Isolated", False), ("Removed", True)):
        raise ValueError(
            f"the pre-tokenizer Split with behavior={short(part.get('behavior'))} "
            f"and invert={short(part.get('invert'))} is not supported: Isolated, and Removed with invert, are"
        )
    regex: str = pattern["Regex"]
    regex = _TO_OURS.get(regex, regex)
    check_portable(regex, "Oniguruma")
    if part["behavior"] == "Removed" or has_scanner(regex):
        return regex
    return rf"{regex}|(?:(?!{regex})[\s\S])+"  # what is isolated is kept, and so is what lies between

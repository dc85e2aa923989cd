"""Read the content of a `tokenizer.json`. Parts that a `Model` cannot represent raise an error that names them.

`ignored` names the other parts, which do not change how a text itself is encoded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple

from .._core import has_scanner, patterns
from ..errors import DataError, short
from ..model import Model
from ..model.checks import check_special_size
from ..patterns import Split
from . import tiktoken
from .byte_level import from_byte_level, to_byte_level
from .phrase_pattern import has_phrases, model_with_phrases
from .placeholders import unused_name
from .portability import WHOLE_TEXT, check_portable

_NAMED = dict(patterns())
# Oniguruma interprets {1,3}+ as a repetition of {1,3}, and $ as the end of any line.
_FOR_ONIGURUMA = {regex: regex.replace("{1,3}+", "{1,3}").replace("$|", r"\z|") for regex in _NAMED.values()}
_FROM_ONIGURUMA = {translated: regex for regex, translated in _FOR_ONIGURUMA.items()}
MAX_SEARCHED = 1000
"""Maximum length of an added token that is searched for others: the search takes quadratic time."""
_SINGLE_DIGITS = {"type": "Split", "pattern": {"Regex": r"\p{N}"}, "behavior": "Isolated", "invert": False}
_STEPS = {
    (
        r"\p{N}{1,3}",
        "[一-龥぀-ゟ゠-ヿ]+",
        r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
        r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ): _NAMED["deepseek"],
    (r"\p{N}", _NAMED["gpt2"]): _NAMED["starcoder"],
}
"""The steps of models that split text several times, and the pattern that gives the same chunks."""


def pattern_for_oniguruma(pattern: str) -> str:
    """Translate the named patterns to the dialect of Oniguruma, the engine that Hugging Face uses.

    >>> "{1,3}+" in _NAMED["cl100k"], "{1,3}+" in pattern_for_oniguruma(_NAMED["cl100k"])
    (True, False)
    """
    return _translated(pattern, _FOR_ONIGURUMA)


def _translated(pattern: str, translations: Mapping[str, str]) -> str:
    for regex, translated in translations.items():
        if pattern == regex or pattern.endswith(f")|{regex}"):  # after phrases
            return pattern.removesuffix(regex) + translated
    return pattern


def parse(fields: Any) -> Model:
    """Convert the content of a tokenizer.json to a model.

    >>> parse({"model": {"type": "WordPiece"}})
    Traceback (most recent call last):
    ...
    batchbpe.errors.DataError: model: type 'WordPiece' is not supported; only byte-level BPE is
    """
    if not isinstance(fields, dict) or not isinstance(fields.get("model"), dict):
        raise DataError('not a tokenizer.json: expected an object with "model"')
    if fields.get("version", "1.0") != "1.0":
        raise DataError(f"version must be '1.0', got {short(fields['version'])}")
    if fields.get("normalizer"):
        raise DataError(f"normalizer {_type(fields['normalizer'])} is not supported")
    model = fields["model"]
    if model.get("type", "BPE") != "BPE":
        raise DataError(f"type {short(model['type'])} is not supported; only byte-level BPE is", where="model")
    for name in ("dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"):
        if model.get(name):
            raise DataError(f"{name}={short(model[name])} is not supported; only byte-level BPE is", where="model")
    added = AddedTokens.parse(fields.get("added_tokens") or [])
    merges = _merges(model.get("merges"))
    both = {to_byte_level(first + last) for first, last in merges} & added.ids.keys()
    if both:
        raise DataError(f"added token {short(min(both))} is also produced by a merge, which is not supported")
    ranks = _ranks(model.get("vocab"), added.ids)
    _check_added_ids(added.ids, model["vocab"])
    pattern = _pattern(fields.get("pre_tokenizer"))
    for byte in range(256):
        if bytes([byte]) not in ranks:
            raise DataError(f"byte {byte} is not a token; only byte-level vocabularies are supported")
    if has_phrases(pattern):  # files with phrases set `ignore_merges` for them only
        return model_with_phrases(pattern, ranks, lambda plain, others: _model(plain, others, merges, added))
    return _model(pattern, ranks, merges, added, ignore_merges=bool(model.get("ignore_merges")))


class AddedTokens(NamedTuple):
    """The tokens that Hugging Face finds in a text before it is split."""

    ids: dict[str, int]
    """All of them, in the order of the file."""
    special: dict[str, int]
    others: dict[str, int]

    @classmethod
    def parse(cls, entries: Any) -> AddedTokens:
        """Read a list of objects such as `{"content": "<s>", "id": 300, "special": True, "normalized": False}`."""
        if not isinstance(entries, list):
            raise DataError(f"must be an array, got {short(entries)}", where="added_tokens")
        tokens: dict[str, tuple[int, bool, bool]] = {}
        for entry in entries:
            content = entry.get("content") if isinstance(entry, dict) else None
            if not isinstance(content, str) or type(entry.get("id")) is not int:
                raise DataError(f"expected an object with content and id, got {short(entry)}", where="added_tokens")
            for name in ("lstrip", "rstrip", "single_word"):
                if entry.get(name):
                    raise DataError(f"{name} of {short(content)} is not supported", where="added_tokens")
            is_special = bool(entry.get("special", True))
            token = entry["id"], is_special, bool(entry.get("normalized", not is_special))
            if tokens.setdefault(content, token) != token:
                reason = f"{short(content)} is listed twice, with different ids or flags"
                raise DataError(reason, where="added_tokens")
        _check_order({name: flags for name, (_, *flags) in tokens.items()})
        ids = {name: token for name, (token, *_) in tokens.items()}
        special = {name: token for name, token in ids.items() if tokens[name][1]}
        return cls(ids, special, {name: token for name, token in ids.items() if name not in special})


def _check_order(flags: Mapping[str, Sequence[bool]]) -> None:
    """Raise if Hugging Face and the core would find different tokens in a text.

    Hugging Face first finds the tokens that are not `normalized`, and then the others in the text between them. Here,
    special tokens come first. The order matters only if a text can contain tokens that overlap.
    """
    check_special_size(flags, "added_tokens")
    groups: dict[tuple[bool, bool], list[str]] = defaultdict(list)
    for name, (is_special, is_normalized) in flags.items():
        groups[is_special, is_normalized].append(name)
    for one, other in combinations(groups, 2):
        if {one, other} == {(True, False), (False, True)}:
            continue  # they are found in this order here too
        overlap = _overlap(groups[one], groups[other]) or _overlap(groups[other], groups[one])
        if overlap:
            names = " and ".join(map(short, overlap))
            reason = f"{names} may overlap in a text, but differ in special or normalized, which is not supported"
            raise DataError(reason, where="added_tokens")


def _overlap(names: Sequence[str], others: Sequence[str]) -> tuple[str, str] | None:
    """Find a name that contains another one or ends with its beginning. Very long names are not searched but returned.

    >>> _overlap(["<s>"], ["a", "><"]), _overlap(["<s>"], ["</s>"])
    (('<s>', '><'), None)
    """
    tree: dict[str, Any] = {}
    for name in others:
        node = tree
        for character in name:
            node = node.setdefault(character, {})
        node[""] = name
    for name in names:
        if len(name) > MAX_SEARCHED:
            return name, others[0]
        for start in range(len(name)):
            node = tree
            for character in name[start:]:
                node = node.get(character, {})
                if not node or "" in node:
                    break
            if node:
                while "" not in node:
                    node = next(iter(node.values()))
                return name, node[""]
    return None


def _check_added_ids(added: Mapping[str, int], vocab: Mapping[str, int]) -> None:
    """Raise if Hugging Face would replace the id of an added token with that in the vocabulary or the next free one."""
    largest = -1
    for name, token in added.items():
        used = vocab.get(name, max(len(vocab), largest + 1))
        if token != used:
            reason = f"{short(name)} has the id {token}, but Hugging Face uses {used}"
            raise DataError(reason, where="added_tokens", remedy="correct the id")
        largest = max(largest, token)


def _merges(merges: Any) -> list[tuple[bytes, bytes]]:
    if not isinstance(merges, list):
        raise DataError(f"must be an array, got {short(merges)}", where="model.merges")
    pairs = []
    for rank, merge in enumerate(merges):
        parts = merge.split(" ") if isinstance(merge, str) else merge
        if not isinstance(parts, list) or len(parts) != 2 or not all(isinstance(part, str) for part in parts):
            raise DataError(f"expected two tokens, got {short(merge)}", where=f"merge {rank}")
        first, last = from_byte_level(parts[0]), from_byte_level(parts[1])
        if not first or not last:
            raise DataError(f"{short(merge)} is not in byte-level spelling", where=f"merge {rank}")
        pairs.append((first, last))
    return pairs


def _ranks(vocab: Any, special_tokens: Mapping[str, int]) -> dict[bytes, int]:
    """Return the ids of tokens by their bytes, without special tokens and placeholders."""
    if not isinstance(vocab, dict) or not all(type(token) is int for token in vocab.values()):
        raise DataError("must be an object of tokens and their ids (integers)", where="model.vocab")
    ranks: dict[bytes, int] = {}
    for name, token in vocab.items():
        if special_tokens.get(name) == token or name == unused_name(token):
            continue
        value = from_byte_level(name)
        if value is None:
            raise DataError(f"token {short(name)} is not in byte-level spelling", where="model.vocab")
        if value:
            ranks[value] = token
    return ranks


def _model(
    pattern: str,
    ranks: Mapping[bytes, int],
    merges: list[tuple[bytes, bytes]],
    added: AddedTokens,
    ignore_merges: bool = False,
) -> Model:
    for rank, (first, last) in enumerate(merges):
        for part in (first, last, first + last):
            if part not in ranks:
                raise DataError(f"{short(part)} is not in the vocabulary", where=f"merge {rank}")
    made = {first + last for first, last in merges}
    if len(made) < len(merges) or ignore_merges:
        model = tiktoken.from_ranks(ranks, pattern, added.special)
        _check_merges_of_ranks(model, merges)
        return replace(model, added_tokens=added.others) if added.others else model
    unmade = next((value for value in ranks if len(value) > 1 and value not in made), None)
    if unmade is not None:
        raise DataError(f"no merge produces token {short(unmade)}, which is not supported")
    return Model(
        split=Split(pattern),
        merges={(ranks[first], ranks[last]): ranks[first + last] for first, last in merges},
        special_tokens=added.special,
        byte_ids=tuple(ranks[bytes([byte])] for byte in range(256)),
        added_tokens=added.others,
    )


def _check_merges_of_ranks(model: Model, merges: list[tuple[bytes, bytes]]) -> None:
    """Raise unless the file was converted from ranks: it has a merge for each way to split a token into two tokens."""
    order = {pair: rank for rank, pair in enumerate(merges)}
    found = [order.get((model.vocab[first], model.vocab[last]), -1) for first, last in model.merges]
    if -1 in found or found != sorted(found):
        raise DataError("several merges produce the same token, but not in the order of ranks, which is not supported")


def _type(part: Any) -> str:
    return short(part.get("type")) if isinstance(part, dict) else short(part)


def _pattern(pre_tokenizer: Any) -> str:
    """Return the one regular expression that splits text."""
    parts = [pre_tokenizer]
    if isinstance(pre_tokenizer, dict) and pre_tokenizer.get("type") == "Sequence":
        parts = pre_tokenizer.get("pretokenizers") or []
    if not isinstance(parts, list) or not parts or not all(isinstance(part, dict) for part in parts):
        raise DataError(f"pre-tokenizer {_type(pre_tokenizer)} is not supported; only Split and ByteLevel are")
    *splits, byte_level = parts
    if byte_level.get("type") != "ByteLevel":
        raise DataError(f"the last pre-tokenizer must be ByteLevel, got {_type(byte_level)}")
    if byte_level.get("add_prefix_space"):
        raise DataError("add_prefix_space of the pre-tokenizer ByteLevel is not supported")
    splits = [_SINGLE_DIGITS if part == {"type": "Digits", "individual_digits": True} else part for part in splits]
    steps = [_split(part) for part in splits]
    if byte_level.get("use_regex", True):
        steps.append(_NAMED["gpt2"])
    if tuple(steps) in _STEPS and all(part["behavior"] == "Isolated" for part in splits):
        return _STEPS[tuple(steps)]
    if len(steps) > 1:
        raise DataError(f"expected one regular expression that splits text, got {len(steps)}")
    return _keep_between(steps[0], splits[0] if splits else {}) if steps else WHOLE_TEXT


def _split(part: Mapping[str, Any]) -> str:
    """Return the regular expression of a step."""
    if part.get("type") != "Split":
        raise DataError(f"pre-tokenizer {_type(part)} is not supported; only Split and ByteLevel are")
    pattern = part.get("pattern")
    if not isinstance(pattern, dict) or not isinstance(pattern.get("Regex"), str):
        raise DataError(f"the pattern of the pre-tokenizer Split must be a Regex, got {short(pattern)}")
    behavior, invert = part.get("behavior"), part.get("invert")
    if (behavior, bool(invert)) not in (("Isolated", False), ("Removed", True)):
        raise DataError(
            f"behavior={short(behavior)} with invert={short(invert)} of the pre-tokenizer Split is not supported; "
            "only Isolated, and Removed with invert, are"
        )
    regex: str = pattern["Regex"]
    return _translated(regex, _FROM_ONIGURUMA)


def _keep_between(regex: str, part: Mapping[str, Any]) -> str:
    """Return the pattern of a single step. Isolated keeps the text between matches."""
    if not has_phrases(regex):
        check_portable(regex, "Oniguruma")
    if part.get("behavior") != "Isolated" or has_scanner(regex) or regex in _NAMED.values():
        return regex
    return rf"{regex}|(?:(?!{regex})[\s\S])+"

"""Read the content of a `tokenizer.json`. Parts that a `Model` cannot represent raise an error that names them.

Other parts, which do not change how a text itself is encoded, are carried along (see `carried`).
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast, get_args

from .._core import TokenizerJson, has_scanner
from ..choices import Normalization
from ..errors import DataError, parse_json, short
from ..model import Model
from ..model.checks import FLAGS
from ..model.merges import Merges
from ..patterns import PATTERNS, Split, Step
from ..util.utf8 import is_utf8
from .byte_level import from_byte_level, to_byte_level
from .carried import check_carried
from .chains import DIGITS, from_oniguruma, known
from .phrase_pattern import has_phrases, model_with_phrases, split_pattern
from .placeholders import unused_name
from .portability import WHOLE_TEXT, check_portable
from .spelling import PUNCTUATION, named_from_oniguruma, written_as

DIGIT_BYTES = b"0123456789\xb2\xb3\xb9\xbc\xbd\xbe"
"""Bytes that Digits takes for digits if it comes after ByteLevel, as in Falcon: they are spelled 0-9 ² ³ ¹ ¼ ½ ¾ there.

It splits characters that contain such bytes. This is the same as leaving out all merges of such a byte and another.
"""
CARRIED = ("truncation", "padding", "post_processor", "decoder")
"""Parts that do not change how a text itself is encoded."""


def parse(content: bytes) -> Model:
    """Convert the content of a tokenizer.json to a model.

    >>> parse(b'{"model": {"type": "WordPiece"}}')
    Traceback (most recent call last):
    ...
    batchbpe.errors.DataError: model: type 'WordPiece' is not supported; only byte-level BPE is
    """
    try:
        file = TokenizerJson(content.removeprefix(codecs.BOM_UTF8))
    except ValueError as error:
        raise DataError(f"not a valid tokenizer.json: {error}") from None
    fields = parse_json(file.rest)
    if "model" not in fields:
        raise DataError('not a tokenizer.json: expected an object with "model"')
    if fields.get("version", "1.0") != "1.0":
        raise DataError(f"version must be '1.0', got {short(fields['version'])}")
    model = fields["model"]
    if model.get("type", "BPE") != "BPE":
        raise DataError(f"type {short(model['type'])} is not supported; only byte-level BPE is", where="model")
    for name in ("dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"):
        if model.get(name):
            raise DataError(f"{name}={short(model[name])} is not supported; only byte-level BPE is", where="model")
    added = AddedTokens.parse(fields.get("added_tokens") or [])
    split = read_split(fields.get("normalizer"), fields.get("pre_tokenizer"))
    carried = {name: fields[name] for name in CARRIED if fields.get(name) is not None}
    return _model(file, fields, split, added, carried)


def _model(
    file: TokenizerJson, fields: Mapping[str, Any], split: Split, added: AddedTokens, carried: Mapping[str, Any]
) -> Model:
    model = fields["model"]
    after = _around_byte_level(fields.get("pre_tokenizer"))[2]
    separate = DIGIT_BYTES if "Digits" in [part.get("type") for part in after] else b""
    phrases = [text.encode() for text in split_pattern(split.pattern)[1]] if has_phrases(split.pattern) else []
    # Files with phrases set `ignore_merges` for them only.
    ignore_merges = flag_of(model, "ignore_merges", False, "model") and not phrases
    names = [*added.ids, *map(to_byte_level, phrases)]
    try:
        ranked, stop_words, decode_only, ids = file.tokens(names, ignore_merges, separate)
    except ValueError as error:
        where, _, reason = str(error).rpartition(": ")
        raise DataError(reason, where=where) from None
    if model.get("unk_token") is not None and None in ranked.byte_ids:
        raise DataError(
            f"unk_token={short(model['unk_token'])} for missing bytes, such as "
            f"0x{ranked.byte_ids.index(None):02X}, is not supported",
            where="model",
        )
    _check_added_ids(added.ids, ids, len(file))
    if ignore_merges:
        # A token with `single_word` may be left in a text, where it is looked up like any chunk.
        in_vocab = {name: token for name, token in zip(added.ids, ids, strict=True) if token is not None}
        found = {name: token for name, token in in_vocab.items() if "single_word" in added.flags[name]}
        made = {*ranked.used([*found.values()])}
        for name, token in found.items():
            value = from_byte_level(name)
            if value == name.encode() and token not in made:
                stop_words.append((value, token))
            elif value is not None and value != name.encode() and is_utf8(value):
                reason = f"{short(name)} has single_word, and is also the byte-level spelling of {short(value)}"
                raise DataError(reason, where="added_tokens", remedy="rename the token")
    plain = Model(
        split=replace(split, pattern=split_pattern(split.pattern)[0]) if phrases else split,
        merges=Merges(ranked),
        stop_words=dict(stop_words),
        special_tokens=added.special,
        byte_ids=ranked.byte_ids,
        added_tokens=added.others,
        flags=added.flags,
        decode_only={token: value for value, token in decode_only if value != unused_name(token).encode()},
        carried=carried,
    )
    check_carried(plain)
    if not phrases:
        return plain
    ids_of_all = dict(plain.token_ids)
    ids_of_all |= {
        phrase: token for phrase, token in zip(phrases, ids[len(added.ids) :], strict=True) if token is not None
    }
    return model_with_phrases(split.pattern, ids_of_all, lambda _pattern, _ids: plain)


class AddedTokens(NamedTuple):
    """The tokens that Hugging Face finds in a text before it is split."""

    ids: dict[str, int]
    """All of them, in the order of the file."""
    special: dict[str, int]
    others: dict[str, int]
    flags: dict[str, frozenset[str]]

    @classmethod
    def parse(cls, entries: Any) -> AddedTokens:
        """Read a list of objects such as `{"content": "<s>", "id": 300, "special": True, "normalized": False}`.

        As in Hugging Face's library, a token that is listed twice has the id of the first and the flags of the last.
        """
        if not isinstance(entries, list):
            raise DataError(f"must be an array, got {short(entries)}", where="added_tokens")
        tokens: dict[str, tuple[int, bool, frozenset[str]]] = {}
        for entry in entries:
            content = entry.get("content") if isinstance(entry, dict) else None
            if not isinstance(content, str) or type(entry.get("id")) is not int:
                reason = f"expected an object with content (a string) and id (an integer), got {short(entry)}"
                raise DataError(reason, where="added_tokens")
            if not content:
                continue  # Hugging Face leaves it out, too
            where = f"added_tokens, {short(content)}"
            is_special = flag_of(entry, "special", True, where)
            flags = frozenset(
                flag for flag in FLAGS if flag_of(entry, flag, flag == "normalized" and not is_special, where)
            )
            first_id = tokens[content][0] if content in tokens else entry["id"]
            tokens[content] = first_id, is_special, flags
        ids = {name: token for name, (token, *_) in tokens.items()}
        special = {name: token for name, token in ids.items() if tokens[name][1]}
        others = {name: token for name, token in ids.items() if name not in special}
        return cls(ids, special, others, {name: flags for name, (*_, flags) in tokens.items()})


def _check_added_ids(added: Mapping[str, int], in_vocab: Sequence[int | None], n_vocab: int) -> None:
    """Raise if Hugging Face would replace the id of an added token with that in the vocabulary or the next free one."""
    largest = -1
    for (name, token), stored in zip(added.items(), in_vocab, strict=False):
        used = max(n_vocab, largest + 1) if stored is None else stored
        if token != used:
            reason = f"{short(name)} has the id {token}, but Hugging Face uses {used}"
            raise DataError(reason, where="added_tokens", remedy="correct the id")
        largest = max(largest, token)


def flag_of(part: Mapping[str, Any], name: str, default: bool, where: str) -> bool:
    """Return a flag. Raise unless it is a boolean.

    >>> flag_of({"lstrip": 1}, "lstrip", False, "added_tokens")
    Traceback (most recent call last):
    ...
    batchbpe.errors.DataError: added_tokens: lstrip must be true or false, got 1
    """
    value = part.get(name, default)
    if not isinstance(value, bool):
        raise DataError(f"{name} must be true or false, got {short(value)}", where=where)
    return value


def _type(part: Any) -> str:
    return short(part.get("type")) if isinstance(part, dict) else short(part)


def _parts(part: Any, name: str) -> list[dict[str, Any]]:
    """Return the parts of a sequence, which may contain others, or the part itself if it is not a sequence."""
    if part is None:
        return []
    if not isinstance(part, dict):
        raise DataError(f"{name} must be an object, got {short(part)}")
    if part.get("type") != "Sequence":
        return [part]
    parts = part.get("pretokenizers" if name == "pre_tokenizer" else "normalizers")
    if not isinstance(parts, list):
        raise DataError(f"{name} Sequence must have an array of parts, got {short(parts)}")
    return [inner for each in parts for inner in _parts(each, name)]


def read_split(normalizer: Any, pre_tokenizer: Any) -> Split:
    """Return how a tokenizer.json splits text.

    >>> print(read_split({"type": "NFC"}, {"type": "ByteLevel", "add_prefix_space": False}))
    NFC > gpt2
    """
    forms = [part.get("type") for part in _parts(normalizer, "normalizer")]
    for form in forms:
        if form not in get_args(Normalization) or len(forms) > 1:
            shown = short(form) if len(forms) == 1 else " > ".join(map(short, forms))
            raise DataError(f"normalizer {shown} is not supported; only NFC, NFD, NFKC or NFKD is")
    before, byte_level, after = _around_byte_level(pre_tokenizer)
    prefix_space = flag_of(byte_level, "add_prefix_space", True, "pre_tokenizer")
    if prefix_space and before:
        raise DataError("add_prefix_space of a ByteLevel pre-tokenizer after others is not supported")
    use_regex = flag_of(byte_level, "use_regex", True, "pre_tokenizer")
    steps = [*map(_step, before), *[Step(PATTERNS["gpt2"])] * use_regex, *map(_digits_step, after)]
    exported = None if after else written_as(before, use_regex=use_regex)
    return replace(
        Split(exported) if exported else _simplest(steps),
        normalization=cast("Normalization", forms[0] if forms else "none"),
        prefix_space=prefix_space,
    )


def _around_byte_level(pre_tokenizer: Any) -> tuple[list[dict[str, Any]], dict[str, Any], list[dict[str, Any]]]:
    """Return the pre-tokenizers before ByteLevel, ByteLevel, and those after it."""
    parts = _parts(pre_tokenizer, "pre_tokenizer")
    places = [place for place, part in enumerate(parts) if part.get("type") == "ByteLevel"]
    if not places:
        shown = _type(pre_tokenizer) if len(parts) < 2 else " > ".join(map(_type, parts))
        raise DataError(f"pre-tokenizer {shown} is not supported; only those with ByteLevel are")
    return parts[: places[0]], parts[places[0]], parts[places[0] + 1 :]


def _step(part: Mapping[str, Any]) -> Step:
    """Convert a pre-tokenizer."""
    kind = part.get("type")
    if kind == "Digits":
        is_individual = flag_of(part, "individual_digits", False, "pre_tokenizer")
        return Step(DIGITS, "Isolated" if is_individual else "Contiguous")
    if kind == "Punctuation":
        return Step(PUNCTUATION, part.get("behavior", "Isolated"))
    if kind != "Split":
        reason = "is not supported; only Split, Digits, Punctuation and ByteLevel are"
        raise DataError(f"pre-tokenizer {_type(part)} {reason}")
    return Step(_regex(part), part.get("behavior", ""), flag_of(part, "invert", False, "pre_tokenizer"))


def _digits_step(part: Mapping[str, Any]) -> Step:
    """Convert a pre-tokenizer after ByteLevel, which sees one character for each byte: only ASCII digits are digits.

    Other bytes that it takes for digits are handled by leaving out merges: see `DIGIT_BYTES`.
    """
    if part.get("type") == "Digits" and not part.get("individual_digits"):
        return Step("[0-9]+")
    if part.get("type") == "Split" and re.fullmatch(r"(\[0-9\](\{\d+(,\d*)?\}|[+*?])?)+", _regex(part)):
        return _step(part)
    raise DataError(f"pre-tokenizer {_type(part)} after ByteLevel, where it splits bytes, is not supported")


def _regex(part: Mapping[str, Any]) -> str:
    """Return the regular expression of the pre-tokenizer Split."""
    pattern = part.get("pattern")
    if not isinstance(pattern, dict) or not isinstance(next(iter(pattern.values()), None), str):
        raise DataError(f"the pattern of the pre-tokenizer Split must be a Regex or a String, got {short(pattern)}")
    regex: str | None = pattern.get("Regex")
    return re.escape(pattern.get("String", "")) if regex is None else regex


def _simplest(steps: list[Step]) -> Split:
    """Return the split that consists of steps: a single pattern if there is one that gives the same chunks."""
    name = known([(step.pattern, step.behavior, step.invert) for step in steps])
    if name:
        return Split(PATTERNS[name])
    *before, last = [replace(step, pattern=_from_oniguruma(step.pattern)) for step in steps]
    keeps_matches = (last.behavior, last.invert) == ("Removed", True)
    if keeps_matches or (last.behavior == "Isolated" and has_scanner(last.pattern)):
        return Split(last.pattern, tuple(before))
    return Split(WHOLE_TEXT, (*before, last))


def _from_oniguruma(regex: str) -> str:
    """Translate a regular expression from the dialect of Oniguruma, and check that it means the same there and here."""
    if has_phrases(regex):
        return named_from_oniguruma(regex)
    if regex not in (DIGITS, PUNCTUATION):
        check_portable(regex.replace("$", ""), "Oniguruma")
    return from_oniguruma(regex)

"""What makes a `Model` valid."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .._core import MAX_ID, MAX_MERGES, RankedTokens
from ..arguments import check_iterable
from ..errors import ArgumentError, ArgumentTypeError, DataError, short
from ..util.utf8 import is_utf8
from .merges import Merges

if TYPE_CHECKING:
    from . import Model

MAX_SPECIAL_BYTES = 1 << 20
"""Maximum size of all special or added tokens together: searching for them takes a hundred times as much memory."""

FLAGS = ("lstrip", "rstrip", "single_word", "normalized")
"""What a special or added token can be: it may take the whitespace before it (lstrip) or after it (rstrip), be found
only as a single word, or be found in normalized text, after all that are not. These are Hugging Face's names."""

MAX_PHRASE_BYTES = 1 << 26
"""Maximum size of all phrases together: a few ids can describe a huge phrase by repeating a long token."""


def check_special_size(special_tokens: Iterable[str], parameter: str = "special_tokens") -> None:
    """Raise if special or added tokens are so long that searching for them takes too much memory.

    >>> check_special_size(["<|endoftext|>", "x" * 2_000_000])
    Traceback (most recent call last):
    ...
    batchbpe.errors.ArgumentError: special_tokens must have at most 1,048,576 bytes in total, got 2000013; shorten 'xxx…xxx' (2,000,000 characters)
    """  # noqa: E501  the last line is an error message
    sizes = {name: len(name.encode("utf-8", "surrogatepass")) for name in special_tokens}
    size = sum(sizes.values())
    if size > MAX_SPECIAL_BYTES:
        longest = max(sizes, key=lambda name: sizes[name])
        reason = f"must have at most {MAX_SPECIAL_BYTES:,} bytes in total"
        raise ArgumentError(parameter, size, reason, remedy=f"shorten {short(longest, limit=9)}")


def check_special_tokens(special_tokens: Sequence[str] | Mapping[str, int]) -> None:
    """Raise unless the argument is a list of different strings, or a mapping from strings to ids.

    >>> check_special_tokens("<|endoftext|>")
    Traceback (most recent call last):
    ...
    batchbpe.errors.ArgumentTypeError: special_tokens must be a list of strings or a mapping from strings to ids, got '<|endoftext|>'
    """  # noqa: E501  the last line is an error message
    if isinstance(special_tokens, str) or not isinstance(special_tokens, Sequence | Mapping):
        reason = "must be a list of strings or a mapping from strings to ids"
        raise ArgumentTypeError("special_tokens", special_tokens, reason)
    for name in special_tokens:
        if not isinstance(name, str):
            raise ArgumentTypeError("special_tokens", name, "must contain only strings")
        if not name:
            raise ArgumentError("special_tokens", name, "must not contain an empty string")
        if isinstance(special_tokens, Mapping) and type(special_tokens[name]) is not int:
            reason = f"must map {short(name)} to an integer"
            raise ArgumentTypeError("special_tokens", special_tokens[name], reason)
        if not is_utf8(name.encode("utf-8", "surrogatepass")):
            raise ArgumentError("special_tokens", name, "must not contain lone surrogates")
    check_special_size(special_tokens)
    if len(set(special_tokens)) < len(special_tokens):
        raise ArgumentError("special_tokens", special_tokens, "must not repeat a token", remedy="list it once")
    if isinstance(special_tokens, Mapping) and len({*special_tokens.values()}) < len(special_tokens):
        remedy = "give each token its own id, or pass a list of names"
        raise ArgumentError("special_tokens", dict(special_tokens), "must have different ids", remedy=remedy)


def checked_ranks(byte_ids: tuple[int | None, ...], merges: Mapping[tuple[int, int], int]) -> RankedTokens:
    """Hand the merges to the core, which checks them."""
    if isinstance(merges, Merges) and merges.ranked.byte_ids == byte_ids:
        ranked = merges.ranked
    else:
        try:
            ranked = RankedTokens(byte_ids, dict(merges.items()))
        except (TypeError, ValueError, OverflowError) as error:
            _check_types(byte_ids, merges)
            where, _, message = str(error).partition(": ")
            reason, _, remedy = message.partition("; ")
            raise DataError(reason, where=where, remedy=remedy) from None
    if len(ranked) > 256 + MAX_MERGES:
        raise DataError(f"a model can have at most {MAX_MERGES:,} merges, got {len(merges):,}")
    return ranked


def _check_types(byte_ids: tuple[int | None, ...], merges: Mapping[tuple[int, int], int]) -> None:
    """Raise unless there are 256 different bytes, or fewer, and ids are integers in range."""
    for pair in merges:
        if not isinstance(pair, tuple) or len(pair) != 2 or {*map(type, pair)} != {int}:
            raise ArgumentTypeError("merges", pair, "must have pairs of integers as keys")
        if not 0 <= min(pair) <= max(pair) <= MAX_ID:
            raise ArgumentError("merges", pair, f"must have pairs of ids from 0 to {MAX_ID} as keys")
    present = {byte: token for byte, token in enumerate(byte_ids) if token is not None}
    _check_ids("byte", present)
    _check_ids("merge", merges)
    if len({*present.values()}) < len(present) or len(byte_ids) != 256:
        raise ArgumentError("byte_ids", byte_ids, "must be 256 different ids, one for each byte")


def checked_flags(model: Model) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the flags of special and added tokens. Raise if there is no such token or flag."""
    for name, given in model.flags.items():
        if name not in model.found_tokens:
            raise DataError(f"flags of {short(name)}, which is neither a special nor an added token")
        flags = frozenset(given)
        unknown = flags - {*FLAGS}
        if isinstance(given, str) or unknown:
            shown = given if isinstance(given, str) else min(unknown, key=str)
            raise ArgumentError("flags", shown, f"must be a set of {', '.join(FLAGS)}", remedy=f"see {short(name)}")
        yield name, flags


def check_tokens(model: Model) -> None:
    """Raise unless stop words, special and added tokens are of the right type, and have ids of their own."""
    for word in model.stop_words:
        if not isinstance(word, bytes):
            raise ArgumentTypeError("stop_words", word, "must have bytes as keys")
    for field_name in ("special_tokens", "added_tokens"):
        names = getattr(model, field_name)
        for name in names:
            if not isinstance(name, str):
                raise ArgumentTypeError(field_name, name, "must have strings as keys")
        check_special_size(names, field_name)
    for name in model.special_tokens.keys() & model.added_tokens.keys():
        raise DataError(f"{short(name)} is both a special and an added token", remedy="remove it from one of them")
    _check_ids("stop word", model.stop_words)
    _check_ids("special token", model.special_tokens)
    _check_ids("added token", model.added_tokens)
    _check_ids("decode-only token", {value: token for token, value in model.decode_only.items()})
    used = model.ranked.used([*model.stop_words.values(), *model.found_tokens.values(), *model.decode_only])
    vocab = {token: value for token, value in model.ranked.vocab().items() if token in used} if used else {}
    for word, token in model.stop_words.items():
        _add(vocab, token, word, f"stop word {short(word)}")
    for name, token in model.found_tokens.items():
        kind = "special" if name in model.special_tokens else "added"
        try:
            value = name.encode("utf-8")
        except UnicodeEncodeError as error:
            raise DataError(f"{kind} token {short(name)} has a surrogate at character {error.start}") from None
        # It may also be what a merge makes, or a stop word.
        if vocab.get(token) != value or (token not in used and model.stop_words.get(value) != token):
            _add(vocab, token, value, f"{kind} token {short(name)}")
    for token, value in model.decode_only.items():
        if not isinstance(value, bytes):
            raise ArgumentTypeError("decode_only", value, "must have bytes as values")
        _add(vocab, token, value, f"decode-only token {short(value)}")


def check_phrases(model: Model) -> None:
    """Raise unless phrases are sequences of ordinary tokens without newlines, and have ids of their own."""
    for parts in model.phrases:
        if not isinstance(parts, tuple) or {*map(type, parts)} != {int}:
            raise ArgumentTypeError("phrases", parts, "must have tuples of integers as keys")
        if len(parts) < 2:
            raise ArgumentError("phrases", parts, "must have tuples of two or more ids as keys")
    _check_ids("phrase", model.phrases)
    vocab = model.ranked.vocab() | {token: word for word, token in model.stop_words.items()}
    ordinary = dict(vocab)
    vocab |= {token: name.encode() for name, token in model.found_tokens.items()} | dict(model.decode_only)
    size = 0
    for parts, token in model.phrases.items():
        for part in parts:
            if part not in ordinary:
                reason = "must contain only ids of bytes, stop words and merges"
                raise DataError(f"phrase {short(parts)} {reason}, got {part}")
            if b"\n" in ordinary[part]:
                reason = f"must not contain a newline, as token {part}, {short(ordinary[part])}, does"
                raise DataError(f"phrase {short(parts)} {reason}")
        size += sum(len(ordinary[part]) for part in parts)
        if size > MAX_PHRASE_BYTES:
            reason = f"phrases must have at most {MAX_PHRASE_BYTES:,} bytes in total, got {size:,} or more"
            raise DataError(reason, remedy=f"shorten phrase {short(parts)}")
        if token in vocab:
            reason = f"id {token} of phrase {short(parts)} is already used by {short(vocab[token])}"
            raise DataError(reason, remedy="choose another id")
        vocab[token] = b"".join(ordinary[part] for part in parts)


def checked_hidden(model: Model) -> frozenset[int]:
    """Return the hidden tokens. Raise unless merges make them, and they are nothing else."""
    check_iterable("hidden", model.hidden, "must be a collection of ids")
    hidden = [*model.hidden]
    if not hidden:
        return frozenset()
    found = {token: name for name, token in model.found_tokens.items()}
    in_phrases = {part: parts for parts in model.phrases for part in parts}
    made = {*model.merges.values()}
    for token in hidden:
        if type(token) is not int:
            raise ArgumentTypeError("hidden", token, "must contain only integers")
        if token not in made:
            raise ArgumentError("hidden", token, "must contain only ids that merges make")
        if token in found:
            reason = f"must not contain the id of {short(found[token])}, which is a special or added token"
            raise ArgumentError("hidden", token, reason)
        if token in in_phrases:
            raise ArgumentError("hidden", token, f"must not contain a token of phrase {short(in_phrases[token])}")
    return frozenset(hidden)


def _check_ids(kind: str, ids: Mapping[Any, int]) -> None:
    for name, token in ids.items():
        if type(token) is not int or not 0 <= token <= MAX_ID:
            raise DataError(f"id of {kind} {short(name)} must be an integer from 0 to {MAX_ID}, got {short(token)}")


def _add(vocab: dict[int, bytes], token: int, value: bytes, name: str) -> None:
    if not value:
        raise DataError(f"{name} with id {token} must not be empty")
    if token in vocab:
        raise DataError(f"id {token} of {name} is already used by {short(vocab[token])}", remedy="choose another id")
    vocab[token] = value

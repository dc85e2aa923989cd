"""Why an engine encodes a text differently: the first explanation that fits, from the most specific to the least."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from ..analysis.display import quoted_token
from ..errors import short
from ..patterns import PATTERNS, Split
from ..tokenizer import Tokenizer
from .adapters import Loaded
from .reference import Reference
from .results import Kind

Found = tuple[Kind, str] | None
CHANGES: dict[str, Callable[[str], str]] = {
    "normalizes text to NFC": lambda text: unicodedata.normalize("NFC", text),
    "normalizes text to NFD": lambda text: unicodedata.normalize("NFD", text),
    "normalizes text to NFKC": lambda text: unicodedata.normalize("NFKC", text),
    "normalizes text to NFKD": lambda text: unicodedata.normalize("NFKD", text),
    "converts text to lower case": str.lower,
    "removes whitespace at the ends of a text": str.strip,
    "puts a space before a text": lambda text: f" {text}",
}
"""What an engine may do to a text before it is split."""
MAX_NAMES = 3
"""Number of patterns that are named."""
MAX_SIMILAR = 40
"""Number of tokens to look at."""


@dataclass(frozen=True)
class Case:
    """A text that differs, and the texts to check an explanation with."""

    reference: Reference
    engine: str
    loaded: Loaded
    text: str
    ours: list[int]
    theirs: list[int]
    texts: Sequence[str]

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the reference."""
        return self.reference.tokenizer

    def encode(self, texts: Sequence[str], tokenizer: Tokenizer | None = None) -> list[list[int]]:
        """Encode texts as the reference does for this engine, or would do with another tokenizer."""
        reference = replace(self.reference, tokenizer=tokenizer or self.tokenizer)
        return reference.encode([*texts], self.loaded.parses_special)


def cause_of(case: Case) -> tuple[Kind, str]:
    """Return the likely cause, and a sentence about it.

    >>> from ..model import Model
    >>> reference = Reference(Tokenizer(Model(r"\\w+|\\W+", {(97, 98): 256})))
    >>> other = Tokenizer(Model(r"\\w+|\\W+", {(98, 98): 256}))
    >>> loaded = Loaded(other.encode_batch, other.decode, other.vocab.get, other.vocab_size)
    >>> cause_of(Case(reference, "other", loaded, "ab", [256], [97, 98], []))
    ('merges', "The merges of the chunk 'ab' differ: other lacks a merge, or has them in another order.")
    """
    for find in (_special_token, _normalization, _missing_token, _ids, _pattern):
        if found := find(case):
            return found
    chunk = _first_different_chunk(case)
    where = f" of the chunk {quoted_token(chunk)}" if chunk else ""
    return "merges", f"The merges{where} differ: {case.engine} lacks a merge, or has them in another order."


def _special_token(case: Case) -> Found:
    model, loaded, engine = case.tokenizer.model, case.loaded, case.engine
    if not loaded.parses_special:
        return None
    names = sorted((name for name in model.found_tokens if name in case.text), key=len, reverse=True)
    for name in names:
        token = model.found_tokens[name]
        kind = f"{'special' if name in model.special_tokens else 'added'} token {short(name)}"
        ours, theirs = case.ours.count(token), case.theirs.count(token)
        if ours > theirs:
            other = loaded.token(token)
            if other != name.encode():
                what = "does not exist" if other is None else f"is {quoted_token(other)}"
                return "special token", f"The {kind} has the id {token}, which {what} in {engine}."
            return "special token", f"The {kind} (id {token}) is not found in the text by {engine}."
        if theirs > ours:
            return "special token", f"The {kind} (id {token}) is found by {engine} where batchbpe finds other text."
    for token in case.theirs:
        if token not in case.ours and loaded.is_special(token):
            name = quoted_token(loaded.token(token) or b"")
            return "special token", f"{engine} finds {name} (id {token}) in a text, and batchbpe encodes it as text."
    if names:
        pieces = [piece for piece in re.split("|".join(map(re.escape, names)), case.text) if piece]
        if not pieces or case.encode(pieces) == loaded.encode(pieces):
            return "special token", f"{engine} treats the text next to the token {short(names[0])} differently."
    return None


def _normalization(case: Case) -> Found:
    model, engine = case.tokenizer.model, case.engine
    form = model.split.normalization
    if form != "none":
        plain = Tokenizer(replace(model, split=replace(model.split, normalization="none")))
        if case.encode([case.text], plain) == [case.theirs]:
            return "normalization", f"{engine} does not normalize text to {form}."
    for what, change in CHANGES.items():
        changed = change(case.text)
        if changed != case.text and case.encode([changed]) == [case.theirs]:
            return "normalization", f"{engine} {what}, and batchbpe does not."
    return None


def _missing_token(case: Case) -> Found:
    vocab, loaded, engine = case.tokenizer.vocab, case.loaded, case.engine
    for token in case.ours:
        if loaded.token(token) is None:
            return "missing token", f"{engine} has no token with the id {token}, {quoted_token(vocab[token])}."
    for token in case.theirs:
        if token not in vocab:
            name = quoted_token(loaded.token(token) or b"")
            return "missing token", f"The token {name} with the id {token} of {engine} is not in the reference."
    made, named = (
        b"".join(map(vocab.__getitem__, case.ours)),
        b"".join(loaded.token(token) or b"" for token in case.theirs),
    )
    if len(made) != len(named):
        which = "loses bytes of" if len(named) < len(made) else "has more bytes than batchbpe for"
        return "missing token", f"{engine} {which} the text: one of the vocabularies lacks a byte."
    return None


def _ids(case: Case) -> Found:
    ours = [case.tokenizer.vocab[token] for token in case.ours]
    theirs = [case.loaded.token(token) for token in case.theirs]
    if ours != theirs:
        return None
    value, first, second = next(each for each in zip(ours, case.ours, case.theirs, strict=True) if each[1] != each[2])
    return "ids", f"The token {quoted_token(value)} has the id {first} in batchbpe and {second} in {case.engine}."


def _pattern(case: Case) -> Found:
    ours, theirs = _ends_of(case)
    chunks = _chunks(case)
    ends = [0, *_ends(chunks)]
    names = _patterns_that_explain(case)
    some = " or ".join([*names[:MAX_NAMES], *["another"] * (len(names) > MAX_NAMES)])
    like = f" It splits text like the pattern {some}." if names else ""
    own = f" It has {case.loaded.pattern}." if case.loaded.pattern else ""
    crossing = next(
        (number for number, (start, end) in enumerate(pairwise([0, *theirs])) if _between(ends, start, end)), None
    )
    if crossing is not None and ours[-1:] == theirs[-1:]:
        token = quoted_token(case.loaded.token(case.theirs[crossing]) or b"")
        boundary = next(end for end in ends if end > [0, *theirs][crossing])
        crossed = quoted_token(chunks[ends.index(boundary) - 1])
        sentence = f"The token {token} of {case.engine} crosses the end of the chunk {crossed}."
        return "pattern", f"{sentence}{like}{own}"
    chunk = _first_different_chunk(case)
    if chunk and (names or _cuts_similar_tokens(case, [*sorted({*theirs} - {*ours})])):
        return "pattern", f"{case.engine} cuts the chunk {quoted_token(chunk)}.{like}{own}"
    return None


def _bytes_of(value_of: Callable[[int], bytes | None], ids: list[int]) -> list[bytes]:
    return [value_of(token) or b"" for token in ids]


def _ends(values: list[bytes]) -> list[int]:
    return list(accumulate(map(len, values)))


def _ends_of(case: Case) -> tuple[list[int], list[int]]:
    """Return where the tokens of the reference and of the engine end, in bytes."""
    vocab, loaded = case.tokenizer.vocab, case.loaded
    return _ends(_bytes_of(vocab.get, case.ours)), _ends(_bytes_of(loaded.token, case.theirs))


def _between(numbers: list[int], start: int, end: int) -> bool:
    return any(start < number < end for number in numbers)


def _chunks(case: Case) -> list[bytes]:
    """Return the chunks of the reference, without bytes that are not encoded."""
    special = "all" if case.loaded.parses_special else "none"
    ids, _, words = case.tokenizer.core_encoder.encode_with_words(case.text, special)  # type: ignore[arg-type]
    chunks: list[bytes] = []
    before = None
    for token, word in zip(ids, words.tolist(), strict=True):
        if word != before:
            chunks.append(b"")
        chunks[-1] += case.tokenizer.vocab[token]
        before = word
    return chunks


def _first_different_chunk(case: Case) -> bytes:
    """Return the first chunk of the reference that the engine cuts into other tokens."""
    ours, theirs = _ends_of(case)
    end = 0
    for chunk in _chunks(case):
        start, end = end, end + len(chunk)
        if [each for each in ours if start < each <= end] != [each for each in theirs if start < each <= end]:
            return chunk
    return b""


def _patterns_that_explain(case: Case) -> list[str]:
    """Return the named patterns with which the reference encodes the text, and most other texts, like the engine."""
    model, texts = case.tokenizer.model, [case.text, *case.texts]
    theirs = case.loaded.encode(texts)
    wrong = _mismatches(case.encode(texts), theirs)
    found: dict[str, int] = {}
    for name, pattern in PATTERNS.items():
        split = Split(pattern, normalization=model.split.normalization)
        if split == model.split or model.phrases:
            continue
        other = Tokenizer(replace(model, split=split))
        if case.encode([case.text], other) == [case.theirs]:
            found[name] = _mismatches(case.encode(texts, other), theirs)
    least = min(found.values(), default=wrong)
    return [name for name, number in found.items() if number == least and number * 2 < wrong]


def _mismatches(ours: list[list[int]], theirs: list[list[int]]) -> int:
    return sum(one != other for one, other in zip(ours, theirs, strict=True))


def _cuts_similar_tokens(case: Case, cuts: list[int]) -> bool:
    """Return whether the engine also cuts most other tokens between two characters of the same classes.

    A pattern cuts all of them, while a missing merge concerns a single token.
    """
    data = b"".join(_bytes_of(case.tokenizer.vocab.get, case.ours))
    classes = next((found for cut in cuts if (found := _classes_at(data, cut))), None)
    if classes is None:
        return False
    similar = list(_tokens_with(case, classes))
    parts = (_ends(_bytes_of(case.loaded.token, ids)) for ids in case.loaded.encode([text for text, _ in similar]))
    cut = sum(position in ends for (_, position), ends in zip(similar, parts, strict=True))
    return len(similar) > 1 and cut * 2 > len(similar)


def _classes_at(data: bytes, cut: int) -> str | None:
    """Return the classes of the characters on both sides, or None if the cut is inside a character."""
    try:
        return _class_of(data[:cut].decode()[-1:]) + _class_of(data[cut:].decode()[:1])
    except UnicodeDecodeError:
        return None


def _class_of(character: str) -> str:
    return character if character in "\r\n '" else unicodedata.category(character)[:1]


def _tokens_with(case: Case, classes: str) -> Iterator[tuple[str, int]]:
    """Yield tokens that contain two neighboring characters of some classes, and the offset between these in bytes."""
    found = 0
    model = case.tokenizer.model
    for token in model.visible_merges.values():
        try:
            text = model.vocab[token].decode()
        except UnicodeDecodeError:
            continue
        kinds = [*map(_class_of, text)]
        at = next((n for n, pair in enumerate(pairwise(kinds), 1) if "".join(pair) == classes), None)
        if at is not None and case.encode([text]) == [[token]]:
            yield text, len(text[:at].encode())
            found += 1
            if found == MAX_SIMILAR:
                return

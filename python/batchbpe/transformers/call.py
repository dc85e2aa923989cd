"""One call of a `BatchBPETokenizer`: its texts, and the columns of its output.

The usual options are implemented here. For the others, such as pairs of texts, the core finds ids, offsets and words,
and Hugging Face's library does the rest.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..errors import ArgumentTypeError
from ..formats.post_processor import Wrapping, wrapping_of
from ..tokenizer import Tokenizer
from ..tokenizer.special import special_of

if TYPE_CHECKING:
    Backend: Any
    BPE: Any
    Encoding: Any
    PaddingStrategy: Any
    TruncationStrategy: Any
else:
    from tokenizers import Encoding
    from tokenizers import Tokenizer as Backend
    from tokenizers.models import BPE
    from transformers.tokenization_utils_base import PaddingStrategy, TruncationStrategy


@dataclass(frozen=True)
class Call:
    """The settings that decide which tokens there are, as they are when a tokenizer is called."""

    tokenizer: Tokenizer
    names_of: Callable[[list[int]], list[str]]
    allow_special: bool
    add_special_tokens: bool
    post_processor: Any
    truncation: Any
    truncation_side: str
    max_length: int | None
    stride: int
    padding: Any
    padding_side: str
    multiple: int
    pad: dict[str, Any]
    """The id, the type id and the name of the token for padding."""

    def encode(
        self, inputs: list[tuple[Any, Any]], wanted: dict[str, bool], with_overflow: bool
    ) -> tuple[dict[str, list[Any]], Sequence[Any], list[int]]:
        """Return the columns of the output, the encodings, and the index of the input of each encoding."""
        wrapping = wrapping_of(state_of(self.post_processor))
        if wrapping and not with_overflow and self._is_simple(inputs, wrapping):
            columns = self._columns([text for text, _ in inputs], wrapping, wanted)
            widths = [len(ids) for ids in columns["input_ids"]]
            encodings = _Encodings(
                len(inputs), lambda index: self._padded(self._encoding(*inputs[index]), widths[index])
            )
            return columns, encodings, [*range(len(inputs))]
        found = [self._encoding(*each) for each in inputs]
        width = self._width([len(encoding) for encoding in found])
        found = [self._padded(encoding, width) for encoding in found]
        groups = [[encoding, *encoding.overflowing] if with_overflow else [encoding] for encoding in found]
        samples = [index for index, group in enumerate(groups) for _ in group]
        found = [encoding for group in groups for encoding in group]
        attributes = {"input_ids": "ids"} | {name: _ATTRIBUTES[name] for name, is_wanted in wanted.items() if is_wanted}
        columns = {name: [getattr(encoding, each) for encoding in found] for name, each in attributes.items()}
        return columns, found, samples

    @property
    def _is_truncated(self) -> bool:
        return self.truncation != TruncationStrategy.DO_NOT_TRUNCATE and self.max_length is not None

    def _is_simple(self, inputs: list[tuple[Any, Any]], wrapping: Wrapping) -> bool:
        """Return whether `_columns` supports the options."""
        if not all(type(text) is str and pair is None for text, pair in inputs):
            return False
        if not self._is_truncated:
            return True
        is_from_right = self.truncation_side == "right"
        is_usual = self.truncation != TruncationStrategy.ONLY_SECOND and not self.stride
        return is_usual and self._room(wrapping) > 0 and (is_from_right or not wrapping.trim)

    def _room(self, wrapping: Wrapping) -> int:
        """Return how many tokens of a text are kept."""
        added = len(wrapping.before) + len(wrapping.after) if self.add_special_tokens else 0
        return (self.max_length or 0) - added

    def _columns(self, texts: list[str], wrapping: Wrapping, wanted: dict[str, bool]) -> dict[str, list[Any]]:
        """Encode single texts, each of which is truncated and then padded."""
        core, special, offsets = self.tokenizer.core_encoder, special_of(self.allow_special), list[Any]()
        if wanted["offset_mapping"]:
            ids, offsets = core.encode_batch_with_offsets(texts, special, wrapping.trim, None)
        else:
            ids = core.encode_batch(texts, special, None)
        if self._is_truncated:
            room = self._room(wrapping)
            kept = slice(room) if self.truncation_side == "right" else slice(-room, None)
            ids, offsets = ([row[kept] if len(row) > room else row for row in rows] for rows in (ids, offsets))
        before, after = (wrapping.before, wrapping.after) if self.add_special_tokens else ((), ())
        types_before, kept_type, types_after = (
            wrapping.types if self.add_special_tokens else ((), wrapping.types[1], ())
        )
        lengths = [len(row) for row in ids]
        width = self._width([len(before) + length + len(after) for length in lengths])

        def column(rows: list[Any], before: Sequence[Any], after: Sequence[Any], fill: Any) -> list[Any]:
            if before or after:
                rows = [[*before, *row, *after] for row in rows]
            if not width:
                return rows
            if self.padding_side == "right":
                return [row + [fill] * (width - len(row)) for row in rows]
            return [[fill] * (width - len(row)) + row for row in rows]

        columns = {"input_ids": column(ids, before, after, self.pad["pad_id"])}
        if wanted["token_type_ids"]:
            types = [[kept_type] * length for length in lengths]
            columns["token_type_ids"] = column(types, types_before, types_after, self.pad["pad_type_id"])
        ones = ([1] * len(before), [1] * len(after))
        if wanted["attention_mask"]:
            columns["attention_mask"] = column([[1] * length for length in lengths], *ones, 0)
        if wanted["special_tokens_mask"]:
            columns["special_tokens_mask"] = column([[0] * length for length in lengths], *ones, 1)
        if wanted["offset_mapping"]:
            columns["offset_mapping"] = column(offsets, [(0, 0)] * len(before), [(0, 0)] * len(after), (0, 0))
        return columns

    def _width(self, lengths: list[int]) -> int:
        """Return the length to which all rows are padded, or 0."""
        if self.padding == PaddingStrategy.DO_NOT_PAD:
            return 0
        is_fixed = self.padding == PaddingStrategy.MAX_LENGTH
        length = self.max_length or 0 if is_fixed else max(lengths, default=0)
        return -(-length // self.multiple) * self.multiple

    def _encoding(self, text: Any, pair: Any) -> Any:
        """Encode a text, or a pair, as an `Encoding` of Hugging Face's library, which truncates it and adds tokens."""
        backend = Backend(BPE())  # that of the tokenizer is shared by threads, and its settings may have changed
        if self.post_processor is not None:
            backend.post_processor = self.post_processor
        if self._is_truncated:
            options = {"stride": self.stride, "strategy": self.truncation.value, "direction": self.truncation_side}
            backend.enable_truncation(self.max_length, **options)
        raw = [self._raw(each, type_id) for type_id, each in enumerate((text, pair)) if each is not None]
        return backend.post_process(*raw, add_special_tokens=self.add_special_tokens)

    def _raw(self, text: str | Sequence[str], type_id: int) -> Any:
        encode, special = self.tokenizer.core_encoder.encode_with_words, special_of(self.allow_special)
        if isinstance(text, str):
            ids, offsets, words = encode(text, special)
            indices, texts = words.tolist(), [text] * len(ids)
        else:
            ids, offsets, indices, texts = [], [], [], []
            for index, word in enumerate(text):
                more_ids, more_offsets, _ = encode(word, special)
                ids += more_ids
                offsets += more_offsets
                indices += [index] * len(more_ids)
                texts += [word] * len(more_ids)
        tokens = self.names_of(ids)
        model = self.tokenizer.model
        split = replace(model.split, prefix_space=False)
        found = {token: "normalized" in model.flags_of(name) for name, token in model.found_tokens.items()}
        for index, id in enumerate(ids):
            if id in found:  # it is called as in the text, with the whitespace that it strips
                start, end = offsets[index]
                name = texts[index][start:end]
                tokens[index] = split.normalize(name) if found[id] else name
        zeros = [0] * len(ids)
        state = {
            "ids": ids, "type_ids": [type_id] * len(ids), "tokens": tokens, "words": indices, "offsets": offsets,
            "special_tokens_mask": zeros, "attention_mask": [1] * len(ids), "overflowing": [], "sequence_ranges": {},
        }  # fmt: skip
        encoding = Encoding()
        encoding.__setstate__(json.dumps(state).encode())
        return encoding

    def _padded(self, encoding: Any, width: int) -> Any:
        if self.padding != PaddingStrategy.DO_NOT_PAD:
            encoding.pad(width, direction=self.padding_side, **self.pad)
        return encoding


_ATTRIBUTES = {
    "token_type_ids": "type_ids",
    "attention_mask": "attention_mask",
    "special_tokens_mask": "special_tokens_mask",
    "offset_mapping": "offsets",
}


class _Encodings(Sequence[Any]):
    """A list of encodings that are made when they are first used."""

    def __init__(self, size: int, make: Callable[[int], Any]) -> None:
        self._made: list[Any] = [None] * size
        self._make = make

    def __len__(self) -> int:
        return len(self._made)

    def __getitem__(self, index: Any) -> Any:
        for each in range(len(self))[index] if isinstance(index, slice) else [range(len(self))[index]]:
            if self._made[each] is None:
                self._made[each] = self._make(each)
        return self._made[index]

    def __reduce__(self) -> Any:
        return list, ([*self],)


def inputs_of(text: Any, pair: Any, is_split_into_words: bool) -> tuple[list[tuple[Any, Any]], bool]:
    """Return the texts of a call, each with the second one of a pair or None, and whether they are a batch."""
    is_list = isinstance(text, list | tuple)
    is_batch = is_list and (not is_split_into_words or (bool(text) and isinstance(text[0], list | tuple)))
    if not is_batch:
        return [(_checked(text, is_split_into_words), _checked(pair, is_split_into_words) if pair else None)], False
    if pair is None and all(type(each) is str for each in text):
        return [(each, None) for each in text], True
    if pair is None:
        pairs = [each if _is_pair(each, is_split_into_words) else (each, None) for each in text]
    elif isinstance(pair, list | tuple) and len(pair) == len(text):
        pairs = [*zip(text, pair, strict=True)]
    else:
        raise ArgumentTypeError("text_pair", pair, f"must be a list of {len(text)} texts, one for each text")
    for first, second in pairs:
        _checked(first, is_split_into_words)
        if second is not None:
            _checked(second, is_split_into_words)
    return pairs, True


def _is_pair(each: Any, is_split_into_words: bool) -> bool:
    kind = list | tuple if is_split_into_words else str
    return isinstance(each, list | tuple) and len(each) == 2 and all(isinstance(one, kind) for one in each)


def _checked(text: Any, is_split_into_words: bool) -> Any:
    words = text if is_split_into_words and isinstance(text, list | tuple) else [text]
    if (is_split_into_words and words is not text) or not all(isinstance(word, str) for word in words):
        kind = "a list of words" if is_split_into_words else "a string, or a list of strings or pairs of strings"
        raise ArgumentTypeError("text", text, f"must be {kind}")
    return text


def chosen(value: bool | None, default: bool) -> bool:
    """Return an option, or its default if it is None."""
    return default if value is None else value


def state_of(part: Any) -> bytes | None:
    """Return a part of a backend as JSON."""
    return None if part is None else part.__getstate__()

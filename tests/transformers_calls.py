"""Calls of a transformers tokenizer, for comparing two that must give the same output."""

from __future__ import annotations

from typing import Any

import numpy as np

ALL: dict[str, Any] = {
    "return_offsets_mapping": True,
    "return_special_tokens_mask": True,
    "return_token_type_ids": True,
    "return_length": True,
}
CALLS: list[dict[str, Any]] = [
    {},
    ALL,
    {"add_special_tokens": False, **ALL},
    {"split_special_tokens": True, **ALL},
    {"truncation": True, "max_length": 12, **ALL},
    {"truncation": "only_first", "max_length": 12},
    {"max_length": 7},
    {"truncation": True, "max_length": 1},
    {"padding": True, **ALL},
    {"padding": True, "padding_side": "left", **ALL},
    {"padding": "max_length", "max_length": 40, **ALL},
    {"padding": "max_length", "max_length": 24, "truncation": True, "return_tensors": "np", **ALL},
    {"padding": True, "truncation": True, "max_length": 16, "pad_to_multiple_of": 8, **ALL},
    {"truncation": True, "max_length": 12, "stride": 3, "return_overflowing_tokens": True, **ALL},
    {"padding": True, "truncation": True, "max_length": 9, "return_overflowing_tokens": True, **ALL},
    {"return_attention_mask": False},
]
PAIR_CALLS = [
    *CALLS,
    *({"truncation": strategy, "max_length": 15, **ALL} for strategy in ("only_first", "only_second")),
]


def outcome(call: Any, *args: Any, **options: Any) -> Any:
    """Return the output of a call, or the type of its error."""
    try:
        found = call(*args, **options)
    except Exception as error:
        return type(error)
    return {
        name: (str(each.dtype), each.tolist()) if isinstance(each, np.ndarray) else each for name, each in found.items()
    }


def details(found: Any, words: bool = True) -> list[Any]:
    """Return what the encodings of an output say about each token, and where characters and words are."""
    result: list[Any] = [found.n_sequences, found.is_fast]
    for index in range(len(found.encodings)):
        encoding = found[index]
        result += [found.tokens(index), found.sequence_ids(index), encoding.offsets, encoding.n_sequences]
        result += [encoding.special_tokens_mask, encoding.attention_mask, encoding.type_ids]
        result += [[found.char_to_token(index, at) for at in range(0, 60, 7)]]
        if words:
            result += [found.word_ids(index), [found.word_to_tokens(index, word) for word in range(0, 12, 5)]]
    return result


def check_equal(theirs: Any, mine: Any, texts: list[str], *, words: bool = True) -> None:
    """Compare two tokenizers. `words` says whether to compare the words of tokens too."""
    for name in ("bos_token_id", "eos_token_id", "pad_token_id", "all_special_ids", "model_max_length", "padding_side"):
        assert getattr(mine, name) == getattr(theirs, name), name
    assert len(mine) == len(theirs)
    assert mine.get_vocab() == theirs.get_vocab()
    for side in ("right", "left"):
        theirs.truncation_side = mine.truncation_side = side
        for options in CALLS:
            assert outcome(mine, texts, **options) == outcome(theirs, texts, **options), (side, options)
            for text in texts[:3]:
                assert outcome(mine, text, **options) == outcome(theirs, text, **options), (side, options, text)
        shorter = [text[:60] for text in texts]
        for options in PAIR_CALLS:
            found, expected = (outcome(each, shorter, shorter[::-1], **options) for each in (mine, theirs))
            assert found == expected, (side, options)
    theirs.truncation_side = mine.truncation_side = "right"
    split = [text.split()[:20] for text in texts]
    for options in CALLS:
        found, expected = (outcome(each, split, is_split_into_words=True, **options) for each in (mine, theirs))
        assert found == expected, options
    for options in ({}, {"truncation": True, "max_length": 20}, {"padding": True}):
        if "padding" not in options or mine.pad_token:
            assert details(mine(shorter, **options), words) == details(theirs(shorter, **options), words), options
    pairs = (shorter[:9], shorter[1:10])
    assert details(mine(*pairs), words) == details(theirs(*pairs), words)
    assert [mine.tokenize(text) for text in shorter] == [theirs.tokenize(text) for text in shorter]
    ids = theirs(texts)["input_ids"]
    assert [*map(mine.convert_ids_to_tokens, ids)] == [*map(theirs.convert_ids_to_tokens, ids)]
    # Hugging Face's library decodes the letter é of an added token as the byte 0xE9.
    wrong = {id for id, token in theirs.added_tokens_decoder.items() if theirs.decode([id]) != token.content}
    for row in ids:
        for skip in (False, True) if wrong.isdisjoint(row) else ():
            assert mine.decode(row, skip_special_tokens=skip) == theirs.decode(row, skip_special_tokens=skip)

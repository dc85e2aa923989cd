"""Decoding step by step gives the text of decoding at once, and no part of a character."""

from pathlib import Path

import numpy as np
import pytest
import tokenizers
from helpers import END, TEXT, examples, texts
from hypothesis import given
from hypothesis import strategies as st
from tokenizers.decoders import DecodeStream as TheirStream

from batchbpe import BatchTokenizer, Tokenizer

TOKENIZER = Tokenizer.train(TEXT, 400, special_tokens=[END])
HANDLERS = ("replace", "ignore", "backslashreplace", "surrogateescape", "surrogatepass", "strict")
_BYTES = st.sampled_from([*b"\x00\x41\x7f\x80\x8f\x90\x9f\xa0\xbf\xc0\xc2\xe0\xe6\xed\xef\xf0\xf4\xf5\xff"])
_IDS = st.lists(st.one_of(_BYTES, st.integers(0, 399)), max_size=30)


@examples(500)
@given(
    ids=st.one_of(_IDS, texts.map(TOKENIZER.encode_ordinary)),
    cuts=st.lists(st.integers(0, 3)),
    errors=st.sampled_from(HANDLERS),
    skip=st.booleans(),
)
def test_hyp_all_steps_are_the_whole(ids: list[int], cuts: list[int], errors: str, skip: bool) -> None:
    """For any ids, invalid UTF-8 included, however many a step receives."""
    stream = TOKENIZER.decode_stream(errors, skip_special_tokens=skip)
    parts, todo = [], [*ids]
    try:
        for size in cuts:
            parts.append(stream.step(todo[:size]))
            del todo[:size]
        parts += map(stream.step, todo)
        parts.append(stream.finish())
    except UnicodeDecodeError:
        with pytest.raises(UnicodeDecodeError):
            TOKENIZER.decode(ids, errors, skip_special_tokens=skip)
    else:
        assert "".join(parts) == TOKENIZER.decode(ids, errors, skip_special_tokens=skip)


@given(texts)
def test_hyp_characters_are_returned_when_they_are_complete(text: str) -> None:
    stream, received, shown = TOKENIZER.decode_stream(), b"", ""
    for token in TOKENIZER.encode_ordinary(text):
        received += TOKENIZER.vocab[token]
        shown += stream.step(token)
        assert shown == received.decode("utf-8", "ignore")  # all but a character that is incomplete
    assert stream.finish() == ""


def test_same_text_as_tokenizers(tmp_path: Path) -> None:
    TOKENIZER.export(tmp_path / "tokenizer.json", "huggingface")
    library = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    ids = TOKENIZER.encode(f"{TEXT}{END}naïve 😀 日本語{END}", "all")
    for skip in (False, True):
        ours, theirs = TOKENIZER.decode_stream(skip_special_tokens=skip), TheirStream(skip_special_tokens=skip)
        shown = "".join(map(ours.step, ids))
        assert shown == "".join(theirs.step(library, token) or "" for token in ids)
        assert shown == TOKENIZER.decode(ids, skip_special_tokens=skip)


def test_ids_of_any_kind() -> None:
    ids = TOKENIZER.encode("to be 語")
    array = np.array(ids, np.int32)
    for tokens in (ids, tuple(ids), iter(ids), array, array.astype(np.uint32)):
        stream = TOKENIZER.decode_stream()
        assert stream.step(tokens) + stream.finish() == "to be 語"
    stream = TOKENIZER.decode_stream()
    assert "".join(map(stream.step, array)) == "to be 語"
    assert stream.step([]) == ""
    paper = BatchTokenizer()
    assert paper.decode_stream().step([116, 111]) == "to"


@pytest.mark.parametrize("bad", [400, -1, 1 << 40, "to", None, 1.5, [97, "b"], [97, 400], [[97]]])
def test_a_bad_step_raises_as_decode_does_and_changes_nothing(bad: object) -> None:
    stream = TOKENIZER.decode_stream()
    assert stream.step("語".encode()[:2]) == ""
    with pytest.raises((ValueError, TypeError)) as ours:
        stream.step(bad)  # type: ignore[arg-type]
    with pytest.raises(type(ours.value)) as theirs:
        TOKENIZER.decode([bad] if isinstance(bad, int) else bad)  # type: ignore[arg-type,list-item]
    assert str(ours.value) == str(theirs.value)
    assert stream.step("語".encode()[2]) == "語"


def test_strict_errors_and_the_next_text() -> None:
    stream = TOKENIZER.decode_stream("strict")
    stream.step(0xE6)
    with pytest.raises(UnicodeDecodeError):
        stream.step(97)
    assert stream.step([0x97, 0xA5]) == "日"
    stream.step(0xE6)
    with pytest.raises(UnicodeDecodeError):
        stream.finish()
    stream = TOKENIZER.decode_stream()
    assert (stream.step(0xE6), stream.finish(), stream.step(97)) == ("", "�", "a")


def test_arguments() -> None:
    with pytest.raises(LookupError, match="unknown error handler name 'lenient'"):
        TOKENIZER.decode_stream("lenient")
    with pytest.raises(TypeError, match="errors must be a string, got None"):
        TOKENIZER.decode_stream(None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="skip_special_tokens must be True or False, got 1"):
        TOKENIZER.decode_stream(skip_special_tokens=1)  # type: ignore[arg-type]

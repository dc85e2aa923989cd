"""The methods named as in tiktoken and Hugging Face return what these libraries return."""

import copy
import pickle
from typing import Any

import pytest
import tiktoken
from helpers import texts
from hypothesis import given
from hypothesis import strategies as st

from batchbpe import Model, Tokenizer

END, FIM = "<|endoftext|>", "<|fim|>"
TEXT = "the theory of the thing — and the other thing’s thirty-third théorie; " * 3
OURS = Tokenizer.train(TEXT, 330, pattern="cl100k", special_tokens={END: 400, FIM: 500})
THEIRS = OURS.to_tiktoken()
BYTES = [b" the", b"\n", b" ", b"\t ", b"\xff", b"\xc3", "é".encode(), b" thing", b"1234", END.encode()]
_marked = st.lists(st.one_of(texts, st.sampled_from([END, FIM])), max_size=4).map("".join)
_allowed = st.sampled_from([set(), {END}, {FIM}, {END, FIM}, "all", {"absent"}])
_disallowed = st.one_of(st.just(()), st.sampled_from([{END}, {FIM}, "all", {"the"}]))


def outcome(call: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the result, or the kind of error."""
    try:
        return call(*args, **kwargs)
    except (ValueError, KeyError) as error:
        return KeyError if isinstance(error, KeyError) else ValueError


@given(text=_marked, allowed=_allowed, disallowed=_disallowed)
def test_hyp_special_tokens(text: str, allowed: Any, disallowed: Any) -> None:
    for method in ("encode", "encode_to_numpy"):
        for kwargs in (
            {},
            {"allowed_special": allowed},
            {"disallowed_special": disallowed},
            {"allowed_special": allowed, "disallowed_special": disallowed},
        ):
            ours, theirs = (outcome(getattr(tokenizer, method), text, **kwargs) for tokenizer in (OURS, THEIRS))
            assert ours is theirs or list(ours) == list(theirs), kwargs
    assert outcome(OURS.encode_batch, [text, "the"], allowed_special=allowed, num_threads=2) == outcome(
        THEIRS.encode_batch, [text, "the"], allowed_special=allowed, num_threads=2
    )


@given(text=texts)
def test_hyp_same_results_as_tiktoken(text: str) -> None:
    ids = OURS.encode_ordinary(text)
    assert ids == THEIRS.encode_ordinary(text)
    assert OURS.encode_ordinary_batch([text, "the"]) == THEIRS.encode_ordinary_batch([text, "the"])
    assert OURS.decode_batch([ids, ids[:1]]) == THEIRS.decode_batch([ids, ids[:1]])
    assert OURS.decode_bytes_batch([ids, ids[:1]]) == THEIRS.decode_bytes_batch([ids, ids[:1]])
    assert OURS.decode_tokens_bytes(ids) == THEIRS.decode_tokens_bytes(ids)
    assert OURS.decode_with_offsets(ids) == THEIRS.decode_with_offsets(ids)
    assert OURS.decode(ids[:-1], errors="ignore") == THEIRS.decode(ids[:-1], errors="ignore")


def test_same_results_as_tiktoken() -> None:
    for name in ("n_vocab", "max_token_value", "eot_token", "special_tokens_set", "name"):
        assert getattr(OURS, name) == getattr(THEIRS, name), name
    assert OURS.token_byte_values() == THEIRS.token_byte_values()
    for value in ("the", b" th", END, b"\xe2", "absent words", b"\xff\xfe"):
        assert outcome(OURS.encode_single_token, value) == outcome(THEIRS.encode_single_token, value), value
    for token in range(502):
        ours = outcome(OURS.decode_single_token_bytes, token)
        assert ours == outcome(THEIRS.decode_single_token_bytes, token), token
        assert OURS.is_special_token(token) == THEIRS.is_special_token(token)
    for decode in ("decode", "decode_bytes", "decode_with_offsets", "decode_tokens_bytes"):
        assert outcome(getattr(OURS, decode), [97, 450]) is outcome(getattr(THEIRS, decode), [97, 450]) is KeyError
    assert OURS.decode(tokens=[400]) == THEIRS.decode(tokens=[400])
    assert OURS.encode_batch(text=["the"]) == THEIRS.encode_batch(text=["the"])
    for wrong in (1.0, "a"):
        with pytest.raises(TypeError):
            OURS.decode_single_token_bytes(wrong)  # type: ignore[arg-type]
    assert OURS.decode([400, 116], errors="strict") == f"{END}t"
    with pytest.raises(UnicodeDecodeError):
        OURS.decode([OURS.encode_single_token(b"\xe2")], errors="strict")


@given(data=st.binary(max_size=40) | st.lists(st.sampled_from(BYTES)).map(b"".join))
def test_hyp_any_bytes_have_the_ids_of_tiktoken(data: bytes) -> None:
    ids = OURS.encode_bytes(data)
    assert ids == THEIRS._encode_bytes(data)
    assert OURS.decode_bytes(ids) == data


def test_wrong_bytes() -> None:
    with pytest.raises(TypeError, match="data must be bytes, got 'a'; use encode for a string"):
        OURS.encode_bytes("a")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="threads must be at least 1"):
        OURS.encode_bytes(b"a", threads=0)


def test_copies() -> None:
    for copied in (pickle.loads(pickle.dumps(OURS)), copy.copy(OURS), copy.deepcopy(OURS)):
        assert copied.encode(TEXT) == OURS.encode(TEXT)
        assert (copied.name, copied.special_tokens) == (OURS.name, OURS.special_tokens)


def test_names_and_missing_tokens() -> None:
    assert Tokenizer(OURS.model, name="mine").name == "mine"
    plain = Tokenizer.train("the", 257)
    with pytest.raises(KeyError, match=r"'<\|endoftext\|>' does not exist; the model has no special tokens"):
        _ = plain.eot_token
    with pytest.raises(KeyError, match="'thee' is not a single token"):
        plain.encode_single_token("thee")
    with pytest.raises(KeyError, match=r"^token id 999 does not exist; the largest id is 256$"):
        plain.decode_single_token_bytes(999)
    assert isinstance(THEIRS, tiktoken.Encoding)


def test_hugging_face_names() -> None:
    assert OURS.token_to_id("Ġthe") == OURS.encode_single_token(" the")
    assert OURS.id_to_token(OURS.encode(" the")[0]) == "Ġthe"
    assert (OURS.token_to_id(END), OURS.id_to_token(400)) == (400, END)
    assert OURS.token_to_id("the the") is OURS.token_to_id("") is OURS.id_to_token(450) is None
    assert OURS.get_vocab() == OURS.get_vocab(with_added_tokens=False) | {END: 400, FIM: 500}
    assert OURS.get_vocab_size() == len(OURS.get_vocab()) == OURS.get_vocab_size(with_added_tokens=False) + 2


def test_stop_word_takes_precedence_over_a_merge_with_the_same_bytes() -> None:
    merges = {(116, 104): 257, (257, 101): 258}
    tokenizer = Tokenizer(Model(split=r"\w+|\W", merges=merges, stop_words={b"the": 256}))
    assert tokenizer.encode("the") == [tokenizer.encode_single_token("the")] == [tokenizer.token_to_id("the")] == [256]
    assert tokenizer.id_to_token(258) == "the"

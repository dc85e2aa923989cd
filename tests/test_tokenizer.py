"""Encoding and decoding, special tokens, equality, copies and processes."""

import copy
import multiprocessing
import pickle
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from helpers import texts
from hypothesis import given
from hypothesis import strategies as st

from batchbpe import BatchTokenizer, Model, QuickTokenizer, Tokenizer
from batchbpe.util.surrogates import SurrogateError

TEXT = "the theory of the thing, and the other things; then there is another theory. " * 9
END, LONG, CODE = "<|end|>", "<|end|>\n more", "(.*)"
SMALL = Tokenizer.train(TEXT, 280, special_tokens=[END, LONG, CODE])
PAPER = BatchTokenizer()
PAPER.register_special_tokens({END: 277, LONG: 278, CODE: 279})
PAPER.train(TEXT, 280)


@given(text=texts)
def test_hyp_round_trip(text: str) -> None:
    ids = SMALL.encode_ordinary(text)
    assert SMALL.decode(ids) == text
    assert SMALL.decode_bytes(np.array(ids, np.uint32)) == text.encode()
    assert SMALL.encode_to_numpy(text, "none").tolist() == ids


@given(documents=st.lists(texts, max_size=6), threads=st.sampled_from([None, 1, 3]))
def test_hyp_batches(documents: list[str], threads: int | None) -> None:
    each = [SMALL.encode(text, "all") for text in documents]
    assert SMALL.encode_batch(documents, "all", threads=threads) == each
    assert SMALL.encode_batch(iter(documents), "all") == each
    ids, offsets = SMALL.encode_batch_to_numpy(documents, "all", threads=threads)
    assert (ids.dtype, offsets.dtype) == (np.uint32, np.int64)
    assert [ids[a:b].tolist() for a, b in pairwise(offsets)] == each


def test_allowed_special() -> None:
    end, long, code = (SMALL.special_tokens[name] for name in (END, LONG, CODE))
    assert sorted((end, long, code)) == [SMALL.n_vocab - 3, SMALL.n_vocab - 2, SMALL.n_vocab - 1]
    text = f"the{END}the{LONG} {CODE}"
    the = SMALL.encode("the")
    as_text = [SMALL.encode_ordinary(part) for part in (END, LONG)]
    assert SMALL.encode(text, "all") == [*the, end, *the, long, 32, code]
    assert SMALL.encode(text, "none") == SMALL.encode_ordinary(text)
    assert not {end, long, code} & set(SMALL.encode(text, "none"))
    # As in tiktoken, a special token that is not allowed is an error unless it is excluded from the disallowed ones.
    for only in ({END, CODE}, [CODE, END], (END, CODE), frozenset({END, CODE})):
        expected = [*the, end, *the, end, *SMALL.encode("\n more "), code]
        assert SMALL.encode(text, only, disallowed_special=()) == expected
        assert PAPER.encode(text, only) == expected
        for encode in (SMALL.encode, SMALL.encode_to_numpy, lambda *args: SMALL.encode_batch([args[0]], *args[1:])):
            with pytest.raises(ValueError, match=r"special token .<\|end\|>.n more"):
                encode(text, only)
        assert SMALL.encode("the", only) == the
    assert SMALL.encode(text, {LONG}, ())[-len(SMALL.encode_ordinary(" (.*)")) - 1] == long
    assert SMALL.encode(text, set(), ()) == PAPER.encode(text, []) == SMALL.encode_ordinary(text)
    assert SMALL.encode(text, "none_raise", {"<absent>"}) == SMALL.encode_ordinary(text)
    with pytest.raises(ValueError, match="theory"):
        SMALL.encode("a theory", disallowed_special={"theory"})
    assert SMALL.decode(SMALL.encode(text, "all")) == text
    assert as_text[0] != as_text[1]


def test_special_token_in_the_text_is_an_error() -> None:
    problem = r'the text contains the special token "<\|end\|>" at byte 3; .* allowed_special=\{"<\|end\|>"\} .*"none"'
    for call in (SMALL.encode, SMALL.encode_to_numpy, lambda text: SMALL.encode_batch(["", text])):
        with pytest.raises(ValueError, match=problem):
            call(f"é {END}")
    assert SMALL.encode("<|end |>") == SMALL.encode_ordinary("<|end |>")


def test_wrong_allowed_special() -> None:
    assert SMALL.encode("text <nope>", {"<nope>", END}) == SMALL.encode_ordinary("text <nope>")
    for wrong in ("some", END):
        with pytest.raises(
            ValueError, match=r'^allowed_special must be "all", "none", "none_raise" or a collection of'
        ):
            SMALL.encode("text", wrong)
        with pytest.raises(ValueError, match=r'disallowed_special must be "all" or a collection of special tokens'):
            SMALL.encode("text", set(), wrong)
    for wrong in (3, None, [3]):
        with pytest.raises(ValueError, match=r"allowed_special must be a collection of special tokens"):
            SMALL.encode("text", wrong)


def test_special_tokens_are_not_trained_on() -> None:
    plain, marked = "ab cd " * 50, f"ab cd{END} " * 50
    model = Tokenizer.train(marked, 300, special_tokens=[END]).model
    assert not any(b"|" in value or b"en" in value for value in (model.vocab[t] for t in model.merges.values()))
    assert Tokenizer.train(plain, 257, special_tokens=[END]).n_vocab == 257


@pytest.mark.parametrize("ids", [[300], [-1], [2**32], [2**70], [-(2**70)], [97, 300]], ids=str)
def test_decode_out_of_range(ids: list[int]) -> None:
    with pytest.raises(ValueError, match=rf"token id {ids[-1]} does not exist; the largest id is 279"):
        SMALL.decode(ids)
    if abs(ids[-1]) < 2**63:
        with pytest.raises(ValueError, match=rf"token id {ids[-1]} does not exist; the largest id is 279"):
            SMALL.decode(np.array(ids))


def test_decoding_without_special_tokens() -> None:
    model = Model(split=r"\\S+|\\s+", merges={}, special_tokens={"<s>": 300, "é": 301}, added_tokens={"  ": 302})
    tokenizer, ids = Tokenizer(model), [300, 97, 302, 301, 195, 300, 169]
    assert tokenizer.decode(ids, skip_special_tokens=True) == "a  é"
    assert tokenizer.decode_bytes(np.array(ids), skip_special_tokens=True) == "a  é".encode()
    assert tokenizer.decode_batch([ids, [300]], skip_special_tokens=True) == ["a  é", ""]
    assert tokenizer.decode_bytes_batch([ids], skip_special_tokens=True) == ["a  é".encode()]
    assert tokenizer.decode(iter(ids), "ignore") == "<s>a  é<s>"
    with pytest.raises(ValueError, match="token id 303 does not exist"):
        tokenizer.decode([300, 303], skip_special_tokens=True)
    with pytest.raises(TypeError, match="skip_special_tokens must be True or False, got 'no'"):
        tokenizer.decode(ids, skip_special_tokens="no")  # type: ignore[arg-type]


def test_decode_gap() -> None:
    tokenizer = Tokenizer(Model(split=r"\w+", merges={}, special_tokens={"<e>": 400}))
    assert tokenizer.n_vocab == 401
    assert tokenizer.decode([97, 400]) == "a<e>"
    for ids in ([300], np.array([300], np.uint32)):
        with pytest.raises(ValueError, match="token id 300 does not exist"):
            tokenizer.decode(ids)


def test_decode_takes_any_integers() -> None:
    ids = SMALL.encode("the theory")
    for given_ids in (tuple(ids), iter(ids), *(np.array(ids, kind) for kind in (np.uint32, np.int64, np.uint16))):
        assert SMALL.decode(given_ids) == "the theory"
    assert SMALL.decode(np.array(ids * 2, np.uint32)[::2]) == SMALL.decode((ids * 2)[::2])
    assert SMALL.decode([]) == SMALL.decode(np.array([], np.uint32)) == ""
    for wrong in ([1.5], ["a"], [None], np.array([1.5])):
        with pytest.raises(TypeError):
            SMALL.decode(wrong)


def test_decode_invalid_utf8() -> None:
    assert SMALL.decode([0xFF, 97]) == "\ufffda"
    assert SMALL.decode_bytes([0xFF, 97]) == b"\xffa"
    with pytest.raises(UnicodeDecodeError):
        SMALL.decode([0xFF], errors="strict")


def test_lone_surrogate() -> None:
    calls: list[Any] = [
        *(SMALL.encode, SMALL.encode_ordinary, SMALL.encode_to_numpy),
        *(lambda text: SMALL.encode_batch([text]), lambda text: SMALL.encode_batch_to_numpy(["", text])),
    ]
    for call in calls:
        with pytest.raises(UnicodeEncodeError, match=r'lone surrogate .* at character 1; use errors="replace"'):
            call("a\ud83d")
    with pytest.raises(UnicodeEncodeError, match="surrogate"):
        Tokenizer.train("a\ud83d", 300)


def test_surrogate_pairs_are_combined() -> None:
    """As in tiktoken."""
    pair = "a\ud83d\ude00b"
    expected = SMALL.encode("a😀b")
    assert SMALL.encode(pair) == SMALL.encode_ordinary(pair) == SMALL.encode_to_numpy(pair).tolist() == expected
    assert SMALL.encode_batch(["a", pair]) == SMALL.encode_ordinary_batch(["a", pair]) == [[97], expected]
    assert SMALL.encode_batch_to_numpy([pair])[0].tolist() == PAPER.encode(pair) == expected
    assert SMALL.encode(f"{pair}{END}", "all") == [*expected, SMALL.special_tokens[END]]


@given(text=st.text(st.sampled_from("aé😀\ufeff\ud800\udbff\udc00\udfff")))
def test_hyp_surrogates(text: str) -> None:
    replaced = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # as in tiktoken
    assert SMALL.decode(SMALL.encode(text, errors="replace")) == replaced
    try:
        assert SMALL.decode(SMALL.encode(text)) == replaced
    except UnicodeEncodeError as error:
        assert error.object == text
        assert "\ud800" <= text[error.start] <= "\udfff"
    else:
        assert "\ufffd" not in replaced


def test_surrogate_error() -> None:
    with pytest.raises(SurrogateError, match=r"^text\[1\]: lone surrogate .* at character 2") as caught:
        SMALL.encode_batch(["a", "ab\udc00"])
    assert (caught.value.where, caught.value.start) == ("text[1]", 2)
    restored = pickle.loads(pickle.dumps(caught.value))
    assert (type(restored), str(restored)) == (SurrogateError, str(caught.value))
    for encode in (SMALL.encode, SMALL.encode_ordinary, SMALL.encode_to_numpy):
        with pytest.raises(ValueError, match='errors must be "strict" or "replace", got \'ignore\''):
            encode("valid", errors="ignore")  # type: ignore[operator]


def test_wrong_types() -> None:
    with pytest.raises(TypeError, match=r"text must be a list of strings, got 'text'; use encode for a single string"):
        SMALL.encode_batch("text")
    for wrong in (b"text", None, 3):
        with pytest.raises(TypeError, match="str"):
            SMALL.encode(wrong)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="str"):
            SMALL.encode_batch(["a", wrong])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="threads must be at least 1"):
        SMALL.encode_batch(["a"], threads=0)
    with pytest.raises(ValueError, match="threads must be at least 1"):
        SMALL.encode("a", threads=0)


def test_chunk_of_megabytes() -> None:
    tokenizer = Tokenizer.train("abcabcd" * 10, 262, pattern=r"(?s).+")
    text = "abcabcd" * 600_000 + "é" * 500_000
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.encode_batch([text, "abc"]) == [tokenizer.encode(text), tokenizer.encode("abc")]


def batch_tokenizer(trained: bool) -> BatchTokenizer:
    tokenizer = BatchTokenizer(pattern="gpt2", stop_list_size=3, freq_cutoff=2, multiprocess=False)
    if trained:
        tokenizer.train(TEXT, 290)
    return tokenizer


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
@pytest.mark.parametrize("used", [False, True])
def test_copies(copied: Any, used: bool) -> None:
    for tokenizer in (SMALL, batch_tokenizer(False), batch_tokenizer(True), QuickTokenizer()):
        if used:
            tokenizer.encode("used")
        other = copied(tokenizer)
        assert type(other) is type(tokenizer)
        assert other.model == tokenizer.model
        assert other.encode(TEXT) == tokenizer.encode(TEXT)
    other = copied(batch_tokenizer(True))
    assert (other.stop_list_size, other.freq_cutoff, other.multiprocess) == (3, 2, False)
    first = batch_tokenizer(True)
    copied(first).train("xy xy xy xy", 258)
    assert first.model == batch_tokenizer(True).model


def test_equality() -> None:
    same = pickle.loads(pickle.dumps(SMALL))
    assert same == SMALL and hash(same) == hash(SMALL)
    assert Tokenizer(SMALL.model, name="other") == SMALL
    assert Tokenizer.train(TEXT, 279, special_tokens=[END, LONG, CODE]) != SMALL
    assert SMALL.model != SMALL
    assert {SMALL, same} == {SMALL}


def test_sizes() -> None:
    assert len(SMALL) == SMALL.vocab_size == SMALL.n_vocab == 280
    gaps = Tokenizer(Model(split=r"\w+", merges={}, special_tokens={"<e>": 400}))
    assert (len(gaps), gaps.vocab_size, gaps.n_vocab) == (257, 257, 401)


def test_read_only() -> None:
    for mapping in (SMALL.vocab, SMALL.merges, SMALL.special_tokens, SMALL.model.merges):
        with pytest.raises(AttributeError):
            mapping.clear()  # type: ignore[attr-defined]


def test_threads_share_a_tokenizer(library: list[str]) -> None:
    tokenizer = Tokenizer.train(iter(library[:20]), 500)
    expected = Tokenizer(tokenizer.model).encode_batch(library[:60])
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(tokenizer.encode, library[:60])) == expected
        assert list(pool.map(tokenizer.decode, expected)) == library[:60]


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_share_a_tokenizer(method: str) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"{method} is not available on this system")
    long = TEXT * 3000
    expected = [SMALL.encode(text) for text in (TEXT, long)]
    with ProcessPoolExecutor(2, multiprocessing.get_context(method)) as pool:
        assert list(pool.map(SMALL.encode, [TEXT, long], timeout=60)) == expected


def test_dropped_text_is_warned_about_once() -> None:
    model = Model(split="[a-z]+", merges={})
    for encode in ("encode", "encode_to_numpy", "encode_ordinary"):
        tokenizer = Tokenizer(model)
        with pytest.warns(
            UserWarning, match="the pattern does not match 3 bytes of the text; decoding will not restore them"
        ) as warned:
            assert list(getattr(tokenizer, encode)("a, b!")) == [97, 98]
        assert len(warned) == 1
        assert list(getattr(tokenizer, encode)("a, b!")) == [97, 98]
    with pytest.warns(UserWarning, match="the pattern does not match 2 bytes"):
        Tokenizer(model).encode_batch(["a b", "c", "d e"])


def test_invalid_models() -> None:
    with pytest.raises(TypeError, match=r"model must be a Model, got None; see Tokenizer.train"):
        Tokenizer(None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="pattern"):
        Tokenizer(Model(split="(unclosed", merges={}))


def test_a_subclass_that_overrides_encode() -> None:
    class Lower(Tokenizer):
        def encode(self, text: str, *args: Any, **options: Any) -> list[int]:
            return super().encode(text.lower(), *args, **options)

    assert Lower(SMALL.model).encode_batch(["AAAB", "a"]) == SMALL.encode_batch(["aaab", "a"])


def test_to_tiktoken_without_tiktoken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    with pytest.raises(ImportError, match=r"^to_tiktoken requires tiktoken; run pip install tiktoken$"):
        Tokenizer.train("aaab", 257).to_tiktoken()

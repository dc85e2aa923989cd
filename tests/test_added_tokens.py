"""Added tokens that are not special: found in every text, and with the ids of Hugging Face."""

import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken

from batchbpe import PATTERNS, BatchTokenizer, ChunkCounts, Model, Tokenizer, reference, train
from batchbpe.analysis import evaluate
from batchbpe.formats.huggingface import to_json
from batchbpe.formats.tokenizer_json import parse

END = "<|endoftext|>"
CODE = Path(__file__).read_text(encoding="utf-8")
SPACES = [" " * n for n in range(24, 1, -1)]
PIECES = ["  ", "   ", " ", "a", "ab", "<|", END, "|>", "\n", "\t\t", "x"]


def like_phi() -> tokenizers.Tokenizer:
    """Create a tokenizer like that of Phi-2: runs of spaces and tabs are added tokens that are not special."""
    base = Tokenizer.train(CODE, 400, pattern="gpt2", special_tokens=[END])
    other = tokenizers.Tokenizer.from_str(json.dumps(to_json(base.model)))
    other.add_tokens([*SPACES, "\t\t\t", "\t\t", "|>"])
    return other


PHI = like_phi()
MODEL = Tokenizer.from_huggingface(PHI).model


def test_tokens_of_hugging_face_keep_their_flags() -> None:
    assert MODEL.special_tokens == {END: 399}
    assert list(MODEL.added_tokens.items()) == [*zip([*SPACES, "\t\t\t", "\t\t", "|>"], range(400, 426), strict=True)]
    assert (MODEL.vocab_size, MODEL.n_vocab, MODEL.vocab[422]) == (426, 426, b"  ")
    flags = {entry["content"]: entry["special"] for entry in to_json(MODEL)["added_tokens"]}
    assert flags == {token.content: token.special for token in PHI.get_added_tokens_decoder().values()}
    assert parse(json.dumps(to_json(MODEL)).encode()) == MODEL


@given(text=st.lists(st.sampled_from(PIECES)).map("".join), threads=st.integers(1, 3))
def test_hyp_same_ids_as_hugging_face(text: str, threads: int) -> None:
    tokenizer = Tokenizer(MODEL)
    expected = PHI.encode(text).ids
    assert tokenizer.encode(text, "all", threads=threads) == expected
    assert tokenizer.encode_batch([text, "a"], "all", threads=threads) == [expected, tokenizer.encode("a")]
    assert tokenizer.encode_to_numpy(text, "all").tolist() == expected
    assert tokenizer.decode(expected) == text
    assert tokenizer.decode(expected, skip_special_tokens=True) == PHI.decode(expected, skip_special_tokens=True)
    flags = {name: MODEL.flags_of(name) for name in MODEL.found_tokens}
    ids = [
        reference.encode(text, MODEL.pattern, MODEL.merges, {}, found, flags=flags)
        for found in (MODEL.found_tokens, MODEL.added_tokens)
    ]
    assert ids[0] == expected
    assert tokenizer.encode_ordinary(text) == tokenizer.encode_bytes(text.encode()) == ids[1]


def test_same_ids_of_real_code(library: list[str]) -> None:
    text = "".join(library)[:2_000_000]
    tokenizer = Tokenizer(MODEL)
    expected = PHI.encode(text).ids
    assert tokenizer.encode(text) == tokenizer.encode(text, threads=1) == expected
    assert len(set(expected) & {*MODEL.added_tokens.values()}) > 10
    exported = tokenizers.Tokenizer.from_str(json.dumps(to_json(MODEL)))
    assert exported.encode(text[:300_000]).ids == PHI.encode(text[:300_000]).ids
    assert exported.decode(expected[:10_000]) == PHI.decode(expected[:10_000])


def test_a_block_is_not_cut_at_a_newline_that_an_added_token_contains() -> None:
    plain = Model(split=PATTERNS["gpt4"], merges={})
    for model, used in ((plain, 2), (replace(plain, added_tokens={"\nb": 256}), 0)):
        assert model.encoder().encode_block(b"a\nb", 0, False, None, None)[1] == used


def test_special_tokens_are_found_before_added_tokens() -> None:
    model = Model(split=r"\S+|\s+", merges={}, special_tokens={"ab": 256}, added_tokens={"xa": 257, "abc": 258})
    tokenizer = Tokenizer(model)
    assert tokenizer.encode("xabc", "all") == [120, 256, 99]
    assert tokenizer.encode("xabc", "none") == [257, 98, 99]
    with pytest.raises(ValueError, match='the text contains the special token "ab"'):
        tokenizer.encode("xabc")


def test_native_file_has_a_new_version_only_with_added_tokens(tmp_path: Path) -> None:
    plain = replace(MODEL, flags={}, carried={})
    for model, version in ((plain, 3), (replace(plain, added_tokens={}), 1)):
        Tokenizer(model).save(tmp_path / "a")
        assert json.loads((tmp_path / "a.model").read_text())["version"] == version
        assert Tokenizer.from_file(tmp_path / "a.model").model == model
    Tokenizer(plain).save(tmp_path / "a")
    damaged = (tmp_path / "a.model").read_text().replace('"version": 3', '"version": 2')
    (tmp_path / "a.model").write_text(damaged)
    with pytest.raises(ValueError, match="version must be at least 3 in a file with added_tokens, got 2"):
        Tokenizer.from_file(tmp_path / "a.model")


def test_equality_copies_and_names() -> None:
    other = replace(MODEL, added_tokens={**MODEL.added_tokens, "|>": 500})
    assert other != MODEL and hash(MODEL) != hash(other) and MODEL.identity != other.identity
    assert pickle.loads(pickle.dumps(MODEL)) == MODEL
    assert "special_tokens=1, added_tokens=26, pattern='gpt2'" in repr(MODEL)
    tokenizer = Tokenizer(MODEL)
    assert (tokenizer.token_to_id("  "), tokenizer.id_to_token(422)) == (PHI.token_to_id("  "), PHI.id_to_token(422))
    assert tokenizer.get_vocab() == PHI.get_vocab()
    for with_added in (True, False):
        assert tokenizer.get_vocab_size(with_added) == PHI.get_vocab_size(with_added)
    assert tokenizer.encode_single_token("   ") == PHI.token_to_id("   ")
    assert not tokenizer.is_special_token(422) and tokenizer.is_special_token(399)
    assert BatchTokenizer.from_huggingface(PHI).added_tokens == MODEL.added_tokens


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"added_tokens": {END: 500}}, "is both a special and an added token"),
        ({"added_tokens": {"  ": 399}}, "id 399 of added token '  ' is already used by b'<|endoftext|>'"),
        ({"added_tokens": {"  ": -1}}, "id of added token '  ' must be an integer from 0"),
        ({"added_tokens": {"": 500}}, "added token '' with id 500 must not be empty"),
        ({"added_tokens": {b"a": 500}}, "added_tokens must have strings as keys"),
        ({"added_tokens": {"\ud800": 500}}, "added token .* has a surrogate at character 0"),
        ({"added_tokens": {"x" * (1 << 21): 500}}, "added_tokens must have at most 1,048,576 bytes in total"),
    ],
)
def test_wrong_added_tokens(change: dict[str, Any], problem: str) -> None:
    with pytest.raises((ValueError, TypeError), match=problem):
        replace(MODEL, **change)


def _with_added(*entries: tuple[str, int, dict[str, bool]]) -> dict[str, Any]:
    fields = to_json(Model(split=PATTERNS["gpt2"], merges={}))
    flags = dict.fromkeys(("special", "normalized", "lstrip", "rstrip", "single_word"), False)
    fields["added_tokens"] = [{"content": name, "id": id} | flags | given for name, id, given in entries]
    return fields


NORMALIZED, SPECIAL = {"normalized": True}, {"special": True}


@pytest.mark.parametrize(
    ("entries", "problem"),
    [
        ([("<a>", 300, {})], "'<a>' has the id 300, but Hugging Face uses 256"),
        ([("<", 256, {})], "'<' has the id 256, but Hugging Face uses 60"),
    ],
)
def test_ids_are_refused_if_hugging_face_would_change_them(entries: list[Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse(json.dumps(_with_added(*entries)).encode())


@pytest.mark.parametrize(
    "entries",
    [
        [("<a>", 256, SPECIAL | NORMALIZED), ("<b>", 257, {}), ("<c>", 258, SPECIAL), ("<d>", 259, NORMALIZED)],
        [("<a>", 256, SPECIAL), ("><", 257, NORMALIZED), ("<", 60, NORMALIZED)],  # the last is also a byte
        [("<a>", 256, {}), ("><", 257, {}), ("<a", 258, {})],
        [("<a>", 256, {}), ("><", 257, NORMALIZED)],
        [("<a>", 256, SPECIAL), ("<a", 257, {})],
        [("<a>", 256, {}), ("<a>", 256, SPECIAL | {"lstrip": True})],
        [("<a>", 256, {"lstrip": True, "rstrip": True}), (" ", 257, {}), ("x", 120, {"single_word": True})],
        [("<a>", 256, SPECIAL | {"rstrip": True}), (" ", 257, {}), ("  ", 258, {})],
    ],
)
def test_any_flags_give_the_ids_of_hugging_face(entries: list[Any]) -> None:
    content = json.dumps(_with_added(*entries))
    other, tokenizer = tokenizers.Tokenizer.from_str(content), Tokenizer(parse(content.encode()))
    text = "<a><b><c>  <d><a> <a>x><<a ><b> x xx <a>   x_ <a>\n\u3000 x"
    assert tokenizer.encode(text, "all") == other.encode(text).ids


def test_tiktoken_and_minbpe_refuse_added_tokens(tmp_path: Path) -> None:
    tokenizer = Tokenizer(MODEL)
    problem = "tiktoken does not support added tokens that are not special; the model has 26"
    with pytest.raises(ValueError, match=problem):
        tokenizer.to_tiktoken()
    with pytest.raises(ValueError, match=problem):
        tokenizer.export(tmp_path / "a.tiktoken", "tiktoken")
    with pytest.warns(UserWarning, match="the file for tiktoken does not contain 26 added tokens of the model"):
        tokenizer.export(tmp_path / "a.tiktoken", "tiktoken", allow_inexact=True)
    with pytest.raises(ValueError, match="minbpe v1 does not support added tokens that are not special"):
        tokenizer.export(tmp_path / "a.model", "minbpe")


def test_transformers_folder_with_stop_words_and_added_tokens(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    model = replace(MODEL, stop_words={b"import": 500})
    Tokenizer(model).export(tmp_path / "folder", "transformers")
    loaded = transformers.AutoTokenizer.from_pretrained(tmp_path / "folder", trust_remote_code=True)
    text = f"import  a{END}   import"
    ids = Tokenizer(model).encode(text, "all")
    assert loaded.encode(text) == ids
    assert loaded.decode(ids, skip_special_tokens=True) == "import  a   import"
    loaded.add_tokens([AddedToken("<mine>"), AddedToken("<role>", special=True)])
    grown = Tokenizer.from_huggingface(loaded).model
    assert grown.added_tokens.keys() - model.added_tokens.keys() == {"<mine>"}
    assert grown.special_tokens.keys() - model.special_tokens.keys() == {"<role>"}
    loaded.save_pretrained(tmp_path / "saved")
    assert Tokenizer.from_huggingface(tmp_path / "saved").model == grown


def test_training_continues_between_added_tokens() -> None:
    text = "    return    return\n" * 20
    base = Tokenizer(Model(split=PATTERNS["gpt4"], merges={}, added_tokens={"    ": 256, "turn": 257}))
    further = Tokenizer.train(text, 270, base=base, special_tokens=[END])
    assert further.added_tokens == base.added_tokens and further.special_tokens == {END: max(further.vocab)}
    made = {further.vocab[token] for token in further.merges.values()}
    assert made == {b"re"}, "added tokens are not part of the text that is merged"
    assert further.encode(text)[:4] == [256, 258, 257, 256]
    with pytest.raises(ValueError, match="special_tokens must not contain added tokens of base such as 'turn'"):
        Tokenizer.train(text, 270, base=base, special_tokens=["turn"])
    counts = ChunkCounts.count(text, special_tokens=["    ", "turn"])
    assert train(counts, 270, base=base, special_tokens=[END]) == further.model


def test_evaluation_finds_added_tokens() -> None:
    tokenizer = Tokenizer(MODEL)
    text = "def f():\n        return 1\n"
    (result,) = evaluate({"phi": tokenizer}, texts=[text])
    assert result.tokens == len(tokenizer.encode(text))


def test_byte_level_spelling_of_an_added_token(tmp_path: Path) -> None:
    model = Model(split=PATTERNS["gpt2"], merges={(97, 98): 256}, added_tokens={"ab": 257})
    with pytest.raises(ValueError, match="added token 'ab' is spelled like token 256"):
        Tokenizer(model).export(tmp_path / "tokenizer.json", "huggingface")

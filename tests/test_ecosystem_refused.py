"""Exports that another tool would interpret differently, and files that cannot be represented, raise an error."""

import json
from pathlib import Path
from typing import Any

import pytest
import tokenizers

from batchbpe import BatchTokenizer, Model, Tokenizer

END = "<|endoftext|>"
TEXT = Path(__file__).read_text(encoding="utf-8")


def valid_fields() -> dict[str, Any]:
    from batchbpe.formats.huggingface import to_json

    return to_json(Tokenizer.train("the theory of the thing", 262, special_tokens=[END]).model)


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (["version"], "2.0", r"version must be '1\.0', got '2\.0'"),
        (
            ["normalizer"],
            {"type": "Lowercase"},
            "normalizer 'Lowercase' is not supported; only NFC, NFD, NFKC or NFKD is",
        ),
        (
            ["normalizer"],
            {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Replace"}]},
            "normalizer 'NFC' > 'Replace' is not supported",
        ),
        (["model", "type"], "WordPiece", "model: type 'WordPiece' is not supported"),
        (["model", "byte_fallback"], True, "model: byte_fallback=True is not supported"),
        (["model", "dropout"], 0.1, r"model: dropout=0\.1 is not supported"),
        (["model", "end_of_word_suffix"], "</w>", "end_of_word_suffix='</w>'"),
        (["model", "vocab"], None, 'expected an object of tokens and their ids as "vocab"'),
        (["model", "vocab", "Ġ"], "x", 'invalid type: string "x", expected u32'),
        (["model", "vocab", "zz"], 256, r"model\.vocab: \"th\" and \"zz\" have the same id 256"),
        (["model", "vocab", "zz"], 1 << 24, r"model\.vocab: the id of \"zz\" must be at most 16777215, got 16777216"),
        (["model", "merges"], None, 'expected an array as "merges"'),
        (["model", "merges", 0], "t h e", 'invalid value: string "t h e", expected two tokens as merge 0'),
        (["model", "merges", 0], ["t"], "invalid length 1, expected two tokens as merge 0"),
        (["model", "merges", 0], ["", "t"], 'merge 0: "" is not in the vocabulary'),
        (["model", "merges", 0], ["q", "z"], 'merge 0: "qz" is not in the vocabulary'),
        (["pre_tokenizer"], None, "pre-tokenizer None is not supported; only those with ByteLevel are"),
        (["pre_tokenizer"], {"type": "Metaspace"}, "pre-tokenizer 'Metaspace' is not supported; only those with"),
        (["pre_tokenizer", "pretokenizers", 0], {"type": "Whitespace"}, "pre-tokenizer 'Whitespace' is not supported"),
        (["pre_tokenizer", "pretokenizers", 1, "add_prefix_space"], True, "add_prefix_space .* after others is not"),
        (
            ["pre_tokenizer", "pretokenizers", 0, "behavior"],
            "Doubled",
            'field "behavior": must be one of Isolated, .* got',
        ),
        (
            ["pre_tokenizer", "pretokenizers", 0, "pattern"],
            {"Glob": 3},
            r"must be a Regex or a String, got \{'Glob': 3\}",
        ),
        (["pre_tokenizer", "pretokenizers", 0, "pattern"], {"Regex": r"\w+"}, r"has a word character .* rewrite"),
        (
            ["pre_tokenizer", "pretokenizers"],
            [{"type": "ByteLevel", "add_prefix_space": False}, {"type": "Digits", "individual_digits": True}],
            "pre-tokenizer 'Digits' after ByteLevel, where it splits bytes, is not supported",
        ),
        (["added_tokens", 0], "x", r"added_tokens: expected an object with content .* and id .*, got 'x'"),
        (["added_tokens", 0, "lstrip"], 1, r"added_tokens, '<\|endoftext\|>': lstrip must be true or false, got 1"),
        (["model", "ignore_merges"], "false", "model: ignore_merges must be true or false, got 'false'"),
        (["decoder"], {"type": "Foo"}, "decoder: expected an object of one of the types ByteLevel, .* got"),
        (["padding"], 3, "padding: expected an object, got 3"),
        (
            ["pre_tokenizer", "pretokenizers", 0, "pattern"],
            {"Regex": "(?i:ss)"},
            "a letter in a case-insensitive group",
        ),
        (["model"], 3, 'invalid type: integer `3`, expected an object as "model"'),
    ],
)
def test_unsupported_tokenizer_json(path: list[Any], value: Any, problem: str, tmp_path: Path) -> None:
    fields: Any = valid_fields()
    part = fields
    for name in path[:-1]:
        part = part[name]
    part[path[-1]] = value
    file = tmp_path / "bad.json"
    file.write_text(json.dumps(fields), encoding="utf-8")
    with pytest.raises(ValueError, match=rf"bad\.json[:,] .*{problem}"):
        Tokenizer.from_huggingface(file)


def test_unknown_token_for_missing_bytes(tmp_path: Path) -> None:
    fields = valid_fields()
    fields["model"]["unk_token"] = "th"
    Tokenizer.from_huggingface(json.dumps(fields))
    fields["model"]["vocab"]["?!"] = fields["model"]["vocab"].pop("!")
    with pytest.raises(ValueError, match="model: unk_token='th' for missing bytes, such as 0x21, is not supported"):
        Tokenizer.from_huggingface(json.dumps(fields))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "bad: not a model file in any of the formats batchbpe, tiktoken"),
        (b"\x00\x01\x02", "bad: not a model file"),
        (b"{", "bad: not a valid tokenizer.json: "),
        (b"{}", 'bad: not a tokenizer.json: expected an object with "model"'),
        (b"minbpe v2\n\n0\n", r"bad: not a model file"),
        (b"minbpe v1\n", "line 3: expected the number of special tokens"),
        (b"minbpe v1\n\\w+\n2\n<a> 300\n", "line 3: expected the number of special tokens"),
        (b"minbpe v1\n\\w+\n1\n300\n", "line 4: expected a special token and its id, got '300'"),
        (b"minbpe v1\n\\w+\n0\n97 98\n97 98\n", "line 5: '97 98' repeats the pair of token 256"),
        (b"BatchBPE v1\n\\w+\n0\n97 98\n the\n", "line 5: expected two ids, got ' the'"),
        (b"minbpe v1\n\\w+\n0\n97 98\n97 9", "line 5: incomplete line '97 9'; the file is truncated"),
        (b"minbpe v1\n\\w+\n0\n97 300\n", "bad, merge 0, .*token 300 is not defined"),
        (b"IHRoZQ== 262\n", "bad: rank files do not store their pattern"),
        (b"minbpe v1\n(\n0\n", r'bad, field "pattern": must be a supported regular expression, got ' "'\\('"),
    ],
)
def test_foreign_files(content: bytes, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "bad"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=problem):
        Tokenizer.from_file(path)
    untrained = BatchTokenizer()
    with pytest.raises(ValueError, match=problem):
        untrained.load(path)
    assert untrained.encode("a") == [97]


def test_wrong_exports(tmp_path: Path) -> None:
    spaced = Tokenizer.train("the theory", 262, special_tokens=["two words", "line\nbreak"])
    with pytest.raises(ValueError, match="does not support whitespace in special tokens; rename 'two words'"):
        spaced.export(tmp_path / "a.model", "minbpe")
    spaced.export(tmp_path / "a.json", "huggingface")
    fast = tokenizers.Tokenizer.from_file(str(tmp_path / "a.json"))
    text = "the two words line\nbreak"
    assert fast.encode(text).ids == spaced.encode(text, "all")
    with pytest.raises(ValueError, match=r"format must be one of batchbpe, .*, got 'onnx'"):
        spaced.export(tmp_path / "a", "onnx")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="minbpe v1 stores the pattern on one line"):
        Tokenizer(Model(split=" a+| ", merges={})).export(tmp_path / "a.model", "minbpe")
    with pytest.raises(ValueError, match="minbpe v1 does not store ids"):
        Tokenizer(Model(split="a+", merges={(97, 97): 300})).export(tmp_path / "a.model", "minbpe")
    same = Tokenizer(Model(split="a+|b+", merges={(97, 97): 256}, special_tokens={"aa": 257}))
    for allow_inexact in (False, True):
        with pytest.raises(
            ValueError, match=r"special token 'aa' is spelled like token 256 in a tokenizer.json; rename"
        ):
            same.export(tmp_path / "a.json", "huggingface", allow_inexact=allow_inexact)
    words = Tokenizer(Model(split="a+|b+", merges={}, stop_words={b"aa": 256}))
    with pytest.raises(
        ValueError, match=r"stop word b'aa' would be merged even inside other chunks; export to another format"
    ):
        words.to_tiktoken()
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError, match="file: it is a file, but this format needs a folder"):
        spaced.export(tmp_path / "file", "transformers")


def test_tokenizer_json_without_a_regular_expression(tmp_path: Path) -> None:
    fields = valid_fields()
    fields["pre_tokenizer"] = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    # With a byte order mark, which some editors write.
    (tmp_path / "a.json").write_text(json.dumps(fields), encoding="utf-8-sig")
    fast = tokenizers.Tokenizer.from_str(json.dumps(fields))
    assert Tokenizer.from_file(tmp_path / "a.json").encode(TEXT, "all") == fast.encode(TEXT).ids


def test_wrong_sources() -> None:
    from transformers import PreTrainedTokenizer

    for wrong in (None, 5, {}, PreTrainedTokenizer):
        with pytest.raises(TypeError, match="source must be a path or a fast tokenizer of tokenizers or transformers"):
            Tokenizer.from_huggingface(wrong)
    base = Tokenizer.train("the theory of the thing", 262)
    with pytest.raises(ValueError, match=r"vocab_size must be at least 262 \(262 tokens of base"):
        Tokenizer.train("the", 10, base=base)
    with pytest.raises(ValueError, match="prefix must not be empty"):
        base.save("")


def test_folder_has_one_vocabulary(tmp_path: Path) -> None:
    plain = Tokenizer.train("the theory of the thing", 262)
    words = Tokenizer.train("the theory of the thing", 262, stop_list_size=2)
    for tokenizer in (plain, words, plain):
        tokenizer.export(tmp_path / "folder", "transformers")
        assert Tokenizer.from_file(tmp_path / "folder").model.vocab == tokenizer.model.vocab
    with pytest.raises(FileNotFoundError, match=r"cannot write .*folder: folder not found: .*absent"):
        plain.export(tmp_path / "absent" / "folder", "transformers")
    with pytest.raises(IsADirectoryError, match="folder: it is a folder; choose a file name"):
        plain.export(tmp_path / "folder", "huggingface")
    for wrong in (lambda: plain.export("", "tiktoken"), lambda: Tokenizer.from_file("")):
        with pytest.raises(ValueError, match="path must not be empty"):
            wrong()


@pytest.mark.parametrize(
    "pattern",
    [r"(\w+)|\W", r"^\w|\w+|\W", r"\w+$|\w|\W", r"(?s:.)", r"\pL+|.|\n", r"[a-z&&[^e]]+|\W|e", r"[a~~b]|c", r"a{3}{2}"],
)
def test_patterns_that_other_tools_interpret_differently(pattern: str, tmp_path: Path) -> None:
    tokenizer = Tokenizer(Model(split=pattern, merges={}))
    for form in ("huggingface", "minbpe", "batchbpe-v1"):
        with pytest.raises(ValueError, match="may interpret differently; rewrite the pattern"):
            tokenizer.export(tmp_path / "a", form)  # type: ignore[arg-type]


@pytest.mark.parametrize("pattern", [r"\w+|[^\w]", r"\p{N}{1,3}+|\P{N}+", r"\p{L}{3}?|[\s\S]", r"(?i:\p{Lu})+|[\s\S]"])
def test_patterns_that_oniguruma_interprets_differently(pattern: str, tmp_path: Path) -> None:
    tokenizer = Tokenizer.train(iter(["می‌خواهم ABC abc 12345 x² " * 5]), 300, pattern=pattern)
    with pytest.raises(ValueError, match="which Oniguruma may interpret differently; rewrite the pattern"):
        tokenizer.export(tmp_path / "a.json", "huggingface")
    tokenizer.export(tmp_path / "folder", "transformers")  # with the tokenizer class, which is exact
    assert not (tmp_path / "folder" / "tokenizer.json").exists()
    tokenizer.export(tmp_path / "a.json", "huggingface", allow_inexact=True)
    with pytest.raises(ValueError, match=r"a\.json: .*which Oniguruma may interpret differently"):
        Tokenizer.from_file(tmp_path / "a.json")


@pytest.mark.parametrize("pattern", [r"a*|b", r"(?=a)|a|b| "])
def test_patterns_with_empty_matches(pattern: str, tmp_path: Path) -> None:
    tokenizer = Tokenizer(Model(split=pattern, merges={}))
    assert tokenizer.encode("aab") == [97, 97, 98]
    for export in (
        lambda: tokenizer.export(tmp_path / "a", "huggingface"),
        lambda: tokenizer.export(tmp_path / "a", "minbpe"),
        tokenizer.to_tiktoken,
    ):
        with pytest.raises(
            ValueError, match=r"can match the empty string, which .* treats differently; rewrite the pattern"
        ):
            export()

"""What other tools cannot hold, or mean otherwise, is refused, and so are their files that this project cannot read."""

import json
from pathlib import Path
from typing import Any

import pytest
import tokenizers

from batchbpe import BatchTokenizer, Model, Tokenizer
from batchbpe.formats import FORMATS

END = "<|endoftext|>"
TEXT = Path(__file__).read_text(encoding="utf-8")


def good() -> dict[str, Any]:
    from batchbpe.formats.huggingface import described

    return described(Tokenizer.train("the theory of the thing", 262, special_tokens=[END]).model)


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (["version"], "2.0", r"its version is '2\.0': only 1\.0 is read"),
        (["normalizer"], {"type": "NFC"}, "the normalizer NFC is not supported"),
        (["model", "type"], "WordPiece", "the model WordPiece is not supported"),
        (["model", "byte_fallback"], True, "byte_fallback=True of the model is not supported"),
        (["model", "dropout"], 0.1, r"dropout=0\.1 of the model is not supported"),
        (["model", "end_of_word_suffix"], "</w>", "end_of_word_suffix='</w>'"),
        (["model", "vocab"], None, 'has no "vocab"'),
        (["model", "vocab", "Ġ"], "x", 'has no "vocab" of tokens and their ids'),
        (["model", "vocab", "▁the"], 900, "the token '▁the' is not spelt as byte-level BPE does"),
        (["model", "vocab", "zz"], 900, "the token b'zz' is made by no merge"),
        (["added_tokens", 0, "content"], "th", "the added token 'th' is also made by a merge"),
        (["model", "merges"], None, 'no list of "merges"'),
        (["model", "merges", 0], "t h e", "merge 0 is 't h e', not two tokens"),
        (["model", "merges", 0], ["t", "▁"], r"merge 0, .* is not spelt"),
        (["model", "merges", 0], ["q", "z"], "the merge of b'q' and b'z' is about b'qz', which is no token"),
        (["pre_tokenizer"], None, "the pre-tokenizer None is not supported"),
        (["pre_tokenizer"], {"type": "Whitespace"}, "the pre-tokenizer Whitespace is not supported"),
        (["pre_tokenizer"], {"type": "ByteLevel", "add_prefix_space": True}, "add_prefix_space"),
        (["pre_tokenizer", "pretokenizers", 0], {"type": "Digits"}, "the pre-tokenizer Digits is not supported"),
        (["pre_tokenizer", "pretokenizers", 0, "behavior"], "MergedWithNext", "behavior='MergedWithNext'"),
        (["pre_tokenizer", "pretokenizers", 0, "pattern"], {"String": " "}, r"the pattern \{'String': ' '\}"),
        (["pre_tokenizer", "pretokenizers", 1, "use_regex"], True, "2 regular expressions one after the other"),
        (["added_tokens", 0, "lstrip"], True, r"lstrip of the added token '<\|endoftext\|>' is not supported"),
        (["added_tokens", 0], "x", "the added token 'x' has no content and id"),
        (["model"], 3, 'it is no tokenizer.json: it has no "model"'),
    ],
)
def test_unsupported_tokenizer_json(path: list[Any], value: Any, problem: str, tmp_path: Path) -> None:
    fields: Any = good()
    part = fields
    for name in path[:-1]:
        part = part[name]
    part[path[-1]] = value
    file = tmp_path / "bad.json"
    file.write_text(json.dumps(fields), encoding="utf-8")
    with pytest.raises(ValueError, match=rf"bad\.json: .*{problem}"):
        Tokenizer.from_huggingface(file)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is no model file: it is in none of the formats batchbpe, tiktoken"),
        (b"\x00\x01\x02", "is no model file"),
        (b"{", "bad is no tokenizer.json, or a damaged one: "),
        (b"{}", 'bad: it is no tokenizer.json: it has no "model"'),
        (b"minbpe v2\n\n0\n", r"its first line is 'minbpe v2', not minbpe v1 or|is no model file"),
        (b"minbpe v1\n", "line 3 is not the number of special tokens"),
        (b"minbpe v1\n\\w+\n2\n<a> 300\n", "line 3 is not the number of special tokens"),
        (b"minbpe v1\n\\w+\n1\n300\n", "line 4: '300' is no special token"),
        (b"minbpe v1\n\\w+\n0\n97 98\n97 98\n", "line 5: '97 98' repeats the merge to 256"),
        (b"BatchBPE v1\n\\w+\n0\n97 98\n the\n", "line 5: ' the' are not the ids of two tokens"),
        (b"minbpe v1\n\\w+\n0\n97 98\n97 9", "line 5, '97 9', has no end: the file has been cut off"),
        (b"minbpe v1\n\\w+\n0\n97 300\n", "there is no token 300 before it"),
        (b"IHRoZQ== 262\n", "does not say which pattern"),
        (b"minbpe v1\n(\n0\n", r"bad: pattern=\"\(\" is not a supported regular expression"),
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
    with pytest.raises(ValueError, match="no place for white space in a special token: rename 'two words'"):
        spaced.export(tmp_path / "a.model", "minbpe")
    spaced.export(tmp_path / "a.json", "huggingface")
    fast = tokenizers.Tokenizer.from_file(str(tmp_path / "a.json"))
    text = "the two words line\nbreak"
    assert fast.encode(text).ids == spaced.encode(text, "all")
    with pytest.raises(ValueError, match=rf"format='gguf': give one of {FORMATS[0]}, "):
        spaced.export(tmp_path / "a", "gguf")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="minbpe v1 has the pattern on a line"):
        Tokenizer(Model(pattern=" a+| ", merges={})).export(tmp_path / "a.model", "minbpe")
    with pytest.raises(ValueError, match="minbpe v1 has no place for ids"):
        Tokenizer(Model(pattern="a+", merges={(97, 97): 300})).export(tmp_path / "a.model", "minbpe")
    same = Tokenizer(Model(pattern="a+|b+", merges={(97, 97): 256}, special_tokens={"aa": 257}))
    for allow_inexact in (False, True):
        with pytest.raises(ValueError, match="the special token 'aa' is spelt like the token 256: rename it"):
            same.export(tmp_path / "a.json", "huggingface", allow_inexact=allow_inexact)
    words = Tokenizer(Model(pattern="a+|b+", merges={}, stop_words={b"aa": 256}))
    with pytest.raises(ValueError, match="tiktoken has no stop words, as b'aa' is: export it as another format"):
        words.to_tiktoken()
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError, match="file is a file: give a folder"):
        spaced.export(tmp_path / "file", "transformers")


def test_a_text_that_nothing_splits(tmp_path: Path) -> None:
    fields = good()
    fields["pre_tokenizer"] = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    # As some editors write it, too.
    (tmp_path / "a.json").write_text(json.dumps(fields), encoding="utf-8-sig")
    fast = tokenizers.Tokenizer.from_str(json.dumps(fields))
    assert Tokenizer.from_file(tmp_path / "a.json").encode(TEXT, "all") == fast.encode(TEXT).ids


def test_what_is_no_tokenizer() -> None:
    from transformers import PreTrainedTokenizer

    for wrong in (None, 5, {}, PreTrainedTokenizer):
        with pytest.raises(TypeError, match="is no path, and no fast tokenizer of tokenizers or transformers"):
            Tokenizer.from_huggingface(wrong)
    base = Tokenizer.train("the theory of the thing", 262)
    with pytest.raises(ValueError, match=r"vocab_size=10 is too small: 262 tokens of the base, 0 stop words"):
        Tokenizer.train("the", 10, base=base)
    with pytest.raises(ValueError, match="the path is empty"):
        base.save("")


def test_a_folder_holds_one_vocabulary(tmp_path: Path) -> None:
    plain = Tokenizer.train("the theory of the thing", 262)
    words = Tokenizer.train("the theory of the thing", 262, stop_list_size=2)
    for tokenizer in (plain, words, plain):
        tokenizer.export(tmp_path / "folder", "transformers")
        assert Tokenizer.from_file(tmp_path / "folder").model.vocab == tokenizer.model.vocab
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*absent; make it first"):
        plain.export(tmp_path / "absent" / "folder", "transformers")
    with pytest.raises(IsADirectoryError, match="folder: it is a folder; give the name of a file"):
        plain.export(tmp_path / "folder", "huggingface")
    for wrong in (lambda: plain.export("", "tiktoken"), lambda: Tokenizer.from_file("")):
        with pytest.raises(ValueError, match="the path is empty"):
            wrong()


@pytest.mark.parametrize(
    "pattern",
    [r"(\w+)|\W", r"^\w|\w+|\W", r"\w+$|\w|\W", r"(?s:.)", r"\pL+|.|\n", r"[a-z&&[^e]]+|\W|e", r"[a~~b]|c", r"a{3}{2}"],
)
def test_patterns_that_mean_something_else_elsewhere(pattern: str, tmp_path: Path) -> None:
    tokenizer = Tokenizer(Model(pattern=pattern, merges={}))
    for form in ("huggingface", "minbpe", "batchbpe-v1"):
        with pytest.raises(ValueError, match="may take for something else: rewrite it"):
            tokenizer.export(tmp_path / "a", form)  # type: ignore[arg-type]


@pytest.mark.parametrize("pattern", [r"\w+|[^\w]", r"\p{N}{1,3}+|\P{N}+", r"\p{L}{3}?|[\s\S]", r"(?i:\p{Lu})+|[\s\S]"])
def test_patterns_that_mean_something_else_to_oniguruma(pattern: str, tmp_path: Path) -> None:
    tokenizer = Tokenizer.train(iter(["می‌خواهم ABC abc 12345 x² " * 5]), 300, pattern=pattern)
    with pytest.raises(ValueError, match="which Oniguruma may take for something else: rewrite it"):
        tokenizer.export(tmp_path / "a.json", "huggingface")
    tokenizer.export(tmp_path / "folder", "transformers")  # with the class, which is exact
    assert not (tmp_path / "folder" / "tokenizer.json").exists()
    tokenizer.export(tmp_path / "a.json", "huggingface", allow_inexact=True)
    with pytest.raises(ValueError, match=r"a\.json: .*which Oniguruma may take for something else"):
        Tokenizer.from_file(tmp_path / "a.json")


@pytest.mark.parametrize("pattern", [r"a*|b", r"(?=a)|a|b| "])
def test_patterns_with_empty_matches(pattern: str, tmp_path: Path) -> None:
    tokenizer = Tokenizer(Model(pattern=pattern, merges={}))
    assert tokenizer.encode("aab") == [97, 97, 98]
    for export in (
        lambda: tokenizer.export(tmp_path / "a", "huggingface"),
        lambda: tokenizer.export(tmp_path / "a", "minbpe"),
        tokenizer.to_tiktoken,
    ):
        with pytest.raises(ValueError, match=r"matches where there is nothing, which .* takes in its own way: rewrite"):
            export()

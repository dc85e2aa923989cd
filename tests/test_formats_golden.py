"""`tokenizer.test.json`: written with each export, or not at all, and correct in the libraries it is made for."""

import json
import os
import threading
from pathlib import Path

import pytest
import tiktoken
import tokenizers
from helpers import END, TEXT, run

from batchbpe import Model, Tokenizer
from batchbpe.errors import DataError, OutputExistsError
from batchbpe.formats import FORMATS, Format, golden
from batchbpe.formats.golden_texts import HARD, texts_for

TOKENIZER = Tokenizer.train(TEXT, 600, special_tokens=[END, "<|pad|>"])
NAMES = {"huggingface": "tokenizer.json", "tekken": "tekken.json", "transformers": "folder"}


def test_hard_cases() -> None:
    assert len(HARD) == len({*HARD}) > 180
    for character in "’\xa0\u3000\t\r\u200d\u0301\0\ufeff\ue000\uffff٣१½":
        assert any(character in text for text in HARD)
    "".join(HARD).encode()


MORE = ["normalization", "pattern", "special_tokens"]


@pytest.mark.parametrize("format", [name for name in FORMATS if name != "tekken"])
def test_every_export_has_a_test_file(format: Format, tmp_path: Path) -> None:
    name = NAMES.get(format, "mine.bin")
    TOKENIZER.export(tmp_path / name, format)
    expected = {"huggingface": "tokenizer.test.json", "transformers": "folder/tokenizer.test.json"}
    path = tmp_path / expected.get(format, "mine.bin.test.json")
    content = path.read_bytes()
    assert content.isascii() and len(content) < 100_000 and content == golden.render(TOKENIZER.model).encode()
    fields = json.loads(content)
    assert [*fields] == ["format", "version", "encoding", "model", "vocab_size", "n_vocab", *MORE, "cases"]
    assert [fields[name] for name in MORE] == ["none", TOKENIZER.pattern, dict(TOKENIZER.special_tokens)]
    assert (fields["vocab_size"], fields["n_vocab"], fields["model"]) == (600, 600, TOKENIZER.model.identity)
    assert all(case["ids"] == TOKENIZER.encode(case["text"], "all") for case in fields["cases"])
    assert len(content.splitlines()) == len(fields["cases"]) + 13, "one case per line"
    used = {token for case in fields["cases"] for token in case["ids"]}
    texts = {token: TOKENIZER.vocab[token].decode(errors="replace") for token in TOKENIZER.model.merges.values()}
    assert {token for token, text in texts.items() if text.strip(" ").isalpha()} <= used, "every merge is used"
    assert golden.load(path).cases == {case["text"]: case["ids"] for case in fields["cases"]}


def test_texts_are_made_from_the_model() -> None:
    model = Model(
        r" ?[a-z]+|[^a-z]",
        {(32, 97): 256, (32, 98): 257},
        stop_words={b"the": 258, b"\xff": 259},
        phrases={(256, 257): 260},
        special_tokens={END: 261, "x" * 300: 263},
        added_tokens={"<a>": 262},
    )
    texts = texts_for(model)
    assert {f"a{END}b", f"{END}{END}", "Hello <a> world", "the", " a b", " a", "thes"} <= {*texts}
    assert len(texts) == len({*texts}) and "x" * 300 not in texts
    many = Model(r"\w+", {}, special_tokens={f"<{n}>": 256 + n for n in range(1000)})
    assert "<23>" in texts_for(many) and "<24>" not in texts_for(many)


def test_libraries_give_the_ids(tmp_path: Path) -> None:
    TOKENIZER.export(tmp_path / "tokenizer.json", "huggingface")
    cases = golden.load(tmp_path / "tokenizer.test.json").cases
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert {text: theirs.encode(text, add_special_tokens=False).ids for text in cases} == cases
    encoding: tiktoken.Encoding = TOKENIZER.to_tiktoken()
    assert {text: encoding.encode(text, allowed_special="all") for text in cases} == cases


def test_a_model_without_some_bytes(tmp_path: Path) -> None:
    """Texts that lose bytes are kept: other libraries lose them too."""
    model = Model(TOKENIZER.model.split, {}, byte_ids=[None, *range(255)])
    Tokenizer(model).export(tmp_path / "tokenizer.json", "huggingface")
    assert golden.load(tmp_path / "tokenizer.test.json").cases["a\0b\0\0"] == [96, 97]


def test_saving_writes_no_test_file(tmp_path: Path) -> None:
    TOKENIZER.save(tmp_path / "mine")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.model", "mine.vocab"]


@pytest.mark.parametrize("format", ["huggingface", "transformers"])
def test_both_or_nothing(format: Format, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    TOKENIZER.export(tmp_path / "out", format)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    other = Tokenizer.train(TEXT, 500)

    def full(handle: int) -> None:
        """Fail for the test file only."""
        if os.fstat(handle).st_ino in {path.stat().st_ino for path in tmp_path.rglob(".*.test.json.*.tmp")}:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space left"):
        other.export(tmp_path / "out", format)
    monkeypatch.undo()
    with pytest.raises(ValueError, match="does not support"):
        Tokenizer(Model(r"\w+", {}, stop_words={b"a": 300})).export(tmp_path / "out", "minbpe")
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}


@pytest.mark.parametrize("format", ["huggingface", "transformers"])
def test_other_files_are_not_replaced(format: Format, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json" if format == "huggingface" else tmp_path
    mine = tmp_path / "tokenizer.test.json"
    mine.write_text('{"questions": []}')
    with pytest.raises(OutputExistsError, match=r"tokenizer.test.json exists and is not a test file .*; rename it"):
        TOKENIZER.export(path, format)
    assert [*tmp_path.iterdir()] == [mine] and mine.read_text() == '{"questions": []}'
    mine.write_text(golden.render(Model(r"\w+", {})))
    TOKENIZER.export(path, format)
    assert golden.load(mine).model == TOKENIZER.model.identity


def test_errors_name_the_file_that_was_asked_for(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"cannot write .*nowhere/mine.tiktoken: folder not found"):
        TOKENIZER.export(tmp_path / "nowhere" / "mine.tiktoken", "tiktoken")
    with pytest.raises(IsADirectoryError, match="it is a folder"):
        TOKENIZER.export(tmp_path, "tiktoken")


@pytest.mark.skipif(os.name != "posix", reason="named pipes are posix")
def test_a_pipe_has_no_test_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    reader.start()
    TOKENIZER.export(pipe, "tiktoken")
    reader.join()
    assert received[0].startswith(b"IQ== 33\n") or received[0].startswith(b"AA== 0\n")
    assert [*tmp_path.iterdir()] == [pipe]


@pytest.mark.parametrize(
    "content, message",
    [
        ("{", "not a test file of batchbpe, or damaged: invalid JSON"),
        ("[]", 'expected an object with "format": "batchbpe-test"'),
        ('{"format": "batchbpe-test", "version": 2}', "version must be 1, got 2; upgrade batchbpe"),
        ('{"format": "batchbpe-test", "version": 1}', 'field "cases": must be an array, got None'),
        ('{"format": "batchbpe-test", "version": 1, "cases": []}', "there are no cases"),
        (
            '{"format": "batchbpe-test", "version": 1, "cases": [{"text": "a", "ids": [true]}]}',
            "case 0: expected a text and its ids",
        ),
        (
            '{"format": "batchbpe-test", "version": 1, "cases": [{"text": "a", "ids": [1]}], "model": 3}',
            'field "model": must be a string, got 3',
        ),
    ],
)
def test_damaged_files(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.test.json"
    path.write_text(content)
    with pytest.raises(DataError) as error:
        golden.load(path)
    assert message in str(error.value) and str(error.value).startswith(str(path))


def test_the_command_writes_it(place: Path) -> None:
    assert run("export mine.model --to tiktoken -o mine.tiktoken").exit_code == 0
    assert (place / "mine.tiktoken.test.json").is_file()


def test_each_file_has_its_own_test_file(tmp_path: Path) -> None:
    """The names of two exports may differ in their suffix only, or contain a dot."""
    names = ["e.tiktoken", "e.json", "e", "mine-1.5", "mine-1.6"]
    for name in names:
        TOKENIZER.export(tmp_path / name, "huggingface" if name == "e.json" else "tiktoken")
    tests = {"e.tiktoken.test.json", "e.test.json", "mine-1.5.test.json", "mine-1.6.test.json"}
    assert {path.name for path in tmp_path.iterdir()} == {*names, *tests}

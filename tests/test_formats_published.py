"""Published rank files are recognized by their ranks, whatever they are called."""

from pathlib import Path

import pytest

from batchbpe import Tokenizer
from batchbpe.formats import published
from batchbpe.formats.published import PUBLISHED, Published

HELLO = Tokenizer.train("hello hello world", 260, pattern="gpt2")  # h+e, l+l, he+ll, hell+o


@pytest.fixture
def path(tmp_path: Path) -> Path:
    HELLO.export(tmp_path / "tokenizer.model", "tiktoken")
    return tmp_path / "tokenizer.model"


def test_recognized_by_content(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert HELLO.vocab[259] == b"hello"
    other, known = (Published(name, 260, rank, {name: 300}) for name, rank in (("gpt4", 258), ("gpt2", 259)))
    monkeypatch.setattr(published, "PUBLISHED", {"other": other, "known": known})
    loaded = Tokenizer.from_file(path)
    assert loaded.model.split.name == "gpt2" and loaded.special_tokens == {"gpt2": 300}
    assert Tokenizer.from_tiktoken(path, special_tokens={}) == HELLO
    assert Tokenizer.from_tiktoken(path, "qwen2").model.split.name == "qwen2"
    monkeypatch.setattr(published, "PUBLISHED", {"other": other})
    with pytest.raises(ValueError, match=r"tokenizer\.model: rank files do not store their pattern, and these 260 "):
        Tokenizer.from_file(path)


def test_special_tokens_have_ids_without_ranks() -> None:
    for name, each in PUBLISHED.items():
        first = each.ranks + (name in ("cl100k_base", "o200k_base"))  # one id is unused
        ids = sorted(each.special_tokens.values())
        assert ids[0] == (50256 if name == "p50k_base" else first), name
        assert len(set(ids)) == len(ids) and each.split.chunks("a b") == ["a", " b"]
    assert [len(PUBLISHED[name].special_tokens) for name in ("Llama 3", "Llama 4", "Kimi K2")] == [256, 2048, 256]
    assert PUBLISHED["Llama 3"].special_tokens["<|reserved_special_token_245|>"] == 128255
    assert PUBLISHED["Llama 4"].special_tokens["<|finetune_right_pad|>"] == 200018
    assert PUBLISHED["Kimi K2"].special_tokens["<|im_middle|>"] == 163601

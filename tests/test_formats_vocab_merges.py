"""vocab.json with merges.txt: the same ids as transformers, which knows the pattern by the tokenizer class."""

import json
from pathlib import Path
from typing import Any

import pytest
from helpers import multilingual

from batchbpe import Tokenizer
from batchbpe.formats.huggingface import to_json

TEXT = "It'S 12345 don't cafe\u0301 naïve <|endoftext|> x  \n\n  <s> y <mask>, z <pad> "
ROBERTA = ["<s>", "</s>", "<unk>", "<pad>", "<mask>"]


def write(folder: Path, special: list[str], config: dict[str, Any] | None = None, prefix: str = "") -> None:
    model = to_json(Tokenizer.train(TEXT + multilingual(50_000), 600, special_tokens=special).model)["model"]
    vocab = model["vocab"] | {name: 600 - len(special) + n for n, name in enumerate(special)}
    (folder / f"{prefix}vocab.json").write_text(json.dumps(vocab), encoding="utf-8")
    lines = ["#version: 0.2", *(" ".join(pair) for pair in model["merges"]), ""]
    (folder / f"{prefix}merges.txt").write_text("\n".join(lines), encoding="utf-8")
    if config is not None:
        (folder / "tokenizer_config.json").write_text(json.dumps(config))


@pytest.mark.parametrize(
    ("config", "special"),
    [
        (None, ["<|endoftext|>"]),
        ({"tokenizer_class": "GPT2Tokenizer"}, ["<|endoftext|>"]),
        ({"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": True, "pad_token": "<pad>"}, ["<|endoftext|>"]),
        ({"tokenizer_class": "RobertaTokenizer"}, ROBERTA),
        ({"tokenizer_class": "Qwen2TokenizerFast"}, ["<|endoftext|>"]),
        (
            {
                "tokenizer_class": "GPT2Tokenizer",
                "added_tokens_decoder": {
                    "599": {"content": "<|endoftext|>", "special": True, "normalized": False},
                    "600": {"content": "<s>", "special": False, "normalized": False, "lstrip": True, "rstrip": True},
                },
            },
            ["<|endoftext|>"],
        ),
    ],
)
def test_same_ids_as_transformers(config: dict[str, Any] | None, special: list[str], tmp_path: Path) -> None:
    import transformers

    write(tmp_path, special, config)
    ours = Tokenizer.from_file(tmp_path)
    name = (config or {}).get("tokenizer_class", "GPT2Tokenizer").removesuffix("Fast")
    theirs = getattr(transformers, name).from_pretrained(tmp_path)
    for text in (TEXT, "a b", multilingual(100_000)):
        assert ours.encode(text, "all") == theirs.encode(text, add_special_tokens=False)
    ours.export(tmp_path / "again", "transformers")
    again = transformers.AutoTokenizer.from_pretrained(tmp_path / "again")
    assert again.encode(TEXT) == theirs.encode(TEXT)
    assert Tokenizer.from_file(tmp_path / "again").model == ours.model


def test_paths(tmp_path: Path) -> None:
    write(tmp_path, ["<|endoftext|>"], prefix="gpt2-")
    one, two = (Tokenizer.from_file(tmp_path / f"gpt2-{name}") for name in ("vocab.json", "merges.txt"))
    assert one == two and one.special_tokens == {"<|endoftext|>": 599}
    (tmp_path / "gpt2-vocab.json").unlink()
    with pytest.raises(ValueError, match=r"gpt2-merges\.txt: not a valid tokenizer\.json"):
        Tokenizer.from_file(tmp_path / "gpt2-merges.txt")
    with pytest.raises(FileNotFoundError, match=r"has no tokenizer\.json, and no vocab\.json with merges\.txt"):
        Tokenizer.from_file(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        (
            "tokenizer_config.json",
            {"tokenizer_class": "CLIPTokenizer"},
            "how CLIPTokenizer splits text is not known; .*GPT2",
        ),
        ("tokenizer_config.json", [], r"tokenizer_config\.json: expected an object, got \[\]"),
        ("tokenizer_config.json", {"bos_token": 5}, "expected a special token, got 5"),
        ("tokenizer_config.json", {"added_tokens_decoder": {"a": {}}}, "added_tokens_decoder: expected an added token"),
        ("vocab.json", {"a": "b"}, r"vocab\.json: expected an object of tokens and their ids"),
        ("added_tokens.json", {"<a>": 17}, "added_tokens: '<a>' has the id 17, but Hugging Face uses "),
    ],
)
def test_damaged_files(name: str, content: Any, problem: str, tmp_path: Path) -> None:
    write(tmp_path, ["<|endoftext|>"])
    (tmp_path / name).write_text(json.dumps(content))
    with pytest.raises(ValueError, match=problem):
        Tokenizer.from_huggingface(tmp_path)

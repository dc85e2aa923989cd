"""Rank files of tiktoken: errors name the line or token that is wrong."""

import base64
from pathlib import Path

import pytest

from batchbpe import PATTERNS, Model, Tokenizer
from batchbpe.errors import OutputExistsError


def test_tiktoken_file(tmp_path: Path) -> None:
    ours = Tokenizer.train("the theory of the thing, and the other thing", 280, pattern="gpt2")
    path = tmp_path / "mine.tiktoken"
    lines = [f"{base64.b64encode(value).decode()} {token}" for token, value in ours.vocab.items()]
    path.write_text("\n".join(lines) + "\n")
    theirs = Tokenizer.from_tiktoken(path, pattern="gpt2", special_tokens={"<end>": 300})
    assert theirs.merges == ours.merges
    assert theirs.special_tokens == {"<end>": 300}
    with pytest.raises(
        ValueError,
        match=r"mine\.tiktoken: .* not those of r50k_base, .*; use Tokenizer\.from_tiktoken\(path, pattern=…\)",
    ):
        Tokenizer.from_tiktoken(path)
    for content, problem in (
        ("\n".join(lines[1:]), r"mine\.tiktoken: byte 0 is not a token; only byte-level"),
        (
            "\n".join([*lines, "!!! 3"]),
            rf"mine\.tiktoken, line {len(lines) + 1}: expected a token in base64 and its rank, got \"!!! 3\"",
        ),
        ("\n".join([*lines, "eHl6enk="]), r"expected a token in base64 and its rank"),
        ("\n".join([*lines, f"{base64.b64encode(b'th th').decode()} 3"]), r"mine\.tiktoken: .* have the same rank 3"),
        ("", "byte 0 is not a token"),
    ):
        path.write_text(content)
        with pytest.raises(ValueError, match=problem):
            Tokenizer.from_tiktoken(path, pattern="gpt2")
    with pytest.raises(FileNotFoundError, match=r"model file not found: .*absent"):
        Tokenizer.from_tiktoken(tmp_path / "absent.tiktoken")


def test_other_files_are_kept(tmp_path: Path) -> None:
    """The phrases of `mine` are in mine.json, which may also be a file of the user."""
    merges = {(32, 98): 256}
    plain = Tokenizer(Model(PATTERNS["gpt4"], merges))
    phrases = Tokenizer(Model(PATTERNS["gpt4"], merges, phrases={(97, 256): 257}))
    other = tmp_path / "mine.json"
    other.write_text("{}")
    plain.export(tmp_path / "mine", "tiktoken")
    with pytest.raises(OutputExistsError, match=r"mine.json exists and is not of a rank file, .*; rename it, or"):
        phrases.export(tmp_path / "mine", "tiktoken")
    assert other.read_text() == "{}"
    other.unlink()
    for tokenizer in (phrases, phrases, plain):
        tokenizer.export(tmp_path / "mine", "tiktoken")
        assert other.exists() == (tokenizer is phrases)

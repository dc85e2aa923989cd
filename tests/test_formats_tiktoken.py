"""Rank files of tiktoken: read, or refused with the line or token that is wrong."""

import base64
from pathlib import Path

import pytest

from batchbpe import Tokenizer


def test_tiktoken_file(tmp_path: Path) -> None:
    ours = Tokenizer.train("the theory of the thing, and the other thing", 280, pattern="gpt2")
    path = tmp_path / "mine.tiktoken"
    lines = [f"{base64.b64encode(value).decode()} {token}" for token, value in ours.vocab.items()]
    path.write_text("\n".join(lines) + "\n")
    theirs = Tokenizer.from_tiktoken(path, pattern="gpt2", special_tokens={"<end>": 300})
    assert theirs.merges == ours.merges
    assert theirs.special_tokens == {"<end>": 300}
    with pytest.raises(ValueError, match=r"mine\.tiktoken does not say which pattern .* r50k_base, .*load it by"):
        Tokenizer.from_tiktoken(path)
    for content, problem in (
        ("\n".join(lines[1:]), r"the byte 0 has no rank: only byte-level"),
        ("\n".join([*lines, "!!! 3"]), rf"mine\.tiktoken: line {len(lines) + 1}: b'!!! 3' is no token in base64"),
        ("\n".join([*lines, "eHl6enk="]), r"is no token in base64 and its rank"),
        ("\n".join([*lines, "eHl6enk= 5000"]), r"these are not the ranks of a BPE vocabulary"),
        ("\n".join([*lines, f"{base64.b64encode(b'th th').decode()} 3"]), r"mine\.tiktoken|taken|BPE"),
        ("", "the byte 0 has no rank"),
    ):
        path.write_text(content)
        with pytest.raises(ValueError, match=problem):
            Tokenizer.from_tiktoken(path, pattern="gpt2")
    with pytest.raises(FileNotFoundError, match=r"there is no file .*absent"):
        Tokenizer.from_tiktoken(tmp_path / "absent.tiktoken")

"""Published tokenizers, loaded by this package and by another library, and how their ids are compared."""

import json
import os
import subprocess
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
import texts
import tokenizers

from batchbpe import Tokenizer

FOLDER = Path(os.environ.get("BATCHBPE_TEST_MODELS") or Path(__file__).parents[2] / ".cache/models").resolve()
PUBLISHED, TEKKEN = "tokenizers/*/tokenizer.json", "tekken/*.json"
Function = Callable[[str], object]


def params(pattern: str) -> list[Any]:
    """Return parameters for the files that match. One process runs all tests for a file, which it loads once."""
    paths = {path.parent.name if pattern == PUBLISHED else path.stem: path for path in sorted(FOLDER.glob(pattern))}
    found = [pytest.param(path, id=name, marks=pytest.mark.xdist_group(name)) for name, path in paths.items()]
    absent = pytest.mark.skip(reason=f"there are no published tokenizers in {FOLDER}; run make test-models")
    return found or [pytest.param(None, id="absent", marks=absent)]


def is_byte_level(path: Path) -> bool:
    """Return whether a file is a byte-level BPE, as all but one are."""
    return '"ByteLevel"' in path.read_text(encoding="utf-8")


class Published:
    """A tokenizer.json, loaded by both libraries when that is first needed."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def ours(self) -> Tokenizer:
        return Tokenizer.from_huggingface(self.path.parent)

    @cached_property
    def theirs(self) -> tokenizers.Tokenizer:
        return tokenizers.Tokenizer.from_file(str(self.path))

    @cached_property
    def parts(self) -> dict[str, Any]:
        return json.loads(self.path.read_text(encoding="utf-8"))

    @property
    def real(self) -> Sequence[str]:
        return texts.real(FOLDER / "texts")

    @cached_property
    def generated(self) -> list[str]:
        added = [each["content"] for each in self.parts["added_tokens"]]
        return texts.generated(2000, added, without=self.newer | self.cut_by_missing_bytes)

    @property
    def cut_by_missing_bytes(self) -> set[str]:
        """Characters that Falcon splits at bytes that it takes for digits, next to a byte that its vocabulary lacks.

        Hugging Face splits before it drops that byte, and this package after. They are in planes without scripts.
        """
        parts = (self.parts.get("pre_tokenizer") or {}).get("pretokenizers", [])
        is_falcon = [part["type"] for part in parts][-2:] == ["Digits", "Split"]
        return set(map(chr, range(0x40000, 0x110000))) if is_falcon else set()

    @cached_property
    def ambiguous(self) -> set[int]:
        """Added tokens such as õ, which they decode to the byte that this letter stands for in the vocabulary."""
        decode_token, added = self.theirs.decoder.decode, self.theirs.get_added_tokens_decoder()
        return {token for token, each in added.items() if decode_token([each.content]) != each.content}

    @cached_property
    def newer(self) -> frozenset[str]:
        """Characters that the libraries treat differently because their versions of Unicode differ."""
        steps = json.dumps([self.parts["normalizer"], self.parts["pre_tokenizer"]])
        newer = texts.newer_punctuation() if '"Punctuation"' in steps else frozenset[str]()
        return newer.union(*(texts.newer_characters(form) for form in texts.FORMS if f'"{form}"' in steps))

    def encode(self, text: str) -> list[int]:
        return self.ours.encode(text, "all")

    def their_encode(self, text: str) -> list[int]:
        return ids_of(self.theirs, text)

    def normalize(self, text: str) -> str:
        return self.theirs.normalizer.normalize_str(text) if self.theirs.normalizer else text


def ids_of(tokenizer: tokenizers.Tokenizer, text: str) -> list[int]:
    return tokenizer.encode(text, add_special_tokens=False).ids


def assert_same(ours: Function, theirs: Function, batch: Sequence[str], *, shorten: bool = True) -> None:
    """Compare the results for each text. On a difference, show the shortest part of the text that has one."""
    for text in batch:
        if ours(text) != theirs(text):
            part = shortest(text, lambda part: ours(part) != theirs(part)) if shorten else text
            raise AssertionError(f"{part!a}: {ours(part)!a:.300} instead of {theirs(part)!a:.300}")


def shortest(text: str, fails: Callable[[str], bool]) -> str:
    """Cut a text for which `fails` is true from both ends as long as it remains true."""
    size = len(text)
    while size := size // 2:
        while size < len(text) and (cut := next(filter(fails, (text[size:], text[:-size])), None)):
            text = cut
    return text


def in_library(library: str, path: Path, batch: Sequence[str], folder: Path) -> list[list[int]] | str:
    """Return the ids that a library of the other virtual environment gives, or why it cannot load the file."""
    python = FOLDER / "libraries/bin/python"
    if not python.exists():
        pytest.skip(f"{python} does not exist; run make test-models")
    (folder / "texts.json").write_text(json.dumps(batch), encoding="utf-8")
    command = [python, Path(__file__).with_name("oracle.py"), library, path, folder / "texts.json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 3:
        return done.stderr.splitlines()[-1]
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)

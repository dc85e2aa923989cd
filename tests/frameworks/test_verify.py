"""`verify` with engines that are not in the development environment: llama.cpp, mistral-common and gigatoken."""

from pathlib import Path
from typing import Any

import gguf
import pytest

from batchbpe import PATTERNS, Model, Tokenizer
from batchbpe.formats.byte_level import to_byte_level
from batchbpe.verification import Verification, verify

TEXT = "To be, or not to be: that is the question. It's 1234567 o'clock, isn't it? 12 123 1234 99 999\n" * 20
END = "<|endoftext|>"


def write_gguf(model: Model, path: Path, pre: str, merges: int | None = None) -> None:
    """Write a vocabulary as llama.cpp reads it."""
    writer = gguf.GGUFWriter(path, "llama")
    special = model.special_tokens.values()
    names = [value.decode() if id in special else to_byte_level(value) for id, value in model.vocab.items()]
    pairs = [" ".join(to_byte_level(model.vocab[part]) for part in pair) for pair in model.merges]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(names)
    writer.add_token_types([3 if id in special else 1 for id in model.vocab])
    writer.add_token_merges(pairs[:merges])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture
def tokenizer(tmp_path: Path) -> Tokenizer:
    found = Tokenizer.train(TEXT, 300, pattern="gpt2", special_tokens=[END])
    found.save(tmp_path / "mine")
    return found


def results(verification: Verification) -> dict[str, Any]:
    return {result.engine: result for result in verification.results}


def test_llama_cpp(tokenizer: Tokenizer, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_gguf(tokenizer.model, tmp_path / "mine.gguf", "gpt-2")
    paths = [tmp_path / "mine.model", tmp_path / "mine.gguf"]
    found = verify(paths, against=["llama.cpp"], texts=[TEXT * 100])
    assert found.ok and results(found)["llama.cpp"].detail == "tokenizer.ggml.pre=gpt-2", found
    assert results(found)["llama.cpp"].texts > 500 and results(found)["llama.cpp"].vocab_size == len(tokenizer)
    assert capfd.readouterr() == ("", "")


def test_another_pattern_of_llama_cpp(tokenizer: Tokenizer, tmp_path: Path) -> None:
    write_gguf(tokenizer.model, tmp_path / "mine.gguf", "qwen2")
    found = verify([tmp_path / "mine.model", tmp_path / "mine.gguf"], against=["llama.cpp"])
    difference = results(found)["llama.cpp"].difference
    assert difference.kind == "pattern" and "tokenizer.ggml.pre=qwen2" in difference.cause
    assert "like the pattern" in difference.cause


def test_missing_merges_of_llama_cpp(tokenizer: Tokenizer, tmp_path: Path) -> None:
    write_gguf(tokenizer.model, tmp_path / "mine.gguf", "gpt-2", merges=-1)
    found = verify([tmp_path / "mine.model", tmp_path / "mine.gguf"], against=["llama.cpp"])
    assert results(found)["llama.cpp"].difference.kind == "merges"


def test_a_file_that_llama_cpp_refuses(tokenizer: Tokenizer, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_gguf(tokenizer.model, tmp_path / "mine.gguf", "nothing")
    found = verify([tmp_path / "mine.model", tmp_path / "mine.gguf"], against=["llama.cpp"])
    assert "unknown pre-tokenizer type: 'nothing'" in results(found)["llama.cpp"].reason and not found.ok
    assert capfd.readouterr() == ("", "")


def test_what_ends_the_process_of_llama_cpp(tokenizer: Tokenizer, tmp_path: Path) -> None:
    """Very long texts without a break, and two tokens with the same name."""
    long = Tokenizer.train(TEXT, 290, pattern="deepseek", special_tokens=[END])
    long.export(tmp_path / "long.gguf", "gguf")
    assert verify(tmp_path / "long.gguf", against=["llama.cpp"], texts=["a" * 100_000, "\u4e00" * 100_000]).ok
    write_gguf(tokenizer.model, tmp_path / "mine.gguf", "gpt-2")
    content = (tmp_path / "mine.gguf").read_bytes()
    (tmp_path / "twice.gguf").write_bytes(content.replace(b"\1\0\0\0\0\0\0\0a", b"\1\0\0\0\0\0\0\0b", 1))
    found = verify([tmp_path / "mine.model", tmp_path / "twice.gguf"], against=["llama.cpp"])
    assert results(found)["llama.cpp"].reason == "two tokens have the same name"


def test_mistral_common(tmp_path: Path) -> None:
    learned = Tokenizer.train(TEXT, 300, pattern="tekken")
    merges = {(first + 3, last + 3): token + 3 for (first, last), token in learned.merges.items()}
    special = {"<unk>": 0, "<s>": 1, "</s>": 2}
    model = Model(PATTERNS["tekken"], merges, byte_ids=tuple(range(3, 259)), special_tokens=special)
    Tokenizer(model).export(tmp_path / "tekken.json", "tekken")
    found = verify(tmp_path / "tekken.json", texts=[TEXT])
    assert found.ok and results(found)["mistral-common"].status == "equal"
    assert results(found)["mistral-common"].detail == "special tokens as text"
    assert results(found)["test file"].status == "equal"


def test_gigatoken(tokenizer: Tokenizer, tmp_path: Path) -> None:
    tokenizer.export(tmp_path / "tokenizer.json", "huggingface")
    tokenizer.export(tmp_path / "mine.tiktoken", "tiktoken")
    paths = [tmp_path / "mine.model", tmp_path / "tokenizer.json", tmp_path / "mine.tiktoken"]
    found = verify(paths, against=["gigatoken"], texts=[TEXT])
    assert found.ok and [each.status for each in found.results if each.engine == "gigatoken"] == ["equal", "equal"]

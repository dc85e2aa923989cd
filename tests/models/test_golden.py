"""llama.cpp's vocabularies come with texts and their ids."""

from pathlib import Path

import pytest
from published import FOLDER, Published, assert_same, params

from batchbpe import Tokenizer

FILES = {
    "qwen2": "qwen2-vl-2b",
    "llama-bpe": "llama-3",
    "deepseek-coder": "deepseek-coder-33b-base",
    "deepseek-llm": "deepseek-llm-7b-base",
    **{name: f"gguf-{name}" for name in ("command-r", "falcon", "gpt-2", "mpt", "qwen35", "refact", "starcoder")},
}
"""The same tokenizer by the name of llama.cpp's vocabulary."""
OTHERS = {
    "ggml.model 'bert'": ["bert-bge"],
    "ggml.model 'gemma4'": ["gemma-4"],
    "ggml.model 'llama'": ["baichuan", "llama-spm", "phi-3"],
    "ggml.model 't5'": ["nomic-bert-moe"],
    "no tokenizer.ggml.pre": ["aquila", "gpt-neox"],
}
"""Why other vocabularies are not loaded."""


def golden(vocabulary: Path) -> dict[str, list[int]]:
    texts = Path(f"{vocabulary}.inp").read_bytes().decode().split("\n__ggml_vocab_test__\n")
    lines = Path(f"{vocabulary}.out").read_text().split("\n")
    return {text: [*map(int, line.split())] for text, line in zip(texts, lines, strict=True)}


@pytest.mark.parametrize("path", params("golden/*.gguf"))
def test_golden_ids(path: Path, tmp_path: Path) -> None:
    reason = next((reason for reason, names in OTHERS.items() if path.stem in names), None)
    if reason:
        with pytest.raises(ValueError, match=reason):
            Tokenizer.from_file(path)
        return
    ids = golden(path)
    assert_same(Tokenizer.from_file(path).encode, ids.__getitem__, [*ids], shorten=False)
    published = Published(FOLDER / "tokenizers" / FILES[path.stem] / "tokenizer.json")
    assert_same(published.encode, ids.__getitem__, [*ids], shorten=False)


@pytest.mark.filterwarnings("ignore:llama.cpp ", "ignore:the GGUF file does not contain")
@pytest.mark.parametrize("path", params("golden/*.gguf"))
def test_vocabularies_are_written_back(path: Path, tmp_path: Path) -> None:
    if path.stem not in FILES:
        pytest.skip("not loaded")
    loaded = Tokenizer.from_file(path)
    loaded.export(tmp_path / "a.gguf", "gguf", allow_inexact=True)
    again = Tokenizer.from_file(tmp_path / "a.gguf")
    assert again == loaded and again.model.carried == loaded.model.carried

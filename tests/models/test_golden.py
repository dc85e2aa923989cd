"""llama.cpp's vocabularies come with texts and their ids."""

from pathlib import Path

import pytest
from published import FOLDER, Published, assert_same, params

FILES = {
    "qwen2": "qwen2-vl-2b",
    "llama-bpe": "llama-3",
    "deepseek-coder": "deepseek-coder-33b-base",
    "deepseek-llm": "deepseek-llm-7b-base",
    **{name: f"gguf-{name}" for name in ("command-r", "falcon", "gpt-2", "mpt", "qwen35", "refact", "starcoder")},
}
"""The same tokenizer by the name of llama.cpp's vocabulary."""
OTHERS = {"bert-bge", "gemma-4", "llama-spm", "phi-3"}
"""These are not byte-level."""


@pytest.mark.parametrize("inputs", params("golden/*.inp"))
def test_golden_ids(inputs: Path) -> None:
    name = inputs.name.removesuffix(".gguf.inp")
    if name in OTHERS:
        pytest.skip("not byte-level")
    published = Published(FOLDER / "tokenizers" / FILES[name] / "tokenizer.json")
    texts = inputs.read_bytes().decode().split("\n__ggml_vocab_test__\n")
    lines = inputs.with_suffix(".out").read_text().split("\n")
    golden = {text: [*map(int, line.split())] for text, line in zip(texts, lines, strict=True)}
    assert_same(published.encode, golden.__getitem__, texts, shorten=False)

"""docs/handoff.md with the frameworks themselves."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers import multilingual
from mistral_common.tokens.tokenizers.tekken import Tekkenizer
from test_docs import ABSENT, ROOT, run_page

from batchbpe import Tokenizer

pytestmark = pytest.mark.filterwarnings("ignore")  # of these packages, about each other
TEXT = multilingual(20_000)


def test_recipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not ABSENT
    command = tmp_path / "bin" / "batchbpe"  # the package is not installed in this environment
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m batchbpe "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "python"))
    names = run_page(ROOT / "docs" / "handoff.md", tmp_path, monkeypatch)
    sizes = torch.load("tokenizer/token_bytes.pt", map_location="cpu")
    assert sizes.dtype == torch.int32 and sizes[:256].tolist() == [1] * 256 and sizes[-9:].tolist() == [0] * 9
    tekken, theirs = Tokenizer.from_file("tekken.json"), Tekkenizer.from_file("tekken.json")
    assert theirs.n_words == tekken.n_vocab == 1000
    assert theirs.encode(TEXT, bos=True, eos=True) == [theirs.bos_id, *tekken.encode(TEXT), theirs.eos_id]
    assert theirs.decode(tekken.encode(TEXT)) == TEXT
    litgpt, ours = names["theirs"], names["tokenizer"]
    assert litgpt.encode(TEXT, bos=True, eos=True).tolist() == [litgpt.bos_id, *ours.encode(TEXT), litgpt.eos_id]
    assert litgpt.encode("<|eos|>!", bos=False).tolist() == ours.encode("<|eos|>!", "all")
    assert litgpt.decode(litgpt.encode(TEXT, bos=False)) == TEXT
    data = names["Ids"]()
    data.connect(litgpt, batch_size=4, max_seq_length=64)
    rows = torch.cat([*data.train_dataloader()])
    assert rows.shape[1] == 65 and rows.dtype == torch.int64
    ids = np.fromfile("train.bin", np.uint16)
    known = {tuple(ids[start : start + 65].tolist()) for start in range(0, len(ids) - 64, 65)}
    assert {tuple(row) for row in rows.tolist()} <= known and len(rows) >= len(known) - 3


def test_torchtitan(tmp_path: Path) -> None:
    from torchtitan.components.tokenizer import HuggingFaceTokenizer

    tokenizer = Tokenizer.train(texts=[TEXT], vocab_size=500, special_tokens=["<|bos|>", "<|eos|>"])
    tokenizer.export(tmp_path / "folder", "transformers")
    theirs = HuggingFaceTokenizer(HuggingFaceTokenizer.Config(), tokenizer_path=str(tmp_path / "folder"))
    assert theirs.get_vocab_size() == tokenizer.n_vocab
    assert (theirs.bos_id, theirs.eos_id) == (498, 499)
    assert theirs.encode(TEXT, add_bos=True, add_eos=True) == [498, *tokenizer.encode(TEXT), 499]
    assert theirs.decode(tokenizer.encode(TEXT)) == TEXT


def test_megatron(tmp_path: Path) -> None:
    from megatron.core.tokenizers.text.libraries.huggingface_tokenizer import HuggingFaceTokenizer

    tokenizer = Tokenizer.train(texts=[TEXT], vocab_size=500, special_tokens=["<|endoftext|>"])
    tokenizer.export(tmp_path / "folder", "transformers")
    theirs = HuggingFaceTokenizer(str(tmp_path / "folder"))
    assert (theirs.vocab_size, theirs.eos_id) == (tokenizer.n_vocab, tokenizer.eot_token)
    assert theirs.text_to_ids(TEXT) == tokenizer.encode(TEXT)

"""The recipes in docs/handoff.md write what frameworks read. tests/frameworks runs those that need the frameworks."""

import base64
import json
import pickle
from pathlib import Path

import pytest
import tiktoken
from helpers import multilingual
from test_docs import ROOT, run_page

from batchbpe import Tokenizer

TEXT = multilingual(20_000)


def test_recipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_page(ROOT / "docs" / "handoff.md", tmp_path, monkeypatch)
    # What nanochat does.
    with Path("tokenizer/tokenizer.pkl").open("rb") as file:
        encoding = pickle.load(file)
    assert isinstance(encoding, tiktoken.Encoding) and encoding.n_vocab == 1000
    ours = Tokenizer.from_tiktoken(encoding)
    assert ours.pattern == encoding._pat_str and encoding.encode_single_token("<|bos|>") == 991
    assert encoding.encode_ordinary_batch([TEXT, ""], num_threads=2) == [ours.encode(TEXT), []]
    assert encoding.decode([991, *encoding.encode_ordinary(TEXT)]) == f"<|bos|>{TEXT}"
    # What mistral-common does.
    fields = json.loads(Path("tekken.json").read_text(encoding="utf-8"))
    ranks = {base64.b64decode(token["token_bytes"]): token["rank"] for token in fields["vocab"]}
    theirs = tiktoken.Encoding("a", pat_str=fields["config"]["pattern"], mergeable_ranks=ranks, special_tokens={})
    ours, n_special = Tokenizer.from_file("tekken.json"), fields["config"]["default_num_special_tokens"]
    assert ours.encode(TEXT) == [token + n_special for token in theirs.encode(TEXT)]
    assert [*ours.special_tokens.values()] == [*range(n_special)] and ours.n_vocab == 1000
    # What litgpt does.
    assert {"tokenizer.json", "tokenizer_config.json"} <= {path.name for path in Path("checkpoint").iterdir()}
    assert "tokenizer_class" in json.loads(Path("checkpoint/tokenizer_config.json").read_text(encoding="utf-8"))

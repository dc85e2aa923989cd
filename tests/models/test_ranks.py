"""Rank files give the ids of tiktoken, and tekken.json those of tiktoken and mistral-common."""

import base64
import importlib
import json
import os
from pathlib import Path

import pytest
import texts
import tiktoken
from published import FOLDER, TEKKEN, assert_same, in_library, params

from batchbpe import Tokenizer

pytestmark = pytest.mark.filterwarnings("ignore:.*which default_vocab_size leaves out")
OPENAI = os.environ.get("BATCHBPE_TEST_TIKTOKEN")


def batch(*names: str) -> list[str]:
    return [*texts.generated(2000, names), *texts.real(FOLDER / "texts")]


@pytest.mark.parametrize("path", params("ranks/*.model"))
def test_metas_rank_files_equal_metas_tokenizer(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(next(FOLDER.glob("packages/llama_models-*.whl"))))
    theirs = importlib.import_module(f"llama_models.{path.stem}.tokenizer").Tokenizer(path)
    ours = Tokenizer.from_tiktoken(path)
    assert ours.special_tokens == theirs.special_tokens
    assert Tokenizer.from_file(path) == ours
    strings = batch(*theirs.special_tokens)
    assert_same(
        lambda text: ours.encode(text, "all"), lambda text: theirs.model.encode(text, allowed_special="all"), strings
    )
    back = Tokenizer.from_tiktoken(ours.to_tiktoken())
    assert back.model == ours.model


@pytest.mark.skipif(not OPENAI, reason="BATCHBPE_TEST_TIKTOKEN is not set")
@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base"])
def test_openais_rank_files_equal_tiktoken(name: str) -> None:
    path = Path(OPENAI or "", f"{name}.tiktoken")
    lines = (line.split() for line in path.read_bytes().splitlines())
    ranks = {base64.b64decode(token): int(rank) for token, rank in lines}
    ours = Tokenizer.from_tiktoken(path)
    special = dict(ours.special_tokens)
    theirs = tiktoken.Encoding(name, pat_str=ours.pattern, mergeable_ranks=ranks, special_tokens=special)
    assert_same(
        lambda text: ours.encode(text, "all"), lambda text: theirs.encode(text, allowed_special="all"), batch(*special)
    )


@pytest.fixture(scope="session", params=params(TEKKEN))
def tekken(request: pytest.FixtureRequest) -> Path:
    return request.param


def test_tekken_equals_tiktoken(tekken: Path) -> None:
    ours = Tokenizer.from_file(tekken)
    theirs, first = tekken_encoding(tekken)
    strings = batch()
    assert_same(
        lambda text: ours.encode(text, "none"),
        lambda text: [first + token for token in theirs.encode_ordinary(text)],
        strings,
    )
    for text in strings[:200]:
        assert ours.decode(ours.encode(text, "none")) == text


def tekken_encoding(path: Path) -> tuple[tiktoken.Encoding, int]:
    """Return an encoding of the ranks, and the id of the first rank."""
    parts = json.loads(path.read_text(encoding="utf-8"))
    config = parts["config"]
    first = config["default_num_special_tokens"]
    used = parts["vocab"][: config["default_vocab_size"] - first]
    ranks = {base64.b64decode(each["token_bytes"]): each["rank"] for each in used}
    return tiktoken.Encoding("tekken", pat_str=config["pattern"], mergeable_ranks=ranks, special_tokens={}), first


def test_tekken_equals_mistral_common_before_and_after_the_export(tekken: Path, tmp_path: Path) -> None:
    ours = Tokenizer.from_file(tekken)
    strings = batch()[:600]
    theirs = in_library("mistral_common", tekken, strings, tmp_path)
    assert theirs == [ours.encode(text, "none") for text in strings]
    ours.export(tmp_path / "tekken.json", "tekken")
    back = Tokenizer.from_file(tmp_path / "tekken.json")
    assert (back.model, back.model.carried) == (ours.model, ours.model.carried)
    assert in_library("mistral_common", tmp_path / "tekken.json", strings, tmp_path) == theirs


@pytest.mark.parametrize("path", params("ranks/*.model"))
def test_training_further_keeps_the_ids_of_ranks(path: Path) -> None:
    base = Tokenizer.from_tiktoken(path)
    further = Tokenizer.train(texts.real(FOLDER / "texts")[::10], base.n_vocab + 200, base=base)
    assert further.vocab.items() >= base.vocab.items()
    assert len(further.vocab) == base.vocab_size + 200

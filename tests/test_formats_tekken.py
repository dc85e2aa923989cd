"""tekken.json: written files load back and have mistral-common's structure, and damaged ones are refused."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
import tiktoken
from helpers import multilingual

from batchbpe import Model, Tokenizer
from batchbpe.formats.tekken import load, to_json
from batchbpe.patterns import Split

TEXT = multilingual(50_000)
TRAINED = Tokenizer.train(TEXT, 280, pattern="o200k").model
SPECIAL = {"<unk>": 0, "<s>": 1, "[THINK]": 2}
SHIFT = len(SPECIAL)
MODEL = Model(
    TRAINED.split,
    {(first + SHIFT, last + SHIFT): token + SHIFT for (first, last), token in TRAINED.merges.items()},
    special_tokens=SPECIAL,
    byte_ids=tuple(range(SHIFT, 256 + SHIFT)),
    carried={"tekken": {"config": {"version": "v13"}, "image": {"image_patch_size": 16}, "printed": ["[THINK]"]}},
)


def test_written_files_load_back(tmp_path: Path) -> None:
    Tokenizer(MODEL).export(tmp_path / "any name", "tekken")
    fields = json.loads((tmp_path / "any name").read_text(encoding="utf-8"))
    assert fields["config"] == {
        "pattern": MODEL.pattern,
        "num_vocab_tokens": 280,
        "default_vocab_size": 283,
        "default_num_special_tokens": 3,
        "version": "v13",
    }
    assert fields["image"] == {"image_patch_size": 16} and "printed" not in fields
    assert [token["is_control"] for token in fields["special_tokens"]] == [True, True, False]
    loaded = Tokenizer.from_file(tmp_path / "any name")
    assert loaded.model == MODEL and loaded.model.carried == MODEL.carried
    # This is what mistral-common does.
    ranks = {base64.b64decode(token["token_bytes"]): token["rank"] for token in fields["vocab"]}
    theirs = tiktoken.Encoding("a", pat_str=fields["config"]["pattern"], mergeable_ranks=ranks, special_tokens={})
    assert loaded.encode(TEXT) == [token + 3 for token in theirs.encode(TEXT)]


def test_missing_special_tokens_have_names_and_unused_tokens_are_ignored(tmp_path: Path) -> None:
    fields = to_json(MODEL)
    fields["config"] |= {"default_vocab_size": 262, "default_num_special_tokens": 5, "version": "v3"}
    (tmp_path / "tekken.json").write_text(json.dumps(fields))
    with pytest.warns(
        UserWarning, match=r"tekken\.json: ignored the last 23 tokens, which default_vocab_size leaves out"
    ):
        loaded = Tokenizer.from_file(tmp_path / "tekken.json")
    assert loaded.special_tokens == SPECIAL | {"<SPECIAL_3>": 3, "<SPECIAL_4>": 4}
    assert (loaded.n_vocab, loaded.encode("h")) == (262, [ord("h") + 5])
    del fields["special_tokens"]
    fields["config"] |= {"default_vocab_size": 300 + 280, "default_num_special_tokens": 300}
    (tmp_path / "tekken.json").write_text(json.dumps(fields))
    special = Tokenizer.from_file(tmp_path / "tekken.json").special_tokens
    assert (special["[INST]"], special["[TOOL_CONTENT]"], special["<SPECIAL_20>"]) == (3, 19, 20)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"vocab": 3}, "vocab must be an array, got 3"),
        ({"vocab": []}, "config: default_vocab_size \\(283\\) must be at least"),
        (
            {"vocab": [{"rank": 0, "token_bytes": "?"}] * 280},
            r"vocab, token 0: expected token_bytes in base64, got \{'rank'",
        ),
        ({"vocab": [{"rank": 7, "token_bytes": "AA=="}] * 280}, "vocab, token 0: expected the rank 0, got 7"),
        (
            {"vocab": [{"rank": n, "token_bytes": "AA=="} for n in range(280)]},
            r"vocab, token 1: b'\\x00' is listed twice",
        ),
        ({"config": None}, "config must be an object, got None"),
        ({"config": {"default_num_special_tokens": "3"}}, "default_num_special_tokens must be an integer, got '3'"),
        (
            {"special_tokens": [{"rank": 0, "token_str": "a"}] * 4},
            "special_tokens: must be an array of at most 3 tokens",
        ),
        ({"special_tokens": [{"rank": 1, "token_str": "a"}]}, "special_tokens: expected token_str and the rank 0, got"),
        ({"special_tokens": None}, "a file of version 'v13' must have special_tokens"),
        (
            {"special_tokens": [{"rank": 0, "token_str": "<SPECIAL_2>"}]},
            "special_tokens: a special token is listed twice",
        ),
    ],
)
def test_damaged_files(change: dict[str, Any], problem: str, tmp_path: Path) -> None:
    (tmp_path / "tekken.json").write_text(json.dumps(to_json(MODEL) | change))
    with pytest.raises(ValueError, match=rf"tekken\.json(: |, ){problem}"):
        load(tmp_path / "tekken.json")


@pytest.mark.parametrize(
    ("model", "problem"),
    [
        (
            Model(TRAINED.split, TRAINED.merges, special_tokens={"<s>": 280}),
            "tekken.json does not store ids: special tokens must .*, or train with a base that has no merges, "
            "and whose special tokens have the lowest ids",
        ),
        (Model(r"\w*", {}), r"pattern '\\\\w\*' can match the empty string, which mistral-common treats differently"),
        (Model(Split(r"\w+", normalization="NFC"), {}), "tekken.json stores a single regular expression, not NFC"),
    ],
)
def test_what_the_format_cannot_represent(model: Model, problem: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=problem):
        Tokenizer(model).export(tmp_path / "tekken.json", "tekken")
    assert not [*tmp_path.iterdir()]

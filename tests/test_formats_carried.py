"""Parts of Hugging Face files that a model does not interpret are carried along, and exports write them back."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from tokenizers import decoders, processors

from batchbpe import Model, Tokenizer
from batchbpe.formats.huggingface import to_json

MODEL = Model(split=r"\p{L}+", merges={(97, 97): 256}, special_tokens={"<s>": 257, "<|endoftext|>": 258})
BOS = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 257)])
OFFSETS = processors.ByteLevel(trim_offsets=False)
CONFIG = {"bos_token": "<s>", "model_max_length": 2048, "chat_template": "{{ messages }}"}


def changed(**parts: Any) -> tokenizers.Tokenizer:
    """Return a tokenizer with these parts."""
    tokenizer = tokenizers.Tokenizer.from_str(json.dumps(to_json(MODEL)))
    for name, part in parts.items():
        method = getattr(tokenizer, f"enable_{name}", None)
        if method:
            method(**part)
        else:
            setattr(tokenizer, name, part)
    return tokenizer


@pytest.mark.parametrize(
    ("parts", "named"),
    [
        ({"post_processor": BOS}, "post-processor TemplateProcessing"),
        ({"post_processor": processors.Sequence([OFFSETS, BOS])}, "post-processor TemplateProcessing"),
        ({"post_processor": processors.BertProcessing(("<s>", 257), ("<s>", 257))}, "post-processor BertProcessing"),
        ({"truncation": {"max_length": 8}}, "truncation"),
        ({"padding": {"pad_id": 257, "pad_token": "<s>"}}, "padding"),
        ({"decoder": decoders.Sequence([decoders.ByteLevel(), decoders.Strip(" ", 1, 0)])}, "decoder Strip"),
        ({"post_processor": BOS, "truncation": {"max_length": 8}}, "post-processor TemplateProcessing, truncation"),
    ],
)
def test_parts_of_a_tokenizer_json(parts: dict[str, Any], named: str, tmp_path: Path) -> None:
    theirs = changed(**parts)
    theirs.save(str(tmp_path / "tokenizer.json"))
    for source in (theirs, tmp_path / "tokenizer.json", tmp_path):
        loaded = Tokenizer.from_huggingface(source)
        assert loaded.model == MODEL
        loaded.export(tmp_path / "again.json", "huggingface")
        again = tokenizers.Tokenizer.from_file(str(tmp_path / "again.json"))
        for name in ("post_processor", "decoder", "truncation", "padding"):
            assert json.loads(again.to_str())[name] == json.loads(theirs.to_str())[name]
        assert again.encode("aab").ids == theirs.encode("aab").ids
    for format, file in (("tiktoken", "rank file"), ("minbpe", "minbpe v1 file")):
        with pytest.warns(UserWarning, match=f"^the {file} does not contain the {named} of the model$") as caught:
            loaded.export(tmp_path / "other", format)  # type: ignore[arg-type]
        assert len(caught) == 1 and caught[0].filename == __file__


def test_parts_that_change_nothing_are_not_named(tmp_path: Path) -> None:
    Tokenizer.from_huggingface(changed(post_processor=OFFSETS)).export(tmp_path / "a.tiktoken", "tiktoken")


@pytest.mark.parametrize(
    ("processor", "problem"),
    [
        (
            json.loads(BOS.__getstate__()) | {"special_tokens": {}},
            "template names the token '<s>', which special_tokens",
        ),
        (
            {"type": "RobertaProcessing", "sep": ["</s>", 999], "cls": ["<s>", 257]},
            "RobertaProcessing names the token '</s>' with the id 999, which does not exist",
        ),
        ({"type": "RobertaProcessing"}, "expected a post-processor, got "),
        (7, "expected an object of one of the types .* got 7"),
    ],
)
def test_a_post_processor_with_an_unknown_token(processor: Any, problem: str, tmp_path: Path) -> None:
    content = json.dumps(to_json(MODEL) | {"post_processor": processor})
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(ValueError, match=f"a.json, post_processor: .*{problem}"):
        Tokenizer.from_file(tmp_path / "a.json")
    model = replace(MODEL, carried={"post_processor": processor})
    with pytest.raises(ValueError, match=f"post_processor: .*{problem}"):
        Tokenizer(model).export(tmp_path / "b.json", "huggingface")


def test_folders(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    Tokenizer(MODEL).export(tmp_path / "first", "transformers")
    config = {**CONFIG, "tokenizer_class": "Qwen2Tokenizer", "auto_map": {"AutoTokenizer": ["x.Y", None]}}
    # transformers adds tokens that only this file has, and replaces flags. Other ids are replaced with the next.
    flags = {"special": True, "lstrip": True}
    decoder = {"257": {"content": "<s>", **flags}, "256": {"content": "<moved>"}, "260": {"content": "<new>"}}
    (tmp_path / "first" / "tokenizer_config.json").write_text(json.dumps(config | {"added_tokens_decoder": decoder}))
    (tmp_path / "first" / "chat_template.jinja").write_text("é{{ messages }}", encoding="utf-8")
    loaded = Tokenizer.from_huggingface(tmp_path / "first")
    more = {"<moved>": 259, "<new>": 260}
    assert loaded.model == replace(MODEL, added_tokens=more, flags={"<s>": frozenset({"lstrip"})})
    loaded.export(tmp_path / "second", "transformers")
    written = json.loads((tmp_path / "second" / "tokenizer_config.json").read_text())
    assert written.pop("batchbpe").startswith("Checked")
    assert written == CONFIG | {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "auto_map": {"AutoTokenizer": [None, "tokenization_fast.PreTrainedTokenizerFast"]},
        "added_tokens_decoder": {token: decoder[token] for token in ("257", "260")},
    }
    text = "a <s><moved>b<new>"
    for folder in ("first", "second"):
        auto = transformers.PreTrainedTokenizerFast.from_pretrained(tmp_path / folder)
        assert auto.encode(text, add_special_tokens=False) == loaded.encode(text, "all")
    auto = transformers.AutoTokenizer.from_pretrained(tmp_path / "second")
    assert (auto.bos_token, auto.model_max_length, auto.chat_template) == ("<s>", 2048, "é{{ messages }}")
    again = Tokenizer.from_huggingface(auto)
    assert again.model.carried["chat_template"] == "é{{ messages }}"
    assert again.model.carried["tokenizer_config"]["bos_token"] == "<s>"
    with pytest.warns(
        UserWarning, match="rank file does not contain the chat_template, model_max_length, bos_token of"
    ):
        plain = replace(loaded.model, added_tokens={}, flags={})
        Tokenizer(plain).export(tmp_path / "a.tiktoken", "tiktoken")


def test_replaced_settings_are_named(tmp_path: Path) -> None:
    Tokenizer(MODEL).export(tmp_path, "transformers")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(CONFIG | {"pad_token": "<s>"}))
    Tokenizer.from_huggingface(tmp_path).export(tmp_path, "transformers")  # without a warning
    with pytest.warns(UserWarning, match="replaced, without its chat_template, model_max_length, pad_token$"):
        Tokenizer(MODEL).export(tmp_path, "transformers")


@pytest.mark.parametrize("content", ["{", "[1]"])
def test_a_damaged_configuration(content: str, tmp_path: Path) -> None:
    Tokenizer(MODEL).export(tmp_path, "transformers")
    (tmp_path / "tokenizer_config.json").write_text(content)
    with pytest.raises(ValueError, match=r"tokenizer_config\.json: "):
        Tokenizer.from_huggingface(tmp_path)
    Tokenizer(MODEL).export(tmp_path, "transformers")
    assert Tokenizer.from_huggingface(tmp_path).model == MODEL


def test_the_content_of_a_tokenizer_json() -> None:
    content = json.dumps(to_json(MODEL))
    for source in (content, f"\n{content}", content.encode(), bytearray(content.encode())):
        assert Tokenizer.from_huggingface(source).model == MODEL
    for wrong in ('{"version": "1.0"}', b"[]", b"\xff", "{"):
        with pytest.raises(ValueError, match=r"not a (valid )?tokenizer\.json: "):
            Tokenizer.from_huggingface(wrong)


@pytest.mark.parametrize("load", [Tokenizer.from_file, Tokenizer.from_tiktoken])
@pytest.mark.parametrize("content", ['{"version": "1.0"}', ' {\n "model": {}}', "IQ== 0\nIg== 1\n" * 1000])
def test_the_content_of_a_file_is_not_a_path(load: Any, content: str) -> None:
    problem = "must be a path, not the content of a file, got .*; write it to a file first"
    with pytest.raises(ValueError, match=problem):
        load(content)

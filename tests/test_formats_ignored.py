"""Loading and exporting warn about parts of Hugging Face files that a model does not store."""

import json
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
        (
            {"post_processor": processors.BertProcessing(("</s>", 1), ("<s>", 257))},
            "post-processor BertProcessing",
        ),
        ({"truncation": {"max_length": 8}}, "truncation"),
        ({"padding": {"pad_id": 257, "pad_token": "<s>"}}, "padding"),
        ({"decoder": decoders.Sequence([decoders.ByteLevel(), decoders.Strip(" ", 1, 0)])}, "decoder Strip"),
        ({"post_processor": BOS, "truncation": {"max_length": 8}}, "post-processor TemplateProcessing, truncation"),
    ],
)
def test_ignored_parts_are_named(parts: dict[str, Any], named: str, tmp_path: Path) -> None:
    tokenizer = changed(**parts)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    for source in (tokenizer, tmp_path / "tokenizer.json", tmp_path):
        with pytest.warns(UserWarning, match=f": ignored {named}, which batchbpe does not support$") as caught:
            assert Tokenizer.from_huggingface(source).model == MODEL
        assert len(caught) == 1 and caught[0].filename == __file__


def test_parts_that_change_nothing_are_not_named(tmp_path: Path) -> None:
    changed(post_processor=OFFSETS).save(str(tmp_path / "tokenizer.json"))
    Tokenizer.from_file(tmp_path / "tokenizer.json").export(tmp_path / "folder", "transformers")
    assert Tokenizer.from_file(tmp_path / "folder").model == MODEL


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"chat_template": "{{ messages }}"}, "chat_template"),
        ({"model_max_length": 2048, "add_bos_token": True}, "model_max_length, add_bos_token"),
        ({"bos_token": "<s>", "eos_token": "<|endoftext|>", "pad_token": {"content": "<s>"}}, "bos_token, pad_token"),
        ({"clean_up_tokenization_spaces": True, "padding_side": "right"}, "clean_up_tokenization_spaces"),
    ],
)
def test_ignored_settings_of_a_folder_are_named(config: dict[str, Any], named: str, tmp_path: Path) -> None:
    Tokenizer(MODEL).export(tmp_path, "transformers")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    with pytest.warns(UserWarning, match=f": ignored {named}, which batchbpe does not support$"):
        assert Tokenizer.from_huggingface(tmp_path).model == MODEL
    with pytest.warns(UserWarning, match=rf"tokenizer_config\.json: replaced, without its {named}$"):
        Tokenizer(MODEL).export(tmp_path, "transformers")
    Tokenizer(MODEL).export(tmp_path, "transformers")


def test_settings_of_a_transformers_object_are_named(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    Tokenizer(MODEL).export(tmp_path, "transformers")
    loaded = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert Tokenizer.from_huggingface(loaded).model == MODEL
    loaded.chat_template, loaded.pad_token = "{{ messages }}", "<s>"
    with pytest.warns(UserWarning, match=": ignored chat_template, pad_token, which"):
        Tokenizer.from_huggingface(loaded)
    loaded.save_pretrained(tmp_path / "saved")
    with pytest.warns(UserWarning, match=": ignored chat_template, pad_token, which"):
        assert Tokenizer.from_huggingface(tmp_path / "saved").model == MODEL


@pytest.mark.parametrize("load", [Tokenizer.from_huggingface, Tokenizer.from_file, Tokenizer.from_tiktoken])
@pytest.mark.parametrize("content", ['{"version": "1.0"}', ' {\n "model": {}}', "IQ== 0\nIg== 1\n" * 1000])
def test_the_content_of_a_file_is_not_a_path(load: Any, content: str) -> None:
    problem = "must be a path, not the content of a file, got .*; write it to a file first"
    with pytest.raises(ValueError, match=problem):
        load(content)

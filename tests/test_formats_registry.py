"""Every format stores each field of a model or refuses it, and all formats are documented."""

from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import pytest

from batchbpe import PATTERNS, Model, Tokenizer
from batchbpe.formats import FORMATS, Format
from batchbpe.formats.unsupported import OPTIONAL_FIELDS

PATTERN = r" ?[a-z]|[^a-z]"
MERGES = {(32, 97): 256, (32, 98): 257}
OPTIONAL: dict[str, Any] = {
    "stop_words": {b"the": 258},
    "phrases": {(256, 257): 258},
    "added_tokens": {"<a>": 258},
    "flags": {"<s>": {"lstrip"}},
    "decode_only": {258: b"the"},
    "hidden": {256},
}
NAMES = {"flags": "flags of special tokens", "decode_only": "decode-only tokens", "hidden": "hidden tokens"}


def test_the_names_of_formats() -> None:
    assert get_args(Format) == tuple(FORMATS)
    documented = (Path(__file__).parent.parent / "docs" / "formats.md").read_text(encoding="utf-8")
    assert not [name for name in FORMATS if f"`{name}`" not in documented and name != "batchbpe"]


def test_the_fields_of_models() -> None:
    """A new field needs an example here, and is refused by every format that does not say that it supports it."""
    assert set(OPTIONAL_FIELDS) == OPTIONAL.keys()
    other = {"split", "merges", "special_tokens", "byte_ids", "training", "carried"}
    assert {each.name for each in fields(Model)} == other | OPTIONAL.keys()


@pytest.mark.parametrize("field", OPTIONAL)
@pytest.mark.parametrize("format", FORMATS)
def test_a_field_is_stored_or_refused(format: Format, field: str, tmp_path: Path) -> None:
    path = tmp_path / "exported"
    special_tokens = {"<s>": 258} if field == "flags" else {"</s>": 300} if format == "gguf" else {}
    pattern = PATTERNS["llama3"] if format == "gguf" else PATTERN  # the only format that does not store it
    model = Model(pattern, MERGES, special_tokens=special_tokens, **{field: OPTIONAL[field]})
    try:
        Tokenizer(model).export(path, format)
    except ValueError as error:
        words = NAMES.get(field, field.replace("_", " "))
        assert f"does not support {words}" in str(error) and "the model has 1, such as " in str(error)
        assert not path.exists()
        return
    loaded = Tokenizer.from_tiktoken(path, PATTERN) if format == "tiktoken" else Tokenizer.from_file(path)
    assert loaded.model == model


@pytest.mark.parametrize("format", ["tiktoken", "huggingface"])
def test_an_inexact_export_leaves_out_other_fields(format: Format, tmp_path: Path) -> None:
    model = Model(PATTERN, MERGES, stop_words={b"t": 300}, phrases={(256, 257): 301, (256, 300): 302})
    left_out = "1 stop word and 1 phrase of the model"
    with pytest.warns(UserWarning, match=f"the file for .* does not contain {left_out}"):
        Tokenizer(model).export(tmp_path / "exported", format, allow_inexact=True)
    load = Tokenizer.from_tiktoken if format == "tiktoken" else Tokenizer.from_file
    assert load(tmp_path / "exported").model == Model(PATTERN, MERGES, phrases={(256, 257): 301})


@pytest.mark.parametrize("format", ["onnx", ["tiktoken"], None])
def test_an_unknown_format(format: Any, tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match="format must be one of batchbpe, tiktoken, tekken, huggingface, transformers, gguf, minbpe"
    ):
        Tokenizer(Model(PATTERN, MERGES)).export(tmp_path / "exported", format)

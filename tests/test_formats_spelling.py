"""Splits in the spelling of published models: the same ids in Hugging Face's library, and the same split on loading."""

import json
from typing import Any

import pytest
import tokenizers
from helpers import multilingual

from batchbpe import PATTERNS, Tokenizer
from batchbpe.formats.chains import DIGITS
from batchbpe.formats.huggingface import to_json
from batchbpe.formats.portability import WHOLE_TEXT
from batchbpe.formats.spelling import PUNCTUATION
from batchbpe.model import Model
from batchbpe.patterns import Split, Step

TEXT = (
    "It'S 12345 don't WE'LL x1y22z333 ３４５ café cafe\u0301 naïve ﬁn ½ Ⅷ 日本語テキスト12 한국어 \u1100\u1161 हिन्दी।"
    "\n\n  def f(x):\r\n\treturn x+1 // comment/\n \n   \u3000end\u00a0\u0085 \n  "
)


def fields_of(split: Split, text: str = TEXT) -> tuple[Tokenizer, dict[str, Any]]:
    tokenizer = Tokenizer(Tokenizer.train(text + multilingual(50_000), 600, pattern=split).model)
    return tokenizer, to_json(tokenizer.model)


def check(split: Split) -> dict[str, Any]:
    tokenizer, fields = fields_of(split)
    content = json.dumps(fields)
    theirs = tokenizers.Tokenizer.from_str(content)
    for text in (TEXT, TEXT.strip(), multilingual(100_000)):
        assert tokenizer.encode(text) == theirs.encode(text, add_special_tokens=False).ids
    assert Tokenizer.from_huggingface(content) == tokenizer
    return fields


@pytest.mark.parametrize("name", PATTERNS)
def test_named_patterns(name: str) -> None:
    check(Split.of(name))


def test_version_one_knows_these_spellings() -> None:
    """Found by loading files with 1.0.0rc3, which cannot be installed with the version that transformers needs."""
    llama3 = PATTERNS["llama3"]
    for name, regex in (
        ("llama3", llama3),
        ("gpt4", llama3),
        ("qwen2", PATTERNS["qwen2"]),
        ("o200k", PATTERNS["o200k"]),
    ):
        split, byte_level = fields_of(Split.of(name))[1]["pre_tokenizer"]["pretokenizers"]
        assert (split["pattern"], byte_level["use_regex"]) == ({"Regex": regex}, False)
    assert fields_of(Split.of("gpt2"))[1]["pre_tokenizer"]["type"] == "ByteLevel"
    digits, byte_level = fields_of(Split.of("smollm"))[1]["pre_tokenizer"]["pretokenizers"]
    assert (digits["type"], byte_level["use_regex"]) == ("Digits", True)
    assert "\r\n" in fields_of(Split.of("deepseek"))[1]["pre_tokenizer"]["pretokenizers"][2]["pattern"]["Regex"]
    kimi = fields_of(Split.of("kimi"))[1]["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"]
    assert kimi.startswith(r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*")


@pytest.mark.parametrize("normalization", ["NFC", "NFD", "NFKC", "NFKD"])
def test_normalization(normalization: Any) -> None:
    assert check(Split.of("gpt2", normalization))["normalizer"] == {"type": normalization}


@pytest.mark.filterwarnings("ignore:the pattern.* does not match")
@pytest.mark.parametrize(
    "split",
    [
        Split(PATTERNS["gpt2"], prefix_space=True),
        Split(WHOLE_TEXT, prefix_space=True, normalization="NFC"),
        Split(WHOLE_TEXT, (Step(r"\s?\p{L}+"), Step(DIGITS), Step(PUNCTUATION, "Contiguous"))),
        Split(PATTERNS["gpt2"], (Step(DIGITS, "Contiguous"),)),
        Split(PATTERNS["qwen2"], (Step("[0-9]{2}", "MergedWithPrevious"), Step("[,.]", "Removed"))),
        Split("[a-z]+", (Step(" ", "MergedWithNext"),)),
        Split(WHOLE_TEXT, (Step(r"\s+(?![^\n])"), Step("x", "Contiguous", invert=True))),
        Split(r" ?\p{L}+| ?\p{N}"),
    ],
    ids=str,
)
def test_steps(split: Split) -> None:
    check(split)


def test_prefix_space_with_steps_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"tokenizer\.json cannot store a prefix space with the pattern prefix space > qwen2"
    ):
        to_json(Model(Split(PATTERNS["qwen2"], prefix_space=True), {}))


def test_a_step_that_oniguruma_interprets_differently_is_refused() -> None:
    with pytest.raises(ValueError, match=r"pattern '\(\\\\w\)' has a capturing group"):
        to_json(Model(Split(WHOLE_TEXT, (Step(r"(\w)"),)), {}))

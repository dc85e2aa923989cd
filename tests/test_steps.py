"""Normalization and several steps of splitting equal the reference and Hugging Face's library, in files and jobs."""

import json
import unicodedata
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import tokenizers
from helpers import examples, run, texts
from hypothesis import given
from hypothesis import strategies as st

from batchbpe import ChunkCounts, Model, Tokenizer, reference, split
from batchbpe.choices import Normalization
from batchbpe.data import text_files
from batchbpe.errors import ArgumentError, ArgumentTypeError, DataError
from batchbpe.formats import native
from batchbpe.formats.portability import WHOLE_TEXT
from batchbpe.patterns import PATTERNS, Split, Step, explain

FORMS = ("NFC", "NFD", "NFKC", "NFKD")
BEHAVIORS = ("Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous")
# What Oniguruma and the core interpret in the same way.
REGULAR_EXPRESSIONS = (
    r"\p{N}", r"[0-9]{1,3}", r"[一-龥]+", r"\s+", r"\s?[a-z]+", r"[^\s\p{L}\p{N}]+", r"[\r\n]", r"\s+\z", r"a+b",
    r"(?<=a)b", r"a|bc", r"ab(?=c)", r"[^a]", PATTERNS["gpt2"],
)  # fmt: skip
# Marks, jamo and syllables, compatibility characters, singletons, and marks in the wrong order.
UNNORMALIZED = st.text(
    "aA12 \n\t.,'s九é²Ａﬁ①Åｶﾞ가각\u0301\u0323\u0345\u05b0\u0bbe\u1100\u1161\u11a8\u0f73豈", max_size=25
)
STEPS = st.builds(Step, st.sampled_from(REGULAR_EXPRESSIONS), st.sampled_from(BEHAVIORS), st.booleans())
SPLITS = st.builds(
    Split,
    st.sampled_from(REGULAR_EXPRESSIONS),
    st.lists(STEPS, max_size=3),
    st.sampled_from(("none", *FORMS)),
    st.booleans(),
)
NFC = Split.of("gpt2", "NFC")
CHAIN = Split(PATTERNS["gpt2"], (Step(r"\p{N}", "Contiguous", invert=True),), "NFKC", prefix_space=True)


@examples(400)
@given(SPLITS, UNNORMALIZED | texts)
def test_hyp_equal_to_the_reference(splitting: Split, text: str) -> None:
    assert splitting.chunks(text) == reference.split(text, splitting)


def check_equal_to_hugging_face(steps: list[Step], text: str) -> None:
    behaviors = dict(
        zip(BEHAVIORS, ["isolated", "removed", "merged_with_previous", "merged_with_next", "contiguous"], strict=True)
    )
    theirs = tokenizers.pre_tokenizers.Sequence(
        [
            tokenizers.pre_tokenizers.Split(tokenizers.Regex(step.pattern), behaviors[step.behavior], step.invert)
            for step in steps
        ]
    )
    expected = [chunk for chunk, _ in theirs.pre_tokenize_str(text)] if text else []
    assert Split(WHOLE_TEXT, tuple(steps)).chunks(text) == expected


@examples(400)
@given(st.lists(STEPS, min_size=1, max_size=3), UNNORMALIZED)
def test_hyp_steps_equal_to_hugging_face(steps: list[Step], text: str) -> None:
    check_equal_to_hugging_face(steps, text)


@examples(400)
@given(st.lists(st.tuples(st.sampled_from("ab Z1².!é中가。\u3000\xa0\t\n\r\x01ع😀"), st.integers(1, 70)), max_size=9))
def test_hyp_runs_equal_to_hugging_face(runs: list[tuple[str, int]]) -> None:
    """The steps of DeepSeek LLM, with fewer letters, which run for 64 characters at once."""
    steps = [r"[\r\n]", r"\s?[A-Za-zÀ-ÿ]+", r"\s?[!-/:-~　-。]+", r"\s+(?![^\n])", "[ࠀ-龥가-힣]+", r"\p{N}"]
    assert explain(Split(WHOLE_TEXT, tuple(map(Step, steps)))) == ("scanner", "runs of characters")
    text = "".join(c * (count if count > 60 else count % 3) for c, count in runs)
    check_equal_to_hugging_face([Step(step) for step in steps], text)


@given(UNNORMALIZED, st.sampled_from(FORMS))
def test_hyp_normalization_equals_hugging_face(text: str, form: Normalization) -> None:
    normalized = "".join(split(text, WHOLE_TEXT, normalization=form))
    assert normalized == getattr(tokenizers.normalizers, form)().normalize_str(text)


@pytest.mark.parametrize("form", FORMS)
def test_normalization_of_every_character(form: Normalization) -> None:
    """Alone, and between characters with which it may be composed or exchanged."""
    assigned = [c for c in map(chr, range(0x110000)) if unicodedata.category(c) not in ("Cn", "Cs")]
    for before, after in (("", ""), ("a", "\u0301"), ("\u0345", "\u0323")):
        text = "\n".join(before + c + after for c in assigned)
        assert "".join(split(text, WHOLE_TEXT, normalization=form)) == unicodedata.normalize(form, text)


@given(SPLITS)
def test_hyp_json(splitting: Split) -> None:
    stored = splitting.to_json()
    assert Split.from_json(json.loads(json.dumps(stored))) == splitting
    assert Split.from_text(splitting.to_text()) == splitting
    assert (stored == splitting.pattern) == splitting.is_bare


def test_a_regular_expression_that_looks_like_json() -> None:
    """In csv, the pattern is a string."""
    bare = Split('{"pattern": "a"}')
    assert Split.from_text(bare.to_text()) == bare and bare.to_json() == bare.pattern


@pytest.mark.parametrize(
    ("stored", "problem"),
    [
        (
            {"pattern": "a", "normalization": "nfc"},
            "normalization must be one of none, NFC, NFD, NFKC, NFKD, got 'nfc'",
        ),
        ({"pattern": "a", "normalizer": "NFC"}, "the pattern has an unknown field 'normalizer'; upgrade batchbpe"),
        ({"pattern": "a", "prefix_space": "no"}, "prefix_space must be True or False, got 'no'"),
        ({"pattern": "a", "steps": "b"}, "the steps of the pattern must be an array, got 'b'"),
        ({"pattern": "a", "steps": ["b"]}, "the step must be an object, got 'b'"),
        ({"pattern": "a", "steps": [{"pattern": "b", "behavior": "Merged"}]}, "behavior must be one of Isolated, "),
        ({"pattern": "a", "steps": [{"behavior": "Removed"}]}, 'the step has no field "pattern"'),
        ({"pattern": "a", "steps": [{"pattern": "("}]}, "pattern must be a supported regular expression, got '\\('"),
        (
            {"pattern": "a", "steps": [{"pattern": "b*"}]},
            "pattern of a step must not match the empty string, got 'b\\*'",
        ),
        ({"pattern": "a", "steps": [{"pattern": "b"}] * 65}, "steps must have at most 64 items, got "),
        ({"normalization": "NFC"}, 'the pattern has no field "pattern"'),
        ({"pattern": ""}, "pattern must not be empty"),
        (["a"], "the pattern must be a string or an object, got \\['a'\\]"),
    ],
)
def test_invalid_values_in_files(stored: Any, problem: str) -> None:
    with pytest.raises((ValueError, TypeError), match=problem):
        Split.from_json(stored)


def test_invalid_arguments() -> None:
    with pytest.raises(ArgumentTypeError, match="steps must be a sequence of batchbpe"):
        Split("a", steps=("b",))  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="pattern must be a regular expression, not a name, got 'gpt2'"):
        Step("gpt2")
    with pytest.raises(ArgumentError, match="normalization must be that of the given split, NFC, got 'NFD'"):
        Split.of(NFC, "NFD")
    with pytest.raises(ArgumentError, match="normalization must be one of none, NFC, NFD, NFKC, NFKD, got 'C'"):
        ChunkCounts.count("a b", normalization="C")  # type: ignore[arg-type]


def test_a_chain_is_explained_by_its_slowest_step() -> None:
    slow = Split(PATTERNS["gpt2"], (Step(r"\p{N}"), Step("(?<=a)b")))
    assert explain(slow) == ("backtracking", "step 2: it has a look-behind")


@pytest.mark.parametrize("name", ["counts.csv", "counts.parquet"])
@pytest.mark.parametrize("splitting", [NFC, CHAIN])
def test_counts_carry_the_split(splitting: Split, name: str, tmp_path: Path) -> None:
    counts = ChunkCounts.count(["e\u0301 x² 12", "é"], splitting)
    assert dict(counts) == reference.count_chunks(["e\u0301 x² 12", "é"], splitting)
    counts.save(tmp_path / name)
    loaded = ChunkCounts.load(tmp_path / name)
    assert loaded == counts and loaded.split == splitting and loaded.pattern == splitting.pattern
    assert (loaded + counts).split == splitting
    with pytest.raises(DataError, match=r"counted with the pattern .*, expected gpt2"):
        ChunkCounts.count(tmp_path / name, "gpt2")
    model = Tokenizer.train(tmp_path / name, 258).model
    assert model.split == splitting


def test_files_of_bare_regular_expressions_do_not_change(tmp_path: Path) -> None:
    def metadata(splitting: Split) -> Any:
        ChunkCounts.count("to be", splitting).save(tmp_path / "counts.parquet")
        return json.loads(pq.read_schema(tmp_path / "counts.parquet").metadata[b"batchbpe"])

    assert metadata(Split("[a-z ]+")) == {"version": 1, "pattern": "[a-z ]+", "total": 1, "unique": 1}
    assert metadata(NFC) == {"version": 2, "pattern": NFC.to_json(), "total": 2, "unique": 2}


def test_models_carry_the_split(tmp_path: Path) -> None:
    models = [Model(each, merges={}) for each in (Split.of("gpt2"), NFC, CHAIN)]
    assert len({model.identity for model in models}) == len({model.tokens_id for model in models}) == 3
    for model in models:
        native.save(model, tmp_path / "a.model")
        assert native.load(tmp_path / "a.model") == model
    assert "pattern='NFC > gpt2'" in repr(models[1])


@pytest.mark.parametrize("splitting", [NFC, CHAIN, replace(CHAIN, prefix_space=False)])
def test_counting_in_blocks(splitting: Split, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A document is cut only where that does not change its chunks."""
    lines = ("cafe\u0301", "²/", "／x", "\u1100\u1161\u11a8", "\u0301 12", "a\u0323\u0301", "")
    text = "\n".join(lines[i * i % 7] for i in range(60_000))
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    monkeypatch.setattr(text_files, "BLOCK", 1 << 12)
    expected = reference.count_chunks([text], splitting)
    assert dict(ChunkCounts.count(tmp_path / "a.txt", splitting)) == expected
    assert dict(ChunkCounts.count([text], splitting, threads=2)) == expected


def test_special_tokens_are_found_before_normalization() -> None:
    counts = ChunkCounts.count(["①<①>①"], CHAIN, special_tokens=["<①>"])
    assert dict(counts) == {" ": 2, "1": 2}


def test_extending_keeps_the_normalization() -> None:
    base = Tokenizer.train("cafe\u0301 " * 9, 258, pattern="gpt2", normalization="NFC")
    assert base.model.split == NFC
    assert Tokenizer.train("cafe\u0301 " * 9, 259, base=base, normalization="NFC").model.split == NFC
    with pytest.raises(ArgumentError, match="pattern must be the pattern of base, NFC > gpt2, got 'gpt2'"):
        Tokenizer.train("a b", 259, base=base, pattern="gpt2")


def test_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("cafe\u0301 " * 9, encoding="utf-8")
    assert run("count a.txt -o counts.parquet --pattern gpt2 --normalization NFC").exit_code == 0
    assert dict(ChunkCounts.load("counts.parquet")) == {" café": 8, " ": 1, "café": 1}
    assert "NFC > gpt2" in run("inspect counts.parquet").stdout
    assert run("train a.txt -n 258 -o mine --pattern gpt2 --normalization NFC").exit_code == 0
    assert Tokenizer.from_file("mine.model").model.split == NFC
    assert "NFC > gpt2" in run("inspect mine.model").stdout
    failed = run("count a.txt -o b.csv --normalization nfc")
    assert "must be one of 'none', 'NFC', 'NFD', 'NFKC', 'NFKD', got 'nfc'" in failed.stderr


def test_rank_files_do_not_lose_normalization_silently(tmp_path: Path) -> None:
    model = Model(Split.of("NFC > gpt4"), {(97, 97): 256})
    with pytest.raises(DataError, match=r"tiktoken stores a single regular expression, not NFC > gpt4"):
        Tokenizer(model).export(tmp_path / "a.tiktoken", "tiktoken")
    with pytest.warns(UserWarning, match="the rank file does not contain how text is split: NFC > gpt4"):
        Tokenizer(model).export(tmp_path / "a.tiktoken", "tiktoken", allow_inexact=True)

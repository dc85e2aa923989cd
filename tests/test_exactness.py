"""The core produces exactly the ids of the reference, and encodes exactly as tiktoken does."""

import argparse
import json
import os
import random
from functools import cache
from pathlib import Path
from pydoc_data import topics
from typing import Any

import pyarrow as pa
import pytest
import tiktoken
import tokenizers
from helpers import examples, reference_of, texts
from hypothesis import given
from hypothesis import strategies as st

from batchbpe import PATTERNS, Batch, ChunkCounts, Model, Tokenizer, policies, reference, train
from batchbpe.formats import tiktoken as ranks_format
from batchbpe.formats.byte_level import to_byte_level

POLICIES = ["serial", "naive", "positional", "continue_search"]
CUSTOM = ["(?s).+", r" ?\w+|\W"]
ALL_PATTERNS = [*PATTERNS, *CUSTOM]


def plain(text: str, pattern: str) -> str:
    """Remove the characters on which regular expression engines disagree for \\w."""
    return text if pattern in PATTERNS else "".join(c for c in text if c.isascii() or c.isalpha())


def both(counts: ChunkCounts, size: int, policy: str, **options: Any) -> tuple[Model, Any]:
    model = train(counts, size, policy=getattr(policies, policy), **options)
    options = {name: value for name, value in options.items() if name not in ("threads", "on_batch")}
    return model, reference.train(dict(counts.most_common()), size, policy=policy, **options)


def assert_same(model: Model, expected: Any) -> None:
    merges, stop_words = expected
    assert list(model.merges.items()) == list(merges.items())
    assert list(model.stop_words.items()) == [(word.encode(), token) for word, token in stop_words.items()]


@given(documents=st.lists(texts, max_size=5), threads=st.sampled_from([None, 1, 2, 7]))
@pytest.mark.parametrize("pattern", ALL_PATTERNS)
def test_hyp_counts(pattern: str, documents: list[str], threads: int | None) -> None:
    documents = [plain(text, pattern) for text in documents]
    expected = reference.count_chunks(documents, PATTERNS.get(pattern, pattern))
    counted = ChunkCounts.count(iter(documents), pattern, threads=threads)
    assert counted.most_common() == list(expected.items())
    arrow = ChunkCounts.count(pa.array(documents, pa.string()), pattern, threads=threads)
    assert arrow == counted


@given(
    documents=st.lists(texts, min_size=1, max_size=4),
    stop_list_size=st.sampled_from([0, 0, 1, 5]),
    freq_cutoff=st.sampled_from([0, 1, 1, 2]),
    cap_divisor=st.integers(1, 4),
    max_batch_size=st.sampled_from([0, 0, 1, 2, 7]),
    wanted=st.integers(1, 120),
    pattern=st.sampled_from(ALL_PATTERNS),
    threads=st.sampled_from([1, 2, 7]),
)
@pytest.mark.parametrize("overlapping", [False, True])
@pytest.mark.parametrize("policy", POLICIES)
def test_hyp_merges_and_encodings(
    policy: str, overlapping: bool, documents: list[str], pattern: str, wanted: int, **options: Any
) -> None:
    documents = [plain(text, pattern) for text in documents]
    counts = ChunkCounts.count(iter(documents), pattern)
    if not counts.at_least(options["freq_cutoff"]):
        return
    size = 256 + options["stop_list_size"] + wanted
    model, expected = both(counts, size, policy, overlapping=overlapping, **options)
    assert_same(model, expected)
    tokenizer = Tokenizer(model)
    for text in documents:
        ids = reference.encode(text, model.pattern, *expected)
        assert tokenizer.encode(text) == ids
        assert tokenizer.decode(ids) == text


def test_real_text_counts(counts: ChunkCounts, reference_counts: dict[str, int]) -> None:
    assert counts.most_common() == list(reference_counts.items())


@pytest.mark.parametrize("overlapping", [False, True])
@pytest.mark.parametrize("policy", POLICIES)
def test_real_text_merges(policy: str, overlapping: bool, counts: ChunkCounts) -> None:
    size, cutoff = (330, 20) if policy == "serial" else (400, 20) if policy == "naive" else (640, 30)
    options = {"overlapping": overlapping, "stop_list_size": 20, "freq_cutoff": cutoff, "threads": 2}
    model, expected = both(counts.at_least(cutoff), size, policy, **options)
    assert_same(model, expected)


@pytest.mark.parametrize("overlapping", [False, True])
def test_real_text_in_large_batches(overlapping: bool, library: list[str]) -> None:
    # Chunks are whole lines. If a batch has at least 32,768 places, threads share the work.
    counts = ChunkCounts.count("".join(library[300:400])[:1_200_000], r"[^\n]++|\n")
    batches: list[Batch] = []
    model, expected = both(counts, 320, "continue_search", overlapping=overlapping, threads=3, on_batch=batches.append)
    assert_same(model, expected)
    places = reference.get_stats([(list(chunk.encode()), 1) for chunk in counts])
    first_batch = list(model.merges)[: batches[0].size]
    assert sum(places[pair] for pair in first_batch) > 32768
    assert len(first_batch) > 1


def test_one_pair_at_a_time_is_serial(counts: ChunkCounts) -> None:
    serial = train(counts, 1500, policy=policies.serial).merges
    for policy in (policies.naive, policies.positional, policies.continue_search):
        assert train(counts, 1500, policy=policy, max_batch_size=1).merges == serial
    assert train(counts, 1500, policy=policies.serial, max_batch_size=1).merges == serial


@pytest.mark.parametrize("overlapping", [False, True])
def test_result_does_not_depend_on_threads(overlapping: bool, counts: ChunkCounts, library: list[str]) -> None:
    one, *others = [train(counts, 5000, overlapping=overlapping, threads=threads) for threads in (1, 2, 7)]
    assert len(one.merges) == 4744
    for model in others:
        assert list(model.merges.items()) == list(one.merges.items())
    lines = ChunkCounts.count("".join(library[::4]), r"[^\n]++|\n")
    one_of_lines, *others = [train(lines, 2000, overlapping=overlapping, threads=threads) for threads in (1, 2, 7)]
    for model in others:
        assert list(model.merges.items()) == list(one_of_lines.merges.items())
    tokenizer, text = Tokenizer(one), "".join(library[:200])
    ids = tokenizer.encode(text, threads=1)
    for threads in (2, 7, None):
        assert tokenizer.encode(text, threads=threads) == ids
        assert tokenizer.encode_batch(library[:50], threads=threads) == [tokenizer.encode(t) for t in library[:50]]


def test_counts_do_not_depend_on_source_or_order(counts: ChunkCounts, library: list[str], tmp_path: Path) -> None:
    shuffled = random.Random(1).sample(library, len(library))
    half = len(library) // 2
    (tmp_path / "texts").mkdir()
    for number, text in enumerate(shuffled):
        (tmp_path / "texts" / f"{number}.txt").write_text(text, encoding="utf-8", newline="")
    counts.save(tmp_path / "counts.csv")
    counts.save(tmp_path / "counts.parquet")
    for data in (
        iter(shuffled),
        pa.array(shuffled),
        pa.chunked_array([library[:half], library[half:]], pa.large_string()),
        tmp_path / "texts",
        tmp_path / "counts.csv",
        tmp_path / "counts.parquet",
        dict(counts.most_common()),
        dict(reversed(counts.most_common())),
        [ChunkCounts.count(iter(library[half:])), iter(library[:half])],
    ):
        assert ChunkCounts.count(data) == counts
    for threads in (1, 2, 7):
        assert ChunkCounts.count(iter(shuffled), threads=threads) == counts


def test_a_string_and_a_file_have_the_same_counts(library: list[str], tmp_path: Path) -> None:
    text = "\n".join(library[:400])
    (tmp_path / "text.txt").write_text(text, encoding="utf-8", newline="")
    for pattern in ("gpt2", "gpt4", "cl100k", "o200k", r"\w+|\W"):
        one, two, seven = [ChunkCounts.count(text, pattern, threads=threads) for threads in (1, 2, 7)]
        assert one == two == seven == ChunkCounts.count(tmp_path / "text.txt", pattern)


def test_real_text_encodings(counts: ChunkCounts, library: list[str]) -> None:
    model = train(counts, 2000, stop_list_size=50, freq_cutoff=2)
    tokenizer = Tokenizer(model)
    for text in library[100:1000:60]:
        assert tokenizer.encode(text[:20_000]) == reference.encode(text[:20_000], model.pattern, *reference_of(model))
    whole = "\n".join(library)
    assert tokenizer.decode(tokenizer.encode_to_numpy(whole)) == whole


@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "ab", "aba", "b", "é", "\n"]), st.integers(1, 300)), min_size=1, max_size=4
    )
)
@examples(40)
def test_hyp_long_chunks(runs: list[tuple[str, int]]) -> None:
    # Chunks longer than 256 bytes are merged with a heap.
    text = "".join(part * times for part, times in runs)
    for overlapping in (False, True):
        tokenizer = Tokenizer.train(iter([text]), 290, pattern="(?s).+", overlapping=overlapping)
        expected = reference.encode(text * 2, "(?s).+", *reference_of(tokenizer.model))
        assert tokenizer.encode(text * 2) == expected


@cache
def openai(tokenizer: Tokenizer) -> tiktoken.Encoding:
    model = tokenizer.model
    ranks = {value: token for token, value in model.vocab.items() if token not in model.special_tokens.values()}
    assert len(ranks) == len(model.vocab) - len(model.special_tokens), "two tokens have the same bytes"
    return tiktoken.Encoding(
        "test", pat_str=model.pattern, mergeable_ranks=ranks, special_tokens=dict(model.special_tokens)
    )


@pytest.fixture(scope="module", params=["gpt2", "cl100k", "o200k"])
def tokenizer(request: pytest.FixtureRequest, library: list[str]) -> Tokenizer:
    # With the serial policy, no two tokens have the same bytes here, which tiktoken requires.
    return Tokenizer.train(
        iter(library[::3]), 3000, pattern=request.param, policy=policies.serial, special_tokens=["<|end|>"]
    )


def test_real_text_as_tiktoken(tokenizer: Tokenizer, library: list[str]) -> None:
    theirs = openai(tokenizer)
    text = "\n".join(library)
    assert tokenizer.encode(text) == theirs.encode_ordinary(text)
    assert tokenizer.encode_ordinary("a<|end|>b") == theirs.encode_ordinary("a<|end|>b")
    assert tokenizer.encode("a<|end|>b", "all") == theirs.encode("a<|end|>b", allowed_special="all")
    again = ranks_format.from_ranks(theirs._mergeable_ranks, tokenizer.pattern, tokenizer.special_tokens)
    assert dict(again.merges) == dict(tokenizer.merges)


@given(text=texts)
@examples(200)
def test_hyp_as_tiktoken(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.encode(text) == openai(tokenizer).encode_ordinary(text)


FOLDER = os.environ.get("BATCHBPE_TEST_TIKTOKEN")


@pytest.mark.skipif(not FOLDER, reason="set BATCHBPE_TEST_TIKTOKEN to a folder of *.tiktoken files")
@pytest.mark.parametrize("name", ["r50k_base", "cl100k_base", "o200k_base"])
def test_openai_vocabularies(name: str, library: list[str]) -> None:
    path = Path(FOLDER or "") / f"{name}.tiktoken"
    if not path.exists():
        pytest.skip(f"file not found: {path}")
    tokenizer = Tokenizer.from_tiktoken(path)
    theirs = openai(tokenizer)
    text = "\n".join(library[::3]) + "<|endoftext|>"
    assert tokenizer.encode(text, "all") == theirs.encode(text, allowed_special="all")
    assert tokenizer.decode(tokenizer.encode(text, "none")) == text


def byte_level_merges(model: Model) -> list[list[str]]:
    return [[to_byte_level(model.vocab[token]) for token in pair] for pair in model.merges]


ENGLISH = Path(topics.__file__).read_text(encoding="utf-8")[:300_000]
CODE = Path(argparse.__file__).read_text(encoding="utf-8")
CYRILLIC = CODE.translate({letter: letter + 0x3CF for letter in range(ord("A"), ord("z"))})


@pytest.mark.parametrize(("text", "pattern"), [(ENGLISH, "gpt2"), (CODE, "gpt4"), (CYRILLIC, "gpt2")])
def test_standard_bpe_with_the_ties_of_huggingface(text: str, pattern: str) -> None:
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    split = tokenizers.pre_tokenizers.Split(tokenizers.Regex(PATTERNS[pattern]), "isolated")
    byte_level = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([split, byte_level])
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=8256, show_progress=False, initial_alphabet=byte_level.alphabet()
    )
    tokenizer.train_from_iterator([text], trainer)
    expected = json.loads(tokenizer.to_str())["model"]["merges"]
    options: Any = {"pattern": pattern, "policy": "serial", "overlapping": True}
    model = train(texts=text, vocab_size=8256, ties="huggingface", **options)
    assert byte_level_merges(model) == expected
    assert byte_level_merges(train(texts=text, vocab_size=8256, **options)) != expected
    base = train(texts=text, vocab_size=300, ties="huggingface", **options)
    assert train(texts=text, vocab_size=900, ties="huggingface", base=base, **options).merges == dict(
        [*model.merges.items()][:644]
    )

"""Training: sizes, stop words, special tokens, data and callbacks."""

import inspect
import os
import pydoc
import subprocess
import sys
import typing
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from helpers import untouched

import batchbpe
from batchbpe import Batch, ChunkCounts, Model, Tokenizer, policies, train
from batchbpe.errors import ArgumentError, ArgumentTypeError
from batchbpe.formats.roles import RoleOptions
from batchbpe.options import described
from batchbpe.phrases.options import PhraseOptions
from batchbpe.policies import Candidates
from batchbpe.training.merges import train_merges
from batchbpe.training.options import TrainingOptions

TEXT = """It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in want
of a wife. However little known the feelings or views of such a man may be on his first entering a neighbourhood,
this truth is so well fixed in the minds of the surrounding families, that he is considered as the rightful property
of some one or other of their daughters."""
COUNTS = ChunkCounts.count(TEXT)


def test_wikipedia_example() -> None:
    tokenizer = Tokenizer.train("aaabdaaabac", 259)
    assert tokenizer.merges == {(97, 97): 256, (97, 98): 257, (256, 257): 258}
    assert tokenizer.encode("aaabdaaabac") == [258, 100, 258, 97, 99]


def test_training_metadata() -> None:
    model = train(COUNTS, 280, stop_list_size=2, max_batch_size=5, cap_divisor=3, policy=policies.positional)
    assert model.n_vocab == 280
    assert {name: value for name, value in model.training.items() if name != "batches"} == {
        "vocab_size": 280,
        "stop_list_size": 2,
        "freq_cutoff": 1,
        "cap_divisor": 3,
        "max_batch_size": 5,
        "policy": "positional",
        "overlapping": False,
        "ties": "ids",
        "chunks_total": COUNTS.total,
        "chunks_unique": COUNTS.unique,
    }


def test_training_log(tmp_path: Path) -> None:
    batches: list[Batch] = []
    tokenizer = Tokenizer.train(COUNTS, 290, on_batch=batches.append)
    log = tokenizer.model.training["batches"]
    assert (log["size"], log["searched"]) == ([each.size for each in batches], [each.searched for each in batches])
    one_by_one = train(COUNTS, 290, policy="positional", cap_divisor=1000)  # searches one pair at a time
    counts = one_by_one.training["batches"]["last_count"]
    assert counts[0] == TEXT.count("th") and counts == sorted(counts, reverse=True) and len(counts) == 34
    tokenizer.save(tmp_path / "a")
    assert Tokenizer.from_file(tmp_path / "a.model").model.training["batches"] == log
    assert tokenizer.model == replace(tokenizer.model, training={})


def test_long_training_logs_are_omitted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "batches" not in train(COUNTS, 290, policy="serial").training
    monkeypatch.setattr("batchbpe.training.merges.MAX_LOGGED_BATCHES", 33)
    assert "batches" not in train(COUNTS, 290, cap_divisor=1000).training
    assert "batches" in train(COUNTS, 289, cap_divisor=1000).training


def test_on_batch() -> None:
    batches: list[Batch] = []
    model = train(COUNTS, 290, on_batch=batches.append)
    assert [batch.number for batch in batches] == list(range(1, len(batches) + 1))
    assert sum(batch.size for batch in batches) == batches[-1].merges_done == batches[-1].merges_wanted == 34
    assert len(model.merges) == 34
    assert batches[0].count == TEXT.count("th")
    assert batches[0].searched == 17
    assert all(0 < batch.size <= batch.searched for batch in batches)
    assert 0 <= batches[0].seconds <= batches[-1].seconds


def test_no_pairs_left(caplog: pytest.LogCaptureFixture) -> None:
    model = train(ChunkCounts.count("ab ab"), 10_000)
    assert model.n_vocab == 258
    assert caplog.messages == ["no pairs left to merge: the vocabulary has 258 tokens, not 10000"]
    assert set(model.vocab.values()) >= {b"ab", b" ab"}
    tokenizer = Tokenizer.train("ab ab", 10_000, special_tokens=["<end>"])
    assert tokenizer.n_vocab == 259
    assert tokenizer.special_tokens == {"<end>": 258}
    assert train(ChunkCounts.count("a b c", r"\w|\s"), 300).n_vocab == 256


def test_stop_words_get_the_first_ids_and_leave_the_data() -> None:
    counts = ChunkCounts.count({"hello": 9, "é": 8, "xy": 7, "xyz": 1, "lo": 1})
    model = train(counts, 300, stop_list_size=2)
    assert model.stop_words == {b"hello": 256, b"xy": 257}
    tokens = [model.vocab[token] for token in model.merges.values()]
    assert tokens == ["é".encode(), b"lo", b"xy", b"xyz"]
    tokenizer = Tokenizer(model)
    assert tokenizer.encode("hello") == [256]
    assert tokenizer.encode("helloo") == [*b"hel", 259, *b"o"]
    assert tokenizer.encode("xy") == [257]
    assert tokenizer.encode("xyz") == [261]
    assert tokenizer.decode([256, 257, 261]) == "helloxyxyz"


def test_stop_word_below_the_cutoff() -> None:
    counts = ChunkCounts.count({"ab": 3, "c": 2, "de": 1})
    model = train(counts, 300, stop_list_size=2, freq_cutoff=2)
    assert model.stop_words == {b"ab": 256, b"de": 257}
    assert model.merges == {}


def test_freq_cutoff() -> None:
    counts = ChunkCounts.count({"ab": 3, "cd": 2, "ef": 1})
    for cutoff, tokens in ((0, ["ab", "cd", "ef"]), (1, ["ab", "cd", "ef"]), (2, ["ab", "cd"]), (3, ["ab"])):
        model = train(counts, 300, freq_cutoff=cutoff)
        assert [model.vocab[token].decode() for token in model.merges.values()] == tokens
    with pytest.raises(
        ArgumentError, match="freq_cutoff must be at most 3, the count of the most frequent chunk, got 100"
    ):
        train(counts, 300, freq_cutoff=100)


def test_special_tokens() -> None:
    names = train(COUNTS, 270, special_tokens=["<a>", "<b>"])
    assert names.special_tokens == {"<a>": 268, "<b>": 269}
    assert len(names.merges) == 12
    far = train(COUNTS, 270, special_tokens={"<a>": 500, "<b>": 268})
    assert far.special_tokens == {"<a>": 500, "<b>": 268}
    assert far.merges == names.merges


def test_overlapping_counts() -> None:
    counts = ChunkCounts.count({"aaaaa": 1, "abab": 1, "cdcd": 1, "cd": 1})
    assert next(iter(train(counts, 257).merges)) == (99, 100)
    assert next(iter(train(counts, 257, overlapping=True).merges)) == (97, 97)


def test_ten_megabytes_of_one_letter() -> None:
    text = "a" * 10_000_000
    tokenizer = Tokenizer.train(iter([text]), 270, pattern="(?s).+")
    assert tokenizer.n_vocab == 270
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert len(ids) < 10_000_000 / 4096


@pytest.mark.parametrize("overlapping", [False, True])
def test_long_run_of_one_letter(overlapping: bool) -> None:
    text = "a" * 1_000_000
    options: dict[str, Any] = {"pattern": "(?s).+", "policy": policies.serial, "overlapping": overlapping}
    tokenizer = Tokenizer.train(iter([text]), 270, **options)
    assert [len(tokenizer.vocab[token]) for token in range(256, 270)] == [2**n for n in range(1, 15)]
    whole, rest = divmod(len(text), 2**14)
    assert tokenizer.encode(text) == [269] * whole + [255 + n for n in reversed(range(1, 14)) if rest >> n & 1]


def test_fewer_stop_words_than_requested(caplog: pytest.LogCaptureFixture) -> None:
    model = train(ChunkCounts.count("ab a b cd"), 270, stop_list_size=10)
    assert len(model.stop_words) == 4
    assert "only 4 chunks can become stop words; 10 were requested" in caplog.messages
    train(ChunkCounts.count(["ab"]), 270, stop_list_size=2)
    assert "only 1 chunk can become stop words; 2 were requested" in caplog.messages
    with pytest.raises(ArgumentError, match=r"258 \(256 bytes \+ 1 stop word \+ 1 special token\), got 257$"):
        train(ChunkCounts.count(["ab"]), 257, stop_list_size=1, special_tokens=["<e>"])


def test_train_on_any_data(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    expected = train(COUNTS, 280).merges
    for data in (TEXT, iter([TEXT]), [tmp_path / "a.txt"], pa.table({"text": [TEXT]}), dict(COUNTS)):
        assert train(data, 280).merges == expected
    assert (
        train(texts=TEXT, vocab_size=280).merges == train(files=tmp_path / "a.txt", vocab_size=280).merges == expected
    )
    assert train("text", 258).n_vocab == 258


def test_pattern_and_special_tokens_apply_to_text() -> None:
    model = train("ab<s>ab", 300, pattern=r"\w+|\W", special_tokens=["<s>"])
    assert model.pattern == r"\w+|\W"
    assert model.merges == {(97, 98): 256}


@pytest.mark.parametrize("function", [train, Tokenizer.train])
def test_options_are_spelled_out(function: Callable[..., Any]) -> None:
    """`help` shows them, a misspelled one is an error, and the defaults are the same everywhere."""
    parameters = inspect.signature(function).parameters
    assert not any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    text = pydoc.render_doc(function)
    for option in (*fields(TrainingOptions), *fields(RoleOptions), *fields(PhraseOptions)):
        assert described(option) in text
        assert parameters[option.name].default == option.default
    assert [each.name for each in parameters.values() if each.kind is not each.KEYWORD_ONLY] == ["data", "vocab_size"]
    with pytest.raises(TypeError, match="unexpected keyword argument 'stop_list'"):
        function(untouched(), 300, stop_list=3)


ANNOTATED = """
from batchbpe import Tokenizer, train
tokenizer = Tokenizer.train("text", 258, progress=True, policy="serial")
Tokenizer.train("text", 258, base=tokenizer)
Tokenizer.train("text", 258, base=tokenizer.model, progress=print)
train(["text"], 258, base=tokenizer.model, progress=True, policy="naive")
train("text", 258, stop_list=3)
"""


def test_annotations(tmp_path: Path) -> None:
    """Type checkers accept what is documented, and know the options."""
    pytest.importorskip("mypy")
    (tmp_path / "snippet.py").write_text(ANNOTATED)
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir=cache", "snippet.py"]
    environment = {**os.environ, "MYPYPATH": str(Path(batchbpe.__file__).parents[1])}
    found = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True).stdout
    errors = [line for line in found.splitlines() if ": error: " in line]
    assert len(errors) == 1, found
    assert errors[0].startswith('snippet.py:7: error: Unexpected keyword argument "stop_list"')


def test_progress_and_base(capfd: pytest.CaptureFixture[str]) -> None:
    tokenizer = Tokenizer.train(TEXT, 270)
    positions: list[int] = []
    for base in (tokenizer, tokenizer.model):
        longer = Tokenizer.train(TEXT, 280, base=base, progress=positions.append)
        assert list(longer.merges)[:14] == list(tokenizer.merges) and len(longer.merges) == 24
    assert positions[-1] == len(TEXT)
    assert Tokenizer.train(TEXT, 280, base=tokenizer, progress=True).merges == longer.merges
    assert capfd.readouterr().out == ""
    with pytest.raises(ArgumentTypeError, match=r"base must be a Tokenizer, a Model, a path, or a fast .* got 3"):
        Tokenizer.train(untouched(), 280, base=3)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", list(policies.PAPER_POLICIES))
def test_policies_by_name(name: str) -> None:
    expected = train(COUNTS, 300, policy=getattr(policies, name))
    for model in (
        train(COUNTS, 300, policy=name),
        train_merges(COUNTS, TrainingOptions(vocab_size=300, policy=name))[0],
        Tokenizer.train(COUNTS, 300, policy=name).model,
    ):
        assert list(model.merges.items()) == list(expected.merges.items())
        assert model.training["policy"] == name


def test_counts_are_passed_on_before_training() -> None:
    seen: list[object] = []
    train("to be or not to be", 258, on_counts=seen.append, on_batch=seen.append)
    assert seen[0] == ChunkCounts.count("to be or not to be") and len(seen) == 3


@pytest.mark.parametrize(("vocab_size", "overlapping"), [(2000, False), (2000, True), (400, False)])
def test_the_built_in_serial_policy_equals_one_written_in_python(vocab_size: int, overlapping: bool) -> None:
    def first(candidates: Candidates) -> Candidates:
        return candidates[:1]

    counts = ChunkCounts.count(Path(typing.__file__).read_text(encoding="utf-8"))
    batches: dict[str, list[tuple[int, ...]]] = {"serial": [], "first": []}

    def trained(policy: policies.Policy | str, name: str) -> Model:
        def record(batch: Batch) -> None:
            batches[name].append((batch.number, batch.size, batch.merges_done, batch.merges_wanted, batch.count))

        return train(counts, vocab_size, policy=policy, overlapping=overlapping, on_batch=record)

    native, python = trained("serial", "serial"), trained(first, "first")
    assert list(native.merges.items()) == list(python.merges.items())
    assert batches["serial"] == batches["first"]
    assert len(batches["serial"]) == vocab_size - 256


def test_the_serial_policy_stops_when_no_pairs_are_left() -> None:
    assert len(train(["abab"], 300, policy="serial").merges) == 2

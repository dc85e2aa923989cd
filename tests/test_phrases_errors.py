"""Phrases: bad input raises an error that names the value and the remedy, before anything is counted if possible."""

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import run, untouched

from batchbpe import PATTERNS, ChunkCounts, Model, RunCounts, Tokenizer, train, train_phrases
from batchbpe.formats.phrase_pattern import split_pattern

TEXT = "to be or not to be, that is the question\n" * 30
MODEL = Model(split=r" ?\w+|\W", merges={(116, 111): 256, (32, 98): 257, (257, 101): 258})


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"phrases": -1}, "phrases must be at least 0, got -1"),
        ({"phrases": "many"}, "phrases must be a number or 'auto', got 'many'"),
        ({"phrases": 2.5}, "phrases must be an integer, got 2.5"),
        ({"phrases": 50}, "phrases must be at most 44, which vocab_size leaves, got 50"),
        ({"phrases": 43, "special_tokens": ["<s>", "<t>"]}, "phrases must be at most 42"),
        ({"phrases": 9, "max_words": 1}, "max_words must be at least 2, got 1"),
        ({"phrases": 9, "phrase_chunks": 3}, "phrase_chunks must be 'letters', 'text', a regular expression"),
        ({"phrases": 9, "phrase_chunks": "gpt4"}, "got 'gpt4'; the name of a pattern is not accepted"),
        ({"phrase_chunks": "text"}, "phrase_chunks has no effect without phrases, got 'text'"),
        ({"max_words": 3}, "max_words has no effect without phrases, got 3"),
        ({"phrases": 9, "phrase_chunks": "("}, r"phrase_chunks must be .* got '\('"),
        ({"phrases": 9, "phrase_sample": 0}, "phrase_sample must be greater than 0 and at most 1, got 0"),
        ({"phrases": 9, "phrase_sample": "half"}, "phrase_sample must be a number, got 'half'"),
        ({"phrases": "auto"}, "data several times, but a generator can be read only once; save it to a file"),
    ],
)
def test_options(options: dict[str, Any], problem: str) -> None:
    with pytest.raises((ValueError, TypeError), match=problem):
        train(untouched(), 300, **options)


def test_counts_are_not_text(tmp_path: Path) -> None:
    counts = ChunkCounts.count(TEXT)
    counts.save(tmp_path / "counts.parquet")
    for data in (counts, tmp_path / "counts.parquet", [TEXT, counts]):
        with pytest.raises(ValueError, match="phrases need text, but these are chunk counts; pass the text"):
            train(data, 300, phrases=5)


def test_a_base_with_phrases() -> None:
    base = Tokenizer.train([TEXT], 300, phrases=3)
    with pytest.raises(ValueError, match="base already has 3 phrases; use a model without phrases"):
        train([TEXT], 310, base=base, phrases=3)
    with pytest.raises(ValueError, match="the model already has 3 phrases; use a model without phrases"):
        train_phrases(base, RunCounts.count([TEXT], base), 3)


def test_runs_of_another_model() -> None:
    other = Model(split=MODEL.pattern, merges={})
    with pytest.raises(ValueError, match="the runs were counted with another model; count them with this one"):
        train_phrases(MODEL, RunCounts.count([TEXT], other), 3)
    with pytest.raises(ValueError, match="cannot add runs of another model"):
        RunCounts.count([TEXT], MODEL) + RunCounts.count([TEXT], other)
    with pytest.raises(ValueError, match="cannot add runs of another kind of chunks"):
        RunCounts.count([TEXT], MODEL) + RunCounts.count([TEXT], MODEL, phrase_chunks="text")
    with pytest.raises(ValueError, match="cannot add runs that were cut, with min_count 5; count with min_count=1"):
        RunCounts.count([TEXT], MODEL) + RunCounts.count([TEXT], MODEL, min_count=5)


def test_files_of_runs(tmp_path: Path) -> None:
    runs = RunCounts.count([TEXT], MODEL, phrase_chunks="text")
    path = tmp_path / "runs.parquet"
    runs.save(path)
    assert RunCounts.load(path) == runs
    assert train_phrases(MODEL, RunCounts.load(path), 2) == train_phrases(MODEL, runs, 2)
    with pytest.raises(ValueError, match=r"path must end in \.parquet"):
        runs.save(tmp_path / "runs.csv")
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"runs\.parquet"):
        RunCounts.load(path)
    pq.write_table(pa.table({"run": [[1, 2]], "count": [3]}), path)
    with pytest.raises(ValueError, match=r"runs\.parquet: not a file of runs; create one with RunCounts.save"):
        RunCounts.load(path)


def test_cutting_runs_needs_data_that_can_be_read_twice() -> None:
    assert RunCounts.count(iter([TEXT]), MODEL) == RunCounts.count([TEXT], MODEL)
    with pytest.raises(ValueError, match="a generator can be read only once; save it to a file"):
        RunCounts.count(untouched(), MODEL, min_count=2)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes are posix")
def test_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="pipe can be read only once; save it to a file"):
        train(tmp_path / "pipe", 300, phrases=5)


def test_texts_that_look_like_paths() -> None:
    texts = ["and/or", "to/be", TEXT]
    assert train(texts, 300, phrases=3) == train(texts=texts, vocab_size=300, phrases=3)


def test_too_few_pairs(caplog: pytest.LogCaptureFixture) -> None:
    model = train([TEXT], 300, phrases=20, phrase_chunks=lambda chunk: chunk in (" be", " to", " or"))
    assert 0 < len(model.phrases) < 20
    tokens = "the vocabulary has 282 tokens, not 300"
    assert caplog.messages == [f"only 2 of 20 phrases were found: {tokens}; use fewer phrases or 'auto'"]


def test_too_few_pairs_of_both_kinds(caplog: pytest.LogCaptureFixture) -> None:
    model = train([TEXT], 400, phrases="auto")
    assert caplog.messages == [
        f"no pairs left to merge: the vocabulary has {model.vocab_size} tokens ({len(model.phrases)} phrases), not 400"
    ]


def test_functions_of_the_same_name_are_different_kinds() -> None:
    model = train([TEXT], 300)
    one, two, three = (
        RunCounts.count([TEXT], model, phrase_chunks=chunks)
        for chunks in (lambda chunk: "o" in chunk, lambda chunk: "b" in chunk, lambda chunk: "o" in list(chunk))
    )
    assert (one + three).total == 2 * one.total
    with pytest.raises(ValueError, match="cannot add runs of another kind of chunks"):
        one + two


def test_a_sample_of_one_large_file(tmp_path: Path) -> None:
    """It is read in part, although it is a single document."""
    path = tmp_path / "large.txt"
    path.write_text(TEXT * 10_000, encoding="utf-8")
    tokenizer = Tokenizer.train(path, 280, phrases=3, phrase_sample=0.4)
    assert len(tokenizer.phrases) == 3
    assert tokenizer == Tokenizer.train([path], 280, phrases=3, phrase_sample=0.4, threads=1)
    with pytest.raises(
        ValueError, match=r"the sample \(fraction 1e-05\) contains no pairs of chunks; increase phrase_sample"
    ):
        Tokenizer.train([TEXT], 300, phrases=3, phrase_sample=0.00001)


def test_command_line(place: Path) -> None:
    result = run("train book.txt -n 700 --phrases auto --phrase-chunks text -o phrased --json -q")
    tokenizer = Tokenizer.from_file("phrased.model")
    assert f'"phrases": {len(tokenizer.phrases)}' in result.stdout
    assert tokenizer.phrases
    assert "phrases" in run("inspect phrased.model").stdout
    assert run("evaluate mine.model phrased.model --data book.txt").exit_code == 0
    assert "must be a number or auto, got 'some'" in run("train book.txt -n 700 --phrases some -o x").stderr
    assert "standard input can be read only once" in run("train - -n 700 --phrases 9 -o x", "to be").stderr
    assert not Path("x.model").exists()


def test_a_damaged_count_of_runs(tmp_path: Path) -> None:
    path = tmp_path / "runs.parquet"
    runs = RunCounts.count([TEXT], MODEL)
    RunCounts(runs.arrays._replace(min_count=-5)).save(path)
    with pytest.raises(ValueError, match=r"runs\.parquet: not a file of runs, or damaged; count again"):
        RunCounts.load(path)


def test_a_function_that_fails() -> None:
    with pytest.raises(ValueError, match=r"phrase_chunks failed for the chunk .*: ZeroDivisionError"):
        train([TEXT], 300, phrases=3, phrase_chunks=lambda chunk: 1 / 0 > 0)


def test_special_tokens_with_ids_of_phrases() -> None:
    base = train([TEXT], 270, special_tokens=["<e>"])
    with pytest.raises(ValueError, match="special_tokens must not have the ids 270 to 280, which new tokens need"):
        train([TEXT], 282, base=base, phrases=5, special_tokens={"<f>": 276})


def test_a_model_file_of_the_wrong_version(tmp_path: Path) -> None:
    Tokenizer.train([TEXT], 300, phrases=3).save(tmp_path / "mine")
    path = tmp_path / "mine.model"
    path.write_text(path.read_text(encoding="utf-8").replace('"version": 2', '"version": 1'), encoding="utf-8")
    with pytest.raises(ValueError, match="version must be at least 2 in a file with phrases, got 1"):
        Tokenizer.from_file(path)


def test_phrases_are_bounded_in_bytes(tmp_path: Path) -> None:
    """A small file can describe huge phrases, by repeating a long token."""
    merges = {(97, 97): 256} | {(token, token): token + 1 for token in range(256, 271)}  # up to 64 KiB
    Tokenizer(Model(r"\w+", merges, phrases={(97, 98): 300, (98, 271): 301})).save(tmp_path / "mine")
    path = tmp_path / "mine.model"
    fields = path.read_text(encoding="utf-8")
    path.write_text(fields.replace("[97,98,300]", f"[{'271,' * 1024}300]"), encoding="utf-8")
    limit = r"mine\.model: phrases must have at most 67,108,864 bytes in total, got 67,174,401 or more; shorten phrase"
    with pytest.raises(ValueError, match=limit):
        Tokenizer.from_file(path)


def test_patterns_with_phrases_are_bounded_in_bytes() -> None:
    """A short pattern could describe many long texts."""
    repeated = "(?:a|b)" * 1000
    assert split_pattern(f"(?:{repeated})|{PATTERNS['gpt4']}")[1] == ()
    limit = r"phrases of a pattern must have at most 67,108,864 bytes in total, got 67,\d\d\d,\d\d\d or more, up to 'xx"
    for tree in ("x" * 100_000 + f"(?:{'a|' * 1000})", ("x" * 1000 + "(?:") * 1000):
        with pytest.raises(ValueError, match=limit):
            split_pattern(f"(?:{tree})|{PATTERNS['gpt4']}")

"""Damaged models and counts: an error that names the file, or something that works; never a crash or a traceback."""

import gzip
from pathlib import Path

import pytest
from mutants import mutants

from batchbpe import ChunkCounts, Tokenizer

TEXT = "to be, or not to be: that is the question. Être, ou ne pas être? 生きるべきか " * 20
PLAIN = Tokenizer.train(TEXT, 400, special_tokens=["<|endoftext|>"])
STOP_WORDS = Tokenizer.train(TEXT, 400, stop_list_size=9, special_tokens=["<|endoftext|>"])


def check(path: Path, content: bytes) -> bool:
    """Load a tokenizer, and use it if that is possible."""
    path.write_bytes(content)
    try:
        tokenizer = Tokenizer.from_file(path)
        ids = tokenizer.encode(TEXT, "all")
        tokenizer.decode(ids)
    except ValueError as error:  # also of a pattern that is damaged
        assert str(path) in str(error) or "pattern" in str(error)
        return False
    return True


@pytest.mark.filterwarnings("ignore:.*bytes lie between the matches")
@pytest.mark.parametrize(
    ("format", "name", "tokenizer"),
    [
        ("batchbpe", "a.model", STOP_WORDS),
        ("tiktoken", "a.tiktoken", PLAIN),
        ("huggingface", "tokenizer.json", PLAIN),
        ("minbpe", "b.model", PLAIN),
        ("batchbpe-v1", "c.model", PLAIN),
    ],
)
def test_models(format: str, name: str, tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if format == "tiktoken":  # such a file does not say its pattern: it has to be known by its name
        known = {"a": ("gpt4", len(tokenizer.vocab) - 1, {"<|endoftext|>": 399})}
        monkeypatch.setattr("batchbpe.formats.tiktoken.KNOWN", known)
    path = tmp_path / name
    tokenizer.export(path, format)  # type: ignore[arg-type]
    content = path.read_bytes()
    assert check(path, content)
    assert not all(check(path, mutant) for mutant in mutants(content, 60, seed=1))


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.csv.gz"])
def test_counts(name: str, tmp_path: Path) -> None:
    """A parquet file has checksums, so what can be loaded is right; a csv has none, but its rows must be counts."""
    counts = ChunkCounts.count(TEXT)
    path = tmp_path / name
    plain = tmp_path / name.removesuffix(".gz")
    counts.save(plain)
    content = gzip.compress(plain.read_bytes(), mtime=0) if name.endswith(".gz") else plain.read_bytes()
    refused = 0
    for mutant in mutants(content, 150, seed=2):
        path.write_bytes(mutant)
        try:
            loaded = ChunkCounts.load(path)
        except (ValueError, OSError) as error:
            assert str(path) in str(error)
            refused += 1
            continue
        if name == "a.parquet":
            assert dict(loaded) == dict(counts)
        assert loaded.total >= loaded.unique
    assert refused

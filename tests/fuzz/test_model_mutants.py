"""Damaged models and counts either raise an error that names the file, or load and work. They never crash."""

import gzip
from pathlib import Path

import pytest
from mutants import mutants

from batchbpe import ChunkCounts, Tokenizer
from batchbpe.formats.published import Published

TEXT = "to be, or not to be: that is the question. Être, ou ne pas être? 生きるべきか " * 20
PLAIN = Tokenizer.train(TEXT, 400, special_tokens=["<|endoftext|>"])
STOP_WORDS = Tokenizer.train(TEXT, 400, stop_list_size=9, special_tokens=["<|endoftext|>"])


def check(path: Path, content: bytes) -> bool:
    """Load and use a tokenizer; return whether that worked."""
    path.write_bytes(content)
    try:
        tokenizer = Tokenizer.from_file(path)
        ids = tokenizer.encode(TEXT, "all")
        tokenizer.decode(ids)
    except ValueError as error:
        assert str(path) in str(error) or "pattern" in str(error)
        return False
    return True


@pytest.mark.filterwarnings("ignore:.*pattern does not match")
@pytest.mark.parametrize(
    ("format", "name", "tokenizer"),
    [
        ("batchbpe", "a.model", STOP_WORDS),
        ("tiktoken", "a.tiktoken", PLAIN),
        ("huggingface", "tokenizer.json", PLAIN),
        ("gguf", "a.gguf", PLAIN),
        ("minbpe", "b.model", PLAIN),
        ("batchbpe-v1", "c.model", PLAIN),
    ],
)
def test_models(format: str, name: str, tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if format == "tiktoken":  # rank files do not store their pattern, which must be known for these ranks
        published = {"a": Published("gpt4", len(tokenizer.vocab) - 1, None, {"<|endoftext|>": 399})}
        monkeypatch.setattr("batchbpe.formats.published.PUBLISHED", published)
    path = tmp_path / name
    tokenizer.export(path, format)  # type: ignore[arg-type]
    content = path.read_bytes()
    assert check(path, content)
    assert not all(check(path, mutant) for mutant in mutants(content, 60, seed=1))


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.csv.gz"])
def test_counts(name: str, tmp_path: Path) -> None:
    """Parquet has checksums, so a file that loads has the right counts. Csv has none, but its rows must be valid."""
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

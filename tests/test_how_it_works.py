"""The figures of docs/how-it-works.md are up to date, and what the page says about batches is true."""

import random
import re
from collections.abc import Iterator
from copy import deepcopy
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from batchbpe import ChunkCounts, PairTable
from batchbpe.reference import Chunks, Pair, get_stats, merge_batch, safe_batch

DOCS = Path(__file__).parent.parent / "docs"
PAGE = (DOCS / "how-it-works.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module", autouse=True)
def _importable() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(DOCS)
        yield


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    contents: dict[str, str] = import_module("make_figures").files()
    return contents


@pytest.fixture(scope="module")
def example() -> Any:
    return import_module("figures.example").Example()


def test_figures_are_what_the_script_draws(files: dict[str, str]) -> None:
    found = {path.name: path.read_text(encoding="utf-8") for path in (DOCS / "figures").glob("*.svg")}
    assert found == files, "make docs"


def test_figures_are_small_described_and_shown_with_a_text(files: dict[str, str]) -> None:
    for name, content in files.items():
        assert len(content.encode()) < 30_000, name
        assert re.search("<title id=.+?>.+</title>\n<desc id=.+?>.+</desc>", content), name
        assert "prefers-color-scheme:dark" in content, name
    shown = re.findall(r"!\[([^\]]+)\]\(figures/([\w.]+)\)", PAGE)
    assert {name for _, name in shown} == files.keys()


Merges = dict[tuple[bytes, bytes], int]
"""The bytes of both tokens → the count with which they were merged."""


def merges_of(chunks: Chunks, wanted: int, policy: str, min_count: int = 1) -> tuple[Merges, bool]:
    """Train as `reference.train` does, and also return whether two counts were equal."""
    vocab = {token: bytes([token]) for token in range(256)}
    merges: Merges = {}
    is_tied = False
    while len(merges) < wanted:
        stats = get_stats(chunks)
        ranked = sorted(stats, key=lambda pair: (-stats[pair], pair))
        searched = ranked[: min((wanted - len(merges)) // 2, len(vocab)) or 1]
        counts = [stats[pair] for pair in ranked[: len(searched) + 1]]
        if not searched or counts[0] < min_count:
            break
        is_tied |= len(set(counts)) < len(counts)
        batch = {pair: len(vocab) + n for n, pair in enumerate(choose(searched, policy))}
        for (first, last), token in batch.items():
            vocab[token] = vocab[first] + vocab[last]
            merges[vocab[first], vocab[last]] = stats[first, last]
        merge_batch(chunks, batch)
    return merges, is_tied


def choose(searched: list[Pair], policy: str) -> list[Pair]:
    return {"all": searched, "serial": searched[:1]}.get(policy) or safe_batch(searched, policy)


def test_a_batch_merges_what_serial_merges_with_the_same_count_unless_counts_are_equal() -> None:
    """The page says so where it explains why vocabularies differ."""
    rng = random.Random(1)
    checked = 0
    for _ in range(300):
        letters = "abcdefgh"[: rng.randint(2, 8)]
        words = {"".join(rng.choices(letters, k=rng.randint(2, 7))) for _ in range(rng.randint(10, 100))}
        counts = [(list(word.encode()), rng.randint(1, 10**6)) for word in sorted(words)]
        batched, is_tied = merges_of(deepcopy(counts), rng.randint(4, 24), "continue_search")
        serial, _ = merges_of(counts, 10_000, "serial", min(batched.values()))
        if not is_tied and len(set(serial.values())) == len(serial):
            assert batched.items() <= serial.items()
            checked += 1
    assert checked > 100


def test_overlapping_pairs_lose_places_to_each_other(example: Any) -> None:
    """The numbers in the section on safe batches."""
    th, he = (116, 104), (104, 101)
    chunks: Chunks = [(list(chunk.encode()), count) for chunk, count in example.trained()]
    stats = get_stats(chunks)
    assert (stats[th], stats[he]) == (10, 8)
    at_once, one_by_one = deepcopy(chunks), deepcopy(chunks)
    merge_batch(at_once, {th: 256, he: 257})
    assert sum(tokens.count(257) * count for tokens, count in at_once) == 2
    merge_batch(one_by_one, {he: 257})
    assert get_stats(one_by_one)[th] == 4
    for policy, length in (("all", 33), ("continue_search", 21)):
        trained = deepcopy(chunks)
        merges_of(trained, len(example.model.merges), policy)
        assert sum(len(tokens) * count for tokens, count in trained) == length


def test_the_table_refuses_overlapping_pairs_as_the_page_says() -> None:
    table = PairTable(ChunkCounts.count(texts="the other weather"))
    with pytest.raises(ValueError) as raised:
        table.merge([(116, 104), (104, 101)])
    assert str(raised.value) in " ".join(PAGE.split())

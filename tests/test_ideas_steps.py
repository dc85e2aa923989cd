"""The examples about tokens that are steps to others: each equals a plain computation over lists of tokens."""

import re
import sys
import sysconfig
from collections import Counter
from importlib.util import module_from_spec, spec_from_file_location
from itertools import pairwise
from math import isnan
from pathlib import Path
from typing import Any

import pytest
from helpers import examples
from hypothesis import given
from hypothesis import strategies as st

from batchbpe import ChunkCounts, Model, Tokenizer, evaluate, reference, train
from batchbpe.analysis import audit, final_shares
from batchbpe.analysis import residues as find_residues
from batchbpe.reference import Chunks, Pair

FOLDER = Path(__file__).parents[1] / "examples" / "policies"
TEXT = Path(re.__file__).read_text(encoding="utf-8")
WORDS = st.dictionaries(st.text("abc", min_size=1, max_size=9), st.integers(1, 50), min_size=1, max_size=12)


def load(name: str) -> Any:
    spec = spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec and spec.loader
    sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


leaf_pruning, residues, picky, scaffold = map(load, ("leaf_pruning", "residues", "picky", "scaffold"))


def plain_chunks(counts: ChunkCounts) -> Chunks:
    return [(list(chunk.encode()), count) for chunk, count in counts.items()]


def token_counts(chunks: Chunks) -> Counter[int]:
    counts: Counter[int] = Counter()
    for tokens, count in chunks:
        for token in tokens:
            counts[token] += count
    return counts


def best_pair(chunks: Chunks) -> tuple[Pair, int] | None:
    return min(reference.get_stats(chunks).items(), key=lambda item: (-item[1], item[0]), default=None)


def plain_scaffold(chunks: Chunks, vocab_size: int) -> tuple[dict[Pair, int], set[int]]:
    """Follow the publication: pairs and hidden tokens wait in one queue. Of equals, tokens come first."""
    merges: dict[Pair, int] = {}
    hidden: set[int] = set()

    def queue() -> list[tuple[int, int, Any]]:
        counts = token_counts(chunks)
        tokens = [(-counts[token], 0, token) for token in hidden if counts[token]]
        return sorted([*tokens, *((-count, 1, pair) for pair, count in reference.get_stats(chunks).items())])

    while 256 + len(merges) - len(hidden) < vocab_size and queue():
        _, is_pair, best = queue()[0]
        if not is_pair:
            hidden.remove(best)
            continue
        merges[best] = 256 + len(merges)
        reference.merge_batch(chunks, {best: merges[best]})
        next_count = -queue()[0][0] if queue() else 0
        hidden |= {token for token in best if token > 255 and token_counts(chunks)[token] < next_count}
    return merges, hidden


def plain_picky(chunks: Chunks, vocab_size: int, threshold: float) -> tuple[dict[Pair, int], set[int]]:
    merges: dict[Pair, int] = {}
    hidden: set[int] = set()
    while 256 + len(merges) - len(hidden) < vocab_size and (best := best_pair(chunks)):
        pair, count = best
        token = merges.setdefault(pair, 256 + len(merges))
        hidden.discard(token)
        reference.merge_batch(chunks, {pair: token})
        left = token_counts(chunks)
        removed = {part for part in pair if part > 255 and count > threshold * (left[part] + count)}
        hidden |= removed
        parts = {token: pair for pair, token in merges.items() if token in hidden}
        for tokens, _ in chunks if removed else ():
            while split := [at for at, token in enumerate(tokens) if token in parts]:
                tokens[split[0] : split[0] + 1] = parts[tokens[split[0]]]
    return merges, hidden


def in_bytes(model: Model) -> list[tuple[bytes, bytes, bool]]:
    vocab = model.vocab_with_hidden
    return [(vocab[first], vocab[last], token in model.hidden) for (first, last), token in model.merges.items()]


def plain_in_bytes(merges: dict[Pair, int], hidden: set[int]) -> list[tuple[bytes, bytes, bool]]:
    vocab = {token: bytes([token]) for token in range(256)}
    for (first, last), token in merges.items():
        vocab[token] = vocab[first] + vocab[last]
    return [(vocab[first], vocab[last], token in hidden) for (first, last), token in merges.items()]


def check_scaffold(counts: ChunkCounts, vocab_size: int) -> set[int]:
    model = train(counts, vocab_size, policy=scaffold.Scaffold(), max_batch_size=1)
    merges, hidden = plain_scaffold(plain_chunks(counts), vocab_size)
    assert in_bytes(model) == plain_in_bytes(merges, hidden)
    return hidden


def check_picky(counts: ChunkCounts, vocab_size: int, threshold: float) -> set[int]:
    policy = picky.Picky(threshold)
    model = train(counts, vocab_size, policy=policy, max_batch_size=1)
    chunks = plain_chunks(counts)
    merges, hidden = plain_picky(chunks, vocab_size, threshold)
    assert in_bytes(model) == plain_in_bytes(merges, hidden)
    assert not merges or policy.length == token_counts(chunks).total()
    return hidden


@examples(200)
@given(words=WORDS, size=st.integers(257, 290))
def test_hyp_scaffold_one_at_a_time_is_the_publication(words: dict[str, int], size: int) -> None:
    check_scaffold(ChunkCounts.count(words), size)


@examples(200)
@given(words=WORDS, size=st.integers(257, 290), threshold=st.sampled_from([0.5, 0.75, 0.9]))
def test_hyp_picky_one_at_a_time_is_the_publication(words: dict[str, int], size: int, threshold: float) -> None:
    check_picky(ChunkCounts.count(words), size, threshold)


def test_text_with_steps() -> None:
    counts = ChunkCounts.count(TEXT)
    assert check_scaffold(counts, 400)
    assert check_picky(counts, 400, 0.75)


def test_of_equally_frequent_hidden_tokens_the_older_is_shown() -> None:
    words = {"ababacac": 1, "cbaccccb": 1, "bccbccbcc": 1, "babcac": 4, "cacacacbb": 4, "acbcacbb": 2, "abccc": 2}
    check_scaffold(ChunkCounts.count({**words, "cabbaba": 3, "ccba": 1, "ccc": 4}), 266)


def plain_encode(model: Model, chunk: str) -> tuple[list[int], list[int]]:
    """Return the tokens of a chunk, and all tokens that were made on the way."""
    ranks = {pair: rank for rank, pair in enumerate(model.merges)}
    tokens = list(chunk.encode())
    made = [*tokens]
    while pairs := [(ranks[pair], at) for at, pair in enumerate(pairwise(tokens)) if pair in ranks]:
        _, at = min(pairs)
        tokens[at : at + 2] = [model.merges[tokens[at], tokens[at + 1]]]
        made.append(tokens[at])
    return tokens, made


def test_final_shares_count_all_tokens_that_encoding_makes() -> None:
    tokenizer = Tokenizer.train(TEXT, 600)
    other = Path(sysconfig.__file__).read_text(encoding="utf-8")
    final: Counter[int] = Counter()
    made: Counter[int] = Counter()
    for chunk, count in ChunkCounts.count(other).items():
        for counter, tokens in zip((final, made), plain_encode(tokenizer.model, chunk), strict=True):
            counter.update({token: count * times for token, times in Counter(tokens).items()})
    frequencies = evaluate(tokenizer, texts=other)[0].frequencies
    shares = final_shares(tokenizer.model, frequencies).tolist()
    assert len(shares) == 600
    for token, share in enumerate(shares):
        assert isnan(share) if not made[token] else share == final[token] / made[token]
    found = find_residues(tokenizer.model, frequencies, 0.2)
    assert found == [token for token in range(256, 600) if made[token] and final[token] / made[token] < 0.2]
    without = Tokenizer(tokenizer.model.without(found))
    gone = {tokenizer.vocab[token] for token in found}
    assert gone.isdisjoint(without.vocab[token] for token in without.encode(other))
    assert without.decode(without.encode(other)) == other


def plain_pruned(model: Model, n: int, counts: Counter[int]) -> set[bytes]:
    parts = {token: pair for pair, token in model.merges.items()}
    while 256 + len(parts) > n:
        leaves = parts.keys() - {part for pair in parts.values() for part in pair}
        leaf = min(leaves, key=lambda token: (counts[token], -token))
        for part in parts.pop(leaf):
            counts[part] += counts[leaf]
    return {model.vocab[token] for token in [*range(256), *parts]}


def test_leaf_pruning_and_continued_training_are_the_publication(tmp_path: Path) -> None:
    kept, added = tmp_path / "kept.txt", tmp_path / "added.txt"
    kept.write_text(TEXT, encoding="utf-8")
    added.write_text(Path(sysconfig.__file__).read_text(encoding="utf-8"), encoding="utf-8")
    base = train(texts=[TEXT, added.read_text(encoding="utf-8")], vocab_size=600, policy="serial")
    models = leaf_pruning.adapted(base, str(kept), 500, str(added), 40)
    assert {name: model.vocab_size for name, model in models.items()} == {
        "base": 600,
        "pruned": 500,
        "continued": 540,
        "appended": 540,
    }
    pruned = models["pruned"]
    assert {*pruned.vocab.values()} == plain_pruned(base, 500, Counter(Tokenizer(base).encode(TEXT)))

    counts = ChunkCounts.count(files=added)
    chunks = [(plain_encode(pruned, chunk)[0], count) for chunk, count in counts.items()]
    merges = dict(pruned.merges)
    for token in range(600, 640):
        pair, _ = best_pair(chunks) or pytest.fail("no pairs are left")
        merges[pair] = token
        reference.merge_batch(chunks, {pair: token})
    assert dict(models["continued"].merges) == merges
    assert not any(audit(Tokenizer(model)).unreachable for model in models.values())


@pytest.mark.parametrize("example", [leaf_pruning, picky, residues, scaffold])
def test_examples_run_without_arguments(
    example: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [example.__name__])
    example.main()
    assert re.search(r"\d", capsys.readouterr().out)


@pytest.mark.parametrize("example", [leaf_pruning, picky, residues, scaffold])
def test_examples_are_short(example: Any) -> None:
    assert len(Path(example.__file__).read_text(encoding="utf-8").splitlines()) <= 60

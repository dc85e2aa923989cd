"""The policies choose the same pairs as the reference, and `Candidates` offers what policies need."""

import weakref
from collections.abc import Callable
from itertools import pairwise
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchbpe import Batch, ChunkCounts, policies, reference, train
from batchbpe.choices import PolicyName
from batchbpe.policies import Candidates, GrowingVocab

Pair = tuple[int, int]


class PairList:
    """A list of pairs instead of the core's table."""

    def __init__(self, pairs: list[Pair]) -> None:
        self.pairs = list(pairs)

    def top(self, n: int, group: str | None = None) -> tuple[Any, Any, Any]:
        top = np.array(self.pairs[:n], dtype=np.uint32).reshape(-1, 2)
        return top[:, 0].copy(), top[:, 1].copy(), np.arange(len(self.pairs), 0, -1)[:n]

    def forget(self, pairs: Candidates) -> None:
        for pair in pairs.tuples:
            self.pairs.remove(pair)


def candidates(pairs: list[Pair], n: int | None = None) -> Candidates:
    vocab = GrowingVocab({token: bytes([97 + token % 26]) * (token % 5 + 1) for token in range(40)})
    source: Any = PairList(pairs)
    return Candidates.best(source, len(pairs) if n is None else n, vocab)


def listed(chosen: Candidates) -> list[Pair]:
    return list(zip(chosen.first.tolist(), chosen.last.tolist(), strict=True))


def lists(tokens: int) -> st.SearchStrategy[list[Pair]]:
    token = st.integers(0, tokens - 1)
    return st.lists(st.tuples(token, token), min_size=1, max_size=40, unique=True)


@given(pairs=st.one_of(lists(4), lists(12), lists(40)))
@pytest.mark.parametrize("name", ["naive", "positional", "continue_search"])
def test_hyp_policies_equal_the_reference(name: str, pairs: list[Pair]) -> None:
    policy: Callable[[Candidates], Candidates] = getattr(policies, name)
    assert listed(policy(candidates(pairs))) == reference.safe_batch(pairs, name)


@given(pairs=lists(12))
def test_hyp_serial_takes_the_best(pairs: list[Pair]) -> None:
    assert listed(policies.serial(candidates(pairs))) == pairs[:1]


@given(pairs=lists(12))
def test_hyp_batches_grow_with_the_stage(pairs: list[Pair]) -> None:
    stages = (policies.serial, policies.naive, policies.positional, policies.continue_search)
    batches = [listed(policy(candidates(pairs))) for policy in stages]
    for smaller, larger in pairwise(batches):
        assert larger[: len(smaller)] == smaller


@given(st.lists(st.text("abcd ", max_size=40) | st.sampled_from(["a" * 16, "b" * 9, "cd"]), min_size=1, max_size=8))
def test_hyp_exact_batches_equal_serial_training(texts: list[str]) -> None:
    counts = ChunkCounts.count(texts=["aab", *texts])
    assert [*train(counts, 280, policy=policies.exact).merges] == [*train(counts, 280, policy="serial").merges]


def test_exact_batches_are_batches() -> None:
    text = "the theory of the theorem, the thesis and the thermometer; ================ whether aaaa or xyz " * 3
    batches: list[Batch] = []
    model = train(text, 300, policy=policies.exact, on_batch=batches.append)
    assert [*model.merges] == [*train(text, 300, policy="serial").merges]
    assert len(batches) < 40


def test_the_papers_example() -> None:
    # "th" and "he" could overlap in "the"; "in" shares nothing.
    t, h, e, i, n = range(5)
    pairs = [(t, h), (h, e), (i, n), (t, e)]
    assert listed(policies.naive(candidates(pairs))) == [(t, h)]
    assert listed(policies.positional(candidates(pairs))) == [(t, h)]
    assert listed(policies.continue_search(candidates(pairs))) == [(t, h), (i, n), (t, e)]
    assert listed(policies.positional(candidates([(t, h), (t, e), (n, h)]))) == [(t, h), (t, e), (n, h)]
    assert listed(policies.naive(candidates([(t, h), (t, e)]))) == [(t, h)]


def test_candidates() -> None:
    pairs = [(1, 2), (3, 4), (5, 5), (0, 9)]
    found = candidates(pairs, 3)
    assert len(found) == 3
    assert listed(found) == pairs[:3]
    assert found.count.tolist() == [4, 3, 2]
    assert found.merged_length.tolist() == [2 + 3, 4 + 5, 1 + 1]
    assert found.merged_bytes == [b"bbccc", b"ddddeeeee", b"ff"]
    assert listed(found[1:]) == pairs[1:3]
    assert listed(found[np.array([2, 0])]) == [(5, 5), (1, 2)]
    assert listed(found[found.count > 2]) == pairs[:2]
    assert found[[2, 0]].count.tolist() == [2, 4]
    assert listed(found.more(4)) == pairs
    assert listed(found.more(1)) == pairs[:1]
    assert len(found[:0]) == 0
    assert found[:0].merged_bytes == []


def test_keep_replaces_vetoed_pairs() -> None:
    pairs = [(1, 2), (3, 4), (5, 5), (0, 9), (1, 9), (2, 9)]
    found = candidates(pairs, 3)
    kept = found.keep(lambda some: some.first % 2 == 0)
    assert listed(kept) == [(0, 9), (2, 9)]
    assert listed(found.more(9)) == [(0, 9), (2, 9)]
    assert len(candidates(pairs, 3).keep(lambda some: np.zeros(len(some), dtype=bool))) == 0
    assert listed(candidates(pairs, 2).keep(lambda some: [True] * len(some))) == pairs[:2]


TEXT = "the theory in the thing; there, in the inn, the thin theme thins then. " * 3


def spell(model: Any) -> set[bytes]:
    return {model.vocab[token] for token in model.merges.values()}


def test_veto_by_bytes() -> None:
    counts = ChunkCounts.count(TEXT)
    asked: list[bytes] = []

    def no_h(some: Candidates) -> np.ndarray:
        asked.extend(some.merged_bytes)
        return np.array([b"h" not in value for value in some.merged_bytes])

    model = train(counts, 290, policy=lambda found: policies.continue_search(found.keep(no_h)))
    assert any(b"h" in value for value in spell(train(counts, 290)))
    assert model.merges
    assert not any(b"h" in value for value in spell(model))
    assert any(b"h" in value for value in asked)


def test_vetoed_pairs_are_replaced() -> None:
    sizes: list[tuple[int, int]] = []

    def policy(found: Candidates) -> Candidates:
        kept = found.keep(lambda some: some.merged_length <= 3)
        sizes.append((len(found), len(kept)))
        return policies.continue_search(kept)

    model = train(ChunkCounts.count(TEXT), 280, policy=policy)
    assert max(map(len, spell(model))) <= 3
    assert sizes[0][0] == sizes[0][1] == 12
    assert max(map(len, spell(train(ChunkCounts.count(TEXT), 280)))) > 3


def test_a_veto_is_permanent() -> None:
    # The table is rescanned for rare pairs when the frequent ones have run out. Vetoed pairs must not come back then.
    counts = ChunkCounts.count({"ab": 1_000_000, "cd": 900_000, "ef": 800_000, "gh": 5, "ij": 3})
    given: list[list[bytes]] = []

    def policy(found: Candidates) -> Candidates:
        if not given:
            found = found.keep(lambda some: some.first != ord("a"))
        given.append(found.merged_bytes)
        return found[:1]

    model = train(counts, 261, policy=policy)
    assert spell(model) == {b"cd", b"ef", b"gh", b"ij"}, given


def test_all_vetoed_ends_training() -> None:
    model = train(
        ChunkCounts.count(TEXT), 300, policy=lambda found: found.keep(lambda some: np.zeros(len(some), dtype=bool))
    )
    assert model.n_vocab == 256
    short = train(
        ChunkCounts.count(TEXT), 900, policy=lambda found: found.keep(lambda some: some.merged_length < 3)[:1]
    )
    assert 256 < short.n_vocab < 900
    assert {len(value) for value in spell(short)} == {2}


def test_own_score() -> None:
    def by_length(found: Candidates) -> Candidates:
        found = found.more(10_000)
        order = np.lexsort((-found.count.astype(np.int64), -found.merged_length))
        return found[order[:1]]

    model = train(ChunkCounts.count("aab aab cd cd cd", r"\S+|\s"), 259, policy=by_length)
    assert [model.vocab[token] for token in model.merges.values()] == [b"cd", b"aa", b"aab"]


def test_candidates_that_a_policy_has_sliced_are_freed() -> None:
    arrays: list[Any] = []
    in_memory = []

    def best(candidates: Candidates) -> Candidates:
        in_memory.append(sum(array() is not None for array in arrays))
        arrays.extend(map(weakref.ref, (candidates.first, candidates.last, candidates.count)))
        return candidates[:1]

    train("to be or not to be, that is the question", 266, policy=best)
    assert len(in_memory) == 10
    assert max(in_memory) <= 3  # those of the batch before


def test_a_policy_may_be_any_callable_object() -> None:
    class Best:
        def __call__(self, found: Candidates) -> Candidates:
            return found[:1]

    counts = ChunkCounts.count(TEXT)
    model = train(counts, 270, policy=Best())
    assert model.merges == train(counts, 270, policy=policies.serial).merges
    assert model.training["policy"] == "Best"


def test_names() -> None:
    assert tuple(policies.PAPER_POLICIES) == get_args(PolicyName)

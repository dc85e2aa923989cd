"""`PairTable`: every number equals a plain computation over lists of tokens, whatever is merged or split."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchbpe import ChunkCounts, Model, PairTable, Tokenizer, reference
from batchbpe.errors import ArgumentError, ArgumentTypeError, DataError
from batchbpe.reference import Chunks, Pair

WORDS = st.dictionaries(st.text("ab ", min_size=1, max_size=9), st.integers(1, 50), max_size=12)


def plain_chunks(counts: ChunkCounts) -> Chunks:
    return [(list(chunk.encode()), count) for chunk, count in counts.items()]


def sorted_pairs(stats: dict[Pair, int]) -> list[tuple[Pair, int]]:
    return sorted(stats.items(), key=lambda item: (-item[1], item[0]))


def listed(top: Any) -> list[tuple[Pair, int]]:
    first, last, count = (each.tolist() for each in top)
    return list(zip(zip(first, last, strict=True), count, strict=True))


def token_counts(chunks: Chunks, size: int) -> list[int]:
    counts: Counter[int] = Counter()
    for tokens, count in chunks:
        for token in tokens:
            counts[token] += count
    return [counts[token] for token in range(size)]


def split_tokens(chunks: Chunks, parts: dict[int, Pair]) -> None:
    for tokens, _ in chunks:
        at = 0
        while at < len(tokens):
            if tokens[at] in parts:
                tokens[at : at + 1] = parts[tokens[at]]
            else:
                at += 1


@given(groups=st.lists(WORDS, min_size=1, max_size=3), overlapping=st.booleans(), data=st.data())
def test_hyp_all_numbers_equal_a_plain_computation(groups: list[dict[str, int]], overlapping: bool, data: Any) -> None:
    counts = {str(number): ChunkCounts.count(words, r"[ab]+| ") for number, words in enumerate(groups)}
    plain = {name: plain_chunks(each) for name, each in counts.items()}
    table = PairTable(counts, overlapping=overlapping, threads=data.draw(st.integers(1, 3)))
    made: dict[int, Pair] = {}
    for _ in range(data.draw(st.integers(0, 6))):
        stats = {name: reference.get_stats(chunks, overlapping) for name, chunks in plain.items()}
        total: Counter[Pair] = Counter()
        for each in stats.values():
            total.update(each)
        pairs = sorted_pairs(total)
        n = data.draw(st.integers(0, 9))
        assert listed(table.top(n)) == pairs[:n]
        for name, each in stats.items():
            assert listed(table.top(n, name)) == sorted_pairs(each)[:n]
        asked = [pair for pair, _ in pairs] + [(98, 98), (0, 1)]
        assert table.count(asked).tolist() == [total[pair] for pair in asked]
        assert table.count_by_group(asked).tolist() == [[stats[name].get(pair, 0) for name in plain] for pair in asked]
        everything = [chunk for chunks in plain.values() for chunk in chunks]
        assert table.token_counts().tolist() == token_counts(everything, table.next_id)
        assert table.lengths.tolist() == [sum(len(tokens) * count for tokens, count in each) for each in plain.values()]
        if made and data.draw(st.booleans()):
            tokens = data.draw(st.lists(st.sampled_from(sorted(made)), unique=True))
            table.split(tokens)
            for chunks in plain.values():
                split_tokens(chunks, {token: made[token] for token in tokens})
        elif pairs:
            pair = data.draw(st.sampled_from([pair for pair, _ in pairs]))
            token = next((token for token, known in made.items() if known == pair), table.next_id)
            tokens_made, merged = table.merge([pair])
            assert tokens_made.tolist() == [token]
            made[token] = pair
            before = token_counts(everything, token + 1)[token]
            for chunks in plain.values():
                reference.merge_batch(chunks, {pair: token})
            assert merged.tolist() == [token_counts(everything, token + 1)[token] - before]


def test_rare_pairs_are_known_although_few_merges_are_expected() -> None:
    words = {"ab": 10**9, "cd": 3}
    table = PairTable(ChunkCounts.count(words), expected_merges=1)
    assert table.top(1)[2].tolist() == [10**9]
    assert table.count([(99, 100), (100, 99)]).tolist() == [3, 0]
    assert table.merge([(99, 100)])[1].tolist() == [3]


def test_absent_pairs_are_merged_on_request() -> None:
    table = PairTable(ChunkCounts.count({"ab": 2}))
    with pytest.raises(ValueError, match=r"the pair \(98, 97\) does not occur in the data"):
        table.merge([(98, 97)])
    tokens, merged = table.merge(np.array([[120, 121], [97, 98]]), absent=True)
    assert (tokens.tolist(), merged.tolist(), table.next_id) == ([256, 257], [0, 2], 258)
    assert table.merge([(257, 256)], absent=True)[1].tolist() == [0]


def test_pairs_can_be_given_in_several_ways() -> None:
    table = PairTable(ChunkCounts.count({"abab": 2}))
    top = table.top(2)
    expected = top[2].tolist()
    for pairs in (top, top[:2], [(97, 98), (98, 97)], ((97, 98), (98, 97)), np.array([[97, 98], [98, 97]])):
        assert table.count(pairs).tolist() == expected
    assert table.count([]).tolist() == []
    table.forget(top)
    assert table.top(9)[0].tolist() == []


def test_a_base_is_applied_first() -> None:
    base = Tokenizer.train("ab ab ab abc", 257).model
    table = PairTable(ChunkCounts.count("abc abab"), base=base)
    assert dict(listed(table.top(9))) == {(32, 256): 1, (256, 99): 1, (256, 256): 1}
    assert table.next_id == 257
    words = Model(split=base.split, merges={}, stop_words={b"abc": 256})
    assert dict(listed(PairTable(ChunkCounts.count("abc ab"), base=words).top(9))) == {(32, 97): 1, (97, 98): 1}


def test_single_tokens_count_as_well() -> None:
    table = PairTable({"one": ChunkCounts.count({"a": 5, "ab": 1}), "two": ChunkCounts.count({"b": 2})})
    assert table.token_counts([97, 98]).tolist() == [6, 3]
    assert table.lengths.tolist() == [7, 2]
    assert table.token_counts([1000]).tolist() == [0]


def test_more_merges_than_expected_can_be_made() -> None:
    table = PairTable(ChunkCounts.count({"abcdefgh": 1}), expected_merges=1)
    for _ in range(7):
        first, last, _ = table.top(1)
        table.merge((first, last))
    assert table.next_id == 263
    assert table.lengths.tolist() == [1]


COUNTS = ChunkCounts.count({"ab": 1})


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: PairTable("ab"), ArgumentTypeError, "counts must be ChunkCounts, or a dict of names"),  # type: ignore[arg-type]
        (lambda: PairTable({}), ArgumentTypeError, "counts must be ChunkCounts, or a dict of names"),
        (lambda: PairTable({"en": "ab"}), ArgumentTypeError, r"counts\['en'\] must be ChunkCounts, got 'ab'"),  # type: ignore[dict-item]
        (
            lambda: PairTable({"en": COUNTS, "de": ChunkCounts.count(["ab"], "gpt2")}),
            ArgumentError,
            r"counts\['de'\] must have the pattern of counts\['en'\], gpt4",
        ),
        (lambda: PairTable(COUNTS, base=Model("a", {})), DataError, "made with the pattern gpt4, but base has"),
        (lambda: PairTable(COUNTS, ties="random"), ArgumentError, "ties must be one of 'ids', 'huggingface'"),  # type: ignore[arg-type]
        (lambda: PairTable(COUNTS, expected_merges=-1), ArgumentError, "expected_merges must be at least 0"),
        (lambda: PairTable(COUNTS).top(-1), ArgumentError, "n must be at least 0, got -1"),
        (lambda: PairTable(COUNTS).top(1, "de"), ArgumentError, "group needs groups, got 'de'; pass a dict of them"),
        (lambda: PairTable(COUNTS).count([1, 2]), ArgumentTypeError, "pairs must be a list of pairs of ids"),
        (lambda: PairTable(COUNTS).count([(1.5, 2)]), ArgumentTypeError, "pairs must be ids"),
        (lambda: PairTable(COUNTS).count([(-1, 2)]), ArgumentError, "pairs must be ids from 0 to"),
        (lambda: PairTable(COUNTS).merge([(97, 300)]), ValueError, r"token 300 in the pair \(97, 300\) does not exist"),
        (lambda: PairTable(COUNTS).split([97]), ValueError, "token 97 cannot be split: no merge in this table made it"),
        (lambda: PairTable(COUNTS).token_counts(["a"]), ArgumentTypeError, "tokens must be ids"),
    ],
)
def test_wrong_arguments(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()

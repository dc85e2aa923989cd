"""Sampled encodings have the distribution that enumerating all outcomes gives, and depend only on the seed."""

import inspect
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from math import sqrt
from typing import Any

import numpy as np
import pytest
from helpers import END, TEXT, examples, texts
from hypothesis import given
from hypothesis import strategies as st

from batchbpe import BatchTokenizer, Model, Tokenizer

Ids = tuple[int, ...]
Merges = dict[tuple[int, int], int]

ENCODE = ["encode", "encode_ordinary", "encode_to_numpy", "encode_batch", "encode_ordinary_batch"]
ENCODE += ["encode_batch_to_numpy"]
TOKENIZER = Tokenizer.train(TEXT, 600, stop_list_size=20, special_tokens=[END])
OPTIONS: list[dict[str, Any]] = [{"dropout": 0.1}, {"dropout": 0.7}, {"dropout": 1.0}, {"sampling": "uniform"}]
SAMPLES = 4000


def after_dropout(ids: Ids, merges: Merges, dropout: float) -> dict[Ids, float]:
    """Return the probability of each encoding, where the pair whose merge comes first is the first to be kept."""
    ranks = {pair: rank for rank, pair in enumerate(merges)}
    places = sorted((ranks[pair], at) for at, pair in enumerate(pairwise(ids)) if pair in ranks)
    outcomes: Counter[Ids] = Counter({ids: dropout ** len(places)})  # type: ignore[dict-item]
    for skipped, (_, at) in enumerate(places):
        merged = (*ids[:at], merges[ids[at], ids[at + 1]], *ids[at + 2 :])
        for outcome, probability in after_dropout(merged, merges, dropout).items():
            outcomes[outcome] += dropout**skipped * (1 - dropout) * probability  # type: ignore[assignment]
    return dict(outcomes)


def segmentations(chunk: bytes, tokens: dict[bytes, int]) -> Iterator[Ids]:
    if not chunk:
        yield ()
    for end in range(1, len(chunk) + 1):
        if chunk[:end] in tokens:
            yield from ((tokens[chunk[:end]], *rest) for rest in segmentations(chunk[end:], tokens))


def visible(ids: Ids, model: Model) -> Ids:
    """Replace hidden tokens by their parts."""
    pairs = {token: pair for pair, token in model.merges.items()}
    while not model.hidden.isdisjoint(ids):
        ids = tuple(part for token in ids for part in (pairs[token] if token in model.hidden else [token]))
    return ids


def expected(model: Model, chunk: str, dropout: float | None) -> dict[Ids, float]:
    """Return the probability of each encoding of a chunk."""
    stop_word = model.stop_words.get(chunk.encode())
    if dropout is None:
        tokens: dict[bytes, int] = {}
        for token in [*model.byte_ids, *model.merges.values()]:
            if token is not None and token not in model.hidden:
                tokens.setdefault(model.vocab[token], token)
        whole = {chunk.encode(): (stop_word,)} if stop_word is not None else {}
        found = {b" ".join(map(model.vocab.__getitem__, ids)): ids for ids in segmentations(chunk.encode(), tokens)}
        return dict.fromkeys({**found, **whole}.values(), 1 / len({**found, **whole}))
    ids = tuple(token for byte in chunk.encode() if (token := model.byte_ids[byte]) is not None)
    outcomes: Counter[Ids] = Counter()
    for merged, probability in after_dropout(ids, dict(model.merges), dropout).items():
        outcomes[visible(merged, model)] += probability  # type: ignore[assignment]
    if stop_word is None:
        return outcomes
    return {(stop_word,): 1 - dropout} | {ids: dropout * probability for ids, probability in outcomes.items()}


def check_distribution(sampled: Counter[Ids], probabilities: dict[Ids, float]) -> None:
    """Check Pearson's statistic, whose mean is the number of outcomes less one."""
    assert abs(sum(probabilities.values()) - 1) < 1e-9
    assert sampled.keys() <= {ids for ids, probability in probabilities.items() if probability}
    cells: dict[Ids | None, list[float]] = {}  # [found, expected]; rare encodings share a cell
    for ids, probability in probabilities.items():
        count = probability * sampled.total()
        cell = cells.setdefault(ids if count > 5 else None, [0, 0])
        cell[0] += sampled[ids]
        cell[1] += count
    statistic = sum((found - count) ** 2 / max(count, 1) for found, count in cells.values())
    assert statistic < len(cells) + 5 * sqrt(2 * len(cells)) + 5


AB = {(97, 98): 256, (98, 97): 257, (256, 97): 258, (97, 97): 259, (259, 257): 260, (256, 256): 261}
SAME = {(97, 98): 256, (98, 97): 257, (256, 97): 258, (97, 257): 259}  # 258 and 259 are both "aba"
LATE = {(256, 97): 257, (97, 98): 256, (97, 97): 258}  # uses a token that a later merge makes
MODELS = {
    "merges": Model(split=r"\w+|\s+", merges=AB),
    "same bytes": Model(split=r"\w+|\s+", merges=SAME),
    "late": Model(split=r"\w+|\s+", merges=LATE),
    "hidden": Model(split=r"\w+|\s+", merges=AB, stop_words={b"aab": 301}, hidden={256, 259}),
    "stop word": Model(split=r"\w+|\s+", merges=AB, stop_words={b"ababa": 300, b"aab": 301}),
    "stop word and merge": Model(split=r"\w+|\s+", merges=AB, stop_words={b"abab": 300, b"aa": 301}),
}


@pytest.mark.parametrize("dropout", [0.1, 0.5, 0.9, None])
@pytest.mark.parametrize("name", MODELS)
def test_encodings_have_their_probabilities(name: str, dropout: float | None) -> None:
    tokenizer = Tokenizer(MODELS[name])
    how: dict[str, Any] = {"sampling": "uniform"} if dropout is None else {"dropout": dropout}
    for chunk in ("a", "aa", "aab", "abab", "ababa", "aaaba", "aababaab"):
        by_text = Counter(map(tuple, tokenizer.encode_batch([chunk] * SAMPLES, seed=7, **how)))
        check_distribution(by_text, expected(tokenizer.model, chunk, dropout))
        by_seed = Counter(tuple(tokenizer.encode(chunk, seed=seed, **how)) for seed in range(SAMPLES))
        check_distribution(by_seed, expected(tokenizer.model, chunk, dropout))
    text = " ".join(["aaaba"] * SAMPLES)
    ids, size = [token for token in tokenizer.encode(text, seed=1, **how) if token != 32], 0
    by_position: Counter[Ids] = Counter()
    for end in range(1, len(ids) + 1):
        if sum(len(tokenizer.vocab[token]) for token in ids[size:end]) == 5:
            by_position[tuple(ids[size:end])] += 1
            size = end
    assert by_position.total() == SAMPLES
    check_distribution(by_position, expected(tokenizer.model, "aaaba", dropout))


def test_neighbors_are_independent() -> None:
    """Neighboring texts and seeds: the four outcomes of two of them are equally frequent."""
    tokenizer = Tokenizer(Model(split=r"\w", merges={(0xC3, 0xA9): 256}))  # "é" is one token or two bytes
    drawn = [
        tokenizer.encode_batch(["é"] * SAMPLES, dropout=0.5, seed=3),
        [tokenizer.encode("é", dropout=0.5, seed=seed) for seed in range(SAMPLES)],
        [tokenizer.encode_batch(["", "é"], dropout=0.5, seed=seed)[1] for seed in range(SAMPLES)],
    ]
    for encoded in drawn:
        both = Counter(pairwise(map(len, encoded)))
        assert len(both) == 4 and all(abs(count - SAMPLES / 4) < 5 * sqrt(SAMPLES / 4) for count in both.values())


def test_no_seed_repeats_the_numbers_of_another() -> None:
    drawn = [TOKENIZER.encode_batch([TEXT] * 8, dropout=0.5, seed=seed) for seed in range(8)]
    assert len({tuple(ids) for batch in drawn for ids in batch}) == 64


@examples(200)
@given(text=texts, seed=st.integers(0, 2**64 - 1), how=st.sampled_from(OPTIONS))
def test_hyp_decoding_restores_the_text(text: str, seed: int, how: dict[str, Any]) -> None:
    assert TOKENIZER.decode(TOKENIZER.encode_ordinary(text, seed=seed, **how)) == text


@given(text=texts, seed=st.integers(0, 2**64 - 1))
def test_hyp_no_dropout_is_the_ordinary_encoding_and_full_dropout_the_bytes(text: str, seed: int) -> None:
    assert TOKENIZER.encode(text, dropout=0, seed=seed) == TOKENIZER.encode(text)
    assert TOKENIZER.encode(text, dropout=1, seed=seed) == [*text.encode()]
    almost = TOKENIZER.encode(text, dropout=1e-300, seed=seed)  # computed by the code for dropout
    assert almost == TOKENIZER.encode(text)


@given(batch=st.lists(texts, max_size=8), seed=st.integers(0, 2**64 - 1), how=st.sampled_from(OPTIONS))
def test_hyp_all_methods_agree(batch: list[str], seed: int, how: dict[str, Any]) -> None:
    encoded = TOKENIZER.encode_batch(batch, "all", seed=seed, **how)
    for threads in (1, 2, 5):
        ids, offsets = TOKENIZER.encode_batch_to_numpy(batch, "all", seed=seed, threads=threads, **how)
        assert [part.tolist() for part in np.split(ids, offsets[1:-1])] == encoded or not batch
        assert len(offsets) == len(batch) + 1
    for text in batch:
        alone = TOKENIZER.encode(text, "all", seed=seed, **how)
        assert [alone] == TOKENIZER.encode_batch([text], "all", seed=seed, **how)
        assert alone == TOKENIZER.encode_to_numpy(text, "all", seed=seed, **how).tolist()
        ordinary = TOKENIZER.encode_ordinary(text, seed=seed, **how)
        assert [ordinary] == TOKENIZER.encode_ordinary_batch([text], seed=seed, **how)


@pytest.mark.parametrize("how", OPTIONS, ids=str)
def test_long_texts_do_not_depend_on_threads(how: dict[str, Any]) -> None:
    text = f"{TEXT}\n{END}naïve e\u0301\n" * (1_500_000 // len(TEXT))
    split = replace(TOKENIZER.model.split, normalization="NFC")
    for tokenizer in (TOKENIZER, Tokenizer(replace(TOKENIZER.model, split=split))):
        ids = tokenizer.encode_to_numpy(text, "all", threads=1, seed=5, **how)
        assert tokenizer.decode(ids) == (text if tokenizer is TOKENIZER else text.replace("e\u0301", "é"))
        for threads in (2, 5):
            assert np.array_equal(ids, tokenizer.encode_to_numpy(text, "all", threads=threads, seed=5, **how))


def test_special_and_added_tokens_are_found_and_phrases_are_not_applied() -> None:
    merges = {(97, 98): 256, (32, 256): 257}
    model = Model(
        split=r" ?\w+",
        merges=merges,
        phrases={(256, 257): 258},
        special_tokens={END: 259},
        added_tokens={"ababab": 260},
    )
    tokenizer = Tokenizer(model)
    text = f"ab ab{END}ababab"
    assert tokenizer.encode(text, "all") == [258, 259, 260] == tokenizer.encode(text, "all", dropout=0, seed=1)
    assert tokenizer.encode(text, "all", dropout=1e-300, seed=1) == [256, 257, 259, 260]
    assert tokenizer.encode(text, "all", dropout=1, seed=1) == [*b"ab ab", 259, 260]
    encoded = {tuple(tokenizer.encode(text, "all", sampling="uniform", seed=seed)) for seed in range(200)}
    assert encoded == {(*a, *b, 259, 260) for a in ((97, 98), (256,)) for b in ((32, 97, 98), (32, 256), (257,))}
    with pytest.raises(ValueError, match="allowed_special"):
        tokenizer.encode(text, dropout=0.5, seed=1)


def test_missing_bytes_are_left_out() -> None:
    byte_ids = [None if byte == 98 else byte for byte in range(256)]
    model = Model(split=r"\w+|\s+", merges={(97, 97): 256}, byte_ids=byte_ids, stop_words={b"ab": 300, b"aa": 301})
    tokenizer = Tokenizer(model)
    with pytest.warns(UserWarning, match="lacks"):
        assert tokenizer.encode("abab", dropout=1, seed=0) == [97, 97]
    for how in ({"dropout": 0.5}, {"sampling": "uniform"}):
        encoded = [tokenizer.encode_batch(["aba", "ab", "aa"], seed=seed, **how) for seed in range(200)]
        # "aba" is "aa" without "b", but not the stop word; "ab" would lose a byte if it were not the stop word.
        merged = {(97, 97), (256,)}
        whole = {(301,), (97, 97)} | ({(256,)} if "dropout" in how else set())
        assert [set(map(tuple, each)) for each in zip(*encoded, strict=True)] == [merged, {(300,)}, whole]
        assert tokenizer.encode("bbb", seed=0, **how) == []


@pytest.mark.parametrize("dropout", [0.1, 0.5, 0.99])
def test_long_chunks(dropout: float) -> None:
    merges = {(97, 97): 256} | {(token, token): token + 1 for token in range(256, 264)}
    tokenizer = Tokenizer(Model(split=r"\w+|\s+", merges=merges))
    text = "a" * 100_000
    assert tokenizer.decode(tokenizer.encode(text, dropout=dropout, seed=1)) == text
    assert tokenizer.decode(tokenizer.encode(text, sampling="uniform", seed=1)) == text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dropout": -0.1, "seed": 1}, "dropout must be between 0 and 1, got -0.1"),
        ({"dropout": 1.5, "seed": 1}, "dropout must be between 0 and 1, got 1.5"),
        ({"dropout": float("nan"), "seed": 1}, "dropout must be between 0 and 1, got nan"),
        ({"dropout": "0.1", "seed": 1}, "dropout must be a number, got '0.1'"),
        ({"dropout": True, "seed": 1}, "dropout must be a number, got True"),
        (
            {"dropout": 0.1, "sampling": "uniform", "seed": 1},
            "sampling must be omitted if dropout is given, got 'uniform'",
        ),
        ({"sampling": "unigram", "seed": 1}, "sampling must be 'uniform', got 'unigram'; use dropout to drop merges"),
        (
            {"sampling": ["uniform"], "seed": 1},
            "sampling must be 'uniform', got ['uniform']; use dropout to drop merges",
        ),
        (
            {"dropout": 0.1},
            "seed must be given to sample an encoding, got None; pass seed=0, and another seed for another sample",
        ),
        (
            {"dropout": 0},
            "seed must be given to sample an encoding, got None; pass seed=0, and another seed for another sample",
        ),
        ({"dropout": 0.1, "seed": -1}, "seed must be at least 0, got -1"),
        ({"dropout": 0.1, "seed": 2**64}, f"seed must be at most {2**64 - 1}, got {2**64}"),
        ({"dropout": 0.1, "seed": 1.0}, "seed must be an integer, got 1.0"),
        ({"seed": 1}, "seed must be omitted unless dropout or sampling is given, got 1"),
    ],
)
@pytest.mark.parametrize("method", ENCODE)
def test_errors(method: str, options: dict[str, Any], message: str) -> None:
    text = ["to be"] if "batch" in method else "to be"
    with pytest.raises((TypeError, ValueError)) as error:
        getattr(TOKENIZER, method)(text, **options)
    assert str(error.value) == message


def test_every_method_has_the_same_options() -> None:
    names = ("dropout", "sampling", "seed")
    options = [[inspect.signature(getattr(Tokenizer, method)).parameters[name] for name in names] for method in ENCODE]
    assert all(each == options[0] for each in options)


def test_surrogates_numpy_numbers_and_the_classes_of_the_paper() -> None:
    for how in OPTIONS:
        assert TOKENIZER.encode("\ud83d\ude00 be", seed=1, **how) == TOKENIZER.encode("😀 be", seed=np.uint64(1), **how)
    assert TOKENIZER.encode(TEXT, dropout=np.float32(0.5), seed=1) == TOKENIZER.encode(TEXT, dropout=0.5, seed=1)
    tokenizer = BatchTokenizer()
    assert tokenizer.encode("é", sampling="uniform", seed=1) == [0xC3, 0xA9]


def test_a_batch_is_not_sampled_if_encode_is_overridden() -> None:
    class Upper(Tokenizer):
        def encode(self, text: str, *args: Any, **options: Any) -> list[int]:
            return super().encode(text.upper(), *args, **options)

    tokenizer = Upper(TOKENIZER.model)
    assert tokenizer.encode_batch(["a"]) == [[65]] == [tokenizer.encode("a", dropout=0.5, seed=1)]
    with pytest.raises(ValueError, match="seed must be omitted if Upper overrides encode, got 1"):
        tokenizer.encode_batch(["a"], dropout=0.5, seed=1)

"""The example policies `characters` and `scores` choose the same pairs as a plain implementation of the same idea."""

import math
import re
import runpy
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import examples, texts
from hypothesis import given
from hypothesis import strategies as st

from batchbpe import ChunkCounts, Model, Tokenizer, train
from batchbpe.analysis.auditing import audit

EXAMPLES = Path(__file__).parent.parent / "examples" / "policies"
characters, scores = (
    SimpleNamespace(**runpy.run_path(str(EXAMPLES / f"{name}.py"))) for name in ("characters", "scores")
)
TEXT = (
    "The walkers walked 123 miles, walking slowly; the talkers talked 199 times, talking quickly and kindly. aaaaaaa\n"
    "Größere Übergänge, größere Öfen. Привет, мир! Приветствие. これは本です。"
    "それは本ではありません。 😀😃 語る言語。한국어 한글\n"
)
CHUNKS = dict(ChunkCounts.count([TEXT * 3, TEXT[:112] * 2]))

Pair = tuple[int, int]
Statistics = tuple[Counter[Pair], Counter[int], list[bytes]]
Bytes = tuple[bytes, bytes]


def plain_bpe(
    chunks: Mapping[str, int],
    vocab_size: int,
    *,
    max_batch_size: int = 0,
    score: Callable[[Pair, Statistics], float] = lambda pair, statistics: statistics[0][pair],
    min_count: int = 1,
    is_allowed: Callable[[bytes, bytes], bool] = lambda first, last: True,
    is_hidden: Callable[[bytes], bool] = lambda token: False,
) -> tuple[list[Bytes], list[bytes]]:
    """Count all pairs for each batch, and choose as Listing 1 of the paper does. Return pairs and hidden tokens."""
    words = [(list(chunk.encode()), count) for chunk, count in chunks.items()]
    tokens, merges = [bytes([byte]) for byte in range(256)], list[Pair]()
    while (remaining := vocab_size - sum(not is_hidden(token) for token in tokens)) > 0:
        counts, occurrences = Counter[Pair](), Counter[int]()
        for word, count in words:
            previous = None
            for pair in pairwise(word):
                counts[pair] += count * (pair != previous)  # aaa contains aa once
                previous = pair if pair != previous else None
            for token in word:
                occurrences[token] += count
        least = min(min_count, max(counts.values(), default=0))
        pairs = [pair for pair, n in counts.items() if n >= least and is_allowed(tokens[pair[0]], tokens[pair[1]])]
        if not pairs:
            break
        statistics = counts, occurrences, tokens
        pairs.sort(key=lambda pair: (-score(pair, statistics), -counts[pair], pair))
        searched = min(remaining // 2, len(tokens), max_batch_size or remaining) or 1
        batch, firsts, lasts = dict[Pair, int](), set[int](), set[int]()
        for first, last in pairs[:searched]:
            if first not in lasts and last not in firsts:
                batch[first, last] = len(tokens)
                tokens.append(tokens[first] + tokens[last])
            firsts.add(first)
            lasts.add(last)
        merges += batch
        words = [(merged(word, batch), count) for word, count in words]
    return [(tokens[first], tokens[last]) for first, last in merges], [each for each in tokens if is_hidden(each)]


def merged(word: list[int], batch: dict[Pair, int]) -> list[int]:
    result: list[int] = []
    position = 0
    while position < len(word):
        token = batch.get((*word[position : position + 2],))  # type: ignore[arg-type]
        result.append(word[position] if token is None else token)
        position += 1 if token is None else 2
    return result


def merges_of(model: Model) -> tuple[list[Bytes], list[bytes]]:
    vocab = model.vocab_with_hidden
    return [(vocab[first], vocab[last]) for first, last in model.merges], [vocab[each] for each in sorted(model.hidden)]


def is_whole(token: bytes) -> bool:
    return token.decode(errors="ignore").encode() == token


def beginnings(text: str) -> set[bytes]:
    """Return every beginning of every character that is not the whole character."""
    return {c.encode()[:size] for c in text for size in range(1, len(c.encode()))}


def keeps_characters(text: str) -> Callable[[bytes, bytes], bool]:
    parts = beginnings(text)

    def is_allowed(first: bytes, last: bytes) -> bool:
        if is_whole(first) and is_whole(last):
            return True
        return first in parts and (first + last in parts or (is_whole(first + last) and not is_whole(last)))

    return is_allowed


@pytest.mark.parametrize("hide", [False, True])
@pytest.mark.parametrize("max_batch_size", [0, 1])
def test_characters_stay_whole(hide: bool, max_batch_size: int) -> None:
    policy = characters.CharacterIntegrity(hide=hide)
    model = train(texts=[TEXT * 3, TEXT[:112] * 2], vocab_size=370, policy=policy, max_batch_size=max_batch_size)
    parts = {each for each in beginnings(TEXT) if len(each) > 1}
    expected = plain_bpe(
        CHUNKS,
        370,
        max_batch_size=max_batch_size,
        is_allowed=keeps_characters(TEXT),
        is_hidden=lambda token: hide and token in parts,
    )
    assert merges_of(model) == expected
    assert model.vocab_size == 370
    tokenizer = Tokenizer(model)
    partial = [tokenizer.vocab[token] for token in audit(tokenizer).partial_utf8]
    assert {*partial} <= parts
    assert bool(partial) != hide
    assert tokenizer.decode(tokenizer.encode(TEXT)) == TEXT


@given(st.lists(texts, min_size=1, max_size=4), st.booleans(), st.integers(0, 1))
@examples(50)
def test_hyp_characters_stay_whole(some: list[str], hide: bool, max_batch_size: int) -> None:
    policy = characters.CharacterIntegrity(hide=hide)
    counts = ChunkCounts.count(texts=[*some, "to be"])
    model = train(counts, 290, policy=policy, max_batch_size=max_batch_size)
    text = "".join(some)
    parts = {each for each in beginnings(text) if len(each) > 1}
    expected = plain_bpe(
        dict(counts),
        290,
        max_batch_size=max_batch_size,
        is_allowed=keeps_characters(text),
        is_hidden=lambda token: hide and token in parts,
    )
    assert merges_of(model) == expected


def test_characters_stay_whole_when_a_vocabulary_is_extended() -> None:
    whole = train(texts=[TEXT], vocab_size=300, policy=characters.CharacterIntegrity())
    at_once = train(texts=[TEXT], vocab_size=360, policy=characters.CharacterIntegrity(), max_batch_size=1)
    extended = train(texts=[TEXT], vocab_size=360, policy=characters.CharacterIntegrity(), base=whole)
    assert {*extended.vocab.values()} & beginnings(TEXT) == {*at_once.vocab.values()} & beginnings(TEXT)


def test_tokens_of_a_base_that_break_characters_are_not_extended() -> None:
    # The last byte of "あ" and the first of the next one; "a" and the first byte of "é".
    base = Model(Tokenizer.train(TEXT, 256).pattern, {(0x82, 0xE3): 256, (0x61, 0xC3): 257}, {})
    text = "ああああ、ああああ、いあ aaé" * 3
    model = train(texts=[text], vocab_size=268, base=base, policy=characters.CharacterIntegrity())
    new = [model.vocab[token] for token in model.merges.values() if token > 257]
    assert "あ".encode() in new
    assert {each for each in new if not is_whole(each)} <= beginnings(text)


def count_times_length(pair: Pair, statistics: Statistics) -> float:
    counts, _, tokens = statistics
    return counts[pair] * len(tokens[pair[0]] + tokens[pair[1]])


def mutual_information(pair: Pair, statistics: Statistics) -> float:
    counts, occurrences, _ = statistics
    return counts[pair] / occurrences[pair[0]] * sum(occurrences.values()) / occurrences[pair[1]]


def entropy_of_neighbors(pair: Pair, statistics: Statistics) -> float:
    counts, _, _ = statistics

    def entropy(side: int) -> float:
        neighbors = [n for each, n in counts.items() if each[side] == pair[side]]
        return -sum(n / sum(neighbors) * math.log2(n / sum(neighbors)) for n in neighbors)

    return round(counts[pair] / (1 + min(entropy(0), entropy(1))), 6)


@pytest.mark.parametrize("max_batch_size", [0, 1])
@pytest.mark.parametrize(
    ("score", "min_count"),
    [(count_times_length, 1), (mutual_information, 4), (mutual_information, 1), (entropy_of_neighbors, 1)],
)
def test_scores(score: Callable[[Pair, Statistics], float], min_count: int, max_batch_size: int) -> None:
    policy = scores.ranked(getattr(scores, score.__name__), min_count=min_count)
    model = train(texts=[TEXT * 3, TEXT[:112] * 2], vocab_size=330, policy=policy, max_batch_size=max_batch_size)
    expected = plain_bpe(CHUNKS, 330, max_batch_size=max_batch_size, score=score, min_count=min_count)
    assert merges_of(model) == expected
    assert expected != plain_bpe(CHUNKS, 330, max_batch_size=max_batch_size)


def has_no_digit(first: bytes, last: bytes) -> bool:
    return not any(48 <= byte < 58 for byte in first + last)


def has_no_suffix(first: bytes, last: bytes) -> bool:
    suffixes = [b"ing", b"ed", b"er", b"ly", b"ness", b"ment", b"able", b"s"]
    stems = [(first + last).removesuffix(suffix) for suffix in suffixes]
    return not any(stem != first + last and re.fullmatch(b"[a-z]{3}", stem[-3:]) for stem in stems)


@pytest.mark.parametrize("max_batch_size", [0, 1])
@pytest.mark.parametrize(
    ("policy", "is_allowed"),
    [(scores.digits_apart, has_no_digit), (scores.within(scores.suffixes), has_no_suffix)],
    ids=["digits", "suffixes"],
)
def test_vetoes(policy: Any, is_allowed: Callable[[bytes, bytes], bool], max_batch_size: int) -> None:
    model = train(texts=[TEXT * 3, TEXT[:112] * 2], vocab_size=330, policy=policy, max_batch_size=max_batch_size)
    assert merges_of(model) == plain_bpe(CHUNKS, 330, max_batch_size=max_batch_size, is_allowed=is_allowed)
    assert merges_of(model) != plain_bpe(CHUNKS, 330, max_batch_size=max_batch_size)


def test_suffixes() -> None:
    found = {
        token: scores.suffixes(token) for token in (b" walking", b"walked", b"kindly", b"used", b"king", b" s", b"s")
    }
    assert found == {b" walking": [5], b"walked": [4], b"kindly": [4], b"used": [], b"king": [], b" s": [], b"s": []}


def test_the_experiments_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = str(tmp_path / "data.parquet")
    pq.write_table(pa.table({"text": [TEXT] * 20, "language": ["en", "ja"] * 10}), data)
    monkeypatch.setattr(sys, "argv", ["characters.py", data, "--vocab-size", "330"])
    characters.main()
    assert "hidden steps: 0 partial UTF-8" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["scores.py", data, "--vocab-size", "330"])
    scores.main()
    assert len(capsys.readouterr().out.splitlines()) == 6

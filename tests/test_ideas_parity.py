"""examples/policies/parity.py against parity-aware BPE in plain Python, one merge at a time."""

import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import examples
from hypothesis import given
from hypothesis import strategies as st

from batchbpe import ChunkCounts, train

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "policies"))
import parity  # type: ignore[import-not-found]
import parity_or_mixture  # type: ignore[import-not-found]
from parity import Parity

SENTENCES = {
    "en": "all human beings are born free and equal in dignity and rights; they are endowed with reason. ",
    "de": "alle Menschen sind frei und gleich an Würde und Rechten geboren; sie sind mit Vernunft begabt. ",
    "ru": "все люди рождаются свободными и равными в своем достоинстве и правах; они наделены разумом. ",
    "el": "όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα. ",
    "ja": "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。",
    "fi": "kaikki ihmiset syntyvät vapaina ja tasavertaisina arvoltaan ja oikeuksiltaan; ============== ",
}
TRAINING = {name: [text[i:] for i in range(9 * (1 + nth))] for nth, (name, text) in enumerate(SENTENCES.items())}
DEV = {name: [text, text[::-1]] for name, text in SENTENCES.items()}


Words = dict[tuple[int, ...], int]


def words_of(texts: list[str]) -> Words:
    return {tuple(chunk.encode()): count for chunk, count in ChunkCounts.count(texts=texts).items()}


def merged(word: tuple[int, ...], pair: tuple[int, int], token: int) -> tuple[int, ...]:
    new: list[int] = []
    for each in word:
        if new and (new[-1], each) == pair:
            new[-1] = token
        else:
            new.append(each)
    return tuple(new)


def apply(words: Words, pair: tuple[int, int], token: int) -> Words:
    new: Words = Counter()
    for word, count in words.items():
        new[merged(word, pair, token)] += count
    return new


def length(words: Words) -> int:
    return sum(len(word) * count for word, count in words.items())


def pair_counts(words: Words) -> Counter[tuple[int, int]]:
    counts: Counter[tuple[int, int]] = Counter()
    for word, count in words.items():
        for pair in set(pairwise(word)):
            counts[pair] += count * (len(word) - len(merged(word, pair, -1)))
    return counts


def reference(
    training: dict[str, list[str]],
    dev: dict[str, list[str]],
    merges: int,
    *,
    ratio: dict[str, float] | None = None,
    hybrid: int = 0,
    window: int = 0,
    alpha: float = 2,
) -> list[tuple[int, int]]:
    """Parity-aware BPE as published. With a ratio, `dev` is the training data."""
    words, dev_words = ({name: words_of(texts) for name, texts in each.items()} for each in (training, dev))
    initial = {name: length(each) for name, each in dev_words.items()}
    chosen: list[str] = []
    made: list[tuple[int, int]] = []
    while len(made) < merges:
        counts = {name: pair_counts(each) for name, each in words.items()}
        if not any(counts.values()):
            break
        allowed = [name for name in dev if counts[name]]
        if window:
            allowed = [n for n in allowed if chosen[-window:].count(n) / window <= alpha / len(words)] or allowed
        now = {name: length(dev_words[name]) for name in allowed}
        if len(made) < hybrid:
            best = sum(counts.values(), Counter[tuple[int, int]]())
        else:
            if ratio:
                chosen.append(min(allowed, key=lambda name: initial[name] / now[name] / ratio[name]))
            else:
                chosen.append(max(allowed, key=now.__getitem__))
            best = counts[chosen[-1]]
        pair = min(best, key=lambda pair: (-best[pair], pair))
        words, dev_words = (
            {name: apply(old, pair, 256 + len(made)) for name, old in each.items()} for each in (words, dev_words)
        )
        made.append(pair)
    return made


def trained(
    training: dict[str, list[str]], dev: dict[str, list[str]], merges: int, **options: Any
) -> list[tuple[int, int]]:
    groups, dev_counts = (
        {name: ChunkCounts.count(texts=texts) for name, texts in each.items()} for each in (training, dev)
    )
    if ratio := options.pop("ratio", None):
        options["units"] = {name: counts.total_bytes / ratio[name] for name, counts in dev_counts.items()}
    return [*train(groups=groups, vocab_size=256 + merges, policy=Parity(dev_counts, **options)).merges]


RATIO = {"en": 1.0, "de": 1.1, "ru": 1.7, "el": 1.6, "ja": 2.5, "fi": 1.0}
VARIANTS: dict[str, dict[str, Any]] = {
    "base": {},
    "hybrid": {"hybrid": 70},
    "window": {"window": 20},
    "narrow window": {"window": 7, "alpha": 1},
    "hybrid window": {"hybrid": 33, "window": 20, "alpha": 1.5},
    "ratio": {"ratio": RATIO},
    "ratio of 1": {"ratio": dict.fromkeys(RATIO, 1.0)},
    "ratio window": {"ratio": RATIO, "window": 20},
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_batches_give_the_merges_of_one_at_a_time(variant: str) -> None:
    options = VARIANTS[variant]
    dev = TRAINING if "ratio" in options else DEV
    expected = reference(TRAINING, dev, 250, **options)
    assert trained(TRAINING, dev, 250, **options) == expected
    assert len(expected) == 250


def test_variants_differ() -> None:
    results = [trained(TRAINING, DEV, 250, **VARIANTS[name]) for name in ("base", "hybrid", "window", "ratio")]
    assert all(one != other for one in results for other in results if one is not other)


def test_a_language_without_pairs_is_skipped() -> None:
    training = {"long": ["abcdefgh " * 9], "short": ["xy"], "empty": ["z"]}
    dev = {"long": ["ab"], "short": ["xyxyxyxyxy"], "empty": ["zzzzzzzz"]}
    merges = trained(training, dev, 9)
    assert merges == reference(training, dev, 9)
    assert merges[0] == tuple(b"xy")
    assert len(merges) > 5


texts = st.lists(st.text("abcd ", max_size=25) | st.sampled_from(["a" * 16, "b" * 9, "cd"]), max_size=5)
two_groups = st.fixed_dictionaries({"x": texts, "y": texts})


@examples(150)
@given(two_groups, two_groups, st.sampled_from([{}, {"hybrid": 3}, {"window": 3, "alpha": 1}]))
def test_hyp_batches_give_the_merges_of_one_at_a_time(
    training: dict[str, list[str]], dev: dict[str, list[str]], options: dict[str, Any]
) -> None:
    training = {name: ["aab", *some] for name, some in training.items()}
    dev = {name: ["b", *some] for name, some in dev.items()}
    assert trained(training, dev, 12, **options) == reference(training, dev, 12, **options)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rows = [{"language": name, "text": text} for name, texts in TRAINING.items() for text in texts]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "data.parquet")
    return tmp_path / "data.parquet"


def run(example: Any, monkeypatch: pytest.MonkeyPatch, *arguments: object) -> None:
    monkeypatch.setattr(sys, "argv", ["example", *map(str, arguments)])
    example.main()


def test_parity_makes_languages_more_equal(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(parity, monkeypatch, data, "--vocab-size", 500)
    ginis = {line.split()[0]: float(line.split()[2]) for line in capsys.readouterr().out.splitlines()}
    assert [*ginis] == ["plain", "base", "hybrid", "window"]
    assert ginis["base"] < ginis["plain"] / 2


def test_parity_and_mixtures_are_compared(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(parity_or_mixture, monkeypatch, data, "en", "ru", "ja", "--vocab-size", 400, "--seeds", 2)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines[:-1]] == [
        [seed, name] for seed in "01" for name in ("plain", "parity", "mixture")
    ]
    assert lines[-1].startswith("tokens of the mixture: ")


def test_the_examples_need_no_data(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    run(parity, monkeypatch, "--vocab-size", 512)
    assert len(capsys.readouterr().out.splitlines()) == 4

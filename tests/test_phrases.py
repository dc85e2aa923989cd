"""Phrases: the core equals the reference in counting runs, training and encoding."""

import itertools
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import regex
from helpers import examples, multilingual, reference_of, texts
from hypothesis import given
from hypothesis import strategies as st

from batchbpe import PATTERNS, Model, Tokenizer, train
from batchbpe.boundaries import boundaries_of
from batchbpe.data.corpus import Corpus
from batchbpe.errors import DataError
from batchbpe.phrases.counting import EligibleChunks, RunReader
from batchbpe.phrases.learning import train_phrases
from batchbpe.phrases.options import KINDS
from batchbpe.phrases.runs import RunCounts
from batchbpe.phrases.training import least_count
from batchbpe.policies import Candidates, continue_search
from batchbpe.reference import phrases as reference

pytestmark = pytest.mark.filterwarnings("ignore:the pattern")  # one of the patterns does not match everything
PHRASED_PATTERNS = ["gpt2", "gpt4", "o200k", r" ?\p{L}+"]
WORDS = [" the", " of", " a", "to", " be", "'s", ",", ".", " (", ")", " 1", "\n", "\r\n", "  ", "x", " é", "語"]

phrased_texts = st.lists(st.one_of(st.sampled_from(WORDS), texts), max_size=40).map("".join)


@pytest.fixture(scope="module")
def book(library: list[str]) -> list[str]:
    """Documents of real text."""
    return library[:60]


@pytest.fixture(scope="module", params=PHRASED_PATTERNS)
def model(request: pytest.FixtureRequest, book: list[str]) -> Model:
    data = [*book, multilingual(20_000), "".join(WORDS * 50)]
    return train(data, 2000, pattern=request.param, stop_list_size=20, special_tokens=["<s>"])


def tokens_of(model: Model, text: str) -> list[list[int]]:
    return reference.split_into_tokens(text, model.pattern, *reference_of(model))


def is_eligible(model: Model, kind: str) -> Callable[[int], bool]:
    pattern = regex.compile(KINDS[kind])

    def check(token: int) -> bool:
        return b"\n" not in model.vocab[token] and bool(pattern.fullmatch(model.vocab[token].decode(errors="replace")))

    return check


def reference_runs(model: Model, documents: list[str], kind: str) -> Counter[tuple[int, ...]]:
    found = reference.find_runs([tokens_of(model, text) for text in documents], is_eligible(model, kind))
    return Counter(map(tuple, found))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("threads", [1, 3])
def test_runs_of_real_text(model: Model, book: list[str], kind: str, threads: int) -> None:
    documents = book[:8]
    found = RunCounts.count(documents, model, phrase_chunks=kind, threads=threads)
    assert dict(found) == reference_runs(model, documents, kind)
    assert found == RunCounts.count(documents[::-1], model, phrase_chunks=kind)
    assert found == sum(RunCounts.count([text], model, phrase_chunks=kind) for text in documents)


@given(documents=st.lists(phrased_texts, max_size=4), kind=st.sampled_from([*KINDS]), threads=st.sampled_from([1, 2]))
def test_hyp_runs(model: Model, documents: list[str], kind: str, threads: int) -> None:
    found = RunCounts.count(documents, model, phrase_chunks=kind, threads=threads)
    assert dict(found) == reference_runs(model, documents, kind)


def test_special_tokens_end_a_run(model: Model) -> None:
    assert dict(RunCounts.count([" the of<s> the a"], model)) == dict(RunCounts.count([" the of", " the a"], model))


@pytest.mark.parametrize("policy", ["serial", "naive", "positional", "continue_search"])
@pytest.mark.parametrize("kind", KINDS)
def test_training_equals_the_reference(model: Model, book: list[str], kind: str, policy: str) -> None:
    documents = book[:6]
    runs = reference.find_runs([tokens_of(model, text) for text in documents], is_eligible(model, kind))
    inside = boundaries_of(model.pattern).is_inside
    expected = reference.train_phrases(
        runs,
        150,
        model.n_vocab,
        vocab_size=model.vocab_size - 1,
        policy=policy,
        is_wanted=lambda phrase: not inside(b"".join(model.vocab[part] for part in phrase).decode()),
    )
    found = train_phrases(model, RunCounts.count(documents, model, phrase_chunks=kind), 150, policy=policy)
    assert list(found.phrases.items()) == list(expected.items())
    assert max(map(len, expected)) > 2


def reader_of(texts: list[str], fraction: float = 1.0) -> RunReader:
    return RunReader(Corpus(texts), ["<s>"], False, None, fraction)


@pytest.mark.parametrize("max_words", [2, 3, 4])
def test_max_words(model: Model, book: list[str], max_words: int) -> None:
    found = train_phrases(model, RunCounts.count(book, model, phrase_chunks="text"), 300, max_words=max_words)
    assert max(map(len, found.phrases)) == max_words


def test_max_words_limits_all_pairs_that_a_policy_asks_for(model: Model, book: list[str]) -> None:
    def longest(candidates: Candidates) -> Candidates:
        pairs = candidates.more(50 * len(candidates))
        return pairs[np.argsort(-pairs.merged_length, kind="stable")[:1]]

    found = train_phrases(model, RunCounts.count(book[:9], model), 200, max_words=3, policy=longest, max_batch_size=4)
    assert len(found.phrases) == 200
    assert max(map(len, found.phrases)) == 3


@pytest.mark.parametrize("kind", KINDS)
def test_cutting_changes_nothing(model: Model, book: list[str], kind: str) -> None:
    uncut = train_phrases(model, RunCounts.count(book, model, phrase_chunks=kind), 200)
    reader = reader_of(book)
    chunks = EligibleChunks(model, kind)
    sketch = reader.sketch(chunks)
    min_count = least_count(sketch.counters(), 200)
    cut = RunCounts(reader.runs(chunks, sketch, min_count))
    assert cut.unique < RunCounts.count(book, model, phrase_chunks=kind).unique
    assert train_phrases(model, cut, 200) == uncut
    problem = f"the runs were cut at pairs that occur fewer than {10 * min_count} times, but rarer ones are needed; "
    with pytest.raises(DataError, match=problem + "count them with a smaller min_count"):
        train_phrases(model, RunCounts(reader.runs(chunks, sketch, 10 * min_count)), 200)


@pytest.mark.parametrize("vocab_size", [300, 500, 3000])
def test_cutting_with_the_sketch_of_another_model(model: Model, book: list[str], vocab_size: int) -> None:
    """Its chunks have other ids there, and some are not in the sketch."""
    reader = reader_of(book)
    other = train(book, vocab_size, pattern=model.pattern, stop_list_size=20)
    sketch = reader.sketch(EligibleChunks(other, "letters"))
    cut = RunCounts(reader.runs(EligibleChunks(model, "letters"), sketch, 20))
    whole = RunCounts.count(book, model)
    assert cut.unique < whole.unique
    frequent = {pair: count for pair, count in pairs_in(whole).items() if count >= 20}
    found = pairs_in(cut)
    assert frequent and all(found[pair] == count for pair, count in frequent.items())


@pytest.mark.parametrize("min_count", [2, 10, 100])
def test_cutting_keeps_all_frequent_pairs(model: Model, book: list[str], min_count: int) -> None:
    whole = pairs_in(RunCounts.count(book, model, phrase_chunks="text"))
    cut = pairs_in(RunCounts.count(book, model, phrase_chunks="text", min_count=min_count))
    assert cut.total() < whole.total()
    assert all(cut[pair] == count for pair, count in whole.items() if count >= min_count)


def pairs_in(runs: RunCounts) -> Counter[tuple[int, int]]:
    pairs: Counter[tuple[int, int]] = Counter()
    for run, count in runs:
        for pair in itertools.pairwise(run):
            pairs[pair] += count
    return pairs


@given(data=st.data(), text=phrased_texts, threads=st.sampled_from([1, 3]))
@examples(60)
def test_hyp_encode(model: Model, data: st.DataObject, text: str, threads: int) -> None:
    """Any phrases of chunks of the text, of whatever kind."""
    chunks = tokens_of(model, text)
    whole = [tokens[0] for tokens in chunks if len(tokens) == 1 and b"\n" not in model.vocab[tokens[0]]]
    starts = data.draw(st.lists(st.tuples(st.integers(0, len(whole)), st.integers(2, 5)), max_size=6))
    sequences = {tuple(whole[start : start + length]) for start, length in starts}
    phrases = {phrase: 5000 + n for n, phrase in enumerate(sorted(sequences)) if len(phrase) > 1}
    tokenizer = Tokenizer(Model(model.pattern, model.merges, model.stop_words, {"<s>": 4999}, phrases=phrases))
    expected = reference.encode_phrases(chunks, phrases)
    assert tokenizer.encode(text, threads=threads) == expected
    assert tokenizer.encode_batch([text, text])[1] == expected
    matched = "".join(regex.findall(model.pattern, text))
    assert tokenizer.decode_bytes(expected) == matched.encode()
    twice = tokenizer.encode(text + "<s>" + text, "all")
    assert twice == [*expected, 4999, *expected]


def test_encoding_in_parallel_and_from_a_stream(book: list[str], tmp_path: Path) -> None:
    """A text is never cut inside a phrase."""
    tokenizer = Tokenizer.train(book, 3000, phrases=1000, phrase_chunks="text")
    text = "".join(book)
    one, many = (tokenizer.encode_to_numpy(text, threads=threads) for threads in (1, 7))
    assert np.array_equal(one, many)
    chunks = tokens_of(tokenizer.model, text[:200_000].rpartition("\n")[0])
    expected = reference.encode_phrases(chunks, tokenizer.phrases)
    assert one[: len(expected) - 10].tolist() == expected[:-10]
    assert tokenizer.decode(one) == text
    encoder = tokenizer.core_encoder
    data, found, start, size = text.encode(), [], 0, 1000
    while start < len(data):
        ids, end = encoder.encode_block(data[start : start + size], start, start + size >= len(data), None, None)
        found += ids.tolist()
        start += end
        size = 1000 if end else 2 * size
    assert found == one.tolist()


def test_the_longest_phrase_wins() -> None:
    merges = {(32, 97): 256, (32, 98): 257, (32, 99): 258}
    phrases = {(256, 257): 300, (257, 258): 301, (256, 257, 258, 256): 302}
    tokenizer = Tokenizer(Model(PATTERNS["gpt4"], merges, phrases=phrases))
    assert tokenizer.encode(" a b c") == [300, 258]
    assert tokenizer.encode(" a b c a b") == [302, 257]
    assert tokenizer.encode(" c b c\n a b") == [258, 301, 10, 300]
    assert tokenizer.encode(" a ba b") == [256, 257, 97, 257]  # " ba" starts with the token of " b", but is two tokens
    assert tokenizer.decode([302, 301]) == " a b c a b c"


@pytest.mark.parametrize("phrases", [100, "auto"])
def test_train(book: list[str], phrases: int) -> None:
    options = {"special_tokens": ["<s>"], "phrases": phrases, "phrase_chunks": "text"}
    tokenizer = Tokenizer.train(book, 4000, **options)
    model = tokenizer.model
    assert model.vocab_size == model.n_vocab == 4000
    assert 0 < len(model.phrases) < 3000
    assert list(model.phrases.values()) == list(range(3999 - len(model.phrases), 3999))
    assert model.special_tokens == {"<s>": 3999}
    without = train(book, 4000 - len(model.phrases), special_tokens=["<s>"])
    assert list(model.merges.items()) == list(without.merges.items())
    assert train(book[::-1], 4000, threads=1, **options) == model
    assert model.training["phrases"] == len(model.phrases)
    texts = book[:20]
    plain = Tokenizer.train(book, 4000, special_tokens=["<s>"])
    assert sum(map(len, tokenizer.encode_batch(texts))) < 0.97 * sum(map(len, plain.encode_batch(texts)))


def test_special_tokens_with_ids(book: list[str]) -> None:
    model = train(book, 1000, phrases=100, special_tokens={"<s>": 998, "<e>": 1005})
    assert [*model.phrases.values()] == [*range(898, 998)]
    assert (model.vocab_size, model.n_vocab, model.training["vocab_size"]) == (1000, 1006, 1000)
    longer = train(book, 1100, base=model_without(model), phrases=50)
    assert longer.vocab_size == 1100
    assert longer.special_tokens == {"<s>": 998, "<e>": 1005}


def model_without(model: Model) -> Model:
    return Model(model.pattern, model.merges, special_tokens=model.special_tokens)


def test_auto_needs_no_phrases() -> None:
    """Where merges are more frequent than any pair of chunks, there are none."""
    model = train(["\n".join(random.Random(1).choices(["alpha", "beta", "gamma"], k=500))], 262, phrases="auto")
    assert not model.phrases
    assert model.vocab_size == 262


def test_a_fraction_of_one_long_string(model: Model) -> None:
    text = "to be or not to be, that is the question\n" * 200_000
    some = RunCounts(reader_of([text], 0.3).runs(EligibleChunks(model, "letters")))
    fraction = some.total / RunCounts.count([text], model).total
    assert 0.1 < fraction < 0.6


def test_merge_tree_of_a_phrase_of_three_chunks() -> None:
    model = Model(split=r"\w", merges={}, phrases={(97, 98, 99): 256})
    assert str(model.merge_tree(256)) == "256 'abc'\n├─ 97 'a'\n├─ 98 'b'\n└─ 99 'c'"


def test_ids_follow_the_merges_of_a_base(book: list[str]) -> None:
    base = train(book, 600, special_tokens=["<e>"])
    longer = train(book, 700, base=base, phrases=50, special_tokens={"<f>": 699})
    assert sorted(longer.phrases.values()) == [*range(649, 699)]
    assert train(book, 700, base=base, phrases=50, special_tokens=["<e>", "<f>"]) == longer
    assert (longer.n_vocab, longer.special_tokens) == (700, {"<e>": 599, "<f>": 699})
    kept = train(book, 650, base=base, phrases=50)  # no new merges
    assert sorted(kept.phrases.values()) == [*range(600, 650)] and kept.special_tokens == {"<e>": 599}


def test_automatic_phrases_from_a_fraction_of_a_text_file(book: list[str], tmp_path: Path) -> None:
    """The fraction that was actually counted decides, which may differ from the requested one."""
    path = tmp_path / "book.txt"
    path.write_text("\n".join(book), encoding="utf-8")
    whole, half = (len(train(path, 3000, phrases="auto", phrase_sample=sample).phrases) for sample in (None, 0.5))
    assert 0.7 < half / whole < 1.4


def test_batches_of_failed_attempts_are_not_reported(book: list[str]) -> None:
    """A policy that vetoes most pairs needs rarer ones than expected, so runs are counted again."""

    def short_phrases(candidates: Candidates) -> Candidates:
        return continue_search(candidates.keep(lambda pairs: pairs.merged_length <= 6))

    sizes: list[int] = []
    model = train(book, 1200, phrases=100, policy=short_phrases, on_batch=lambda batch: sizes.append(batch.size))
    assert sum(sizes) == len(model.merges) + len(model.phrases)


def test_train_phrases_records_its_options(model: Model, book: list[str]) -> None:
    trained = train_phrases(model, RunCounts.count(book, model, phrase_chunks="text"), 30, max_words=3).training
    recorded = {name: trained[name] for name in ("vocab_size", "phrases", "phrase_chunks", "max_words")}
    assert recorded == {"vocab_size": 2030, "phrases": 30, "phrase_chunks": "text", "max_words": 3}

"""`bound`: below the best vocabulary of an exhaustive search, and equal to the linear relaxation that HiGHS solves."""

import itertools
import json
import random
import re
import tokenize
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import run

from batchbpe import ChunkCounts, Model, Tokenizer, evaluate
from batchbpe.analysis import Bound, bound, lower_bound
from batchbpe.analysis.bound_certificate import Chunks, certified, valuable_tokens
from batchbpe.analysis.lower_bound import multi_byte_tokens
from batchbpe.errors import DataError

highspy = pytest.importorskip("highspy")

TEXT = Path(tokenize.__file__).read_text(encoding="utf-8")[:8_000]
COUNTS = ChunkCounts.count(texts=TEXT)


@cache
def random_counts(seed, chunks=6, letters="ab ", longest=6):
    """Return counts of random chunks of a few letters, which share many substrings."""
    rng = random.Random(seed)
    texts = ["".join(rng.choices(letters, k=rng.randint(1, longest))) for _ in range(chunks)]
    return ChunkCounts.count(texts=[text for text in texts for _ in range(rng.randint(1, 9))], pattern=r"(?s).+")


def substrings(counts):
    found = {chunk[i:j] for chunk in counts for i, j in itertools.combinations(range(len(chunk) + 1), 2)}
    return sorted(each for each in found if len(each) > 1)


def shortest(counts, vocabulary):
    """Return the number of tokens with the shortest segmentation of each chunk."""
    total = 0
    for chunk, count in counts.items():
        lengths = [0]
        for end in range(1, len(chunk) + 1):
            lengths.append(1 + min(lengths[i] for i in range(end) if i == end - 1 or chunk[i:end] in vocabulary))
        total += count * lengths[-1]
    return total


@cache
def best_of_random_counts(seed, size):
    return best_vocabulary(random_counts(seed), size)


def best_vocabulary(counts, size):
    """Return the smallest number of tokens by trying all vocabularies."""
    tokens = substrings(counts)
    return min(shortest(counts, set(some)) for some in itertools.combinations(tokens, min(size, len(tokens))))


def relaxation(counts, size):
    """Return the optimum of the linear relaxation on the segmentation graph: flows, f_e ≤ x_t, Σ x_t ≤ K."""
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    tokens = {token: solver.addVariable(lb=0, ub=1) for token in substrings(counts)}
    cost = 0
    for chunk, count in counts.items():
        balance = [0] * (len(chunk) + 1)
        for i, j in itertools.combinations(range(len(chunk) + 1), 2):
            flow = solver.addVariable(lb=0)
            cost += count * flow
            balance[i] -= flow
            balance[j] += flow
            if j > i + 1:
                solver.addConstr(flow <= tokens[chunk[i:j]])
        for node, flow in enumerate(balance):
            solver.addConstr(flow == (node == len(chunk)) - (node == 0))
    solver.addConstr(sum(tokens.values()) <= size)
    solver.minimize(cost)
    return solver.getObjectiveValue()


def thorough(size, counts, **options):
    return bound(size, counts, tolerance=0, **({"max_steps": 200} | options))


@pytest.mark.parametrize("seed", range(8))
def test_no_vocabulary_is_below_the_bound(seed):
    counts = random_counts(seed)
    for size in (1, 2, 3):
        assert bound(size, counts).tokens <= best_of_random_counts(seed, size)


def test_the_bound_is_often_the_best_vocabulary():
    pairs = [(bound(2, random_counts(seed)).tokens, best_of_random_counts(seed, 2)) for seed in range(8)]
    assert sum(low == best for low, best in pairs) >= 4, pairs
    assert all(low >= 0.9 * best for low, best in pairs)


@pytest.mark.parametrize("seed", range(8))
def test_the_bound_is_the_relaxation_rounded_up(seed):
    """HiGHS is exact to about 1e-6. The bound may be above the relaxation by less than 1, since it is rounded up."""
    counts = random_counts(seed, chunks=12, letters="abc", longest=8)
    for size in (1, 3, 8):
        optimum = relaxation(counts, size)
        found = thorough(size, counts).tokens
        assert found <= np.ceil(optimum - 1e-6)
        assert found >= 0.995 * optimum


@pytest.mark.parametrize("seed", range(8))
def test_any_prices_give_a_valid_bound(seed):
    rng, counts = np.random.default_rng(seed), random_counts(seed)
    chunks = Chunks(counts, max_edges=int(rng.integers(1, 200)))
    prices = rng.integers(0, 2 << chunks.bits, len(chunks.data))
    for size in (1, 2):
        best = best_of_random_counts(seed, size)
        for threshold in (0, 1 << chunks.bits, int(rng.integers(0, 20 << chunks.bits))):
            tokens = valuable_tokens(chunks, prices, threshold)
            assert certified(chunks, prices, size, tokens.values, threshold) <= best


@pytest.mark.parametrize("seed", range(10))
def test_exactly_the_tokens_above_the_threshold_are_found(seed):
    rng, counts = np.random.default_rng(seed), random_counts(seed, chunks=9, longest=9)
    chunks = Chunks(counts, max_edges=10_000)
    prices = rng.integers(0, 1 << (chunks.bits + seed % 2), len(chunks.data))
    data, values = chunks.data.tobytes(), {}
    for first, length, count in zip(chunks.firsts, chunks.lengths, chunks.counts, strict=True):
        for i, j in itertools.combinations(range(first, first + length + 1), 2):
            gain = max(0, ((j - i - 1) << chunks.bits) - int(prices[i:j].sum()))
            if j - i > 1:
                values[data[i:j]] = values.get(data[i:j], 0) + int(count) * gain
    unit = 1 << chunks.bits
    for threshold, size in itertools.product((0, unit, 5 * unit, 20 * unit), (1, 3, 10)):
        best = sum(sorted(values.values())[-size:])
        least = chunks.bytes * unit - int((chunks.weights * prices).sum()) - best
        exact = max(counts.total, -(-least // unit))  # the formula, for these prices
        found = valuable_tokens(chunks, prices, threshold)
        certificate = certified(chunks, prices, size, found.values, threshold)
        assert certificate == exact if threshold == 0 else certificate <= exact
        spelled = [data[i : i + length] for i, length in zip(found.starts, found.lengths, strict=True)]
        assert {token: found.values[i] for token, i in zip(spelled, found.ids, strict=True)} == {
            token: value for token, value in values.items() if value > threshold
        }
        assert len(spelled) == sum(
            len(re.findall(f"(?={re.escape(token.decode())})", chunk)) for token in {*spelled} for chunk in counts
        )


@pytest.mark.parametrize("policy", ["serial", "continue_search"])
def test_no_trained_vocabulary_is_below_the_bound(policy):
    for size in (300, 400):
        tokenizer = Tokenizer.train(COUNTS, size, policy=policy)
        found = bound(tokenizer, COUNTS)
        assert found.size == size - 256
        assert found.encoded == sum(len(tokenizer.encode(chunk)) * count for chunk, count in COUNTS.items())
        vocabulary = {value.decode() for value in tokenizer.vocab.values() if value.isascii()}
        assert found.tokens <= shortest(COUNTS, vocabulary) <= found.encoded
        assert found.above == 100 * (found.encoded / found.tokens - 1)
        assert found.above < 30


def test_a_larger_vocabulary_has_a_lower_bound():
    found = [bound(size, COUNTS).tokens for size in (0, 1, 10, 100, 400, 10_000)]
    assert found == sorted(found, reverse=True)
    assert len({*found}) == len(found)
    assert (found[0], found[-1]) == (COUNTS.total_bytes, COUNTS.total)


def test_the_bound_is_never_below_one_token_per_chunk():
    assert bound(COUNTS.unique // 2, COUNTS, max_steps=1).tokens >= COUNTS.total


def test_a_search_that_ends_early_says_so_and_is_valid():
    full = bound(50, COUNTS)
    for options in ({"max_steps": 1}, {"max_steps": 60}, {"max_seconds": 0}, {"max_seconds": 1e-9}):
        early = bound(50, COUNTS, **options)
        assert not early.converged
        assert COUNTS.total <= early.tokens <= full.tokens
        assert early.steps <= options.get("max_steps", 1)
    assert bound(50, COUNTS, tolerance=0.5).converged


def test_the_result_is_the_same_every_time():
    first = bound(50, COUNTS, max_steps=60)
    assert first == bound(50, ChunkCounts.count(texts=TEXT, threads=3), max_steps=60)


def test_chunks_that_are_left_out_count_as_one_token():
    full = bound(20, COUNTS)
    partial = bound(20, COUNTS, max_edges=2_000)
    assert full.modeled == 1 > partial.modeled
    assert COUNTS.total < partial.tokens < full.tokens
    assert bound(20, COUNTS, max_edges=1).tokens == COUNTS.total


def test_only_tokens_that_occur_in_chunks_count():
    tokenizer = Tokenizer.train(COUNTS, 300, stop_list_size=5, special_tokens=["<s>", "<e>"])
    distinct = {value for value in tokenizer.vocab.values() if len(value) > 1} - {b"<s>", b"<e>"}
    assert multi_byte_tokens(tokenizer) == len(distinct) == 41  # of 42: a stop word and a merge are the same token
    hidden = Tokenizer(replace(tokenizer.model, hidden={tokenizer.model.merges[next(iter(tokenizer.model.merges))]}))
    assert multi_byte_tokens(hidden) == 40


def test_huge_counts_are_exact_or_refused():
    """Counts above 2^53 are not integers in floating point."""

    def scaled(factor):
        data = np.frombuffer(b"abcabbcabcabc", np.uint8)
        counts = np.array([5, 3, 2], np.uint64) * np.uint64(factor)
        arrays = COUNTS.arrays._replace(data=data, offsets=np.array([0, 5, 10, 13]), counts=counts)
        return ChunkCounts(arrays)

    for factor in (1, 10**6, 10**12):
        chunks = Chunks(scaled(factor), max_edges=1000)
        assert chunks.longest * chunks.bytes << chunks.bits < 1 << 53
    best = best_vocabulary(scaled(factor), 2)
    found = thorough(2, scaled(factor)).tokens
    assert found <= best
    assert found > 0.98 * best
    with pytest.raises(DataError, match="the counts are too large for an exact bound; use a sample of the data"):
        bound(2, scaled(10**17))


def test_wrong_arguments_are_errors():
    tokenizer = Tokenizer.train(COUNTS, 300)
    for arguments, options, error, message in [
        ((tokenizer, TEXT), {}, TypeError, "counts must be ChunkCounts, got .*; use ChunkCounts.count"),
        (("300", COUNTS), {}, FileNotFoundError, "file not found: 300"),
        ((None, COUNTS), {}, TypeError, "tokenizer_or_size must be a Tokenizer, a Model, a path, .* got None"),
        ((True, COUNTS), {}, TypeError, "tokenizer_or_size must be an integer, got True"),
        ((2.5, COUNTS), {}, TypeError, "tokenizer_or_size must be an integer, got 2.5"),
        ((-1, COUNTS), {}, ValueError, "tokenizer_or_size must be at least 0, got -1"),
        ((2, COUNTS.at_least(10**9)), {}, DataError, "the counts are empty"),
        ((2, COUNTS), {"tolerance": float("nan")}, ValueError, "tolerance must be finite and at least 0, got nan"),
        ((2, COUNTS), {"tolerance": "1"}, TypeError, "tolerance must be a number, got '1'"),
        ((2, COUNTS), {"max_seconds": -1}, ValueError, "max_seconds must be finite and at least 0, got -1"),
        ((2, COUNTS), {"max_steps": 0}, ValueError, "max_steps must be at least 1, got 0"),
        ((2, COUNTS), {"max_edges": 0}, ValueError, "max_edges must be at least 1, got 0"),
        (
            (tokenizer, ChunkCounts.count(TEXT, "gpt2")),
            {},
            DataError,
            "count the data with the tokenizer's pattern",
        ),
    ]:
        with pytest.raises(error, match=message):
            bound(*arguments, **options)


@pytest.mark.filterwarnings("ignore:.*the pattern .*does not match")
def test_tokenizers_whose_tokens_are_not_within_chunks_are_errors():
    class Lower(Tokenizer):
        def encode(self, text, *options):
            return super().encode(text.lower(), *options)

    phrases = Tokenizer.train("to be or not to be or to be", 261, phrases=1)
    missing = Tokenizer(Model(split=r"\w+", merges={}, byte_ids=(None, *range(255))))
    added = Tokenizer(Model(split=r"\w+", merges={}, added_tokens={"  ": 256}))
    lower = Lower(Tokenizer.train(COUNTS, 256).model)
    for tokenizer, message in [
        (phrases, "must not have phrases"),
        (added, "must not have added tokens"),
        (missing, "must have a token for each byte, but 1 bytes? ha"),
        (lower, "must be a Tokenizer whose encode is not overridden"),
    ]:
        with pytest.raises((ValueError, TypeError), match=message):
            bound(tokenizer, COUNTS)
        result = evaluate({"plain": Tokenizer.train(COUNTS, 257), "mine": tokenizer}, "to be", bound=True)
        assert list(result.bounds) == ["plain"]
        assert re.fullmatch(f"the tokenizer {message}.*", result.unbounded["mine"])
        assert "no bound for" in str(result)


def test_counts_that_are_too_large_for_a_bound_do_not_hide_the_other_results():
    counts = {b"to": 1 << 52, b"be": 1, b"or": 1}
    result = evaluate({"mine": Tokenizer.train(counts, 257)}, counts, bound=True)
    assert result["mine"].tokens == (1 << 52) + 4
    assert result.unbounded == {"mine": "the counts are too large for an exact bound; use a sample of the data"}


def test_evaluate_has_the_bounds():
    small, large = Tokenizer.train(COUNTS, 264), Tokenizer.train(COUNTS, 270)
    result = evaluate({"small": small, "large": large}, {"a": TEXT[:1000], "b": "to be or not"}, bound=True)
    counts = ChunkCounts.count(texts=[TEXT[:1000], "to be or not"])
    assert result.bounds == {"small": bound(small, counts), "large": bound(large, counts)}
    assert result.bounds["small"].encoded == result["small"].tokens
    assert "lower bound on tokens" in str(result)
    whole = evaluate({"small": small, "phrases": Tokenizer.train("a b a b a b", 259, phrases=1)}, "to be", bound=True)
    frame = pytest.importorskip("pandas") and whole.to_pandas()
    found = whole.bounds["small"]
    assert frame.loc["small", ["bound", "above_bound"]].tolist() == [found.tokens, found.above]
    assert frame.loc["phrases", ["bound", "above_bound"]].isna().all()
    assert repr(found).endswith(f", above={found.above:.4f})")
    assert "lower bound on tokens" not in str(evaluate(small, texts=TEXT))


def test_vocabularies_of_one_size_share_a_bound(monkeypatch):
    sizes = []
    monkeypatch.setattr(lower_bound, "bound", lambda size, *given, **options: sizes.append(size) or bound(size, *given))
    one, two, larger = (Tokenizer.train(text, n) for text, n in (("to be", 257), ("or not", 257), ("to be", 258)))
    result = evaluate({"one": one, "two": two, "larger": larger}, "to be or not", bound=True)
    assert sizes == [1, 2]
    assert result.bounds["one"].encoded == result["one"].tokens
    assert result.bounds["two"].encoded == result["two"].tokens


def test_the_command_line_prints_the_bound(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text("to be or not to be", encoding="utf-8")
    tokenizer = Tokenizer.train(str(path), 258)
    tokenizer.save(tmp_path / "mine")
    Tokenizer.train("to be or not to be or to be", 261, phrases=1).save(tmp_path / "phrases")
    models = [f"{tmp_path}/mine.model", f"{tmp_path}/phrases.model"]
    printed = run(["evaluate", *models, "--data", str(path), "--bound", "--quiet", "--json"])
    mine, phrases = json.loads(printed.stdout)
    found = mine["bound"]
    assert (found["tokens"], found["encoded"], found["size"]) == (11, 14, 2)
    assert found["above"] == 100 * (14 / 11 - 1)
    assert phrases["unbounded"].startswith("the tokenizer must not have phrases")
    assert phrases["groups"]["all"]["tokens"] > 0
    assert (
        "--bound-seconds needs --bound" in run(["evaluate", *models, "--data", str(path), "--bound-seconds=1"]).stderr
    )


def test_a_time_limit_gives_a_bound_that_is_valid_but_lower():
    tokenizer = Tokenizer.train(COUNTS, 270)
    full, early = (evaluate(tokenizer, texts=TEXT[:1000], bound=True, bound_seconds=seconds) for seconds in (None, 0))
    assert "(not converged)" in str(early)
    assert (
        ChunkCounts.count(texts=TEXT[:1000]).total <= early.bounds["batchbpe"].tokens < full.bounds["batchbpe"].tokens
    )
    with pytest.raises(ValueError, match="bound_seconds must be finite and at least 0, got nan"):
        evaluate(tokenizer, texts=TEXT[:1000], bound=True, bound_seconds=float("nan"))
    with pytest.raises(ValueError, match="bound_seconds needs bound=True, got 3"):
        evaluate(tokenizer, texts=TEXT[:1000], bound_seconds=3)


def test_progress_takes_the_time_limit_into_account(monkeypatch):
    updates = []

    @contextmanager
    def recorded(title, total, *, show):
        yield lambda done, note: updates.append(done / total)

    monkeypatch.setattr(lower_bound, "bar", recorded)
    monkeypatch.setattr(lower_bound, "time", SimpleNamespace(perf_counter=itertools.count().__next__))
    bound(20, COUNTS, max_seconds=10)  # each step takes a second
    assert updates == [0, 1]


def test_a_bound_that_has_not_converged_is_displayed_as_such():
    result = evaluate({"mine": Tokenizer.train(COUNTS, 260)}, texts=TEXT)
    shown = str(replace(result, bounds={"mine": Bound(1000, 4, 1200, False, 10, 1.0, 1.0)}))
    assert "mine (not converged)" in shown
    assert "mine           allow more seconds (--bound-seconds" in shown
    assert "allow more" not in str(result)
    assert re.search(r"above the bound, % +20\.0000", shown)

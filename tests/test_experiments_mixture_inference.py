"""Mixture inference: the linear program, the batches in the order of merges, and the signs of batches."""

import _thread
import itertools
import random
import sys
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import numpy as np
import pytest
from helpers import HANG, examples
from hypothesis import given
from hypothesis import strategies as st

from batchbpe import PATTERNS, ChunkCounts, Model, Tokenizer
from batchbpe.analysis import batching_signs
from batchbpe.analysis.merge_runs import longest_runs, merge_sequence
from batchbpe.errors import ArgumentError, ArgumentTypeError, DataError
from batchbpe.experiments import merge_order, mixture_inference, report
from batchbpe.experiments.inference_findings import UNEXPLAINED, findings_of, group_rows
from batchbpe.experiments.merge_order import Inference, find_batches, infer, infer_batches
from batchbpe.experiments.order_program import OrderProgram
from batchbpe.experiments.weighted_table import MergeList

highspy: Any = pytest.importorskip("highspy")

WEIGHTS = {"code": 0.5, "docs": 0.35, "words": 0.15}
PER = 1_000_000


def invented_language() -> list[str]:
    """Texts in a language whose words are random but follow Zipf's law."""
    random_ = random.Random(3)
    words = ["".join(random_.choices("aeioukmnrstvzlp", k=random_.randint(2, 9))) for _ in range(1500)]
    weights = [1 / rank for rank in range(1, len(words) + 1)]
    return [" ".join(random_.choices(words, weights, k=60)) for _ in range(1200)]


@cache
def halves() -> tuple[dict[str, ChunkCounts], dict[str, ChunkCounts]]:
    """Counts to train on, and counts of other documents to infer from."""
    folder = Path(sys.modules["json"].__file__ or "").parents[1]
    names = [*folder.glob("[a-d]*.py"), *folder.glob("email/*.py"), *folder.glob("asyncio/*.py")]
    documents = {
        "code": [path.read_text(encoding="utf-8") for path in sorted(names)],
        "docs": [text for _, text in sorted(topics.items())],
        "words": invented_language(),
    }
    train, other = (
        {name: ChunkCounts.count(texts=texts[half::2], threads=1) for name, texts in documents.items()}
        for half in (0, 1)
    )
    return train, other


@cache
def trained(policy: str, merges: int = 600) -> Tokenizer:
    parts = {name: (counts, WEIGHTS[name]) for name, counts in halves()[0].items()}
    return Tokenizer.train(ChunkCounts.mix(parts), 256 + merges, policy=policy, threads=1)


def equal_weights(groups: int) -> Any:
    return np.full(groups, 1 / groups)


def pair_counts(sequences: dict[tuple[int, ...], int]) -> Counter[tuple[int, int]]:
    """Count pairs as they can be merged, in plain Python."""
    counts: Counter[tuple[int, int]] = Counter()
    for ids, times in sequences.items():
        previous, index = None, 0
        while index + 1 < len(ids):
            pair = ids[index], ids[index + 1]
            counted = pair[0] != pair[1] or previous != pair
            counts[pair] += times * counted
            previous = pair if counted else None
            index += 1
    return counts


def merged(sequences: dict[tuple[int, ...], int], pair: tuple[int, int], token: int) -> dict[tuple[int, ...], int]:
    result: Counter[tuple[int, ...]] = Counter()
    for ids, times in sequences.items():
        new: list[int] = []
        index = 0
        while index < len(ids):
            found = ids[index : index + 2] == pair
            new.append(token if found else ids[index])
            index += 1 + found
        result[tuple(new)] += times
    return dict(result)


def states(counts: dict[str, ChunkCounts], merges: list[tuple[int, int]]) -> list[list[dict[tuple[int, int], float]]]:
    """Return the rates of all pairs in each group before each merge, and after the last."""
    groups = [{tuple(chunk.encode()): times for chunk, times in each.items()} for each in counts.values()]
    sizes = [each.total_bytes for each in counts.values()]
    found = []
    for token, pair in enumerate([*merges, None], start=256):
        found.append(
            [
                {rival: PER * times / size for rival, times in pair_counts(group).items()}
                for group, size in zip(groups, sizes, strict=True)
            ]
        )
        if pair is not None:
            groups = [merged(group, pair, token) for group in groups]
    return found


def plain_optimum(counts: dict[str, ChunkCounts], merges: list[tuple[int, int]], weights: Any = None) -> float:
    """Solve the published program with all its rows at once, with the solver's modeling interface."""
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    bounds = [(0, 1)] * len(counts) if weights is None else [(weight, weight) for weight in weights]
    alphas = [solver.addVariable(low, high) for low, high in bounds]
    if weights is None:
        solver.addConstr(sum(alphas) == 1)
    of_rival: dict[tuple[int, int], Any] = {}
    slacks = []
    for merge, rates in zip(merges, states(counts, merges), strict=False):
        if not any(group.get(merge) for group in rates):
            continue
        slack = solver.addVariable(0)
        slacks.append(slack)
        for rival in sorted(set().union(*rates) - {merge}):
            if rival not in of_rival:
                of_rival[rival] = solver.addVariable(0)
            difference = sum(
                alpha * (group.get(merge, 0) - group.get(rival, 0)) for alpha, group in zip(alphas, rates, strict=True)
            )
            solver.addConstr(difference + slack + of_rival[rival] >= 0)
    solver.minimize(sum(slacks) + sum(of_rival.values()))
    assert solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return float(solver.getObjectiveValue())


def test_of_many_merges_only_some_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge_order, "MAX_COMPARED", 100)
    result = mixture_inference(trained("serial"), halves()[1], merges=400, true_mixture=WEIGHTS)
    compared = [row["compared"] for row in result.tables["merges"].to_pylist()]
    assert sum(compared) == 100
    assert compared[0] == 40
    assert min(compared) > 0
    assert max(abs(row["error"]) for row in result.table.to_pylist()) < 0.08


def total_slack(found: Inference) -> float:
    return sum(found.merge_slacks.values()) + sum(found.rival_slacks.values())


WORDS = st.lists(st.text("abcd", min_size=2, max_size=6), min_size=3, max_size=12)


@examples(25)
@given(st.lists(WORDS, min_size=2, max_size=3), WORDS)
def test_hyp_rows_added_lazily_give_the_optimum_of_the_whole_published_program(
    groups: list[list[str]], training: list[str]
) -> None:
    counts = {str(number): ChunkCounts.count(texts=words, threads=1) for number, words in enumerate(groups)}
    vocab = Tokenizer.train(ChunkCounts.count(texts=training, threads=1), 260, policy="serial", threads=1)
    merges = merge_sequence(vocab.model)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merge_order, "GAP", 0)
        found = infer(counts, MergeList(merges), list(range(len(merges))), equal_weights(len(counts)))
    assert found.is_complete
    assert found.weights.sum() == pytest.approx(1)
    best = plain_optimum(counts, merges)
    assert total_slack(found) == pytest.approx(best, rel=1e-4, abs=1)  # of a million
    assert plain_optimum(counts, merges, found.weights) == pytest.approx(best, rel=1e-4, abs=1)


@pytest.mark.parametrize("policy", ["serial", "continue_search"])
def test_the_published_program_has_the_same_optimum_on_real_text(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    merges = merge_sequence(trained(policy).model)[:12]
    counts = small(halves()[1], 40)
    best = plain_optimum(counts, merges)
    for gap in (0.2, 0.01):
        monkeypatch.setattr(merge_order, "GAP", gap)
        found = infer(counts, MergeList(merges), list(range(len(merges))), equal_weights(3))
        assert total_slack(found) <= best * 1.00001
        assert best <= plain_optimum(counts, merges, found.weights) <= total_slack(found) * (1 + gap)
    monkeypatch.setattr(merge_order, "GAP", 0)
    found = infer(counts, MergeList(merges), list(range(len(merges))), equal_weights(3))
    assert found.merge_slacks
    assert found.rival_slacks
    assert total_slack(found) == pytest.approx(best, rel=1e-5)
    assert plain_optimum(counts, merges, found.weights) == pytest.approx(best, rel=1e-5)


def violated(
    counts: dict[str, ChunkCounts], merges: list[tuple[int, int]], found: Inference
) -> list[tuple[int, tuple[int, int]]]:
    """Return what the weights do not explain, by Listing 1 of the paper: merges and pairs that should precede them."""
    starts = states(counts, merges)
    problems = []
    for start, end in itertools.pairwise([*found.cut, len(merges)]):
        mixed: Counter[tuple[int, int]] = Counter()
        for weight, rates in zip(found.weights, starts[start], strict=True):
            for pair, rate in rates.items():
                mixed[pair] += weight * rate
        batch = merges[start:end]
        for position, merge in enumerate(batch):
            if not any(rates.get(merge) for rates in starts[start]):
                continue
            least = mixed[merge] + found.merge_slacks.get(start + position, 0)
            firsts, lasts = (set(side) for side in zip(*batch[:position], strict=True)) if position else (set(), set())
            seen_first: set[int] = set()
            seen_last: set[int] = set()
            for pair, rate in sorted(mixed.items(), key=lambda item: -item[1]):
                is_safe = pair[0] not in seen_last | lasts and pair[1] not in seen_first | firsts
                seen_first.add(pair[0])
                seen_last.add(pair[1])
                is_rival = pair in batch[position + 1 :] or (pair not in batch and (is_safe or position == 0))
                if is_rival and rate - found.rival_slacks.get(pair, 0) > least * 1.0001 + 0.1:
                    problems.append((start + position, pair))
    return problems


def small(counts: dict[str, ChunkCounts], n: int = 150) -> dict[str, ChunkCounts]:
    """The most frequent chunks, so that plain Python is fast enough."""
    return {name: ChunkCounts.count(dict(each.most_common(n)), each.split) for name, each in counts.items()}


def test_no_row_is_violated_at_the_solution_for_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge_order, "GAP", 0)
    merges = merge_sequence(trained("continue_search").model)[:60]
    counts = small(halves()[1])
    found = infer_batches(counts, MergeList(merges), equal_weights(3))
    assert found.is_complete
    assert 1 < len(found.cut) < 60
    assert violated(counts, merges, found) == []
    wrong = Inference(np.array([0.1, 0.1, 0.8]), *list(found.__dict__.values())[1:])
    assert violated(counts, merges, wrong)  # otherwise this test would check nothing


@pytest.mark.parametrize("policy", ["serial", "exact", "continue_search"])
def test_the_mixture_of_a_vocabulary_is_recovered_from_other_documents(policy: str) -> None:
    result = mixture_inference(trained(policy), halves()[1], merges=400, true_mixture=WEIGHTS)
    errors = [row["error"] for row in result.table.to_pylist()]
    assert max(map(abs, errors)) < 0.06
    assert sum(row["fraction"] for row in result.table.to_pylist()) == pytest.approx(1)
    assert result.parameters["order"] == ("batches" if policy == "continue_search" else "serial")


def test_batches_hide_the_mixture_from_the_published_method() -> None:
    errors = {
        order: max(abs(row["error"]) for row in result.table.to_pylist())
        for order in ("serial", "batches")
        for result in [
            mixture_inference(trained("continue_search"), halves()[1], merges=400, order=order, true_mixture=WEIGHTS)
        ]
    }
    assert errors["batches"] < errors["serial"] / 2


def test_batches_are_found_from_the_order_of_merges() -> None:
    model = trained("continue_search").model
    true = {0, *itertools.accumulate(model.training["batches"]["size"][:-1])}
    found = find_batches(halves()[1], MergeList(merge_sequence(model)), np.array([*WEIGHTS.values()]))
    assert len(true & set(found)) > 0.7 * len(found)
    assert len(found) > 0.5 * len(true)
    assert set(found) != set(longest_runs(merge_sequence(model), 256))  # the rates matter


@pytest.mark.parametrize("policy", ["serial", "exact", "naive", "positional"])
def test_orders_like_that_of_serial_have_no_signs_of_batches(policy: str) -> None:
    assert batching_signs(trained(policy)).in_batches is False


def test_the_order_of_merges_tells_whether_they_were_made_in_batches(tmp_path: Path) -> None:
    batched, serial = (batching_signs(trained(policy)) for policy in ("continue_search", "serial"))
    assert batched.in_batches is True
    assert batched.score > 1.2 * serial.score
    assert batching_signs(trained("serial", 499)).in_batches is None
    assert batching_signs(Tokenizer.train("a", 256)).score == 0
    assert batching_signs(trained("serial").model) == serial
    trained("serial").save(tmp_path / "mine")
    assert batching_signs(tmp_path / "mine.model") == serial


def test_ids_of_merges_do_not_matter() -> None:
    stop_words = Tokenizer.train("to be or not to be to be", 260, stop_list_size=2)
    first, last = next(iter(stop_words.model.merges))
    assert merge_sequence(stop_words.model)[0] == (first, last)
    model = Model(split=r"\w+", merges={(97, 98): 400, (400, 99): 300, (400, 300): 301})
    assert merge_sequence(model) == [(97, 98), (256, 99), (256, 257)]


def test_stop_words_are_left_out_of_the_text() -> None:
    train, other = halves()
    counts = ChunkCounts.mix({name: (each, WEIGHTS[name]) for name, each in train.items()})
    vocab = Tokenizer.train(counts, 256 + 50 + 400, stop_list_size=50, policy="serial", threads=1)
    result = mixture_inference(vocab, other, true_mixture=WEIGHTS)
    assert max(abs(row["error"]) for row in result.table.to_pylist()) < 0.08


def test_the_result_states_what_was_used(tmp_path: Path) -> None:
    groups = {**halves()[1], "tiny": ChunkCounts.count("to be")}
    truth = {"code": 2, "docs": 1, "words": 1}
    with pytest.warns(UserWarning, match=r"less than 100,000 bytes of text are left out: tiny \(5 bytes\)"):
        result = mixture_inference(
            trained("serial"), groups, merges=200, true_mixture={"code": 2, "docs": 1, "words": 1}
        )
    assert [row["true_fraction"] for row in sorted(result.table.to_pylist(), key=lambda row: row["group"])] == [
        0.5,
        0.25,
        0.25,
    ]
    fractions = result.table["fraction"].to_pylist()
    assert fractions == sorted(fractions, reverse=True)
    merges = result.tables["merges"].to_pylist()
    assert (merges[0]["first_merge"], merges[-1]["last_merge"]) == (0, 199)
    assert sum(row["batches"] for row in merges) == 200
    assert result.findings["groups left out"] == "tiny (5 bytes)"
    assert result.parameters["merges"] == 200
    assert "merges used" not in result.findings
    del groups["tiny"]
    again = mixture_inference(trained("serial"), groups, merges=200, true_mixture=truth)
    assert again.tables == result.tables
    result.save(tmp_path / "inferred")
    report(tmp_path)
    assert "Mixture inference" in (tmp_path / "report.md").read_text(encoding="utf-8")


def test_groups_that_do_not_cover_the_training_text_are_noticed() -> None:
    covered = mixture_inference(trained("serial"), halves()[1], merges=200)
    two = {name: counts for name, counts in halves()[1].items() if name != "code"}
    assert "caution" in mixture_inference(trained("serial"), two, merges=200).findings
    assert "caution" not in covered.findings


def test_the_caution_starts_where_the_page_says() -> None:
    page = (Path(__file__).parents[1] / "docs" / "mixture-inference.md").read_text(encoding="utf-8")
    assert f'above {UNEXPLAINED:.0%}, a finding "caution" is added' in page
    words, model = ChunkCounts.count("ab ab ab cd"), Model(r"\w+| ", {(97, 98): 256, (99, 100): 257})
    merges = merge_sequence(model)
    found = infer({"a": words, "b": words}, MergeList(merges), list(range(len(merges))), equal_weights(2))
    rate, rows = found.rates[found.compared].sum(), group_rows(found, {"a": 1, "b": 1}, None)
    for fraction, is_cautious in ((UNEXPLAINED - 0.001, False), (UNEXPLAINED + 0.001, True)):
        slack = replace(found, merge_slacks={0: fraction * rate}, rival_slacks={(97, 98): 0.3 * rate})
        findings = findings_of(slack, rows, batching_signs(model), False, "serial", {}, 0, False)
        assert ("caution" in findings) == is_cautious
        assert findings["unexplained occurrences"].startswith(f"{fraction:.1%} of those of the merges; a caution")
        assert findings["unexplained occurrences of other pairs"].startswith("30.0% ")
        assert all(f'"{name}"' in page for name in findings if name.startswith("unexplained"))


def test_a_warning_about_groups_left_out_comes_before_the_inference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[mixture_inference.__module__], "infer_mixture", None)
    with pytest.warns(UserWarning, match="left out: tiny"), pytest.raises(TypeError, match="not callable"):
        mixture_inference(MODEL, {"a": EN, "b": EN, "tiny": "to be"}, min_bytes=10)


def test_phrases_are_ignored_and_mentioned() -> None:
    texts = {"a": "to be or not to be or to be", "b": "to be or to be"}
    vocab = Tokenizer.train(texts["a"], 261, phrases=1)
    result = mixture_inference(vocab, texts, min_bytes=1)
    assert result.findings["phrases"].startswith("1 phrase ignored")


def test_similar_groups_are_named() -> None:
    groups = {"one": halves()[0]["words"], "other": halves()[1]["words"], "docs": halves()[1]["docs"]}
    result = mixture_inference(trained("serial"), groups, merges=100)
    assert result.findings["similar groups, whose fractions may be confused"] == "one and other"


def test_the_figure_of_slacks_has_plain_numbers_and_no_rounding() -> None:
    result = mixture_inference(trained("serial"), halves()[1])
    assert result.findings["merges used"] == "600, all of the vocabulary"
    figure = result.figures["slack"]
    figure.canvas.draw()
    (panel,) = figure.axes
    labels = [label.get_text() for label in panel.get_yticklabels(which="both")]
    assert "10" in labels
    assert not any("$" in label for label in labels)
    slacks = panel.lines[1].get_ydata()
    assert len(slacks)
    assert min(slacks) > 1e-4


def test_rounding_of_the_solver_is_not_a_slack() -> None:
    program = OrderProgram(2)
    program.add(np.ones((2, 2)), [0, 1], [(97, 98), (97, 99)])
    program._values = np.array([0.5, 0.5, 1e-15, 0.1, 0.2, 1e-9])
    assert sorted([*program.merge_slacks.values(), *program.rival_slacks.values()]) == [0.1, 0.2]


def test_an_order_that_says_nothing_is_noticed() -> None:
    same = {"a": ChunkCounts.count("ab ab cd"), "b": ChunkCounts.count("ab ab cd")}
    result = mixture_inference(Tokenizer.train("ab ab ab", 257), same, min_bytes=1)
    assert {"undetermined", "similar groups, whose fractions may be confused"} <= result.findings.keys()
    assert "undetermined" not in mixture_inference(trained("serial"), halves()[1], merges=50).findings


def test_merges_that_do_not_occur_are_counted_and_say_nothing() -> None:
    counts = {"a": ChunkCounts.count("ab ab ab cd"), "b": ChunkCounts.count("cd cd cd ab")}
    found = infer(counts, MergeList([(120, 121), (97, 98)]), [0, 1], equal_weights(2))
    assert found.rates[0] == 0
    assert 0 not in found.merge_slacks
    assert found.weights[0] > 0.4
    with pytest.raises(DataError, match="none of the merges occurs in the text"):
        mixture_inference(Tokenizer.train("xyxyxy", 257), counts, min_bytes=1)


MODEL = Model(split=PATTERNS["gpt4"], merges={(97, 98): 256})
EN = ChunkCounts.count("to be or not to be")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: mixture_inference(None, {"a": EN}),
            ArgumentTypeError,
            "tokenizer must be a Tokenizer, a Model, a path",
        ),  # type: ignore[arg-type]
        (lambda: mixture_inference(MODEL, EN), ArgumentTypeError, "groups must be a dict of group names"),
        (lambda: mixture_inference("absent.model", {"a": EN}), FileNotFoundError, "absent.model"),
        (lambda: mixture_inference(MODEL, {"a": EN}), DataError, "at least two groups are needed, got a"),
        (
            lambda: mixture_inference(MODEL, {}),
            ArgumentTypeError,
            "groups must be a dict of .*, got {}",
        ),
        (lambda: mixture_inference(MODEL, {"a": EN, "b": ""}, min_bytes=1), DataError, "at least two groups must have"),
        (lambda: mixture_inference(MODEL, {"a": EN, "b": EN}), DataError, "at least two groups .* 100,000 .* got none"),
        (lambda: mixture_inference(MODEL, {"a": EN, "b": EN}, merges=0), ArgumentError, "merges must be at least 1"),
        (
            lambda: mixture_inference(MODEL, {"a": EN, "b": EN}, order="random"),  # type: ignore[arg-type]
            ArgumentError,
            "order must be one of 'auto', 'serial', 'batches', got 'random'",
        ),
        (
            lambda: mixture_inference(Model(split=PATTERNS["gpt4"], merges={}), {"a": EN, "b": EN}),
            DataError,
            "the vocabulary has no merges",
        ),
        (
            lambda: mixture_inference(Model(split=r"\w+", merges={(97, 98): 256}), {"a": EN, "b": EN}),
            DataError,
            r"^group a: counted with the pattern gpt4, expected .*; count the text again with .*of the vocabulary$",
        ),
        (
            lambda: mixture_inference(
                Model(split=PATTERNS["gpt4"], merges={(97, 98): 256}, hidden={256}), {"a": EN, "b": EN}
            ),
            DataError,
            "has 1 hidden token, so",
        ),
        (
            lambda: mixture_inference(
                Model(split=PATTERNS["gpt4"], merges={(256, 99): 257, (97, 98): 256}), {"a": EN, "b": EN}
            ),
            DataError,
            r"merge 0, \(256, 99\), uses token 256 before it is made",
        ),
        (
            lambda: mixture_inference(MODEL, {"a": EN, "b": EN}, min_bytes=1, true_mixture={"c": 1}),
            ArgumentError,
            r"true_mixture must only contain groups \(a, b\), got 'c'",
        ),
        (
            lambda: mixture_inference(MODEL, {"a": EN, "b": EN}, min_bytes=1, true_mixture={"a": -1}),
            ArgumentError,
            "true_mixture must contain numbers of at least 0",
        ),
    ],
)
def test_wrong_arguments_are_errors(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_a_missing_solver_is_reported_before_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "highspy", None)
    with pytest.raises(ImportError, match="run pip install 'batchbpe\\[solver\\]'"):
        mixture_inference(MODEL, files={"a": "nowhere.txt", "b": "nowhere.txt"})


def test_a_solver_without_an_optimum_is_an_error() -> None:
    program = OrderProgram(2)
    program.add(np.ones((1, 2)), [0], [(97, 98)])
    program._highs.setOptionValue("simplex_iteration_limit", 0)
    program._highs.addRow(3, 3, 2, np.arange(2, dtype=np.int32), np.ones(2))
    with pytest.raises(DataError, match="the solver found no optimal weights"):
        program.solve()


def test_ctrl_c_stops_the_solver_during_an_iteration(monkeypatch: pytest.MonkeyPatch) -> None:
    program = OrderProgram(2)
    program.add(np.array([[1.0, -2.0], [-2.0, 1.0]]), [0, 1], [(97, 98), (97, 99)])
    cancelled = threading.Event()
    cancel = program._highs.cancelSolve

    def interrupt(_: Any) -> None:
        """Press Ctrl-C in the first iteration, which lasts until the solver is asked to stop."""
        if not cancelled.is_set():
            _thread.interrupt_main()
            assert cancelled.wait(HANG)

    def cancel_solve() -> None:
        cancel()
        cancelled.set()

    program._highs.cbSimplexInterrupt += interrupt
    monkeypatch.setattr(program._highs, "cancelSolve", cancel_solve)
    with pytest.raises(KeyboardInterrupt):
        program.solve()
    assert not program._highs.is_solver_running()
    assert program._highs.getModelStatus() == highspy.HighsModelStatus.kInterrupt

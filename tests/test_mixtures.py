"""Weighted sums of counts, mixture files, and the search for the best weights."""

import json
import math
import random
import re
import sys
from collections import Counter
from fractions import Fraction
from itertools import chain, permutations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import run
from hypothesis import given
from hypothesis import strategies as st

from batchbpe import ChunkCounts, Mixture, Tokenizer, evaluate, train
from batchbpe.analysis.groups import by_column, by_name
from batchbpe.counts.mixture import factors_of
from batchbpe.data.corpus import sources
from batchbpe.data.options import Sampling
from batchbpe.errors import ArgumentError, ArgumentTypeError
from batchbpe.experiments import ExperimentData, mixture
from batchbpe.experiments.mixture_search import OBJECTIVES, Search, Trial, pareto_front
from batchbpe.experiments.result import Result

EN = ChunkCounts.count("to be or not to be, that is the question")
DE = ChunkCounts.count("Sein oder Nichtsein, das ist hier die Frage")
FR = ChunkCounts.count("être ou ne pas être, telle est la question")


def size(counts: ChunkCounts) -> int:
    return sum(len(chunk.encode()) * count for chunk, count in counts.items())


def plain_mix(parts: dict[str, tuple[ChunkCounts, float]]) -> dict[str, int]:
    """The definition, in plain Python."""
    used = {name: (counts, Fraction(weight)) for name, (counts, weight) in parts.items() if weight}
    exact = {name: weight / size(counts) for name, (counts, weight) in used.items()}
    factors = {name: round(1000 * factor / min(exact.values())) for name, factor in exact.items()}
    total: Counter[str] = Counter()
    for name, (counts, _) in used.items():
        for chunk, count in counts.items():
            total[chunk] += count * factors[name] // math.gcd(*factors.values())
    return dict(total)


WEIGHTS = st.floats(0, 1e3).map(lambda weight: round(weight, 3))


@given(st.lists(WEIGHTS, min_size=3, max_size=3).filter(any))
def test_hyp_mix_is_a_weighted_sum(weights: list[float]) -> None:
    parts = dict(zip(("en", "de", "fr"), zip((EN, DE, FR), weights, strict=True), strict=True))
    mixed = ChunkCounts.mix(parts)
    assert dict(mixed) == plain_mix(parts)
    assert list(mixed.values()) == sorted(mixed.values(), reverse=True)


def test_weights_are_fractions_of_bytes() -> None:
    rare, common = ChunkCounts.count({"a": 1, "bc": 2}), ChunkCounts.count({"xyz": 10**6})
    mixed = ChunkCounts.mix({"rare": (rare, 3), "common": (common, 1)})
    assert mixed["a"] + 2 * mixed["bc"] == pytest.approx(0.75 * size(mixed), rel=1e-3)
    assert mixed["bc"] == 2 * mixed["a"]
    assert mixed.total_bytes == size(mixed)


def test_no_chunk_is_lost() -> None:
    rare, common = ChunkCounts.count({"a": 1, "b": 10**12}), ChunkCounts.count({"xyz": 10**15, "c": 1})
    for weight in (1e-300, 1e-9, 1, 1e300):
        mixed = ChunkCounts.mix({"rare": (rare, weight), "common": (common, 1)})
        assert set(mixed) == {"a", "b", "c", "xyz"} and min(mixed.values()) > 0
        assert mixed.total_bytes < 1 << 64
    assert set(ChunkCounts.mix({"rare": (rare, 0), "common": (common, 1)})) == {"c", "xyz"}


def test_the_size_is_limited() -> None:
    factors = factors_of({"a": 1, "b": 1 << 40}, {"a": 1, "b": 1e-6})
    assert factors["b"] < 10  # with 1000, the mixture would exceed 2**63 bytes
    assert factors["a"] + (factors["b"] << 40) < 1 << 64


def test_the_order_of_the_parts_does_not_matter() -> None:
    parts = {"en": (EN, 0.1), "de": (DE, 0.7), "fr": (FR, 0.3)}
    mixed = [ChunkCounts.mix(dict(order)) for order in permutations(parts.items())]
    assert all(each == mixed[0] for each in mixed)


def test_alpha() -> None:
    parts = {"en": EN + EN + EN, "de": DE, "fr": FR}
    assert ChunkCounts.mix(parts, alpha=1) == EN + EN + EN + DE + FR
    uniform = ChunkCounts.mix({name: (counts, 1) for name, counts in parts.items()})
    assert ChunkCounts.mix(parts, alpha=0) == uniform
    weighted = ChunkCounts.mix({name: (counts, size(counts) ** 0.3) for name, counts in parts.items()})
    assert ChunkCounts.mix(parts, alpha=0.3) == weighted


def test_the_cutoff_applies_to_the_parts() -> None:
    mixed = ChunkCounts.mix({"en": (EN, 1), "de": (DE + DE, 1)}, freq_cutoff=2)
    assert mixed == ChunkCounts.mix({"en": (EN.at_least(2), 1), "de": ((DE + DE).at_least(2), 1)})
    assert set(mixed) == {" be", *DE}


@pytest.mark.parametrize(
    ("parts", "options", "problem"),
    [
        ({"en": (EN, 0.4), "de": DE}, {}, "parts.de.weight must be a number, got None; set a weight for each part, or"),
        ({"en": (EN, -1)}, {}, "parts.en.weight must be finite and at least 0, got -1"),
        ({"en": (EN, math.nan)}, {}, "parts.en.weight must be finite and at least 0, got nan"),
        ({"en": (EN, 10**400)}, {}, "parts.en.weight must be finite"),
        ({"en": (EN, True)}, {}, "parts.en.weight must be a number, got True"),
        ({"en": (EN, 0)}, {}, "weights must contain a weight greater than 0"),
        ({"en": (EN, 1)}, {"alpha": 0.3}, "alpha must be omitted if parts have weights, got 0.3"),
        ({"en": EN}, {"alpha": 2}, "alpha must be at most 1, got 2"),
        ({"en": EN}, {"alpha": "0.3"}, "alpha must be a number, got '0.3'"),
        ({"en": "to be"}, {"alpha": 1}, "parts.en must be ChunkCounts, got 'to be'"),
        ({"en": (1, 2, 3)}, {}, r"parts.en must be counts, or a tuple of counts and a weight, got \(1, 2, 3\)"),
        ([EN], {"alpha": 1}, "parts must be a dict of names and counts"),
        ({1: EN}, {"alpha": 1}, "parts must be a string, got 1"),
        ({}, {"alpha": 1}, "parts must be a dict with at least one part"),
        (
            {"en": EN, "de": ChunkCounts.count(texts="Sein", pattern="gpt2")},
            {"alpha": 1},
            "de was counted with the pattern gpt2, but en with gpt4; count the parts of a mixture with the same",
        ),
        ({"en": EN, "de": DE}, {"alpha": 1, "freq_cutoff": 2}, "part de contains no chunks; remove it, or lower"),
    ],
)
def test_wrong_parts(parts: Any, options: dict[str, Any], problem: str) -> None:
    with pytest.raises((ValueError, TypeError), match=problem):
        ChunkCounts.mix(parts, **options)


def test_training_on_a_mixture() -> None:
    parts = {"en": ["to be or not to be, that is the question"], "de": DE}
    given = Mixture(parts, {"en": 3, "de": 1})
    model = train(given, 280)
    assert model.training["mixture"] == {"de": 0.25, "en": 0.75}
    assert model == train(ChunkCounts.mix({"en": (EN, 3), "de": (DE, 1)}), 280)
    special = train(given, 280, special_tokens=["that"])
    without = {"en": (ChunkCounts.count(parts["en"], special_tokens=["that"]), 3), "de": (DE, 1)}
    assert special == train(ChunkCounts.mix(without), 280, special_tokens=["that"])
    cut = ChunkCounts.mix({"en": (EN + EN + DE, 1), "de": (DE + EN, 1)}, freq_cutoff=2)
    assert train(Mixture({"en": EN + EN + DE, "de": DE + EN}, {"en": 1, "de": 1}), 270, freq_cutoff=2) == train(
        cut, 270
    )
    with pytest.raises(ValueError, match="phrases must be 0 for a mixture"):
        train(given, 280, phrases=3)
    with pytest.raises(TypeError, match="pass exactly one of data, texts and files"):
        train(given, 280, texts=["to be"])
    with pytest.raises(ValueError, match="the pattern gpt4"):
        train(given, 280, pattern="gpt2")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the data of a mixture, which is not the current one."""
    folder = tmp_path / "data [1]"
    (folder / "en").mkdir(parents=True)
    (folder / "en" / "a.txt").write_text("to be or not to be, ")
    (folder / "en" / "b.txt").write_text("that is the question")
    pq.write_table(pa.table({"content": ["Sein oder Nichtsein, das ist hier die Frage"]}), folder / "de.parquet")
    FR.save(folder / "fr.counts.parquet")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return folder


YAML = """
parts:
  no: # a string, although YAML 1.1 has another opinion
    data: en/*.txt
    weight: .5
  de: {data: [de.parquet], weight: 4e-1}
  fr: {data: fr.counts.parquet, weight: 0.1}
"""


def test_mixture_files(folder: Path) -> None:
    parts = {"no": {"data": "en/*.txt", "weight": 0.5}, "de": {"data": ["de.parquet"], "weight": 0.4}}
    parts["fr"] = {"data": str(folder / "fr.counts.parquet"), "weight": 0.1}
    (folder / "mix.json").write_text(json.dumps({"parts": parts}))
    (folder / "mix.yaml").write_text(YAML)
    english = ChunkCounts.count(files=[folder / "en" / "a.txt", folder / "en" / "b.txt"])
    expected = ChunkCounts.mix({"en": (english, 5), "de": (DE, 4), "fr": (FR, 1)})
    for name in ("mix.json", "mix.yaml"):
        assert Mixture.load(folder / name).count(text_column="content") == expected
    (folder / "alpha.yaml").write_text("alpha: 0.3\nparts: {no: {data: en}, fr: {data: fr.counts.parquet}}")
    expected = ChunkCounts.mix({"no": english, "fr": FR}, alpha=0.3)
    assert Mixture.load(folder / "alpha.yaml").count() == expected


def test_the_command(folder: Path) -> None:
    (folder / "mix.yaml").write_text(YAML)
    made = run(["train", "--mix", str(folder / "mix.yaml"), "--text-column", "content", "-n", "290", "-o", "mine"])
    assert made.exit_code == 0, made.output
    model = Tokenizer.from_file("mine.model").model
    assert model.training["mixture"] == {"de": 0.4, "fr": 0.1, "no": 0.5}
    assert model == train(Mixture.load(folder / "mix.yaml"), 290, text_column="content")
    both = run(["train", "a.txt", "--mix", str(folder / "mix.yaml"), "-n", "290", "-o", "mine"])
    assert (both.exit_code, both.stderr) == (2, "error: --mix cannot be combined with INPUTS\n")
    neither = run("train -n 290 -o mine")
    assert (neither.exit_code, "missing argument INPUTS, or --mix" in neither.stderr) == (2, True)
    phrases = run(["train", "--mix", str(folder / "mix.yaml"), "-n", "290", "-o", "mine", "--phrases", "3"])
    assert (phrases.exit_code, "--phrases must be 0 for a mixture" in phrases.stderr) == (2, True)
    assert run("train --mix absent.yaml -n 290 -o mine").stderr == "error: file not found: absent.yaml\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", ": must be a mapping that is not empty"),
        ("- 1", ": must be a mapping that is not empty"),
        ("parts: [", ", line 1: invalid YAML"),
        ("[" * 5_000, ": invalid YAML"),
        ("part: {}", ": must only contain parts and alpha, got 'part'"),
        ("alpha: 1", ', field "parts": must be a mapping'),
        ("parts: {a: en}", ', field "parts.a": must be a mapping'),
        ("parts: {a: {data: en, size: 1}}", ", field \"parts.a\": must only contain data and weight, got 'size'"),
        ("parts: {a: {weight: 1}}", ', field "parts.a.data": must be a path'),
        ("parts: {a: {data: [], weight: 1}}", ', field "parts.a.data": must be a path'),
        ("parts: {a: {data: x.txt, weight: 1}}", ', field "parts.a.data": no file matches .*x.txt'),
        ("parts: {a: {data: en}}", ', field "parts.a.weight": must be a number, got None; set a weight for each part'),
        ("parts: {a: {data: en, weight: much}}", ", field \"parts.a.weight\": must be a number, got 'much'"),
        ("parts: {a: {data: en, weight: [1]}}", ', field "parts.a.weight": must be a number'),
        ("parts: {a: {data: en, weight: -1}}", ', field "parts.a.weight": must be finite and at least 0, got -1.0'),
        ("parts: {a: {data: en, weight: 0}}", ', field "weights": must contain a weight greater than 0'),
        ("{alpha: 1, parts: {a: {data: en, weight: 1}}}", ', field "alpha": must be omitted if parts have weights'),
        ("parts: {a: {data: en, weight: 1}, a: {data: en, weight: 1}}", ": duplicate key 'a'"),
        ("parts: {? [a] : 1}", ", line 1: keys must be strings"),
        ("parts: !!python/object/apply:sys.exit [3]", ', field "parts": must be a mapping'),
    ],
)
def test_errors_name_the_file_and_the_field(folder: Path, text: str, problem: str) -> None:
    (folder / "bad.yaml").write_text(text)
    with pytest.raises((ValueError, FileNotFoundError), match=rf"bad\.yaml{problem}"):
        Mixture.load(folder / "bad.yaml")


def test_json_needs_no_yaml(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    (folder / "mix.json").write_text('{"alpha": 1, "parts": {"en": {"data": "en"}}}')
    assert Mixture.load(folder / "mix.json").count().total == 12
    (folder / "mix.yaml").write_text(YAML)
    with pytest.raises(ImportError, match=r"require PyYAML; run pip install 'batchbpe\[yaml\]', or use a \.json file"):
        Mixture.load(folder / "mix.yaml")
    (folder / "bool.json").write_text('{"alpha": true, "parts": {"en": {"data": "en"}}}')
    with pytest.raises(ValueError, match=r'bool\.json, field "alpha": must be a number, got True'):
        Mixture.load(folder / "bool.json")
    (folder / "twice.json").write_text('{"parts": {}, "parts": {}}')
    with pytest.raises(ValueError, match=r"twice\.json: duplicate key 'parts'"):
        Mixture.load(folder / "twice.json")


def words(letters: str, documents: int, seed: int) -> list[str]:
    """Documents of random words, with which vocabularies depend on the weights."""
    chance = random.Random(seed)
    known = ["".join(chance.choices(letters, k=chance.randint(2, 7))) for _ in range(60)]
    return [" ".join(chance.choices(known, k=30)) for _ in range(documents)]


TEXTS = {"latin": words("abcdefgh", 90, 1), "greek": words("αβγδεζηθ", 30, 2), "kana": words("あいうえおかきく", 9, 3)}

TABLE = pa.table({"language": [name for name in TEXTS for _ in TEXTS[name]], "text": list(chain(*TEXTS.values()))})


def searched(**options: Any) -> Result:
    return mixture(texts=TEXTS, **{"vocab_sizes": [300, 320], "trials": 24, "seed": 1, **options})


def test_the_table_does_not_depend_on_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    results = []
    for at_once in (1, 3):
        monkeypatch.setattr("batchbpe.experiments.trainings.max_at_once", lambda _, n=at_once: n)
        results.append(searched(objective="gini"))
    for name, table in results[0].tables.items():
        assert table == results[1].tables[name]
    assert results[0].table.num_rows == 48
    assert results[0].findings == results[1].findings
    assert searched(objective="gini", seed=2).tables["groups"] != results[0].tables["groups"]


@pytest.mark.parametrize("by_document", [True, False])
def test_two_fractions_of_each_group_are_held_out(by_document: bool) -> None:
    counts = {name: ChunkCounts.count(texts=texts) for name, texts in TEXTS.items()}
    named = {name: sources(each) for name, each in counts.items()}
    grouped = by_column(sources(TABLE), "language") if by_document else by_name(named, Sampling())
    searched, tested = ExperimentData.by_group(grouped, None, "strict", 0.3, seed=1)
    assert list(searched) == list(tested) == sorted(TEXTS)
    for name, every in counts.items():
        assert searched[name].counts == tested[name].counts
        assert searched[name].heldout != tested[name].heldout
        assert searched[name].counts + searched[name].heldout + tested[name].heldout == every
        for data in (searched[name], tested[name]):
            assert 0.1 < data.heldout.total / every.total < 0.5


def test_trials_are_evaluated_on_held_out_text() -> None:
    held = {"en": ["to be or not to be"] * 40, "de": ["Sein oder Nichtsein"] * 40}
    result = mixture(texts=held, vocab_sizes=[262], trials=3, keep=3, per="byte")
    models = {name: Tokenizer(model) for name, model in result.models.items()}
    assert set(models) == {"trial-1", "trial-2", "trial-3"}
    for row in result.tables["groups"].to_pylist():
        document = held[row["group"]][0]
        per_document = len(models[f"trial-{row['trial']}"].encode(document))
        assert row["tokens"] % per_document == 0 and 0 < row["tokens"] // per_document < 20
        assert row["tokens_per_byte"] == pytest.approx(per_document / len(document.encode()))


def test_the_best_is_tested_on_other_text() -> None:
    result = searched(objective="gini", vocab_sizes=[300], keep=1)
    grouped = by_name({name: sources(texts) for name, texts in TEXTS.items()}, Sampling())
    _, tested = ExperimentData.by_group(grouped, None, "strict", 0.1, seed=1)
    best, row = result.table.to_pylist()[0], result.tables["test"].to_pylist()[0]
    name, model = next(iter(result.models.items()))
    found = evaluate({name: Tokenizer(model)}, {group: data.heldout for group, data in tested.items()})
    assert found.groups and name == f"trial-{best['trial']}" == f"trial-{row['trial']}"
    assert (row["tokens"], row["gini"]) == (found[0].tokens, pytest.approx(found.groups.tokenizers[name].gini))
    finding = result.findings["compared with adding up all groups on test text, 300 tokens"]
    assert f"→ {row['gini']:.4f};" in finding and f"→ {best['gini']:.4f};" not in finding


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_best_is_the_best_row(objective: Any) -> None:
    result = searched(objective=objective, keep=1)
    column = {"total": "tokens", "worst": "worst", "gini": "gini", "bytes-per-token": "bytes_per_token"}[objective]
    sign = -1 if objective == "bytes-per-token" else 1
    rows = result.table.to_pylist()
    assert [row[column] for row in rows] == sorted((row[column] for row in rows), key=lambda value: sign * value)
    for size in (300, 320):
        best = min((row for row in rows if row["vocab_size"] == size), key=lambda row: sign * row[column])
        assert result.findings[f"best mixture ({objective}), {size} tokens"].startswith(f"trial {best['trial']}: ")
        assert best["model"] == f"models/trial-{best['trial']}.model"
        plain = next(row for row in rows if row["trial"] == (1 if size == 300 else 2))
        assert sign * best[column] < sign * plain[column]  # the search has found something better
    assert [f"models/{name}.model" for name in result.models] == [row["model"] for row in rows if row["model"]]
    assert all(row["model"] for row in rows if row["front"])


def test_rows_agree_with_their_groups() -> None:
    result = searched(objective="worst", trials=6)
    groups = result.tables["groups"].to_pylist()
    for row in result.table.to_pylist():
        mine = {each["group"]: each for each in groups if each["trial"] == row["trial"]}
        assert set(mine) == set(TEXTS)
        assert row["tokens"] == sum(each["tokens"] for each in mine.values())
        assert row["worst"] == mine[row["worst_group"]]["tokens_per_character"]
        assert row["worst"] == max(each["tokens_per_character"] for each in mine.values())
        assert sum(each["weight"] for each in mine.values()) == pytest.approx(1, abs=1e-5)
    plain, uniform = ([each["weight"] for each in groups if each["trial"] == trial] for trial in (1, 3))
    assert uniform == [0.333333] * 3 and plain[2] > 0.5


def test_models_are_those_of_the_mixtures() -> None:
    """The weights in the table reproduce a model."""
    counts = {name: ChunkCounts.count(texts=texts) for name, texts in TEXTS.items()}
    result = mixture(counts, vocab_sizes=[310], trials=8, keep=1, seed=3)
    assert len(mixture(counts, vocab_sizes=[310], trials=8, keep="all").models) == 8
    name, model = next(iter(result.models.items()))
    assert model.training["mixture"] == pytest.approx(
        {row["group"]: row["weight"] for row in result.tables["groups"].to_pylist() if f"trial-{row['trial']}" == name}
    )
    assert model.vocab_size == 310


TRIALS = st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6)), min_size=1, max_size=12)


@given(TRIALS)
def test_hyp_the_front_is_correct(points: list[tuple[int, int]]) -> None:
    trials = [
        Trial(number, 300, {}, {"a": total}, {"a": 1.0, "b": 1.0 + other}, 1.0)
        for number, (total, other) in enumerate(points)
    ]
    expected = {
        number
        for number, point in enumerate(points)
        if not any(other != point and other[0] <= point[0] and other[1] <= point[1] for other in points)
    }
    assert {trial.number for trial in pareto_front(trials)} == expected


def test_the_number_of_proposals() -> None:
    for trials in (1, 5, 16, 40):
        search, found = Search({"a": 10, "b": 30}, trials, "total", 0), []
        while proposed := search.propose(found):
            assert all(min(weights.values()) > 0 for weights in proposed)
            found += [
                Trial(len(found) + index, 300, weights, {"a": 3, "b": 5}, {"a": 0.3, "b": 0.2}, 4.0)
                for index, weights in enumerate(proposed)
            ]
        assert len(found) == trials


def test_the_experiment_as_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(TABLE, "all.parquet")
    command = "experiment mixture --data all.parquet --group-column language --trials 6 --grid vocab_size=300,310 -q"
    made = run(f"{command} --objective gini --per byte --keep 2 -o found")
    assert made.exit_code == 0, made.output
    assert "best mixture (gini), 300 tokens" in made.stdout
    described = json.loads(Path("found/experiment.json").read_text())
    models = sorted(path.relative_to("found").as_posix() for path in Path("found").rglob("*.model"))
    assert len(models) >= 4 and set(models) <= set(described["checksums"])
    assert Tokenizer.from_file(f"found/{models[0]}").n_vocab in (300, 310)
    assert run("report found").exit_code == 0
    page = Path("found/report.md").read_text()
    assert "## Mixture (found)" in page and "![front](front.png)" in page
    assert run(f"{command} -o found --overwrite").exit_code == 0
    assert not list(Path("found").rglob("*.model"))  # models of the previous experiment are removed
    for name, texts in TEXTS.items():
        Path(f"{name}.txt").write_text("\n".join(texts))
    files = " ".join(f"--data {name}.txt" for name in TEXTS)
    by_file = run(f"experiment mixture {files} --by-file --document line --trials 2 -n 300 -q -o files --json")
    assert by_file.exit_code == 0, by_file.output
    assert "greek" in json.loads(by_file.stdout)["findings"]["best mixture (total), 300 tokens"]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("mixture", "mixture needs --group-column or --by-file"),
        ("mixture --by-file", "at least two groups are needed, got a"),
        ("mixture --by-file --per word", "--per must be one of 'text', 'byte', 'character', got 'word'"),
        (
            "mixture --by-file --objective best",
            "--objective.*must be one of 'total', 'worst', 'gini', 'bytes-per-token', got 'best'",
        ),
        ("mixture --by-file --grid policy=serial", "--grid policy has no effect with mixture; remove it"),
        (
            "mixture --data b.txt --by-file --heldout-share 0.5",
            r"--heldout-share must be between 0 and 0\.5, exclusive, got 0\.5",
        ),
        ("mixture --data b.txt --by-file -n 9000", r"must be at most \d+, since the data has no more pairs to merge"),
        ("mixture --data c.txt --by-file -n 300", "group c has too little text to hold some out"),
    ],
)
def test_wrong_options(options: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("to be or not to be " * 50)
    Path("b.txt").write_text("Sein oder Nichtsein " * 50)
    Path("c.txt").write_text("")
    failed = run(f"experiment {options} --data a.txt -o out -q")
    assert failed.exit_code in (1, 2)
    assert re.search(problem, failed.stderr), failed.stderr
    assert not Path("out").exists()


def test_options_of_the_search_are_checked_before_reading() -> None:
    wrong: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"vocab_sizes": 300}, ArgumentTypeError, "vocab_sizes must be a list of integers, got 300"),
        ({"seed": -1}, ArgumentError, "seed must be at least 0, got -1"),
    ]
    for options, error, problem in wrong:
        with pytest.raises(error, match=problem):
            mixture(files={"a": "nowhere.txt", "b": "nowhere.txt"}, **options)

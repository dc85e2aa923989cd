"""Bits per byte of language models: what is measured, what is equal for all vocabularies, and the intervals."""

import math
import re
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import examples
from hypothesis import given
from hypothesis import strategies as st

from batchbpe import ChunkCounts, Model, Tokenizer
from batchbpe.data.corpus import Corpus
from batchbpe.errors import ArgumentError, ArgumentTypeError, DataError
from batchbpe.experiments import ExperimentData, language_model, report
from batchbpe.experiments.data import DividedDocuments
from batchbpe.experiments.language_model.batches import IGNORED, Encoder, steps
from batchbpe.experiments.language_model.comparison import at_flops, differences, seed_noise
from batchbpe.experiments.language_model.figures import figures
from batchbpe.experiments.language_model.options import Options
from batchbpe.experiments.language_model.runs import Point, Run
from batchbpe.experiments.language_model.tables import Compared, findings, tables
from batchbpe.experiments.language_model.texts import Texts, choose
from batchbpe.experiments.language_model.training import train_model
from batchbpe.experiments.language_model.transformer import Shape, Transformer

SMALL = {"layers": 1, "width": 64, "context": 16, "training_bytes": 9000, "heldout_bytes": 3000, "step_bytes": 256}
GRID = {"vocab_size": [260, 280]}


@pytest.fixture
def needs_torch() -> Iterator[None]:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed; make test-lm installs it")
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # more would wait for each other on a busy machine
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def documents(library: list[str]) -> list[str]:
    return [text[:900] for text in library[:40] if text]


@pytest.fixture(scope="module")
def tokenizer(documents: list[str]) -> Tokenizer:
    return Tokenizer.train(documents, 300)


TEXT = st.lists(st.text("ab é語😀\n", min_size=1, max_size=80).map(lambda text: text.encode()), min_size=1, max_size=12)


@given(TEXT, st.integers(8, 60), st.integers(0, 3))
@examples(200)
def test_hyp_steps_are_consecutive_text_of_equal_size(documents: list[bytes], step_bytes: int, seed: int) -> None:
    found = list(steps(documents, step_bytes, seed))
    assert len(found) == sum(map(len, documents)) // step_bytes
    order = np.random.default_rng(seed).permutation(len(documents))
    pieces = list(chain.from_iterable(found))
    assert b"".join(documents[i] for i in order).startswith(b"".join(piece.text for piece in pieces))
    for piece in pieces:
        assert piece.text.decode("utf-8")
    for step in found:
        assert step_bytes - 64 <= sum(len(piece.text) for piece in step) <= step_bytes
    ends = [piece.is_last for piece in pieces]
    assert [piece.is_first for piece in pieces] == [True, *ends][: len(pieces)]


def test_steps_contain_the_same_text_for_every_vocabulary(documents: list[str], tokenizer: Tokenizer) -> None:
    text = [each.encode() for each in documents]
    found = list(steps(text, 700, seed=1))
    for each in (tokenizer, Tokenizer.train(documents, 256)):
        encoder = Encoder("", each)
        batches = list(encoder.batches(found, context=32))
        assert len(batches) == len(found)
        for step, (inputs, targets) in zip(found, batches, strict=True):
            used = targets[targets != IGNORED]
            first = [] if step[0].is_first else [int(inputs[0, 0])]
            ids = [*first, *used.tolist()]
            assert ids.count(encoder.end) == sum(piece.is_last for piece in step)
            kept = [token for token in ids if token != encoder.end]
            assert each.decode_bytes(kept) == b"".join(piece.text for piece in step)
            whole = np.concatenate([inputs.ravel()[: len(used)], used[-1:]])
            assert (whole[1:] == used).all()


@given(st.lists(st.text("ab ", min_size=1, max_size=120), min_size=1, max_size=5), st.integers(16, 40))
@examples(100)
def test_hyp_windows_predict_every_token_once(texts: list[str], context: int) -> None:
    tokenizer = Tokenizer.train("ab ab ab a a b", 258)
    encoder = Encoder("", tokenizer)
    expected = Counter()
    for index, text in enumerate(texts):
        whole = [*tokenizer.encode(text), encoder.end]
        expected.update((index, position, token) for position, token in enumerate(whole))
    found: Counter[Any] = Counter()
    position = Counter()
    for window in encoder.windows([text.encode() for text in texts], context):
        assert len(window.inputs) == len(window.targets) <= context
        for token in window.targets[window.targets != IGNORED].tolist():
            found[window.document, position[window.document], token] += 1
            position[window.document] += 1
    assert found == expected


def test_documents_are_chosen_at_random_within_a_limit() -> None:
    documents = [bytes([65 + i % 26]) * (1 + i % 7) for i in range(1000)]
    most = 800
    chosen = choose(iter(documents), most, seed=1)
    size = sum(map(len, chosen))
    assert most <= size < most + 7
    assert chosen == choose(documents, most, seed=1) != choose(documents, most, seed=2)
    assert sum(map(len, choose(documents, 10**9, seed=1))) == sum(map(len, documents))
    # Every document is as likely as any other of its size.
    often = Counter(index for seed in range(300) for index in _chosen_indices(len(documents), most, seed))
    early = sum(often[index] for index in range(500)) / sum(often.values())
    assert abs(early - 0.5) < 0.02


def _chosen_indices(number: int, most: int, seed: int) -> list[int]:
    return [int(text) for text in choose([f"{index:04}".encode() for index in range(number)], most, seed)]


def test_tokenizers_that_lose_text_are_errors() -> None:
    lossy = Tokenizer(Model(split="[a-z]+", merges={}))
    normalizing = Tokenizer.train("é é é", 256, normalization="NFD")
    for name, each in {"lossy": lossy, "normalizing": normalizing}.items():
        with pytest.raises(DataError, match=f"tokenizer {name} does not encode all bytes"):
            Encoder(name, each).tokens(["to bé".encode()])
    assert Encoder("", lossy).tokens([b"tobe"]) == 4


def test_bits_at_equal_compute_are_interpolated() -> None:
    flops = [100.0, 200.0, 400.0, 800.0]
    logs = np.log(flops)
    curve = np.stack([5 - logs + 0.1 * logs**2, 3 - logs], axis=1)
    for wanted in (100, 130, 200, 390, 800):
        log = math.log(wanted)
        assert at_flops(flops, curve, wanted) == pytest.approx([5 - log + 0.1 * log**2, 3 - log])
    assert at_flops(flops, curve, 99) is None
    assert at_flops(flops, curve, 801) is None


def test_differences_are_paired_by_document_and_seed() -> None:
    generator = np.random.default_rng(0)
    sizes = generator.lognormal(5, 1, 60)
    hardness = generator.lognormal(0, 0.5, 60)
    reference = np.array([sizes * hardness * factor for factor in (1.0, 1.1)])
    same, better = differences([reference, reference * 0.97])
    assert (same.verdict, better.verdict) == ("reference", "better")
    assert better.percent == pytest.approx(-3)
    assert better.high - better.low < 1e-6  # what documents and seeds have in common cancels


def test_intervals_contain_the_difference_as_often_as_they_say() -> None:
    """Documents and seeds are drawn many times; with few seeds, resampling them would fail here."""
    generator = np.random.default_rng(1)
    covered, few_documents, repetitions = 0, 40, 300
    for _ in range(repetitions):
        base = generator.lognormal(5, 1, few_documents)
        effects = np.array([0.0, 0.01, -0.01])[:, None, None]
        documents = generator.normal(0, 0.02, (3, 1, few_documents))
        documents[0] = 0
        seeds = generator.normal(0, 0.005, (3, 2, 1)) + generator.normal(0, 0.05, (1, 2, 1))
        bits = base * np.exp(effects + documents + seeds)
        found = differences(list(bits), repetitions=400)
        covered += found[1].low <= 100 * math.expm1(0.01) <= found[1].high
    assert 0.92 <= covered / repetitions <= 0.985


def test_the_noise_of_seeds_is_that_of_a_two_way_analysis() -> None:
    generator = np.random.default_rng(2)
    spreads = []
    for _ in range(200):
        logs = generator.normal(0, 1, (5, 1)) + generator.normal(0, 1, (1, 3)) + generator.normal(0, 0.01, (5, 3))
        spread, freedom = seed_noise(np.exp(logs))
        assert freedom == 8
        spreads.append(spread**2)
    assert math.sqrt(np.mean(spreads)) == pytest.approx(0.01, rel=0.1)
    assert seed_noise(np.ones((3, 1))) == (0.0, 0)


def _compared(seeds: int = 2, documents: int = 30) -> Compared:
    generator = np.random.default_rng(3)
    sizes = generator.integers(100, 1000, documents)

    def run(level: float, cost: int) -> Run:
        noise = generator.normal(1, 0.001)
        points = [
            Point(n, n // 4, n * cost, (level * noise * (2 + 1 / math.log(n)) * sizes).tolist())
            for n in (100, 200, 400, 800)
        ]
        return Run(300, 1000, points, 1.0)

    settings = {"first": (1.0, 10), "same": (1.0, 12), "worse": (1.1, 20), "far": (1.0, 1000)}
    runs = {name: [run(*each) for _ in range(seeds)] for name, each in settings.items()}
    return Compared(runs, sizes.tolist(), dict.fromkeys(settings, int(sizes.sum()) // 4))


def test_verdicts_and_unknown_values_are_stated() -> None:
    compared = _compared()
    rows = {row["vocabulary"]: row for row in tables(compared)["vocabularies"].to_pylist()}
    assert [row["verdict"] for row in rows.values()] == [
        "reference",
        "cannot be told apart",
        "worse",
        "cannot be told apart",
    ]
    assert compared.flops == 8000
    assert rows["worse"]["change"] == pytest.approx(10, abs=1)
    at_compute = {row["vocabulary"]: row for row in tables(compared)["equal_compute"].to_pylist()}
    assert at_compute["far"]["bits_per_byte"] is at_compute["far"]["change"] is at_compute["far"]["verdict"] is None
    assert rows["first"]["bits_per_byte"] == at_compute["first"]["bits_per_byte"]
    assert rows["same"]["bits_per_byte"] < at_compute["same"]["bits_per_byte"]
    found = findings(compared)
    assert found["same, equal bytes"].startswith("cannot be told apart from first: ")
    assert found["far, equal compute"] == "unknown: far was not evaluated with so little compute"
    assert "noise of a seed" in found
    compared = _compared(seeds=1)
    assert [row["verdict"] for row in tables(compared)["vocabularies"].to_pylist()][2] == "worse (one seed)"
    alone = findings(compared)
    assert alone["worse, equal bytes"].startswith("worse than first: +")
    assert alone["worse, equal bytes"].endswith("), one seed")
    assert alone["95% intervals cover the choice of"] == "held-out documents; with one seed, not the noise of seeds"
    assert "noise of a seed" not in alone
    assert "caution" in findings(_compared(documents=5))
    only = Compared({"first": compared.runs["first"]}, compared.heldout_sizes, compared.heldout_tokens)
    assert findings(only) == {}


def test_difference_curves_compare_with_the_first_at_equal_bytes_and_compute() -> None:
    compared = _compared(seeds=1)
    by_bytes, by_compute = figures(compared)["difference_curves"].axes
    found = {line.get_label(): line.get_ydata() for line in by_bytes.lines}
    for point, change in enumerate(found["worse"]):
        first, worse = (compared.runs[name][0].points[point].total for name in ("first", "worse"))
        assert change == pytest.approx(100 * (worse / first - 1))
    assert list(found["first"]) == pytest.approx([0] * 4)
    known = {line.get_label(): np.isfinite(line.get_ydata()).sum() for line in by_compute.lines}
    assert (known["first"], known["same"], known["worse"], known["far"]) == (4, 3, 3, 0)


def _plain_losses(model: Any, ids: list[int], context: int) -> list[float]:
    """Return the bits of each id after the first, computed by the definition: one position at a time, in float64."""
    weights = {name: matrix.detach().double().numpy() for name, matrix in model._matrices.items()}
    table = model._input.detach().double().numpy()
    shape = model.shape

    def normalized(vector: Any) -> Any:
        return vector / np.sqrt((vector**2).mean(-1, keepdims=True) + np.finfo(np.float32).eps)

    def rotated(vector: Any, position: int) -> Any:
        pairs = normalized(vector.reshape(-1, 64))
        angles = position * 10_000.0 ** -(np.arange(32) / 32)
        turned = (pairs[:, :32] + 1j * pairs[:, 32:]) * np.exp(1j * angles)
        return np.concatenate([turned.real, turned.imag], axis=1)

    def bits(window: list[int], wanted: int) -> float:
        """Return the bits of an id after a window of ids."""
        stream = [normalized(table[token]) for token in window]
        for layer in range(shape.layers):
            qkv = [weights[f"{layer}.qkv"] @ normalized(x) for x in stream]
            queries, keys, values = zip(*(np.split(each, 3) for each in qkv), strict=True)
            new = []
            for position, x in enumerate(stream):
                query = rotated(queries[position], position)
                mixed = []
                for head in range(len(query)):
                    scores = np.array([query[head] @ rotated(keys[j], j)[head] / 8 for j in range(position + 1)])
                    share = np.exp(scores - scores.max())
                    share /= share.sum()
                    mixed.append(sum(s * v.reshape(-1, 64)[head] for s, v in zip(share, values, strict=False)))
                x = x + weights[f"{layer}.out"] @ np.concatenate(mixed)
                inner = weights[f"{layer}.up"] @ normalized(x)
                inner = np.array([v * (1 + math.erf(v / math.sqrt(2))) / 2 for v in inner])
                new.append(x + weights[f"{layer}.down"] @ inner)
            stream = new
        logits = table @ normalized(stream[-1])
        return float(np.log(np.exp(logits - logits.max()).sum()) + logits.max() - logits[wanted]) / math.log(2)

    found, overlap = [], context // 4
    for position in range(1, len(ids)):
        start = 0
        while position - start > context:
            start += context - overlap
        found.append(bits(ids[start:position], ids[position]))
    return found


@pytest.mark.usefixtures("needs_torch")
def test_bits_equal_a_plain_computation_token_by_token(documents: list[str], tokenizer: Tokenizer) -> None:
    options = Options.of(**SMALL)
    texts = Texts([text.encode() for text in documents], [text.encode()[:70] for text in documents[:3]] + [b"a"])
    encoder = Encoder("", tokenizer, 1)
    from batchbpe.experiments.language_model import training

    state = training._Training(encoder, texts, options, 0, "cpu", "float32")
    state.train(None, lambda *_: None)
    for document, bits in zip(texts.heldout, state.run.points[-1].bits, strict=True):
        ids = [encoder.end, *tokenizer.encode(document.decode()), encoder.end]
        expected = _plain_losses(state._model, ids, options.context)
        assert len(expected) == len(ids) - 1
        assert bits == pytest.approx(sum(expected), rel=1e-4)


@pytest.mark.usefixtures("needs_torch")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_gradients_equal_those_of_automatic_differentiation(dtype: str, tokenizer: Tokenizer) -> None:
    import torch

    encoder = Encoder("", tokenizer)
    model = Transformer(Shape(2, 64, 16), encoder.token_bytes(), 0, "cpu", dtype)
    for matrix in model._matrices.values():  # those that start at zero would hide errors
        matrix.data.normal_(0, 0.1, generator=torch.Generator().manual_seed(1))
    generator = torch.Generator().manual_seed(2)
    inputs, targets = (torch.randint(0, encoder.vocabulary, (3, 16), generator=generator) for _ in range(2))
    targets[2, 5:] = IGNORED
    model._at_once = 7  # several parts
    model.add_gradients(inputs, targets, 0.5)
    found = [each.clone() for each in model.gradients]
    exact = Transformer(model.shape, encoder.token_bytes(), 0, "cpu", "float32")
    for name, matrix in exact._matrices.items():
        matrix.data.copy_(model._matrices[name].data)
    logits = exact._hidden(inputs) @ exact._input.T
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1, reduction="sum")
    (0.5 * loss).backward()
    for mine, theirs in zip(found, exact.gradients, strict=True):
        assert float((mine - theirs).norm() / theirs.norm()) < (1e-5 if dtype == "float32" else 0.02)
    assert float(exact.losses(inputs, targets).sum()) == pytest.approx(loss.item(), rel=1e-5)
    assert (exact.losses(inputs, targets)[2, 5:] == 0).all()


@pytest.mark.usefixtures("needs_torch")
def test_initial_parameters_depend_on_the_seed_and_the_tokens_only(documents: list[str]) -> None:
    large, small = (Tokenizer.train(documents, size) for size in (300, 280))
    shape = Shape(2, 64, 32)
    models = [Transformer(shape, Encoder("", each).token_bytes(), 1, "cpu", "float32") for each in (large, small)]
    assert models[0].blocks.equal(models[1].blocks)
    rows = {
        token: row
        for model, each in zip(models, (large, small), strict=True)
        for token, row in zip(Encoder("", each).token_bytes(), model._input.detach().numpy().tolist(), strict=True)
    }
    for token, row in zip(Encoder("", large).token_bytes(), models[0]._input.detach().numpy().tolist(), strict=True):
        assert rows[token] == row
    other = Transformer(shape, Encoder("", large).token_bytes(), 2, "cpu", "float32")
    assert not other.blocks.equal(models[0].blocks)
    assert sum(map(len, models[0].flat)) == shape.parameters + 301 * 64


@pytest.mark.usefixtures("needs_torch")
def test_points_of_the_curve_are_complete_shorter_trainings(documents: list[str], tokenizer: Tokenizer) -> None:
    """The learning rate of each ends at zero, and undone steps leave no trace."""
    text = [each.encode() for each in documents]
    texts, encoder = Texts(text, text[:4]), Encoder("", tokenizer, 1)
    options = Options.of(**{**SMALL, "training_bytes": 64 * 256})
    run = train_model(encoder, texts, options, 0, threads=1)
    assert [point.bytes for point in run.points] == sorted(point.bytes for point in run.points)
    whole = sum(len(piece.text) for step in list(steps(text, 256, 0))[:64] for piece in step)
    assert run.points[-1].bytes == whole
    from batchbpe.experiments.language_model import training

    alone = training._Training(encoder, texts, options, 0, "cpu", "float32")
    alone._ends = [64]
    alone.train(None, lambda *_: None)
    assert alone.run.points[-1].bits == run.points[-1].bits
    assert run.points[-1].total < run.points[0].total
    flops = 3 * run.points[-1].tokens * options.shape.flops(encoder.vocabulary)
    assert run.points[-1].flops == flops


@pytest.mark.usefixtures("needs_torch")
def test_a_stopped_experiment_continues_with_equal_results(
    documents: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from batchbpe.experiments.language_model import training

    monkeypatch.setattr(training, "SAVE_EVERY", -1)
    settings: dict[str, Any] = {"texts": documents, "grid": GRID, "seeds": 2, "threads": 1, **SMALL}
    expected = language_model(**settings)
    evaluate, evaluations = training._Training._evaluate, []

    def stop(self: Any) -> None:
        evaluate(self)
        evaluations.append(self)
        if len(evaluations) == 6:
            raise KeyboardInterrupt

    monkeypatch.setattr(training._Training, "_evaluate", stop)
    with pytest.raises(KeyboardInterrupt):
        language_model(**settings, folder=tmp_path)
    runs = sorted(path.name for path in (tmp_path / "runs").iterdir())
    assert runs == ["vocab_size=260 seed=0.json", "vocab_size=280 seed=0.pt"]
    result = language_model(**settings, folder=tmp_path)
    assert len(evaluations) == 6 + 4 * 4 - 5  # the sixth was not saved
    without_times = [column for column in expected.table.column_names if column != "seconds"]
    assert result.table.select(without_times) == expected.table.select(without_times)
    assert result.tables["curves"] == expected.tables["curves"]
    assert len(list((tmp_path / "runs").iterdir())) == 4
    del evaluations[:]
    monkeypatch.setattr(training._Training, "_evaluate", evaluate)
    more = language_model(**{**settings, "seeds": 3}, folder=tmp_path)
    assert more.tables["seeds"].num_rows == 6
    result.save(tmp_path)
    assert "Language model" in (report(tmp_path)[0]).read_text()
    assert language_model(**settings, folder=tmp_path).tables["seeds"] == result.tables["seeds"]


@pytest.mark.usefixtures("needs_torch")
def test_a_folder_with_other_results_is_an_error(documents: list[str], tokenizer: Tokenizer, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"texts": documents, "seeds": 1, "threads": 1, **SMALL}
    language_model(**settings, tokenizers={"mine": tokenizer}, folder=tmp_path)
    with pytest.raises(DataError, match=r"started with other data or options; use another folder"):
        language_model(**{**settings, "texts": documents[1:]}, tokenizers={"mine": tokenizer}, folder=tmp_path)
    with pytest.raises(DataError, match=r"started with other data or options; use another folder"):
        language_model(**settings, learning_rate=0.1, tokenizers={"mine": tokenizer}, folder=tmp_path)
    other = Tokenizer.train(documents, 290)
    with pytest.raises(DataError, match=r"this run was with another vocabulary mine; rename the vocabulary"):
        language_model(**settings, tokenizers={"mine": other}, folder=tmp_path)
    (tmp_path / "runs" / "mine seed=1.pt").write_bytes(b"no checkpoint")
    with pytest.raises(DataError, match=r"mine seed=1\.pt: the checkpoint is damaged; remove it"):
        language_model(**{**settings, "seeds": 2}, tokenizers={"mine": tokenizer}, folder=tmp_path)
    result = language_model(**settings, tokenizers={"mine": other}, folder=tmp_path, resume=False)
    assert result.tables["seeds"].num_rows == len(list((tmp_path / "runs").iterdir())) == 1


def test_unusable_arguments_are_errors_before_pytorch_is_imported(
    documents: list[str], tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    settings: dict[str, Any] = {"texts": documents, "tokenizers": tokenizer}
    data = {"vocab_size": [260], "data": {"x": documents}}
    cases: list[tuple[dict[str, Any], str]] = [
        ({"texts": None, "data": ChunkCounts.count(documents)}, "language models need documents, not chunk counts"),
        ({"texts": None, "data": iter(documents)}, "need to read the data twice, but a list_iterator can be read only"),
        ({"texts": None, "data": ExperimentData.of("to be " * 99)}, "language models need documents, some of which"),
        ({"device": "tpu"}, "device must be 'cpu', 'cuda', 'cuda:N' or 'mps', got 'tpu'"),
        ({"dtype": "int8"}, "dtype must be 'auto', 'float32' or 'bfloat16', got 'int8'"),
        ({"width": 100}, "width must be a multiple of 64, got 100"),
        ({"seeds": 0}, "seeds must be at least 1, got 0"),
        ({"seed": -1}, "seed must be at least 0, got -1"),
        ({"scale": -1}, "scale must be positive and finite, got -1"),
        ({"learning_rate": 2}, "learning_rate must be between 0 and 1, exclusive, got 2"),
        ({"heldout_share": 1}, "heldout_share must be between 0 and 1, exclusive, got 1"),
        ({"tokenizers": {"mine": 3}}, "tokenizers"),
        ({"grid": {"vocab_size": [20]}}, "vocab_size must be at least 256"),
        ({"grid": data}, "heldout must be given if the"),
        (
            {"grid": {"vocab_size": [260]}, "tokenizers": {"vocab_size=260": tokenizer}},
            "must have other names than the",
        ),
    ]
    for options, problem in cases:
        with pytest.raises((ArgumentError, ArgumentTypeError, DataError), match=problem):
            language_model(**{**settings, **options})
    with pytest.raises(TypeError, match="pass tokenizers, grid, or both"):
        language_model(documents)


def test_unusable_text_is_an_error_before_training(
    documents: list[str], tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[language_model.__module__], "check_device", lambda *_: "float32")
    lossy = Tokenizer(Model(split="[a-z]+", merges={}))
    settings: dict[str, Any] = {"texts": documents, "tokenizers": tokenizer, **SMALL}
    cases: list[tuple[dict[str, Any], str]] = [
        ({"training_bytes": 10**8}, r"training_bytes must be at most [\d,]+, the number of bytes in"),
        (
            {"step_bytes": 8192},
            "too little text to train on: 9,000 bytes are fewer than 32 steps",
        ),
        ({"texts": [""] * 9}, r"at least 2 held-out documents with text, got 0; provide more"),
        ({"heldout": [""]}, r"at least 2 held-out documents with text, got 0; provide more"),
        ({"heldout": ["to be"]}, r"at least 2 held-out documents with text, got 1"),
        ({"heldout": documents, "heldout_bytes": 10**6, "training_bytes": None}, r"copies of held-out documents \(\d+"),
        ({"tokenizers": {"a": tokenizer, "b": lossy}}, "the tokenizer b does not encode all bytes"),
    ]
    for options, problem in cases:
        with pytest.raises((ArgumentError, DataError), match=problem):
            language_model(**{**settings, **options})


def test_copies_of_held_out_documents_are_not_trained_on(documents: list[str]) -> None:
    corpora = DividedDocuments(Corpus(documents), Corpus(documents), 0.1, seed=0)
    texts = Texts.of(corpora, Options.of(**{**SMALL, "heldout_bytes": 1200}), is_exact=True, seed=0)
    assert texts.left_out >= len(texts.heldout) > 0
    assert not {*texts.training} & {*texts.heldout}


@pytest.mark.usefixtures("needs_torch")
def test_a_diverged_training_is_an_error(
    documents: list[str], tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    losses, small = Transformer.losses, dict[str, Any](SMALL)
    for worse in (10, math.inf):
        monkeypatch.setattr(Transformer, "losses", lambda *args, worse=worse: losses(*args) + worse)
        with pytest.raises(DataError, match="the training with the tokenizer mine diverged; reduce learning_rate"):
            language_model(documents, tokenizers={"mine": tokenizer}, threads=1, **small)


@pytest.mark.usefixtures("needs_torch")
def test_a_model_that_does_not_fit_into_memory_is_an_error(documents: list[str], tokenizer: Tokenizer) -> None:
    for size in ({"width": 64 << 20}, {"context": 1 << 50}):
        settings: dict[str, Any] = {**SMALL, **size}
        with pytest.raises(DataError, match="the model does not fit into the memory of cpu; reduce scale, width or"):
            language_model(documents, tokenizers={"mine": tokenizer}, threads=1, **settings)


@pytest.mark.usefixtures("needs_torch")
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_a_full_disk_is_an_error(documents: list[str], tokenizer: Tokenizer) -> None:
    from batchbpe.experiments.language_model import training

    text = [each.encode() for each in documents]
    state = training._Training(Encoder("", tokenizer), Texts(text, text[:2]), Options.of(**SMALL), 0, "cpu", "float32")
    with pytest.raises(OSError, match=r"/dev/full|No space left"):
        state._save(Path("/dev/full"), state._state())


def test_missing_torch_is_an_error(documents: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=re.escape("requires PyTorch; run pip install 'batchbpe[lm]'")):
        language_model(documents, grid=GRID)


def test_one_number_scales_everything() -> None:
    base, larger = Options.of(), Options.of(scale=8)
    assert larger.shape.parameters == 8 * base.shape.parameters
    assert larger.training_bytes == 8 * base.training_bytes
    assert (larger.layers, larger.width, larger.context) == (2 * base.layers, 2 * base.width, 2 * base.context)
    assert Options.of(scale=8, layers=3).layers == 3
    assert base.shape.parameters == 786_432

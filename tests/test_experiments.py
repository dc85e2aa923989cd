"""The experiments on data with known results, and the files they write."""

import copy
import io
import json
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from batchbpe import ChunkCounts, Model, Tokenizer, evaluate, policies, train
from batchbpe.analysis.counted_text import texts_of
from batchbpe.data.corpus import Corpus
from batchbpe.experiments import ExperimentData, batching, chunks, freq_cutoff, stop_words, sweep
from batchbpe.experiments.data import split_counts
from batchbpe.experiments.trainings import train_all
from batchbpe.policies import Candidates
from batchbpe.storage.locks import locked


@pytest.fixture(scope="module")
def data(library: list[str]) -> ExperimentData:
    return ExperimentData.of(library[:200])


def test_documents_are_held_out(library: list[str]) -> None:
    documents = library[:200]
    data = ExperimentData.of(documents, heldout_share=0.25, seed=3)
    assert data.counts + data.heldout == ChunkCounts.count(documents)
    assert 0.1 < data.heldout.total / (data.counts.total + data.heldout.total) < 0.4
    assert data.heldout == ExperimentData.of(documents, heldout_share=0.25, seed=3).heldout
    assert data.heldout != ExperimentData.of(documents, heldout_share=0.25, seed=4).heldout
    assert data.heldout == ExperimentData.of(pa.array(documents), heldout_share=0.25, seed=3).heldout
    assert data.parameters["held-out text"] == "0.25 of the documents"


def test_chunks_are_held_out_of_counts_and_of_one_document() -> None:
    text = "to be or not to be " * 200
    counts = ChunkCounts.count(text)
    for given in (text, counts):
        data = ExperimentData.of(given, heldout_share=0.5)
        assert data.parameters["held-out text"] == "0.5 of the chunks"
        assert data.counts + data.heldout == counts
        assert abs(data.heldout.total / counts.total - 0.5) < 0.05
    kept, taken = split_counts(counts, 0.5, seed=0)
    assert list(kept.values()) == sorted(kept.values(), reverse=True)
    assert taken == split_counts(counts, 0.5, seed=0)[1]


def test_given_text_is_held_out() -> None:
    data = ExperimentData.of("to be", heldout="or not")
    assert (data.counts.total, data.heldout.total) == (2, 2)
    with pytest.raises(ValueError, match="the held-out text contains no chunks"):
        ExperimentData.of("to be", heldout=[])
    with pytest.raises(ValueError, match="heldout_share must be between 0 and 1, exclusive, got 1"):
        ExperimentData.of("to be", heldout_share=1)


def test_texts_and_files(tmp_path: Path) -> None:
    """Without the keywords, the strings here would be interpreted as files and as a text."""
    (tmp_path / "a").write_text("to be or not to be " * 50)
    named, texts = {"files": iter([tmp_path / "a"])}, ["to be or.txt", "not to be.txt"] * 50
    assert ExperimentData.of(**named).parameters["data"] == [str(tmp_path / "a")]
    assert ExperimentData.of(texts=texts).parameters["held-out text"] == "0.1 of the documents"
    assert chunks(files=tmp_path / "a").parameters["total"] == 301
    assert chunks(texts=texts).parameters["total"] == 400
    options: dict[Any, dict[str, Any]] = {
        stop_words: {"vocab_size": 260, "sizes": [0, 1], "prefix": " be"},
        freq_cutoff: {"vocab_size": 258, "cutoffs": [1]},
        batching: {"vocab_size": 258, "policies": ["naive"], "cap_divisors": [], "max_batch_sizes": []},
        sweep: {"grid": {"vocab_size": [258], "pattern": ["gpt2", "gpt4"]}},
    }
    for experiment, values in options.items():
        assert experiment(files=tmp_path / "a", **values).parameters["data"] == [str(tmp_path / "a")]
        assert experiment(texts=texts, **values).parameters["data"] == ["in memory"]
        with pytest.raises(TypeError, match="pass exactly one of data, texts and files; got data and texts"):
            experiment(ExperimentData.of("to be " * 50), texts=texts, **values)


def test_chunks_as_they_are_read(library: list[str]) -> None:
    documents = [text[:2000] for text in library[:600]]
    result = chunks(documents)
    half, whole = ChunkCounts.count(documents[:512]), ChunkCounts.count(documents)
    rows = [(row["total"], row["unique"]) for row in result.table.to_pylist()]
    assert rows[1:] == [(half.total, half.unique), (whole.total, whole.unique)]
    frequencies = result.tables["frequencies"].to_pylist()
    assert frequencies[0]["unique"] == sum(count == 1 for count in whole.values())
    assert sum(row["unique"] for row in frequencies) == whole.unique
    assert result.parameters["growth"] == "as read"


def test_chunks_of_counts_grow_as_in_random_order() -> None:
    # Ten chunks that occur twice each: half of the data contains a given chunk with probability 1 - (1/2)².
    result = chunks(ChunkCounts.count([" ".join("abcdefghij")] * 2), points=2)
    assert result.parameters["growth"] == "expected"
    assert [row["unique"] for row in result.table.to_pylist()][-1] == result.parameters["unique"]
    counts = ChunkCounts.count({" a": 2, " b": 2, " c": 2, " d": 2})
    assert chunks(counts, points=2).table.to_pylist()[0] == {"total": 4, "unique": 3}


def test_errors_name_the_file(tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text('{"text": "to be"}\n{"text": "\\ud800"}\n')
    for experiment in (chunks, ExperimentData.of):
        with pytest.raises(ValueError, match=r"bad\.jsonl, .*lone surrogate"):
            experiment(tmp_path / "bad.jsonl")


def test_stop_words(data: ExperimentData) -> None:
    result = stop_words(data, vocab_size=600, sizes=[0, 30], prefix=" self")
    rows = result.table.to_pylist()
    trained = Tokenizer.train(data.counts, 600, stop_list_size=30)
    encoded = sum(len(trained.encode_ordinary(chunk)) * count for chunk, count in data.heldout.items())
    assert rows[1]["tokens"] == encoded
    assert rows[1]["change"] == pytest.approx(100 * (encoded / rows[0]["tokens"] - 1))
    words = list(trained.stop_words)
    prefixes = {row["stop_word"]: row for row in result.tables["prefixes"].to_pylist()}
    assert list(prefixes) == words
    for word in words[:5]:
        others = [count for chunk, count in data.counts.items() if chunk.startswith(word) and chunk != word]
        assert (prefixes[word]["chunks"], prefixes[word]["occurrences"]) == (len(others), sum(others))


def test_freq_cutoff(data: ExperimentData) -> None:
    rows = freq_cutoff(data, vocab_size=600, cutoffs=[1, 3]).table.to_pylist()
    assert rows[1]["unique"] == sum(count >= 3 for count in data.counts.values())
    assert rows[0]["change"] == 0
    assert all(row["seconds"] > 0 and row["vocab_size"] == 600 for row in rows)


def test_batching(data: ExperimentData) -> None:
    result = batching(data, vocab_size=800, cap_divisors=[2], max_batch_sizes=[10])
    serial, naive, positional, default = result.table.to_pylist()
    assert (serial["batches"], serial["mean_size"], serial["shared_with_serial"], serial["change"]) == (544, 1, 1, 0)
    assert serial["batches"] > naive["batches"] > positional["batches"] > default["batches"]
    same, small = result.tables["caps"].to_pylist()
    assert same["batches"] == default["batches"] and small["largest"] <= 10


def test_vocabularies_are_in_order_and_equal_to_single_ones(data: ExperimentData) -> None:
    trained = list(train_all(data, [{"vocab_size": size} for size in (300, 280, 290)]))
    assert [each.tokenizer.n_vocab for each in trained] == [300, 280, 290]
    assert trained[1].tokenizer.model.merges == Tokenizer.train(data.counts, 280).model.merges
    assert sum(batch.size for batch in trained[0].batches) == 44


def test_too_little_data() -> None:
    data = ExperimentData.of("to be or not to be " * 20)
    for experiment in (stop_words, freq_cutoff, batching):
        with pytest.raises(ValueError, match=r"vocab_size must be at most 2\d\d, since the data has no more pairs"):
            experiment(data, vocab_size=5000)
    with pytest.raises(ValueError, match="contains no chunks"):
        chunks([])
    with pytest.raises(ValueError, match="vocab_size must be at least 257, to leave something to merge, got 256"):
        batching(data, vocab_size=256)
    with pytest.raises(ValueError, match=r"must be at least 261 \(256 bytes \+ 4 stop words \+ 1 merge\), got 258"):
        stop_words(data, vocab_size=258)
    rows = chunks("to be").table.to_pylist()
    assert rows == [{"total": 1, "unique": 1}, {"total": 2, "unique": 2}]


def test_short_trainings_are_timed_more_than_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(100))
    monkeypatch.setattr("batchbpe.experiments.trainings.MIN_TIMED_SECONDS", 3)
    monkeypatch.setattr("batchbpe.experiments.trainings.time", SimpleNamespace(perf_counter=lambda: next(clock)))
    (trained,) = train_all(ExperimentData.of("to be", heldout="to be"), [{"vocab_size": 257}], timed=True)
    assert (next(clock), trained.seconds, len(trained.batches)) == (6, 1, 1)


def test_equal_figures_are_equal_files(data: ExperimentData, tmp_path: Path) -> None:
    for name in ("one", "two"):
        stop_words(data, vocab_size=400, sizes=[0, 5], prefix=" the").save(tmp_path / name)
    for file in (tmp_path / "one").iterdir():
        assert file.read_bytes() == (tmp_path / "two" / file.name).read_bytes(), file.name


def test_sweep_is_resumed(tmp_path: Path, library: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(pa.table({"text": library[:60]}), tmp_path / "docs.parquet")
    grid = {"vocab_size": [300, 320], "pattern": ["gpt2", "gpt4"], "policy": ["serial", "naive"]}
    whole = sweep(tmp_path / "docs.parquet", grid=grid).table.drop_columns("seconds")
    assert whole.num_rows == 8
    tokens = whole["tokens"].to_pylist()
    assert tokens == sorted(tokens)
    folder = tmp_path / "sweep"
    sweep(tmp_path / "docs.parquet", grid=grid | {"pattern": ["gpt2"]}, folder=folder)
    trained: list[str] = []

    def counted(data: Corpus, heldout: Corpus | None, pattern: str, *more: Any) -> ExperimentData:
        trained.append(pattern)
        return ExperimentData.of_corpus(data, heldout, pattern, *more)

    monkeypatch.setattr(sys.modules[sweep.__module__], "ExperimentData", SimpleNamespace(of_corpus=counted))
    assert sweep(tmp_path / "docs.parquet", grid=grid, folder=folder).table.drop_columns("seconds") == whole
    assert [split.name for split in trained] == ["gpt4"]
    with pytest.raises(ValueError, match="this sweep was started with other data or options; use another folder"):
        sweep(tmp_path / "docs.parquet", grid=grid, folder=folder, seed=5)
    # Options that are not in the grid have their defaults, not the values of another grid.
    more = sweep(tmp_path / "docs.parquet", grid={"vocab_size": [300], "stop_list_size": [9, 0]}, folder=folder)
    plain = sweep(tmp_path / "docs.parquet", grid={"vocab_size": [300]}, folder=folder).table.to_pylist()
    assert plain[0]["tokens"] == next(row["tokens"] for row in more.table.to_pylist() if row["stop_list_size"] == 0)
    (folder / "runs.json").write_text("{")
    with pytest.raises(ValueError, match=r"runs\.json: the file is damaged: invalid JSON; remove it"):
        sweep(tmp_path / "docs.parquet", grid=grid, folder=folder)


def best_only(candidates: Candidates) -> Candidates:
    return candidates[:1]


def test_policies_by_name_and_as_functions(tmp_path: Path) -> None:
    text = "to be or not to be, that is the question " * 30
    grid = {"vocab_size": [262], "policy": ["serial", best_only, policies.naive]}
    rows = sweep(text, grid=grid).table.to_pylist()
    assert {row["policy"] for row in rows} == {"serial", "best_only", "naive"}
    result = batching(text, vocab_size=262, policies=[best_only], cap_divisors=[1], max_batch_sizes=[])
    assert result.table["policy"].to_pylist() == ["serial", "best_only"]
    assert result.table["batches"].to_pylist() == [6, 6]
    result = freq_cutoff(text, vocab_size=262, cutoffs=[1], policy="serial")
    assert result.parameters["policy"] == "serial"
    result = freq_cutoff(text, vocab_size=262, cutoffs=[1], policy=best_only)
    result.save(tmp_path)
    assert result.parameters["policy"] == "best_only"
    lambdas = [lambda pairs: pairs, lambda pairs: pairs[:1]]
    with pytest.raises(ValueError, match="grid must contain values with different names"):
        sweep(text, grid={"vocab_size": [262], "policy": lambdas})
    with pytest.raises(ValueError, match="policies must have different names, got '<lambda>'"):
        batching(text, vocab_size=262, policies=lambdas)
    with pytest.raises(TypeError, match="policy must be a function or one of"):
        sweep(text, grid={"vocab_size": [262], "policy": [7]})


TEXTS = ["to be or not to be, that is the question", "whether 'tis nobler in the mind to suffer"] * 40


class Counting:
    """A policy with state: a copy that was used before would choose other pairs."""

    def __init__(self, first: int) -> None:
        self.first = first

    def __call__(self, candidates: Candidates) -> Candidates:
        self.first, start = 0, self.first
        return candidates[start : start + 1] if len(candidates) > start else candidates[:1]


def test_values_have_names() -> None:
    """A dict names its values; in a list, values that are not plain have the names of functions, files, …"""
    grid: dict[str, Any] = {
        "vocab_size": {"small": 262, "large": 270},
        "policy": {"plain": "continue_search", "second first": Counting(1), "best first": Counting(0)},
    }
    result = sweep(TEXTS, "to be", grid=grid, keep="all")
    rows = {(row["vocab_size"], row["policy"]): row for row in result.table.to_pylist()}
    assert set(rows) == {(size, policy) for size in ("small", "large") for policy in grid["policy"]}
    unused = {"plain": "continue_search", "second first": Counting(1), "best first": Counting(0)}
    for size, policy in rows:
        alone = train(TEXTS, grid["vocab_size"][size], policy=copy.copy(unused[policy]))
        assert result.models[f"vocab_size={size}, policy={policy}"].merges == alone.merges
    assert result.parameters["grid"]["policy"] == ["plain", "second first", "best first"]

    class FirstTwice(Counting):
        def __init__(self) -> None:
            super().__init__(0)

    class Locked(FirstTwice):
        def __init__(self) -> None:
            super().__init__()
            self.lock = threading.Lock()

    classes = sweep(TEXTS, "to be", grid={"vocab_size": [262, 264], "policy": [FirstTwice, Locked]}, keep="all")
    assert classes.models["vocab_size=262, policy=Locked"].merges == train(TEXTS, 262, policy=FirstTwice()).merges
    with pytest.raises(
        ValueError, match=r"policy must be a function, or an object that can be copied .*, got 'Locked'"
    ):
        sweep(TEXTS, "to be", grid={"vocab_size": [262], "policy": [Locked()]})
    objects = [Counting(0), Counting(1)]
    with pytest.raises(ValueError, match=r"with different names, got {'policy': 'Counting'}; use a dict"):
        sweep(TEXTS, grid={"vocab_size": [262], "policy": objects})
    with pytest.raises(ValueError, match=r"names for values that have none, got {'data': {'a': 1}}; use"):
        sweep(heldout="to be", grid={"vocab_size": [262], "data": [{"a": 1}]})
    options: dict[str, Any] = {
        "special_tokens": [(), ["<s>", "</s>"]],
        "overlapping": [False, True],
        "ties": ["ids", "huggingface"],
    }
    rows = sweep(TEXTS, grid={"vocab_size": [262], **options}).table.to_pylist()
    assert {(row["special_tokens"], row["overlapping"], row["ties"]) for row in rows} == {
        (tokens, overlapping, ties)
        for tokens in ("", "<s>, </s>")
        for overlapping in (0, 1)
        for ties in options["ties"]
    }


def test_special_tokens_are_not_trained_on() -> None:
    texts = ["<s>to be</s>", "<s>or not</s>"] * 50
    result = sweep(texts, "to be", grid={"vocab_size": [262], "special_tokens": [[], ["<s>", "</s>"]]}, keep="all")
    plain, special = (result.models[f"vocab_size=262, special_tokens={name}"] for name in ("", "<s>, </s>"))
    assert any(b"<s" in token for token in plain.vocab.values())
    assert special.merges == train(texts, 262, special_tokens=["<s>", "</s>"]).merges


def test_models_in_the_grid(tmp_path: Path) -> None:
    other = Tokenizer.train(TEXTS, 260, pattern="gpt2", special_tokens=["<s>"])
    other.save(tmp_path / "other")
    path = tmp_path / "other.model"
    result = sweep(TEXTS, "to be", grid={"add_tokens": [4], "base": [path, str(path)]}, keep=1)
    assert result.table["pattern"].to_pylist() == ["gpt2"] and result.table["base"].to_pylist() == [str(path)]
    (model,) = result.models.values()
    assert model.merges == train(TEXTS, add_tokens=4, base=other).merges
    rows = sweep(TEXTS, "to be", grid={"vocab_size": [264], "like": {"none": None, "other": other}}).table.to_pylist()
    assert {(row["like"], row["pattern"]) for row in rows} == {("none", "gpt4"), ("other", "gpt2")}
    with pytest.raises(FileNotFoundError, match="model file not found"):
        sweep(TEXTS, grid={"vocab_size": [262], "like": ["absent.model"]})


def test_data_in_the_grid() -> None:
    named = {"first": ChunkCounts.count(TEXTS[:1], "gpt2"), "second": TEXTS[1:4]}
    result = sweep(heldout=TEXTS, grid={"vocab_size": [270], "data": named}, keep="all")
    rows = {row["data"]: row for row in result.table.to_pylist()}
    assert (rows["first"]["pattern"], rows["second"]["pattern"]) == ("gpt2", "gpt4")
    for name, data in named.items():
        label = "vocab_size=270, pattern=gpt2, data=first" if name == "first" else "vocab_size=270, data=second"
        assert result.models[label].merges == train(data, 270).merges
    assert result.parameters["data"] == "in the grid"
    assert sweep(ChunkCounts.count(TEXTS, "gpt2"), grid={"vocab_size": [262]}).table["pattern"].to_pylist() == ["gpt2"]
    with pytest.raises(ValueError, match=r"heldout must be given if the grid contains data, .*, got None"):
        sweep(grid={"vocab_size": [270], "data": named})
    with pytest.raises(ValueError, match="data must be omitted if it is in the grid"):
        sweep(TEXTS, TEXTS, grid={"vocab_size": [270], "data": named})
    with pytest.raises(TypeError, match="pass exactly one of data, texts and files; got none"):
        sweep(grid={"vocab_size": [270]})


def test_phrases_in_the_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    grid = {"vocab_size": [290], "phrases": [0, 5, "auto"]}
    result = sweep(TEXTS, grid=grid, keep="all", heldout_share=0.3)
    rows = {row["phrases"]: row for row in result.table.to_pylist()}
    assert set(rows) == {"0", "5", "auto"}
    plain = sweep(TEXTS, grid={"vocab_size": [290]}, heldout_share=0.3).table.to_pylist()[0]
    assert rows["0"]["tokens"] == plain["tokens"]  # phrases are compared on the same held-out documents
    held = ExperimentData.of(TEXTS, heldout_share=0.3).documents
    assert held and rows["5"]["tokens"] == sum(
        len(ids) for ids in Tokenizer(result.models["vocab_size=290, phrases=5"]).encode_batch(
            [text for some in held.heldout() for text in texts_of(some, "strict")]
        )
    )  # fmt: skip
    assert len(result.models["vocab_size=290, phrases=5"].phrases) == 5
    given = sweep(TEXTS, TEXTS[:3], grid=grid).table.to_pylist()
    assert next(row for row in given if row["phrases"] == "5")["tokens"] == sum(
        len(Tokenizer.train(TEXTS, 290, phrases=5).encode(text)) for text in TEXTS[:3]
    )
    with monkeypatch.context() as patch:  # documents are read by one training at a time
        patch.setattr("batchbpe.experiments.trainings.max_at_once", lambda _: pytest.fail("trained at the same time"))
        sweep(TEXTS, TEXTS, grid=grid)
    with pytest.raises(
        ValueError, match="phrases and added tokens need documents, some of which are held out; provide"
    ):
        sweep(" ".join(TEXTS), grid=grid)
    for data, problem in ((iter(TEXTS), "can be read only once"), ([ChunkCounts.count(TEXTS)], "counts")):
        with pytest.raises(ValueError, match=problem):
            sweep(data, TEXTS, grid=grid)


def test_groups_in_the_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups replace the data; what `train` does with them is not tested here."""
    monkeypatch.setitem(sys.modules["batchbpe.experiments.grid"].DEFAULTS, "groups", None)
    received: list[Any] = []

    def train_groups(data: Any = None, *, groups: Any = None, **options: Any) -> Model:
        received.append((data is None, groups))
        return train(data if groups is None else [*groups.values()], **options)

    monkeypatch.setattr("batchbpe.experiments.trainings.train", train_groups)
    monkeypatch.setattr("batchbpe.experiments.trainings.max_at_once", lambda _: 1)
    groups = {"a": ChunkCounts.count(TEXTS[0]), "b": ChunkCounts.count(TEXTS[1])}
    sweep(TEXTS, TEXTS, grid={"vocab_size": [262], "groups": {"none": None, "two": groups}})
    assert received == [(False, None), (True, groups)]


def test_models_are_kept(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("\n".join(TEXTS))
    folder = tmp_path / "sweep"
    grid = {"vocab_size": [262, 270, 266], "policy": ["serial", "naive"]}
    options: dict[str, Any] = {"document": "line", "folder": folder}
    plain = sweep(tmp_path / "a.txt", grid=grid, **options)
    assert plain.models == {} and not (folder / "models").exists()
    result = sweep(tmp_path / "a.txt", grid=grid, keep=2, **options)  # resumed, so these are trained again
    names = [f"vocab_size={row['vocab_size']}, policy={row['policy']}" for row in result.table.to_pylist()]
    assert list(result.models) == names[:2] and {"vocab_size=270" in name for name in names[:2]} == {True}
    files = sorted(path.name for path in (folder / "models").iterdir())
    assert files == sorted(f"{name}.model" for name in names[:2])
    for name, model in result.models.items():
        assert Tokenizer.from_file(folder / "models" / f"{name}.model").model == model
    (folder / "models" / files[0]).write_text("{")  # shows that files are loaded instead of training again
    with pytest.raises(ValueError, match=r"\.model"):
        sweep(tmp_path / "a.txt", grid=grid, keep=2, **options)
    (folder / "models" / files[0]).unlink()
    again = sweep(tmp_path / "a.txt", grid=grid, keep=2, **options)
    assert again.models == result.models
    more = sweep(tmp_path / "a.txt", grid=grid | {"vocab_size": [262, 270, 266, 272]}, keep=1, **options)
    assert len(more.models) == 1 == len(list((folder / "models").iterdir()))
    assert "vocab_size=272" in next(iter(more.models))
    result.save(tmp_path / "other")
    assert sorted(path.name for path in (tmp_path / "other" / "models").iterdir()) == files
    assert [each.name for each in evaluate(result.models, TEXTS)] == names[:2]
    for wrong in (-1, "best", True):
        with pytest.raises((ValueError, TypeError), match="keep must be"):
            sweep(tmp_path / "a.txt", grid=grid, keep=wrong)


def test_no_two_sweeps_in_one_folder(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("to be or not to be " * 50)
    folder = tmp_path / "sweep"
    result = sweep(tmp_path / "a.txt", grid={"vocab_size": [258]}, folder=folder)
    before = (folder / "runs.json").read_bytes()
    with locked(folder):
        for resume in (True, False):
            with pytest.raises(BlockingIOError, match="sweep is being written by process"):
                sweep(tmp_path / "a.txt", grid={"vocab_size": [259]}, folder=folder, resume=resume)
        with pytest.raises(BlockingIOError, match="sweep is being written by process"):
            result.save(folder)
    assert [path.name for path in folder.iterdir()] == ["runs.json"]
    assert (folder / "runs.json").read_bytes() == before
    sweep(tmp_path / "a.txt", grid={"vocab_size": [259]}, folder=folder, resume=False)
    assert len(json.loads((folder / "runs.json").read_text())["runs"]) == 1


def test_patterns_that_drop_text_are_ranked_last() -> None:
    text = "to be, or not to be: that is the question! " * 30
    with pytest.warns(UserWarning, match="does not match"):
        result = sweep(text, grid={"vocab_size": [260], "pattern": ["gpt4", r"\w+"]})
    rows = result.table.to_pylist()
    assert [row["pattern"] for row in rows] == ["gpt4", r"\w+"]
    assert rows[0]["dropped"] == 0 < rows[1]["dropped"] < 0.5 and rows[1]["tokens"] < rows[0]["tokens"]
    assert r"\w+" in result.findings["patterns that drop text (ranked last)"]


def test_lengths_are_compared_by_bytes_if_patterns_differ() -> None:
    """With one document, chunks are held out, and they differ between patterns."""
    result = sweep("to be, or not to be; " * 99, grid={"vocab_size": [257], "pattern": ["gpt4", r"\w+$|\w+|\s+$|\W"]})
    lengths = [row["bytes_per_token"] for row in result.table.to_pylist()]
    assert lengths == sorted(lengths, reverse=True)
    result.figure.savefig(io.BytesIO())  # dollar signs in patterns are not parsed as formulas
    alike = sweep("to be or not to be " * 30, grid={"vocab_size": [258], "policy": ["serial", "naive"]})
    assert alike.findings["shortest encoding"].startswith("2 equal combinations, such as ")
    alike.figure.savefig(io.BytesIO())


def test_vocabularies_that_are_too_small_are_reported() -> None:
    data = ExperimentData.of("to be or not to be " * 20)
    with pytest.raises(ValueError, match=r"vocab_size must be at most 2\d\d, since the data has no more pairs"):
        sweep("to be or not to be " * 20, grid={"vocab_size": [258, 5000]})
    rows = stop_words(data, vocab_size=262, sizes=[0, 2, 200]).table.to_pylist()
    assert [row["stop_list_size"] for row in rows] == [0, 2, 4]  # the data has only four chunks of several characters
    assert [row["vocab_size"] for row in rows] == [262, 262, 260]
    cutoff = max(data.counts.values())
    result = freq_cutoff(data, vocab_size=262, cutoffs=[1, int(cutoff)])
    assert "vocabularies are smaller beyond" in result.findings["the encoded length changes only slightly"]


def test_any_data_and_display_in_a_notebook(data: ExperimentData) -> None:
    assert chunks(data).parameters["total"] == data.counts.total + data.heldout.total
    page = freq_cutoff("to be or not to be " * 50, vocab_size=258, cutoffs=[1])._repr_html_()
    assert page.count("data:image/svg+xml;base64,") == 1 and "unique kept, %" in page


def test_a_training_is_stopped_with_the_others(data: ExperimentData, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("batchbpe.experiments.trainings.max_at_once", lambda _: 2)
    finished: list[int] = []

    def train_and_note(*arguments: Any, **options: Any) -> Model:
        model = train(*arguments, **options)
        finished.append(options["vocab_size"])
        return model

    monkeypatch.setattr("batchbpe.experiments.trainings.train", train_and_note)
    before = set(threading.enumerate())
    trained = train_all(data, [{"vocab_size": size} for size in (300, 20_000)])
    next(trained)
    with pytest.raises(KeyboardInterrupt):
        trained.throw(KeyboardInterrupt)
    for thread in set(threading.enumerate()) - before:
        thread.join(60)
    assert finished == [300]


@pytest.mark.parametrize(
    ("grid", "problem"),
    [
        ({"vocab": [300]}, "grid must only contain vocab_size, pattern, .*, got 'vocab'"),
        ({"vocab_size": []}, "must contain a list of values"),
        ({"vocab_size": [300], "policy": ["best"]}, "must be one of 'serial', 'naive', .*, got 'best'"),
        ({"vocab_size": [300], "pattern": ["("]}, r"\("),
        ({"pattern": ["gpt4"]}, "grid must contain vocab_size"),
        ({"vocab_size": [300], "freq_cutoff": [1 << 64]}, "must contain integers below"),
    ],
)
def test_wrong_grid(grid: dict[str, list[object]], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        sweep("to be or not to be", grid=grid)

"""The experiments on data with known results, and the files they write."""

import csv
import io
import json
import re
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from batchbpe import ChunkCounts, Model, Tokenizer, policies, train
from batchbpe.cli import app
from batchbpe.data.corpus import Corpus
from batchbpe.experiments import EXPERIMENTS, ExperimentData, batching, chunks, freq_cutoff, stop_words, sweep
from batchbpe.experiments.data import split_counts
from batchbpe.experiments.report import TITLES
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


def test_every_experiment_has_a_title() -> None:
    assert set(TITLES) == set(EXPERIMENTS)


def run(*args: str, code: int | None = 0) -> str:
    """Run a command and return its output. With code=None, any failure is accepted and its message is returned."""
    done = CliRunner().invoke(app, ["experiment", *args])
    assert done.exit_code in (1, 2) if code is None else done.exit_code == code, done.output
    return done.stdout if code == 0 else done.stderr


def test_command(library: list[str], tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": library[:100]}), tmp_path / "docs.parquet")
    folder = tmp_path / "found"
    given = ["--data", str(tmp_path / "docs.parquet"), "-o", str(folder)]
    shown = run("freq-cutoff", *given, "--vocab-size", "400")
    assert "freq_cutoff" in shown and "claims of the paper, and results" in shown
    with (folder / "freq_cutoff.csv").open(newline="") as file:
        assert [row["freq_cutoff"] for row in csv.DictReader(file)] == [str(cutoff) for cutoff in range(1, 11)]
    assert (folder / "freq_cutoff.svg").read_bytes().startswith(b"<?xml")
    assert (folder / "freq_cutoff.png").read_bytes().startswith(b"\x89PNG")
    described = json.loads((folder / "experiment.json").read_text())
    assert described["parameters"]["vocab_size"] == 400
    assert described["parameters"]["data"] == [str(tmp_path / "docs.parquet")]
    assert "already exists and is not empty" in run("freq-cutoff", *given, code=1)
    few = run("stop-words", *given, "--overwrite", "--vocab-size", "200000", code=2)
    assert "no more pairs to merge" in few
    assert (folder / "freq_cutoff.csv").exists()  # a failed run keeps the old result
    again = json.loads(run("chunks", *given, "--overwrite", "--json"))
    assert sorted(map(str, folder.iterdir())) == sorted(again["files"])
    for option in ("--heldout", "--vocab-size", "--heldout-share", "--grid"):
        value = {"--heldout": str(tmp_path), "--grid": "vocab_size=300", "--vocab-size": "300"}.get(option, "1")
        wrong = run("chunks", *given, "--overwrite", option, value, code=None)
        assert f"{option} has no effect with chunks; remove it" in wrong
    assert "file not found" in run("chunks", "--data", str(tmp_path / "absent.txt"), "-o", str(tmp_path / "o"), code=1)


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
    with pytest.raises(ValueError, match="grid must contain policies with different names"):
        sweep(text, grid={"vocab_size": [262], "policy": lambdas})
    with pytest.raises(ValueError, match="policies must have different names, got '<lambda>'"):
        batching(text, vocab_size=262, policies=lambdas)
    with pytest.raises(TypeError, match="policy must be a function or one of"):
        sweep(text, grid={"vocab_size": [262], "policy": [7]})


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


def test_sweep_and_report_as_commands(library: list[str], tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": library[:60]}), tmp_path / "docs.parquet")
    plain = ["--data", str(tmp_path / "docs.parquet")]
    given = [*plain, "--vocab-size", "600"]
    shown = run("sweep", *given, "--grid", "stop_list_size=0,5", "-o", str(tmp_path / "all" / "sweep"))
    assert "shortest encoding" in shown
    assert "has no effect with chunks" in run("chunks", *plain, "--resume", "-o", str(tmp_path / "x"), code=None)
    mixed = run("sweep", *given, "--grid", r"pattern=\w+,gpt4", "-o", str(tmp_path / "x"), code=None)
    assert "must not combine regular expressions" in mixed
    assert "use --resume to continue it" in run(
        "sweep", *given, "--grid", "stop_list_size=0,5", "-o", str(tmp_path / "all" / "sweep"), code=1
    )
    assert "save standard input to a file" in run("chunks", "--data", "-", "-o", str(tmp_path / "x"), code=None)
    (tmp_path / "file").touch()
    wrong = run("chunks", *plain, "-o", str(tmp_path / "file"), "--overwrite", code=1)
    assert "is a file; use the path of a folder" in wrong
    few = run("stop-words", *plain, "-o", str(tmp_path / "x"), code=None)
    assert re.search(r"must be at most 1[\d,]+, since the data has no more pairs to merge, got 50304; reduce", few)
    assert not (tmp_path / "x").exists()  # none of these wrote anything
    run("stop-words", *given, "-o", str(tmp_path / "all" / "words"))
    assert CliRunner().invoke(app, ["report", str(tmp_path / "all")]).exit_code == 0
    page = (tmp_path / "all" / "report.html").read_text(encoding="utf-8")
    assert page.count("data:image/svg+xml;base64,") == len(list((tmp_path / "all").glob("*/*.svg"))) == 3
    assert not re.search(r'(src|href)="(?!data:)', page)
    text = (tmp_path / "all" / "report.md").read_text(encoding="utf-8")
    for link in re.findall(r"!\[.*?\]\((.*?)\)", text):
        assert (tmp_path / "all" / link).exists()
    assert "| pattern | `gpt4` |" in text and "<th>pattern<td><code>gpt4</code>" in page
    for part in ("encoded length changes by", "stop list size"):
        assert part in page and part in text
    (tmp_path / "all" / "stopped").mkdir()
    (tmp_path / "all" / "stopped" / "runs.json").write_text("{}")
    assert CliRunner().invoke(app, ["report", str(tmp_path / "all")]).exit_code == 0
    text = (tmp_path / "all" / "report.md").read_text(encoding="utf-8")
    assert "Unfinished experiments, not included: stopped" in text
    empty = CliRunner().invoke(app, ["report", str(tmp_path)])
    assert empty.exit_code == 1 and "no experiment in" in empty.stderr
    (tmp_path / "all" / "words" / "experiment.json").write_text("{")
    assert "is damaged" in CliRunner().invoke(app, ["report", str(tmp_path / "all")]).stderr
    (tmp_path / "all" / "sweep" / "leaderboard.csv").unlink()
    gone = CliRunner().invoke(app, ["report", str(tmp_path / "all" / "sweep")])
    assert (gone.exit_code, "rerun the experiment" in gone.stderr) == (1, True)


def test_nothing_is_started_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    (tmp_path / "a.txt").write_text("to be or not to be")
    wrong = run("chunks", "--data", str(tmp_path / "a.txt"), "-o", str(tmp_path / "x"), code=1)
    assert wrong == "error: figures require matplotlib; run pip install 'batchbpe[plots]'\n"
    assert not (tmp_path / "x").exists()

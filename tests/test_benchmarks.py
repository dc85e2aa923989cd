"""The benchmarks run every job on little data, in this process."""

import base64
import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from batchbpe import ChunkCounts, Tokenizer

pytest.importorskip("matplotlib")
ROOT = Path(__file__).parent.parent
TEXT = "The theory is in the inaccessible parts of the other theories, which is 12 times as old. Καλημέρα!\n"


@pytest.fixture
def benchmarks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    monkeypatch.syspath_prepend(str(ROOT))
    names = ("__main__", "jobs", "measure", "texts")
    modules = {name: importlib.import_module(f"benchmarks.{name}") for name in names}
    measure = modules["measure"]
    monkeypatch.setattr(modules["texts"], "CACHE", tmp_path / "cache")
    scale = modules["jobs"].Scale(2_000, 2_000, 270, 270, 300, (100, 200), (2_000, 4_000), 2_000, 1, 100)
    for name in ("__main__", "jobs"):
        monkeypatch.setattr(modules[name], "QUICK", scale)
    monkeypatch.setattr(
        measure, "run_apart", lambda name, params, cores: measure.run_here(measure.case_of(name, params))
    )
    return modules


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder with ranks that were trained on its text."""
    folder = tmp_path / "data"
    folder.mkdir()
    for language in ("english", "multilingual"):
        pq.write_table(pa.table({"text": [TEXT * 20] * 9}), folder / f"{language}.parquet")
    vocab = Tokenizer.train(TEXT * 9, 300, pattern="cl100k").vocab
    ranks = "".join(f"{base64.b64encode(token).decode()} {rank}\n" for rank, token in vocab.items())
    (folder / "cl100k_base.tiktoken").write_text(ranks)
    ChunkCounts.count(TEXT * 9).save(folder / "counts.csv")
    return folder


@pytest.mark.skipif(sys.platform != "linux", reason="the benchmarks read /proc")
def test_every_job_writes_tables_and_charts(benchmarks: dict[str, Any], data: Path, tmp_path: Path) -> None:
    output = tmp_path / "results"
    tools = ["batchbpe", "tiktoken", "tokenizers"]
    benchmarks["__main__"].main(["--data", str(data), "--quick", "--tools", *tools, "-o", str(output)])
    report = (output / "RESULTS.md").read_text(encoding="utf-8")
    assert [f"## {job}\n" in report for job in benchmarks["jobs"].JOBS] == [True] * len(benchmarks["jobs"].JOBS)
    assert "| tiktoken | " in report and "failed" not in report
    assert {path.name for path in (output / "charts").iterdir()} > {"encoding-dark.svg", "encoding-light.svg"}


@pytest.mark.skipif(sys.platform != "linux", reason="the benchmarks read /proc")
def test_published_tokenizers(
    benchmarks: dict[str, Any],
    data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    models = importlib.import_module("benchmarks.models")
    monkeypatch.setattr(models, "CALLED", {"Qwen 3": "qwen-3"})
    step = {"type": "Split", "pattern": {"Regex": r"\s+|\S+"}, "behavior": "Isolated", "invert": False}
    whole = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    Tokenizer.train(TEXT, 300).export(tmp_path / "tokenizer.json", "huggingface")
    parts = json.loads((tmp_path / "tokenizer.json").read_text(encoding="utf-8"))
    parts["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [step, whole]}
    for name in (*models.FAMILIES.values(), *models.CALLED.values()):
        path = tmp_path / "models/tokenizers" / name / "tokenizer.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(parts), encoding="utf-8")
    models.main(["--models", str(tmp_path / "models"), "--data", str(data), "--size", "2000", "--turns", "1"])
    report = capsys.readouterr().out
    assert report.count("## ") == 10 and "| GLM 4 | " in report and "| tokenizers | " in report
    assert "failed" not in report


def test_help_lists_the_jobs(benchmarks: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        benchmarks["__main__"].main(["--help"])
    assert "long-chunks" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ([{"ids": "1"}, {"ids": "2"}], "different ids"),
        ([{"vocabulary": ["61", "62"]}, {"vocabulary": ["61", "63"]}], r"tiktoken shares only 50.0%"),
        ([{"failed": "over 120 s"}, {}], "batchbpe over 120 s"),
    ],
)
def test_results_that_disagree(benchmarks: dict[str, Any], results: list[dict[str, Any]], message: str) -> None:
    tables = importlib.import_module("benchmarks.tables")
    rows = [benchmarks["jobs"].Row(tool, tool, "", {}) for tool in ("batchbpe", "tiktoken")]
    with pytest.raises(SystemExit, match=message):
        tables.check("title", rows, [[result] for result in results])

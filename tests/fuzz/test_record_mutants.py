"""Damaged records, spilled counts and experiments raise an error that names the file, or do not change the result.

`BATCHBPE_FUZZ_MUTANTS` sets the number of mutants of each file, 40 by default.
"""

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from helpers import multilingual
from mutants import mutants

from batchbpe import Tokenizer
from batchbpe.data.corpus import sources
from batchbpe.data.source import Source
from batchbpe.errors import Stopped
from batchbpe.experiments import report, sweep
from batchbpe.jobs.count import count_files
from batchbpe.jobs.encode import encode_files
from batchbpe.jobs.encode_options import EncodeOptions

MUTANTS = 40
TEXTS = [multilingual(300, seed) for seed in range(12)]
TOKENIZER = Tokenizer.train(iter(TEXTS), 400)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "batchbpe.data.options.ReadOptions.BATCH_CHARACTERS": 900,
        "batchbpe.jobs.count.SAVE_EVERY": -1.0,
        "batchbpe.jobs.spill.RANGES": 4,
        "os.fsync": lambda _: None,
    }.items():
        monkeypatch.setattr(name, value)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    return path


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def check(
    folder: Path, name: str, use: Callable[[Path], object], expected: object, *, seed: int, only_sizes: bool = False
) -> None:
    """Call `use` with copies of a folder, each with a mutant of one of its files."""
    whole = (folder / name).read_bytes()
    refused = 0
    for number, mutant in enumerate(mutants(whole, MUTANTS, seed)):
        if mutant == whole or (only_sizes and len(mutant) == len(whole)):
            continue
        copy = folder.parent / "copies" / folder.name
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(folder, copy)
        (copy / name).write_bytes(mutant)
        try:
            found = use(copy)
        except (ValueError, OSError) as error:
            refused += 1
            assert Path(name).name in str(error), (number, error)
        else:
            assert found == expected, f"mutant {number} of {name}, seed {seed}, changes the result"
    assert refused > MUTANTS // 3


@pytest.mark.parametrize("name", ["record.json", "part-000000.counts", "part-000001.counts"])
def test_counts(name: str, data: Path, tmp_path: Path) -> None:
    count_files(sources(data), tmp_path / "whole.parquet", threads=1)
    asked: list[int] = []
    with pytest.raises(Stopped):
        count_files(
            sources(data), tmp_path / "a.parquet", threads=1, stop=lambda: bool(asked.append(1) or len(asked) > 3)
        )

    def resumed(copy: Path) -> bytes:
        parts = tmp_path / "b.parquet.parts"
        shutil.rmtree(parts, ignore_errors=True)
        copy.rename(parts)
        count_files(sources(data), tmp_path / "b.parquet", threads=1, resume=True)
        return (tmp_path / "b.parquet").read_bytes()

    check(tmp_path / "a.parquet.parts", name, resumed, (tmp_path / "whole.parquet").read_bytes(), seed=1)


@pytest.mark.parametrize("name", ["shards.json", "shard_000000.bin"])
def test_shards(name: str, data: Path, tmp_path: Path) -> None:
    """Changes that keep the size of a shard are not detected."""
    options: Any = {"options": EncodeOptions(shard_tokens=500), "threads": 1, "resume": True}
    encode_files(TOKENIZER, sources(data), tmp_path / "whole", **options)

    def read(source: Source) -> Iterator[Any]:
        for number, documents in enumerate(sources(data)[0]):
            if number == 3:
                raise KeyboardInterrupt
            yield documents

    name_, size = sources(data)[0].name, sources(data)[0].size
    with pytest.raises(KeyboardInterrupt):
        encode_files(TOKENIZER, [Source(name_, read, size)], tmp_path / "out", **options)

    def resumed(copy: Path) -> dict[str, bytes]:
        encode_files(TOKENIZER, sources(data), copy, **options)
        return content(copy)

    check(tmp_path / "out", name, resumed, content(tmp_path / "whole"), seed=2, only_sizes=name != "shards.json")


def test_sweeps(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["batchbpe.experiments.sweep"], "_figure", lambda *_: None)
    grid = {"vocab_size": [300, 310]}
    found = sweep(data, grid=grid, folder=tmp_path / "out").table

    def resumed(copy: Path) -> pa.Table:
        return sweep(data, grid=grid, folder=copy).table

    check(tmp_path / "out", "runs.json", resumed, found, seed=3)


@pytest.mark.parametrize("name", ["experiment.json", "leaderboard.csv", "sweep.svg"])
def test_reports(name: str, data: Path, tmp_path: Path) -> None:
    sweep(data, grid={"vocab_size": [300, 310]}).save(tmp_path / "out")

    def reported(folder: Path) -> list[bytes]:
        return [path.read_bytes() for path in report(folder)]

    check(tmp_path / "out", name, reported, reported(tmp_path / "out"), seed=4)

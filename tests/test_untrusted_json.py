"""JSON that is nested too deeply, or has a number with too many digits, raises an error that names the file."""

import copy
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from data_files import documents

from batchbpe import PATTERNS, ChunkCounts, Model, RunCounts, Tokenizer
from batchbpe.errors import MAX_JSON_DEPTH
from batchbpe.formats import counts_folder
from batchbpe.formats import counts_parquet as counts
from batchbpe.formats import runs_parquet as runs
from batchbpe.storage.checked_json import load_sealed
from batchbpe.storage.locks import _owner

PLACE = "<hostile>"
HOSTILE = {
    "too deep": "[" * (MAX_JSON_DEPTH + 1) + "]" * (MAX_JSON_DEPTH + 1),
    "too deep to copy": "[" * 900 + "]" * 900,
    "too deep to parse": '{"a":' * 200_000 + "1" + "}" * 200_000,
    "too many digits": "1" * 5000,
}
MODEL = Model(split=r"\w+", merges={}, training={"log": PLACE})


def model(folder: Path, hostile: str) -> Callable[[], object]:
    path = folder / "a.model"
    Tokenizer(MODEL).save(folder / "a")
    path.write_text(path.read_text().replace(f'"{PLACE}"', hostile))
    return lambda: Tokenizer.from_file(path)


def tokenizer_json(folder: Path, hostile: str) -> Callable[[], object]:
    path = folder / "a.json"
    path.write_text(f'{{"model": {{"type": "BPE", "vocab": {{}}, "merges": {hostile}}}}}')
    return lambda: Tokenizer.from_huggingface(path)


def added_tokens(folder: Path, hostile: str) -> Callable[[], object]:
    (folder / "a").mkdir()
    Tokenizer(MODEL).save(folder / "batchbpe")
    (folder / "batchbpe.model").rename(folder / "a" / "batchbpe.model")
    (folder / "a" / "added_tokens.json").write_text(f'{{"<s>": {hostile}}}')
    return lambda: Tokenizer.from_huggingface(folder / "a")


def tiktoken(folder: Path, hostile: str) -> Callable[[], object]:
    merges = {(32, 97): 256, (32, 98): 257}
    phrases = Model(split=PATTERNS["gpt2"], merges=merges, phrases={(256, 257): 258})
    Tokenizer(phrases).export(folder / "a.tiktoken", "tiktoken")
    companion = folder / "a.tiktoken.json"
    companion.write_text(f'{{"pat_str": "x", "special_tokens": {hostile}}}')
    return lambda: Tokenizer.from_file(folder / "a.tiktoken")


def table(path: Path, key: bytes, text: str) -> None:
    schema = pa.schema([("chunk", pa.binary()), ("count", pa.int64())], metadata={key: text})
    pq.write_table(pa.table({"chunk": [b"a"], "count": [1]}, schema), path)


def counts_file(folder: Path, hostile: str) -> Callable[[], object]:
    table(folder / "a.parquet", counts.KEY, f'{{"version": 1, "pattern": "x", "total": {hostile}}}')
    return lambda: ChunkCounts.load(folder / "a.parquet")


def runs_file(folder: Path, hostile: str) -> Callable[[], object]:
    table(folder / "a.parquet", runs.KEY, f'{{"version": 1, "kind": {hostile}}}')
    return lambda: RunCounts.load(folder / "a.parquet")


def part_of_a_folder(folder: Path, hostile: str) -> Callable[[], object]:
    fields = f'{{"fields": [{{"metadata": {{"batchbpe": {{"version": 1, "pattern": {hostile}}}}}}}]}}'
    table(folder / "a.parquet", counts_folder.KEY, fields)
    (folder / "_SUCCESS").touch()
    return lambda: ChunkCounts.load(folder)


def totals_of_a_folder(folder: Path, hostile: str) -> Callable[[], object]:
    load = part_of_a_folder(folder, '"x"')
    (folder / counts_folder.TOTALS).write_text(f'{{"unique": {hostile}}}')
    return load


def record(folder: Path, hostile: str) -> Callable[[], object]:
    (folder / "a.json").write_text(f'{{"version": 1, "checksum": "x", "done": {hostile}}}')
    return lambda: load_sealed(folder / "a.json", 1, "remove it")


def jsonl(folder: Path, hostile: str) -> Callable[[], object]:
    (folder / "a.jsonl").write_text(f'{{"text": {hostile}}}')
    return lambda: [*documents(folder / "a.jsonl")]


FILES: dict[Callable[[Path, str], Callable[[], object]], str] = {
    model: "a.model",
    tokenizer_json: "a.json",
    added_tokens: "added_tokens.json",
    tiktoken: "a.tiktoken.json",
    counts_file: "a.parquet",
    runs_file: "a.parquet",
    part_of_a_folder: "a.parquet",
    totals_of_a_folder: counts_folder.TOTALS,
    record: "a.json",
    jsonl: "a.jsonl",
}


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("create", FILES)
def test_hostile_json(create: Callable[[Path, str], Callable[[], object]], hostile: str, tmp_path: Path) -> None:
    load = create(tmp_path, HOSTILE[hostile])
    with pytest.raises(ValueError, match=FILES[create].replace(".", r"\.") + "[:,]"):
        load()


@pytest.mark.parametrize("hostile", HOSTILE.values())
def test_a_hostile_lock_file_names_no_owner(hostile: str, tmp_path: Path) -> None:
    (tmp_path / "a.lock").write_text(f'{{"pid": {hostile}, "host": "a", "since": "b"}}')
    assert _owner(tmp_path / "a.lock") is None


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model)), repr, json.dumps])
def test_the_deepest_training_log_is_usable(copied: Any, tmp_path: Path) -> None:
    depth = MAX_JSON_DEPTH - 2  # in two objects
    loaded: Any = model(tmp_path, "[" * depth + "]" * depth)()
    assert copied(loaded.model if copied is not json.dumps else dict(loaded.model.training))
    loaded.save(tmp_path / "b")
    again = Tokenizer.from_file(tmp_path / "b.model")
    assert again.model.training == loaded.model.training

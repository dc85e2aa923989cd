"""The command line: files that cannot be read or written."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import run, slashes

from batchbpe import ChunkCounts


def test_files_that_cannot_be_read(place: Path) -> None:
    Path("bad.txt").write_bytes(b"\xff")
    strict = run("count bad.txt book.txt -o a.csv -q")
    assert (strict.exit_code, Path("a.csv").exists()) == (1, False)
    result = run("count bad.txt book.txt -o a.csv --skip-errors")
    assert result.exit_code == 1
    assert "bad.txt: the text is invalid UTF-8 at byte 0; --replace-errors replaces it with U+FFFD\n" in result.stderr
    assert result.stderr.endswith(
        "error: 1 file could not be read completely; the output may include data read before the error\n"
    )
    assert ChunkCounts.load("a.csv") == ChunkCounts.load("counts.parquet")
    assert run("count bad.txt -o b.csv -q --replace-errors").exit_code == 0


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("count locked.txt -o a.csv", "cannot read locked.txt: permission denied"),
        ("count locked.txt -o a.csv --skip-errors -q", "cannot read locked.txt: permission denied"),
        ("count locked.parquet -o a.csv", "cannot read locked.parquet: permission denied"),
        ("count folder -o a.csv", "cannot read folder/locked: permission denied"),
        ("count folder -o a.csv --skip-errors -q", "cannot read folder/locked: permission denied"),
        ("count folder/locked -o a.csv", "cannot read folder/locked: permission denied"),
        ("count folder/locked/a.txt -o a.csv", "cannot read folder/locked/a.txt: permission denied"),
        ("count unsearchable -o a.csv", "cannot read unsearchable/a.txt: permission denied"),
        ("train folder -n 300 -o a", "cannot read folder/locked: permission denied"),
        ("evaluate mine.model --data folder", "cannot read folder/locked: permission denied"),
        ("encode locked.model book.txt", "cannot read locked.model: permission denied"),
        ("inspect locked.parquet", "cannot read locked.parquet: permission denied"),
        ("decode mine.model locked.npy", "cannot read locked.npy: permission denied"),
        ("report folder/locked", "cannot read folder/locked: permission denied"),
        ("encode mine.model book.txt -o read_only/a.npy", "cannot write read_only/a.npy: permission denied"),
        ("encode mine.model book.txt -o read_only/a", "cannot write read_only/a: permission denied"),
        ("train book.txt -n 300 -o read_only/a", "cannot write read_only/a.model: permission denied"),
        ("experiment chunks --data book.txt -o read_only/a", "cannot write read_only/a: permission denied"),
    ],
)
def test_permission_denied(command: str, problem: str, place: Path, unprivileged: None) -> None:
    for name in ("locked.txt", "locked.parquet", "locked.model", "locked.npy"):
        Path(name).touch(mode=0)
    for name, mode in {"folder/locked": 0, "unsearchable": 0o444, "read_only": 0o555}.items():
        Path(name).mkdir(parents=True)
        Path(name, "a.txt").touch()
        Path(name).chmod(mode)
    Path("folder/a.txt").write_text("to be")
    result = run(command)
    for name in ("folder/locked", "unsearchable", "read_only"):
        Path(name).chmod(0o755)
    assert result.exit_code == 1
    assert slashes(result.stderr.splitlines()[0].removeprefix("error: ")) == problem


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("inspect cut.parquet", "cut.parquet: not a parquet file, or damaged"),
        ("train cut.parquet -n 300 -o a", "cut.parquet: not a parquet file, or damaged"),
        ("decode mine.model cut.npy", "cut.npy: not a .npy file, or damaged"),
        ("decode mine.model large.npy", "large.npy: token id 9999 does not exist; the largest id is 599"),
        (
            "encode cut.model book.txt",
            "cut.model: not a batchbpe model file, or damaged: invalid JSON at character",
        ),
        (
            "encode bad.model book.txt",
            """bad.model, field "pattern": must be a supported regular expression, got '[a'""",
        ),
        ("inspect bad.csv", "bad.csv, line 2: the count must be an integer"),
        ("inspect new.parquet", "new.parquet: version must be from 1 to 2, got 3; upgrade batchbpe"),
        (
            "inspect text.parquet",
            "text.parquet: not a file of chunk counts: the metadata has no valid key 'batchbpe'; "
            "create one with batchbpe count",
        ),
    ],
)
def test_damaged_files(command: str, problem: str, place: Path) -> None:
    Path("cut.npy").write_bytes(b"\x93NUMPY")
    np.save("large.npy", np.array([97, 9999]))
    for whole in ("mine.model", "counts.parquet"):
        content = Path(whole).read_bytes()
        Path(f"cut{Path(whole).suffix}").write_bytes(content[: len(content) // 2])
    Path("bad.model").write_text(json.dumps(json.loads(Path("mine.model").read_text()) | {"pattern": "[a"}))
    Path("bad.csv").write_text("text_chunk,count\na,x\n")
    table = pa.table({"text": ["to be"]})
    pq.write_table(table, "text.parquet")
    pq.write_table(table.replace_schema_metadata({"batchbpe": '{"version": 3}'}), "new.parquet")
    result = run(command)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"error: {problem}"), result.stderr

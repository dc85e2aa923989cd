"""Encoding files into shards: the ids of each document in its order, however often it was interrupted."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import multilingual

from batchbpe import Tokenizer
from batchbpe.data.corpus import sources
from batchbpe.data.readers import Source
from batchbpe.data.sampling import Selection
from batchbpe.jobs.encode import encode_documents, encode_files, encode_sources
from batchbpe.jobs.ids import load_ids, save_ids

END = "<|endoftext|>"
TEXTS = [multilingual(2000, seed) for seed in range(60)]
TOKENIZER = Tokenizer.train(iter(TEXTS), 1000, special_tokens=[END])
LARGE = Tokenizer.train(iter(TEXTS), 1000, special_tokens={END: 70_000})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("batchbpe.data.readers.BATCH_CHARACTERS", 8000)
    monkeypatch.setattr("batchbpe.data.tables.BATCH_CHARACTERS", 8000)
    monkeypatch.setattr("batchbpe.data.arrow_strings.BATCH_CHARACTERS", 8000)
    monkeypatch.setattr("batchbpe.data.readers.BLOCK", 5000)
    data = tmp_path / "data"
    data.mkdir()
    pq.write_table(pa.table({"text": TEXTS[:40]}), data / "a.parquet", row_group_size=10)
    (data / "b.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS[40:59]))
    (data / "c.txt").write_text(TEXTS[59] * 5, encoding="utf-8")
    return data


def expected(tokenizer: Tokenizer, end: bool) -> list[list[int]]:
    ids = tokenizer.encode_ordinary_batch([*TEXTS[:59], TEXTS[59] * 5])
    return [[*each, tokenizer.special_tokens[END]] if end else each for each in ids]


def shards(folder: Path) -> list[Path]:
    return [folder / name for name in json.loads((folder / "shards.json").read_text())["shards"]]


@pytest.mark.parametrize("end", [None, END])
@pytest.mark.parametrize(("tokenizer", "dtype"), [(TOKENIZER, np.uint16), (LARGE, np.uint32)])
def test_as_nanogpt_reads_them(tokenizer: Tokenizer, dtype: Any, end: str | None, folder: Path, tmp_path: Path) -> None:
    record = encode_files(tokenizer, sources(folder), tmp_path / "out", end_of_text=end, shard_tokens=5000)
    assert len(shards(tmp_path / "out")) > 3
    ids = np.concatenate([np.memmap(path, dtype, "r") for path in shards(tmp_path / "out")])
    assert ids.tolist() == list(chain.from_iterable(expected(tokenizer, bool(end))))
    assert (record["tokens"], record["documents"], record["finished"]) == (len(ids), 60, True)


@pytest.mark.parametrize(
    ("tokenizer", "dtype", "begins"), [(TOKENIZER, np.uint16, (20240520, 1)), (LARGE, np.uint32, (20240801, 7))]
)
def test_as_llm_c_reads_them(tokenizer: Tokenizer, dtype: Any, begins: Any, folder: Path, tmp_path: Path) -> None:
    encode_files(tokenizer, sources(folder), tmp_path / "out", format="llm.c", shard_tokens=9000)
    every = []
    for path in shards(tmp_path / "out"):
        header = np.fromfile(path, np.int32, 256)
        ids = np.fromfile(path, dtype, offset=1024)
        assert tuple(header[:3]) == (*begins, len(ids)) and not header[3:].any()
        assert load_ids(path, tokenizer).tolist() == ids.tolist()
        every += ids.tolist()
    assert every == list(chain.from_iterable(expected(tokenizer, False)))


@pytest.mark.parametrize("end", [None, END])
def test_as_parquet(end: str | None, folder: Path, tmp_path: Path) -> None:
    encode_files(TOKENIZER, sources(folder), tmp_path / "out", format="parquet", end_of_text=end, shard_tokens=9000)
    rows = [row for path in shards(tmp_path / "out") for row in pq.read_table(path)["ids"].to_pylist()]
    assert rows == expected(TOKENIZER, bool(end))


def interrupted(given: list[Source], batches: int) -> list[Source]:
    """The same sources, and Ctrl-C after so many batches of theirs."""
    left = iter(range(batches))

    def read(source: Source) -> Iterator[Any]:
        for documents in source:
            if next(left, None) is None:
                raise KeyboardInterrupt
            yield documents

    return [Source(source.name, lambda _, source=source: read(source), source.size) for source in given]  # type: ignore[misc]


@pytest.mark.parametrize(("form", "limit"), [("bin", None), ("bin", 200_000), ("llm.c", None), ("parquet", None)])
def test_stopped_again_and_again(form: Any, limit: int | None, folder: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"format": form, "end_of_text": END, "shard_tokens": 4000}
    part = partial(Selection, limit_bytes=limit)
    encode_files(TOKENIZER, sources(folder), tmp_path / "whole", selection=part(), **options)
    stops = 0
    finished = False
    while not finished:
        some = interrupted(sources(folder), 9 + stops)
        try:
            record = encode_files(TOKENIZER, some, tmp_path / "out", resume=True, selection=part(), **options)
            finished = record["finished"]
        except KeyboardInterrupt:
            stops += 1
    assert stops > 1
    for one, other in zip(shards(tmp_path / "whole"), shards(tmp_path / "out"), strict=True):
        assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize("long", [0, 1 << 20])
def test_what_comes_before_an_error_is_encoded(long: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it was read while others were encoded; nothing that comes after it is."""
    monkeypatch.setattr("batchbpe.jobs.encode.LONG", long)

    def stream(bad: Any) -> Iterator[Any]:
        yield from ([text] for text in TEXTS[:4])
        yield bad
        yield [TEXTS[5]]
        raise OSError("gone")

    for bad, error in ((["\ud800"], "surrogate"), ({b"a": 1}, "chunk counts"), ([TEXTS[4]], "gone")):
        encoded = encode_documents(TOKENIZER, stream(bad), None)
        for text in TEXTS[: 6 if error == "gone" else 4]:
            assert [some.ids.tolist() for some in next(encoded)] == [TOKENIZER.encode_ordinary(text)]
        with pytest.raises((ValueError, OSError), match=error):
            list(next(encoded))


def test_a_job_that_was_killed_goes_on(folder: Path, tmp_path: Path) -> None:
    """Also before its first shard: all it has left then is a part of that, under a hidden name."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / ".shard_000000.bin.abc.tmp").write_bytes(b"half")
    assert encode_files(TOKENIZER, sources(folder), tmp_path / "out", resume=True)["documents"] == 60
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["shard_000000.bin", "shards.json"]


@pytest.mark.parametrize("damage", ["shards.json", "shard_000000.bin"])
def test_what_is_damaged_is_refused(damage: str, folder: Path, tmp_path: Path) -> None:
    """Shards by their size: they are not read again."""
    encode_files(TOKENIZER, sources(folder), tmp_path / "out")
    path = tmp_path / "out" / damage
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(ValueError, match=rf"{damage} is damaged: it .*; remove .*out to start again"):
        encode_files(TOKENIZER, sources(folder), tmp_path / "out", resume=True)


@pytest.mark.skipif(os.name != "posix", reason="locks are posix")
@pytest.mark.parametrize("output", ["out", "out.npy"])
def test_two_jobs_with_one_output(output: str, folder: Path, tmp_path: Path) -> None:
    """In two processes: the second is refused, and does not disturb the first."""
    TOKENIZER.save(tmp_path / "mine")
    asked: list[str] = []

    def read(source: Source) -> Iterator[Any]:
        given = ["encode", str(tmp_path / "mine.model"), str(folder), "-o", str(tmp_path / output)]
        done = subprocess.run([sys.executable, "-m", "batchbpe", *given], capture_output=True, text=True)
        asked.append(done.stderr)
        yield TEXTS

    some = [Source("", read)]
    if output == "out":
        encode_files(TOKENIZER, some, tmp_path / output)
    else:
        encoded = chain.from_iterable(encode_documents(TOKENIZER, some[0], None))
        save_ids(encoded, tmp_path / output, TOKENIZER)
    assert asked[0].startswith(f"error: {tmp_path / output} is being written by process {os.getpid()} on host ")
    left = sorted(path.name for path in tmp_path.rglob("*") if path.name.startswith(".") or "shard" in path.name)
    assert left == (["shard_000000.bin", "shards.json"] if output == "out" else [])


@pytest.mark.parametrize("form", ["bin", "llm.c", "parquet"])
def test_a_full_disk_is_named(form: Any, folder: Path, tmp_path: Path) -> None:
    """As a limit of the size of files, which every user may set."""
    code = """if True:
        import resource, signal, sys
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
        from batchbpe import __main__
        __main__.main()
    """
    pytest.importorskip("resource")
    TOKENIZER.save(tmp_path / "mine")
    given = ["encode", "mine.model", str(folder), "-o", "out", "--format", form]
    done = subprocess.run([sys.executable, "-c", code, *given], cwd=tmp_path, capture_output=True, text=True)
    suffix = "parquet" if form == "parquet" else "bin"
    assert done.stderr == f"error: cannot write out/shard_000000.{suffix}: File too large\n"
    assert done.returncode == 1 and not list((tmp_path / "out").iterdir())


def test_errors_of_reading_are_not_those_of_writing(tmp_path: Path) -> None:
    def broken(_: Source) -> Iterator[Any]:
        yield TEXTS[:1]
        raise OSError(5, "Error reading bytes from file")  # as pyarrow has it: without a name

    encoded = encode_sources(TOKENIZER, [Source("in.parquet", broken)], Selection(), None, "strict")
    with pytest.raises(ValueError, match=r"^in\.parquet: .*Error reading bytes"):
        save_ids(encoded, tmp_path / "out.npy", TOKENIZER)
    assert not list(tmp_path.iterdir())


def test_a_job_that_was_killed_before_its_record(folder: Path, tmp_path: Path) -> None:
    """Between the name of the first shard and the record of it."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "shard_000000.bin").write_bytes(b"first")
    with pytest.raises(FileExistsError, match="out holds other files"):
        encode_files(TOKENIZER, sources(folder), tmp_path / "out")
    assert encode_files(TOKENIZER, sources(folder), tmp_path / "out", resume=True)["documents"] == 60
    encode_files(TOKENIZER, sources(folder), tmp_path / "whole")
    assert shards(tmp_path / "out")[0].read_bytes() == shards(tmp_path / "whole")[0].read_bytes()


def test_what_goes_wrong(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"there is no special token '<eos>' to end a text with, only <\|endoftext\|>"):
        encode_files(TOKENIZER, sources(folder), tmp_path / "out", end_of_text="<eos>")
    encode_files(TOKENIZER, sources(folder / "c.txt"), tmp_path / "out")
    with pytest.raises(FileExistsError, match="out holds shards already: give another folder, or --resume to go on"):
        encode_files(TOKENIZER, sources(folder), tmp_path / "out")
    for changed, problem in (
        ({"end_of_text": END}, "it was begun with end_of_text=None"),
        ({"selection": Selection(sample=0.5)}, r"it was begun with sample=1\.0"),
        ({"columns": ["body"]}, "it was begun with columns"),
    ):
        with pytest.raises(ValueError, match=rf"shards\.json: {problem}"):
            encode_files(TOKENIZER, sources(folder), tmp_path / "out", resume=True, **changed)
    with pytest.raises(ValueError, match=r"shards\.json: it was begun with vocabulary="):
        encode_files(Tokenizer.train("to be", 258), sources(folder), tmp_path / "out", resume=True)
    shards(tmp_path / "out")[0].rename(tmp_path / "gone")
    with pytest.raises(FileNotFoundError, match=r"shard_000000\.bin is gone: remove .*out to begin anew"):
        encode_files(TOKENIZER, sources(folder), tmp_path / "out", resume=True)
    (folder / "c.txt").write_bytes(b"good \xff")
    with pytest.raises(ValueError, match=r"c\.txt: the text is invalid UTF-8 at byte 5"):
        encode_files(TOKENIZER, sources(folder / "c.txt"), tmp_path / "new")
    record = encode_files(TOKENIZER, sources(folder), tmp_path / "skipped", skip_errors=True)
    assert [Path(name).name for name in record["failed"]] == ["c.txt"]
    assert record["documents"] == 59
    encode_files(TOKENIZER, sources(folder / "c.txt"), tmp_path / "replaced", errors="replace")
    assert load_ids(shards(tmp_path / "replaced")[0], TOKENIZER).tolist() == TOKENIZER.encode("good �")

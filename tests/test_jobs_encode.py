"""Encoding files into shards: the ids do not depend on interruptions, and other tools can read them."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import multilingual

from batchbpe import Model, Tokenizer
from batchbpe.data.corpus import sources
from batchbpe.data.documents import Counts, Documents, Texts
from batchbpe.data.options import ReadOptions, Sampling
from batchbpe.data.source import Source
from batchbpe.errors import OutputExistsError
from batchbpe.jobs.encode import encode_files
from batchbpe.jobs.encode_options import EncodeOptions
from batchbpe.jobs.encoded import DocumentEncoder
from batchbpe.jobs.ids import read_ids, save_ids
from batchbpe.storage.locks import has_locks

END = "<|endoftext|>"
TEXTS = [multilingual(2000, seed) for seed in range(60)]
TOKENIZER = Tokenizer.train(iter(TEXTS), 1000, special_tokens=[END])
LARGE = Tokenizer.train(iter(TEXTS), 1000, special_tokens={END: 70_000})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("batchbpe.data.options.ReadOptions.BATCH_CHARACTERS", 8000)
    monkeypatch.setattr("batchbpe.data.text_files.BLOCK", 5000)
    data = tmp_path / "data"
    data.mkdir()
    pq.write_table(pa.table({"text": TEXTS[:40]}), data / "a.parquet", row_group_size=10)
    (data / "b.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS[40:59]))
    (data / "c.txt").write_text(TEXTS[59] * 5, encoding="utf-8")
    return data


def expected(tokenizer: Tokenizer, end: bool) -> list[list[int]]:
    ids = tokenizer.encode_ordinary_batch([*TEXTS[:59], TEXTS[59] * 5])
    return [[*each, tokenizer.special_tokens[END]] if end else each for each in ids]


def read(path: Path, tokenizer: Tokenizer) -> list[int]:
    return [int(each) for _, ids in read_ids(path, tokenizer) for each in ids]


def shards(folder: Path) -> list[Path]:
    return [folder / name for name in json.loads((folder / "shards.json").read_text())["files"]]


@pytest.mark.parametrize("end", [False, END])
@pytest.mark.parametrize(("tokenizer", "dtype"), [(TOKENIZER, np.uint16), (LARGE, np.uint32)])
def test_as_nanogpt_reads_them(tokenizer: Tokenizer, dtype: Any, end: str | bool, folder: Path, tmp_path: Path) -> None:
    options = EncodeOptions(append_eos=end, shard_tokens=5000)
    report = encode_files(tokenizer, sources(folder), tmp_path / "out", options)
    assert len(shards(tmp_path / "out")) > 3
    ids = np.concatenate([np.memmap(path, dtype, "r") for path in shards(tmp_path / "out")])
    assert ids.tolist() == list(chain.from_iterable(expected(tokenizer, bool(end))))
    assert (report.tokens, report.documents, report.finished) == (len(ids), 60, True)


@pytest.mark.parametrize(
    ("tokenizer", "dtype", "magic"), [(TOKENIZER, np.uint16, (20240520, 1)), (LARGE, np.uint32, (20240801, 7))]
)
def test_as_llm_c_reads_them(tokenizer: Tokenizer, dtype: Any, magic: Any, folder: Path, tmp_path: Path) -> None:
    encode_files(tokenizer, sources(folder), tmp_path / "out", EncodeOptions("llm.c", shard_tokens=9000))
    every = []
    for path in shards(tmp_path / "out"):
        header = np.fromfile(path, np.int32, 256)
        ids = np.fromfile(path, dtype, offset=1024)
        assert tuple(header[:3]) == (*magic, len(ids)) and not header[3:].any()
        assert read(path, tokenizer) == ids.tolist()
        every += ids.tolist()
    assert every == list(chain.from_iterable(expected(tokenizer, False)))


@pytest.mark.parametrize("end", [False, END])
def test_as_parquet(end: str | bool, folder: Path, tmp_path: Path) -> None:
    options = EncodeOptions("parquet", append_eos=end, shard_tokens=9000)
    encode_files(TOKENIZER, sources(folder), tmp_path / "out", options)
    rows = [row for path in shards(tmp_path / "out") for row in pq.read_table(path)["ids"].to_pylist()]
    assert rows == expected(TOKENIZER, bool(end))


def interrupted(given: list[Source], batches: int) -> list[Source]:
    """Return the same sources, which raise KeyboardInterrupt after some batches."""
    left = iter(range(batches))

    def read(source: Source) -> Iterator[Any]:
        for documents in source:
            if next(left, None) is None:
                raise KeyboardInterrupt
            yield documents

    return [Source(source.name, lambda _, source=source: read(source), source.size) for source in given]  # type: ignore[misc]


@pytest.mark.parametrize(("form", "limit"), [("bin", None), ("bin", 200_000), ("llm.c", None), ("parquet", None)])
def test_stopped_again_and_again(form: Any, limit: int | None, folder: Path, tmp_path: Path) -> None:
    options = EncodeOptions(form, append_eos=True, shard_tokens=4000, sampling=Sampling(limit_bytes=limit))
    encode_files(TOKENIZER, sources(folder), tmp_path / "whole", options)
    stops = 0
    finished = False
    while not finished:
        some = interrupted(sources(folder), 9 + stops)
        try:
            finished = encode_files(TOKENIZER, some, tmp_path / "out", options, resume=True).finished
        except KeyboardInterrupt:
            stops += 1
    assert stops > 1
    for one, other in zip(shards(tmp_path / "whole"), shards(tmp_path / "out"), strict=True):
        assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize("long", [0, 1 << 20])
def test_documents_before_an_error_are_encoded(long: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading runs ahead of encoding, but errors are raised in order."""
    monkeypatch.setattr("batchbpe.jobs.encoded.LONG", long)

    def stream(bad: Documents) -> Iterator[Documents]:
        yield from (Texts([text]) for text in TEXTS[:4])
        yield bad
        yield Texts([TEXTS[5]])
        raise OSError("gone")

    for bad, error in (
        (Texts(["\ud800"]), "surrogate"),
        (Counts({b"a": 1}), "chunk counts"),
        (Texts([TEXTS[4]]), "gone"),
    ):
        encoded = DocumentEncoder(TOKENIZER).batches(stream(bad))
        for text in TEXTS[: 6 if error == "gone" else 4]:
            assert [some.ids.tolist() for some in next(encoded)] == [TOKENIZER.encode_ordinary(text)]
        with pytest.raises((ValueError, OSError), match=error):
            list(next(encoded))


def test_resuming_a_job_that_was_killed_before_its_first_shard(folder: Path, tmp_path: Path) -> None:
    """Only an incomplete shard is left, under a temporary name."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / ".shard_000000.bin.abc.tmp").write_bytes(b"half")
    assert encode_files(TOKENIZER, sources(folder), tmp_path / "out", resume=True).documents == 60
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["shard_000000.bin", "shards.json"]


@pytest.mark.parametrize("damage", ["shards.json", "shard_000000.bin"])
def test_damaged_files_are_refused(damage: str, folder: Path, tmp_path: Path) -> None:
    """Only the size of shards is checked; they are not read again."""
    encode_files(TOKENIZER, sources(folder), tmp_path / "out")
    path = tmp_path / "out" / damage
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(ValueError, match=rf"{damage}: the file is damaged: .*; remove .*out to start again"):
        encode_files(TOKENIZER, sources(folder), tmp_path / "out", resume=True)


@pytest.mark.skipif(not has_locks(), reason="the system has no flock")
@pytest.mark.parametrize("output", ["out", "out.npy"])
def test_two_jobs_with_one_output(output: str, folder: Path, tmp_path: Path) -> None:
    """A second process is refused, and does not disturb the first."""
    TOKENIZER.save(tmp_path / "mine")
    errors: list[str] = []

    def read(source: Source) -> Iterator[Documents]:
        arguments = ["encode", str(tmp_path / "mine.model"), str(folder), "-o", str(tmp_path / output)]
        second = subprocess.run([sys.executable, "-m", "batchbpe", *arguments], capture_output=True, text=True)
        errors.append(second.stderr)
        yield Texts(TEXTS)

    some = [Source("", read)]
    if output == "out":
        encode_files(TOKENIZER, some, tmp_path / output)
    else:
        encoded = chain.from_iterable(DocumentEncoder(TOKENIZER).batches(some[0]))
        save_ids(encoded, tmp_path / output, TOKENIZER)
    assert errors[0].startswith(f"error: {tmp_path / output} is being written by process {os.getpid()} on host ")
    left = sorted(path.name for path in tmp_path.rglob("*") if path.name.startswith(".") or "shard" in path.name)
    assert left == (["shard_000000.bin", "shards.json"] if output == "out" else [])


@pytest.mark.parametrize("form", ["bin", "llm.c", "parquet"])
def test_a_full_disk(form: Any, folder: Path, tmp_path: Path) -> None:
    """Simulated by a limit on the size of files."""
    code = """if True:
        import resource, signal, sys
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
        from batchbpe import __main__
        __main__.main()
    """
    pytest.importorskip("resource")
    TOKENIZER.save(tmp_path / "mine")
    arguments = ["encode", "mine.model", str(folder), "-o", "out", "--format", form]
    done = subprocess.run([sys.executable, "-c", code, *arguments], cwd=tmp_path, capture_output=True, text=True)
    suffix = "parquet" if form == "parquet" else "bin"
    assert done.stderr == f"error: cannot write out/shard_000000.{suffix}: file too large\n"
    assert done.returncode == 1 and not list((tmp_path / "out").iterdir())


def test_read_errors_do_not_name_the_output(tmp_path: Path) -> None:
    def broken(_: Source) -> Iterator[Any]:
        yield Texts(TEXTS[:1])
        raise OSError(5, "Error reading bytes from file")  # like the errors of pyarrow, without a file name

    encoded = DocumentEncoder(TOKENIZER).sources([Source("in.parquet", broken)], Sampling())
    with pytest.raises(ValueError, match=r"^cannot read in\.parquet: input/output error$"):
        save_ids(encoded, tmp_path / "out.npy", TOKENIZER)
    assert not list(tmp_path.iterdir())


def test_resuming_a_job_that_was_killed_before_its_first_record(folder: Path, tmp_path: Path) -> None:
    """The first shard is written, but not recorded."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "shard_000000.bin").write_bytes(b"first")
    with pytest.raises(FileExistsError, match="out contains other files"):
        encode_files(TOKENIZER, sources(folder), tmp_path / "out")
    assert encode_files(TOKENIZER, sources(folder), tmp_path / "out", resume=True).documents == 60
    encode_files(TOKENIZER, sources(folder), tmp_path / "whole")
    assert shards(tmp_path / "out")[0].read_bytes() == shards(tmp_path / "whole")[0].read_bytes()


MARK = "<\n>"  # a special token that a block of a text file could end in
MARKED = [f"{END}{text[:300]}{END}\n{text[300:]}{MARK}\n" for text in TEXTS[:20]]


@pytest.mark.parametrize("special_tokens", [[END], [END, MARK]])
@pytest.mark.parametrize("form", ["bin", "parquet"])
def test_special_tokens_in_the_text(
    special_tokens: list[str], form: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In documents of tables, jsonl and memory, and in a text file that is read in blocks."""
    monkeypatch.setattr("batchbpe.data.text_files.BLOCK", 5000)
    tokenizer = Tokenizer.train(iter(TEXTS), 700, special_tokens=special_tokens)
    data = tmp_path / "data"
    data.mkdir()
    pq.write_table(pa.table({"text": MARKED[:9]}), data / "a.parquet")
    (data / "b.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in MARKED[9:19]))
    (data / "c.txt").write_text(MARKED[19] * 9, encoding="utf-8")
    documents = [*MARKED[:19], MARKED[19] * 9, *MARKED]
    for allow_special in (False, True):
        options = EncodeOptions(form, append_eos=True, allow_special=allow_special, shard_tokens=5000)
        folder = tmp_path / f"out{allow_special}"
        encode_files(tokenizer, [*sources(data), *sources(iter(MARKED))], folder, options)
        ids = tokenizer.encode_batch(documents, "all" if allow_special else "none")
        every = [[*each, tokenizer.special_tokens[END]] for each in ids]
        if form == "bin":
            written = np.concatenate([np.fromfile(path, np.uint16) for path in shards(folder)]).tolist()
            assert written == list(chain.from_iterable(every))
        else:
            assert [row for path in shards(folder) for row in pq.read_table(path)["ids"].to_pylist()] == every
    assert tokenizer.special_tokens[special_tokens[-1]] in ids[0]


def test_resuming_with_another_model(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("to be or not to be")
    model = Model(split=r" ?\w+", merges={(32, 98): 256, (256, 101): 257}, special_tokens={"<s>": 300})
    encode_files(Tokenizer(model), sources(tmp_path / "a.txt"), tmp_path / "out")
    changes: list[dict[str, Any]] = [
        {"split": r"\w+"},
        {"merges": {(32, 98): 256}},
        {"stop_words": {b" not": 258}},
        {"special_tokens": {}},
        {"phrases": {(257, 257): 258}},
    ]
    for change in changes:
        with pytest.raises(ValueError, match=r"shards\.json: the job was started with another model or version"):
            encode_files(
                Tokenizer(replace(model, **change)), sources(tmp_path / "a.txt"), tmp_path / "out", resume=True
            )


def test_errors(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"append_eos must be a special token of the model \(<\|endoftext\|>\), got '<eos>'"
    ):
        encode_files(TOKENIZER, sources(folder), tmp_path / "out", EncodeOptions(append_eos="<eos>"))
    with pytest.raises(TypeError, match="allow_special must be True or False, got 'all'"):
        EncodeOptions(allow_special="all")  # type: ignore[arg-type]
    encode_files(TOKENIZER, sources(folder / "c.txt"), tmp_path / "out")
    already = "out already contains shards; continue with resume=True, or choose another folder$"
    with pytest.raises(OutputExistsError, match=already):
        encode_files(TOKENIZER, sources(folder), tmp_path / "out")
    for changed, problem in (
        (EncodeOptions(append_eos=True), "the job was started with append_eos=False, got True"),
        (EncodeOptions(allow_special=True), "the job was started with allow_special=False, got True"),
        (EncodeOptions(sampling=Sampling(0.5)), r"the job was started with sample=1\.0, got 0\.5"),
        (EncodeOptions(reading=ReadOptions("body")), "the job was started with text_column='text', got 'body'"),
    ):
        with pytest.raises(ValueError, match=rf"shards\.json: {problem}"):
            encode_files(TOKENIZER, sources(folder), tmp_path / "out", changed, resume=True)
    shards(tmp_path / "out")[0].rename(tmp_path / "gone")
    with pytest.raises(FileNotFoundError, match=r"shard_000000\.bin is missing; remove .*out to start again"):
        encode_files(TOKENIZER, sources(folder), tmp_path / "out", resume=True)
    (folder / "c.txt").write_bytes(b"good \xff")
    with pytest.raises(ValueError, match=r"c\.txt: the text is invalid UTF-8 at byte 5"):
        encode_files(TOKENIZER, sources(folder / "c.txt"), tmp_path / "new")
    report = encode_files(TOKENIZER, sources(folder), tmp_path / "skipped", skip_errors=True)
    assert [Path(name).name for name in report.failed] == ["c.txt"]
    assert report.documents == 59
    encode_files(
        TOKENIZER,
        sources(folder / "c.txt"),
        tmp_path / "replaced",
        EncodeOptions(reading=ReadOptions(errors="replace")),
    )
    assert read(shards(tmp_path / "replaced")[0], TOKENIZER) == TOKENIZER.encode("good �")


def stop_after(shards: int, folder: Path, out: Path, files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Start a job, and stop it after some shards."""
    from batchbpe.jobs.resume import Record

    save, left = Record.save, iter(range(shards))

    def save_or_stop(record: Record, state: Any) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt
        save(record, state)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("batchbpe.jobs.resume.Record.save", save_or_stop)
        encode_files(TOKENIZER, sources(files), out, EncodeOptions(shard_tokens=5000, validation=0.3))


def test_resuming_with_other_files(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is encoded twice, and nothing is left out."""
    first, second, third = sorted(folder.iterdir())
    out, options = tmp_path / "out", EncodeOptions(shard_tokens=5000, validation=0.3)
    stop_after(2, folder, out, [first, second], monkeypatch)
    for files in ([second, first], [third, first, second]):
        with pytest.raises(ValueError, match=r"the files are in another order: .* comes before .*a\.parquet"):
            encode_files(TOKENIZER, sources(files), out, options, resume=True)
    assert encode_files(TOKENIZER, sources([first, second, third]), out, options, resume=True).documents == 60
    with pytest.raises(OutputExistsError, match=r"out is finished, and .*d\.txt is not part of it"):
        (folder / "d.txt").write_text("new")
        encode_files(TOKENIZER, sources([first, second, third, folder / "d.txt"]), out, options, resume=True)


def test_shards_that_were_not_recorded_are_removed(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, out, options = sorted(folder.iterdir()), tmp_path / "out", EncodeOptions(shard_tokens=5000, validation=0.3)
    stop_after(2, folder, out, files, monkeypatch)
    assert (out / "train" / "shard_000002.bin").exists()

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("batchbpe.jobs.encode._EncodeJob.encode", interrupted)
        encode_files(TOKENIZER, sources(files), out, options, resume=True)
    assert not [*out.rglob("shard_000002.bin")]


def test_standard_input_cannot_be_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = [sys.executable, "-m", "batchbpe", "encode", "mine.model", "--document", "line", "-o", "out"]
    TOKENIZER.save(tmp_path / "mine")
    assert subprocess.run(command, cwd=tmp_path, input="a\nb\n", text=True).returncode == 0
    again = subprocess.run([*command, "--resume"], cwd=tmp_path, input="c\n", text=True, capture_output=True)
    assert again.returncode == 1 and "standard input can be read only once" in again.stderr


def test_inputs_in_the_output_folder(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"a\.parquet is in the output folder, .*data"):
        encode_files(TOKENIZER, sources(folder), folder)

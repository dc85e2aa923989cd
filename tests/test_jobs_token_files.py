"""Each format against a reader written from its specification; shards, validation, resuming and decoding."""

import gzip
import json
import struct
import tempfile
import zlib
from collections.abc import Iterator
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow.parquet as pq
import pytest
from helpers import multilingual, run
from hypothesis import given, settings
from hypothesis import strategies as st

from batchbpe import Model, Tokenizer
from batchbpe.choices import TokenFormat
from batchbpe.data.corpus import sources
from batchbpe.data.documents import Documents, Texts
from batchbpe.data.options import ReadOptions
from batchbpe.data.source import Source
from batchbpe.jobs.encode import EncodeOptions, encode_files
from batchbpe.jobs.ids import decoded, read_ids
from batchbpe.jobs.token_files import FORMATS

BOS, EOS = "<s>", "</s>"
FORMAT_NAMES = get_args(TokenFormat)
IN_SHARDS = [name for name in FORMAT_NAMES if name != "nanogpt"]
TEXTS = ["", *(multilingual(40 * seed, seed) for seed in range(30)), "", "", multilingual(3000, 99), "last", ""]
MERGES = Tokenizer.train(iter(TEXTS), 500).model


def with_ids_up_to(n_vocab: int) -> Tokenizer:
    """Return a tokenizer with n_vocab ids, of which the last one ends documents."""
    return Tokenizer(Model(MERGES.split, MERGES.merges, special_tokens={BOS: n_vocab - 2, EOS: n_vocab - 1}))


TOKENIZER = with_ids_up_to(502)


def expected(texts: list[str], tokenizer: Tokenizer = TOKENIZER) -> list[list[int]]:
    bos, eos = (tokenizer.special_tokens[name] for name in (BOS, EOS))
    return [[bos, *ids, eos] for ids in tokenizer.encode_ordinary_batch(texts)]


def cut(ids: np.ndarray[Any, Any], offsets: Any) -> list[list[int]]:
    assert not len(offsets) or (offsets[0], offsets[-1]) == (0, len(ids))
    return [ids[start:end].tolist() for start, end in pairwise(offsets)]


def read_megatron(path: Path, _: Any) -> list[list[int]]:
    """As in Megatron's IndexedDataset."""
    index = path.with_suffix(".idx").read_bytes()
    magic, version, code, sequences, documents = struct.unpack_from("<9sQBQQ", index)
    assert (magic, version, documents) == (b"MMIDIDX\0\0", 1, sequences + 1)
    dtype = np.dtype({8: "<u2", 4: "<i4"}[code])
    lengths = np.frombuffer(index, "<i4", sequences, 34)
    pointers = np.frombuffer(index, "<i8", sequences, 34 + 4 * sequences)
    ends = np.frombuffer(index, "<i8", documents, 34 + 12 * sequences)
    assert len(index) == 34 + 12 * sequences + 8 * documents
    assert ends.tolist() == list(range(documents))
    offsets = [0, *np.cumsum(lengths, dtype=np.int64).tolist()]
    assert pointers.tolist() == [dtype.itemsize * offset for offset in offsets[:-1]]
    return cut(np.fromfile(path, dtype), offsets)


def read_datatrove(path: Path, dtype: Any) -> list[list[int]]:
    ids = np.fromfile(path, dtype)
    name, count, _ = (path.parent / f"{path.name}.metadata").read_text().split("\n")
    assert (name, count) == (f"batchbpe|{np.dtype(dtype).itemsize}", str(len(ids)))
    return cut(ids, [0, *np.fromfile(path.parent / f"{path.name}.index", "<u8").tolist()])


def read_olmo(path: Path, dtype: Any) -> list[list[int]]:
    with gzip.open(path.with_suffix(".csv.gz"), "rt") as lines:
        spans = [tuple(map(int, line.split(","))) for line in lines]
    assert all(before[1] == after[0] for before, after in pairwise(spans))
    return cut(np.fromfile(path, dtype), [0, *(end for _, end in spans)])


def read_llm_c(path: Path, dtype: Any) -> list[int]:
    header, ids = np.fromfile(path, "<i4", 256), np.fromfile(path, dtype, offset=1024)
    magic = {"<u2": [20240520, 1], "<u4": [20240801, 7]}[dtype]
    assert header.tolist() == [*magic, len(ids), *[0] * 253]
    return ids.tolist()


DOCUMENTS: dict[str, Any] = {
    "megatron": read_megatron,
    "datatrove": read_datatrove,
    "olmo": read_olmo,
    "parquet": lambda path, _: pq.read_table(path)["ids"].to_pylist(),
}
"""Readers of formats that store where documents end."""
TOKENS: dict[str, Any] = {
    "bin": lambda path, dtype: np.fromfile(path, dtype).tolist(),
    "nanogpt": lambda path, dtype: np.fromfile(path, dtype).tolist(),
    "npy": lambda path, _: np.load(path).tolist(),
    "llm.c": read_llm_c,
}


def options(form: Any, **others: Any) -> EncodeOptions:
    others = {"append_eos": True, "prepend_bos": True, "validation": 0.3 if form == "nanogpt" else None} | others
    return EncodeOptions(form, **others)


def encode(folder: Path, form: str, texts: Any = TEXTS, tokenizer: Tokenizer = TOKENIZER, **others: Any) -> list[Path]:
    """Encode texts, and return the files of ids."""
    report = encode_files(tokenizer, sources(iter(texts)), folder, options(form, **others))
    return [folder / name for name in report.shards]


def content(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "shards.json"
    }


def is_validation(text: str, fraction: float) -> bool:
    return zlib.crc32(text.encode()) < fraction * 2**32


@pytest.mark.parametrize("n_vocab", [502, 65_499, 65_500, 65_536, 65_537, 70_000])
@pytest.mark.parametrize("form", FORMAT_NAMES)
def test_every_format(form: str, n_vocab: int, tmp_path: Path) -> None:
    tokenizer = with_ids_up_to(n_vocab)
    if form == "nanogpt" and n_vocab > 65_536:
        with pytest.raises(ValueError, match=rf"ids up to {n_vocab - 1:,}, but .* up to 65,535; use format=\"bin\""):
            encode(tmp_path / "out", form, tokenizer=tokenizer)
        assert not (tmp_path / "out").exists()
        return
    dtype = "<u2" if n_vocab <= 65_536 else "<u4"
    paths = encode(tmp_path / "out", form, tokenizer=tokenizer)
    if form == "nanogpt":
        assert [path.name for path in paths] == ["train.bin", "val.bin"]
        for path, side in zip(paths, (False, True), strict=True):
            some = [text for text in TEXTS if is_validation(text, 0.3) == side]
            assert TOKENS[form](path, dtype) == [*chain.from_iterable(expected(some, tokenizer))]
    elif form in DOCUMENTS:
        assert DOCUMENTS[form](paths[0], dtype) == expected(TEXTS, tokenizer)
    else:
        assert TOKENS[form](paths[0], dtype) == [*chain.from_iterable(expected(TEXTS, tokenizer))]
    if form == "megatron":
        assert paths[0].stat().st_size == sum(map(len, expected(TEXTS))) * (2 if n_vocab < 65_500 else 4)
    found = [int(each) for _, ids in read_ids(tmp_path / "out", tokenizer) for each in ids]
    assert sorted(found) == sorted(chain.from_iterable(expected(TEXTS, tokenizer)))


@pytest.mark.parametrize("form", [*DOCUMENTS])
def test_empty_documents_without_marks(form: str, tmp_path: Path) -> None:
    """OLMo's index leaves them out."""
    paths = encode(tmp_path / "out", form, append_eos=False, prepend_bos=False)
    ids = TOKENIZER.encode_ordinary_batch(TEXTS)
    assert DOCUMENTS[form](paths[0], "<u2") == [each for each in ids if each or form != "olmo"]


@pytest.mark.parametrize("form", FORMAT_NAMES)
@pytest.mark.parametrize("texts", [[], ["", ""]])
def test_no_tokens(form: str, texts: list[str], tmp_path: Path) -> None:
    paths = encode(tmp_path / "out", form, texts, append_eos=False, prepend_bos=False)
    assert len(paths) == (2 if form == "nanogpt" else 1)
    if form in ("megatron", "datatrove", "parquet"):
        assert DOCUMENTS[form](paths[0], "<u2") == [[]] * len(texts)
    assert b"".join(decoded(TOKENIZER, read_ids(tmp_path / "out", TOKENIZER))) == b""


@pytest.mark.parametrize("form", [*DOCUMENTS])
def test_shards_end_with_documents(form: str, tmp_path: Path) -> None:
    """With the first document at N tokens or more; documents without tokens belong to the shard before them."""
    paths = encode(tmp_path / "out", form, shard_tokens=100, append_eos=False, prepend_bos=False)
    found = [DOCUMENTS[form](path, "<u2") for path in paths]
    ids = TOKENIZER.encode_ordinary_batch(TEXTS)
    assert [*chain.from_iterable(found)] == [each for each in ids if each or form != "olmo"]
    for documents in found[:-1]:
        with_tokens = [len(each) for each in documents if each]
        assert sum(with_tokens) >= 100 > sum(with_tokens[:-1])
    assert all(documents and documents[0] for documents in found[1:])
    assert len(found) > 10 and max(len(each) for each in ids) > 300


@pytest.mark.parametrize("form", [*DOCUMENTS])
def test_split_documents(form: str, tmp_path: Path) -> None:
    """All shards have N tokens but the last; each part of a document is one."""
    paths = encode(tmp_path / "out", form, shard_tokens=256, split_documents=True)
    found = [DOCUMENTS[form](path, "<u2") for path in paths]
    tokens = [*chain.from_iterable(expected(TEXTS))]
    assert [[*chain.from_iterable(documents)] for documents in found] == [
        tokens[start : start + 256] for start in range(0, len(tokens), 256)
    ]
    ends = {*np.cumsum([len(ids) for ids in expected(TEXTS)]).tolist(), *range(256, len(tokens), 256)}
    assert np.cumsum([len(ids) for ids in chain.from_iterable(found)]).tolist() == sorted(ends)


def test_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They end with the first document at ROW_GROUP tokens or more, so that memory is limited."""
    monkeypatch.setattr("batchbpe.jobs.token_files.parquet.ROW_GROUP", 100)
    file = pq.ParquetFile(encode(tmp_path / "out", "parquet")[0])
    groups = [file.read_row_group(number)["ids"].to_pylist() for number in range(file.num_row_groups)]
    assert [*chain.from_iterable(groups)] == expected(TEXTS)
    assert all(sum(map(len, rows)) >= 100 > sum(map(len, rows[:-1])) for rows in groups[:-1])


def in_batches(texts: list[str], sizes: Iterator[int]) -> list[Source]:
    def read(_: Source) -> Iterator[Documents]:
        left = list(texts)
        while left:
            size = next(sizes)
            yield Texts(left[:size])
            left = left[size:]

    return [Source("", read)]


@settings(max_examples=40)
@given(
    form=st.sampled_from(IN_SHARDS),
    shard_tokens=st.integers(20, 300),
    split=st.booleans(),
    validation=st.sampled_from([None, 0.01, 0.5]),
    sizes=st.lists(st.integers(0, 9), min_size=1).filter(any),
    threads=st.sampled_from([1, 2]),
    marks=st.booleans(),
)
def test_hyp_bytes_do_not_depend_on_batches(
    form: str, shard_tokens: int, split: bool, validation: Any, sizes: list[int], threads: int, marks: bool
) -> None:
    """In batches of any sizes, or in a text file in blocks of any size, with one or two threads."""
    texts = TEXTS[:12]
    given_options = options(
        form,
        shard_tokens=shard_tokens,
        split_documents=split,
        validation=validation,
        append_eos=marks,
        prepend_bos=marks,
    )
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda _: None)
        patch.setattr("batchbpe.jobs.token_files.parquet.ROW_GROUP", 50)
        folder = Path(name)
        for out, batches, n in (("whole", [100], 1), ("out", sizes, threads)):
            repeated = chain.from_iterable(iter(lambda batches=batches: batches, None))
            encode_files(TOKENIZER, in_batches(texts, repeated), folder / out, given_options, threads=n)
        assert content(folder / "whole") == content(folder / "out")
        if marks and form in DOCUMENTS and not split:
            for part, side in (("", None),) if validation is None else (("train", False), ("validation", True)):
                paths = sorted((folder / "out" / part).glob(f"shard_??????{FORMATS[form].suffixes[0]}"))  # type: ignore[index]
                found = [*chain.from_iterable(DOCUMENTS[form](path, "<u2") for path in paths)]
                some = [text for text in texts if side is None or is_validation(text, validation) == side]
                assert found == expected(some)


@settings(max_examples=20)
@given(
    size=st.integers(1, 400), shard_tokens=st.integers(20, 400), split=st.booleans(), form=st.sampled_from(IN_SHARDS)
)
def test_hyp_blocks_of_a_text_file(size: int, shard_tokens: int, split: bool, form: str) -> None:
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda _: None)
        folder = Path(name)
        for number, text in enumerate(["a b c " * 99, "", "one line\n" * 50]):
            (folder / f"{number}.txt").write_text(text)
        for out, block in (("whole", 1 << 20), ("out", size)):
            patch.setattr("batchbpe.data.text_files.BLOCK", block)
            given_options = options(form, shard_tokens=shard_tokens, split_documents=split, validation=0.5)
            encode_files(TOKENIZER, sources(sorted(folder.glob("*.txt"))), folder / out, given_options)
        assert content(folder / "whole") == content(folder / "out")


class KilledError(BaseException):
    """Simulates SIGKILL."""


@pytest.mark.parametrize("form, split", [(form, False) for form in FORMAT_NAMES] + [(form, True) for form in IN_SHARDS])
def test_killed_at_every_write(form: str, split: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed at the first, second, … sync to disk, and resumed in the same folder each time; or read in between."""
    if form == "nanogpt":
        monkeypatch.setattr("batchbpe.jobs.encode.SHARD_TOKENS", 150)
    monkeypatch.setattr("batchbpe.data.options.ReadOptions.BATCH_CHARACTERS", 300)
    monkeypatch.setattr("batchbpe.data.text_files.BLOCK", 200)
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS[:20]))
    (tmp_path / "b.txt").write_text("a line of a long file\n" * 90)
    monkeypatch.setattr("os.fsync", lambda _: None)
    given_options = options(form, shard_tokens=150, split_documents=split, validation=0.3)
    files = [tmp_path / "a.jsonl", tmp_path / "b.txt"]
    encode_files(TOKENIZER, sources(files), tmp_path / "whole", given_options)
    for first in (0, 1, 2):
        out, kills = tmp_path / f"out{first}", 0
        finished = False
        while not finished:
            left = iter(range(first + 3 * kills))

            def sync(_: int, left: Any = left) -> None:
                if next(left, None) is None:
                    raise KilledError

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("os.fsync", sync)
                try:
                    encode_files(TOKENIZER, sources(files), out, given_options, resume=True)
                    finished = True
                except KilledError:
                    kills += 1
            record = out / "shards.json"
            if record.exists() and not json.loads(record.read_text())["finished"]:
                with pytest.raises(ValueError, match=r"not complete: the job was stopped; continue with resume=True"):
                    list(read_ids(out, TOKENIZER))
                if form != "nanogpt":
                    with pytest.raises(ValueError, match="not complete"):
                        list(read_ids(out / "train", TOKENIZER))
        assert kills > 3
        assert content(out) == content(tmp_path / "whole")
        assert record.read_bytes() == (tmp_path / "whole" / "shards.json").read_bytes()


@pytest.mark.parametrize("form", IN_SHARDS)
def test_validation(form: str, tmp_path: Path) -> None:
    """The choice depends only on the text: not on the order, and not on where it comes from."""
    (tmp_path / "long.txt").write_text(TEXTS[33])
    texts = [TEXTS[33], *TEXTS[::-1]]
    every = [*sources(tmp_path / "long.txt"), *sources(iter(TEXTS[::-1]))]
    report = encode_files(TOKENIZER, every, tmp_path / "o", options(form, validation=0.4))
    chosen, others = ([text for text in texts if is_validation(text, 0.4) == side] for side in (True, False))
    for part, texts in (("train", others), ("validation", chosen)):
        found = [int(each) for _, ids in read_ids(tmp_path / "o" / part, TOKENIZER) for each in ids]
        assert found == [*chain.from_iterable(expected(texts))]
    assert (report.documents, report.validation_documents) == (len(TEXTS) + 1, len(chosen))
    assert report.validation_tokens == sum(map(len, expected(chosen))) < report.tokens


def test_validation_of_replaced_text(tmp_path: Path) -> None:
    """The hash is that of the text with U+FFFD, which is on the other side here."""
    (tmp_path / "a.txt").write_bytes(b"bad \xff")
    replaced = options("bin", reading=ReadOptions(errors="replace"), validation=0.5)
    good = "bad �"
    assert zlib.crc32(b"bad \xff") < 2**31 and not is_validation(good, 0.5)
    encode_files(TOKENIZER, sources(tmp_path / "a.txt"), tmp_path / "a", replaced)
    encode_files(TOKENIZER, sources(iter(["bad \ud800"])), tmp_path / "b", replaced)
    for name in "ab":
        assert np.fromfile(tmp_path / name / "train" / "shard_000000.bin", "<u2").tolist() == expected([good])[0]


def test_validation_of_standard_input(place: Path) -> None:
    """It can be read only once."""
    for text in ("that", "is"):
        assert run(["encode", "mine.model", "-o", text, "--validation", "0.5"], text).exit_code == 0
        part = "validation" if is_validation(text, 0.5) else "train"
        assert run(["decode", "mine.model", f"{text}/{part}"]).stdout == text
    assert is_validation("is", 0.5) and not is_validation("that", 0.5)


def test_a_document_that_is_too_long_for_the_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FORMATS["megatron"], "max_document", 500)
    monkeypatch.setattr(FORMATS["llm.c"], "max_tokens", 600)
    with pytest.raises(
        ValueError, match=r"a document has [\d,]+ tokens, more than 500, .*; cut it with split_documents"
    ):
        encode(tmp_path / "out", "megatron", shard_tokens=400)
    with pytest.raises(ValueError, match=r"a document makes a shard longer than 600 tokens, .*; cut it with split_doc"):
        encode(tmp_path / "other", "llm.c", shard_tokens=400)
    with pytest.raises(ValueError, match=r"shard_tokens must be at most 500 for megatron, got 501"):
        options("megatron", shard_tokens=501)
    for folder in ("out", "other"):
        assert not [path for path in (tmp_path / folder).iterdir() if path.name.startswith(".")]
    assert encode(tmp_path / "parts", "megatron", shard_tokens=400, split_documents=True)


def test_a_file_that_fails_in_the_middle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With skip_errors, what was read before the error is a document, and the next one starts after it."""
    monkeypatch.setattr("batchbpe.data.text_files.BLOCK", 100)
    (tmp_path / "a.txt").write_bytes(b"a line\n" * 50 + b"\xff")
    (tmp_path / "b.txt").write_text("good")
    files = sources([tmp_path / "a.txt", tmp_path / "b.txt"])
    report = encode_files(TOKENIZER, files, tmp_path / "out", options("megatron"), skip_errors=True)
    documents = read_megatron(tmp_path / "out" / "shard_000000.bin", None)
    assert len(documents) == 2 == report.documents and documents[1] == expected(["good"])[0]
    assert [*report.failed] == [str(tmp_path / "a.txt")]


def test_folders_that_cannot_be_decoded(tmp_path: Path) -> None:
    def problem(folder: Path) -> str:
        with pytest.raises((ValueError, OSError)) as error:
            list(read_ids(folder, TOKENIZER))
        return str(error.value).replace(str(tmp_path), "")

    (tmp_path / "none").mkdir()
    assert problem(tmp_path / "none").startswith("/none: the folder contains no files of ids (.bin, .ds, .npy, .parq")
    encode(tmp_path / "mixed", "bin")
    np.save(tmp_path / "mixed" / "x.npy", np.arange(3))
    assert problem(tmp_path / "mixed") == (
        "/mixed: the folder mixes formats: shard_000000.bin is bin, x.npy is npy; pass the files of one format"
    )
    for form, name in (("megatron", "shard_000000.idx"), ("olmo", "shard_000000.csv.gz"), ("bin", "shard_000000.bin")):
        folder = tmp_path / form
        encode(folder, form)
        data = (folder / name).read_bytes()
        (folder / name).write_bytes(data[:-1])
        size = len(data)
        again = f"expected {size}; encode into {form} again"
        assert problem(folder) == f"/{form}/{name}: the file is damaged: it has {size - 1} bytes, {again}".replace(
            f"into {form}", f"into /{form}"
        )
        (folder / name).unlink()
        assert problem(folder) == f"/{form}/{name}: the file is missing; encode into /{form} again"
    encode(tmp_path / "foreign", "megatron", shard_tokens=300)
    (tmp_path / "foreign" / "shards.json").unlink()
    (tmp_path / "foreign" / "shard_000001.bin").unlink()
    assert problem(tmp_path / "foreign").startswith(
        "/foreign: shard_000001.bin is missing, but shard_000001.idx exists"
    )


@pytest.mark.parametrize("form", ["megatron", "datatrove", "olmo", "llm.c", "parquet", "npy"])
def test_truncated_files_without_a_record(form: str, tmp_path: Path) -> None:
    """Every file of every format, cut at any place: an error that names the file."""
    (path,) = encode(tmp_path / "out", form)
    (tmp_path / "out" / "shards.json").unlink()
    for name in (each.name for each in (tmp_path / "out").iterdir() if not each.name.endswith(".metadata")):
        data = (tmp_path / "out" / name).read_bytes()
        for size in (len(data) - 2, len(data) // 2, 40, 10):
            (tmp_path / "out" / name).write_bytes(data[:size])
            with pytest.raises(ValueError, match=r"/out/shard_000000\.|/out: "):
                list(read_ids(path, TOKENIZER))
        (tmp_path / "out" / name).write_bytes(data)
    list(read_ids(path, TOKENIZER))


def test_the_vocabulary_of_another_model(tmp_path: Path) -> None:
    """An index tells that the ids have another type."""
    large = with_ids_up_to(70_000)
    for form in ("datatrove", "olmo"):
        encode(tmp_path / form, form)
        with pytest.raises(ValueError, match=r"damaged, or its vocabulary has another size: .* expected .* uint32"):
            list(read_ids(tmp_path / form, large))
    for form in ("megatron", "llm.c", "npy", "parquet"):
        encode(tmp_path / form, form, append_eos=False, prepend_bos=False)
        assert b"".join(decoded(large, read_ids(tmp_path / form, large))) == "".join(TEXTS).encode()


def test_numpy_is_asked_for_its_header(tmp_path: Path) -> None:
    np.arange(5, dtype="<u2").tofile(tmp_path / "raw.npy")
    with pytest.raises(ValueError, match=r"not a \.npy file, or damaged; for OLMo's raw ids, keep the \.csv\.gz file"):
        list(read_ids(tmp_path / "raw.npy", TOKENIZER))


@pytest.mark.parametrize("form", FORMAT_NAMES)
def test_the_commands(form: str, place: Path) -> None:
    arguments = ["encode", "mine.model", "book.txt", "-o", "out", "--format", form, "--append-eos", "--prepend-bos"]
    arguments += ["--validation", "0.5"] if form == "nanogpt" else ["--shard-tokens", "50", "--split-documents"]
    encoded = run([*arguments, "--json"])
    assert encoded.exit_code == 0, encoded.stderr
    assert ("validation_tokens" in json.loads(encoded.stdout)) == (form == "nanogpt")
    decoded = run(["decode", "mine.model", "out", "--skip-special-tokens"])
    assert decoded.stdout_bytes == Path("book.txt").read_bytes()
    assert run(["decode", "mine.model", "out"]).stdout.startswith("<|endoftext|>")


def test_datasets_reads_parquet_files(tmp_path: Path) -> None:
    import datasets

    paths = [*map(str, encode(tmp_path / "out", "parquet", shard_tokens=500))]
    dataset = datasets.Dataset.from_parquet(paths, cache_dir=str(tmp_path / "cache"))
    assert len(paths) > 1 and dataset["ids"][:] == expected(TEXTS)

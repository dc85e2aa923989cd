"""Each format against a reader written from its specification; shards, validation and resuming."""

import json
import os
import tempfile
import threading
import zlib
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from helpers import run
from hypothesis import given, settings
from hypothesis import strategies as st
from token_files import (
    DOCUMENTS,
    FORMAT_NAMES,
    IN_SHARDS,
    TEXTS,
    TOKENIZER,
    TOKENS,
    content,
    encode,
    expected,
    is_validation,
    options,
    read_megatron,
    with_ids_up_to,
)

from batchbpe import Tokenizer
from batchbpe.data.corpus import sources
from batchbpe.data.documents import Documents, Texts
from batchbpe.data.options import ReadOptions
from batchbpe.data.source import Source
from batchbpe.jobs.encode import encode_files
from batchbpe.jobs.encode_options import EncodeOptions
from batchbpe.jobs.ids import decoded, read_ids
from batchbpe.jobs.resume import Record
from batchbpe.jobs.token_files import FORMATS


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
    in_order = TEXTS if form != "nanogpt" else sorted(TEXTS, key=lambda text: is_validation(text, 0.3))
    assert found == [*chain.from_iterable(expected(in_order, tokenizer))]


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
        monkeypatch.setattr("batchbpe.jobs.encode_options.SHARD_TOKENS", 150)
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


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="pipes are files on posix only")
@pytest.mark.parametrize("text", ["that", "is"])
def test_validation_of_a_pipe(text: str, tmp_path: Path) -> None:
    """A named pipe or a shell's `<(command)` can be read only once, but the hash comes before the ids."""
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=[text], daemon=True)
    writer.start()
    out, into = os.pipe()
    os.write(into, text.encode())
    os.close(into)
    for number, path in enumerate([Path(f"/dev/fd/{out}"), tmp_path / "pipe"]):
        encode_files(TOKENIZER, sources(path), tmp_path / f"{number}", options("bin", validation=0.5))
        part = tmp_path / f"{number}" / ("validation" if is_validation(text, 0.5) else "train")
        assert np.fromfile(part / "shard_000000.bin", "<u2").tolist() == expected([text])[0]
    os.close(out)
    writer.join()


def test_a_document_that_is_too_long_for_the_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FORMATS["megatron"], "max_document", 500)
    monkeypatch.setattr(FORMATS["llm.c"], "max_tokens", 600)
    cut = r"tokens, which the format cannot store; cut it with split_documents=True and shard_tokens="
    with pytest.raises(ValueError, match=rf"a document has more than 500 {cut}500"):
        encode(tmp_path / "out", "megatron", shard_tokens=400)
    with pytest.raises(ValueError, match=rf"a document makes a shard longer than 600 {cut}600"):
        encode(tmp_path / "other", "llm.c", shard_tokens=400)
    with pytest.raises(ValueError, match=r"at most 500 for the format megatron if documents are split, got 501"):
        options("megatron", shard_tokens=501, split_documents=True)
    for folder in ("out", "other"):
        assert not [path for path in (tmp_path / folder).iterdir() if path.name.startswith(".")]
    assert encode(tmp_path / "parts", "megatron", shard_tokens=400, split_documents=True)


def test_limits_of_shards() -> None:
    """A shard may be longer than the longest document."""
    assert options("megatron", shard_tokens=10**10).shard_tokens == 10**10
    with pytest.raises(ValueError, match=r"shard_tokens must be at most 2147483647 for the format llm\.c, got"):
        options("llm.c", shard_tokens=10**10)
    with pytest.raises(ValueError, match=r"parquet if documents are split, got 100000000; set shard_tokens=33554432"):
        options("parquet", split_documents=True)
    with pytest.raises(ValueError, match=r"format must be one of megatron, .*, got \['bin'\]"):
        options(["bin"])


def test_rows_that_take_too_much_memory(tmp_path: Path) -> None:
    """A row of a parquet file is in memory as a whole."""
    (tmp_path / "a.txt").write_bytes(b"\0" * (FORMATS["parquet"].max_document + 1))
    tokenizer = Tokenizer.train("aab", 257)
    report = encode_files(tokenizer, sources(tmp_path / "a.txt"), tmp_path / "bin", EncodeOptions("bin"))
    assert report.tokens == FORMATS["parquet"].max_document + 1
    with pytest.raises(ValueError, match=r"more than 33,554,432 tokens, .* and shard_tokens=33554432"):
        encode_files(tokenizer, sources(tmp_path / "a.txt"), tmp_path / "out", EncodeOptions("parquet"))


def test_a_file_that_fails_in_the_middle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With skip_errors, what was read before the error is a document with marks, and the next one starts after it."""
    monkeypatch.setattr("batchbpe.data.text_files.BLOCK", 100)
    text = b"a line\n" * 50
    (tmp_path / "a.txt").write_bytes(text + b"\xff")
    (tmp_path / "b.txt").write_text("good")
    files = [tmp_path / "a.txt", tmp_path / "b.txt"]
    report = encode_files(TOKENIZER, sources(files), tmp_path / "out", options("megatron"), skip_errors=True)
    first, second = read_megatron(tmp_path / "out" / "shard_000000.bin", None)
    assert report.documents == 2 and second == expected(["good"])[0]
    before = TOKENIZER.decode_bytes(first[1:-1])
    assert first == expected([before.decode()])[0] and text.startswith(before) and before
    assert [*report.failed] == [str(tmp_path / "a.txt")]
    # The mark after the error is in the next shard, which a resumed job writes.
    for save, name in ((Record.save, "whole"), (killed_after(Record.save), "resumed")):
        with pytest.MonkeyPatch.context() as patch, suppress(KilledError):
            patch.setattr(Record, "save", save)
            split = options("megatron", shard_tokens=len(first) - 1, split_documents=True)
            encode_files(TOKENIZER, sources(files), tmp_path / name, split, skip_errors=True)
    encode_files(TOKENIZER, sources(files), tmp_path / "resumed", split, skip_errors=True, resume=True)
    assert content(tmp_path / "resumed") == content(tmp_path / "whole")
    assert read_megatron(tmp_path / "whole" / "shard_000001.bin", None) == [first[-1:], second]


def killed_after(save: Any) -> Any:
    def save_and_die(*arguments: Any) -> None:
        save(*arguments)
        raise KilledError

    return save_and_die


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

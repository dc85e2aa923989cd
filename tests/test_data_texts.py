"""Text files are split into documents as plain Python defines it, in any blocks, for everything that reads files."""

import gzip
import io
import json
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from data_files import documents, jsonl, texts, write, zstd
from helpers import END, TEXT, examples, run
from hypothesis import given
from hypothesis import strategies as st

from batchbpe import ChunkCounts, RunCounts, Tokenizer
from batchbpe.analysis import evaluate
from batchbpe.data.corpus import sources
from batchbpe.data.documents import ArrowTexts
from batchbpe.data.options import ReadOptions
from batchbpe.data.readers.texts import split_documents
from batchbpe.errors import Stopped
from batchbpe.experiments import ExperimentData, chunks, sweep
from batchbpe.experiments.phrases import phrases
from batchbpe.jobs.count import CountOptions, count_files
from batchbpe.jobs.encode import encode_files
from batchbpe.jobs.encode_options import EncodeOptions

SEPARATORS = ["line", "blank-line", "a", "aa", "aba", "\n---\n", "\n\n", "語", "é語", "\ufffd", END]


def defined(text: str, document: str) -> list[str]:
    """Define the documents of a text."""
    lines, found = text.split("\n"), text.split(document)
    if document == "line":
        found = [line.removesuffix("\r") for line in lines]
    elif document == "blank-line":
        parts = groupby(lines, lambda line: bool(line.strip(" \t\r")))
        found = ["\n".join(part).removesuffix("\r") for has_text, part in parts if has_text]
    return [each for each in found if each]


def split(data: bytes, document: str, size: int = 1 << 20, **options: Any) -> list[list[str]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ReadOptions, "BATCH_CHARACTERS", size)
        batches = split_documents(io.BytesIO(data), ReadOptions(document=document, **options))
        return [batch.array.to_pylist() for batch in batches]


def flat(batches: list[list[str]]) -> list[str]:
    return [text for batch in batches for text in batch]


PARTS = st.sampled_from([*"a b-\t\r\n語é", "\r\n", "\n\n", "\n \t\r\n", "\n---\n", "aba", "\ufeff", END])
contents = st.lists(PARTS | st.characters(exclude_categories=["Cs"]), max_size=40).map("".join)
sizes = st.integers(1, 50)


@pytest.mark.parametrize("document", SEPARATORS)
@given(text=contents, size=sizes)
def test_hyp_documents_as_defined(document: str, text: str, size: int) -> None:
    assert flat(split(text.encode(), document, size)) == defined(text, document)


@pytest.mark.parametrize("document", SEPARATORS)
@given(data=st.lists(PARTS.map(str.encode) | st.binary(max_size=4), max_size=20).map(b"".join), size=sizes)
def test_hyp_invalid_utf8(document: str, data: bytes, size: int) -> None:
    """It is replaced as in the whole text, or its position in the file is reported."""
    assert flat(split(data, document, size, errors="replace")) == defined(data.decode("utf-8", "replace"), document)
    try:
        expected = defined(data.decode(), document)
    except UnicodeDecodeError as error:
        with pytest.raises(ValueError, match=rf'invalid UTF-8 at byte {error.start}; errors="replace" replaces it'):
            split(data, document, size)
    else:
        assert flat(split(data, document, size)) == expected


@examples(50)
@given(text=contents, document=st.sampled_from(SEPARATORS), size=sizes, limit=st.integers(1, 20))
def test_hyp_limit(text: str, document: str, size: int, limit: int) -> None:
    expected = defined(text, document)
    if max((len(each.encode()) for each in expected), default=0) > limit:
        with pytest.raises(
            ValueError, match=rf"^the document at byte \d+ .*, more than max_document_bytes={limit}; rai"
        ):
            split(text.encode(), document, size, max_document_bytes=limit)
    elif "   " not in text:
        assert flat(split(text.encode(), document, max(size, 20), max_document_bytes=limit)) == expected


def test_memory_is_bounded() -> None:
    """A document is refused before it has been read completely. A separator is not part of it, even if cut."""

    class Endless(io.BytesIO):
        size = 0

        def read(self, size: int | None = -1, /) -> bytes:
            Endless.size += size or 0
            return b" " * (size or 0)

    for document in SEPARATORS:
        Endless.size = 0
        with pytest.raises(
            ValueError, match=r"^the document at byte 0 is too long, more than max_document_bytes=1000;"
        ):
            next(split_documents(Endless(), ReadOptions(document=document, max_document_bytes=1000)))
        assert Endless.size < 2 * (1000 + ReadOptions.BATCH_CHARACTERS)
    assert flat(split(b"abc\n---\nabc\n---\n", "\n---\n", 1, max_document_bytes=3)) == ["abc", "abc"]


class Trickle(io.RawIOBase):
    """A pipe that returns one to three bytes at a time."""

    def __init__(self, data: bytes) -> None:
        self._data, self._chance = io.BytesIO(data), np.random.default_rng(0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._data.read(min(len(buffer), int(self._chance.integers(1, 4))))
        buffer[: len(data)] = data
        return len(data)


@pytest.mark.parametrize("document", SEPARATORS)
def test_equal_texts_give_equal_batches(document: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However the file is compressed or arrives."""
    monkeypatch.setattr(ReadOptions, "BATCH_CHARACTERS", 900)
    data = "".join(f"{TEXT[n : n + n % 37]}\r\n\r\n{END}{n}\n---\naba\n\né語aa" for n in range(400)).encode()
    (tmp_path / "a.txt").write_bytes(data)
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(data[:3000]) + gzip.compress(data[3000:]))
    zstd(tmp_path / "c.md.zst", *(data[n : n + 777] for n in range(0, len(data), 777)))
    expected = split(data, document, 900)
    assert expected[5:] or document == "\ufffd", "many batches"
    for path in tmp_path.iterdir():
        assert [batch.array.to_pylist() for batch in documents(path, document=document)] == expected  # type: ignore[attr-defined]
    stream: Any = io.BufferedReader(Trickle(data), 100)
    batches = split_documents(stream, ReadOptions(document=document))
    assert [batch.array.to_pylist() for batch in batches] == expected


def test_batches_are_bounded() -> None:
    batches = split(b"a\n" * 100_000, "line")
    assert {len(batch) for batch in batches[:-2]} == {ReadOptions.BATCH_DOCUMENTS}
    assert [*map(len, split(b"aa\n" * 100, "line", 30))] == [10] * 10


def test_long_documents_are_read_in_linear_time() -> None:
    class Stream(io.BytesIO):
        reads = 0

        def read(self, size: int | None = -1, /) -> bytes:
            Stream.reads += 1
            return super().read(size)

    stream = Stream(b"a" * 1_000_000 + b"\nb")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ReadOptions, "BATCH_CHARACTERS", 100)
        assert [len(batch) for batch in split_documents(stream, ReadOptions(document="line"))] == [1, 1]
    assert Stream.reads < 50


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ("", r"^document must not be empty, got ''; use document=\"file\"$"),
        (None, r"^document must be a string, got None$"),
        (b"\n", r"^document must be a string, got b'\\n'; decode it first$"),
        ("a\ud800", r"^document must not contain surrogates, got 'a\\ud800'; pass characters"),
        ("lines", r"^document must be \"file\", .* or a separator, got 'lines'; use document=\"line\"$"),
        ("Newline", r"got 'Newline'; use document=\"line\"$"),
        ("blank_line", r"got 'blank_line'; use document=\"blank-line\"$"),
        ("blankline", r"use document=\"blank-line\"$"),
        ("blank lines", r"use document=\"blank-line\"$"),
        ("paragraphs", r"use document=\"blank-line\"$"),
        ("FILE", r"use document=\"file\"$"),
        (r"\n\n", r"^document must not contain escaped characters, got '\\\\n\\\\n'; pass a line feed, which shells "),
    ],
)
def test_values_that_are_likely_mistakes(document: Any, problem: str, tmp_path: Path) -> None:
    with pytest.raises((ValueError, TypeError), match=problem):
        ChunkCounts.count(write(tmp_path / "a.txt", "to be"), document=document)


def test_words_are_separators(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", r"to beENDor\newpagenot\to")
    assert texts(path, document="END") == ["to be", r"or\newpagenot\to"]
    assert texts(path, document=r"\newpage") == ["to beENDor", r"not\to"]


def test_only_text_files_are_split(tmp_path: Path) -> None:
    rows = ["to be\nor not", "\n"]
    jsonl(tmp_path / "a.jsonl", *({"text": row} for row in rows))
    write(tmp_path / "b.rst", "to\nbe")
    assert texts(tmp_path / "a.jsonl", document="line") == rows == texts(rows, document="line")
    assert texts(tmp_path / "b.rst", document="line") == ["to", "be"], "read as text, like any other suffix"


@pytest.fixture
def corpus(place: Path) -> Path:
    """A folder with the same documents in a text file and in a jsonl file."""
    lines = [line for n in range(60) for line in (TEXT[7 * n : 11 * n + 30].replace("\n", " "), f"of {n}") if line]
    write(place / "lines.txt", "\r\n\r\n".join(lines))
    jsonl(place / "lines.jsonl", *({"text": line} for line in lines))
    return place


SPLIT = "lines.txt --document line"


@pytest.mark.parametrize(
    "command",
    [
        "count {} -o {}.csv -q",
        "count {} -o {}.csv -q --limit-bytes 900",
        "train {} -n 300 -o {} -q",
        "train {} -n 300 --phrases 10 -o {} -q",
        "encode mine.model {}",
        "encode mine.model {} --limit-bytes 900 --threads 1",
        "encode mine.model {} -o {}.bin --append-eos -q",
        "encode mine.model {} -o {} -q",
        "evaluate mine.model --data {} -q",
        "evaluate mine.model --data {} --by-file --per word -q",
    ],
)
def test_commands_read_the_same_documents(command: str, corpus: Path) -> None:
    found: dict[str, Any] = {}
    for name, inputs in {"text": SPLIT, "json": "lines.jsonl"}.items():
        arguments = command.replace("{}", inputs, 1).replace("{}", f"out/{name}")
        (corpus / "out").mkdir(exist_ok=True)
        result = run(arguments)
        assert result.exit_code == 0, result.output
        written = sorted(path for path in (corpus / "out").rglob(f"{name}*/*") if path.suffix != ".json")
        written += sorted(path for path in (corpus / "out").glob(f"{name}.*") if path.suffix != ".model")
        found[name] = result.stdout, [path.read_bytes() for path in written]
        assert written or "-o" not in command
    assert found["text"] == found["json"]


def test_standard_input(corpus: Path) -> None:
    text = (corpus / "lines.txt").read_bytes()
    for command in ("encode mine.model --document line", "encode mine.model - --document line --json"):
        assert run(command, text).stdout == run(command.replace(" -", " lines.txt -", 1)).stdout.replace(
            "lines.txt", "-"
        )
    piped, named = (
        run("evaluate mine.model --data - --document line -q", text),
        run(f"evaluate mine.model --data {SPLIT} -q"),
    )
    assert piped.stdout == named.stdout != ""


def test_command_line_values(place: Path) -> None:
    write(place / "a.txt", f"To be\n---\nor not\n---\n\n{END}to be{END}")
    for document, number in {"\n---\n": 3, END: 2, "file": 1, "line": 5, "blank-line": 2}.items():
        assert len(run(["encode", "mine.model", "a.txt", "--document", document]).stdout.splitlines()) == number
    names = 'must be "file", "line", "blank-line" or a separator'
    for document, problem in {
        "": "must not be empty, got ''; use --document file",
        "lines": f"{names}, got 'lines'; use --document line",
        r"\n-": r"must not contain escaped characters, got '\n-'; pass a line feed, which shells write as $'\n'",
    }.items():
        failed = run(["count", "a.txt", "-o", "a.csv", "--document", document])
        assert (failed.exit_code, failed.stderr) == (2, f"error: --document {problem}\n")


def test_errors_name_the_file(place: Path) -> None:
    Path("a.txt").write_bytes(b"to be\n" * 10 + b"or\xff not\n")
    for command in ("count a.txt -o a.csv", "encode mine.model a.txt -o a.bin", "evaluate mine.model --data a.txt"):
        failed = run(f"{command} --document line -q")
        assert failed.exit_code == 1
        problem = "error: a.txt: the text is invalid UTF-8 at byte 62; --replace-errors replaces it with U+FFFD\n"
        assert failed.stderr == problem
    failed = run("count a.txt -o a.csv --document line --max-document-bytes 4 --replace-errors")
    assert failed.stderr.startswith(
        "error: a.txt: the document at byte 0 has 5 bytes, more than --max-document-bytes 4;"
    )
    failed = run("encode mine.model - --document line", b"to be\nor\xff not")
    assert "standard input: the text is invalid UTF-8 at byte 8; --replace-errors" in failed.stderr


def test_samples(corpus: Path) -> None:
    """A fraction of the documents, the same on every run, and whole ones up to a number of bytes."""
    encode = f"encode mine.model {SPLIT}"
    every = run(encode).stdout.splitlines()
    some = [run(f"{encode} --sample 0.5 --seed {seed}").stdout.splitlines() for seed in (1, 1, 2)]
    assert some[0] == some[1] != some[2]
    assert 20 < len(some[0]) < 100 and set(some[0]) < set(every)
    limited = run(f"{encode} --limit-bytes 300").stdout.splitlines()
    assert limited == every[: len(limited)] and 3 < len(limited) < len(every)


def test_jobs_resume_between_documents(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ReadOptions, "BATCH_CHARACTERS", 300)
    reading = ReadOptions(document="blank-line")
    tokenizer = Tokenizer.from_file("mine.model")

    def killed(after: int) -> Any:
        (source,) = sources(corpus / "lines.txt", reading)
        read = source._read

        def interrupted(source: Any) -> Any:
            for number, batch in enumerate(read(source)):
                if number == after:
                    raise KeyboardInterrupt
                yield batch

        source._read = interrupted
        return [source]

    options = EncodeOptions(reading=reading, shard_tokens=50)
    for after in (4, 9, 13):
        with pytest.raises(KeyboardInterrupt):
            encode_files(tokenizer, killed(after), corpus / "ids", options, resume=True, threads=1)
    done = json.loads((corpus / "ids" / "shards.json").read_text())
    assert done["current"][1] > 4 and done["options"]["document"] == "blank-line"
    resumed = encode_files(tokenizer, sources(corpus / "lines.txt", reading), corpus / "ids", options, resume=True)
    encode_files(tokenizer, sources(corpus / "lines.txt", reading), corpus / "once", options)
    for name in resumed.files:
        assert (corpus / "ids" / name).read_bytes() == (corpus / "once" / name).read_bytes()

    output, counting = corpus / "resumed.csv", CountOptions(reading=reading)
    stops = iter([False] * 7 + [True])
    with pytest.raises(Stopped):
        count_files(sources(corpus / "lines.txt", reading), output, counting, stop=lambda: next(stops))
    with pytest.raises(ValueError, match=r"the job was started with document='blank-line', got 'line'"):
        other = ReadOptions(document="line")
        count_files(sources(corpus / "lines.txt", other), output, CountOptions(reading=other), resume=True)
    count_files(sources(corpus / "lines.txt", reading), output, counting, resume=True)
    assert ChunkCounts.load(output) == ChunkCounts.count(corpus / "lines.txt", document="blank-line")


def test_functions_read_the_same_documents(corpus: Path) -> None:
    tokenizer = Tokenizer.from_file("mine.model")
    results = []
    for files, reading in (("lines.txt", {"document": "line"}), ("lines.jsonl", {})):
        how: dict[str, Any] = {"files": files, **reading}
        grid = {"vocab_size": [270]}
        results.append(
            {
                "count": dict(ChunkCounts.count(**how, sample=1, pattern="gpt2")),
                "runs": RunCounts.count(model=tokenizer, **how).total,
                "train": Tokenizer.train(vocab_size=300, **how).model,
                "evaluate": evaluate({"": tokenizer}, **how)[0].frequencies.tolist(),
                "groups": evaluate({"": tokenizer}, by_file=True, **how).groups.metrics(""),
                "audit": evaluate({"": tokenizer}, audit=True, **how).audits[""],
                "chunks": chunks(**how).table.to_pylist()[-1],
                "sweep": sweep(**how, grid=grid, heldout="to be or not to be").table["tokens"].to_pylist(),
                "phrases": phrases(**how, heldout=["to be"], vocab_sizes=[290], shares=[0]).table.to_pylist(),
            }
        )
    for name in results[0]:
        assert results[0][name] == results[1][name], name
    held = ExperimentData.of(files="lines.txt", document="line").parameters["held-out text"]
    assert held == "0.1 of the documents"
    assert ExperimentData.of(files="lines.txt").parameters["held-out text"] == "0.1 of the chunks"


def test_experiment_command(corpus: Path) -> None:
    result = run(f"experiment freq-cutoff --data {SPLIT} -n 300 -o out --quiet")
    assert result.exit_code == 0, result.output
    assert "of the documents" in "".join(path.read_text() for path in Path("out").glob("*.json"))
    failed = run("experiment phrases --data lines.txt -n 300 -o other --quiet")
    assert "provide more documents, or --heldout; --document splits text files" in failed.stderr


def test_documents_are_arrow_arrays(corpus: Path) -> None:
    """No Python string is made for a document."""
    assert all(isinstance(batch, ArrowTexts) for batch in documents(corpus / "lines.txt", document="line"))


def test_documents_before_an_error_are_used(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"good one\ngood two\nbad \xff\n")
    with pytest.raises(ValueError, match="invalid UTF-8 at byte 22"):
        for batch in sources(tmp_path / "a.txt", ReadOptions(document="line"))[0]:
            assert batch.array.to_pylist() == ["good one", "good two"]

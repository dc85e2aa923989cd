"""`Documents`: strings, arrow arrays, text files and chunk counts have the same interface."""

import gzip
import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from data_files import documents

from batchbpe.data.documents import ArrowTexts, Counts, Documents, TextFile, Texts
from batchbpe.data.source import Source

WORDS = ["to be", "", "naïve", "語" * 5, "or not"]
SIZES = [5, 0, 6, 15, 6]


def arrow(type_: Any) -> ArrowTexts:
    return ArrowTexts(pa.array(["before", *WORDS, "after"], type_)[1:-1])


def strings(batch: Documents) -> list[str]:
    assert isinstance(batch, Texts | ArrowTexts)
    return batch.strings if isinstance(batch, Texts) else batch.array.to_pylist()


@pytest.mark.parametrize(
    "batch", [Texts(WORDS), arrow(pa.string()), arrow(pa.large_string())], ids=["texts", "string", "large_string"]
)
def test_batches(batch: Documents) -> None:
    assert len(batch) == 5
    assert batch.sizes().tolist() == SIZES
    assert batch.sizes().dtype == np.int64
    for rows in (slice(0, 2), slice(2, None), slice(1, 1), slice(4, 99), slice(None)):
        assert type(batch[rows]) is type(batch)
        assert strings(batch[rows]) == WORDS[rows]
        assert batch[rows].sizes().tolist() == SIZES[rows]
    mask = np.array([True, False, False, True, False])
    assert strings(batch.select(mask)) == [WORDS[0], WORDS[3]]
    assert strings(batch[2:].select(mask[2:])) == [WORDS[3]]
    assert strings(batch.select(np.zeros(5, bool))) == []
    assert not batch.has_longer_than(15)
    assert batch.has_longer_than(5)
    assert not batch[:0].has_longer_than(0)


def test_arrow_sizes_are_exact() -> None:
    assert arrow(pa.string()).has_longer_than(14)
    assert not arrow(pa.string())[:3].has_longer_than(6)


def test_sizes_of_surrogates() -> None:
    assert Texts(["a\ud800"]).sizes().tolist() == [4]


def test_text_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress("naïve\n".encode() * 1000))
    (file,) = documents(path)
    assert isinstance(file, TextFile)
    assert len(file) == 1
    assert file.sizes().tolist() == [7000]
    assert file.has_longer_than(1 << 60)
    assert file[:1] is file[0:5] is file
    assert file[1:] == file[:0] == file.select(np.array([False])) == Texts([])
    assert file.select(np.array([True])) is file


def test_errors_of_the_system_name_the_source() -> None:
    source, message = Source("standard input", lambda _: []), r"^cannot read standard input: is a directory$"
    with pytest.raises(IsADirectoryError, match=message), source.blamed():
        raise IsADirectoryError(21, "Is a directory")


def test_text_file_in_memory() -> None:
    stream = io.BytesIO(b"to be")
    file = TextFile("standard input", lambda: stream, opens_once=True, max_document_bytes=5).in_memory()
    assert not file.opens_once
    for _ in range(2):
        with file.open() as opened:
            assert opened.read() == b"to be"
    too_long = TextFile("standard input", lambda: io.BytesIO(b"to be!"), max_document_bytes=5)
    with pytest.raises(ValueError, match=r"^the text is too long, more than max_document_bytes=5; raise"):
        too_long.in_memory()


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ({"a": 1}, "a dict is read as chunk counts, which have no documents to encode; pass the texts as a list"),
        (Path("counts.csv"), "counts.csv: chunk counts have no documents to encode; pass documents"),
    ],
)
def test_counts_have_no_documents(source: Any, problem: str) -> None:
    counts = Counts(source)
    assert len(counts) == 0
    assert not counts.has_longer_than(0)
    for use in (counts.sizes, lambda: counts[:1], lambda: counts.select(np.zeros(0, bool))):
        with pytest.raises(ValueError, match=f"^{problem}$"):
            use()

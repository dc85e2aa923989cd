"""`ChunkCounts`: counting, queries, and errors about bad data."""

import json
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchbpe import PATTERNS, ChunkCounts, reference
from batchbpe.counts.counter import ChunkCounter
from batchbpe.data.corpus import sources
from batchbpe.data.options import Sampling
from batchbpe.data.text_files import BLOCK
from batchbpe.jobs.count import CountOptions, count_files
from batchbpe.patterns import Split

TEXT = "to be, or not to be: that is the question\n"


def test_mapping() -> None:
    counts = ChunkCounts.count(TEXT)
    expected = reference.count_chunks([TEXT], PATTERNS["gpt4"])
    assert dict(counts) == expected
    assert list(counts) == list(expected)
    assert counts.most_common() == list(expected.items())
    assert counts.most_common(3) == list(expected.items())[:3]
    assert counts.most_common(0) == []
    assert counts.most_common(10**9) == list(expected.items())
    assert len(counts) == counts.unique == len(expected)
    assert counts.total == sum(expected.values())
    assert counts[" be"] == 2
    assert " be" in counts
    assert "be" not in counts
    assert counts.pattern == PATTERNS["gpt4"]
    assert repr(counts) == f"ChunkCounts(total={counts.total}, unique={counts.unique})"
    with pytest.raises(KeyError, match="absent"):
        counts["absent"]


def test_equal_counts_are_ordered_by_bytes() -> None:
    counts = ChunkCounts.count("é z ~ a B \U0001f600 \uffff", r"\S+| ")
    assert list(counts) == [" ", "B", "a", "z", "~", "é", "\uffff", "\U0001f600"]


def test_equality() -> None:
    counts = ChunkCounts.count(TEXT)
    assert counts == ChunkCounts.count(TEXT)
    assert counts != ChunkCounts.count(TEXT + "more")
    assert counts != ChunkCounts.count(TEXT, "gpt2")
    assert counts == dict(counts)
    with pytest.raises(TypeError, match="unhashable"):
        hash(counts)


def test_addition() -> None:
    one, two = ChunkCounts.count(TEXT), ChunkCounts.count("to err is human")
    assert one + two == ChunkCounts.count([TEXT, "to err is human"]) == two + one
    assert ChunkCounts.count([one, two, "to err"]) == one + two + ChunkCounts.count("to err")
    with pytest.raises(TypeError, match="unsupported operand"):
        one + {"a": 1}  # type: ignore[operator]


def test_sum() -> None:
    counts = ChunkCounts.count(TEXT)
    assert sum([counts, counts]) == counts + counts
    assert sum([counts]) is counts
    assert sum([counts, counts, counts])[" be"] == 6  # type: ignore[index]
    with pytest.raises(TypeError, match="unsupported operand"):
        sum([counts], 1)


def test_counts_with_different_patterns_cannot_be_added() -> None:
    problem = "^counted with the pattern gpt2, expected gpt4; use gpt2, or count the text again with gpt4$"
    with pytest.raises(ValueError, match=problem):
        ChunkCounts.count(TEXT) + ChunkCounts.count(TEXT, "gpt2")
    with pytest.raises(ValueError, match=r"counted with the pattern gpt4, expected o200k"):
        ChunkCounts.count(ChunkCounts.count(TEXT), "o200k")
    with pytest.raises(ValueError, match=r"counted with the pattern '\\\\w\+', expected gpt2"):
        ChunkCounts.count([ChunkCounts.count(["to"], r"\w+")], "gpt2")


def test_text_added_to_counts_is_split_with_their_pattern() -> None:
    counts = ChunkCounts.count(TEXT, "gpt2")
    assert ChunkCounts.count([counts, TEXT]) == counts + counts
    assert ChunkCounts.count(counts) is counts


def test_counts_have_64_bits() -> None:
    counts = ChunkCounts.count({"a": 2**64 - 1, "b": 2**63})
    assert counts["a"] == 2**64 - 1
    assert counts.total == 2**64 - 1 + 2**63
    with pytest.raises(ValueError, match=r'chunk "a" add up to more than 2\*\*64 - 1; scale them down'):
        counts + ChunkCounts.count({"a": 1})


@given(st.dictionaries(st.binary(min_size=1, max_size=40), st.integers(1, 2**40), max_size=30))
def test_hyp_any_bytes(chunks: dict[bytes, int]) -> None:
    counts = ChunkCounts.count(chunks)
    expected = sorted(chunks.items(), key=lambda item: (-item[1], item[0]))
    assert [(chunk.encode("utf-8", "surrogateescape"), count) for chunk, count in counts.most_common()] == expected
    assert all(counts[chunk.decode("utf-8", "surrogateescape")] == count for chunk, count in expected)


def test_counts_of_0_are_dropped() -> None:
    counts = ChunkCounts.count({"a": 0, "b": np.int64(3), "c": 0})
    assert counts.pattern == PATTERNS["gpt4"]
    assert dict(counts) == {"b": 3}
    assert list(counts.items()) == [("b", 3)]
    assert list(counts.values()) == [3]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_repeated_chunks_are_added_up(suffix: str, tmp_path: Path) -> None:
    # Sorted by count, but one chunk is repeated.
    path = tmp_path / f"twice.{suffix}"
    if suffix == "csv":
        path.write_text("text_chunk,count\n abc,5\n abd,4\n abc,3\n.+,0\n")
    else:
        table = pa.table({"chunk": pa.array([b" abc", b" abd", b" abc"]), "count": pa.array([5, 4, 3], pa.uint64())})
        pq.write_table(table.replace_schema_metadata({"batchbpe": '{"version": 1, "pattern": ".+"}'}), path)
    assert dict(ChunkCounts.load(path)) == {" abc": 8, " abd": 4}


@pytest.mark.parametrize("name", ["counts", "counts.txt", "counts.model"])
def test_unknown_suffix_cannot_be_saved(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=rf"path must end in \.parquet or \.csv, got '.*{name}'"):
        ChunkCounts.count("a b").save(tmp_path / name)


@pytest.mark.parametrize("special_tokens", ["<e>", {"<e>"}, [""], [1], None, {"<e>": "x"}, ["<a>", "<a>"]], ids=repr)
def test_wrong_special_tokens(special_tokens: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"special token|special_tokens"):
        ChunkCounts.count("hello there", special_tokens=special_tokens)


@pytest.mark.parametrize("name", ["gpt5", "GPT4", "hello"])
def test_unknown_pattern_name(name: str) -> None:
    choices = f"a regular expression or one of {', '.join(PATTERNS)}"
    remedy = re.escape("to match a literal word, write (?:word)")
    with pytest.raises(ValueError, match=f"^pattern must be {choices}, got '{name}'; {remedy}$"):
        ChunkCounts.count(["text"], name)


@pytest.mark.parametrize("threads", [0, -1])
def test_wrong_threads(threads: int) -> None:
    with pytest.raises(ValueError, match=f"threads must be at least 1, or None for all cores, got {threads}"):
        ChunkCounts.count(["text"], threads=threads)


def test_very_many_threads() -> None:
    assert ChunkCounts.count("some text", threads=2**62) == ChunkCounts.count("some text", threads=1)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({"a": -1}, r"data must map chunk 'a' to an integer from 0 to 2\*\*64 - 1, got -1$"),
        ({"a": 2**64}, r"chunk 'a' to an integer .*, got 18446744073709551616$"),
        ({"a": 1.5}, r"chunk 'a' to an integer .*, got 1\.5$"),
        ({"a": True}, r"chunk 'a' to an integer .*, got True$"),
        ({"a": "3"}, r"chunk 'a' to an integer .*, got '3'"),
        ([{"text": "b"}], r"got 'b'; for rows of a table, pass \[row\['text'\] for row in rows\] or a data frame$"),
        (
            {"en": {"to": 1}},
            r"to an integer .*, got \{'to': 1\}; for groups, such as languages, use train\(groups=…\)$",
        ),
        ({"": 3}, r"the counts contain an empty chunk; remove it"),
    ],
)
def test_wrong_counts(data: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        ChunkCounts.count(data)


def test_chunk_of_wrong_type() -> None:
    with pytest.raises(TypeError, match="data must map str or bytes to counts, got 3"):
        ChunkCounts.count({3: 1})  # type: ignore[dict-item]


def test_cutoff() -> None:
    counts = ChunkCounts.count({"a": 1, "b": 2, "c": 2, "d": 5})
    for cutoff, kept in ((0, "dbca"), (1, "dbca"), (2, "dbc"), (3, "d"), (5, "d"), (6, ""), (2**64, "")):
        assert "".join(counts.at_least(cutoff)) == kept


def test_stop_words_have_more_than_one_character() -> None:
    counts = ChunkCounts.count({"é": 9, "語": 9, "😀": 9, "a": 9, "ab": 8, "\r\n": 7, "éa": 6, "z": 5, "e\u0301": 4})
    assert counts.stop_words(3) == [b"ab", b"\r\n", "éa".encode()]
    assert counts.stop_words(99) == [b"ab", b"\r\n", "éa".encode(), "e\u0301".encode()]
    assert counts.stop_words(0) == []


def test_special_tokens_are_removed() -> None:
    counts = ChunkCounts.count("one<|end|>two<|end|>", special_tokens=["<|end|>"])
    assert dict(counts) == {"one": 1, "two": 1}
    nested = ChunkCounts.count("a<x>b<x>y.*c", special_tokens=["<x>", "<x>y", ".*"])
    assert dict(nested) == {"a": 1, "b": 1, "c": 1}
    spaced = ChunkCounts.count("a \n(b c)\n d", special_tokens=[" \n(b c)\n "])
    assert dict(spaced) == {"a": 1, "d": 1}


def test_special_tokens_across_block_boundaries(tmp_path: Path) -> None:
    # The token starts at every distance from the boundary, and contains a newline, where text may be cut.
    special = "<|a\nb|>"
    path = tmp_path / "a.txt"
    for shift in range(9):
        text = "x" * (BLOCK - shift) + special + "y\nz"
        path.write_text(text, newline="")
        counts = ChunkCounts.count(path, special_tokens=[special])
        assert dict(counts) == {"x" * (BLOCK - shift): 1, "y": 1, "\n": 1, "z": 1}


def test_characters_across_block_boundaries(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    for shift in range(5):
        text = "ab cd\n" * (BLOCK // 6) + "x" * shift + "語é😀\n語" * 9 + " end\n" * BLOCK
        path.write_text(text, encoding="utf-8", newline="")
        assert ChunkCounts.count(path) == ChunkCounts.count(text)


@pytest.mark.parametrize("errors", ["strict", "replace"])
@pytest.mark.parametrize("at", [0, 5, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 77, 3 * BLOCK - 1])
def test_invalid_utf8(at: int, errors: Any, tmp_path: Path) -> None:
    data = bytearray((b"some words\nand \xc3\xa9\n" * BLOCK)[: 3 * BLOCK])
    data[-20:] = b"x" * 20
    path = tmp_path / "bad.txt"
    good = len(bytes(data[:at]).decode("utf-8", "ignore").encode())
    data[good] = 0xFF
    path.write_bytes(data)
    if errors == "strict":
        with pytest.raises(ValueError, match=rf'bad\.txt: .*UTF-8 at byte {good}\b.*errors="replace"'):
            ChunkCounts.count(path)
    else:
        text = bytes(data).decode("utf-8", "replace")
        assert "\ufffd" in text
        assert ChunkCounts.count(path, errors="replace") == ChunkCounts.count(text)


def test_incomplete_character_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_bytes(b"caf\xc3")
    with pytest.raises(ValueError, match=r"bad\.txt: the text is invalid UTF-8 at byte 3"):
        ChunkCounts.count(tmp_path / "bad.txt")
    assert dict(ChunkCounts.count(tmp_path / "bad.txt", errors="replace")) == {"caf": 1, "\ufffd": 1}


def test_wrong_options() -> None:
    with pytest.raises(ValueError, match='errors must be "strict" or "replace", got \'ignore\''):
        ChunkCounts.count(TEXT, errors="ignore")  # type: ignore[arg-type]


def test_lone_surrogates(tmp_path: Path) -> None:
    many = iter(["a"] * 5000 + ["\udfff"])
    for data, text, place in (("a\udc80", "a\udc80", 1), (["b", "aa\ud800"], "aa\ud800", 2), (many, "\udfff", 0)):
        with pytest.raises(UnicodeEncodeError) as caught:
            ChunkCounts.count(data)
        problem = f'document {text!r}: lone surrogate {text[-1]!r} at character {place}; use errors="replace"'
        assert str(caught.value).startswith(problem)
    for data in ("a\udc80", ["a\ud800"]):
        assert dict(ChunkCounts.count(data, errors="replace")) == {"a": 1, "\ufffd": 1}
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a\\ud800"}\n')
    with pytest.raises(ValueError, match=r"a\.jsonl, document 'a\\ud800': lone surrogate"):
        ChunkCounts.count(path)
    assert dict(ChunkCounts.count(path, errors="replace")) == {"a": 1, "\ufffd": 1}


def test_bytes_that_are_not_utf8_in_mappings() -> None:
    assert ChunkCounts.count({"\udc80a": 2}) == ChunkCounts.count({b"\x80a": 2})
    with pytest.raises(ValueError, match=r"data must not contain a chunk with a lone surrogate, got 'a\\ud800'"):
        ChunkCounts.count({"a\ud800": 1}, errors="replace")
    assert dict(ChunkCounts.count({"\ud800": 0, "a": 1})) == {"a": 1}


def test_empty_data() -> None:
    for data in ("", [], iter([]), iter([""]), {}, pa.array([], pa.string())):
        counts = ChunkCounts.count(data)
        assert (counts.total, counts.unique, list(counts)) == (0, 0, [])
        assert counts + ChunkCounts.count(TEXT) == ChunkCounts.count(TEXT)


def test_slices_of_arrow_arrays() -> None:
    words = [f"word{n} é" * (n % 4) for n in range(100)]
    for kind in (pa.string(), pa.large_string()):
        array = pa.array(words, kind)
        for part in (slice(0, 100), slice(17, 60), slice(99, 100)):
            assert ChunkCounts.count(array[part]) == ChunkCounts.count(iter(words[part]))


def test_chunks_of_every_length() -> None:
    # The core stores chunks of up to 15 bytes inline, and longer ones elsewhere.
    chunks = ["a" * n for n in range(1, 70)] + ["b" * 15, "b" * 16, "\0", "\0\0", "\0" * 15, "\0" * 16]
    random.Random(1).shuffle(chunks)
    counts = ChunkCounts.count(iter(chunks), "(?s).+")
    assert dict(counts) == dict.fromkeys(chunks, 1)


def test_chunk_of_several_megabytes() -> None:
    text = "a" * 3_000_000 + "é" * 1_000_000
    counts = ChunkCounts.count([text, text, text[1:]], "(?s).+")
    assert counts.most_common() == [(text, 2), (text[1:], 1)]
    assert counts[text] == 2


def test_progress() -> None:
    read: list[int] = []
    ChunkCounts.count(iter(["a" * 4_000_000] * 3), progress=read.append)
    assert read == [4_000_000, 8_000_000, 12_000_000]


def test_bytes_read(tmp_path: Path) -> None:
    """Bytes of text in UTF-8 are counted, not characters, whatever the source."""
    words = ["naïve", "語 😀", "plain"]
    size = sum(len(word.encode()) for word in words)
    records = "".join(json.dumps({"text": word}, ensure_ascii=word == "naïve") + "\n" for word in words)
    (tmp_path / "a.jsonl").write_text(records, encoding="utf-8")
    (tmp_path / "a.txt").write_text("".join(words), encoding="utf-8")
    pq.write_table(pa.table({"text": words}), tmp_path / "a.parquet")
    for data in (words, tmp_path / "a.jsonl", tmp_path / "a.txt", tmp_path / "a.parquet", pa.array(words)):
        counter = ChunkCounter("gpt4")
        positions: list[int] = []
        counter.on_progress = positions.append
        counter.add_sources(sources(data))
        assert counter.bytes_read == size
        assert positions
        read: list[int] = []
        ChunkCounts.count(data, progress=read.append)
        assert read[-1] == size


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Text files, jsonl and parquet in one folder."""
    folder = tmp_path / "data"
    folder.mkdir()
    words = [f"document {n} é\n" for n in range(300)]
    for n in range(8):
        (folder / f"{n}.txt").write_text("".join(words[n::8]), encoding="utf-8")
    (folder / "a.jsonl").write_text("".join(json.dumps({"text": word}) + "\n" for word in words), encoding="utf-8")
    pq.write_table(pa.table({"text": words}), folder / "b.parquet", row_group_size=100)
    return folder


@pytest.mark.parametrize(
    "options",
    [
        {"sample": 0.3},
        {"sample": 0.3, "seed": 7},
        {"limit_bytes": 1000},
        {"limit_bytes": 1001},
        {"sample": 0.5, "seed": 3, "limit_bytes": 6000},
        {"limit_bytes": 1 << 40},
    ],
    ids=str,
)
def test_samples_equal_those_of_jobs(options: dict[str, Any], folder: Path, tmp_path: Path) -> None:
    counts = ChunkCounts.count(folder, **options)
    count_files(sources(folder), tmp_path / "counts.parquet", CountOptions(sampling=Sampling(**options)))
    assert ChunkCounts.load(tmp_path / "counts.parquet") == counts
    whole = ChunkCounts.count(folder)
    assert counts == whole if options == {"limit_bytes": 1 << 40} else 0 < counts.total < whole.total


def test_samples(folder: Path) -> None:
    one, same, other = (ChunkCounts.count(folder, sample=0.3, seed=seed) for seed in (1, 1, 2))
    assert one == same != other
    assert sum(len(chunk.encode()) * n for chunk, n in ChunkCounts.count(folder, limit_bytes=1001).items()) in (
        1000,
        1001,
    )
    for options in ({"sample": 0.0}, {"sample": 1.5}, {"limit_bytes": 0}):
        with pytest.raises(ValueError, match=rf"{next(iter(options))} must be"):
            ChunkCounts.count(folder, **options)


def test_counts_cannot_be_sampled(tmp_path: Path) -> None:
    counts = ChunkCounts.count(TEXT)
    counts.save(tmp_path / "counts.parquet")
    for data in (counts, [counts], dict(counts), tmp_path / "counts.parquet"):
        for options in ({"sample": 0.5}, {"limit_bytes": 10}):
            problem = f"{next(iter(options))} cannot be used with chunk counts; pass documents$"
            with pytest.raises(ValueError, match=problem):
                ChunkCounts.count(data, **options)  # type: ignore[arg-type]


def test_a_split_has_a_name() -> None:
    assert Split.of("gpt4") == Split(PATTERNS["gpt4"])

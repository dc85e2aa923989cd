"""Strings, paths, lists and other objects as data: what is a text, what is a file, and what is an error."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from data_files import documents, jsonl, parquet, texts, write

from batchbpe import ChunkCounts, RunCounts, Tokenizer
from batchbpe.analysis import evaluate
from batchbpe.data import corpus
from batchbpe.data.documents import Counts, Texts


@pytest.mark.parametrize(
    "text",
    [
        "hello world",
        "word!",
        "生存",
        "a" * 256,
        "one / two",
        "see a/b for more",
        "notes.txt\nis a file",
        "a/b\r",
        "one\rtwo.txt",
        "nul/\0",
        "http://host/a.txt is a URL",
        "字" * 100 + "/" + "字",  # no spaces, but too long for a file name
        "a/" * 2048,
        "What?",
    ],
)
def test_text(text: str) -> None:
    assert list(documents(text)) == [Texts([text])]
    assert list(documents([text, text])) == [Texts([text, text])]


@pytest.mark.parametrize("text", ["notes.txt", "my notes.md.GZ", "data/corpus", "a.jsonl.zst", "~no/x", "data"])
def test_string_that_looks_like_a_path(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"file not found: .*; if this is text, pass it as texts=$") as error:
        documents(text)
    assert f": {text};" in str(error.value)
    assert list(documents(iter([text]))) == [Texts([text])]


@pytest.mark.parametrize(
    "use",
    [
        ChunkCounts.count,
        lambda data: Tokenizer.train(data, 1000),
        lambda data: RunCounts.count(data, Tokenizer.train("a", 256)),
        lambda data: evaluate({"bytes": Tokenizer.train("a", 256)}, data),
    ],
)
def test_a_misspelled_folder_is_not_a_text(use: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "data" / "a.txt", "to be or not to be")
    use("data")
    with pytest.raises(
        FileNotFoundError, match=r"^file not found: datas \(similar: data\); if this is text, pass it as texts=$"
    ):
        use("datas")
    with pytest.raises(FileNotFoundError, match=r"^file not found: dtaa \(similar: data\); if"):
        use("dtaa")
    with pytest.raises(FileNotFoundError, match=r"^no file matches the pattern: texts\*; if"):
        use("texts*")


def test_a_word_is_a_text_in_toy_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Tokenizer.train("aaabdaaabac", 259).encode("aaabdaaabac") == [258, 100, 258, 97, 99]
    with pytest.raises(FileNotFoundError, match=r"^file not found: aaabdaaabac; if this is text"):
        Tokenizer.train("aaabdaaabac", 300)
    assert Tokenizer.train(texts="aaabdaaabac", vocab_size=300).vocab_size == 263


def test_lists_of_texts_are_not_looked_up_on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "files_at", lambda *_: pytest.fail("looked up on disk"))
    many = ["a short document, and/or not", "word", "two\nlines/of.txt"] * 10_000
    assert texts(many) == many


@pytest.mark.parametrize(
    "data",
    [
        ["/etc/hostname", "a text"],
        ["/etc/hostname"],
        ["http://127.0.0.1:1/page"],
        ["http://[host]/a"],
        ["/"],
        ["."],
        ["~", "and/or"],
        ["/etc/*"],
        [["/"], ("/etc/hostname",)],
    ],
    ids=str,
)
def test_strings_in_lists_are_texts(data: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "files_at", lambda *_: pytest.fail("opened"))
    expected = [text for item in data for text in ([item] if isinstance(item, str) else item)]
    assert texts(data) == expected
    assert texts(tuple(data)) == expected


@pytest.mark.parametrize(
    ("data", "doubtful"),
    [
        (["a text", "notes.txt"], "notes.txt"),
        (["data/*.parquet", "and/or"], "data/*.parquet"),
        (["/etc/hostname", "http://127.0.0.1:1/a.jsonl.gz?x=y"], "http://127.0.0.1:1/a.jsonl.gz?x=y"),
    ],
)
def test_texts_in_lists_that_look_like_files(data: list[str], doubtful: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "files_at", lambda *_: pytest.fail("opened"))
    problem = "in a list looks like a file, but is used as a text like the other strings; pass files= or texts="
    with pytest.warns(UserWarning, match=problem) as warned:
        assert texts(data) == data
    assert [str(warning.message).startswith(repr(doubtful)) for warning in warned] == [True]


def test_lists_of_files(tmp_path: Path) -> None:
    one, two = write(tmp_path / "my notes.txt", "one"), write(tmp_path / "b.MD", "two")
    table = parquet(tmp_path / "c.parquet", text=["three"])
    for data in ([str(one), str(two)], (str(one), f"{tmp_path}/*.MD"), [one, two], [[str(one)], [str(two)]]):
        assert texts(data) == ["one", "two"]
    assert texts([str(one), str(table), two]) == ["one", "three", "two"]  # one of them is a Path
    for data in ([str(one), "absent.txt"], ["absent.txt"], [str(one), str(tmp_path / "*.csv")], [["absent.txt"]]):
        with pytest.raises(
            FileNotFoundError, match=r".*(absent\.txt|\*\.csv); if the strings are text, pass them as texts=$"
        ):
            documents(data)


def test_texts_keyword() -> None:
    names = ["notes.txt", "/", "https://127.0.0.1:1/a.txt"]
    for given in (names, tuple(names), iter(names), dict.fromkeys(names).keys()):
        assert texts(texts=given) == names
    assert texts(texts="notes.txt") == ["notes.txt"]
    assert ChunkCounts.count(texts="notes.txt") == ChunkCounts.count(texts=iter(["notes.txt"]))
    assert dict(ChunkCounts.count(texts=["a.txt", "a.md"])) == {"a": 2, ".txt": 1, ".md": 1}
    for wrong in ({"a": 1}, ChunkCounts.count(["a"]), pa.table({"text": ["a"]})):  # iterating over them gives names
        with pytest.raises(TypeError, match=r"texts must be strings, got .*; use data"):
            ChunkCounts.count(texts=wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"document 1 must be a string, got (Posix|Windows)Path\('b'\)"):
        ChunkCounts.count(texts=["a", Path("b")])  # type: ignore[list-item]


def test_an_existing_file_without_a_suffix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "enwik", "one two")
    assert texts("enwik") == ["one two"] and texts(["enwik", "other"]) == ["enwik", "other"]


@pytest.mark.parametrize("files", ["", [""]])
def test_an_empty_path_is_not_the_current_folder(files: Any) -> None:
    with pytest.raises(ValueError, match="files must not contain an empty path, got ''"):
        ChunkCounts.count(files=files)


def test_files_keyword(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "notes", "one")
    write(tmp_path / "folder/a.txt", "two")
    for given in ("notes", Path("notes"), ["notes"], [Path("notes")], iter(["not*"])):
        assert ChunkCounts.count(files=given) == ChunkCounts.count(["one"])
    assert texts(files=["folder", "notes"]) == ["two", "one"]
    with pytest.raises(FileNotFoundError, match=r"^file not found: a text$"):
        ChunkCounts.count(files=["notes", "a text"])
    for wrong in (3, [b"notes"], ["notes", None], [["notes"]]):
        with pytest.raises(TypeError, match="files must be paths, globs, folders or URLs, got"):
            ChunkCounts.count(files=wrong)  # type: ignore[arg-type]


def test_one_of_data_texts_and_files() -> None:
    with pytest.raises(TypeError, match="pass exactly one of data, texts and files; got none"):
        ChunkCounts.count()
    with pytest.raises(TypeError, match=r"pass exactly one of data, texts and files; got data and texts$"):
        ChunkCounts.count(["a"], texts="b")
    with pytest.raises(TypeError, match=r"got data and texts and files$"):
        ChunkCounts.count(["a"], texts=[], files=[])
    assert ChunkCounts.count(texts=[]).total == ChunkCounts.count(files=[]).total == 0


def test_string_that_is_an_existing_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "data/a.txt", "a file")
    assert texts("data") == ["a file"]
    assert texts(["data"]) == texts(iter(["data"])) == ["data"]
    for text in ("", "\0", "a\ud800", "字" * 100, "a" * 5000):
        assert texts(text) == [text]


def test_nothing() -> None:
    for data in ([], (), iter([]), pa.array([], pa.string())):
        assert list(documents(data)) == []


def test_path_like_object(tmp_path: Path) -> None:
    class Place(os.PathLike[str]):
        def __fspath__(self) -> str:
            return str(write(tmp_path / "a.txt", "text"))

    assert texts(Place()) == texts([Place()]) == ["text"]


def test_path_with_spaces_and_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    write(tmp_path / "my notes.TXT", "text")
    assert texts("~/my notes.TXT") == texts(Path("~/my notes.TXT")) == ["text"]


def test_glob(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", "c.md", "deep/er/d.txt", ".hidden.txt"):
        write(tmp_path / name, name)
    (tmp_path / "folder.txt").mkdir()
    assert texts(f"{tmp_path}/*.txt") == texts(tmp_path / "*.txt") == ["a.txt", "b.txt"]
    assert texts(f"{tmp_path}/**/*.txt") == ["a.txt", "b.txt", "deep/er/d.txt"]
    with pytest.raises(FileNotFoundError, match=r"no file matches the pattern: .*\*\.jsonl"):
        documents(f"{tmp_path}/*.jsonl")


def test_file_whose_name_has_glob_characters(tmp_path: Path) -> None:
    assert texts(str(write(tmp_path / "a[1].txt", "text"))) == ["text"]


def test_folder(tmp_path: Path) -> None:
    for name in ("b.txt", "a/z.md", "a.bin", ".hidden.txt", ".git/c.txt"):
        write(tmp_path / name, name)
    jsonl(tmp_path / "c.jsonl", {"text": "c.jsonl"})
    for data in (tmp_path, f"{tmp_path}/"):
        assert texts(data) == ["a/z.md", "b.txt", "c.jsonl"]


def test_folder_without_known_files(tmp_path: Path) -> None:
    write(tmp_path / "a.bin", "")
    with pytest.raises(
        FileNotFoundError, match=r"no \.txt, .* file in the folder: .*; to read other .* glob such as .*/\*$"
    ):
        documents(tmp_path)
    assert texts(f"{tmp_path}/*") == [""]
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"file in the folder: .*empty$"):
        documents(tmp_path / "empty")


def test_missing_last_file_fails_before_the_first_is_read(tmp_path: Path) -> None:
    good = write(tmp_path / "a.txt", "text")
    with pytest.raises(FileNotFoundError, match=r"absent\.txt$"):
        documents([good, tmp_path / "absent.txt"])


def test_mapping_is_passed_through() -> None:
    counts = {b"a": 1}
    (item,) = documents(counts)
    assert isinstance(item, Counts)
    assert item.source is counts


def test_iterables_of_strings_are_documents() -> None:
    strings = ["a.txt", "and/or", "http://127.0.0.1:1/", "*.md"]
    for data in (iter(strings), (text for text in strings), dict.fromkeys(strings).keys()):
        assert texts(data) == strings


def test_lists_of_strings_in_iterables_are_documents() -> None:
    strings = [f"document {number}" for number in range(10)]

    def batches() -> Iterator[Any]:
        yield strings[:4]
        yield np.array(strings[4:8])
        yield from strings[8:]

    assert texts(batches()) == texts([*batches()]) == strings
    assert texts(texts=batches()) == strings


def test_batches_are_bounded_and_lazy() -> None:
    def endless(item: Any) -> Iterator[Any]:
        while True:
            yield item

    assert len(next(documents(endless("a" * 1_000_000)))) == 2
    assert len(next(documents(endless(["a" * 300_000] * 3)))) == 7
    assert len(next(documents(iter([endless("a")])))) == 4096
    assert [len(batch) for batch in documents(iter(["a"] * 10_000))] == [4096, 4096, 1808]


def test_mixed_list_keeps_the_order(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "file")
    table = pa.table({"text": ["table"]})
    assert texts(["one", "two", path, "three", table, ("four", [str(path)]), iter(["x/y"])]) == [
        *("one", "two", "file", "three", "table", "four", "file", "x/y")
    ]
    assert list(documents(["one", {b"a": 1}])) == [Texts(["one"]), Counts({b"a": 1})]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"text", "data must not be bytes, got b'text'; decode them"),
        (["a", bytearray(b"b")], r"data\[1\] must not be bytes, got b'b'; decode them"),
        (None, "data must be text, a path, counts, a table, or an iterable of strings, got None"),
        (["a", ["b", 3]], r"data\[1\]\[1\] must be text, .*, got 3"),
        (iter(["a", 3]), "document 1 must be a string, got 3"),
        (iter(["a", ["b", 3]]), r"document 1\[1\] must be a string, got 3"),
        (iter([[["a"]]]), r"document 0\[0\] must be a string, got \['a'\]"),
        (iter([["a"], b"b"]), "document 1 must be a string, got b'b'"),
        (iter([{"text": ["a"]}]), r"document 0 must be a string, got .*; pass \(row"),
        (
            iter([{"text": "a"}]),
            r"""document 0 must be a string, got {'text': 'a'}; pass \(row\["text"\] for row in rows\)""",
        ),
        (np.array([7, 2]), r"document 0 must be a string, got (np\.int64\()?7"),
        (iter([Path("a")]), r"document 0 must be a string, got (Posix|Windows)Path\('a'\)"),
    ],
)
def test_type_errors(data: Any, problem: str) -> None:
    with pytest.raises(TypeError, match=problem):
        list(documents(data))


def test_nothing_heavy_is_imported(tmp_path: Path) -> None:
    code = f"""if True:
        import sys
        import batchbpe
        heavy = {{"pyarrow", "pandas", "datasets", "http.client"}}
        print(sorted((heavy | {{"numpy"}}) & set(sys.modules)))
        from pathlib import Path
        from batchbpe.data.corpus import sources
        for source in sources(["a", {{}}, Path({str(write(tmp_path / "a.txt", "text"))!r})]):
            for batch in source:
                if hasattr(batch, "open"):
                    batch.open().read()
        print(sorted(heavy & set(sys.modules)))
    """
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n[]\n"

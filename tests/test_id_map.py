"""The parts of new tokens in another vocabulary are what the reference gives."""

import json
import pickle
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest
from helpers import END, TEXT, examples, run
from hypothesis import given
from hypothesis import strategies as st

from batchbpe import BatchTokenizer, Model, Tokenizer, reference
from batchbpe.analysis.id_map import IdMap
from batchbpe.util.utf8 import is_utf8

ORDINARY = ("stop", "merge", "phrase")
KINDS = (*ORDINARY, "added", "decode-only", "special")
NAMES = ["ab", "<s>", "a b", "ba", "é", "</s>"]
BYTES = [*b"ab <s>\xc3\xa9"]
PATTERN = r" ?[a-z]+|\s|[^\sa-z]+"


@st.composite
def models(draw: st.DrawFn, phrases: bool) -> Model:
    """Small models with all kinds of tokens, whose bytes often coincide, and with gaps between ids."""
    free = iter(draw(st.permutations(range(200, 300))))
    byte_ids: list[int | None] = [*range(256)]
    for token in range(200, 256):
        byte_ids[token] = 1000 + token
    for missing in draw(st.lists(st.sampled_from(b"s>\xa9"), max_size=2)):
        byte_ids[missing] = None
    parts = [token for byte in BYTES if (token := byte_ids[byte]) is not None]
    merges: dict[tuple[int, int], int] = {}
    for _ in range(draw(st.integers(0, 8))):
        pair = draw(st.tuples(st.sampled_from(parts), st.sampled_from(parts)))
        if pair not in merges:
            merges[pair] = next(free)
            parts.append(merges[pair])
    values = st.binary(min_size=1, max_size=4).map(lambda value: bytes(BYTES[byte % len(BYTES)] for byte in value))
    stop_words = draw(st.lists(st.one_of(values, st.sampled_from(NAMES).map(str.encode)), max_size=3, unique=True))
    found = draw(st.lists(st.sampled_from(NAMES), max_size=4, unique=True))
    is_special = [draw(st.booleans()) for _ in found]
    decode_only = draw(st.lists(st.sampled_from([*NAMES, "aa", "語"]), max_size=2, unique=True))
    return Model(
        PATTERN,
        merges=merges,
        byte_ids=tuple(byte_ids),
        stop_words={word: next(free) for word in stop_words},
        special_tokens={name: next(free) for name, special in zip(found, is_special, strict=True) if special},
        added_tokens={name: next(free) for name, special in zip(found, is_special, strict=True) if not special},
        decode_only={next(free): name.encode() for name in decode_only},
        phrases={pair: next(free) for pair in draw(st.lists(st.tuples(*[st.sampled_from(parts)] * 2), unique=True))}
        if phrases
        else {},
    )


def kinds(model: Model) -> dict[str, list[int]]:
    return {
        "stop": [*model.stop_words.values()],
        "merge": [token for token in (*model.byte_ids, *model.merges.values()) if token is not None],
        "phrase": [*model.phrases.values()],
        "added": [*model.added_tokens.values()],
        "decode-only": [*model.decode_only],
        "special": [*model.special_tokens.values()],
    }


def same_token(new: Model, old: Model, token: int) -> int | None:
    """Return the old id of a token, by the definition: the first old token with the same bytes, of the same kind."""
    value = new.vocab[token]
    if old.vocab.get(token) == value:
        return token
    (kind,) = (kind for kind, tokens in kinds(new).items() if token in tokens)
    for other in sorted(KINDS, key=lambda other: (other != kind, KINDS.index(other))):
        if {kind, other} & {"special"} and {kind, other} & {*ORDINARY}:
            continue
        for candidate in kinds(old)[other]:
            if old.vocab[candidate] == value:
                return candidate
    return None


def encoded(new: Model, old: Model, token: int) -> list[int]:
    value = new.vocab[token]
    if token in [*new.found_tokens.values(), *new.phrases.values()] and is_utf8(value):
        words = {word.decode("utf-8", "surrogateescape"): id for word, id in old.stop_words.items()}
        flags = {name: old.flags_of(name) for name in old.added_tokens}
        options: Any = {"flags": flags, "byte_ids": old.byte_ids}
        return reference.encode(value.decode(), PATTERN, old.merges, words, old.added_tokens, **options)
    if value in old.stop_words:
        return [old.stop_words[value]]
    ids = [id for byte in value if (id := old.byte_ids[byte]) is not None]
    ranks = {pair: rank for rank, pair in enumerate(old.merges)}
    while pairs := [pair for pair in pairwise(ids) if pair in ranks]:
        first = min(pairs, key=ranks.__getitem__)
        at = [*pairwise(ids)].index(first)
        ids[at : at + 2] = [old.merges[first]]
    return ids


def parts_of(new: Model, old: Model, token: int) -> list[int]:
    same = same_token(new, old, token)
    return encoded(new, old, token) if same is None else [same]


@examples(400)
@given(new=models(phrases=True), old=models(phrases=False))
def test_hyp_the_definition(new: Model, old: Model) -> None:
    id_map = Tokenizer(new).id_map(Tokenizer(old))
    assert [id_map.parts(token) for token in range(new.n_vocab)] == [
        parts_of(new, old, token) if token in new.vocab else [] for token in range(new.n_vocab)
    ]
    same = {token: same_token(new, old, token) for token in new.vocab}
    assert id_map.old_ids.tolist() == [-1 if (id := same.get(token)) is None else id for token in range(new.n_vocab)]
    removed = [token for token in old.vocab if token not in same.values()]
    assert id_map.removed.tolist() == removed
    expected = {
        "kept": sum(token == old_id for token, old_id in same.items()),
        "moved": sum(old_id not in (None, token) for token, old_id in same.items()),
        "added": [*same.values()].count(None),
        "removed": len(removed),
    }
    assert id_map.counts == expected
    rows = id_map.table().to_pylist()
    assert [row["id"] for row in rows] == [*new.vocab, *[None] * len(removed)]
    for row in rows[: len(new.vocab)]:
        assert (row["old_id"], row["bytes"]) == (same[row["id"]], new.vocab[row["id"]])
        assert row["parts"] == id_map.parts(row["id"])
    for row, token in zip(rows[len(new.vocab) :], removed, strict=True):
        assert (row["change"], row["old_id"], row["bytes"]) == ("removed", token, old.vocab[token])
        if token not in old.found_tokens.values():  # the reference does not find phrases in names
            assert row["parts"] == parts_of(old, new, token)


@given(models(phrases=True))
def test_hyp_a_vocabulary_and_itself(model: Model) -> None:
    id_map = Tokenizer(model).id_map(Tokenizer(model))
    assert id_map.counts == {"kept": len(model.vocab), "moved": 0, "added": 0, "removed": 0}
    assert id_map.ids.tolist() == [*model.vocab]


def test_an_extension_keeps_all_ids() -> None:
    base = Tokenizer.train(TEXT, 400, special_tokens=[END], stop_list_size=5)
    longer = Tokenizer.train(TEXT, 500, base=base)
    id_map = longer.id_map(base)
    assert id_map.counts == {"kept": 400, "moved": 0, "added": len(longer) - 400, "removed": 0}
    for pair, token in longer.merges.items():
        if token not in base.vocab:
            assert base.decode_bytes(id_map.parts(token)) == longer.vocab[token]
            assert all(part in base.vocab for part in pair) <= (len(id_map.parts(token)) == 2)


def test_a_transplant_loses_no_text() -> None:
    """The parts of each token, and what replaces a token that was removed, have the same bytes."""
    one = Tokenizer.train(TEXT, 500, special_tokens=[END, "<old>"])
    two = Tokenizer.train(TEXT.swapcase(), 450, pattern="o200k", special_tokens=["<new>", END])
    id_map = two.id_map(one)
    assert min(id_map.counts.values()) > 10
    assert sum(id_map.counts.values()) == len(two) + id_map.counts["removed"]
    for token, value in two.vocab.items():
        assert one.decode_bytes(id_map.parts(token)) == value
    for token in id_map.removed.tolist():
        assert two.decode_bytes(id_map.reverse.parts(token)) == one.vocab[token]
    assert id_map.parts(two.special_tokens[END]) == [one.special_tokens[END]]
    assert id_map.parts(two.special_tokens["<new>"]) == one.encode_ordinary("<new>")
    assert id_map.reverse.parts(one.special_tokens["<old>"]) == two.encode_ordinary("<old>")


def test_tokens_with_equal_bytes() -> None:
    """The same id comes first, then the first token of the same kind."""

    def abc(first: int) -> Tokenizer:
        merges = {(97, 98): first, (98, 99): first + 1, (first, 99): first + 2, (97, first + 1): first + 3}
        return Tokenizer(Model(r"\w+", merges=merges, stop_words={b"abc": first + 4}))

    one, two = abc(256), abc(300)
    assert one.id_map(one).counts == {"kept": 261, "moved": 0, "added": 0, "removed": 0}
    assert [two.id_map(one).parts(token) for token in range(300, 305)] == [[256], [257], [258], [258], [260]]
    assert two.id_map(one).removed.tolist() == [259]
    assert two.id_map(one).reverse.parts(259) == [302]


def test_phrases_are_encoded_as_text() -> None:
    """As one chunk, their stop words would not be found."""
    base = Tokenizer(Model(r" ?\w+", merges={}, stop_words={b" b": 256, b"a": 257}))
    phrases = {(97, 256): 300, (255, 97): 301}
    tokenizer = Tokenizer(Model(r" ?\w+", merges={}, stop_words={b" b": 256}, phrases=phrases))
    assert tokenizer.id_map(base).parts(300) == [257, 256]
    assert tokenizer.id_map(base).parts(301) == [255, 97]
    assert base.id_map(tokenizer).reverse.parts(300) == [257, 256]
    assert Tokenizer(Model(r" ?\w+", merges={}, special_tokens={"a b": 9_000})).id_map(tokenizer).parts(9000) == [300]


def test_missing_bytes_do_not_make_later_text_warn() -> None:
    byte_ids = tuple(None if byte == 0x61 else byte for byte in range(256))
    base = Tokenizer(Model(r"\w+", merges={}, byte_ids=byte_ids))
    id_map = Tokenizer(Model(r"\w+", merges={(97, 97): 256, (97, 98): 257}, special_tokens={"<a>": 300})).id_map(base)
    assert [id_map.parts(token) for token in (97, 256, 257, 258, 300)] == [[], [], [98], [], []]
    assert base.encode("b") == [98]  # warnings are errors in the tests


@pytest.fixture
def pair() -> IdMap:
    old = Model(r"\w+", merges={(97, 98): 256, (97, 99): 257}, special_tokens={"<s>": 300})
    new = Model(r"\w+", merges={(98, 97): 256, (97, 98): 257, (10, 255): 258}, special_tokens={'"\n,': 300})
    return Tokenizer(new).id_map(Tokenizer(old))


def test_files(pair: IdMap, tmp_path: Path) -> None:
    rows = pair.table().to_pylist()
    assert rows[256:] == [
        {"change": "added", "id": 256, "old_id": None, "token": "ba", "bytes": b"ba", "parts": [98, 97]},
        {"change": "moved", "id": 257, "old_id": 256, "token": "ab", "bytes": b"ab", "parts": [256]},
        {"change": "added", "id": 258, "old_id": None, "token": r"\n\xff", "bytes": b"\n\xff", "parts": [10, 255]},
        {"change": "added", "id": 300, "old_id": None, "token": r'"\n,', "bytes": b'"\n,', "parts": []},
        {"change": "removed", "id": None, "old_id": 257, "token": "ac", "bytes": b"ac", "parts": [97, 99]},
        {"change": "removed", "id": None, "old_id": 300, "token": "<s>", "bytes": b"<s>", "parts": [115]},
    ]
    for suffix in ("parquet", "csv", "json"):
        pair.save(tmp_path / f"ids.{suffix}")
    assert pq.read_table(tmp_path / "ids.parquet").to_pylist() == rows
    in_text = [{name: value.hex() if name == "bytes" else value for name, value in row.items()} for row in rows]
    renamed = [{"hex" if name == "bytes" else name: value for name, value in row.items()} for row in in_text]
    assert json.loads((tmp_path / "ids.json").read_text(encoding="utf-8")) == renamed
    strings = csv.ConvertOptions(column_types={"hex": "string", "parts": "string", "token": "string"})
    read = csv.read_csv(tmp_path / "ids.csv", convert_options=strings).to_pylist()
    assert read == [row | {"parts": " ".join(map(str, row["parts"]))} for row in renamed]
    assert len(list(tmp_path.iterdir())) == 3


def test_bad_arguments(pair: IdMap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileNotFoundError, match="gpt2"):
        pair.tokenizer.id_map("gpt2")
    with pytest.raises(TypeError, match="base must be a Tokenizer, a Model, a path, or a fast tokenizer"):
        pair.tokenizer.id_map(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="id must be at least 0, got -1"):
        pair.parts(-1)
    with pytest.raises(KeyError, match="token id 301 does not exist; the largest id is 300"):
        pair.parts(301)
    with pytest.raises(TypeError, match="id must be an integer, got 'a'"):
        pair.parts("a")  # type: ignore[arg-type]
    with pytest.raises(IsADirectoryError, match="it is a folder"):
        (tmp_path / "a.csv").mkdir()
        pair.save(tmp_path / "a.csv")
    monkeypatch.setattr(IdMap, "table", None)  # nothing is computed
    with pytest.raises(ValueError, match=r"path must end in \.parquet, \.csv or \.json, got '.*ids\.txt'"):
        pair.save(tmp_path / "ids.txt")
    with pytest.raises(TypeError, match="path must be a str or"):
        pair.save(None)  # type: ignore[arg-type]


def test_a_failed_save_leaves_the_old_file(pair: IdMap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ids.json"
    path.write_text("old")
    monkeypatch.setattr(IdMap, "table", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        pair.save(path)
    assert [each.read_text() for each in tmp_path.iterdir()] == ["old"]


def test_everything_that_can_be_loaded(pair: IdMap, tmp_path: Path) -> None:
    pair.base.save(tmp_path / "base")
    for base in (pair.base.model, str(tmp_path / "base.model"), tmp_path / "base.model"):
        id_map = pair.tokenizer.id_map(base)
        assert (id_map.base, id_map.counts) == (pair.base, pair.counts)


def test_paper_tokenizers_and_pickles(pair: IdMap) -> None:
    paper = BatchTokenizer()
    paper.train("aaabdaaabac", 259)
    assert repr(paper.id_map(paper)) == "IdMap(kept=259, moved=0, added=0, removed=0)"
    assert repr(pair) == "IdMap(kept=256, moved=1, added=3, removed=2)"
    again = pickle.loads(pickle.dumps(pair))
    assert again.table() == pair.table()


def test_the_command(place: Path) -> None:
    assert run("train book.txt -n 640 --base mine.model -o longer -q").exit_code == 0
    shown = run("diff mine.model longer.model --limit 2 -o ids.csv")
    assert shown.exit_code == 0, shown.output
    lines = shown.stdout.splitlines()
    assert [line.split() for line in lines[:8]] == [
        ["base", "mine.model"],
        ["new", "longer.model"],
        ["tokens", "600", "→", "640"],
        ["pattern", "gpt4"],
        ["kept", "600"],
        ["moved", "0"],
        ["added", "40"],
        ["removed", "0"],
    ]
    assert (lines[10].split(), len(lines)) == (["added", "token", "parts"], 13)
    assert shown.stderr == "ids.csv\n"
    assert len(Path("ids.csv").read_text(encoding="utf-8").splitlines()) == 641
    found = json.loads(run("diff longer.model mine.model --json --limit 3").stdout)
    assert {name: found[name] for name in ("base_tokens", "new_tokens", "kept", "removed")} == {
        "base_tokens": 640,
        "new_tokens": 600,
        "kept": 600,
        "removed": 40,
    }
    mine, longer = (Tokenizer.from_file(f"{name}.model") for name in ("mine", "longer"))
    assert [row["old_id"] for row in found["examples"]["removed"]] == [600, 601, 602]
    for row in found["examples"]["removed"]:
        assert mine.decode_bytes(row["parts"]) == bytes.fromhex(row["hex"]) == longer.vocab[row["old_id"]]
    assert len(run("diff mine.model longer.model --limit 0").stdout.splitlines()) == 9


def test_the_command_with_bad_arguments(place: Path) -> None:
    Tokenizer.from_file("mine.model").export("folder", "transformers")
    before = {path: path.read_bytes() for path in Path("folder").iterdir()}
    for arguments, problem in {
        "mine.model nowhere.model": "error: model file not found: nowhere.model\n",
        "nowhere.model mine.model -o ids.txt": "error: --output must end in .parquet, .csv or .json, got 'ids.txt'\n",
        "nowhere.model mine.model -o none/ids.csv": "error: cannot write none/ids.csv: folder not found",
        "folder mine.model -o folder/tokenizer.json": "error: --output must not be a file of a model, got folder/",
        "mine.model counts.parquet": "error: counts.parquet: not a model file",
    }.items():
        failed = run(f"diff {arguments}")
        assert failed.exit_code in (1, 2) and failed.stdout == ""
        assert failed.stderr.startswith(problem) and failed.stderr.count("\n") == 1, failed.stderr
    assert before == {path: path.read_bytes() for path in Path("folder").iterdir()}


def test_rank_files(place: Path) -> None:
    plain, mine = Tokenizer.train(TEXT, 500), Tokenizer.from_file("mine.model")
    plain.export("ranks.tiktoken", "tiktoken")
    assert "--pattern" in run("diff ranks.tiktoken mine.model").stderr
    found = json.loads(run("diff ranks.tiktoken mine.model --pattern gpt4 --json").stdout)
    assert {name: found[name] for name in mine.id_map(plain).counts} == mine.id_map(plain).counts

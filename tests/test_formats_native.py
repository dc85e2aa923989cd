"""The native model file: loading restores everything, and errors name what is damaged."""

import itertools
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batchbpe import ChunkCounts, Model, Tokenizer, train
from batchbpe.formats import native

MODEL = Model(
    split='a "quoted"\npattern|\\w+',
    merges={(97, 97): 258, (258, 98): 259},
    stop_words={b"the": 256, b"\xff\xfe\n": 257},
    special_tokens={" <a b>\n": 300, "(.*)\r\n": 261, "é": 262},
    training={"vocab_size": 263, "policy": "mine"},
)


def test_round_trip(tmp_path: Path) -> None:
    native.save(MODEL, tmp_path / "a.model")
    again = native.load(tmp_path / "a.model")
    assert again == MODEL
    assert list(again.merges.items()) == list(MODEL.merges.items())
    assert [file.name for file in tmp_path.iterdir()] == ["a.model"]


@given(
    text=st.text(min_size=1),
    special=st.lists(st.text(min_size=1, max_size=5), max_size=3, unique=True),
    stop_list_size=st.integers(0, 3),
)
def test_hyp_round_trip(
    text: str, special: list[str], stop_list_size: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    model = train(
        ChunkCounts.count(iter([text])), 280, stop_list_size=stop_list_size, special_tokens=special, overlapping=True
    )
    path = tmp_path_factory.mktemp("model") / "a.model"
    native.save(model, path)
    assert native.load(path) == model


def fields() -> dict[str, Any]:
    return {
        "format": "batchbpe",
        "version": 1,
        "training": {},
        "pattern": "gpt",
        "special_tokens": {"<e>": 300},
        "byte_ids": list(range(256)),
        "stop_words": {"the": 256},
        "merges": [[97, 97, 257], [257, 98, 258]],
    }


def test_hand_written_file(tmp_path: Path) -> None:
    path = tmp_path / "a.model"
    path.write_text(json.dumps(fields()))
    assert native.load(path).vocab[258] == b"aab"


@pytest.mark.parametrize("name", sorted(fields()))
def test_missing_field(name: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.model"
    damaged = fields()
    del damaged[name]
    path.write_text(json.dumps(damaged))
    with pytest.raises(ValueError, match=rf"bad\.model: .*{name}"):
        native.load(path)


WRONG = [None, 3.5, "text", [1], {"a": [1]}, [[1]]]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        pytest.param(name, value, id=f"{name}={json.dumps(value)}")
        for name, value in itertools.product(sorted(fields()), WRONG)
        if (name, value) not in [("pattern", "text"), ("training", {"a": [1]})]
    ],
)
def test_field_of_wrong_type(name: str, value: Any, tmp_path: Path) -> None:
    path = tmp_path / "bad.model"
    path.write_text(json.dumps(fields() | {name: value}))
    with pytest.raises(ValueError, match=r"bad\.model[:,] "):
        native.load(path)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"format": "other"}, 'not a batchbpe model file: expected an object with "format": "batchbpe"'),
        ({"version": 6}, "version must be from 1 to 5, got 6; upgrade batchbpe"),
        ({"version": "1"}, "version must be from 1 to 5, got '1'$"),
        ({"version": True}, "version must be from 1 to 5, got True$"),
        ({"version": 2}, 'field "phrases" is missing'),
        ({"version": 2, "phrases": [[97, 98]]}, r"phrase 0: expected the ids of two or more tokens and an id"),
        ({"version": 2, "phrases": [[97, 98, 99.0]]}, "phrase 0: expected the ids of two or more tokens"),
        ({"version": 2, "phrases": [[97, 98, 999], [97, 98, 998]]}, r"phrase 1: \[97, 98, 998\] repeats the tokens"),
        ({"version": 2, "phrases": [[97, 9999, 999]]}, r"phrase \(97, 9999\) must contain only ids of bytes"),
        ({"version": 2, "phrases": [[97, 10, 999]]}, "must not contain a newline, as token 10"),
        ({"version": 2, "phrases": [[97, 98, 99]]}, r"id 99 of phrase \(97, 98\) is already used by b'c'"),
        ({"version": 2, "phrases": [[97, 98, 1 << 24]]}, r"id of phrase \(97, 98\) must be an integer from 0 to"),
        ({"merges": [[97, 97]]}, r"merge 0: expected \[first, last, id\] with integers, got \[97, 97\]"),
        ({"merges": [[97, 97, 257], "x"]}, "merge 1: expected .* got 'x'"),
        ({"merges": [[97, 97, 257.0]]}, r"merge 0: expected .* got \[97, 97, 257\.0\]"),
        ({"merges": [[97, True, 257]]}, r"merge 0: expected .* got \[97, True, 257\]"),
        ({"merges": [[97, 97, 257], [97, 97, 258]]}, r"merge 1: \[97, 97, 258\] repeats the pair of token 257"),
        ({"merges": [[257, 98, 257]]}, r"merge 0, .*the token is merged from itself"),
        ({"merges": [[97, 999, 257]]}, r"merge 0, .*token 999 is not defined"),
        ({"merges": [[97, -1, 257]]}, r'field "merges": must have pairs of ids from 0 to .* as keys'),
        ({"merges": [[97, 97, 98]]}, r"merge 0, .*id 98 is already used by b'b'"),
        ({"merges": [[97, 97, 10**30]]}, rf"id of merge \(97, 97\) must be .*, got {10**30}"),
        ({"merges": [[97, 97, -7]]}, r"id of merge \(97, 97\) must be .*, got -7"),
        ({"stop_words": {"the": 257}}, r"id 257 of stop word b'the' is already used by b'aa'"),
        ({"stop_words": {"the": "257"}}, r"id of stop word b'the' must be .*, got '257'"),
        ({"stop_words": {"": 256}}, r"stop word b'' with id 256 must not be empty"),
        ({"stop_words": {"é": 256, "\udcc3\udca9": 300}}, r"stop word .* occurs twice, with ids 256 and 300"),
        ({"stop_words": {"a\ud800": 256}}, "surrogate"),
        ({"special_tokens": {"<e>": 257}}, r"id 257 of special token '<e>' is already used by b'aa'"),
        ({"special_tokens": {"<e>": 1 << 24}}, r"id of special token '<e>' must be .*, got 16777216"),
        ({"special_tokens": {"<e>": None}}, r"id of special token '<e>' must be .*, got None"),
        ({"byte_ids": [0] * 256}, 'field "byte_ids": must be 256 different ids'),
        ({"byte_ids": list(range(300))}, 'field "byte_ids": must be 256 different ids'),
        ({"byte_ids": [*range(255), "x"]}, "id of byte 255 must be .*, got 'x'"),
    ],
)
def test_damaged_fields(change: dict[str, Any], problem: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.model"
    path.write_text(json.dumps(fields() | change))
    with pytest.raises(ValueError, match=rf"(?s)bad\.model[:,] .*({problem})"):
        native.load(path)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not enforce RLIMIT_AS")
def test_doubling_merges(tmp_path: Path) -> None:
    # A few hundred bytes that describe a token of 16 GiB raise an error instead of exhausting memory.
    merges = [[97, 97, 257], *([token, token, token + 1] for token in range(257, 290))]
    path = tmp_path / "bad.model"
    path.write_text(json.dumps(fields() | {"merges": merges, "special_tokens": {}}))
    code = """if True:
        import resource, sys
        from batchbpe.formats import native
        resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
        try:
            native.load(sys.argv[1])
        except ValueError as error:
            print(error)
    """
    ran = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True)
    assert ran.stderr == ""
    assert re.search(r"bad\.model, .*(long|large|bytes)", ran.stdout), ran.stdout


@pytest.mark.parametrize("content", [b"", b"{", b"null", b"[]", b"\xff\xfe", b"minbpe v1\n", b"[" * 100_000, b"3"])
def test_not_a_model_file(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "bad.model"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"bad\.model: not a batchbpe model file"):
        native.load(path)


def test_truncated_anywhere(tmp_path: Path) -> None:
    path = tmp_path / "bad.model"
    native.save(MODEL, path)
    whole = path.read_bytes().rstrip()
    for size in range(0, len(whole), 7):
        path.write_bytes(whole[:size])
        with pytest.raises(ValueError, match=r"bad\.model: not a batchbpe model file, or damaged"):
            native.load(path)


def test_duplicate_key(tmp_path: Path) -> None:
    path = tmp_path / "bad.model"
    path.write_text(json.dumps(fields()).replace('{"<e>": 300}', '{"<e>": 300, "<e>": 301}'))
    with pytest.raises(ValueError, match=r"bad\.model: duplicate key '<e>'"):
        native.load(path)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"model file not found: .*absent\.model"):
        Tokenizer.from_file(tmp_path / "absent.model")


def test_vocab_file(tmp_path: Path) -> None:
    native.write_vocab(MODEL, tmp_path / "a.vocab")
    lines = (tmp_path / "a.vocab").read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(MODEL.vocab)
    assert lines[97] == "[a] 97"
    assert lines[10] == "[\\u000a] 10"
    assert lines[256] == "[the] 256"
    assert lines[258:260] == ["[a][a] -> [aa] 258", "[aa][b] -> [aab] 259"]
    assert lines[-1] == "[ <a b>\\u000a] 300"

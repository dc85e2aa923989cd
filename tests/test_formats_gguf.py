"""GGUF: written files have what the package gguf reads, load back, and damaged ones are refused.

tests/frameworks/test_llama_cpp.py compares the ids with llama.cpp.
"""

import struct
import tracemalloc
from pathlib import Path
from typing import Any

import gguf
import pytest
from helpers import multilingual

from batchbpe import PATTERNS, Model, Tokenizer
from batchbpe.formats import gguf_metadata
from batchbpe.formats.gguf import to_values
from batchbpe.formats.pre_tokenizers import KNOWN, by_name
from batchbpe.patterns import Split

TEXT = multilingual(20_000)
END = "<|endoftext|>"
TRAINED = Tokenizer.train(TEXT, 300, special_tokens=[END, "<|pad|>"])
TEMPLATE = "{{ messages }}"
PREFIX = "tokenizer.ggml."


def fields_of(path: Path) -> dict[str, Any]:
    return {name: field.contents() for name, field in gguf.GGUFReader(path).fields.items()}


def test_written_files(tmp_path: Path) -> None:
    TRAINED.export(tmp_path / "any name", "gguf", chat_template=TEMPLATE)
    fields = fields_of(tmp_path / "any name")
    assert fields["GGUF.version"] == 3 and fields["GGUF.tensor_count"] == 0
    assert fields["general.architecture"] == "llama" and fields["tokenizer.ggml.model"] == "gpt2"
    assert fields["tokenizer.ggml.pre"] == "dbrx"
    tokens = fields["tokenizer.ggml.tokens"]
    assert len(tokens) == 300 and tokens[:256] == [*map(TRAINED.id_to_token, range(256))]
    assert tokens[298:] == [END, "<|pad|>"] and fields["tokenizer.ggml.token_type"] == [1] * 298 + [3, 3]
    assert [*fields["tokenizer.ggml.merges"][0].split()] == [tokens[part] for part in next(iter(TRAINED.merges))]
    assert len(fields["tokenizer.ggml.merges"]) == 42
    ids = {"bos_token_id": 298, "eos_token_id": 298, "padding_token_id": 299}
    assert {name: fields[PREFIX + name] for name in ids} == ids
    assert fields["tokenizer.ggml.add_bos_token"] is False and fields["tokenizer.ggml.add_eos_token"] is False
    assert fields["tokenizer.chat_template"] == TEMPLATE


@pytest.mark.parametrize("pre", [each for each in KNOWN if not each.differs], ids=lambda pre: pre.name)
def test_every_pattern_that_llama_cpp_knows(pre: Any, tmp_path: Path) -> None:
    stop_words = {b"the": 298} if pre.ignore_merges else {}
    model = Model(pre.split, TRAINED.merges, stop_words, special_tokens={END: 300})
    Tokenizer(model).export(tmp_path / "a.gguf", "gguf")
    assert fields_of(tmp_path / "a.gguf")["tokenizer.ggml.pre"] == pre.name
    assert Tokenizer.from_file(tmp_path / "a.gguf").model == model


def test_another_spelling_of_a_pattern(tmp_path: Path) -> None:
    spelled = r"'(?:[sdmt]|ll|ve|re)| ?[\p{L}]+| ?[\p{N}]+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    Tokenizer(Model(spelled, {}, special_tokens={END: 256})).export(tmp_path / "a.gguf", "gguf")
    assert Tokenizer.from_file(tmp_path / "a.gguf").pattern == PATTERNS["gpt2"]


def test_other_tokens(tmp_path: Path) -> None:
    """There may be added tokens, decode-only tokens, gaps between ids, missing bytes and no merges."""
    byte_ids = tuple(None if byte == 0xF5 else byte for byte in range(256))
    model = Model(
        PATTERNS["gpt2"],
        {},
        special_tokens={END: 302},
        added_tokens={"  ": 300, "õ": 258},
        decode_only={299: b"the", 298: b"\xe2\x82\xac "},
        byte_ids=byte_ids,
    )
    Tokenizer(model).export(tmp_path / "a.gguf", "gguf")
    fields = fields_of(tmp_path / "a.gguf")
    tokens, types = fields["tokenizer.ggml.tokens"], fields["tokenizer.ggml.token_type"]
    assert tokens[298:] == ["âĤ¬Ġ", "the", "  ", "<|unused 301|>", END] and types[298:] == [1, 1, 4, 5, 3]
    assert (tokens[245], types[245], tokens[258], types[258]) == ("<|unused 245|>", 5, "õ", 4)
    assert Tokenizer.from_file(tmp_path / "a.gguf").model == model


def test_roles_and_templates(tmp_path: Path) -> None:
    """BOS and EOS around a text are stored, other post-processors are not."""
    template = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [256], "tokens": ["<s>"]}},
    }
    templates = [{"name": "default", "template": TEMPLATE}, {"name": "rag", "template": "{{ documents }}"}]
    config = {"bos_token": "<s>", "eos_token": {"content": "</s>"}, "mask_token": "<mask>", "chat_template": templates}
    carried = {"post_processor": template, "tokenizer_config": config}
    special = {"<s>": 256, "</s>": 257, "<mask>": 258, "<other>": 259}
    model = Model(PATTERNS["llama3"], {}, {b"the": 260}, special_tokens=special, carried=carried)
    Tokenizer(model).export(tmp_path / "a.gguf", "gguf")
    fields = fields_of(tmp_path / "a.gguf")
    assert fields["tokenizer.ggml.add_bos_token"] is True and fields["tokenizer.ggml.add_eos_token"] is False
    assert fields["tokenizer.chat_templates"] == ["rag"] and fields["tokenizer.chat_template"] == TEMPLATE
    loaded = Tokenizer.from_file(tmp_path / "a.gguf")
    assert loaded.model == model and loaded.roles == {"bos": "<s>", "eos": "</s>", "mask": "<mask>"}
    assert loaded.model.carried["tokenizer_config"]["chat_template"] == templates
    assert loaded.model.carried["tokenizer_config"]["additional_special_tokens"] == ["<other>"]
    assert loaded.model.carried["post_processor"]["single"] == template["single"]
    loaded.export(tmp_path / "b.gguf", "gguf")
    assert (tmp_path / "a.gguf").read_bytes() == (tmp_path / "b.gguf").read_bytes()
    two = {**template, "single": [template["single"][0], *template["single"]]}
    with pytest.warns(UserWarning, match="the GGUF file does not contain the post-processor TemplateProcessing"):
        Tokenizer(Model(model.split, {}, special_tokens=special, carried={**carried, "post_processor": two})).export(
            tmp_path / "c.gguf", "gguf"
        )
    assert fields_of(tmp_path / "c.gguf")["tokenizer.ggml.add_bos_token"] is False


def test_a_model_without_eos(tmp_path: Path) -> None:
    with pytest.warns(
        UserWarning, match="llama.cpp ends a text at token 11, because no special token has the role eos"
    ):
        Tokenizer(Model(PATTERNS["gpt2"], {})).export(tmp_path / "a.gguf", "gguf")
    with pytest.raises(ValueError, match="eos is '</s>', which is not a token"):
        Tokenizer(Model(PATTERNS["gpt2"], {}, carried={"tokenizer_config": {"eos_token": "</s>"}})).export(
            tmp_path / "b.gguf", "gguf"
        )


MERGES = {(97, 98): 260, (260, 99): 261}
WITHOUT_A_BYTE = tuple(None if byte == 4 else byte for byte in range(256))
INEXACT: dict[str, tuple[dict[str, Any], str]] = {
    "normalization": ({"split": Split.of("NFC > qwen2")}, r"llama.cpp does not normalize text \(NFC\)"),
    "prefix space": ({"split": Split(PATTERNS["gpt2"], prefix_space=True)}, "llama.cpp does not add a space"),
    "o200k": ({"split": PATTERNS["o200k"]}, "splits capital letters outside ASCII differently"),
    "cl100k": ({"split": PATTERNS["cl100k"]}, "splits whitespace with a line break at the end of a text"),
    "stop words": (
        {"stop_words": {b"the": 262}},
        "merges all chunks with the pattern gpt2, but the model has 1 stop word|does not contain 1 stop word",
    ),
    "flags": ({"flags": {END: {"lstrip"}}}, "does not support flags of special tokens|does not contain 1 flag"),
    "phrases": ({"phrases": {(97, 98): 262}}, "GGUF does not support phrases|does not contain 1 phrase"),
    "missing bytes": ({"byte_ids": WITHOUT_A_BYTE}, r"next to a byte that the vocabulary lacks \(0x04\)"),
    "names": ({"added_tokens": {"<EOT>": 262}}, "treats tokens with these names as special: <EOT>"),
    "found": ({"special_tokens": {END: 262, "<|start|>": 263}}, r"finds '<\|start\|>' in every text"),
    "found decode-only": ({"decode_only": {262: b"<|start|>"}}, r"finds '<\|start\|>' in every text"),
    "found stop word": (
        {"split": PATTERNS["llama3"], "stop_words": {b"<|start|>": 262}},
        r"finds '<\|start\|>' in every text",
    ),
    "special decode-only": ({"decode_only": {262: b"</s>"}}, "treats tokens with these names as special: </s>"),
    "no </s>": (
        {"special_tokens": {END: 262, "</s>": 263, "<|tool_response>": 264}},
        "never finds '</s>', because of the names of other tokens",
    ),
    "no </s> with plamo": (
        {
            "special_tokens": {"</s>": 263, "<|plamo:eos|>": 264},
            "carried": {"tokenizer_config": {"eos_token": "<|plamo:eos|>"}},
        },
        "never finds '</s>'",
    ),
    "harmony": (
        {"special_tokens": {END: 262, "<|end|>": 263, "<|return|>": 264, "<|call|>": 265}},
        r"finds '<\|end\|>' in every text",
    ),
    "solar": (
        {"special_tokens": {END: 262, "<|end|>": 263, "<|flush|>": 264, "<|calls|>": 265}},
        r"finds '<\|end\|>' in every text",
    ),
    "whole chunks": (
        {"split": PATTERNS["llama3"], "special_tokens": {END: 262, "end": 263}, "stop_words": {b"the": 264}},
        "encodes text as 'end' even if no special tokens are allowed",
    ),
    "overlaps": ({"added_tokens": {"vw": 262, "wxy": 263}}, "finds the longest special and added tokens .* in 'vwxy'"),
    "nested": ({"added_tokens": {f"({END})": 262}}, "finds the longest special and added tokens first"),
    "same bytes": (
        {"split": PATTERNS["llama3"], "stop_words": {b"ab": 262}},
        "tokens 260 and 262 are both b'ab', but a GGUF file identifies|",
    ),
}


@pytest.mark.parametrize("name", INEXACT)
def test_what_llama_cpp_encodes_differently(name: str, tmp_path: Path) -> None:
    changes, message = INEXACT[name]
    fields = {"split": PATTERNS["gpt2"], "merges": MERGES, "special_tokens": {END: 300}, **changes}
    tokenizer = Tokenizer(Model(**fields))
    with pytest.raises(ValueError, match=message) as error:
        tokenizer.export(tmp_path / "a.gguf", "gguf")
    assert "allow_inexact=True" in str(error.value) and not (tmp_path / "a.gguf").exists()
    if name == "same bytes":
        tokenizer.export(tmp_path / "a.gguf", "gguf", allow_inexact=True)
    else:
        with pytest.warns(UserWarning, match=message):
            tokenizer.export(tmp_path / "a.gguf", "gguf", allow_inexact=True)
    loaded = Tokenizer.from_file(tmp_path / "a.gguf")
    assert dict(loaded.merges) == MERGES and loaded.encode("abc") == [261]


@pytest.mark.filterwarnings("ignore:llama.cpp splits words")
@pytest.mark.parametrize(("pattern", "pre"), [("minicpm", "minicpm5"), ("tekken", "tekken")])
def test_tokens_that_are_not_merged(pattern: str, pre: str, tmp_path: Path) -> None:
    """llama.cpp looks up chunks that are tokens with these pre-tokenizers."""
    merges = {(97, 98): 256, (98, 99): 257, (97, 257): 258}
    tokenizer = Tokenizer(Model(PATTERNS[pattern], merges, special_tokens={END: 300}))
    assert tokenizer.encode("abc") == [256, 99]
    message = rf"llama.cpp encodes the chunk b'abc' as one token, and batchbpe as 2 \(pre-tokenizer {pre}\)"
    if pattern == "minicpm":
        with pytest.raises(ValueError, match=f"{message}; use allow_inexact=True if that is acceptable"):
            tokenizer.export(tmp_path / "a.gguf", "gguf")
        assert not (tmp_path / "a.gguf").exists()
    with pytest.warns(UserWarning, match=message):
        tokenizer.export(tmp_path / "a.gguf", "gguf", allow_inexact=True)
    assert fields_of(tmp_path / "a.gguf")["tokenizer.ggml.pre"] == pre


def test_merged_tokens_that_are_always_found(tmp_path: Path) -> None:
    first, *others = b"<|start|>"
    merges = {(257 + n if n else first, byte): 258 + n for n, byte in enumerate(others)}
    tokenizer = Tokenizer(Model(PATTERNS["gpt2"], merges, special_tokens={END: 300}))
    with pytest.raises(ValueError, match=r"finds '<\|start\|>' in every text"):
        tokenizer.export(tmp_path / "a.gguf", "gguf")


def test_long_names(tmp_path: Path) -> None:
    """Memory is linear in the length of a name. That for all prefixes would be 200 MB."""
    special = {"x" * 20_000: 256, END: 257}
    tracemalloc.start()
    Tokenizer(Model(PATTERNS["gpt2"], {}, special_tokens=special)).export(tmp_path / "a.gguf", "gguf")
    assert tracemalloc.get_traced_memory()[1] < 50_000_000
    tracemalloc.stop()


def test_runs_of_spaces_do_not_overlap(tmp_path: Path) -> None:
    added = {" " * size: 256 + size for size in range(2, 25)}
    Tokenizer(Model(PATTERNS["gpt2"], {}, added_tokens=added, special_tokens={END: 300})).export(
        tmp_path / "a.gguf", "gguf"
    )
    assert Tokenizer.from_file(tmp_path / "a.gguf").added_tokens == added


@pytest.mark.parametrize("allow_inexact", [False, True])
def test_what_cannot_be_written(allow_inexact: bool, tmp_path: Path) -> None:
    def export(**fields: Any) -> None:
        Tokenizer(Model(**{"split": PATTERNS["gpt2"], "merges": {}, **fields})).export(
            tmp_path / "a.gguf", "gguf", allow_inexact=allow_inexact
        )

    known = "gpt2, gpt4, llama3, qwen2, qwen3.5, deepseek, starcoder, smollm, minicpm, bloom"
    with pytest.raises(
        ValueError, match=f"does not know the pattern nanochat; train with a pattern that it knows: {known}"
    ):
        export(split=PATTERNS["nanochat"])
    with pytest.raises(ValueError, match=r"does not know the pattern '\\\\w\+'"):
        export(split=r"\w+")
    with pytest.raises(ValueError, match="special token 'ab' is spelled like token 256 in a GGUF file"):
        export(merges={(97, 98): 256}, special_tokens={"ab": 257})
    with pytest.raises(ValueError, match="token 256 is both 'a b' and 'aĠb' in a GGUF file"):
        export(merges={(97, 32): 257, (257, 98): 256}, special_tokens={"a b": 256})
    with pytest.raises(ValueError, match=r"has id 1000000, and .* unused, but llama.cpp needs a token for every id"):
        export(special_tokens={END: 1_000_000})
    for kind in ("special_tokens", "added_tokens"):
        with pytest.raises(ValueError, match=r"cuts off the name of token 256 at its null character: '<a\\x00b>'"):
            export(**{kind: {"<a\0b>": 256}})
    with pytest.raises(ValueError, match="decode-only token b'a' would be encoded in a GGUF file"):
        export(decode_only={256: b"a"})
    assert not (tmp_path / "a.gguf").exists()


def test_tensors_are_not_read(tmp_path: Path) -> None:
    TRAINED.export(tmp_path / "a.gguf", "gguf")
    with (tmp_path / "a.gguf").open("r+b") as file:
        file.truncate(1 << 40)  # without using space
    assert Tokenizer.from_file(tmp_path / "a.gguf") == TRAINED


def test_files_of_the_package(tmp_path: Path) -> None:
    """Other values, which this package does not need, are skipped, whatever their types."""
    writer = gguf.GGUFWriter(tmp_path / "a.gguf", "llama")
    writer.add_array("general.tags", ["a", "é"])
    writer.add_array("general.sizes", [1, 2, 3])
    writer.add_array("general.nested", [[1, 2], [3]])
    writer.add_float64("general.temperature", 0.5)
    writer.add_string("general.author", "x" * 100)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([TRAINED.id_to_token(token) for token in range(298)])
    writer.add_token_merges([" ".join(map(TRAINED.id_to_token, pair)) for pair in TRAINED.merges])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    assert Tokenizer.from_file(tmp_path / "a.gguf").merges == TRAINED.merges


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "llama"}, "tokenizer.ggml.model 'llama' is not supported; only gpt2"),
        ({"model": 3}, "tokenizer.ggml.model must be a string, got 3"),
        (
            {"pre": "new"},
            "tokenizer.ggml.pre is 'new'; supported are a.x-4.0, .*; load the tokenizer.json of the model",
        ),
        ({"pre": None}, "the file has no tokenizer.ggml.pre; supported are"),
        ({"pre": ["gpt-2"]}, "tokenizer.ggml.pre is"),
        ({"tokens": None}, "tokenizer.ggml.tokens must be an array of strings, got None"),
        ({"merges": [1, 2]}, "tokenizer.ggml.merges must be an array of strings, got"),
        ({"merges": ["a"]}, "tokenizer.ggml.merges: expected two tokens with a space between them, got 'a'"),
        ({"merges": ["a\0 b"]}, r"tokenizer.ggml.merges: 'a\\x00 b' has a null character"),
        ({"eos_token_id": [1, 2]}, r"tokenizer.ggml.eos_token_id must be an integer, got \[1, 2\]"),
        ({"bos_token_id": "x"}, "tokenizer.ggml.bos_token_id must be an integer, got 'x'"),
        ({"unknown_token_id": True}, "tokenizer.ggml.unknown_token_id must be an integer, got True"),
        ({"add_bos_token": "x"}, "tokenizer.ggml.add_bos_token must be true or false, got 'x'"),
        ({"token_type": [1, 2]}, "tokenizer.ggml.token_type must have 258 items, got 2"),
        ({"token_type": [1] * 257 + [6]}, r"byte tokens \(type 6\) are not supported"),
        ({"tokens": ["a"] * 258}, "tokens: token 'a' is listed twice"),
        ({"chat_template": 3}, "chat_template must be a string, got 3"),
    ],
)
def test_wrong_values(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    tokens = [TRAINED.id_to_token(token) for token in range(257)] + [END]
    values: dict[str, Any] = {"model": "gpt2", "pre": "gpt-2", "tokens": tokens, "token_type": [1] * 257 + [3]}
    values |= {"merges": [" ".join(map(TRAINED.id_to_token, next(iter(TRAINED.merges))))]} | change
    named = {f"{'tokenizer.' if name == 'chat_template' else PREFIX}{name}": value for name, value in values.items()}
    path = tmp_path / "a.gguf"
    path.write_bytes(gguf_metadata.to_bytes({name: value for name, value in named.items() if value is not None}))
    with pytest.raises(ValueError, match=message) as error:
        Tokenizer.from_file(path)
    assert str(path) in str(error.value)


def test_ids_of_roles_may_be_wrong(tmp_path: Path) -> None:
    """llama.cpp ignores ids of tokens that do not exist."""
    TRAINED.export(tmp_path / "a.gguf", "gguf")
    values = gguf_metadata.read(tmp_path / "a.gguf", "")
    values |= {f"{PREFIX}bos_token_id": 7_000, f"{PREFIX}eos_token_id": 300, f"{PREFIX}add_bos_token": True}
    (tmp_path / "a.gguf").write_bytes(gguf_metadata.to_bytes(values))
    assert Tokenizer.from_file(tmp_path / "a.gguf").roles == {"pad": "<|pad|>"}


def test_damaged_files(tmp_path: Path) -> None:
    path = tmp_path / "a.gguf"
    TRAINED.export(path, "gguf")
    content = path.read_bytes()
    for size in (4, 7, 20, 30, 100, 2000, len(content) - 1):
        path.write_bytes(content[:size])
        with pytest.raises(
            ValueError, match=r"a\.gguf: the GGUF file is truncated or damaged; download or write it again"
        ):
            Tokenizer.from_file(path)
    headers = {
        struct.pack(">IQQ", 3, 0, 1): "big-endian GGUF files are not supported",
        struct.pack("<IQQ", 1, 0, 1): "GGUF version must be one of 2, 3, got 1",
        struct.pack("<IQQ", 3, 0, 1 << 60): "truncated or damaged",
        struct.pack("<IQQQ1s", 3, 0, 1, 1 << 50, b"a"): "truncated or damaged",
        struct.pack("<IQQQ3sI", 3, 0, 1, 1, b"\xff", 7): "truncated or damaged|expected UTF-8",
        struct.pack("<IQQQ1sI8s", 3, 0, 1, 1, b"a", 77, b""): "unknown GGUF value type 77",
        struct.pack("<IQQQ1sIIQ", 3, 0, 1, 1, b"a", 9, 9, 1): "truncated or damaged",
        struct.pack("<IQQQ1sIIQ", 3, 0, 1, 1, b"a", 9, 77, 0): "unknown GGUF array type 77",
        struct.pack("<IQQQ10sIIQIQ", 3, 0, 1, 10, b"tokenizer.", 9, 9, 1, 0, 0): "nested arrays are not supported",
        struct.pack("<IQQQ1sI", 3, 0, 1, 1, b"a", 9) + struct.pack("<IQ", 9, 1) * 90: "at most 8 arrays",
        struct.pack("<IQQQ10sIIQ", 3, 0, 1, 10, b"tokenizer.", 9, 8, 1 << 40): "truncated or damaged",
    }
    for header, message in headers.items():
        path.write_bytes(b"GGUF" + header)
        with pytest.raises(ValueError, match=message):
            Tokenizer.from_file(path)
    with path.open("wb") as file:
        file.write(b"GGUF" + struct.pack("<IQQQ10sIIQ", 3, 0, 1, 10, b"tokenizer.", 9, 8, 1 << 30))
        file.truncate(1 << 36)
    with pytest.raises(ValueError, match="an array must have at most 16777215 items, got 1073741824"):
        Tokenizer.from_file(path)
    with path.open("wb") as file:
        file.write(b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1 << 30))
        file.truncate(1 << 36)
    with pytest.raises(ValueError, match="a string must have at most 67,108,864 bytes, got 1,073,741,824"):
        Tokenizer.from_file(path)
    for name in ("tokenizer.a", "general.a", ""):
        twice = gguf_metadata.to_bytes({name: "x"})
        path.write_bytes(twice[:16] + struct.pack("<Q", 2) + 2 * twice[24:])
        with pytest.raises(ValueError, match=f"'{name}' is listed twice"):
            Tokenizer.from_file(path)
    with path.open("wb") as file:
        file.write(b"GGUF" + struct.pack("<IQQ", 3, 0, 1 << 26))
        file.truncate(1 << 30)
    with pytest.raises(ValueError, match="a GGUF file must have at most 65,536 values, got 67,108,864"):
        Tokenizer.from_file(path)


def loaded(path: Path, change: dict[str, Any]) -> Model:
    """Return the model of a file with the merges `a b` and `b c` and with other values."""
    values = to_values(Model(PATTERNS["gpt2"], {(97, 98): 256, (98, 99): 257}, special_tokens={END: 258}))
    added = change.pop("added", {})
    values[f"{PREFIX}tokens"] += added
    values[f"{PREFIX}token_type"] += added.values()
    for token, type in change.pop("types", {}).items():
        values[f"{PREFIX}token_type"][token] = type
    values |= {name if "." in name else f"{PREFIX}{name}": value for name, value in change.items()}
    path.write_bytes(gguf_metadata.to_bytes(values))
    return Tokenizer.from_file(path).model


def test_the_first_of_equal_merges_counts(tmp_path: Path) -> None:
    model = loaded(tmp_path / "a.gguf", {"merges": ["a b", "b c", "a b"]})
    assert Tokenizer(model).encode("abc") == [256, 99]


@pytest.mark.parametrize("type", [3, 4, 5])
def test_byte_tokens_of_other_types(type: int, tmp_path: Path) -> None:
    tokenizer = Tokenizer(loaded(tmp_path / "a.gguf", {"types": {60: type}}))
    assert tokenizer.encode("a<b", disallowed_special=()) == tokenizer.encode("a<b", "all") == [97, 60, 98]
    assert ("<" in tokenizer.special_tokens, "<" in tokenizer.added_tokens) == (type == 3, type == 4)


def test_a_special_token_spelled_like_another_byte(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="the vocabulary lacks the byte 0xC3, because 'Ã' is a special token"):
        assert loaded(tmp_path / "a.gguf", {"types": {0xC3: 3}}).special_tokens["Ã"] == 0xC3


TYPES: list[tuple[dict[str, Any], dict[str, int], dict[str, int]]] = [
    *(({"added": {"</s>": type}}, {"</s>": 259}, {}) for type in (1, 3, 4, 5)),
    *(({"added": {"<|start|>": type}}, {}, {"<|start|>": 259}) for type in (1, 3, 4, 5)),
    ({"added": {"</s>": 3, "<|tool_response>": 3}}, {"<|tool_response>": 260}, {}),
    ({"added": {"</s>": 3, "<|plamo:eos|>": 3}}, {"</s>": 259, "<|plamo:eos|>": 260}, {}),
    ({"added": {"</s>": 3, "<|plamo:eos|>": 3}, "eot_token_id": 260}, {"<|plamo:eos|>": 260}, {}),
    ({"added": {"<|end|>": 3, "<|flush|>": 1, "<|calls|>": 4}}, {"<|flush|>": 260, "<|calls|>": 261}, {"<|end|>": 259}),
    ({"added": {"<PRE>": 4}}, {"<PRE>": 259}, {}),
    ({"added": {"<PRE>": 4}, "fim_pre_token_id": 258}, {}, {"<PRE>": 259}),
    ({"added": {"<PRE>": 4}, "fim_pre_token_id": 999}, {"<PRE>": 259}, {}),
]


@pytest.mark.parametrize(("change", "special", "added"), TYPES)
def test_types_are_those_of_llama_cpp(
    change: dict[str, Any], special: dict[str, int], added: dict[str, int], tmp_path: Path
) -> None:
    model = loaded(tmp_path / "a.gguf", {**change})
    assert (model.special_tokens, model.added_tokens) == ({END: 258, **special}, added)


def test_stripped_tokens(tmp_path: Path) -> None:
    added = {"<mask>": 3, "[MASK]": 3}
    changes: dict[str, dict[str, Any]] = {
        "<mask>": {"pre": "jina-v2-de"},
        "[MASK]": {"general.name": "Modern-BERT"},
    }
    for name, change in changes.items():
        tokenizer = Tokenizer(loaded(tmp_path / "a.gguf", {"added": added, **change}))
        assert tokenizer.encode(f"a  {name}", "all") == [97, tokenizer.special_tokens[name]]
    stripped = Tokenizer(loaded(tmp_path / "a.gguf", {"added": added, "general.name": "phi3"}))
    assert stripped.encode(f"<mask>  a{END} ", "all") == [259, 97, 258, 32]


def test_aliases_have_the_same_split() -> None:
    assert by_name()["phi-2"].split == by_name()["gpt-2"].split
    assert by_name()["glm4"] == by_name()["llama-bpe"]._replace(adds_bos=False)

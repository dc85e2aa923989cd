"""`like=`: a new vocabulary with everything else of an existing tokenizer, compared with transformers."""

import argparse
import json
from dataclasses import replace
from pathlib import Path
from pydoc_data import topics
from typing import Any

import pytest
import tokenizers
import transformers
from helpers import untouched
from tokenizers import models, pre_tokenizers, processors

from batchbpe import BatchTokenizer, ChunkCounts, Model, Tokenizer, train
from batchbpe.errors import ArgumentError, DataError
from batchbpe.formats.byte_level import to_byte_level
from batchbpe.patterns import Split
from batchbpe.training.like import counting_for

TEXT = Path(topics.__file__).read_text(encoding="utf-8")[:200_000]
HELD_OUT = Path(argparse.__file__).read_text(encoding="utf-8") + "Cafe\u0301 naïve 語 1234 \u00a0x²"
AS_THEIRS: Any = {"policy": "serial", "ties": "huggingface", "overlapping": True}
SIZE = 900
TEMPLATE = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<tool_call>"


def template(bos: str, token: int) -> dict[str, Any]:
    """Return a post-processor that begins each text with a token."""
    made = processors.TemplateProcessing(single=f"{bos} $A", pair=f"{bos} $A {bos} $B:1", special_tokens=[(bos, token)])
    return json.loads(made.__getstate__())


def family(name: str) -> Tokenizer:
    """Return a small tokenizer with the parts that published ones of a family have."""
    if name == "gpt2":
        return Tokenizer.train(HELD_OUT, 500, pattern="gpt2", special_tokens=["<|endoftext|>"])
    if name == "llama3":
        special = ["<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>", "<|eot_id|>"]
        model = train(HELD_OUT, 500, pattern="llama3", special_tokens=special, eos="<|eot_id|>")
        bos = template(special[0], model.special_tokens[special[0]])
        return Tokenizer(replace(model, carried={**model.carried, "post_processor": bos}))
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    roles = {"eos": "<|im_end|>", "pad": "<|endoftext|>"}
    split = Split.of("qwen2", "NFC")
    model = train(HELD_OUT, 500, pattern=split, special_tokens=special, chat_template=TEMPLATE, **roles)
    config = {name: value for name, value in model.carried["tokenizer_config"].items() if name != "bos_token"}
    padding = {"pad_id": model.special_tokens["<|endoftext|>"], "pad_token": "<|endoftext|>", "pad_type_id": 0}
    padding |= {"strategy": "BatchLongest", "direction": "Left", "pad_to_multiple_of": None}
    return Tokenizer(
        replace(
            model,
            special_tokens={**model.special_tokens, "<|im_end|>": 501},
            added_tokens={"<tool_call>": 499, "</tool_call>": 500},
            flags={"<|im_end|>": {"lstrip"}, "<tool_call>": frozenset()},
            carried={**model.carried, "tokenizer_config": config, "padding": padding},
        )
    )


@pytest.fixture(params=["gpt2", "llama3", "qwen"])
def source(request: pytest.FixtureRequest) -> Tokenizer:
    return family(request.param)


def fast(folder: Path) -> Any:
    return transformers.PreTrainedTokenizerFast.from_pretrained(folder)


def test_equals_train_new_from_iterator(source: Tokenizer, tmp_path: Path) -> None:
    source.export(tmp_path / "old", "transformers")
    old = fast(tmp_path / "old")
    theirs = old.train_new_from_iterator([TEXT], SIZE, show_progress=False)
    dropped = source.model.added_tokens  # `train_new_from_iterator` drops tokens that are not special
    ours = Tokenizer.train(TEXT, SIZE + len(dropped), like=tmp_path / "old", **AS_THEIRS)
    assert set(ours.get_vocab()) == {*theirs.get_vocab(), *dropped}
    merges = [[to_byte_level(ours.vocab[token]) for token in pair] for pair in ours.merges]
    assert merges == json.loads(theirs.backend_tokenizer.to_str())["model"]["merges"]

    ours.export(tmp_path / "new", "transformers")
    auto = fast(tmp_path / "new")
    names = theirs.tokenize(HELD_OUT)
    assert [ours.id_to_token(token) for token in ours.encode(HELD_OUT)] == names == auto.tokenize(HELD_OUT)
    for text in ("", "Hello", HELD_OUT, *map("{0} x{0}".format, source.special_tokens)):
        assert auto.convert_ids_to_tokens(auto(text).input_ids) == theirs.convert_ids_to_tokens(theirs(text).input_ids)
    pair = auto("Hello", "there").input_ids
    assert auto.convert_ids_to_tokens(pair) == theirs.convert_ids_to_tokens(theirs("Hello", "there").input_ids)
    roles = {name: token for name, token in theirs.special_tokens_map.items() if isinstance(token, str)}
    assert roles == {f"{role}_token": name for role, name in ours.roles.items()} == auto.special_tokens_map
    assert auto.chat_template == theirs.chat_template == old.chat_template
    assert (auto.padding_side, auto.model_max_length) == (theirs.padding_side, theirs.model_max_length)


def test_what_is_taken(source: Tokenizer) -> None:
    model, old = train(TEXT, SIZE, like=source), source.model
    assert model.byte_ids == tuple(range(256)) and len(model.merges) == SIZE - 256 - len(old.found_tokens)
    in_order = sorted(old.found_tokens, key=old.found_tokens.__getitem__)
    assert dict(model.found_tokens) == {name: SIZE - len(in_order) + place for place, name in enumerate(in_order)}
    assert (model.split, model.flags, set(model.added_tokens)) == (old.split, old.flags, set(old.added_tokens))
    assert model.carried.keys() == old.carried.keys()
    if "padding" in old.carried:
        expected = {**old.carried["padding"], "pad_id": model.special_tokens["<|endoftext|>"]}
        assert model.carried["padding"] == expected != old.carried["padding"]
    assert not model.stop_words and not model.phrases


def test_sources(tmp_path: Path) -> None:
    """A path of any kind and objects of other libraries give the same as a `Tokenizer`."""
    source = family("llama3")
    expected = train(TEXT, SIZE, like=source)
    source.save(tmp_path / "mine")
    source.export(tmp_path / "folder", "transformers")
    paths = [tmp_path / "mine.model", tmp_path / "folder", str(tmp_path / "folder" / "tokenizer.json")]
    objects = [fast(tmp_path / "folder"), tokenizers.Tokenizer.from_file(paths[2]), source.model]
    for each in (*paths, *objects):
        assert train(TEXT, SIZE, like=each) == expected
        assert train(TEXT, SIZE, base=each) == train(TEXT, SIZE, base=source)
    assert train(TEXT, SIZE, like=objects[0]).carried["post_processor"] == expected.carried["post_processor"]


def test_ids_in_a_sequence_of_post_processors() -> None:
    """`train_new_from_iterator` leaves the old ids here, as in the tokenizer.json of Llama 3."""
    source = family("llama3").model
    inner = {"type": "Sequence", "processors": [{"type": "ByteLevel"}, source.carried["post_processor"]]}
    roberta = {"type": "RobertaProcessing", "sep": ["<|eot_id|>", 499], "cls": ["<|begin_of_text|>", 496]}
    both = {"type": "Sequence", "processors": [inner, roberta]}
    model = train(TEXT, SIZE, like=replace(source, carried={"post_processor": both}))
    first, second = model.carried["post_processor"]["processors"]
    assert first["processors"][1]["special_tokens"]["<|begin_of_text|>"]["ids"] == [SIZE - 4]
    assert (second["sep"], second["cls"]) == (["<|eot_id|>", SIZE - 1], ["<|begin_of_text|>", SIZE - 4])
    assert source.carried["post_processor"]["special_tokens"]["<|begin_of_text|>"]["ids"] == [496]  # as before


def test_added_tokens_decoder_is_renumbered(tmp_path: Path) -> None:
    family("qwen").export(tmp_path / "first", "transformers")
    fast(tmp_path / "first").save_pretrained(tmp_path / "saved")
    config = json.loads((tmp_path / "saved" / "tokenizer_config.json").read_text())
    entries = json.loads((tmp_path / "saved" / "tokenizer.json").read_text())["added_tokens"]
    config["added_tokens_decoder"] = {str(entry.pop("id")): entry for entry in entries}
    (tmp_path / "saved" / "tokenizer_config.json").write_text(json.dumps(config))
    model = train(TEXT, SIZE, like=tmp_path / "saved")
    renumbered = model.carried["tokenizer_config"]["added_tokens_decoder"]
    assert {entry["content"]: int(token) for token, entry in renumbered.items()} == dict(model.found_tokens)
    Tokenizer(model).export(tmp_path / "new", "transformers")
    text = "a  <|im_end|><tool_call>b"
    assert fast(tmp_path / "new").encode(text) == Tokenizer(model).encode(text, "all")


def test_with_other_options(source: Tokenizer, tmp_path: Path) -> None:
    counts = ChunkCounts.count(TEXT, source.model.split, special_tokens=[*source.model.found_tokens])
    for name in ("counts.csv", "counts.parquet"):
        if source.model.split.is_bare or name.endswith("parquet"):
            counts.save(tmp_path / name)
            assert train(tmp_path / name, SIZE, like=source) == train(TEXT, SIZE, like=source)
    model = train([TEXT], SIZE, like=source, stop_list_size=20, freq_cutoff=2, phrases=10, special_tokens=["<new>"])
    assert (len(model.stop_words), len(model.phrases), model.vocab_size) == (20, 10, SIZE)
    assert sorted(model.found_tokens.values()) == [*range(SIZE - len(model.found_tokens), SIZE)]
    assert max(model.found_tokens, key=model.found_tokens.__getitem__) == "<new>"
    paper = BatchTokenizer(freq_cutoff=2)
    assert paper.train(TEXT, SIZE, like=source) == SIZE
    assert paper.model == train(TEXT, SIZE, like=source, freq_cutoff=2)


def test_ids_of_special_tokens() -> None:
    source = family("llama3")
    placed = train(TEXT, SIZE, like=source, special_tokens={"<new>": SIZE - 4, "<|eot_id|>": 2000})
    assert dict(placed.special_tokens) == {
        "<|begin_of_text|>": SIZE - 5,
        "<|end_of_text|>": SIZE - 3,
        "<|reserved_special_token_0|>": SIZE - 2,
        "<|eot_id|>": 2000,
        "<new>": SIZE - 4,
    }
    assert placed.vocab_size == SIZE


def test_special_tokens_in_the_text_are_not_counted() -> None:
    source = family("qwen")
    text = TEXT + "<|im_start|><tool_call>" * 10_000
    assert train(text, SIZE, like=source).merges == train(TEXT + "<|im_start|>", SIZE, like=source).merges


def test_tokens_for_missing_bytes_are_not_taken(tmp_path: Path) -> None:
    byte_ids = tuple(None if byte == 0xF5 else byte - (byte > 0xF5) for byte in range(256))
    source = Model(Split.of("gpt2"), {}, byte_ids=byte_ids, added_tokens={"õ": 255, "ö": 256, "<a>": 257})
    model = train(TEXT, SIZE, like=source)
    assert [*model.added_tokens] == ["ö", "<a>"]
    assert model.byte_ids == tuple(range(256))


def test_wrong_sources(tmp_path: Path) -> None:
    other = tokenizers.Tokenizer(models.WordPiece({"[UNK]": 0}, unk_token="[UNK]"))
    metaspace = tokenizers.Tokenizer(models.BPE({"a": 0}, []))
    metaspace.pre_tokenizer = pre_tokenizers.Metaspace()
    other.save(str(tmp_path / "bert.json"))
    remedy = "; use a byte-level tokenizer, or pattern and special_tokens$"
    with pytest.raises(DataError, match=f"^model: type 'WordPiece' is not supported; only byte-level BPE is{remedy}"):
        train(TEXT, SIZE, like=other)
    with pytest.raises(DataError, match=f"bert.json, model: type 'WordPiece' is not supported; .*{remedy}"):
        train(TEXT, SIZE, like=tmp_path / "bert.json")
    with pytest.raises(DataError, match=f"pre-tokenizer 'Metaspace' is not supported.*{remedy}"):
        train(TEXT, SIZE, like=metaspace)
    with pytest.raises(DataError, match=r"only byte-level BPE is; use a byte-level tokenizer$"):
        train(TEXT, SIZE, base=other)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"like must be a Tokenizer, a Model, a path, or a fast .*, got 3$"):
        train(TEXT, SIZE, like=3)  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError, match="model file not found: absent"):
        train(TEXT, SIZE, like="absent.json")
    (tmp_path / "half.model").write_text('{"format": "batchbpe", "version"')
    for option in ("base", "like"):
        with pytest.raises(DataError, match=r"half\.model: not a batchbpe model file, or damaged: [^;]+$"):
            train(TEXT, SIZE, **{option: tmp_path / "half.model"})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "options", "problem"),
    [
        ("llama3", {"pattern": "gpt2"}, "pattern must be the pattern of like, llama3, got 'gpt2'; leave it out"),
        ("llama3", {"normalization": "NFC"}, "normalization must be that of like, none, got 'NFC'; leave it out"),
        ("llama3", {"vocab_size": 259}, "vocab_size must be at least 260 (256 bytes + 4 special tokens), got 259"),
        ("llama3", {"add_tokens": 9, "vocab_size": None}, "add_tokens needs base, got 9; use vocab_size for a new"),
        ("qwen", {"vocab_size": 260}, "must be at least 261 (256 bytes + 5 special or added tokens), got 260"),
        ("qwen", {"normalization": "none"}, "normalization must be that of like, NFC, got 'none'; leave it out"),
        (
            "qwen",
            {"special_tokens": ["<tool_call>"]},
            "special_tokens must not contain added tokens of like such as '<tool_call>'",
        ),
        ("qwen", {"special_tokens": {"<a>": 800, "<b>": 800}}, "must have different ids, got .*; give each token its"),
    ],
)
def test_contradicting_options(name: str, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ArgumentError, match=problem.replace("(", r"\(").replace(")", r"\)").replace("+", r"\+")):
        train(untouched(), **{"vocab_size": SIZE, "like": family(name), **options})


def test_contradicting_data_and_base() -> None:
    source = family("llama3")
    with pytest.raises(ArgumentError, match=r"like cannot be combined with base, got .*; base extends a vocabulary"):
        train(TEXT, SIZE, like=source, base=source)
    assert train(TEXT, SIZE, like=source, pattern="llama3", normalization="none") == train(TEXT, SIZE, like=source)
    with pytest.raises(
        DataError, match="counted with the pattern gpt2, expected llama3; count the text again with pat"
    ):
        train(ChunkCounts.count(TEXT, "gpt2"), SIZE, like=source)


@pytest.mark.parametrize(
    ("part", "where"),
    [
        ({"padding": {"pad_token": "[PAD]", "pad_id": 0}}, "padding: names the token '\\[PAD\\]'"),
        ({"post_processor": template("Ġthe", 260)}, "post_processor: names the token 'Ġthe'"),
    ],
)
def test_settings_that_name_other_tokens(part: dict[str, Any], where: str) -> None:
    source = replace(family("gpt2").model, carried=part)
    name = where.partition("'")[2].strip("'").replace("\\", "")
    remedy = "which is neither special nor a byte; add it with special_tokens"
    with pytest.raises(DataError, match=f"^{where}, {remedy}"):
        train(untouched(), SIZE, like=source)  # before anything is read
    with pytest.raises(DataError, match=f"^{where}, {remedy}"):
        counting_for(source, [])
    assert name in counting_for(source, [name])[1]
    model = train(TEXT, SIZE, like=source, special_tokens=[name])
    assert str(model.special_tokens[name]) in json.dumps(dict(model.carried))

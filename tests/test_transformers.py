"""`batchbpe.transformers`: a tokenizer of transformers with the ids of the core."""

import copy
import json
import pickle
import unicodedata
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from helpers import TEXT, multilingual
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers_calls import check_equal, details

from batchbpe import PATTERNS, BatchTokenizer, Tokenizer
from batchbpe.errors import ArgumentTypeError
from batchbpe.model import Model

transformers = pytest.importorskip("transformers")

from batchbpe.transformers import BatchBPETokenizer, load  # noqa: E402

TEMPLATE = """{% for m in messages %}<|im_start|>{{ m.role }}
{% generation %}{{ m.content }}<|im_end|>
{% endgeneration %}{% endfor %}"""
TEXTS = [
    *(multilingual(300, seed) for seed in range(6)),
    "",
    " ",
    "  two  spaces  ",
    "e\u0301\u0316x \u0344\u0316 \u212b ﬁ",
    unicodedata.normalize("NFD", "한국어 Việt Nam é ở"),
    "a\n\n  b   ",
    "<s>x <mask> y</s> <|im_start|>user  ",
    "🙂🙃 a🙂",
    "It's 1234567 o'clock, they'LL say.",
]


def byte_level(trim: bool, prefix: bool = False) -> dict[str, Any]:
    return {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": trim, "use_regex": True}


def template(bos: int, eos: int) -> dict[str, Any]:
    tokens = {name: {"id": name, "ids": [id], "tokens": [name]} for name, id in (("<s>", bos), ("</s>", eos))}
    first, last = ({"SpecialToken": {"id": name, "type_id": 0}} for name in ("<s>", "</s>"))
    text, pair = ({"Sequence": {"id": each, "type_id": index}} for index, each in enumerate("AB"))
    more = [{"SpecialToken": {"id": "<s>", "type_id": 1}}, pair]
    return {
        "type": "TemplateProcessing",
        "single": [first, text, last],
        "pair": [first, text, *more],
        "special_tokens": tokens,
    }


def family(name: str) -> Tokenizer:
    """Train a tokenizer that resembles those of published models."""
    names = ["<s>", "</s>", "<pad>", "<mask>", "<|im_start|>", "<|im_end|>"]
    options: dict[str, Any] = {"special_tokens": names}
    if name in ("qwen", "chat"):
        options |= {"pattern": "qwen2", "normalization": "NFC"}
    if name in ("gpt2", "roberta"):
        options["pattern"] = "gpt2"
    model = Tokenizer.train(texts=TEXT, vocab_size=500, **options).model
    bos, eos = model.special_tokens["<s>"], model.special_tokens["</s>"]
    config = {
        "bos_token": "<s>",
        "eos_token": "</s>",
        "pad_token": "<pad>",
        "mask_token": "<mask>",
        "model_max_length": 512,
    }
    roberta = {"type": "RobertaProcessing", "sep": ["</s>", eos], "cls": ["<s>", bos], "trim_offsets": True}
    processors = {
        "gpt2": byte_level(trim=True),
        "llama": {"type": "Sequence", "processors": [byte_level(trim=True), template(bos, eos)]},
        "qwen": byte_level(trim=False),
        "chat": template(bos, eos),
        "roberta": roberta | {"add_prefix_space": True},
        "plain": None,
    }
    carried = {"post_processor": processors[name], "tokenizer_config": config, "chat_template": TEMPLATE}
    if name == "roberta":
        model = replace(model, split=replace(model.split, prefix_space=True), flags={"<mask>": {"lstrip"}})
        model = replace(model, carried=carried | {"tokenizer_config": config | {"add_prefix_space": True}})
        return Tokenizer(model)
    return Tokenizer(replace(model, carried=carried))


FAMILIES = ["gpt2", "llama", "qwen", "chat", "roberta", "plain"]


@pytest.fixture(params=FAMILIES)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    family(request.param).export(tmp_path / request.param, "transformers")
    return tmp_path / request.param


def test_equal_outputs(folder: Path) -> None:
    theirs = transformers.PreTrainedTokenizerFast.from_pretrained(folder)
    mine = load(folder)
    check_equal(theirs, mine, TEXTS)
    theirs.model_input_names = mine.model_input_names = ["input_ids", "token_type_ids"]
    assert dict(mine(TEXTS)) == dict(theirs(TEXTS))
    for tokens in (["clock"], [transformers.AddedToken("They", lstrip=True, single_word=True)]):
        assert theirs.add_tokens(tokens) == mine.add_tokens(tokens)
    assert theirs.add_special_tokens({"eos_token": "<new>"}) == mine.add_special_tokens({"eos_token": "<new>"})
    check_equal(theirs, mine, [*TEXTS, "o'clock<new> They"])


@settings(max_examples=30)
@given(text=st.text(st.sampled_from("aé e\u0301\u0316🙂ﬁ한\u1100\u1161\u11a8 \n1<s>")))
@pytest.mark.parametrize("name", FAMILIES)
def test_hyp_offsets_and_words(name: str, text: str) -> None:
    mine = _loaded(name)
    expected = mine.backend_tokenizer.encode(text)
    found = mine(text, return_offsets_mapping=True)
    assert (found["input_ids"], found["offset_mapping"]) == (expected.ids, expected.offsets)
    assert found.word_ids() == expected.word_ids


_FAMILIES: dict[str, BatchBPETokenizer] = {}


def _loaded(name: str) -> BatchBPETokenizer:
    if name not in _FAMILIES:
        _FAMILIES[name] = load(family(name))
        _FAMILIES[name].backend_tokenizer.no_truncation()
    return _FAMILIES[name]


def test_ids_come_from_the_core(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = _loaded("llama")
    core = SimpleNamespace(encode_batch=lambda *_: [[1, 2, 3]], decode_text=lambda *_: "decoded")
    monkeypatch.setitem(mine.tokenizer.__dict__, "core_encoder", core)
    assert mine("text", add_special_tokens=False)["input_ids"] == [1, 2, 3]
    assert mine.decode([97]) == "decoded"


def test_chat_template(folder: Path) -> None:
    theirs, mine = transformers.PreTrainedTokenizerFast.from_pretrained(folder), load(folder)
    chat = [{"role": "user", "content": "What's 12 <s>?"}, {"role": "assistant", "content": "ﬁne é"}]
    for options in ({}, {"return_assistant_tokens_mask": True}, {"sanitize_control_tokens": True}, {"tokenize": False}):
        assert mine.apply_chat_template(chat, **options) == theirs.apply_chat_template(chat, **options)


def own_class() -> Tokenizer:
    """Return a tokenizer that tokenizer.json cannot represent: a merge and a stop word have the same bytes."""
    merges, stop_words = {(97, 97): 256}, {b"aa": 257}
    return Tokenizer(Model(PATTERNS["gpt4"], merges, stop_words=stop_words, special_tokens={"<s>": 260, "</s>": 258}))


@pytest.mark.parametrize("source", [own_class(), family("llama"), family("roberta")], ids=["own", "llama", "roberta"])
def test_files(source: Tokenizer, tmp_path: Path) -> None:
    mine = load(source)
    assert mine.tokenizer == source
    mine.add_tokens(["xyz"])
    mine.pad_token = "</s>"
    expected = dict(mine(["aa aaxyz", "a<s>"], padding=True))
    mine.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    own = config["tokenizer_class"] == "BatchBPETokenizer"
    assert own == (tmp_path / "batchbpe.model").exists() == (not (tmp_path / "tokenizer.json").exists())
    again = transformers.AutoTokenizer.from_pretrained(tmp_path, trust_remote_code=own)
    assert isinstance(again, BatchBPETokenizer) is own
    for each in (again, load(tmp_path), load(mine), pickle.loads(pickle.dumps(mine)), copy.deepcopy(mine)):
        assert dict(each(["aa aaxyz", "a<s>"], padding=True)) == expected
        assert (each.pad_token, len(each)) == ("</s>", len(mine))
    assert mine.decode(expected["input_ids"][0], skip_special_tokens=True).lstrip() == "aa aaxyz"


def test_copies_share_the_core() -> None:
    """Inference engines copy the tokenizer for each thread."""
    mine = load(family("llama"))
    core = mine.tokenizer
    for copied in (copy.copy(mine), copy.deepcopy(mine)):
        assert copied.tokenizer is core
    deep = copy.deepcopy(mine)
    deep.add_tokens(["more"])
    assert len(deep) == len(mine) + 1 and mine.tokenizer is core
    cached = copy.copy(mine)
    cached.__class__ = type("Cached", (type(mine),), {"__len__": lambda _: 7})
    assert len(cached) == 7 and cached("ab") == mine("ab")


def test_own_class_details() -> None:
    mine = load(own_class())
    assert mine("aa aab<s>")["input_ids"] == own_class().encode("aa aab<s>", "all")
    assert mine.tokenize("aa aab") == ["aa∎", "Ġ", "aa", "b"]
    assert mine("aa aab", return_offsets_mapping=True)["offset_mapping"] == [(0, 2), (2, 3), (3, 5), (5, 6)]
    assert mine.convert_tokens_to_ids(mine.convert_ids_to_tokens([256, 257, 258])) == [256, 257, 258]
    assert mine.convert_tokens_to_string(mine.tokenize("aa")) == mine.decode([257, 9999]) == "aa"
    assert len(mine) == 261
    with pytest.raises(NotImplementedError, match="sanitize_control_tokens"):
        mine._encode_without_added_tokens("a")


def test_load_accepts(tmp_path: Path) -> None:
    tokenizer = family("chat")
    tokenizer.save(tmp_path / "mine")
    tokenizer.export(tmp_path / "folder", "transformers")
    old = BatchTokenizer.from_file(tmp_path / "mine.model")
    paths = [tmp_path / "mine.model", str(tmp_path / "folder"), tmp_path / "folder" / "tokenizer.json"]
    fast = transformers.AutoTokenizer.from_pretrained(tmp_path / "folder")
    for source in (*paths, tokenizer, tokenizer.model, old, fast, load(tokenizer)):
        loaded = load(source)
        assert loaded.tokenizer == tokenizer
        assert (loaded.eos_token, loaded.chat_template) == ("</s>", TEMPLATE)
    assert load(tmp_path / "mine.model").name_or_path == "mine"
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "missing")
    with pytest.raises(ArgumentTypeError):
        load(3)


def test_the_backend_may_change() -> None:
    mine = load(family("gpt2"))
    from tokenizers import normalizers, processors

    mine.backend_tokenizer.normalizer = normalizers.NFC()
    assert mine("e\u0301")["input_ids"] == mine("é")["input_ids"]
    mine.backend_tokenizer.add_tokens(["tock"])
    assert mine.tokenize("tick tock")[-1] == "tock"
    mine.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="$A <s> $A", pair=None, special_tokens=[("<s>", 494)]
    )
    assert mine("ab")["input_ids"] == [*mine.tokenizer.encode("ab"), 494, *mine.tokenizer.encode("ab")]
    mine.bos_token, mine.add_bos_token = "<s>", True
    assert mine("ab")["input_ids"] == [494, *mine.tokenizer.encode("ab")]


def test_pickled_output() -> None:
    mine = _loaded("llama")
    found = mine(["a b", "c"], padding=True)
    again = pickle.loads(pickle.dumps(found))
    assert [again.word_ids(each) for each in range(2)] == [found.word_ids(each) for each in range(2)]
    again._n_sequences = found.n_sequences  # which transformers does not pickle
    assert details(again) == details(found)
    assert [each.ids for each in found.encodings[:]] == found["input_ids"]


def test_empty_batch() -> None:
    assert dict(_loaded("llama")([])) == {"input_ids": [], "attention_mask": []}


def test_datasets_map(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    mine = _loaded("llama")
    data = datasets.Dataset.from_dict({"text": TEXTS})
    found = data.map(
        lambda batch: mine(batch["text"]), batched=True, num_proc=2, cache_file_name=str(tmp_path / "cache.arrow")
    )
    assert found["input_ids"][:] == mine(TEXTS)["input_ids"]


def test_collator() -> None:
    mine = _loaded("llama")
    theirs = transformers.PreTrainedTokenizerFast(tokenizer_object=mine.backend_tokenizer, pad_token="<pad>")
    found, expected = (each.pad([each(text) for text in TEXTS], return_tensors="np") for each in (mine, theirs))
    assert isinstance(found["input_ids"], np.ndarray)
    assert all(np.array_equal(found[name], expected[name]) for name in ("input_ids", "attention_mask"))


@pytest.mark.filterwarnings("ignore:.*replaced, without")
@pytest.mark.parametrize("export", [True, False])
@pytest.mark.parametrize("order", [1, -1])
def test_a_folder_has_the_files_of_one_tokenizer(order: int, export: bool, tmp_path: Path) -> None:
    (tmp_path / "chat_template.jinja").write_text(TEMPLATE)
    for source in [family("llama"), own_class()][::order]:
        with pytest.warns(UserWarning, match="kept, but") if source == own_class() else nullcontext():
            if export:
                source.export(tmp_path, "transformers")
            else:
                load(source).save_pretrained(tmp_path)
    assert load(tmp_path).tokenizer == Tokenizer.from_file(tmp_path) == source


@pytest.mark.parametrize("source", [own_class(), family("gpt2")], ids=["own", "gpt2"])
def test_settings_that_change_later(source: Tokenizer, tmp_path: Path) -> None:
    mine = load(source)
    mine("a")
    mine.bos_token, mine.add_bos_token = "<s>", True
    bos = source.special_tokens["<s>"]
    mine.save_pretrained(tmp_path)
    for each in (mine, load(mine), load(tmp_path), load(Tokenizer.from_huggingface(mine))):
        assert each("a b")["input_ids"][0] == bos
        assert each.bos_token == Tokenizer.from_huggingface(each).roles["bos"] == "<s>"


def test_encodings_are_those_of_the_call() -> None:
    mine = load(family("llama"))
    found = mine(["to be or not"], truncation=True, max_length=5, padding="max_length")
    expected = found["input_ids"][0]
    mine.truncation_side, mine.padding_side, mine.pad_token = "left", "left", "<mask>"
    mine.backend_tokenizer.post_processor = None
    assert found[0].ids == expected


def test_threads() -> None:
    """Options of calls in other threads have no effect. Those of transformers do, since its threads share settings."""
    mine = _loaded("llama")

    def lengths(length: int) -> set[int]:
        found = [mine("to be " * 20, "or not " * 20, truncation=True, max_length=length) for _ in range(100)]
        return {len(each["input_ids"]) for each in found} | {len(each.word_ids()) for each in found}

    with ThreadPoolExecutor(4) as threads:
        assert [*threads.map(lengths, range(10, 30, 5))] == [{10}, {15}, {20}, {25}]


def test_the_hash_of_a_tokenizer_does_not_change() -> None:
    """`datasets` finds cached results by it."""
    fingerprint = pytest.importorskip("datasets.fingerprint")
    mine = load(family("llama"))
    before = fingerprint.Hasher.hash(mine)
    mine(["a", "b"], ["c", "d"], truncation=True, max_length=9).word_ids()
    assert fingerprint.Hasher.hash(mine) == before


def test_special_tokens_without_a_role(tmp_path: Path) -> None:
    first = Tokenizer.train(TEXT, 300, special_tokens=["</s>", "<x>"])
    old = load(first)
    assert old.all_special_tokens == ["</s>", "<x>"]
    first.export(tmp_path / "first", "transformers")
    for source in (old, transformers.AutoTokenizer.from_pretrained(tmp_path / "first"), tmp_path / "first"):
        like = Tokenizer.train(TEXT, 310, like=source, special_tokens=["<y>"])
        longer = Tokenizer.train(TEXT, 310, base=source, special_tokens=["<y>"])
        for each in (like, longer):
            each.export(tmp_path / "folder", "transformers")
            assert transformers.AutoTokenizer.from_pretrained(tmp_path / "folder").all_special_tokens[-1] == "<y>"
            assert load(each).all_special_tokens == ["</s>", "<x>", "<y>"]
    new = old.train_new_from_iterator([TEXT], 310, new_special_tokens=["<y>"], show_progress=False)
    assert new.all_special_tokens == ["</s>", "<x>", "<y>"]


def test_other_models_are_refused_when_they_are_loaded(tmp_path: Path) -> None:
    from tokenizers import Tokenizer as Backend
    from tokenizers.models import WordPiece

    Backend(WordPiece({"[UNK]": 0}, unk_token="[UNK]")).save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(ValueError, match=rf"{tmp_path.name}.*WordPiece"):
        load(tmp_path)
    with pytest.raises(Exception, match="WordLevel"):
        load(own_class()).backend_tokenizer.encode("some text")


def test_tokens_of_text_that_others_strip() -> None:
    """The library of Hugging Face encodes whitespace twice if a token before strips it."""
    mine = load(family("plain"))
    mine.add_tokens([transformers.AddedToken("<x>", rstrip=True), "  ", transformers.AddedToken("ﬁ", normalized=True)])
    for text in ("<x>  \né", "<x>  \nb", "<x>    ﬁ ab", "é<x>   <x>  é"):
        expected, found = mine.backend_tokenizer.encode(text), mine(text, return_offsets_mapping=True)
        assert (found["input_ids"], found["offset_mapping"]) == (expected.ids, expected.offsets)
        assert (found.word_ids(), found.tokens()) == (expected.word_ids, expected.tokens)


@settings(max_examples=60)
@given(text=st.text(st.sampled_from("abé日 \n1🙂")))
def test_hyp_offsets_with_missing_bytes(text: str) -> None:
    """Hugging Face's library places tokens as if the bytes that the vocabulary lacks were not there."""
    if "missing" not in _FAMILIES:
        byte_ids = tuple(None if byte in b"b\xa5" else byte for byte in range(256))
        _FAMILIES["missing"] = load(Model(PATTERNS["gpt4"], {(32, 97): 256, (230, 151): 257}, byte_ids=byte_ids))
    mine = _FAMILIES["missing"]
    expected = mine.backend_tokenizer.encode(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = mine(text, return_offsets_mapping=True)
        assert (found["input_ids"], found["offset_mapping"]) == (expected.ids, expected.offsets)
        assert found.word_ids() == expected.word_ids


def test_tokens_that_cannot_be_added() -> None:
    mine = _loaded("llama")
    with pytest.raises(ValueError, match=r"new_tokens must not be the byte-level spelling of another token, b'\\xe9'"):
        mine.add_tokens(["é"])
    assert mine("é")["input_ids"][1:-1] == mine.tokenizer.encode("é")


def test_settings_of_objects(tmp_path: Path) -> None:
    family("llama").export(tmp_path / "folder", "transformers")
    settings = {"split_special_tokens": True, "model_input_names": ["input_ids"], "image_token": "<mask>"}
    theirs = transformers.PreTrainedTokenizerFast.from_pretrained(tmp_path / "folder", **settings)
    theirs.chat_template = {"default": TEMPLATE, "other": "{{ 1 }}"}
    mine = load(theirs)
    assert dict(mine("<s>a")) == dict(theirs("<s>a"))
    assert (mine.image_token, mine.chat_template) == ("<mask>", theirs.chat_template)


def test_settings_of_load(tmp_path: Path) -> None:
    family("llama").export(tmp_path / "folder", "transformers")
    for source in (tmp_path / "folder", family("llama")):
        assert load(source, padding_side="left", pad_token="</s>").pad_token == "</s>"


def test_streaming_by_hugging_face() -> None:
    """Inference engines decode with the backend."""
    from tokenizers.decoders import DecodeStream

    mine, stream = _loaded("qwen"), DecodeStream(skip_special_tokens=True)
    ids = mine("naïve 🙂 한국어<s>")["input_ids"]
    parts = [stream.step(mine._tokenizer, id) or "" for id in ids]
    assert "".join(parts) == mine.decode(ids, skip_special_tokens=True)


def test_calls_of_inference_engines() -> None:
    """What vLLM and SGLang call besides what is tested above; see docs/serving.md."""
    mine = _loaded("llama")
    ids = mine.encode("naïve text", truncation=False, add_special_tokens=False)
    assert mine.encode("naïve text", truncation=True, max_length=3) == [494, *ids[:1], 495]
    assert mine.encode("naïve text", add_special_tokens=False) == ids  # an earlier truncation leaves no trace
    options = {"skip_special_tokens": True, "spaces_between_special_tokens": False}
    assert mine.batch_decode([ids, [494, *ids]], **options) == ["naïve text"] * 2
    assert "".join(mine.decode(id) for id in mine.encode("text", add_special_tokens=False)) == "text"
    assert mine.convert_tokens_to_string(mine.convert_ids_to_tokens(ids)) == "naïve text"
    assert {*mine.get_vocab().values()} == {*range(len(mine))}
    assert (mine.is_fast, mine.num_special_tokens_to_add(), mine.bos_token_id) == (True, 2, 494)
    assert mine.get_added_vocab()["</s>"] == mine.eos_token_id == 495
    assert json.loads(mine.backend_tokenizer.to_str())["decoder"]["type"] == "ByteLevel"


@pytest.mark.parametrize(
    ("args", "options", "error"),
    [
        ((3,), {}, "text must be a string, or a list of strings or pairs of strings, got 3"),
        ((["a", None],), {}, "text must be"),
        ((["a", "b"], ["c"]), {}, "text_pair must be a list of 2 texts"),
        ((["a", "b"], "c"), {}, "text_pair must be a list of 2 texts"),
        (("a",), {"is_split_into_words": True}, "text must be a list of words"),
        (("a",), {"return_offset_mapping": True}, "unsupported options: return_offset_mapping"),
        (("\ud800",), {}, "surrogate"),
        (("\ud800",), {"return_offsets_mapping": True}, "surrogate"),
        ((["a", "b"], ["c", "\ud83d\ude42"]), {}, "surrogate"),
        (("a",), {"padding": "longer"}, "longer"),
        (("a",), {"padding": True, "padding_side": "RIGHT"}, "padding_side must be 'left' or 'right', got 'RIGHT'"),
        (("a",), {"padding": True, "pad_to_multiple_of": -3}, "pad_to_multiple_of must be at least 1"),
    ],
)
def test_bad_input(args: tuple[Any, ...], options: dict[str, Any], error: str) -> None:
    with pytest.raises((TypeError, ValueError), match=error):
        _loaded("llama")(*args, **options)


def test_decode_leaves_out_unknown_ids() -> None:
    mine = _loaded("llama")
    assert mine.decode([97, 10**6, 98]) == mine.backend_tokenizer.decode([97, 10**6, 98]) == "ab"
    assert mine.decode(97) == "a"
    with pytest.raises(OverflowError):
        mine.decode([-100])

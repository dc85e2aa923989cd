"""Every published tokenizer.json gives the ids of `tokenizers`, is written back, and can be trained further."""

import json
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from published import FOLDER, PUBLISHED, Published, assert_same, ids_of, in_library, is_byte_level
from tokenizers.decoders import DecodeStream
from transformers import PreTrainedTokenizerFast

from batchbpe import Tokenizer
from batchbpe.errors import DataError
from batchbpe.formats.byte_level import to_byte_level
from batchbpe.formats.roles import RoleOptions, with_listed

pytestmark = pytest.mark.filterwarnings("ignore:the vocabulary lacks", "ignore:the tokenizer.json does not contain")


def test_same_ids_of_real_text(published: Published) -> None:
    assert_same(published.encode, published.their_encode, published.real)


def test_same_ids_of_generated_strings(published: Published) -> None:
    assert_same(published.encode, published.their_encode, published.generated)


def test_decoding_returns_the_normalized_text(published: Published) -> None:
    def decoded(text: str) -> str:
        return published.ours.decode(published.encode(text))

    assert_same(decoded, published.normalize, published.real)


def test_decoding_equals_theirs(published: Published) -> None:
    if published.parts["decoder"]["type"] != "ByteLevel":
        pytest.skip("not a ByteLevel decoder")
    for text in published.generated:
        ids = [token for token in published.encode(text) if token not in published.ambiguous]
        assert published.ours.decode(ids) == published.theirs.decode(ids, skip_special_tokens=False), ascii(text)


def test_streams_return_the_text_of_theirs(published: Published) -> None:
    if published.parts["decoder"]["type"] != "ByteLevel":
        pytest.skip("not a ByteLevel decoder")
    for text in published.real:
        ids = [token for token in published.encode(text[:2000]) if token not in published.ambiguous]
        ours, theirs = published.ours.decode_stream(), DecodeStream(skip_special_tokens=False)
        shown = "".join(map(ours.step, ids))
        assert shown == "".join(theirs.step(published.theirs, token) or "" for token in ids)
        assert shown + ours.finish() == published.ours.decode(ids)


def test_the_export_is_the_identity_and_gives_equal_ids(published: Published, tmp_path: Path) -> None:
    published.ours.export(tmp_path / "tokenizer.json", "huggingface")
    back = Tokenizer.from_huggingface(tmp_path / "tokenizer.json")
    assert back.model == published.ours.model
    exported = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert_same(lambda text: ids_of(exported, text), published.their_encode, published.generated)
    for text in ("", "Hello"):
        assert exported.encode(text).ids == published.theirs.encode(text).ids, "post-processor"
        assert exported.encode(text, text).ids == published.theirs.encode(text, text).ids, "post-processor"
    kept = {name: published.parts.get(name) for name in ("post_processor", "decoder", "padding", "truncation")}
    written = json.loads((tmp_path / "tokenizer.json").read_text(encoding="utf-8"))
    assert {name: written.get(name) for name in kept} == kept


def test_the_folder_is_written_back(published: Published, tmp_path: Path) -> None:
    published.ours.export(tmp_path / "folder", "transformers")
    back = Tokenizer.from_huggingface(tmp_path / "folder")
    assert back.model == published.ours.model
    carried, expected = dict(back.model.carried), dict(published.ours.model.carried)
    config, expected_config = (dict(each.pop("tokenizer_config", {})) for each in (carried, expected))
    assert carried == expected
    # Classes such as Qwen2Tokenizer replace the pattern, so the folder names none of them (see docs/formats.md).
    for name in ("tokenizer_class", "auto_map"):
        expected_config.pop(name, None)
    assert config | expected_config == config
    beside = published.path.parent
    if (beside / "chat_template.jinja").exists():
        assert back.model.carried["chat_template"] == (beside / "chat_template.jinja").read_text(encoding="utf-8")
    if (beside / "tokenizer_config.json").exists():
        config = json.loads((beside / "tokenizer_config.json").read_text(encoding="utf-8"))
        assert published.ours.model.carried["tokenizer_config"] == config


def test_the_model_file_is_the_identity(published: Published, tmp_path: Path) -> None:
    published.ours.save(tmp_path / "mine")
    back = Tokenizer.from_file(tmp_path / "mine.model")
    assert (back.model, back.model.carried) == (published.ours.model, published.ours.model.carried)
    assert_same(lambda text: back.encode(text, "all"), published.encode, published.generated[:200])


def test_tokenizers_1_loads_the_export(published: Published, tmp_path: Path) -> None:
    model = published.ours.model
    if any(value in model.token_ids for value in model.decode_only.values()):
        pytest.skip(
            "1.0.0rc3 gives a text either of two ids, at random: one of a token spelled as bytes and one as text"
        )
    texts = [*published.generated[:500], *published.real[::25]]
    theirs = in_library("tokenizers", published.path, texts, tmp_path)
    if isinstance(theirs, str):
        pytest.skip(f"tokenizers 1.0 does not load the original either: {theirs}")
    published.ours.export(tmp_path / "tokenizer.json", "huggingface")
    exported = in_library("tokenizers", tmp_path / "tokenizer.json", texts, tmp_path)
    assert not isinstance(exported, str), exported
    for text, ours, expected in zip(texts, exported, theirs, strict=True):
        assert ours == expected, ascii(text[:200])


def test_training_further_keeps_the_ids(published: Published, tmp_path: Path) -> None:
    base = published.ours
    further = Tokenizer.train(published.real[::10], add_tokens=200, base=base, special_tokens=["<|new|>"])
    assert len(further) == len(base) + 200 and further.vocab.items() >= base.vocab.items()
    new = further.vocab.keys() - base.vocab.keys()
    assert {**base.special_tokens, "<|new|>": max(new)} == further.special_tokens and min(new) == base.n_vocab
    listed = with_listed(base.model, ["<|new|>"]).carried
    assert (further.model.carried, further.roles) == (listed, base.roles)
    assert len(str(listed)) - len(str(base.model.carried)) < 80  # nothing but the new token
    parts = {token: pair for pair, token in further.merges.items() if token in new}
    for text in published.real[5:2000:50]:
        ids = further.encode(text, "all")
        assert further.decode(ids) == published.normalize(text)
        while not parts.keys().isdisjoint(ids):  # text is encoded as before, but for the new merges
            ids = [part for token in ids for part in parts.get(token, [token])]
        assert ids == published.encode(text)
    assert new & {token for text in published.real[::10] for token in further.encode(text, "all")}
    if published.path.parent.name == "gguf-gpt-2":
        assert further.special_tokens["<|endoftext|>"] == 50256


LIKE = ("gguf-gpt-2", "llama-3.2", "qwen-3", "qwen-3.5", "deepseek-v3", "glm-4", "gguf-starcoder")


def test_a_new_vocabulary_equals_that_of_transformers(published: Published, tmp_path: Path) -> None:
    if published.path.parent.name not in LIKE:
        pytest.skip("not one of the files compared")
    found = published.ours.model.found_tokens  # only transformers counts their parts
    text = [text for text in published.real[::20] if not any(name in text for name in found)]
    old = PreTrainedTokenizerFast.from_pretrained(published.path.parent)
    size, others = 1000 + len(published.ours.special_tokens), published.ours.model.added_tokens
    theirs = old.train_new_from_iterator(text, size, show_progress=False)
    how: Any = {"policy": "serial", "ties": "huggingface", "overlapping": True}
    ours = Tokenizer.train(text, size + len(others), like=published.path.parent, **how)
    assert {*theirs.get_vocab(), *others} == set(ours.get_vocab())
    merges = [[to_byte_level(ours.vocab[token]) for token in pair] for pair in ours.merges]
    assert merges == json.loads(theirs.backend_tokenizer.to_str())["model"]["merges"]
    ours.export(tmp_path / "new", "transformers")
    auto = PreTrainedTokenizerFast.from_pretrained(tmp_path / "new")
    for held_out in ("", *published.real[7::100]):
        names = theirs.tokenize(held_out)
        assert [ours.id_to_token(token) for token in ours.encode(held_out, "all")] == names, ascii(held_out)
        first = published.theirs.encode("").tokens  # what the post-processor adds
        assert auto.convert_ids_to_tokens(auto(held_out).input_ids) == [*first, *names]
    assert auto.chat_template == old.chat_template and ours.roles == published.ours.roles
    if (published.path.parent / "tokenizer_config.json").exists():
        assert auto.special_tokens_map == theirs.special_tokens_map


def test_templates_are_accepted(published: Published) -> None:
    pytest.importorskip("jinja2")
    config = published.ours.model.carried.get("tokenizer_config", {})
    for template in (config.get("chat_template"), published.ours.model.carried.get("chat_template")):
        assert template is None or RoleOptions(chat_template=template).chat_template == template


@pytest.mark.parametrize("path", [path for path in sorted(FOLDER.glob(PUBLISHED)) if not is_byte_level(path)])
def test_other_models_are_refused(path: Path) -> None:
    with pytest.raises(DataError, match="only byte-level BPE is"):
        Tokenizer.from_huggingface(path)

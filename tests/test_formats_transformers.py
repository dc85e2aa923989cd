"""Exporting a folder for transformers is atomic, and the folder has a token for every id."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from batchbpe import Model, Tokenizer
from batchbpe.formats.placeholders import MAX_UNUSED

PLAIN = Tokenizer.train("to be or not to be " * 9, 270)
# A tokenizer.json cannot have a stop word with the bytes of another token.
OWN = Tokenizer(replace(PLAIN.model, stop_words={PLAIN.vocab[260]: 270}))
NAMES = {
    "plain": {"tokenizer.json", "tokenization_fast.py", "tokenizer.test.json", "tokenizer_config.json"},
    "own": {"batchbpe.model", "tokenization_batchbpe.py", "tokenizer.test.json", "tokenizer_config.json"},
}


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def fails_after(n: int, real: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that works n times and then fails as on a full disk."""
    remaining = iter(range(n))

    def write(*args: Any, **kwargs: Any) -> Any:
        if next(remaining, None) is None:
            raise OSError(28, "No space left on device")
        return real(*args, **kwargs)

    return write


@pytest.mark.parametrize("done", [0, 1, 2])
@pytest.mark.parametrize(("before", "after"), [(PLAIN, OWN), (OWN, PLAIN)])
def test_full_disk_leaves_the_old_export(
    before: Tokenizer, after: Tokenizer, done: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "folder"
    before.export(folder, "transformers")
    (folder / "model.safetensors").write_text("weights")
    old = content(folder)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_text", fails_after(done, Path.write_text))
        if done < len(NAMES["own" if after is OWN else "plain"]):
            with pytest.raises(
                OSError, match=rf"^cannot write {re.escape(str(folder))}.\w+(\.\w+)+: no space left on device"
            ):
                after.export(folder, "transformers")
            assert content(folder) == old
    after.export(folder, "transformers")
    assert content(folder).keys() == NAMES["own" if after is OWN else "plain"] | {"model.safetensors"}
    kind = json.loads(content(folder)["tokenizer_config.json"])["tokenizer_class"]
    assert kind == ("BatchBPETokenizer" if after is OWN else "PreTrainedTokenizerFast")


def test_new_folder_appears_with_all_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_text", fails_after(1, Path.write_text))
        with pytest.raises(OSError, match="no space left on device"):
            OWN.export(tmp_path / "folder", "transformers")
    assert not list(tmp_path.iterdir())
    OWN.export(tmp_path / "folder", "transformers")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
    assert content(tmp_path / "folder").keys() == NAMES["own"]
    (tmp_path / "other").mkdir()
    assert (tmp_path / "folder").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_saving_a_model_is_atomic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The .model and the .vocab file are either both new or both old."""
    PLAIN.save(tmp_path / "mine")
    old = content(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_text", fails_after(0, Path.write_text))
        with pytest.raises(OSError, match=r"cannot write .*mine\.model: no space left"):
            OWN.save(tmp_path / "mine")
    assert content(tmp_path) == old
    OWN.save(tmp_path / "mine")
    assert content(tmp_path).keys() == old.keys()
    assert Tokenizer.from_file(tmp_path / "mine.model").stop_words == OWN.stop_words


def test_too_many_unused_ids(tmp_path: Path) -> None:
    def tokenizer(last: int) -> Tokenizer:
        return Tokenizer.train("to be " * 9, 260, stop_list_size=1, special_tokens={"<eot>": last})

    largest = len(tokenizer(300).vocab) + MAX_UNUSED - 1
    tokenizer(largest).export(tmp_path / "folder", "transformers")
    message = r"'<eot>' has id 16777215, and 16,\d+,\d+ ids below it are unused, .*65,536 .*; choose a smaller id"
    for last, problem in ((largest + 1, "65,537 ids below it are unused"), ((1 << 24) - 1, message)):
        with pytest.raises(ValueError, match=problem):
            tokenizer(last).export(tmp_path / "absent", "transformers")
    assert not (tmp_path / "absent").exists()


def test_class_rejects_too_many_unused_ids(tmp_path: Path) -> None:
    from batchbpe.transformers import BatchBPETokenizer

    sparse = Tokenizer.train("to be " * 9, 260, stop_list_size=1, special_tokens={"<eot>": (1 << 24) - 1})
    sparse.save(tmp_path / "sparse")
    with pytest.raises(ValueError, match="ids below it are unused"):
        BatchBPETokenizer(vocab_file=str(tmp_path / "sparse.model"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("stop_words", [{}, {b"the": 270}], ids=["tokenizer.json", "class"])
@pytest.mark.parametrize("allow_inexact", [False, True])
def test_embeddings_can_be_resized_with_gaps_between_ids(
    stop_words: dict[bytes, int], allow_inexact: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`model.resize_token_embeddings(len(tokenizer))` must leave an embedding for the largest id."""
    from transformers import AutoTokenizer
    from transformers import dynamic_module_utils as dynamic

    monkeypatch.setattr(dynamic, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    merges = {(116, 104): 260, (260, 101): 265}
    special = {"<|endoftext|>": 300, "<x>": 310}
    tokenizer = Tokenizer(Model(split=r"[a-z]+|[^a-z]", merges=merges, stop_words=stop_words, special_tokens=special))
    tokenizer.export(tmp_path / "first", "transformers", allow_inexact=allow_inexact)
    auto = AutoTokenizer.from_pretrained(tmp_path / "first", trust_remote_code=True)
    auto.save_pretrained(tmp_path / "second")
    for loaded in (auto, AutoTokenizer.from_pretrained(tmp_path / "second", trust_remote_code=True)):
        assert len(loaded) == tokenizer.n_vocab == 311
        assert sorted(loaded.get_vocab().values()) == [*range(311)]
        text = "then the <x><|endoftext|>"
        if not (stop_words and allow_inexact):
            assert loaded.encode(text, add_special_tokens=False) == tokenizer.encode(text, "all")
            assert Tokenizer.from_huggingface(loaded).model == tokenizer.model
        assert loaded.decode([116, 290]) == "t<|unused 290|>"
        assert loaded.convert_ids_to_tokens(290) == "<|unused 290|>"
        assert loaded.add_tokens(["<new>"]) == 1
        assert loaded.convert_tokens_to_ids("<new>") == 311
    if not (stop_words and allow_inexact):
        assert Tokenizer.from_file(tmp_path / "first").model == tokenizer.model


def test_reserved_name_of_an_unused_id(tmp_path: Path) -> None:
    tokenizer = Tokenizer(Model(split="[a-z]+", merges={}, special_tokens={"<|unused 256|>": 257}))
    with pytest.raises(
        ValueError, match=r"special token '<\|unused 256\|>' has the reserved name of the unused id 256"
    ):
        tokenizer.export(tmp_path / "folder", "transformers")
    fine = Tokenizer(Model(split="[a-z]+", merges={}, special_tokens={"<|unused 256|>": 256}))
    fine.export(tmp_path / "folder", "transformers")
    assert Tokenizer.from_file(tmp_path / "folder").model == fine.model


def test_an_added_token_that_is_spelled_like_a_missing_byte(tmp_path: Path) -> None:
    byte_ids = tuple(None if byte == 0xF5 else byte - (byte > 0xF5) for byte in range(256))
    model = Model("[a-z]+|[^a-z]", {}, byte_ids=byte_ids, added_tokens={"õ": 255, "<a>": 256})
    Tokenizer(model).export(tmp_path / "folder", "transformers")
    assert Tokenizer.from_file(tmp_path / "folder").model == model
    with pytest.raises(ValueError, match="token 'õ' is spelled like the byte 0xF5, which the model does not have"):
        Tokenizer(replace(model, added_tokens={"õ": 300})).export(tmp_path / "tokenizer.json", "huggingface")

"""A folder for transformers is written whole, or the old one stays."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from batchbpe import Tokenizer
from batchbpe.formats.transformers import MAX_UNUSED

PLAIN = Tokenizer.train("to be or not to be " * 9, 270)
OWN = Tokenizer.train("to be or not to be " * 9, 270, stop_list_size=2)
NAMES = {
    "plain": {"tokenizer.json", "tokenizer_config.json"},
    "own": {"batchbpe.model", "tokenization_batchbpe.py", "tokenizer_config.json"},
}


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def fails_after(n: int, real: Callable[..., Any]) -> Callable[..., Any]:
    """Do as before n times, and then find the disk full."""
    left = iter(range(n))

    def write(*given: Any, **named: Any) -> Any:
        if next(left, None) is None:
            raise OSError(28, "No space left on device")
        return real(*given, **named)

    return write


@pytest.mark.parametrize("done", [0, 1, 2])
@pytest.mark.parametrize(("before", "after"), [(PLAIN, OWN), (OWN, PLAIN)])
def test_a_full_disk_leaves_the_old_export(
    before: Tokenizer, after: Tokenizer, done: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "folder"
    before.export(folder, "transformers")
    (folder / "model.safetensors").write_text("weights")
    old = content(folder)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_text", fails_after(done, Path.write_text))
        if done < len(NAMES["own" if after is OWN else "plain"]):
            with pytest.raises(OSError, match=rf"^cannot write {folder}/\w+\.\w+: No space left on device"):
                after.export(folder, "transformers")
            assert content(folder) == old
    after.export(folder, "transformers")
    assert content(folder).keys() == NAMES["own" if after is OWN else "plain"] | {"model.safetensors"}
    kind = json.loads(content(folder)["tokenizer_config.json"])["tokenizer_class"]
    assert kind == ("BatchBPETokenizer" if after is OWN else "PreTrainedTokenizerFast")


def test_a_new_folder_appears_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_text", fails_after(1, Path.write_text))
        with pytest.raises(OSError, match="No space left on device"):
            OWN.export(tmp_path / "folder", "transformers")
    assert not list(tmp_path.iterdir())
    OWN.export(tmp_path / "folder", "transformers")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
    assert content(tmp_path / "folder").keys() == NAMES["own"]
    (tmp_path / "other").mkdir()
    assert (tmp_path / "folder").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_models_are_saved_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model and the file to read beside it: both new, or both old."""
    PLAIN.save(tmp_path / "mine")
    old = content(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_text", fails_after(0, Path.write_text))
        with pytest.raises(OSError, match=r"cannot write .*/mine\.model: No space left"):
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
    told = r"'<eot>' has the id 16777215, and 16,\d+,\d+ ids below it are unused; .*65,536: give it a smaller id"
    for last, problem in ((largest + 1, "65,537 ids below it are unused"), ((1 << 24) - 1, told)):
        with pytest.raises(ValueError, match=problem):
            tokenizer(last).export(tmp_path / "absent", "transformers")
    assert not (tmp_path / "absent").exists()


def test_the_class_refuses_unused_ids_too(tmp_path: Path) -> None:
    from batchbpe.formats.tokenization_batchbpe import BatchBPETokenizer

    sparse = Tokenizer.train("to be " * 9, 260, stop_list_size=1, special_tokens={"<eot>": (1 << 24) - 1})
    sparse.save(tmp_path / "sparse")
    with pytest.raises(ValueError, match="ids below it are unused"):
        BatchBPETokenizer(str(tmp_path / "sparse.model"))

"""Id maps between published vocabularies: nothing is lost, and an extension moves nothing."""

from pathlib import Path

import numpy as np
import pytest
from published import FOLDER, Published

from batchbpe import Tokenizer
from batchbpe.analysis.id_map import IdMap

pytestmark = pytest.mark.filterwarnings("ignore:the vocabulary lacks")


def load(name: str) -> Tokenizer:
    folder = FOLDER / "tokenizers" / name
    if not folder.exists():
        pytest.skip(f"{folder} does not exist; run make test-models")
    return Tokenizer.from_huggingface(folder)


def assert_parts_have_the_bytes(id_map: IdMap) -> None:
    """For all tokens but special and added ones, whose names may be normalized."""
    new, old = id_map.tokenizer, id_map.base
    named = set(new.model.found_tokens.values())
    values = old.vocab
    for token, value in new.vocab.items():
        if token not in named:
            assert b"".join(map(values.__getitem__, id_map.parts(token))) == value, token


def test_a_vocabulary_and_itself(published: Published) -> None:
    id_map = published.ours.id_map(published.ours)
    assert id_map.counts == {"kept": len(published.ours), "moved": 0, "added": 0, "removed": 0}


@pytest.mark.parametrize("name", ["gguf-gpt-2", "llama-3", "qwen-2.5", "deepseek-v3"])
def test_an_extension(name: str) -> None:
    base = load(name)
    longer = Tokenizer.train(Path(__file__).read_text() * 9, len(base) + 50, base=base)
    id_map = longer.id_map(base)
    assert id_map.counts == {"kept": len(base), "moved": 0, "added": len(longer) - len(base), "removed": 0}
    assert_parts_have_the_bytes(id_map)


@pytest.mark.parametrize(
    ("old", "new"), [("llama-3", "qwen-2.5"), ("gguf-gpt-2", "deepseek-v3"), ("qwen-3.5", "glm-4")]
)
def test_a_transplant(old: str, new: str) -> None:
    base, tokenizer = load(old), load(new)
    id_map = tokenizer.id_map(base)
    assert id_map.counts["moved"] > 30_000
    for each in (id_map, id_map.reverse):
        assert_parts_have_the_bytes(each)
    assert np.array_equal(np.diff(id_map.offsets)[id_map.old_ids >= 0], np.ones((id_map.old_ids >= 0).sum()))
    assert id_map.table().num_rows == len(tokenizer) + len(id_map.removed)

"""Published tokenizers in `batchbpe.transformers`, compared with transformers on real documents."""

from itertools import islice
from pathlib import Path
from typing import Any

import jinja2
import pytest
import transformers
from published import Published
from transformers_calls import check_equal

from batchbpe.transformers import load

pytestmark = pytest.mark.filterwarnings("ignore:the vocabulary lacks")


@pytest.fixture
def texts(published: Published) -> list[str]:
    real = published.real[:: max(1, len(published.real) // 150)]
    short = [text[start : start + 400] for text in real for start in (0, len(text) // 2)]
    return [*short[:150], *islice((text for text in published.generated if text), 50)]


def test_equal_outputs(published: Published, texts: list[str]) -> None:
    folder = published.path.parent
    theirs = transformers.PreTrainedTokenizerFast.from_pretrained(folder)
    # Falcon splits characters at bytes that it takes for digits, so that they are two words.
    check_equal(theirs, load(folder), texts, words=not published.cut_by_missing_bytes)


def test_chats(published: Published) -> None:
    folder = published.path.parent
    theirs, mine = transformers.PreTrainedTokenizerFast.from_pretrained(folder), load(folder)
    if not theirs.chat_template:
        pytest.skip("no chat template")
    texts = {"What's 12 × 7?": "user", "84 🙂": "assistant", "Việt Nam, 한국어?": "user"}
    chat: list[dict[str, Any]] = [{"role": role, "content": text} for text, role in texts.items()]
    try:
        theirs.apply_chat_template(chat)
    except jinja2.UndefinedError:  # the template expects parts of a message
        chat = [each | {"content": [{"type": "text", "text": each["content"]}]} for each in chat]
    prompt = {"add_generation_prompt": True}
    assert mine.apply_chat_template(chat, **prompt) == theirs.apply_chat_template(chat, **prompt)


def test_saved_and_loaded(published: Published, texts: list[str], tmp_path: Path) -> None:
    mine = load(published.path.parent)
    expected = dict(mine(texts))
    mine.save_pretrained(tmp_path)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert dict(theirs(texts)) == dict(load(tmp_path)(texts)) == expected

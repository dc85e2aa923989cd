"""The example `capitals` restores every text."""

import runpy
import sys
import unicodedata
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import every_character, texts
from hypothesis import given
from hypothesis import strategies as st

from batchbpe import Tokenizer, evaluate, split

PATH = Path(__file__).parent.parent / "examples" / "policies" / "capitals.py"
capitals = SimpleNamespace(**runpy.run_path(str(PATH)))
TEXT = "The NASA runs an HTTPServer. THE END, said Émile; ΟΔΟΣ and Οδός, İstanbul, Straße, CW and C++. " * 9


def plain_fold(text: str) -> str:
    """Do what `fold` does, one character at a time."""
    result, position = "", 0
    is_lower = [any(c == each.lower() for each in capitals.CAPITALS) for c in text]
    while position < len(text):
        end = position
        while end < len(text) and text[end] in capitals.CAPITALS:
            end += 1
        if end > position and end < len(text) and is_lower[end]:
            end -= 1  # a lowercase letter follows, so the last capital letter has its own marker
        size = max(end - position, 1)
        run = text[position : position + size]
        if run[0] in capitals.CAPITALS:
            result += "C" if size == 1 else "W"
            run = "".join(c.lower() for c in run)
        result += run
        position += size
    return result


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("The NASA", "Cthe Wnasa"),
        ("HTTPServer", "WhttpCserver"),
        ("tESt", "tCeCst"),
        ("teST", "teWst"),
        ("I C CW", "Ci Cc Wcw"),
        ("ΟΔΟΣ Οδός", "Wοδοσ Cοδός"),  # not a final sigma, which would become another capital letter
        ("İ ß ẞ ǅ", "İ ß ẞ ǅ"),  # not restored by upper()
        ("A1B", "Ca1Cb"),
        ("", ""),
    ],
)
def test_fold(text: str, folded: str) -> None:
    assert capitals.fold(text) == plain_fold(text) == folded
    assert capitals.unfold(folded) == text


def test_every_character_is_restored() -> None:
    text = every_character()
    for each in (text, "W" + text, " A".join(text), "b".join(text), text[::-1]):
        assert capitals.unfold(capitals.fold(each)) == each
    assert not {*capitals.TO_LOWER} & {*capitals.TO_UPPER}
    assert {"C", "W"} <= {*capitals.CAPITALS}  # so that they are only markers in a folded text
    assert all(unicodedata.category(c)[0] == "L" for c in "CW")


cased = st.text(st.sampled_from("CWcwABabÉéΣσςİißẞǅǆ 1'’_\u0301Ⓐⓐ𐐀𐐨"), max_size=40)


@given(st.one_of(texts, cased))
def test_hyp_every_text_is_restored(text: str) -> None:
    folded = capitals.fold(text)
    assert folded == plain_fold(text)
    assert capitals.unfold(folded) == text
    tokenizer = capitals.Capitals(TOKENIZER)
    assert tokenizer.decode(tokenizer.encode(text)) == text


TOKENIZER = Tokenizer.train(texts=[capitals.fold(TEXT)], vocab_size=300)


@pytest.mark.parametrize("pattern", ["gpt2", "gpt4", "o200k"])
def test_markers_stay_with_their_words(pattern: str) -> None:
    chunks = split(capitals.fold("The NASA met Émile."), pattern)
    assert chunks == ["Cthe", " Wnasa", " met", " Cémile", "."]


def test_a_word_is_the_same_token_in_every_case() -> None:
    text = "theory Theory THEORY " * 5
    plain = Tokenizer.train(texts=[text], vocab_size=266)
    folded = capitals.Capitals(Tokenizer.train(texts=[capitals.fold(text)], vocab_size=266))
    before, after = evaluate({"plain": plain, "capitals": folded}, texts=[text])
    assert after.tokens < before.tokens
    assert after.vocab_size == 266


def test_the_experiment_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = str(tmp_path / "data.parquet")
    pq.write_table(pa.table({"text": [TEXT] * 20, "language": ["en", "el"] * 10}), data)
    for options in ([], ["--language", "el"]):
        monkeypatch.setattr(sys, "argv", ["capitals.py", data, "--vocab-size", "280", *options])
        capitals.main()
        assert "capitals" in capsys.readouterr().out

"""Coloured tokens: in html, in a terminal, and without colours."""

import re

import pytest
from rich.console import Console

from batchbpe import Tokenizer

TOKENIZER = Tokenizer.train("aaabdaaabac", 259)


def test_encoding_is_a_sequence_of_ids() -> None:
    encoding = TOKENIZER.view("aaab<d>")
    assert list(encoding) == TOKENIZER.encode("aaab<d>")
    assert (len(encoding), encoding[0], encoding[:2]) == (4, 258, [258, 60])
    assert b"".join(encoding.tokens) == b"aaab<d>"


def test_html_shows_the_text_and_nothing_in_it_is_html() -> None:
    html = TOKENIZER.view('<b>&"é')._repr_html_()
    shown = re.findall(r'<span [^>]*title="([^"]*)">([^<]*)</span>', html)
    assert [text for _, text in shown] == ["&lt;", "b", "&gt;", "&amp;", "&quot;", "\\xc3", "\\xa9"]
    assert shown[1][0] == "98: &#x27;b&#x27;"
    assert "7 tokens" in html


def test_show(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    TOKENIZER.show("aaabd")
    assert capsys.readouterr().out == "aaab|d\n"
    monkeypatch.setattr("rich.console.Console", lambda **options: Console(force_terminal=True, **options))
    TOKENIZER.show("aaabd")
    assert "\x1b[" in capsys.readouterr().out

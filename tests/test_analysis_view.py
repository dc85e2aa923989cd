"""Coloured tokens: in html, in a terminal, and without colours; and bars in a notebook."""

import re
import sys
from types import SimpleNamespace

import pytest
from rich.console import Console

from batchbpe import Tokenizer
from batchbpe.progress import _Notebook, bar

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


def test_a_bar_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    place = SimpleNamespace(update=shown.append)
    stub = SimpleNamespace(HTML=str, display=lambda first, display_id: shown.append(first) or place)
    monkeypatch.setitem(sys.modules, "IPython.display", stub)
    monkeypatch.setattr("rich.console.Console", lambda **_: SimpleNamespace(is_jupyter=True))
    monkeypatch.setattr(_Notebook, "every", 0)
    with bar("counting", 10) as update:
        update(5, "<5> MB")
    assert shown[0] == shown[-1] == ""
    assert shown[1].startswith('<progress value="5" max="10"></progress> counting: 50 %, ')
    assert shown[1].endswith("&lt;5&gt; MB")

"""Colored tokens: in html, in a terminal, and without colors; and bars in a notebook."""

import re
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from batchbpe import PATTERNS, Model, Tokenizer
from batchbpe.analysis.display import Encoding
from batchbpe.util.progress import _Notebook, bar

TOKENIZER = Tokenizer.train("aaabdaaabac", 259)


def test_encoding_is_a_sequence_of_ids() -> None:
    encoding = TOKENIZER.view("aaab<d>")
    assert list(encoding) == TOKENIZER.encode("aaab<d>")
    assert (len(encoding), encoding[0], encoding[:2]) == (4, 258, [258, 60])
    assert b"".join(encoding.tokens) == b"aaab<d>"


def test_html_shows_the_text_and_nothing_in_it_is_html() -> None:
    html = TOKENIZER.view('<b>&"é')._repr_html_()
    shown = re.findall(r'<span [^>]*title="([^"]*)">([^<]*)</span>', html)
    assert [text for _, text in shown] == ["&lt;", "b", "&gt;", "&amp;", "&quot;", "é"]
    assert shown[1][0] == "98: &#x27;b&#x27;"
    assert shown[-1][0] == "195 169: &#x27;é&#x27; (2 tokens)"
    assert "7 tokens" in html


def test_line_breaks_are_visible_in_html() -> None:
    """The sign is added to the line break, which still starts a new line, even in a token without other text."""
    tokenizer = Tokenizer(Model(split=r"(?s).+", merges={(10, 10): 256, (59, 10): 257}))
    html = tokenizer.view("a\n\n;\nb")._repr_html_()
    sign = '<span style="[^"]*user-select:none">↵</span>\n'
    shown = re.findall(rf'<span [^>]*title="[^"]*">((?:{sign}|[^<])*)</span>', html)
    assert [re.sub(sign, "↵\n", text) for text in shown] == ["a", "↵\n↵\n", ";↵\n", "b"]


@pytest.mark.parametrize(
    ("ids", "pieces", "plain"),
    [
        # 日本 as tokens that end inside each of the characters.
        ([0xE6, 0x97, 0xA5, 0xE6, 0x9C, 0xAC], [(0xE6, 0x97, 0xA5), (0xE6, 0x9C, 0xAC)], "日₃|本₃"),
        ([97, 0xF0, 0x9F, 0x98, 0x80, 98], [(97,), (0xF0, 0x9F, 0x98, 0x80), (98,)], "a|😀₄|b"),
        # Invalid UTF-8: a byte that cannot start a character, and a character that is cut off.
        ([0xFF, 0xE6, 0x97, 97], [(0xFF,), (0xE6,), (0x97,), (97,)], r"\xff|\xe6|\x97|a"),
        ([0xF0, 0x9F, 0xE6, 0x97, 0xA5], [(0xF0,), (0x9F,), (0xE6, 0x97, 0xA5)], r"\xf0|\x9f|日₃"),
        ([0xE6, 0x97], [(0xE6,), (0x97,)], r"\xe6|\x97"),
        ([], [], ""),
    ],
)
def test_parts_of_characters_are_joined(
    ids: list[int], pieces: list[tuple[int, ...]], plain: str, capsys: pytest.CaptureFixture[str]
) -> None:
    encoding = Encoding(TOKENIZER, ids)
    assert [piece.ids for piece in encoding.pieces] == pieces
    encoding.show()
    assert capsys.readouterr().out == f"{plain}\n"
    assert encoding.tokens == [bytes([token]) for token in ids]


def test_a_token_with_parts_of_two_characters() -> None:
    # The bytes of 日本 are e6 97 a5 e6 9c ac; the token a5 e6 belongs to both characters.
    merges = {(0xA5, 0xE6): 256}
    tokenizer = Tokenizer(Model(split="(?s).+", merges=merges))
    encoding = tokenizer.view("日本語")
    assert [piece.value.decode() for piece in encoding.pieces] == ["日本", "語"]
    assert encoding.pieces[0].ids == (0xE6, 0x97, 256, 0x9C, 0xAC)


@pytest.mark.parametrize("cluster", ["e\u0301", "👩‍👩‍👧", "👍🏽", "🏳️‍🌈", "हि", "\u200d", "👩\u200d", "\u0301"])
def test_marks_and_emoji_sequences_are_joined(cluster: str) -> None:
    encoding = TOKENIZER.view(f"{cluster}<d>")
    assert [piece.value.decode() for piece in encoding.pieces] == [cluster, "<", "d", ">"]
    assert (cluster in encoding._repr_html_()) == (cluster != "\u200d"), "a joiner on its own would be invisible"


def test_right_to_left_text() -> None:
    text = "שלום עולם"
    encoding = Tokenizer.train("a", 256).view(text)
    html = encoding._repr_html_()
    assert 'dir="auto"' in html and "unicode-bidi:plaintext" in html
    assert [piece.value.decode() for piece in encoding.pieces] == list(text)
    # A right-to-left override would reverse the text that follows.
    assert "\\u202e" in Encoding(TOKENIZER, list("\u202ea".encode()))._repr_html_()


def test_special_tokens_are_marked(capsys: pytest.CaptureFixture[str]) -> None:
    tokenizer = Tokenizer.train("aaabdaaabac", 260, special_tokens=["<eot>"])
    encoding = tokenizer.view("ab<eot>d")
    assert list(encoding) == [257, 259, 100]
    assert [piece.special for piece in encoding.pieces] == [False, True, False]
    html = encoding._repr_html_()
    assert "259: &#x27;&lt;eot&gt;&#x27; (special token)" in html and html.count("outline:") == 1
    encoding.show()
    assert capsys.readouterr().out == "ab|<eot>|d\n"


def test_long_tokens_are_shown_completely(capsys: pytest.CaptureFixture[str]) -> None:
    tokenizer = Tokenizer(Model(split=PATTERNS["gpt4"], merges={}, stop_words={b"a" * 100: 256}))
    Encoding(tokenizer, [256, 10]).show()
    assert capsys.readouterr().out == "a" * 100 + "|\\n\n"


@pytest.mark.parametrize("color_system", ["standard", None])
def test_few_colors(color_system: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """In 16 colors, all tokens would have the same background."""
    console = Console(force_terminal=True, color_system=color_system)
    monkeypatch.setattr("rich.console.Console", lambda **options: console)
    TOKENIZER.show("aaabd")
    assert capsys.readouterr().out == "aaab|d\n"


def test_show(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    TOKENIZER.show("aaabd")
    assert capsys.readouterr().out == "aaab|d\n"
    monkeypatch.setattr(
        "rich.console.Console", lambda **options: Console(force_terminal=True, color_system="256", **options)
    )
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
    assert shown[1].startswith('<progress value="5" max="10"></progress> counting: 50%, ')
    assert shown[1].endswith("&lt;5&gt; MB")

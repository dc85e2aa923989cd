"""Comparing how tokenizers cut a text."""

import re
import unicodedata

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from batchbpe import Model, Tokenizer
from batchbpe.analysis.comparison import Comparison
from batchbpe.choices import Normalization
from batchbpe.errors import ArgumentTypeError
from batchbpe.patterns import Split
from batchbpe.viewer.api import encoded

ONE, THREE, BYTES = (Tokenizer.train("aaabdaaabac", size) for size in (257, 259, 256))


def differences(text: str, *tokenizers: Tokenizer) -> list[list[int]]:
    return Comparison({str(place): each for place, each in enumerate(tokenizers)}, text).differences.tolist()


def test_differences() -> None:
    # aa|a|b|d and aaab|d
    assert differences("aaabd", ONE, THREE) == [[0, 4]]
    assert differences("d", ONE, THREE) == differences("", ONE, THREE) == []
    assert differences("aaabdaaab", ONE, THREE) == [[0, 4], [5, 9]]
    assert differences("aaab", ONE) == []
    # ab|a and a|ba share no boundary inside.
    left, right = (Tokenizer(Model(split="(?s).+", merges={pair: 256})) for pair in [(97, 98), (98, 97)])
    assert differences("aba", left, right) == [[0, 3]]
    assert differences("xabay", left, right, BYTES) == [[1, 4]]


@given(st.text("ab \nédæ", max_size=30))
def test_differences_are_where_tokens_differ(text: str) -> None:
    comparison = Comparison({"one": ONE, "three": THREE}, text)
    spans = [set(zip(*(offsets.tolist() for offsets in each), strict=True)) for each in comparison.spans.values()]
    size = len(text.encode())
    different = {place for start, end in comparison.differences.tolist() for place in range(start, end)}
    assert {place for start, end in spans[0] ^ spans[1] for place in range(start, end)} == different
    assert max([0, *different]) <= size


@pytest.mark.filterwarnings("ignore:the pattern does not match")
def test_text_that_a_pattern_drops() -> None:
    words = Tokenizer(Model(split=r"\w+", merges={(97, 98): 256}))
    starts, ends = Comparison({"words": words}, " ab, ab c").spans["words"]
    assert (starts.tolist(), ends.tolist()) == ([1, 5, 8], [3, 7, 9])
    assert differences(" ab, ab c", words, BYTES)[0] == [0, 1]
    html = words.compare("– ab, ab c!", BYTES)._repr_html_()
    shown = re.findall(r'<span style="[^"]*" title="([^"]*)">([^<]*)</span>', html)
    assert "".join(text for _, text in shown) == "– ab, ab c!" * 2
    dropped = [text for title, text in shown if title.endswith("(dropped by the pattern)")]
    assert dropped == ["– ", ", ", " ", "!"] and html.count("line-through") == 4


@pytest.mark.filterwarnings("ignore:the pattern does not match")
def test_equal_text_before_a_token_is_not_mistaken_for_it() -> None:
    prices = Tokenizer(Model(split=r"\d+(?=€)", merges={}, special_tokens={"<e>": 256}))
    starts, ends = Comparison({"prices": prices}, "5 5€ <e>5<e>5€<e>").spans["prices"]
    assert (starts.tolist(), ends.tolist()) == ([2, 7, 11, 14, 18], [3, 10, 14, 15, 21])
    shown = re.findall(r">([^<]*)</span>", prices.compare("5 5€")._repr_html_())
    assert shown == ["5 ", "5", "€"]
    assert differences("5 5€", prices, BYTES)[0] == [0, 2]


@pytest.mark.filterwarnings("ignore:the pattern does not match")
@given(st.sampled_from([r"\d+(?=€)", r"\w+", "a(?!b)", "(?<=b)[a5 ]+"]), st.text("ab5 €\n", max_size=30))
def test_tokens_are_where_the_pattern_matches(pattern: str, text: str) -> None:
    tokenizer = Tokenizer(Model(split=pattern, merges={(97, 98): 256, (53, 53): 257}))
    comparison = Comparison({"one": tokenizer}, text)
    starts, ends = comparison.spans["one"]
    matched = [place for match in regex.finditer(pattern, text) for place in range(*match.span())]
    characters = [range(len(text[:place].encode()), len(text[: place + 1].encode())) for place in matched]
    covered = [place for start, end in zip(starts.tolist(), ends.tolist(), strict=True) for place in range(start, end)]
    assert covered == [byte for character in characters for byte in character]
    tokens = [comparison.bytes[start:end] for start, end in zip(starts, ends, strict=True)]
    assert tokens == [tokenizer.vocab[token] for token in comparison.ids["one"].tolist()]


def test_one_token() -> None:
    comparison = THREE.compare("aaab")
    assert repr(comparison) == "Comparison(batchbpe=1 token)"
    assert "1 token ·" in comparison._repr_html_()
    assert "0 tokens</div>" in THREE.compare("")._repr_html_()


def test_lone_surrogates() -> None:
    assert Comparison({"one": ONE}, "a\ud800", errors="replace").text == "a\ufffd"
    with pytest.raises(ValueError, match="lone surrogate"):
        ONE.compare("a\ud800", THREE)


def test_in_a_notebook() -> None:
    comparison = ONE.compare("aaab <d>", THREE)
    html = comparison._repr_html_()
    assert re.findall(r"<b>(.*?)</b> · (\d+) tokens", html) == [("batchbpe", "7"), ("batchbpe (2)", "5")]
    marked = re.findall(r'<span style="[^"]*inset 0 -3px[^"]*" title="[^"]*">([^<]*)</span>', html)
    assert marked == ["aa", "a", "b", "aaab"]
    assert "<d>" not in html and "&lt;" in html
    assert "&lt;b&gt;" in Comparison({"<b>": ONE}, "a")._repr_html_()


def test_others_must_be_tokenizers() -> None:
    with pytest.raises(ArgumentTypeError, match=r"others must be tokenizers, got 'a\.model'; see Tokenizer\.from_file"):
        ONE.compare("a", "a.model")  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match="text must be a string, got 5"):
        ONE.compare(5, THREE)  # type: ignore[arg-type]


def test_normalized_text() -> None:
    """Offsets are those of the text that was given, in which é is two characters."""
    splits = {
        "NFC": (Split.of("gpt2", "NFC"), [(0, 3), (3, 3), (3, 4)]),
        "NFD": (Split.of("gpt2", "NFD"), [(0, 1), (1, 2), (2, 3), (3, 4)]),
        "prefix": (Split("[a-z]+", prefix_space=True), [(0, 1), (3, 4)]),
        "both": (Split(r"[\s\S]+", normalization="NFC", prefix_space=True), [(0, 0), (0, 3), (3, 3), (3, 4)]),
    }
    tokenizers = {name: Tokenizer(Model(split, merges={})) for name, (split, _) in splits.items()}
    with pytest.warns(UserWarning, match="the pattern does not match 3 bytes"):
        comparison = Comparison(tokenizers, "e\u0301x")
    for name, (_, expected) in splits.items():
        starts, ends = comparison.spans[name]
        assert [*zip(starts.tolist(), ends.tolist(), strict=True)] == expected
    assert comparison.differences.tolist() == [[0, 3]]
    assert "e\u0301" in comparison._repr_html_()
    assert [each["ends"] for each in encoded(comparison)["models"]] == [[2, 2, 3], [1, ~2, 2, 3], [1, 3], [0, 2, 2, 3]]


@given(st.text("aé\u0301ﬁ가\u1100\u1161 \n²", max_size=12), st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]))
def test_hyp_normalized_text(text: str, form: Normalization) -> None:
    comparison = Comparison({"": Tokenizer(Model(Split.of("gpt2", form), merges={}))}, text)
    starts, ends = comparison.spans[""]
    normalized = unicodedata.normalize(form, text).encode()
    assert (starts[1:] == ends[:-1]).all() and (starts <= ends).all() and len(starts) == len(normalized)
    for index, end in enumerate(ends.tolist()):
        before = comparison.bytes[:end].decode("utf-8", "ignore")
        assert unicodedata.normalize(form, before).encode().startswith(normalized[: index + 1]) or end > starts[index]

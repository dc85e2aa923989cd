"""Splitting equals the `regex` package: on every Unicode character, on random text, and on real text."""

import unicodedata
from functools import cache

import pytest
import regex
from helpers import changed_characters, every_character, texts, without_changed
from hypothesis import given
from hypothesis import strategies as st

from batchbpe import PATTERNS, ChunkCounts, split

NAMES = sorted(PATTERNS)

# The core's tables are from Unicode 16.0. Letters, marks and numbers added since, by version:
UNICODE_17 = """
    88F C5C CDC 1ACF-1ADD 1AE0-1AEB A7CE-A7CF A7D2 A7D4 A7F1 10940-10959 10EC5-10EC7 10EFA-10EFB 11B60-11B67
    11DB0-11DDB 11DE0-11DE9 16EA0-16EB8 16EBB-16ED3 16FF2-16FF6 187F8-187FF 18D09-18D1E 18D80-18DF2
    1E6C0-1E6DE 1E6E0-1E6F5 1E6FE-1E6FF 2B73A-2B73F 2CEA2-2CEAD 323B0-33479
"""
UNICODE_18 = """
    558 58B-58C 5C8-5C9 B53-B54 1ADE-1ADF 1AEC-1AF0 208F 209D-209F A7DD A7E2 AB6C-AB6D 107BB-107BF 10ECB-10ECF
    10ED9-10EEE 10EF0-10EF9 11B0A 11DF0-11DF1 1246F 12475-1247F 12550-12686 18CD6-18CDA 18D1F-18D20 18E00-19191
    191A0-191D2 1B123-1B128 1B168 1D127-1D128 1D250-1D252 1D25B-1D25C 1D25F 1D280-1D281 1D6A6 1DF1F-1DF24
    1DF2B-1DF81 1DF90-1DF96 1DFCD-1DFFF 2B81E 3D000-3FC3F
"""
RECLASSIFIED = {"\u0295"}  # Ll until 16.0, Lo since 17.0


def characters(ranges: str) -> set[str]:
    found: set[str] = set()
    for part in ranges.split():
        first, _, last = part.partition("-")
        found |= set(map(chr, range(int(first, 16), int(last or first, 16) + 1)))
    return found


def findall(pattern: str, text: str) -> list[str]:
    return [match.group() for match in regex.finditer(pattern, text) if match.group()]


def assert_same(name: str, text: str) -> None:
    ours, theirs = split(text, name), regex.findall(PATTERNS[name], text)
    if ours != theirs:
        place = next(i for i, pair in enumerate(zip(ours, theirs, strict=False)) if pair[0] != pair[1])
        near = slice(max(place - 3, 0), place + 3)
        pytest.fail(f"{name}: {ours[near]!a} is not {theirs[near]!a}")


def test_unicode_versions_differ_only_in_newer_characters() -> None:
    unassigned = set("".join(split(every_character(), r"\p{Cn}+")))
    listed = characters(UNICODE_17) | characters(UNICODE_18)
    assert listed <= unassigned, "the core's tables are newer than 16.0: shorten these lists"
    assert changed_characters() - listed <= unassigned | RECLASSIFIED


@pytest.mark.parametrize("name", NAMES)
def test_every_character(name: str) -> None:
    assert_same(name, without_changed(every_character()))
    # Planes 4 to 13 are unassigned, and 15 and 16 are for private use.
    assigned = without_changed("".join(map(chr, (*range(0xD800), *range(0xE000, 0x40000), *range(0xE0000, 0xE1000)))))
    assert_same(name, "".join(map("a{0}b {0}A'{0}{0}\n".format, assigned)))


CONTEXTS = [
    *("{}", "{}a", " {}", "  {}", "{} ", "{}\n", "\n{}", "\r\n{}", "{}\r\n", " {} ", "\n {} \n", "\t{}\t", "\xa0{}"),
    *("A{}", "{}A", "A{}a", "a{}A", "aA{}a", "1{}", "{}1", "12{}34", "'{}", "{}'s", "'s{}", "'l{}", "'{}l", "a'{}"),
    *("!{}", "{}!", "!{}!", "/{}", "{}/", "{}\u0301", "\u0301{}", "\u200d{}", "語{}", "ſ{}", "ǅ{}", "ʰ{}a", "'S{}"),
]


@cache
def representatives() -> list[str]:
    """All of ASCII and all whitespace, and up to 100 characters of each category."""
    categories: dict[str, list[str]] = {}
    for character in without_changed(every_character()):
        categories.setdefault(unicodedata.category(character), []).append(character)
    found = [*map(chr, range(128)), *filter(str.isspace, every_character())]
    for characters in categories.values():
        found += characters[:: max(len(characters) // 100, 1)]
    return found


@pytest.mark.parametrize("name", NAMES)
def test_characters_in_many_contexts(name: str) -> None:
    for context in CONTEXTS:
        assert_same(name, "".join(map(context.format, representatives())))
        assert_same(name, "x".join(map(context.format, representatives())))


@given(text=texts)
@pytest.mark.parametrize("name", NAMES)
def test_hyp_named_pattern(name: str, text: str) -> None:
    assert split(text, name) == split(text, PATTERNS[name]) == findall(PATTERNS[name], text)
    assert "".join(split(text, name)) == text


@given(text=st.text("sStTdDmMlLvVrReEſ'’ a\n", max_size=30))
@pytest.mark.parametrize("name", NAMES)
def test_hyp_contractions(name: str, text: str) -> None:
    assert split(text, name) == findall(PATTERNS[name], text)


@pytest.mark.parametrize("name", NAMES)
def test_real_text(name: str, library: list[str]) -> None:
    assert_same(name, "".join(library[::4]))


def test_text_longer_than_a_block() -> None:
    for run in ("a", " ", "\n", "=", "7", "é", "ab ", "\r\n", " \n", "語。"):
        for name in NAMES:
            # `regex` takes quadratic time to look ahead to the end of a number.
            times = 1000 if (run, name) == ("7", "command-a") else 100_000
            assert_same(name, "x" + run * times + "y")


CUSTOM = [
    *(r" ?\w+|\W", r"(?s).+", r"\S+|\s+", r"\s*\S+", r"(?i)[a-z]+|.", r"(?:ab|a)b*?|\s++", r"(?<=\s)\w+", r"\w+(?!\w)"),
    *(r"(a)(b)?", r"x*", r"x*|\S", r"\b", r"(\w)\1", r"^\w+|\d", r"\p{Lu}\p{Ll}+", r"[^\W\d_]+"),
]


@given(text=texts)
@pytest.mark.parametrize("pattern", CUSTOM)
def test_hyp_custom_pattern(pattern: str, text: str) -> None:
    # Engines differ on what \w matches beyond letters, marks and numbers, and on ^ in the middle of a search.
    text = "".join(c for c in text if c.isascii() or c.isalpha())
    assert split(text, pattern) == findall(pattern, text)


def test_dropped_text_causes_one_warning() -> None:
    with pytest.warns(UserWarning) as warned:
        counts = ChunkCounts.count(["drop é all, this", "and-that"], r"[a-z]+")
    assert dict(counts) == {"all": 1, "and": 1, "drop": 1, "that": 1, "this": 1}
    assert len(warned) == 1
    message = str(warned[0].message)
    assert message.startswith("the pattern '[a-z]+' does not match 7 bytes of the text; decoding"), message
    assert "decoding will not restore them" in message
    assert warned[0].filename == __file__


def test_one_byte_is_dropped() -> None:
    with pytest.warns(UserWarning, match="does not match 1 byte of the text; decoding"):
        ChunkCounts.count("a b", "[a-z]+")


def test_no_warning_if_nothing_is_dropped() -> None:
    assert ChunkCounts.count("all of it", r"\w+|\W").total == 5


@pytest.mark.parametrize(
    ("pattern", "cause"),
    [
        ("(", "; at position 1: opening parenthesis without closing parenthesis"),
        ("[a", "; at position 2: invalid character class"),
        (r"a|\p{L}|\p{Nonsense}", r"; unknown Unicode class \p{Nonsense}"),
        (r"\pL|\pX", r"; unknown Unicode class \pX"),
        (r"\8", "; invalid back reference to group 8"),
        ("[z-a]", ""),
        ("*", "; at position 0: target of repeat operator is invalid"),
    ],
)
def test_invalid_pattern(pattern: str, cause: str) -> None:
    for use in (lambda: split("text", pattern), lambda: ChunkCounts.count(["text"], pattern)):
        with pytest.raises(ValueError) as caught:
            use()
        assert str(caught.value) == f"pattern must be a supported regular expression, got {pattern!r}{cause}"


def test_empty_pattern() -> None:
    with pytest.raises(ValueError, match=r"^pattern must not be empty, got ''$"):
        split("text", "")


def test_catastrophic_pattern() -> None:
    for use in (split, ChunkCounts.count):
        with pytest.raises(ValueError, match=r"could not be matched at byte 0 of a text of 5000 bytes.*possessive"):
            use("a" * 4999 + "b", r"(?:a+)+(?=b)(?!b)")


def test_pattern_of_wrong_type() -> None:
    with pytest.raises(TypeError, match=r"pattern must be a regular expression or one of gpt2, .*, got 3"):
        split("text", 3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="text must be a string, got b'text'; decode it first"):
        split(b"text")  # type: ignore[arg-type]


def test_lone_surrogate() -> None:
    with pytest.raises(UnicodeEncodeError, match="surrogate"):
        split("a\ud800")

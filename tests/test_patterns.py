"""Patterns: every engine gives the chunks of the `regex` package, and `explain` says which engine runs a pattern."""

import os
from pathlib import Path

import pytest
import regex
from helpers import texts
from hypothesis import given, settings
from hypothesis import strategies as st

from batchbpe import PATTERNS, ChunkCounts, _core, split
from batchbpe.patterns import explain

ENGINES = ("scanner", "automaton", "backtracking")
EXAMPLES = int(os.environ.get("BATCHBPE_FUZZ_PATTERNS", "400"))

CLASSES = st.sampled_from(
    [
        *(r"\p{L}", r"\p{Lu}", r"\p{Ll}", r"[\p{L}\p{M}]", r"\p{N}", r"\p{P}", r"\s", r"\S", r"[\r\n]", r"[\r\n/]"),
        *(r"[^\s\p{L}\p{N}]", r"[^\r\n\p{L}\p{N}]", "[a-z]", "[^a]", " ", "'", "a", "s", r"\.", "."),
    ]
)
ATOMS = st.one_of(
    CLASSES,
    CLASSES,
    st.tuples(CLASSES, CLASSES).map("(?!{0[0]}){0[1]}".format),
    st.sampled_from(["(?i:'s|'re)", "(?:ab|a)", "(?:a|ab)", r"(?:\s\S)", "(?>ab|a)"]),
)
QUANTIFIERS = st.sampled_from(["", "", "?", "*", "+", "+", "{1,3}", "{2}", "+?", "??", "?+", "*+", "++"])
ENDS = st.one_of(*[st.just("")] * 4, CLASSES.map("(?!{})".format), CLASSES.map("(?={})".format))


def pieces(atoms: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(st.tuples(atoms, QUANTIFIERS).map("".join), min_size=1, max_size=3).map("".join)


GROUPS = st.lists(pieces(ATOMS), min_size=1, max_size=2).map("|".join).map("(?:{})".format)
ALTERNATIVES = st.one_of(
    st.tuples(pieces(ATOMS), ENDS).map("".join),
    st.tuples(GROUPS, st.sampled_from(["", "?", "{1,2}"]), pieces(ATOMS)).map("".join),
    st.sampled_from([r"\s+(?!\S)", r"\s++(?!\S)", r"\s*[\r\n]+", r"\s+", r"\s", r"\s{2,}(?!\S)", r"\s++\Z", r".+\Z"]),
)
REGULAR = st.lists(ALTERNATIVES, min_size=1, max_size=5).map("|".join)

FEW_CLASSES = st.sampled_from(["a", "b", "a", "b", " ", "'", "É", r"\s", r"\S", r"\p{L}", r"\d", "[ab]", "[^a]", "."])
ANY_QUANTIFIER = st.one_of(
    st.just(""),
    st.tuples(
        st.sampled_from(["?", "*", "+", "{0,2}", "{2}", "{1,3}", "{2,}"]), st.sampled_from(["", "", "?", "+"])
    ).map("".join),
)


def nested(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Return patterns with groups of other patterns: repeated, atomic or looking around, any of which can be empty."""
    piece = st.one_of(
        st.tuples(FEW_CLASSES, ANY_QUANTIFIER).map("".join),
        st.tuples(st.sampled_from(["(?:", "(?:", "(?>"]), inner, st.just(")"), ANY_QUANTIFIER).map("".join),
        st.tuples(st.sampled_from(["(?=", "(?!", "(?<=", "(?<!"]), inner, st.just(")")).map("".join),
        st.sampled_from([r"\b", r"\B", "^", r"\Z", "(?m:^)", "(?m:$)"]),
    )
    sequence = st.lists(piece, min_size=1, max_size=3).map("".join)
    return st.lists(sequence, min_size=1, max_size=3).map("|".join)


IRREGULAR = st.recursive(st.tuples(FEW_CLASSES, ANY_QUANTIFIER).map("".join), nested, max_leaves=8)
FEW = st.text("aab b'.1\nÉ ", max_size=16)


def chunks(pattern: str, text: str, engine: str | None) -> list[str]:
    return _core.split_text(pattern.replace(r"\Z", r"\z"), text, engine)


def engines(pattern: str) -> list[str]:
    """Return the engines that can run a pattern."""
    found = []
    for engine in ENGINES:
        try:
            chunks(pattern, "", engine)
        except ValueError:
            continue
        found.append(engine)
    return found


def assert_same_chunks(pattern: str, text: str) -> None:
    """Compare all engines that can run the pattern with `regex`."""
    try:
        expected = [match.group() for match in regex.finditer(pattern, text, timeout=1) if match.group()]
    except TimeoutError:
        return
    for engine in (None, *ENGINES):
        try:
            found = chunks(pattern, text, engine)
        except _core.PatternError as error:
            # `regex` remembers where repetitions failed. Here, a search is stopped if it backtracks too often.
            assert engine in (None, "backtracking") and "it backtracks too often" in str(error)
        except ValueError as error:
            # What is always empty cannot be repeated, as in (?:(?=a))*.
            faster = engine in ("scanner", "automaton") and f"not for the {engine} engine" in str(error)
            assert faster or "Target of repeat operator is invalid" in str(error)
        else:
            assert found == expected, engine


@settings(max_examples=EXAMPLES)
@given(pattern=REGULAR, text=texts.map(lambda text: text[:80]))
def test_hyp_random_patterns(pattern: str, text: str) -> None:
    assert_same_chunks(pattern, text)


@settings(max_examples=EXAMPLES)
@given(pattern=IRREGULAR, text=FEW)
def test_hyp_random_irregular_patterns(pattern: str, text: str) -> None:
    assert_same_chunks(pattern, text)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"\b\p{L}+'?\p{L}+", "a ab don't"),
        (r"\d+\.?\d+(?!\w+)", "1 12 1.2 34a"),
        ("a*b??a*(?<=a)", "aba"),
        (r"(?:b?|\s)*", "b "),
        ("(?:[^a]*|a){0,3}", "bab"),
        (r"(?:a?\B|.{1,2}){1,2}", "abcd a"),
        (r"(?:a{0,2}\Z|b{2,}a{1,3}?)\S*", "bb ba"),
        ("((a|b)*)(?<!a)", "abab"),
        (r"(?<=a++a)b|(\w)\1", "aabcc"),
    ],
)
def test_all_engines_give_the_same_chunks(pattern: str, text: str) -> None:
    assert_same_chunks(pattern, text)


HAN_OR_KANA = r"[一-龥぀-ゟ゠-ヿ]+"
DEEPSEEK = (
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
KIMI_UPPER, KIMI_LOWER = (rf"[{case}\p{{Lm}}\p{{Lo}}\p{{M}}&&[^\p{{Han}}]]" for case in (r"\p{Lu}\p{Lt}", r"\p{Ll}"))
KIMI = "|".join(
    [
        r"[\p{Han}]+",
        rf"[^\r\n\p{{L}}\p{{N}}]?{KIMI_UPPER}*{KIMI_LOWER}+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        rf"[^\r\n\p{{L}}\p{{N}}]?{KIMI_UPPER}+{KIMI_LOWER}*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ]
)

MIXED = st.lists(
    st.one_of(
        texts,
        st.text("aAé 1٣¾\t\n\r!'\"。・ー゠\u3099\u309b東京タワーひ\u3040\u200b\u0301\x00\x7f\ue000$€/#", max_size=30),
    ),
    max_size=3,
).map("".join)


@settings(max_examples=500)
@given(text=MIXED)
def test_hyp_patterns_of_several_steps(text: str) -> None:
    """The patterns that are one regular expression here equal the steps of the models' own tokenizers."""
    from tokenizers import Regex, pre_tokenizers

    def isolated(pattern: str) -> pre_tokenizers.Split:
        return pre_tokenizers.Split(Regex(pattern), "isolated")

    def pieces(*steps: pre_tokenizers.PreTokenizer) -> list[str]:
        return [text[start:end] for _, (start, end) in pre_tokenizers.Sequence(list(steps)).pre_tokenize_str(text)]

    assert split(text, "deepseek") == pieces(isolated(r"\p{N}{1,3}"), isolated(HAN_OR_KANA), isolated(DEEPSEEK))
    gpt2 = isolated(PATTERNS["gpt2"])  # what ByteLevel does, which would also change the offsets
    assert split(text, "starcoder") == pieces(pre_tokenizers.Digits(individual_digits=True), gpt2)


@given(text=MIXED)
def test_hyp_kimi(text: str) -> None:
    expected = chunks(KIMI, text, "backtracking")
    assert split(text, "kimi") == split(text, KIMI) == expected
    assert explain(KIMI).engine == "automaton"


@given(text=texts)
@pytest.mark.parametrize("name", PATTERNS)
def test_hyp_engines_agree_on_named_patterns(name: str, text: str) -> None:
    able = engines(PATTERNS[name])
    assert set(able) >= {"automaton", "backtracking"}
    expected = split(text, name)
    for engine in able:
        assert chunks(PATTERNS[name], text, engine) == expected, engine


@pytest.mark.parametrize(
    ("pattern", "engine", "reason"),
    [
        (
            "qwen2",
            "scanner",
            "contractions in any case, words of letters with the character before them, single digits",
        ),
        ("kimi", "automaton", "it is not of the GPT family"),
        (r" ?[\p{L}]{1,}|\s+|.", "automaton", "it is not of the GPT family"),
        (r"(?!a)(?!b)\p{L}+|.", "automaton", "it is not of the GPT family"),
        ("|".join(rf"\s{{{n}}}(?!\S)" for n in range(1, 10)), "backtracking", "it has too many look-aheads"),
        (r"(?<=a)b|.", "backtracking", "it has a look-behind"),
        (r"(\w)\1|.", "backtracking", "it has a back-reference"),
        (r"\bfoo|.", "backtracking", "it has an anchor or a word boundary"),
        (r"a(?!bc)|.", "backtracking", "it has a look-ahead at more than one character"),
        (r"ab(?!c)|.", "backtracking", "it has a look-ahead after something other than one repeated class"),
        (
            r"a+(?![ab])|.",
            "backtracking",
            "it has a look-ahead for characters that the repetition before it also match",
        ),
        (r"a++ab|.", "backtracking", "it has a possessive repetition or an atomic group"),
        (r"a*|b", "backtracking", "it has an alternative that can be empty"),
        (r"a+b", "backtracking", "it has an alternative that can fail after any number of characters"),
        (r"(?:a*)+b|.", "backtracking", "it has a repetition of something that can be empty"),
        (r"(?:[ab]{1,200}c){1,200}|.", "backtracking", "it has repetitions that would need too large an automaton"),
        (r"(?:a{1000}){1000}|.", "backtracking", "it has repetitions that would need too large an automaton"),
    ],
)
def test_explain(pattern: str, engine: str, reason: str) -> None:
    explanation = explain(pattern)
    assert explanation.engine == engine
    assert explanation.reason.startswith(reason)


def test_explain_refuses_what_is_not_a_pattern() -> None:
    with pytest.raises(ValueError, match=r"pattern must be a supported regular expression, got '\('; at position 1"):
        explain("(")
    with pytest.raises(ValueError, match="pattern must not be empty"):
        explain("")
    with pytest.raises(ValueError, match=r"got 'a\{2,1\}\(\?!b\)'; its minimum is larger than its maximum"):
        explain("a{2,1}(?!b)")
    with pytest.raises(ValueError, match=r"got .*; it is too large"):
        explain(r"\p{L}" * 1000)
    with pytest.raises(ValueError, match=r"got .*; it has a subroutine call, which is not supported"):
        explain(r"(a\g<1>?)")
    with pytest.raises(ValueError, match=r"must be a regular expression or one of .*, got 'kimi '"):
        explain("kimi ")
    with pytest.raises(ValueError, match=r"must be a regular expression or one of .*, got 'o200k-4digits'"):
        explain("o200k-4digits")


@pytest.mark.parametrize("pattern", ["kimi", "deepseek", "starcoder", r"\w+|\s+|.", r"[^\n]+|\n+"])
def test_long_texts_are_cut_and_counted_in_parallel(pattern: str, library: list[str]) -> None:
    text = "".join(library)[:6_000_000]
    assert ChunkCounts.count(text, pattern, threads=3) == ChunkCounts.count(text, pattern, threads=1)


def test_the_page_shows_the_chunks() -> None:
    page = (Path(__file__).parent.parent / "docs" / "patterns.md").read_text(encoding="utf-8")
    shown = {}
    for line in page.partition("```text\n")[2].partition("```")[0].splitlines():
        names, _, line_chunks = line.partition(": ")
        shown |= dict.fromkeys(names.split(", "), line_chunks.replace("␣", " ").replace("↵", "\n").split(" · "))
    assert shown == {name: split("".join(shown["gpt2"]), name) for name in PATTERNS}

"""Patterns: every engine gives the chunks of the `regex` package, and `explain` says which engine runs a pattern."""

import os
from pathlib import Path

import pytest
import regex
from helpers import texts
from hypothesis import given, settings
from hypothesis import strategies as st

from batchbpe import PATTERNS, ChunkCounts, _core, split
from batchbpe.errors import DataError
from batchbpe.formats.chains import CHAINS, DIGITS, known
from batchbpe.formats.portability import check_portable
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
        st.text("123²Ⅷ٣_a  .\n,\U00011de0\U00016ff6", max_size=30),
        st.text("aAé 1٣¾\t\n\r!'\"。・ー゠\u3099\u309b東京タワーひ\u3040\u200b\u0301\x00\x7f\ue000$€/#", max_size=30),
    ),
    max_size=3,
).map("".join)


@settings(max_examples=500)
@given(text=MIXED)
@pytest.mark.parametrize("name", CHAINS)
def test_hyp_patterns_of_several_steps(name: str, text: str) -> None:
    """The patterns that are one regular expression here equal the steps of the models' own tokenizers."""
    from tokenizers import Regex, pre_tokenizers

    steps = [pre_tokenizers.Split(Regex(step), "isolated") for step in CHAINS[name]]
    if CHAINS[name][0] == DIGITS:
        steps[0] = pre_tokenizers.Digits(individual_digits=True)
    pieces = pre_tokenizers.Sequence(steps).pre_tokenize_str(text)
    assert split(text, name) == [text[start:end] for _, (start, end) in pieces]


ITEMS = st.sampled_from(["a", "b-d", r"\s", r"\p{L}", r"\p{Han}", r"\p{M}", "1", "(", ".", "、"])
SETS = st.recursive(
    st.lists(ITEMS, min_size=1, max_size=3).map("".join),
    lambda inner: st.tuples(inner, st.sampled_from(["", "&&"]), st.sampled_from(["[", "[^"]), inner).map(
        "{0[0]}{0[1]}{0[2]}{0[3]}]".format
    ),
    max_leaves=4,
)


@settings(max_examples=EXAMPLES)
@given(content=SETS, start=st.sampled_from(["[", "[^"]), text=MIXED)
def test_hyp_set_operations(content: str, start: str, text: str) -> None:
    """Sets are nested and intersected as in Oniguruma."""
    from tokenizers import Regex, pre_tokenizers

    pattern = f"{start}{content}]+"
    matches = pre_tokenizers.Split(Regex(pattern), "removed", invert=True).pre_tokenize_str(text)
    assert chunks(pattern, text, None) == [text[start:end] for _, (start, end) in matches]
    check_portable(pattern, "Oniguruma")


@pytest.mark.parametrize("tool", ["minbpe", "Oniguruma"])
@pytest.mark.parametrize("pattern", [r" ?[^\s\p{L}]{2,}|[\s\S]", r" ?\p{L}{2,}|[\s\S]", r" ?\n{2,}|[\s\S]"])
def test_a_repeated_set_after_a_repetition_is_portable(pattern: str, tool: str) -> None:
    check_portable(pattern, tool)
    with pytest.raises(DataError, match="a repetition of a repetition"):
        check_portable(pattern.replace("{2,}", "{2,}{3}"), tool)


@given(text=MIXED)
def test_hyp_kimi(text: str) -> None:
    assert split(text, "kimi") == chunks(KIMI, text, "backtracking")
    assert explain(KIMI).engine == "scanner"


@given(text=texts)
@pytest.mark.parametrize("name", PATTERNS)
def test_hyp_engines_agree_on_named_patterns(name: str, text: str) -> None:
    able = engines(PATTERNS[name])
    assert set(able) >= {"scanner" if name == "command-a" else "automaton", "backtracking"}
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
        ("kimi", "scanner", "words that end where lower case changes to upper case with the character before them"),
        ("command-a", "scanner", "words that end where lower case changes to upper case with the character before"),
        ("bloom", "automaton", "it is not of the GPT family"),
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


@pytest.mark.parametrize("pattern", ["kimi", "deepseek", "bloom", "command-a", r"\w+|\s+|.", r"[^\n]+|\n+"])
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


SPELLINGS = [
    # Literal CR and LF, cases spelled out, and other ways to repeat.
    ("qwen2", PATTERNS["qwen2"].replace(r"\r\n", "\r\n")),
    ("llama3", PATTERNS["llama3"]),
    ("gpt4", PATTERNS["llama3"].replace("(?i:'s|'t|'re|'ve|'m|'ll|'d)", "'(?:[sSdDmMtTſ]|[lL][lL]|[vV][eE]|[rR][eE])")),
    ("gpt4", PATTERNS["llama3"].replace(r"[\r\n]+", r"[\n\r]").replace(r"|\s+(?!\S)|\s+", r"|\s+(?!\S)|\s")),
    ("gpt4", PATTERNS["llama3"].replace("{1,3}", "{1,3}+").replace(r"\p{L}+", r"\p{L}++")),
    ("tekken", PATTERNS["tekken"].replace(r"\p{N}|", r"[\p{N}]|")),
    ("kimi", KIMI),
    ("kimi", KIMI.replace(r"[^\p{Han}]", r"\P{Han}")),
    ("deepseek", PATTERNS["deepseek"].replace("[A-Za-z]+", "[a-zA-Z]++")),
    ("deepseek", PATTERNS["deepseek"].replace("[!-/:-@", "(?:[!-/]|[:-@").replace("`{-~]", "`{-~])")),
    ("bloom", PATTERNS["bloom"].replace("(?! )", "(?=[^ ])")),
    # Differences that matter.
    (None, PATTERNS["llama3"].replace("(?i:", "(?i:'x|")),
    (None, PATTERNS["llama3"].replace(r"\s+(?!\S)|", "")),
    (None, PATTERNS["deepseek"].replace("[A-Za-z]+", "[a-zA-Y]+")),
    (None, PATTERNS["deepseek"].replace("{1,3}", "{1,4}")),
    (None, KIMI.replace(r"[\p{Han}]+", r"[\p{Han}]")),
]


@pytest.mark.parametrize(("name", "pattern"), SPELLINGS)
def test_a_pattern_is_recognized_by_what_it_means(name: str | None, pattern: str) -> None:
    assert _core.canonical_pattern(pattern) == name
    if name:
        assert _core.same_chunks(pattern, PATTERNS[name]) and _core.same_chunks(PATTERNS[name], pattern)


@settings(max_examples=EXAMPLES)
@given(one=REGULAR, other=REGULAR, text=texts.map(lambda text: text[:80]))
def test_hyp_patterns_that_are_the_same_have_the_same_chunks(one: str, other: str, text: str) -> None:
    one, other = one.replace(r"\Z", r"\z"), other.replace(r"\Z", r"\z")
    assert _core.same_chunks(one, f"(?:{one})")
    for spelled in (other, f"{one}|{other}", one.replace("++", "+").replace("?+", "?")):
        if _core.same_chunks(one, spelled):
            assert chunks(one, text, None) == chunks(spelled, text, None)


@pytest.mark.parametrize("name", CHAINS)
def test_chains_are_known(name: str) -> None:
    assert (
        known([(step.replace(r"\r\n", "\r\n"), "Isolated", invert) for invert, step in enumerate(CHAINS[name])]) == name
    )
    assert known([(step, "MergedWithNext", False) for step in CHAINS[name]]) is None


def test_steps_that_are_not_known() -> None:
    assert known([]) is None
    assert known([(PATTERNS["gpt2"], "Isolated", False)] * 2) is None
    assert known([(CHAINS["bloom"][0], "Removed", True)]) is None, "it drops the text between matches"
    assert known([("(", "Isolated", False)]) is None
    # To Oniguruma, a counted repetition is not possessive, and $ is the end of a line.
    assert known([(PATTERNS["cl100k"], "Isolated", False)]) is None
    assert known([(PATTERNS["cl100k"].replace("{1,3}+", "{1,3}").replace("$", r"\z"), "Isolated", True)]) == "cl100k"

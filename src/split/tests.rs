//! Compares each scanner with `fancy_regex` running the same pattern, on strings of characters that the patterns treat
//! differently.

use std::sync::LazyLock;

use proptest::collection::vec;
use proptest::prelude::*;

use super::family::{COMMAND_A, PUBLISHED};
use super::program::Program;
use super::scanners::Given;
use super::*;
use crate::error::{Error, NEVER};

#[rustfmt::skip]
const ALPHABET: [&str; 49] = [
    " ", " ", "\n", "\r", "\t", "'", "s", "S", "l", "L", "r", "R", "e", "v", "V", "d", "M", "t",
    "a", "A", "1", ".", "/", "\0", "\x1f", "\x7f", "12", "'ll", "'S", "word",
    "ſ", "٣", "²", "é", "É", "ǅ", "ʰ", "中", "\u{301}", "\u{903}", "\u{a0}",
    "\u{85}", "\u{3000}", "\u{200d}", "😀", "Ⅷ", "〇", "ー", "。",
];
/// The number of entries at the start of `ALPHABET` that are ASCII.
const ASCII: usize = 30;

/// Other spellings of named patterns, and other members of the GPT family.
const RELATIVES: [&str; 14] = [
    // Kimi's pattern as it is published.
    r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    // Whitespace before numbers is one chunk, with newlines.
    r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,2}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?![^\s\p{N}])|\s+",
    // The original GPT-2 pattern, and the same without its redundant brackets.
    r"'s|'t|'re|'ve|'m|'ll|'d| ?[\p{L}]+| ?[\p{N}]+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    // r50k and p50k in tiktoken.
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s",
    // No contractions.
    r" ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    // Words with marks, numbers of one digit, contractions in lower case, and marks that are or are not symbols.
    r"'(?:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r" ?[\p{L}\p{M}]+|\p{N}{1,2}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n/]*|\s*[\r\n]|\s+(?!\S)|\s",
    // Words without a prefix, and words with contractions.
    r"\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    r"[^\r\n\p{L}\p{N}]?\p{L}+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+(?!\S)|\s+",
    r" ?\p{L}+(?:'(?:[sdmt]|ll|ve|re))?+|\p{N}{1,2}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s++$|\s*[\r\n]+|\s+(?!\S)|\s",
    // Words by case, with a space, and no slashes after symbols.
    r"'(?i:[sdmt]|ll|ve|re)| ?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+| ?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
];

/// Generates fewer than `len` entries of the alphabet. They are drawn from a few of its first `size` entries, so that
/// runs and repetitions occur.
fn text(len: usize, size: usize) -> impl Strategy<Value = String> {
    vec(0..size, 2..11).prop_flat_map(move |chosen| {
        let entry = proptest::sample::select(chosen).prop_map(|index| ALPHABET[index]);
        vec(entry, 0..len).prop_map(|entries| entries.concat())
    })
}

/// Generates short texts, long texts (which are scanned in blocks), and long texts that are pure ASCII.
fn texts() -> impl Strategy<Value = String> {
    prop_oneof![text(31, ALPHABET.len()), text(300, ALPHABET.len()), text(300, ASCII)]
}

fn chunks<'t>(splitter: &Splitter, text: &'t str) -> Vec<&'t str> {
    let mut chunks = Vec::new();
    let chunk = |chunk| {
        chunks.push(chunk);
        Ok(())
    };
    splitter.split(text, &NEVER, chunk).unwrap();
    chunks
}

/// Returns the named patterns, each with every engine that can run it.
fn named() -> impl Iterator<Item = (&'static str, &'static str, Splitter)> {
    with_engines(NAMED)
}

/// Returns the named patterns and their relatives, each with every engine that can run it.
fn with_relatives() -> impl Iterator<Item = (&'static str, &'static str, Splitter)> {
    named().chain(with_engines(RELATIVES.map(|regex| ("a relative", regex))))
}

fn with_engines(
    patterns: impl IntoIterator<Item = (&'static str, &'static str)>,
) -> impl Iterator<Item = (&'static str, &'static str, Splitter)> {
    let engines = ["scanner", "automaton"];
    patterns.into_iter().flat_map(move |(name, regex)| {
        engines.into_iter().filter_map(move |engine| Some((name, regex, Splitter::with_engine(regex, engine).ok()?)))
    })
}

fn message(result: Result<impl Sized>) -> String {
    result.err().expect("an error").to_string()
}

#[test]
fn published_patterns_are_what_their_regular_expressions_say() {
    for ((name, regex), family) in NAMED.iter().zip(PUBLISHED) {
        let alternatives = syntax::alternatives(&parse::parse(regex).unwrap()).unwrap();
        assert_eq!(Family::of(&alternatives), Some(family), "{name}");
    }
}

#[test]
fn the_fastest_engine_is_chosen() {
    for (name, regex) in NAMED.into_iter().chain(RELATIVES.map(|regex| ("a relative", regex))) {
        let expected = if name == "bloom" { "automaton" } else { "scanner" };
        let (engine, reason) =
            Splitter::new(regex).map(|splitter| (splitter.explain().0, splitter.explain().1.to_owned())).unwrap();
        assert_eq!(engine, expected, "{name} {regex}: {reason}");
        assert_eq!(Splitter::with_engine(regex, "automaton").is_ok(), name != "command-a", "{name} {regex}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5000))]

    #[test]
    fn scanners_agree_with_the_engine(text in texts()) {
        for ((name, regex, splitter), engine) in NAMED_SPLITTERS.iter().zip(&*ENGINES) {
            let expected: Vec<_> = engine.find_iter(&text).map(|m| m.unwrap().as_str()).collect();
            prop_assert_eq!(chunks(splitter, &text), expected, "{} {}", name, regex);
        }
    }

    #[test]
    fn all_instruction_sets_agree(text in texts()) {
        let spans = |scan: Scan<Family>| {
            let (mut spans, mut batch, mut start) = (Vec::new(), Spans::default(), 0);
            while start < text.len() {
                let chunks;
                (chunks, start) = scan.batch(&text, start, &mut batch.0);
                spans.extend((0..chunks.len()).map(|index| chunks.span(index)));
            }
            spans
        };
        for family in PUBLISHED.into_iter().chain([COMMAND_A]) {
            for scan in Scan::all::<Given>(family) {
                prop_assert_eq!(spans(scan), spans(Scan::of(family)));
            }
        }
    }

    #[test]
    fn parts_have_the_chunks_of_the_whole(text in text(31, 16), from in 0..31usize, at in 0..31usize) {
        for (name, _, splitter) in &*NAMED_SPLITTERS {
            if let Some(cut) = splitter.cut_before(&text, from, at) {
                prop_assert!(from < cut && cut <= at);
                let (left, right) = text.split_at(cut);
                let parts = [chunks(splitter, left), chunks(splitter, right)].concat();
                prop_assert_eq!(parts, chunks(splitter, &text), "{} cut at {}", name, cut);
            }
        }
    }

    #[test]
    fn cuts_are_found_at_line_ends(lines in vec("[a-z0-9.]{1,9}", 2..9)) {
        let text = lines.join("\n");
        // In bloom, a newline and punctuation may be one chunk.
        for (_, _, splitter) in NAMED_SPLITTERS.iter().filter(|(name, ..)| *name != "bloom") {
            let last = text.len() - lines[lines.len() - 1].len();
            prop_assert_eq!(splitter.cut_before(&text, 0, text.len()), Some(last));
        }
    }

    #[test]
    fn a_custom_pattern_drops_only_what_it_does_not_match(text in text(60, ALPHABET.len())) {
        let pattern = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|\s+(?!\S)";
        let engine = fancy_regex::Regex::new(pattern).unwrap();
        let expected: Vec<_> = engine.find_iter(&text).map(|m| m.unwrap().as_str()).collect();
        let splitter = Splitter::new(pattern).unwrap();
        let dropped = splitter.split(&text, &NEVER, |_| Ok(())).unwrap();
        prop_assert_eq!(dropped, text.len() - expected.concat().len());
        prop_assert_eq!(chunks(&splitter, &text), expected);
    }
}

static NAMED_SPLITTERS: LazyLock<Vec<(&str, &str, Splitter)>> = LazyLock::new(|| with_relatives().collect());
static ENGINES: LazyLock<Vec<fancy_regex::Regex>> =
    LazyLock::new(|| with_relatives().map(|(_, regex, _)| fancy_regex::Regex::new(regex).unwrap()).collect());

/// Tests every character below U+3400, where most scripts are, and one in seven of the rest.
#[test]
fn scanners_agree_with_the_engine_in_every_script() {
    let chosen = |c: &char| *c < '\u{3400}' || (*c as u32).is_multiple_of(7);
    let characters: Vec<_> = ('\0'..'\u{34000}').filter(chosen).collect();
    for (name, regex, splitter) in named() {
        let engine = fancy_regex::Regex::new(regex).unwrap();
        for group in characters.chunks(50) {
            let in_contexts = |&c| [' ', c, 'a', c, 'A', c, c, '1', '\'', c, '\n', c, ' ', ' ', c, '.'];
            let text: String = group.iter().flat_map(in_contexts).collect();
            let expected: Vec<_> = engine.find_iter(&text).map(|m| m.unwrap().as_str()).collect();
            assert_eq!(chunks(&splitter, &text), expected, "{name}, characters from {:?} on", group[0]);
        }
    }
}

#[test]
fn cut_before_finds_the_last_cut() {
    let splitter = Splitter::new(NAMED[1].1).unwrap();
    let text = "a\nb\nc\n d\n/e \nf\n\ng\nh\n";
    let cuts: Vec<_> = (0..=text.len()).map(|at| splitter.cut_before(text, 0, at)).collect();
    assert_eq!(cuts[1], None);
    assert_eq!(cuts[2], Some(2));
    assert_eq!(cuts[17], Some(4), "no cut before or after whitespace, or before a slash");
    assert_eq!(cuts[text.len()], Some(18), "no cut at the end");
    assert_eq!(splitter.cut_before(text, 2, 3), None);
    let cut = |pattern| Splitter::new(pattern).unwrap().cut_before(text, 0, text.len());
    assert_eq!(cut(r"\S+|\s+"), Some(18));
    assert_eq!(cut(named::named("bloom")), Some(18));
    assert_eq!(cut(r"\S+|\s+(?!\S)|\s+"), Some(18));
    assert_eq!(cut(r"\S+|\s+(?!\S)"), None, "a single newline is a chunk only at the end of a text");
    assert_eq!(cut(r"[a-g\n]+|.+"), Some(18), "no match continues with h after a newline");
    assert_eq!(cut(r"\S+|(?<!x)\s+"), None, "the engine that backtracks knows nothing");
}

/// A scanner that looked ahead or back without a bound would take minutes on these runs.
#[test]
fn long_runs_are_split_in_linear_time() {
    const LEN: usize = 300_000;
    for unit in [" ", "\n", " \n", "a", "A", "aA", "中A", "\u{301}", "\u{301}A", "=", "1", "'", "é"] {
        let mut text = unit.repeat(LEN / unit.len());
        for last in ["", "x", "1", "\n"] {
            text.push_str(last);
            for (name, _, splitter) in named() {
                assert_eq!(chunks(&splitter, &text).concat(), text, "{name} on {unit:?}, then {last:?}");
            }
        }
    }
}

/// Uncancelled, each of these searches would take hours, or would be an error.
#[test]
fn a_search_that_does_not_end_can_be_cancelled() {
    let text = "a".repeat(50_000);
    for pattern in ["(?:(?!a*b)a)*c", r"(?:(?!a*b)a)*(?=c)c", "(?:a|aa)+b(?<!a)"] {
        let splitter = Splitter::new(pattern).unwrap();
        let cancelled = Cancel::default();
        cancelled.cancel();
        assert_eq!(splitter.split(&text, &cancelled, |_| Ok(())), Err(Error::Cancelled));
        // A search on the caller's own thread is cancelled by polling.
        let poll = || true;
        assert_eq!(splitter.split(&text, &Cancel::polling(&poll), |_| Ok(())), Err(Error::Cancelled));
    }
}

/// To start again at each letter would take more steps than are allowed.
#[test]
fn a_pattern_that_can_fail_late_takes_linear_time() {
    let text = "a".repeat(300_000);
    for pattern in ["a+b", "x|[a-z]*c", r"\w+\b;"] {
        let splitter = Splitter::new(pattern).unwrap();
        assert_eq!(splitter.split(&text, &NEVER, |_| Ok(())), Ok(text.len()), "{pattern}");
        let cancelled = Cancel::default();
        cancelled.cancel();
        assert_eq!(splitter.split(&text, &cancelled, |_| Ok(())), Err(Error::Cancelled));
    }
}

/// The expected chunks are those of Python's `regex`. A library that was used before gave others.
#[test]
fn repetitions_match_what_they_match_in_python() {
    for (pattern, text, expected) in [
        (r"\b\p{L}+'?\p{L}+", "a ab don't", vec!["ab", "don't"]),
        (r"\d+\.?\d+(?!\w+)", "1 12 1.2 34a", vec!["12", "1.2"]),
        (r"a*b??a*(?<=a)", "aba", vec!["a", "ba"]),
        // An optional iteration that is empty is the last one.
        (r"(?:b?|\s)*", "b ", vec!["b", " "]),
        (r"(?:[^a]*|a){0,3}", "bab", vec!["b", "ab"]),
        (r"(?:[^a]*|a){2}", "bab", vec!["b", "a", "b"]),
        (r"(?:[^a]*|a){1,2}?(?=b)", "bab", vec!["ba"]),
        (r"(?:a?\B|.{1,2}){1,2}", "abcd a", vec!["a", "bc", "d ", "a"]),
        // A look-behind is matched backwards.
        (r"(?<=a++a)b", "aab", vec!["b"]),
        (r"(?<=(?>a|ba))c", "bac", vec!["c"]),
        (r"(?<=^a{2}b?)\w", "aabc", vec!["b", "c"]),
        // Groups, and a repetition at the start.
        (r"(?:(a)|b)*\1", "abba", vec!["abba"]),
        (r"a*\b;", "xaa;aa aa;;", vec!["aa;", "aa;"]),
        (r"(?=(a+))\1b|.", "aab", vec!["aab"]),
        (r"(?!(a)b)\w\1|.", "abcc", vec!["a", "b", "c", "c"]),
        (r"(?>(a|ab)(?:c|))\1?.", "abcab", vec!["ab", "ab"]),
        (r"(?i)(a)b(?-i)c|[(](?i:d)", "ABc(DABC", vec!["ABc", "(D"]),
    ] {
        assert_eq!(chunks(&Splitter::new(pattern).unwrap(), text), expected, "{pattern}");
    }
}

/// Unlike with automata, a counted repetition takes no more memory than any other.
#[test]
fn the_size_of_a_program_is_that_of_its_pattern() {
    let length = |pattern: &str| Program::new(&parse::parse(pattern).unwrap().node).unwrap().code.len();
    assert_eq!(length("(?:(?:(?:a|b){2,3}){2,3}){2,3}"), length("(?:(?:(?:a|b){1,1000}){9,999}){1000}"));
    let deep = "(?:".repeat(60) + "a{0,9}" + &"){0,9}".repeat(60) + "(?<!b)";
    assert!(length(&deep) < 500);
    let splitter = Splitter::new(&deep).unwrap();
    assert_eq!(chunks(&splitter, "aab"), ["aa"]);
}

#[test]
fn patterns_that_are_not_supported_are_refused() {
    for (pattern, reason) in [
        (r"(a\g<1>?\g<1>?\g<1>?)", "a subroutine call"),
        (r"(?<n>a(?P>n)?)", "a subroutine call"),
        (r"(?(DEFINE)(?<n>a))b", "a subroutine call"),
        (r"a\Kb", r"\K"),
        (r"\Ga", r"\G"),
        (r"(a)?(?(1)b|c)", "a condition"),
        (r"a(*SKIP)b", "a backtracking control verb"),
        (r"(?~ab)", "an absence operator"),
        (r"(?i)(a)\1", "a back-reference that ignores case"),
        (r"(a)(?<=\1)b", "a back-reference in a look-behind"),
        (r"(a\1?)b", "a back-reference before the end of its group"),
        (r"\<a", "an anchor other than"),
        (r"a\Z", r"write \z"),
        (r"(a(?i)b)c", "it changes flags within a group"),
        (r"[](?i)](?:é\é[^](]|(?-i))", "it changes flags within a group"),
        (r"a\2", "invalid back reference to group 2"),
        (&"a".repeat(200_000), "it is too large"),
        (&r"\p{L}".repeat(10_000), "it is too large"),
        (&("(?:".repeat(70) + &")".repeat(70)), "too deeply nested"),
    ] {
        let error = message(Splitter::new(pattern));
        assert!(error.contains(reason), "{pattern}: {error}");
    }
}

#[test]
fn a_search_that_needs_too_much_memory_is_an_error() {
    let splitter = Splitter::new(r"(?:a(?!c)|b(?!c))*(?<!a)c").unwrap();
    let error = message(splitter.split(&"a".repeat(3_000_000), &NEVER, |_| Ok(())));
    assert!(error.contains("it needs too much memory"), "{error}");
    // If what follows cannot fail, nothing has to be remembered.
    let splitter = Splitter::new(r"(?:a(?!c)|b(?!c))+").unwrap();
    assert_eq!(splitter.split(&"a".repeat(3_000_000), &NEVER, |_| Ok(())), Ok(0));
}

#[test]
fn an_automaton_that_looks_too_far_ahead_is_an_error() {
    for pattern in ["a*b|a", "a++(?!c)|c"] {
        let splitter = Splitter::new(pattern).unwrap();
        assert_eq!(splitter.explain().0, "automaton");
        let text = "a".repeat(50_000) + "c";
        let error = message(splitter.split(&text, &NEVER, |_| Ok(())));
        assert!(error.contains("it takes too long") && error.contains("of a text of 50001"), "{error}");
        let cancelled = Cancel::default();
        cancelled.cancel();
        assert_eq!(splitter.split(&text, &cancelled, |_| Ok(())), Err(Error::Cancelled));
    }
}

#[test]
fn an_automaton_can_be_cancelled_where_nothing_matches() {
    let cancelled = Cancel::default();
    cancelled.cancel();
    let text = "1".repeat(LOOK_AHEAD_PER_CHECK + 2);
    assert_eq!(Splitter::new("[a-z]+").unwrap().split(&text, &cancelled, |_| Ok(())), Err(Error::Cancelled));
}

/// Otherwise each character of the text would be tried as the start of a match.
#[test]
fn patterns_that_can_fail_late_are_not_automata() {
    for pattern in ["a+b", "(?:ab)+c", "x|[ab]*c"] {
        assert_eq!(Splitter::new(pattern).unwrap().explain().0, "backtracking", "{pattern}");
    }
    for pattern in ["a+b|a", "ab|cd", "a+"] {
        assert_eq!(Splitter::new(pattern).unwrap().explain().0, "automaton", "{pattern}");
    }
}

#[test]
fn a_search_that_takes_too_long_is_an_error() {
    let splitter = Splitter::new("b|(?:(?!a*c)a)*d").unwrap();
    let error = message(splitter.split(&("b".to_owned() + &"a".repeat(30_000)), &NEVER, |_| Ok(())));
    assert!(error.contains("it takes too long") && error.contains("byte 1 of a text of 30001"), "{error}");
}

#[test]
fn custom_patterns_drop_what_they_do_not_match() {
    let numbers = Splitter::new(r"[0-9]+(?!x)").unwrap();
    assert_eq!(numbers.split("a12 345x 6", &NEVER, |_| Ok(())), Ok(5));
    assert_eq!(chunks(&numbers, "a12 345x 6"), ["12", "34", "6"]);
}

/// The expected chunks are those of Python: `[c for c in regex.findall(pattern, text) if c]`.
#[test]
fn empty_matches_are_not_chunks() {
    for (pattern, text, expected) in [
        (r"\s*", "a  b ", vec!["  ", " "]),
        (r"a*?|b", "ab", vec!["a", "b"]),
        (r"|ab|a", "aba", vec!["ab", "a"]),
        (r"(?=é)|.", "né!", vec!["n", "é", "!"]),
        (r"\b", "a b", vec![]),
        (r"", "ab", vec![]),
    ] {
        assert_eq!(chunks(&Splitter::new(pattern).unwrap(), text), expected, "{pattern}");
    }
}

#[test]
fn long_chunks_stay_within_the_limits() {
    let text = "a".repeat(10_000_000);
    for pattern in [r".+", r"\S+|\s+", r"\p{L}+|\s+(?!\S)", r"\s++(?!\S)|\S++"] {
        let splitter = Splitter::new(pattern).unwrap();
        assert_eq!(chunks(&splitter, &text), [text.as_str()], "{pattern}");
    }
    let rare = Splitter::new(r"x(?!y)").unwrap();
    assert_eq!(rare.split(&text, &NEVER, |_| Ok(())).unwrap(), text.len());
}

#[test]
fn errors_name_the_pattern_and_the_position() {
    // The caller knows the pattern.
    let unclosed = message(Splitter::new(r"(\p{L}+"));
    assert!(unclosed.contains("position 7: Opening parenthesis"), "{unclosed}");

    let endless = Splitter::new(r"b|(?:a|a|ab)+(?<!a)c").unwrap();
    let error = message(endless.split(&("b".to_owned() + &"a".repeat(40)), &NEVER, |_| Ok(())));
    assert!(error.contains("(?<!a)c") && error.contains("byte 1 of"), "{error}");
}

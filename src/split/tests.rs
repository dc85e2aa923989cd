//! Every scanner against `fancy_regex` running the same pattern, on strings of the characters that the
//! patterns treat differently.

use super::*;
use std::time::{Duration, Instant};

#[rustfmt::skip]
const ALPHABET: [&str; 45] = [
    " ", " ", "\n", "\r", "\t", "'", "s", "S", "l", "L", "r", "R", "e", "v", "V", "d", "M", "t",
    "a", "A", "1", ".", "/", "\0", "\x1f", "\x7f", "12", "'ll", "'S", "word",
    "ſ", "٣", "²", "é", "É", "ǅ", "ʰ", "中", "\u{301}", "\u{903}", "\u{a0}",
    "\u{85}", "\u{3000}", "\u{200d}", "😀",
];
/// So many of them are ASCII.
const ASCII: usize = 30;

/// splitmix64: deterministic, and enough.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x ^ (x >> 31)) % n as u64) as usize
    }

    /// Fewer than `len` of the first `kinds` of the alphabet, and of a few of these only: so that runs and
    /// repetitions come about.
    fn text(&mut self, len: usize, kinds: usize) -> String {
        let kinds: Vec<_> = (0..2 + self.below(9)).map(|_| self.below(kinds)).collect();
        (0..self.below(len)).map(|_| ALPHABET[kinds[self.below(kinds.len())]]).collect()
    }
}

fn chunks<'t>(splitter: &Splitter, text: &'t str) -> Vec<&'t str> {
    let mut chunks = Vec::new();
    splitter
        .split(text, |chunk| {
            chunks.push(chunk);
            Ok(())
        })
        .unwrap();
    chunks
}

fn named() -> impl Iterator<Item = (&'static str, &'static str, Splitter)> {
    let both = NAMED.into_iter().chain(ALIASES);
    both.map(|(name, regex)| (name, regex, Splitter::new(regex).unwrap()))
}

fn message(result: Result<impl Sized>) -> String {
    result.err().expect("an error").to_string()
}

#[test]
fn scanners_equal_the_engine() {
    for (name, regex, splitter) in named() {
        assert!(!matches!(splitter.0, Kind::Custom(_)), "{name} has no scanner");
        let engine = fancy_regex::Regex::new(regex).unwrap();
        let mut random = Random(1);
        for i in 0..15_000 {
            // Short ones; long ones, which are scanned in blocks; and long ones of ASCII alone.
            let text = match i % 3 {
                0 => random.text(31, ALPHABET.len()),
                1 => random.text(300, ALPHABET.len()),
                _ => random.text(300, ASCII),
            };
            let expected: Vec<_> = engine.find_iter(&text).map(|m| m.unwrap().as_str()).collect();
            assert_eq!(chunks(&splitter, &text), expected, "{name} {regex} on {text:?}");
        }
    }
}

/// Every character below U+3400, where most scripts are, and one in seven of the rest.
#[test]
fn scanners_equal_the_engine_in_every_script() {
    let chosen = |c: &char| *c < '\u{3400}' || (*c as u32).is_multiple_of(7);
    let characters: Vec<_> = ('\0'..'\u{34000}').filter(chosen).collect();
    for (name, regex, splitter) in named().take(NAMED.len()) {
        let engine = fancy_regex::Regex::new(regex).unwrap();
        for some in characters.chunks(50) {
            let around = |&c| [' ', c, 'a', c, 'A', c, c, '1', '\'', c, '\n', c, ' ', ' ', c, '.'];
            let text: String = some.iter().flat_map(around).collect();
            let expected: Vec<_> = engine.find_iter(&text).map(|m| m.unwrap().as_str()).collect();
            assert_eq!(chunks(&splitter, &text), expected, "{name} from {:?} on", some[0]);
        }
    }
}

#[test]
fn parts_have_the_chunks_of_the_whole() {
    for (name, _, splitter) in named() {
        let mut random = Random(2);
        let mut cuts = 0;
        for _ in 0..50_000 {
            let text = random.text(31, ALPHABET.len());
            let from = random.below(text.len() + 1);
            let at = random.below(text.len() + 1);
            let Some(cut) = splitter.cut_before(&text, from, at) else {
                continue;
            };
            cuts += 1;
            assert!(from < cut && cut <= at);
            let (left, right) = text.split_at(cut);
            let parts = [chunks(&splitter, left), chunks(&splitter, right)].concat();
            assert_eq!(parts, chunks(&splitter, &text), "{name} on {text:?} cut at {cut}");
        }
        assert!(cuts > 500, "only {cuts} cuts tried");
    }
}

#[test]
fn the_last_cut_is_found() {
    let splitter = Splitter::new(NAMED[1].1).unwrap();
    let text = "a\nb\nc\n d\n/e \nf\n\ng\nh\n";
    let cuts: Vec<_> = (0..=text.len()).map(|at| splitter.cut_before(text, 0, at)).collect();
    assert_eq!(cuts[1], None);
    assert_eq!(cuts[2], Some(2));
    assert_eq!(cuts[17], Some(4), "no cut before or after white space, or before a slash");
    assert_eq!(cuts[text.len()], Some(18), "no cut at the end");
    assert_eq!(splitter.cut_before(text, 2, 3), None);
    let custom = Splitter::new(r"\S+|\s+").unwrap();
    assert_eq!(custom.cut_before(text, 0, text.len()), None);
}

#[test]
fn time_is_linear_in_the_text() {
    const LEN: usize = 300_000;
    for unit in [" ", "\n", " \n", "a", "A", "aA", "中A", "\u{301}", "\u{301}A", "=", "1", "'", "é"] {
        let mut text = unit.repeat(LEN / unit.len());
        for last in ["", "x", "1", "\n"] {
            text.push_str(last);
            for (name, _, splitter) in named().take(NAMED.len()) {
                let start = Instant::now();
                let mut len = 0;
                splitter
                    .split(&text, |chunk| {
                        len += chunk.len();
                        Ok(())
                    })
                    .unwrap();
                assert_eq!(len, text.len());
                assert!(start.elapsed() < Duration::from_secs(5), "{name} on {unit:?}, then {last:?}");
            }
        }
    }
}

#[test]
fn custom_patterns_drop_what_they_do_not_match() {
    let numbers = Splitter::new(r"[0-9]+(?!x)").unwrap();
    let mut found = Vec::new();
    assert_eq!(
        numbers
            .split("a12 345x 6", |n| {
                found.push(n);
                Ok(())
            })
            .unwrap(),
        5
    );
    assert_eq!(found, ["12", "34", "6"]);
}

/// The expected chunks are those of Python: `[c for c in regex.findall(pattern, text) if c]`.
#[test]
fn empty_matches_are_no_chunks() {
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
fn a_long_chunk_is_no_reason_to_give_up() {
    let text = "a".repeat(10_000_000);
    for pattern in [r".+", r"\S+|\s+", r"\p{L}+|\s+(?!\S)", r"\s++(?!\S)|\S++"] {
        let splitter = Splitter::new(pattern).unwrap();
        assert_eq!(chunks(&splitter, &text), [text.as_str()], "{pattern}");
    }
    let rare = Splitter::new(r"x(?!y)").unwrap();
    assert_eq!(rare.split(&text, |_| Ok(())).unwrap(), text.len());
}

#[test]
fn errors_name_the_pattern_and_the_place() {
    let unclosed = message(Splitter::new(r"(\p{L}+"));
    assert!(unclosed.contains(r"(\\p{L}+") && unclosed.contains("gpt4"), "{unclosed}");

    let endless = Splitter::new(r"b|(?:a|a|ab)+(?<!a)c").unwrap();
    let error = message(endless.split(&("b".to_owned() + &"a".repeat(40)), |_| Ok(())));
    assert!(error.contains("(?<!a)c") && error.contains("byte 1 of"), "{error}");
}

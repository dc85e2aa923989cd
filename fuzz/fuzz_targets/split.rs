//! Splits arbitrary text with every named pattern: the scanner finds the same chunks as `fancy_regex`, and cutting the
//! text does not change them.

#![no_main]

use std::sync::LazyLock;

use batchbpe::error::NEVER;
use batchbpe::split::{NAMED, Splitter};
use fancy_regex::Regex;
use libfuzzer_sys::fuzz_target;

static PATTERNS: LazyLock<Vec<(Splitter, Regex)>> = LazyLock::new(|| {
    let compile = |(_, regex)| (Splitter::new(regex).expect("a named pattern"), Regex::new(regex).expect("a regex"));
    NAMED.map(compile).into()
});

fn chunks<'t>(splitter: &Splitter, text: &'t str) -> Vec<&'t str> {
    let mut chunks = Vec::new();
    let chunk = |chunk| {
        chunks.push(chunk);
        Ok(())
    };
    assert_eq!(splitter.split(text, &NEVER, chunk), Ok(0));
    chunks
}

fuzz_target!(|text: &str| {
    for (splitter, engine) in &*PATTERNS {
        let found = chunks(splitter, text);
        let expected: Vec<&str> = engine.find_iter(text).map(|found| found.expect("a match").as_str()).collect();
        assert_eq!(found, expected);
        if let Some(cut) = splitter.cut_before(text, 0, text.len()) {
            let (left, right) = text.split_at(cut);
            assert_eq!([chunks(splitter, left), chunks(splitter, right)].concat(), found);
        }
    }
});

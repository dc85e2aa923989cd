//! Cuts text into chunks, exactly as Python's `regex.findall(pattern, text)` does.
//!
//! The named patterns are recognised by their text and have scanners of their own; any other
//! regular expression runs through `fancy_regex`, at a twentieth of the speed. Names are not
//! resolved here, and special tokens are text like any other.

mod blocks;
mod classes;
mod custom;
mod scanners;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

use crate::error::{Cancel, Result};
use classes::{Classes, WHITE};
use custom::Custom;
use scanners::{Gpt2, Gpt4, O200k, scan};

/// The patterns with scanners: name and regular expression, as published.
///
/// The `$` of cl100k also matches before a final newline in Python, at the very end only in
/// tiktoken. That makes no difference: `\s++` has taken that newline and does not give it back.
pub const NAMED: [(&str, &str); 4] = [
    ("gpt2", r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"),
    (
        "gpt4",
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
    ),
    (
        "cl100k",
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    ),
    (
        "o200k",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
];

/// Other published spellings of the same languages.
const ALIASES: [(&str, &str); 4] = [
    // The first release of GPT-2, and the same without its superfluous brackets.
    ("gpt2", r"'s|'t|'re|'ve|'m|'ll|'d| ?[\p{L}]+| ?[\p{N}]+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"),
    ("gpt2", r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"),
    // tiktoken's r50k and p50k.
    ("gpt2", r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"),
    // The first cl100k, and Llama 3.
    (
        "gpt4",
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
];

/// A pattern, ready to cut text into chunks.
pub struct Splitter(Kind);

enum Kind {
    Gpt2,
    Gpt4,
    Cl100k,
    O200k,
    Custom(Box<Custom>),
}

impl Splitter {
    /// A splitter for a regular expression.
    pub fn new(pattern: &str) -> Result<Splitter> {
        let published = NAMED.iter().chain(&ALIASES).find(|(_, regex)| *regex == pattern);
        Ok(Splitter(match published {
            Some(("gpt2", _)) => Kind::Gpt2,
            Some(("gpt4", _)) => Kind::Gpt4,
            Some(("cl100k", _)) => Kind::Cl100k,
            Some(("o200k", _)) => Kind::O200k,
            _ => Kind::Custom(Box::new(Custom::new(pattern)?)),
        }))
    }

    /// Whether the pattern has a scanner of its own.
    pub fn has_scanner(&self) -> bool {
        !matches!(self.0, Kind::Custom(_))
    }

    /// Whether the pattern has empty matches, as far as plain characters show it.
    pub fn matches_empty(&self) -> bool {
        matches!(&self.0, Kind::Custom(custom) if custom.matches_empty())
    }

    /// How many bytes of plain scanning the work on `size` bytes may come to. An engine may start again at every byte.
    pub fn work(&self, size: usize) -> usize {
        if self.has_scanner() { size } else { size.saturating_mul(1 << 6) }
    }

    /// Calls `chunk` with each chunk of `text` in order. Returns how many bytes lay between them:
    /// none with the named patterns, which match every character. An error of `chunk` ends it. `cancel` is
    /// heard within a single search of a custom pattern; between chunks, `chunk` may look at it.
    #[inline(always)]
    pub fn split<'t>(&self, text: &'t str, cancel: &Cancel, chunk: impl FnMut(&'t str) -> Result<()>) -> Result<usize> {
        match &self.0 {
            Kind::Gpt2 => scan::<Gpt2>(text, chunk)?,
            Kind::Gpt4 => scan::<Gpt4<false>>(text, chunk)?,
            Kind::Cl100k => scan::<Gpt4<true>>(text, chunk)?,
            Kind::O200k => scan::<O200k>(text, chunk)?,
            Kind::Custom(custom) => return custom.split(text, cancel, chunk),
        }
        Ok(0)
    }

    /// The last place after `from` and not after `at` where `text` may be cut so that its parts
    /// have the same chunks as the whole; None if there is none, or the pattern is a custom one.
    ///
    /// Such a place is after a newline that stands between two characters that are no white space,
    /// the second of them no `/`. Before it, all patterns alike: the newline is a white-space run of
    /// its own. It is a chunk of its own, or ends a chunk of symbols (`[\r\n]*`, `[\r\n/]*`),
    /// whether the character after it follows or the text ends. So a chunk ends here in the whole
    /// as in the part. After it: no pattern looks behind.
    pub fn cut_before(&self, text: &str, from: usize, at: usize) -> Option<usize> {
        if !self.has_scanner() {
            return None;
        }
        let classes = Classes::get();
        let bytes = text.as_bytes();
        let mut end = at.min(bytes.len());
        while from < end {
            let newline = from + bytes[from..end].iter().rposition(|&byte| byte == b'\n')?;
            let solid = |c: Option<char>| c.is_some_and(|c| classes.of_char(c) & WHITE == 0);
            let next = text[newline + 1..].chars().next();
            if next != Some('/') && solid(next) && solid(text[..newline].chars().next_back()) {
                return Some(newline + 1);
            }
            end = newline;
        }
        None
    }
}

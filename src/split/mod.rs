//! Cuts text into chunks, exactly as Python's `regex.findall(pattern, text)` does.
//!
//! The named patterns are recognised by their regular expressions and have hand-written scanners. All other patterns
//! run on `fancy_regex`, at a twentieth of the speed. This module does not resolve the names of patterns, and it treats
//! special tokens as ordinary text.

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
/// The `$` of cl100k matches only at the very end in tiktoken, but in Python also before a final newline. This makes no
/// difference, because the possessive `\s++` has already consumed that newline.
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

/// Other published patterns that produce the same chunks.
const ALIASES: [(&str, &str); 4] = [
    // The original GPT-2 pattern, and the same without its redundant brackets.
    ("gpt2", r"'s|'t|'re|'ve|'m|'ll|'d| ?[\p{L}]+| ?[\p{N}]+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"),
    ("gpt2", r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"),
    // r50k and p50k in tiktoken.
    ("gpt2", r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"),
    // The original cl100k pattern, also used by Llama 3.
    (
        "gpt4",
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
];

/// A compiled pattern.
pub struct Splitter(Kind);

enum Kind {
    Gpt2,
    Gpt4,
    Cl100k,
    O200k,
    Custom(Box<Custom>),
}

impl Splitter {
    /// Compiles a regular expression.
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

    /// Returns whether the pattern has a hand-written scanner.
    pub fn has_scanner(&self) -> bool {
        !matches!(self.0, Kind::Custom(_))
    }

    /// Returns whether the pattern matches the empty string somewhere in a text of ASCII characters.
    pub fn matches_empty(&self) -> bool {
        matches!(&self.0, Kind::Custom(custom) if custom.matches_empty())
    }

    /// Estimates the cost of splitting `size` bytes: the number of bytes that a scanner could split in the same time.
    /// The regex engine is slower, since it may restart its search at every byte.
    pub fn cost(&self, size: usize) -> usize {
        if self.has_scanner() { size } else { size.saturating_mul(1 << 6) }
    }

    /// Calls `chunk` with each chunk of `text`, in order, and stops if it returns an error. Returns the number of bytes
    /// that are in no chunk: always 0 for the named patterns, which match every character.
    ///
    /// `cancel` is checked only within a search of a custom pattern. To cancel between chunks, `chunk` must check it.
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

    /// Returns the last place after `from` and not after `at` where `text` can be cut so that the two parts together
    /// have the same chunks as the whole. Returns `None` if there is no such place, and always for custom patterns.
    ///
    /// Such a place is after a newline between two characters that are not white space, the second of which is not `/`.
    /// Proof, for all named patterns: the newline is a run of white space by itself. It is therefore either a chunk of
    /// its own or the end of a chunk of symbols (`[\r\n]*`, `[\r\n/]*`), whether the next character follows or the text
    /// ends. So a chunk ends at this place both in the whole text and in the first part. The chunks of the second part
    /// are the same, because no pattern looks behind.
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

//! Cuts text into chunks, exactly as Python's `regex.findall(pattern, text)` does.
//!
//! The named patterns are recognized by their regular expressions and have hand-written scanners. All other patterns
//! run on `fancy_regex`, at a twentieth of the speed. This module does not resolve the names of patterns, and it treats
//! special tokens as ordinary text.

mod blocks;
mod chunks;
mod classes;
mod custom;
mod scanners;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

use crate::error::{Cancel, Result};
use chunks::{BATCH, Span};
pub use chunks::{Chunks, LOOKUP_GROUP, Spans};
use classes::{Classes, WHITE};
use custom::Custom;
use scanners::{Gpt2, Gpt4, O200k, Scan};

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
    Scanner(Scan),
    Custom(Box<Custom>),
}

impl Splitter {
    /// Compiles a regular expression.
    pub fn new(pattern: &str) -> Result<Splitter> {
        let published = NAMED.iter().chain(&ALIASES).find(|(_, regex)| *regex == pattern);
        Ok(Splitter(match published {
            Some(("gpt2", _)) => Kind::Scanner(Scan::new::<Gpt2>()),
            Some(("gpt4", _)) => Kind::Scanner(Scan::new::<Gpt4<false>>()),
            Some(("cl100k", _)) => Kind::Scanner(Scan::new::<Gpt4<true>>()),
            Some(("o200k", _)) => Kind::Scanner(Scan::new::<O200k>()),
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
    pub fn split<'t>(
        &self,
        text: &'t str,
        cancel: &Cancel,
        mut chunk: impl FnMut(&'t str) -> Result<()>,
    ) -> Result<usize> {
        self.split_in_batches(text, &mut Spans::default(), cancel, |chunks| chunks.iter().try_for_each(&mut chunk))
    }

    /// Like `split`, but calls `batch` with one or more chunks at a time.
    pub fn split_in_batches<'t>(
        &self,
        text: &'t str,
        spans: &mut Spans,
        cancel: &Cancel,
        mut batch: impl FnMut(Chunks<'t, '_>) -> Result<()>,
    ) -> Result<usize> {
        let spans = &mut spans.0;
        let mut len = 0;
        match &self.0 {
            Kind::Scanner(scan) => {
                let mut start = 0;
                while start < text.len() {
                    (len, start) = scan.run(text, start, spans);
                    // SAFETY: the contract of `Scanner`.
                    batch(unsafe { Chunks::new(text, &spans[..len]) })?;
                }
                Ok(0)
            }
            Kind::Custom(custom) => {
                let mut take = |spans: &[Span]| {
                    // SAFETY: matches that are not empty are slices of `text`, one after the other.
                    batch(unsafe { Chunks::new(text, spans) })
                };
                let dropped = custom.split(text, cancel, |chunk| {
                    let start = chunk.as_ptr() as usize - text.as_ptr() as usize;
                    spans[len] = (start, start + chunk.len());
                    len += 1;
                    if len < BATCH { Ok(()) } else { take(&spans[..std::mem::take(&mut len)]) }
                })?;
                if len > 0 {
                    take(&spans[..len])?;
                }
                Ok(dropped)
            }
        }
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

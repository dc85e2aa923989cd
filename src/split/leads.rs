//! Finds the next byte of a set: the first bytes of the characters that matter.

use regex_syntax::hir::ClassUnicode;

/// A set of bytes.
pub struct Leads {
    is_in: [u8; 256],
    /// The least and the greatest ASCII character of the set, if there are any.
    ascii: Option<(u8, u8)>,
}

impl Leads {
    pub fn all() -> Self {
        Self { is_in: [1; 256], ascii: Some((0, 0x7f)) }
    }

    /// Returns the first bytes of some characters, given as ranges.
    pub fn new(ranges: impl IntoIterator<Item = (char, char)>) -> Self {
        let mut is_in = [0; 256];
        let lead = |c: char| c.encode_utf8(&mut [0; 4]).as_bytes()[0] as usize;
        // UTF-8 keeps the order of characters, so the bytes between those of the ends belong to the range as well.
        ranges.into_iter().for_each(|(first, last)| is_in[lead(first)..=lead(last)].fill(1));
        is_in[0x80..0xc0].fill(0); // no character starts with these
        let mut ascii = (0u8..128).filter(|&byte| is_in[byte as usize] != 0);
        Self { is_in, ascii: ascii.next().map(|least| (least, ascii.next_back().unwrap_or(least))) }
    }

    pub fn of_class(class: &ClassUnicode) -> Self {
        Self::new(class.iter().map(|range| (range.start(), range.end())))
    }

    pub fn contains(&self, byte: u8) -> bool {
        self.is_in[byte as usize] != 0
    }

    /// Returns the first position from `at` on with a byte of the set, or the end.
    #[inline]
    pub fn next(&self, bytes: &[u8], mut at: usize) -> usize {
        // Whether a byte is one of few, or is not ASCII: without a look-up, so that many are compared at once.
        let (least, others) = self.ascii.map_or((0x80, 0), |(least, greatest)| (least, greatest - least));
        let may_be_in = |byte: u8| u8::from(byte.wrapping_sub(least) <= others) | byte >> 7;
        loop {
            // In a text with many such bytes, the next one is near.
            for _ in 0..8 {
                match bytes.get(at) {
                    Some(&byte) if !self.contains(byte) => at += 1,
                    _ => return at,
                }
            }
            while let Some(block) = bytes[at..].first_chunk::<32>()
                && (block.iter().fold(0, |any, &byte| any | may_be_in(byte)) == 0
                    || block.iter().fold(0, |any, &byte| any | self.is_in[byte as usize]) == 0)
            {
                at += block.len();
            }
        }
    }
}

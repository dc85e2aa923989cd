//! The classes of 64 bytes at once, a bit for each byte, from which a scanner tells where chunks begin.

/// So many bytes are looked at together.
pub const BLOCK: usize = 64;

/// Where in a block each class of ASCII characters stands: bit `i` is byte `i`.
pub struct Block {
    pub upper: u64,
    pub lower: u64,
    pub numbers: u64,
    /// The space alone, `' '`.
    pub spaces: u64,
    /// `\s`, with spaces and newlines.
    pub white: u64,
    pub newlines: u64,
    pub symbols: u64,
    pub apostrophes: u64,
    pub slashes: u64,
    /// Bytes of characters that are not ASCII.
    pub others: u64,
}

impl Block {
    #[inline(always)]
    pub fn new(bytes: &[u8; BLOCK]) -> Self {
        let upper = bits(bytes, |byte| byte.wrapping_sub(b'A') < 26);
        let lower = bits(bytes, |byte| byte.wrapping_sub(b'a') < 26);
        let numbers = bits(bytes, |byte| byte.wrapping_sub(b'0') < 10);
        let spaces = bits(bytes, |byte| byte == b' ');
        let white = bits(bytes, |byte| byte.wrapping_sub(b'\t') < 5) | spaces;
        let others = bits(bytes, |byte| byte >= 0x80);
        Self {
            upper,
            lower,
            numbers,
            spaces,
            white,
            newlines: bits(bytes, |byte| byte == b'\n' || byte == b'\r'),
            symbols: !(upper | lower | numbers | white | others),
            apostrophes: bits(bytes, |byte| byte == b'\''),
            slashes: bits(bytes, |byte| byte == b'/'),
            others,
        }
    }

    #[inline(always)]
    pub fn letters(&self) -> u64 {
        self.upper | self.lower
    }
}

/// The bytes that are something. The compiler makes vector instructions of it.
#[inline(always)]
fn bits(bytes: &[u8; BLOCK], is: impl Fn(u8) -> bool) -> u64 {
    let mut flags = [0; BLOCK];
    for (flag, &byte) in flags.iter_mut().zip(bytes) {
        *flag = if is(byte) { 0xff } else { 0 };
    }
    high_bits(&flags)
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn high_bits(flags: &[u8; BLOCK]) -> u64 {
    use std::arch::x86_64::{_mm_loadu_si128, _mm_movemask_epi8};

    let mut bits = 0;
    for (i, flags) in flags.as_chunks::<16>().0.iter().enumerate() {
        // SAFETY: every x86-64 has SSE2, and the 16 bytes are there to be read.
        let part = unsafe { _mm_movemask_epi8(_mm_loadu_si128(flags.as_ptr().cast())) };
        bits |= u64::from(part as u32) << (16 * i);
    }
    bits
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn high_bits(flags: &[u8; BLOCK]) -> u64 {
    let mut bits = 0;
    for (i, flags) in flags.as_chunks::<8>().0.iter().enumerate() {
        // The product brings one bit of each byte together in the highest byte.
        let word = u64::from_le_bytes(*flags) & 0x0101_0101_0101_0101;
        bits |= (word.wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * i);
    }
    bits
}

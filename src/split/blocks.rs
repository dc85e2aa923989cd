//! Classifies 64 bytes at once into bit masks, from which a scanner computes where chunks start.

/// The number of bytes in a block: one for each bit of a mask.
pub const BLOCK: usize = 64;

/// A mask for each class of ASCII characters: bit `i` is set if byte `i` of the block is in the class.
pub struct Block {
    pub upper: u64,
    pub lower: u64,
    pub numbers: u64,
    /// Only `' '`.
    pub spaces: u64,
    /// `\s`, including spaces and newlines.
    pub white: u64,
    /// `\r` and `\n`.
    pub newlines: u64,
    /// All other ASCII characters, including apostrophes and slashes.
    pub symbols: u64,
    pub apostrophes: u64,
    pub slashes: u64,
    /// The bytes of non-ASCII characters.
    pub non_ascii: u64,
}

impl Block {
    #[inline(always)]
    pub fn new(bytes: &[u8; BLOCK]) -> Self {
        let upper = mask(bytes, |byte| byte.wrapping_sub(b'A') < 26);
        let lower = mask(bytes, |byte| byte.wrapping_sub(b'a') < 26);
        let numbers = mask(bytes, |byte| byte.wrapping_sub(b'0') < 10);
        let spaces = mask(bytes, |byte| byte == b' ');
        let white = mask(bytes, |byte| byte.wrapping_sub(b'\t') < 5) | spaces;
        let non_ascii = mask(bytes, |byte| byte >= 0x80);
        Self {
            upper,
            lower,
            numbers,
            spaces,
            white,
            newlines: mask(bytes, |byte| byte == b'\n' || byte == b'\r'),
            symbols: !(upper | lower | numbers | white | non_ascii),
            apostrophes: mask(bytes, |byte| byte == b'\''),
            slashes: mask(bytes, |byte| byte == b'/'),
            non_ascii,
        }
    }

    #[inline(always)]
    pub fn letters(&self) -> u64 {
        self.upper | self.lower
    }
}

/// Returns the mask of the bytes for which `is` returns true. The compiler vectorises the loop.
#[inline(always)]
fn mask(bytes: &[u8; BLOCK], is: impl Fn(u8) -> bool) -> u64 {
    let mut flags = [0; BLOCK];
    for (flag, &byte) in flags.iter_mut().zip(bytes) {
        *flag = if is(byte) { 0xff } else { 0 };
    }
    high_bits(&flags)
}

/// Collects the high bit of each byte. Every byte is 0 or 0xff.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn high_bits(flags: &[u8; BLOCK]) -> u64 {
    use std::arch::x86_64::{_mm_loadu_si128, _mm_movemask_epi8};

    let mut result = 0;
    for (i, flags) in flags.as_chunks::<16>().0.iter().enumerate() {
        // SAFETY: every x86-64 processor has SSE2, and `flags` is a reference to 16 bytes; the load may be unaligned.
        let part = unsafe { _mm_movemask_epi8(_mm_loadu_si128(flags.as_ptr().cast())) };
        result |= u64::from(part as u32) << (16 * i);
    }
    result
}

/// Collects the high bit of each byte. Every byte is 0 or 0xff.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn high_bits(flags: &[u8; BLOCK]) -> u64 {
    let mut result = 0;
    for (i, flags) in flags.as_chunks::<8>().0.iter().enumerate() {
        // The multiplication gathers the lowest bit of each byte in the highest byte.
        let word = u64::from_le_bytes(*flags) & 0x0101_0101_0101_0101;
        result |= (word.wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * i);
    }
    result
}

//! Classifies 64 bytes at once into bit masks, from which a scanner computes where chunks start.
//!
//! There are three ways to compute a mask, and all give the same result: portable code, AVX2 and AVX-512.

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
    /// `\0` to `\x1f`, and `\x7f`.
    pub controls: u64,
    /// The bytes of non-ASCII characters.
    pub non_ascii: u64,
}

impl Block {
    /// # Safety
    /// See `Masks::between`.
    #[inline(always)]
    pub unsafe fn new<M: Masks>(bytes: &[u8; BLOCK]) -> Self {
        // SAFETY: the caller has made sure of it.
        unsafe {
            let upper = M::between::<b'A', b'Z'>(bytes);
            let lower = M::between::<b'a', b'z'>(bytes);
            let numbers = M::between::<b'0', b'9'>(bytes);
            let spaces = M::between::<b' ', b' '>(bytes);
            let white = M::between::<b'\t', b'\r'>(bytes) | spaces;
            let non_ascii = M::between::<0x80, 0xff>(bytes);
            Self {
                upper,
                lower,
                numbers,
                spaces,
                white,
                newlines: M::between::<b'\n', b'\n'>(bytes) | M::between::<b'\r', b'\r'>(bytes),
                symbols: !(upper | lower | numbers | white | non_ascii),
                apostrophes: M::between::<b'\'', b'\''>(bytes),
                slashes: M::between::<b'/', b'/'>(bytes),
                controls: M::between::<0, 0x1f>(bytes) | M::between::<0x7f, 0x7f>(bytes),
                non_ascii,
            }
        }
    }

    /// Treats control characters that are not whitespace as if they were not ASCII.
    #[inline(always)]
    pub fn open_controls(&mut self) {
        self.non_ascii |= self.controls & self.symbols;
        self.symbols &= !self.controls;
    }

    #[inline(always)]
    pub fn letters(&self) -> u64 {
        self.upper | self.lower
    }
}

/// A way to compute masks.
///
/// # Safety
/// `between` must return the mask that it describes. `Scan` takes the bytes outside of `between::<0x80, 0xff>` for
/// ASCII characters, and cuts text there without checks.
pub unsafe trait Masks {
    /// Returns a mask of the bytes from `FIRST` to `LAST`: bit `i` is set if and only if byte `i` is one of them.
    ///
    /// # Safety
    /// The processor must support the instructions that the type is named after.
    unsafe fn between<const FIRST: u8, const LAST: u8>(bytes: &[u8; BLOCK]) -> u64;
}

/// Runs on every processor. The compiler vectorizes the loop.
pub struct Portable;

// SAFETY: each flag is set by a comparison of its byte, and `high_bits` collects the flags in order.
unsafe impl Masks for Portable {
    #[inline(always)]
    unsafe fn between<const FIRST: u8, const LAST: u8>(bytes: &[u8; BLOCK]) -> u64 {
        let mut flags = [0; BLOCK];
        for (flag, &byte) in flags.iter_mut().zip(bytes) {
            *flag = if byte.wrapping_sub(FIRST) <= LAST - FIRST { 0xff } else { 0 };
        }
        high_bits(&flags)
    }
}

/// For code that is compiled for AVX2.
#[cfg(target_arch = "x86_64")]
pub struct Avx2;

#[cfg(target_arch = "x86_64")]
// SAFETY: `byte - FIRST` wraps around, so it is at most `LAST - FIRST` only for bytes from `FIRST` to `LAST`. The lower
// half of the block gives the lower 32 bits.
unsafe impl Masks for Avx2 {
    #[inline(always)]
    unsafe fn between<const FIRST: u8, const LAST: u8>(bytes: &[u8; BLOCK]) -> u64 {
        use std::arch::x86_64::{
            _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_min_epu8, _mm256_movemask_epi8, _mm256_set1_epi8,
            _mm256_sub_epi8,
        };
        let mut result = 0;
        for (i, half) in bytes.as_chunks::<32>().0.iter().enumerate() {
            // SAFETY: the caller has made sure that the processor supports AVX2. `half` is a reference to 32 bytes, and
            // the load may be unaligned.
            let part = unsafe {
                let above = _mm256_sub_epi8(_mm256_loadu_si256(half.as_ptr().cast()), _mm256_set1_epi8(FIRST as i8));
                let width = _mm256_set1_epi8((LAST - FIRST) as i8);
                _mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_min_epu8(above, width), above))
            };
            result |= u64::from(part as u32) << (32 * i);
        }
        result
    }
}

/// For code that is compiled for AVX-512BW.
#[cfg(target_arch = "x86_64")]
pub struct Avx512;

#[cfg(target_arch = "x86_64")]
// SAFETY: as for `Avx2`, with one bit for each of 64 bytes.
unsafe impl Masks for Avx512 {
    #[inline(always)]
    unsafe fn between<const FIRST: u8, const LAST: u8>(bytes: &[u8; BLOCK]) -> u64 {
        use std::arch::x86_64::{_mm512_cmple_epu8_mask, _mm512_loadu_si512, _mm512_set1_epi8, _mm512_sub_epi8};
        // SAFETY: the caller has made sure that the processor supports AVX-512BW. `bytes` is a reference to 64 bytes,
        // and the load may be unaligned.
        unsafe {
            let above = _mm512_sub_epi8(_mm512_loadu_si512(bytes.as_ptr().cast()), _mm512_set1_epi8(FIRST as i8));
            _mm512_cmple_epu8_mask(above, _mm512_set1_epi8((LAST - FIRST) as i8))
        }
    }
}

/// Collects the high bit of each byte. Every byte is 0 or 0xff.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn high_bits(flags: &[u8; BLOCK]) -> u64 {
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
pub fn high_bits(flags: &[u8; BLOCK]) -> u64 {
    let mut result = 0;
    for (i, flags) in flags.as_chunks::<8>().0.iter().enumerate() {
        // The multiplication gathers the lowest bit of each byte in the highest byte.
        let word = u64::from_le_bytes(*flags) & 0x0101_0101_0101_0101;
        result |= (word.wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * i);
    }
    result
}

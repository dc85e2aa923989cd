//! A chunk as a number of fixed size: the key of the core's hash tables.
//!
//! A general-purpose map stores a pointer and a length for each key and follows the pointer for each comparison. But
//! nine in ten chunks are at most 15 bytes long, so here a short chunk is its own key: 15 bytes and the length in 16
//! bytes, compared as two words. Longer chunks are compared only if their hashes are equal.

use crate::table::hash::Seeds;

/// Marks the key of a long chunk: the highest bit of `hi`.
pub const LONG: u64 = 1 << 63;
/// The length of the longest chunk that is its own key.
pub const SHORT_MAX: usize = 15;
/// A chunk in the form in which slots are compared.
#[derive(Clone, Copy, Default)]
pub struct Key {
    /// Short chunk: its first eight bytes. Long chunk: `u64::MAX`, or in a slot its offset in an arena.
    pub lo: u64,
    /// Short chunk: seven more bytes, and its length in the highest byte. Long chunk: `LONG` and its hash.
    pub hi: u64,
    /// 56 bits.
    pub hash: u64,
}

impl Key {
    pub fn of(chunk: &[u8]) -> Self {
        debug_assert!(!chunk.is_empty());
        if chunk.len() > SHORT_MAX {
            let hash = long_hash(chunk);
            // No arena offset is this large, so the bytes of a long chunk are always compared.
            return Self { lo: u64::MAX, hi: LONG | hash, hash };
        }
        let mut window = [0; 16];
        window[..chunk.len()].copy_from_slice(chunk);
        Self::of_short(&window, chunk.len(), Seeds::get())
    }

    /// Returns the key of a chunk of at most `SHORT_MAX` bytes, which `window` starts with. The bytes after it are
    /// ignored.
    #[inline(always)]
    pub fn of_short(window: &[u8; 16], len: usize, seeds: Seeds) -> Self {
        let bytes = u128::from_le_bytes(*window) & MASKS[len & SHORT_MAX];
        let (lo, hi) = (bytes as u64, (bytes >> 64) as u64 | (len as u64) << 56);
        Self { lo, hi, hash: seeds.fold(lo, hi) >> 8 }
    }

    /// Returns the key that a slot contains.
    #[inline(always)]
    pub fn of_slot(lo: u64, hi: u64) -> Self {
        match hi & LONG {
            0 => Self { lo, hi, hash: Seeds::get().fold(lo, hi) >> 8 },
            _ => Self { lo: u64::MAX, hi, hash: hi & !LONG },
        }
    }
}
/// Reads eight bytes, little endian.
#[inline(always)]
pub fn word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
}

/// `MASKS[n]` keeps the first `n` of 16 bytes.
const MASKS: [u128; SHORT_MAX + 1] = {
    let mut masks = [0; SHORT_MAX + 1];
    let mut n = 1;
    while n <= SHORT_MAX {
        masks[n] = u128::MAX >> (128 - 8 * n);
        n += 1;
    }
    masks
};

#[inline(never)]
fn long_hash(chunk: &[u8]) -> u64 {
    let seeds = Seeds::get();
    let mut hash = chunk.len() as u64;
    for block in chunk.chunks_exact(8) {
        hash = seeds.fold(hash, word(block));
    }
    seeds.fold(seeds.fold(hash, word(&chunk[chunk.len() - 8..])), LONG) >> 8
}

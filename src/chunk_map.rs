//! `ChunkMap`: a hash map from chunks (byte strings, never empty) to `u64`, for the three hot look-ups of
//! the core: counting chunks, finding a chunk in the vocabulary, and remembering how a chunk was encoded.
//!
//! A general map keeps a pointer and a length for each key and follows it for each comparison. Nine in ten
//! chunks are at most 15 bytes long, so here a short key *is* its slot: 15 bytes and the length in one
//! `u128`, compared as two words. Longer keys live in an arena and are compared only where 56 bits of
//! their hash agree. There is no removal.

use crate::error::Result;
use crate::prefetch::prefetch;

const LONG: u64 = 0xFF << 56;
const SHORT_MAX: usize = 15;

#[derive(Clone, Copy, Default)]
struct Slot {
    lo: u64,
    /// Top byte: the length of a short key, or 0xFF for a long one; 0 marks an empty slot.
    hi: u64,
    value: u64,
}

#[derive(Clone, Default)]
pub struct ChunkMap {
    slots: Vec<Slot>,
    /// Long keys, each after its length (8 bytes, little endian).
    arena: Vec<u8>,
    len: usize,
}

/// A chunk in the form in which it is compared. For a long one `lo` is free for its place in the arena.
#[derive(Clone, Copy, Default)]
pub struct Key {
    lo: u64,
    hi: u64,
    hash: u64,
}

fn word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
}

fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a ^ 0x9E37_79B9_7F4A_7C15) * u128::from(b ^ 0xD6E8_FEB8_6659_FD93);
    product as u64 ^ (product >> 64) as u64
}

/// What to keep of 16 bytes for a key of so many.
const MASKS: [u128; SHORT_MAX + 1] = {
    let mut masks = [0; SHORT_MAX + 1];
    let mut n = 1;
    while n <= SHORT_MAX {
        masks[n] = u128::MAX >> (128 - 8 * n);
        n += 1;
    }
    masks
};

#[inline]
pub fn key(chunk: &[u8]) -> Key {
    key_within(chunk, chunk)
}

/// The key of `chunk`, which lies within `text`: what follows it there may be read along, and masked out, so that
/// a short key is one load of any length.
#[inline(always)]
pub fn key_within(text: &[u8], chunk: &[u8]) -> Key {
    let n = chunk.len();
    debug_assert!(n > 0);
    if n > SHORT_MAX {
        let hash = long_hash(chunk);
        // No place in the arena is so large: `lo` alone never makes a long key equal.
        return Key { lo: u64::MAX, hi: LONG | hash >> 8, hash };
    }
    let start = chunk.as_ptr() as usize - text.as_ptr() as usize;
    let bytes = match text.get(start..start + 16) {
        Some(window) => u128::from_le_bytes(window.try_into().expect("16 bytes")) & MASKS[n],
        None => {
            let mut padded = [0; 16];
            padded[..n].copy_from_slice(chunk);
            u128::from_le_bytes(padded)
        }
    };
    let (lo, hi) = (bytes as u64, (bytes >> 64) as u64 | (n as u64) << 56);
    Key { lo, hi, hash: fold(lo, hi) }
}

#[cold]
fn long_hash(chunk: &[u8]) -> u64 {
    let mut hash = chunk.len() as u64;
    for block in chunk.chunks_exact(8) {
        hash = fold(hash, word(block));
    }
    fold(fold(hash, word(&chunk[chunk.len() - 8..])), LONG)
}

impl ChunkMap {
    pub fn with_capacity(chunks: usize) -> Self {
        let mut map = Self::default();
        map.resize((chunks + chunks / 2).max(64).next_power_of_two());
        map
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    pub fn get(&self, chunk: &[u8]) -> Option<u64> {
        self.get_key(chunk, key(chunk))
    }

    #[inline]
    pub fn get_key(&self, chunk: &[u8], key: Key) -> Option<u64> {
        if self.slots.is_empty() {
            return None;
        }
        let slot = &self.slots[self.find(chunk, key)];
        (slot.hi != 0).then_some(slot.value)
    }

    /// The value of `chunk`, put in as 0 if it is new.
    #[inline]
    pub fn entry(&mut self, chunk: &[u8]) -> &mut u64 {
        self.entry_key(chunk, key(chunk))
    }

    #[inline]
    pub fn entry_key(&mut self, chunk: &[u8], key: Key) -> &mut u64 {
        if self.slots.is_empty() {
            self.resize(64);
        }
        let mut at = self.find(chunk, key);
        if self.slots[at].hi == 0 {
            at = self.insert(at, chunk, key);
        }
        &mut self.slots[at].value
    }

    /// Says that `key` will be looked for soon.
    #[inline]
    fn prefetch(&self, key: Key) {
        if !self.slots.is_empty() {
            prefetch(&self.slots, key.hash as usize & (self.slots.len() - 1));
        }
    }

    /// The slot of `chunk`, or the empty one where it belongs.
    #[inline]
    fn find(&self, chunk: &[u8], key: Key) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = key.hash as usize & mask;
        loop {
            let slot = &self.slots[at & mask];
            if slot.hi == key.hi && (slot.lo == key.lo || key.hi >= LONG && self.long(slot.lo) == chunk) || slot.hi == 0
            {
                return at & mask;
            }
            at += 1;
        }
    }

    #[cold]
    fn insert(&mut self, mut at: usize, chunk: &[u8], key: Key) -> usize {
        if self.len * 4 >= self.slots.len() * 3 {
            self.resize(self.slots.len() * 2);
            at = self.find(chunk, key);
        }
        let mut lo = key.lo;
        if key.hi >= LONG {
            lo = self.arena.len() as u64;
            self.arena.extend_from_slice(&(chunk.len() as u64).to_le_bytes());
            self.arena.extend_from_slice(chunk);
        }
        self.slots[at] = Slot { lo, hi: key.hi, value: 0 };
        self.len += 1;
        at
    }

    fn long(&self, place: u64) -> &[u8] {
        let start = place as usize + 8;
        let len = word(&self.arena[start - 8..start]) as usize;
        &self.arena[start..start + len]
    }

    fn resize(&mut self, slots: usize) {
        let old = std::mem::replace(&mut self.slots, vec![Slot::default(); slots]);
        let mask = slots - 1;
        for slot in old.into_iter().filter(|slot| slot.hi != 0) {
            let mut at = self.hash(&slot) as usize & mask;
            while self.slots[at].hi != 0 {
                at = (at + 1) & mask;
            }
            self.slots[at] = slot;
        }
    }

    /// Calls `each` with every chunk and its value, in no particular order, until it fails.
    pub fn for_each(&self, each: impl FnMut(&[u8], u64) -> Result<()>) -> Result<()> {
        self.for_each_in(0, 1, each)
    }

    /// The same for one of so many shares: each chunk is in one of them, whatever map it is in.
    pub fn for_each_in(&self, share: u64, shares: u64, mut each: impl FnMut(&[u8], u64) -> Result<()>) -> Result<()> {
        self.slots.iter().filter(|slot| slot.hi != 0).try_for_each(|slot| {
            // Not the low bits of the hash, by which a map finds its slots.
            if shares > 1 && (self.hash(slot) >> 32) % shares != share {
                return Ok(());
            }
            if slot.hi >= LONG {
                return each(self.long(slot.lo), slot.value);
            }
            let bytes = (u128::from(slot.lo) | u128::from(slot.hi) << 64).to_le_bytes();
            each(&bytes[..(slot.hi >> 56) as usize], slot.value)
        })
    }

    fn hash(&self, slot: &Slot) -> u64 {
        if slot.hi >= LONG { long_hash(self.long(slot.lo)) } else { fold(slot.lo, slot.hi) }
    }
}

/// How many chunks are looked up together.
const AHEAD: usize = 16;

/// Chunks of a text that are about to be looked up. Their slots are fetched in the meantime: a map of many chunks
/// does not fit into any cache.
pub struct Pending<'t> {
    text: &'t [u8],
    chunks: [(Key, &'t [u8]); AHEAD],
    len: usize,
}

impl<'t> Pending<'t> {
    pub fn new(text: &'t str) -> Self {
        Self { text: text.as_bytes(), chunks: [(Key::default(), &[]); AHEAD], len: 0 }
    }

    /// Adds a chunk; true if no more can be added before `take`.
    #[inline]
    pub fn add(&mut self, chunk: &'t str, map: &ChunkMap) -> bool {
        let key = key_within(self.text, chunk.as_bytes());
        map.prefetch(key);
        self.chunks[self.len] = (key, chunk.as_bytes());
        self.len += 1;
        self.len == AHEAD
    }

    /// The chunks added, in their order.
    #[inline]
    pub fn take(&mut self) -> &[(Key, &'t [u8])] {
        &self.chunks[..std::mem::take(&mut self.len)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn agrees_with_std_for_every_length() {
        let mut map = ChunkMap::default();
        let mut expected: HashMap<Vec<u8>, u64> = HashMap::new();
        for n in 1..40usize {
            // Keys that differ in one byte only, zero bytes included: a short key must not equal its padding.
            for i in 0..n {
                for byte in [0u8, 1, 255] {
                    let mut chunk = vec![0u8; n];
                    chunk[i] = byte;
                    *map.entry(&chunk) += n as u64;
                    *expected.entry(chunk).or_default() += n as u64;
                }
            }
        }
        assert_eq!(map.len(), expected.len());
        let mut found = HashMap::new();
        map.for_each(|chunk, value| {
            assert!(found.insert(chunk.to_vec(), value).is_none());
            Ok(())
        })
        .expect("nothing fails");
        assert_eq!(found, expected);
        assert!(expected.iter().all(|(chunk, &value)| map.get(chunk) == Some(value)));
        assert_eq!(map.get(b"absent"), None);
        assert_eq!(ChunkMap::default().get(b"absent"), None);
    }
}

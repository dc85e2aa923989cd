//! `ChunkMap`: a hash map from chunks (byte strings, never empty) to `u64`, for the three hot look-ups of
//! the core: counting chunks, finding a chunk in the vocabulary, and remembering how a chunk was encoded.
//!
//! A general map keeps a pointer and a length for each key and follows it for each comparison. Nine in ten
//! chunks are at most 15 bytes long, so here a short key *is* its slot: 15 bytes and the length in one
//! `u128`, compared as two words. Longer keys live in an arena and are compared only where 56 bits of
//! their hash agree. There is no removal.

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
#[derive(Clone, Copy)]
pub struct Key {
    lo: u64,
    hi: u64,
    hash: u64,
}

fn word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
}

fn half(bytes: &[u8]) -> u64 {
    u64::from(u32::from_le_bytes(bytes.try_into().expect("four bytes")))
}

fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a ^ 0x9E37_79B9_7F4A_7C15) * u128::from(b ^ 0xD6E8_FEB8_6659_FD93);
    product as u64 ^ (product >> 64) as u64
}

#[inline]
pub fn key(chunk: &[u8]) -> Key {
    let n = chunk.len();
    debug_assert!(n > 0);
    // Two overlapping loads cover any length without a loop over its bytes.
    let (lo, hi) = match n {
        8..=SHORT_MAX => {
            let rest = if n == 8 { 0 } else { word(&chunk[n - 8..]) >> (8 * (16 - n)) };
            (word(&chunk[..8]), rest)
        }
        4..=7 => {
            let rest = half(&chunk[n - 4..]) >> (8 * (8 - n));
            (half(&chunk[..4]) | rest << 32, 0)
        }
        0..=3 => {
            let (first, middle, last) = (chunk[0], chunk[n / 2], chunk[n - 1]);
            (u64::from(first) | u64::from(middle) << (8 * (n / 2)) | u64::from(last) << (8 * (n - 1)), 0)
        }
        _ => return long_key(chunk),
    };
    let hi = hi | (n as u64) << 56;
    Key { lo, hi, hash: fold(lo, hi) }
}

#[cold]
fn long_key(chunk: &[u8]) -> Key {
    let mut hash = chunk.len() as u64;
    let mut blocks = chunk.chunks_exact(8);
    for block in &mut blocks {
        hash = fold(hash, word(block));
    }
    hash = fold(hash, word(&chunk[chunk.len() - 8..]));
    Key { lo: 0, hi: LONG | hash >> 8, hash: fold(hash, LONG) }
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
        if self.len * 4 >= self.slots.len() * 3 {
            self.resize((self.slots.len() * 2).max(64));
        }
        let at = self.find(chunk, key);
        if self.slots[at].hi == 0 {
            self.insert(at, chunk, key);
        }
        &mut self.slots[at].value
    }

    /// The slot of `chunk`, or the empty one where it belongs.
    #[inline]
    fn find(&self, chunk: &[u8], key: Key) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = key.hash as usize & mask;
        loop {
            let slot = &self.slots[at];
            if slot.hi == key.hi
                && (slot.lo == key.lo || key.hi >= LONG)
                && (key.hi < LONG || self.long(slot.lo) == chunk)
                || slot.hi == 0
            {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    fn insert(&mut self, at: usize, chunk: &[u8], key: Key) {
        let mut lo = key.lo;
        if key.hi >= LONG {
            lo = self.arena.len() as u64;
            self.arena.extend_from_slice(&(chunk.len() as u64).to_le_bytes());
            self.arena.extend_from_slice(chunk);
        }
        self.slots[at] = Slot { lo, hi: key.hi, value: 0 };
        self.len += 1;
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
            let hash = if slot.hi >= LONG { long_key(self.long(slot.lo)).hash } else { fold(slot.lo, slot.hi) };
            let mut at = hash as usize & mask;
            while self.slots[at].hi != 0 {
                at = (at + 1) & mask;
            }
            self.slots[at] = slot;
        }
    }

    /// Calls `each` with every chunk and its value, in no particular order.
    pub fn for_each(&self, mut each: impl FnMut(&[u8], u64)) {
        for slot in self.slots.iter().filter(|slot| slot.hi != 0) {
            if slot.hi >= LONG {
                each(self.long(slot.lo), slot.value);
            } else {
                let bytes = (u128::from(slot.lo) | u128::from(slot.hi) << 64).to_le_bytes();
                each(&bytes[..(slot.hi >> 56) as usize], slot.value);
            }
        }
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
        map.for_each(|chunk, value| assert!(found.insert(chunk.to_vec(), value).is_none()));
        assert_eq!(found, expected);
        assert!(expected.iter().all(|(chunk, &value)| map.get(chunk) == Some(value)));
        assert_eq!(map.get(b"absent"), None);
        assert_eq!(ChunkMap::default().get(b"absent"), None);
    }
}

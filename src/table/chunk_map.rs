//! `ChunkMap`: a hash map from chunks (non-empty byte strings) to `u64`, for counting chunks and looking up tokens.
//!
//! Short chunks are stored in their slots, and long ones in an arena: see `chunk_key`. The table uses open addressing
//! with linear probing; its size is a power of two. Entries cannot be removed.

use std::iter::StepBy;
use std::ops::Range;

use crate::error::{OutOfMemory, try_with_capacity};
use crate::split::LOOKUP_GROUP;
use crate::table::chunk_key::{Key, LONG, SHORT_MAX, word};
use crate::table::prefetch::prefetch;

type Result<T> = std::result::Result<T, OutOfMemory>;

#[derive(Clone, Copy, Default)]
struct Slot {
    /// `Key::lo` and `Key::hi`, little endian: the bytes of a short key, in order. All zero in an empty slot.
    key: [u8; 16],
    value: u64,
}

impl Slot {
    #[inline(always)]
    fn lo(&self) -> u64 {
        word(&self.key[..8])
    }

    #[inline(always)]
    fn hi(&self) -> u64 {
        word(&self.key[8..])
    }

    #[inline(always)]
    fn key(&self) -> Key {
        Key::of_slot(self.lo(), self.hi())
    }
}

#[derive(Clone, Default)]
pub struct ChunkMap {
    slots: Vec<Slot>,
    /// The long keys, each preceded by its length (8 bytes, little endian).
    arena: Vec<u8>,
    len: usize,
}

/// A number that sorts as the chunk's bytes do. It contains all of a short chunk and its length, so a chunk sorts
/// before the chunks it is a prefix of. For a long chunk, it contains only the first 15 bytes: ties must be settled
/// elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sortable(u128);

impl Sortable {
    /// Returns a buffer and the length of the chunk at its start, or `None` for a long chunk.
    #[inline(always)]
    pub fn short(self) -> Option<([u8; 16], usize)> {
        let len = self.0 as u8 as usize;
        (len <= SHORT_MAX).then(|| (self.0.to_be_bytes(), len))
    }
}

impl ChunkMap {
    pub fn with_capacity(chunks: usize) -> Result<Self> {
        let mut map = Self::default();
        map.reserve(chunks)?;
        Ok(map)
    }

    /// Makes room for `chunks` chunks in total.
    pub fn reserve(&mut self, chunks: usize) -> Result<()> {
        let slots = (chunks + chunks / 2).max(64).next_power_of_two();
        if slots > self.slots.len() { self.resize(slots) } else { Ok(()) }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the number of bytes that the map has allocated.
    pub fn memory(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>() + self.arena.capacity()
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline(always)]
    pub fn get(&self, chunk: &[u8]) -> Option<u64> {
        self.get_with_key(chunk, Key::of(chunk))
    }

    #[inline(always)]
    pub fn get_with_key(&self, chunk: &[u8], key: Key) -> Option<u64> {
        if self.slots.is_empty() {
            return None;
        }
        let slot = &self.slots[self.find(chunk, key)];
        (slot.hi() != 0).then_some(slot.value)
    }

    /// Returns the value of `chunk`, after inserting it with the value 0 if it is new.
    #[inline(always)]
    pub fn entry(&mut self, chunk: &[u8]) -> Result<&mut u64> {
        self.entry_with_key(chunk, Key::of(chunk))
    }

    #[inline(always)]
    pub fn entry_with_key(&mut self, chunk: &[u8], key: Key) -> Result<&mut u64> {
        if self.slots.is_empty() {
            self.resize(64)?;
        }
        let mut at = self.find(chunk, key);
        if self.slots[at].hi() == 0 {
            at = self.insert(at, chunk, key)?;
        }
        Ok(&mut self.slots[at].value)
    }

    /// Starts loading the slot of `key`, which will be looked up soon.
    #[inline(always)]
    pub fn prefetch(&self, key: Key) {
        if !self.slots.is_empty() {
            prefetch(&self.slots, key.hash as usize & (self.slots.len() - 1));
        }
    }

    /// Returns the slot of `chunk`, or the empty slot where it belongs.
    #[inline(always)]
    fn find(&self, chunk: &[u8], key: Key) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = key.hash as usize & mask;
        loop {
            let slot = &self.slots[at & mask];
            let (lo, hi) = (slot.lo(), slot.hi());
            if hi == key.hi && (lo == key.lo || hi >= LONG && self.long_chunk(lo) == chunk) || hi == 0 {
                return at & mask;
            }
            at += 1;
        }
    }

    #[cold]
    fn insert(&mut self, mut at: usize, chunk: &[u8], key: Key) -> Result<usize> {
        if self.len * 4 >= self.slots.len() * 3 {
            self.resize(self.slots.len() * 2)?;
            at = self.find(chunk, key);
        }
        let mut lo = key.lo;
        if key.hi >= LONG {
            lo = self.arena.len() as u64;
            let needed = chunk.len() + 8;
            self.arena.try_reserve(needed).map_err(|_| OutOfMemory(needed))?;
            self.arena.extend_from_slice(&(chunk.len() as u64).to_le_bytes());
            self.arena.extend_from_slice(chunk);
        }
        self.slots[at].key = (u128::from(lo) | u128::from(key.hi) << 64).to_le_bytes();
        self.len += 1;
        Ok(at)
    }

    /// Returns the long chunk at an arena offset, as given by `Entry::arena_offset`.
    pub fn long_chunk(&self, offset: u64) -> &[u8] {
        let start = offset as usize + 8;
        let len = word(&self.arena[start - 8..start]) as usize;
        &self.arena[start..start + len]
    }

    fn resize(&mut self, slots: usize) -> Result<()> {
        let mut larger = try_with_capacity(slots)?;
        larger.resize(slots, Slot::default());
        let old = std::mem::replace(&mut self.slots, larger);
        let mask = slots - 1;
        for slot in old.into_iter().filter(|slot| slot.hi() != 0) {
            let mut at = slot.key().hash as usize & mask;
            while self.slots[at].hi() != 0 {
                at = (at + 1) & mask;
            }
            self.slots[at] = slot;
        }
        Ok(())
    }

    /// Returns the number of slots, including empty ones.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Iterates over the occupied slots among `slots`. Long chunks are prefetched, since adjacent slots are far apart
    /// in the arena.
    pub fn entries(&self, slots: StepBy<Range<usize>>) -> impl Iterator<Item = Entry<'_>> {
        let mut later = slots.clone().skip(LOOKUP_GROUP);
        slots.filter_map(move |at| {
            if let Some(slot) = later.next().map(|at| &self.slots[at])
                && slot.hi() >= LONG
            {
                prefetch(&self.arena, slot.lo() as usize);
            }
            let slot = &self.slots[at];
            (slot.hi() != 0).then_some(Entry { map: self, slot })
        })
    }

    /// Returns the value in this map of a chunk from another map.
    #[inline(always)]
    pub fn get_entry(&self, entry: Entry) -> Option<u64> {
        self.get_with_key(entry.chunk(), entry.key())
    }
}

/// A chunk in a map, with its value.
#[derive(Clone, Copy)]
pub struct Entry<'a> {
    map: &'a ChunkMap,
    slot: &'a Slot,
}

impl<'a> Entry<'a> {
    #[inline(always)]
    pub fn chunk(&self) -> &'a [u8] {
        let hi = self.slot.hi();
        if hi >= LONG { self.map.long_chunk(self.slot.lo()) } else { &self.slot.key[..(hi >> 56) as usize] }
    }

    pub fn value(&self) -> u64 {
        self.slot.value
    }

    /// Returns where a long chunk is in the map's arena. Meaningless for a short chunk.
    pub fn arena_offset(&self) -> u64 {
        self.slot.lo()
    }

    pub fn sortable(&self) -> Sortable {
        let mut bytes = self.slot.key;
        if self.slot.hi() >= LONG {
            bytes[..SHORT_MAX].copy_from_slice(&self.chunk()[..SHORT_MAX]);
        }
        Sortable(u128::from_be_bytes(bytes))
    }

    #[inline(always)]
    pub fn key(&self) -> Key {
        self.slot.key()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn agrees_with_a_std_map_for_every_length() {
        let mut map = ChunkMap::default();
        let mut expected: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
        for n in 1..40usize {
            // Keys that differ in a single byte, including zero bytes: a short key must differ from a padded one.
            for i in 0..n {
                for byte in [0u8, 1, 255] {
                    let mut chunk = std::vec![0u8; n];
                    chunk[i] = byte;
                    *map.entry(&chunk).expect("enough memory") += n as u64;
                    *expected.entry(chunk).or_default() += n as u64;
                }
            }
        }
        assert_eq!(map.len(), expected.len());
        let chunk = |entry: &Entry| match entry.sortable().short() {
            Some((bytes, len)) => bytes[..len].to_vec(),
            None => map.long_chunk(entry.arena_offset()).to_vec(),
        };
        let mut sorted: Vec<_> = map.entries((0..map.slots()).step_by(1)).collect();
        assert!(sorted.iter().all(|&entry| map.get_entry(entry) == Some(entry.value())));
        assert!(sorted.iter().all(|entry| entry.chunk() == chunk(entry)));
        sorted.sort_by_key(|entry| (entry.sortable(), entry.sortable().short().is_none().then(|| chunk(entry))));
        let sorted: Vec<_> = sorted.iter().map(|entry| (chunk(entry), entry.value())).collect();
        assert_eq!(sorted, expected.clone().into_iter().collect::<Vec<_>>());
        assert!(expected.iter().all(|(chunk, &value)| map.get(chunk) == Some(value)));
        assert_eq!(map.get(b"absent"), None);
        assert_eq!(ChunkMap::default().get(b"absent"), None);
    }

    proptest! {
        /// Includes keys that all hash to 0, as an attacker who knew the seeds could choose them: slow, but correct.
        #[test]
        fn agrees_with_a_std_map(keys in vec((vec(any::<u8>(), 0..24), any::<bool>()), 1..300)) {
            let mut map = ChunkMap::default();
            let mut expected: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
            for (mut chunk, collides) in keys {
                if collides {
                    chunk.splice(0..0, 0x9E37_79B9_7F4A_7C15u64.to_le_bytes());
                    chunk.truncate(15);
                }
                if !chunk.is_empty() {
                    *map.entry(&chunk).expect("enough memory") += 1;
                    *expected.entry(chunk).or_default() += 1;
                }
            }
            prop_assert_eq!(map.len(), expected.len());
            prop_assert!(expected.iter().all(|(chunk, &value)| map.get(chunk) == Some(value)));
        }
    }
}

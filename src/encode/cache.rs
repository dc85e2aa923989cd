//! The ids of chunks that have been encoded: those in the vocabulary from the start, and others as they occur.
//!
//! Each thread uses a separate table, so that look-ups need no lock. After a call the tables return to a pool, from
//! which later calls take them.

use std::sync::Mutex;

use super::batch::Batch;
use crate::error::{OutOfMemory, try_reserve, try_with_capacity};
use crate::split::{Chunks, Spans};
use crate::table::chunk_key::{Key, LONG, word};
use crate::table::huge_pages::use_huge_pages;
use crate::table::prefetch::prefetch;

type Result<T> = std::result::Result<T, OutOfMemory>;

/// A table that would become larger than this is reset to the vocabulary.
const MAX_BYTES: usize = if cfg!(test) { 1 << 13 } else { 3 << 25 };
/// Threads use a larger vocabulary without copying it: its copies would leave no room for other chunks. That of 250,000
/// tokens is copied.
const MAX_COPIED_BYTES: usize = MAX_BYTES / 2;
/// Longer chunks are not cached.
const MAX_CHUNK_BYTES: usize = 1 << 12;
/// A thread that has encoded fewer bytes uses the vocabulary: copying it would take longer.
const MIN_OWN_BYTES: usize = if cfg!(test) { 1 << 5 } else { 1 << 17 };
/// The number of tables that the pool keeps for later calls.
const POOL_SIZE: usize = 32;

/// The number of ids that fit into a slot.
pub const INLINE_IDS: usize = 4;
/// The part of `Slot::hi` that contains the number of ids.
const COUNT: u64 = 7 << COUNT_SHIFT;
const COUNT_SHIFT: u32 = 60;
/// Instead of the number: the ids are in `EncodedChunks::spilled`, and the slot has their start and number.
const SPILLED: u64 = 7;

/// A chunk and its ids. The alignment keeps a slot within one line of the processor's cache.
#[repr(C, align(32))]
#[derive(Clone, Copy, Default)]
struct Slot {
    /// `Key::lo` of a short chunk, or the offset of a long chunk in the arena.
    lo: u64,
    /// `Key::hi`, and the number of ids in the bits of `COUNT`, which it does not use. Zero in an empty slot.
    hi: u64,
    ids: [u32; INLINE_IDS],
}

/// A hash table from chunks to their ids: like `ChunkMap`, but at most half full, because it is read far more often
/// than written to.
#[derive(Default)]
pub struct EncodedChunks {
    slots: Vec<Slot>,
    /// The long chunks, each preceded by its length (8 bytes, little endian).
    arena: Vec<u8>,
    spilled: Vec<u32>,
    len: usize,
}

impl EncodedChunks {
    pub fn with_capacity(chunks: usize) -> Result<Self> {
        let mut table = Self::default();
        table.resize((3 * chunks).next_power_of_two().max(64))?;
        Ok(table)
    }

    pub fn try_clone(&self) -> Result<Self> {
        fn copy<T: Copy>(values: &[T]) -> Result<Vec<T>> {
            let mut copy = try_with_capacity(values.len())?;
            use_huge_pages(&mut copy);
            copy.extend_from_slice(values);
            Ok(copy)
        }
        Ok(Self { slots: copy(&self.slots)?, arena: copy(&self.arena)?, spilled: copy(&self.spilled)?, len: self.len })
    }

    /// Starts loading the slot of `key`, which will be looked up soon.
    #[inline(always)]
    pub fn prefetch(&self, key: Key) {
        prefetch(&self.slots, key.hash as usize & (self.slots.len() - 1));
    }

    /// Returns the ids of a short chunk and their number, if they are in its slot.
    #[inline(always)]
    pub fn get_inline(&self, key: Key) -> Option<(&[u32; INLINE_IDS], usize)> {
        let mut at = key.hash as usize;
        loop {
            let slot = &self.slots[at & (self.slots.len() - 1)];
            if (slot.hi ^ key.hi) & !COUNT | slot.lo ^ key.lo == 0 {
                let count = slot.hi >> COUNT_SHIFT;
                return (count < SPILLED).then_some((&slot.ids, count as usize));
            }
            if slot.hi == 0 {
                return None;
            }
            at += 1;
        }
    }

    pub fn get(&self, chunk: &[u8], key: Key) -> Option<&[u32]> {
        let slot = &self.slots[self.find(chunk, key)];
        match slot.hi >> COUNT_SHIFT & SPILLED {
            0 => None,
            SPILLED => {
                let [start, len, ..] = slot.ids;
                Some(&self.spilled[start as usize..][..len as usize])
            }
            count => Some(&slot.ids[..count as usize]),
        }
    }

    /// Returns the slot of `chunk`, or the empty slot where it belongs.
    fn find(&self, chunk: &[u8], key: Key) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = key.hash as usize & mask;
        loop {
            let slot = &self.slots[at];
            let is_equal = (slot.hi ^ key.hi) & !COUNT == 0
                && (slot.lo == key.lo || key.hi & LONG != 0 && self.long_chunk(slot.lo) == chunk);
            if is_equal || slot.hi == 0 {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    #[cold]
    fn long_chunk(&self, offset: u64) -> &[u8] {
        let start = offset as usize + 8;
        let len = word(&self.arena[start - 8..start]) as usize;
        &self.arena[start..start + len]
    }

    /// Adds a chunk, unless it is there already.
    pub fn insert(&mut self, chunk: &[u8], key: Key, ids: &[u32]) -> Result<()> {
        if 2 * self.len >= self.slots.len() {
            self.resize(2 * self.slots.len())?;
        }
        let at = self.find(chunk, key);
        if self.slots[at].hi != 0 {
            return Ok(());
        }
        let mut slot = Slot { lo: key.lo, hi: key.hi | (ids.len() as u64) << COUNT_SHIFT, ids: [0; INLINE_IDS] };
        if ids.len() <= INLINE_IDS {
            slot.ids[..ids.len()].copy_from_slice(ids);
        } else {
            slot.hi = key.hi | SPILLED << COUNT_SHIFT;
            [slot.ids[0], slot.ids[1]] = [self.spilled.len() as u32, ids.len() as u32];
            try_reserve(&mut self.spilled, ids.len())?;
            self.spilled.extend_from_slice(ids);
        }
        if key.hi & LONG != 0 {
            slot.lo = self.arena.len() as u64;
            try_reserve(&mut self.arena, chunk.len() + 8)?;
            self.arena.extend_from_slice(&(chunk.len() as u64).to_le_bytes());
            self.arena.extend_from_slice(chunk);
        }
        self.slots[at] = slot;
        self.len += 1;
        Ok(())
    }

    fn resize(&mut self, size: usize) -> Result<()> {
        let mut larger = try_with_capacity(size)?;
        use_huge_pages(&mut larger);
        larger.resize(size, Slot::default());
        let old = std::mem::replace(&mut self.slots, larger);
        let mask = size - 1;
        for slot in old.into_iter().filter(|slot| slot.hi != 0) {
            let mut at = Key::of_slot(slot.lo, slot.hi & !COUNT).hash as usize & mask;
            while self.slots[at].hi != 0 {
                at = (at + 1) & mask;
            }
            self.slots[at] = slot;
        }
        Ok(())
    }

    /// Returns whether one more chunk could make the table too large.
    fn is_full(&self) -> bool {
        let growth = if 2 * self.len >= self.slots.len() { size_of_val(&self.slots[..]) } else { 0 };
        self.memory() + growth > MAX_BYTES
    }

    /// Returns the number of bytes that the table has allocated.
    fn memory(&self) -> usize {
        size_of_val(&self.slots[..]) + self.arena.capacity() + size_of::<u32>() * self.spilled.capacity()
    }
}

/// What a thread keeps from one call to the next: its table, and buffers.
#[derive(Default)]
pub struct ChunkCache {
    table: Option<EncodedChunks>,
    /// The bytes that this thread has encoded.
    bytes: usize,
    pub batch: Batch,
    /// At most one. The allocation of a `Box` would end the process on failure.
    pub spans: Vec<Spans>,
    /// Ids before phrases are found in them; empty between calls.
    pub marked: Vec<u32>,
}

impl ChunkCache {
    /// Prepares for a text of `bytes` bytes: copies `vocabulary` if that has become worthwhile.
    pub fn start(&mut self, bytes: usize, vocabulary: &EncodedChunks) -> Result<()> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.table.is_none() && self.bytes >= MIN_OWN_BYTES && vocabulary.memory() <= MAX_COPIED_BYTES {
            self.table = Some(vocabulary.try_clone()?);
        }
        Ok(())
    }

    /// Returns the table to look up chunks in, which is that of this thread or `vocabulary`, and the buffers.
    #[inline(always)]
    pub fn parts<'a>(&'a mut self, vocabulary: &'a EncodedChunks) -> (&'a EncodedChunks, &'a mut Batch) {
        (self.table.as_ref().unwrap_or(vocabulary), &mut self.batch)
    }

    /// Adds the chunks of the batch that were merged to the table of this thread, if it has one.
    pub fn insert_merged(&mut self, chunks: Chunks, vocabulary: &EncodedChunks) -> Result<()> {
        for (chunk, key, ids) in self.batch.merged(chunks).filter(|(chunk, ..)| chunk.len() <= MAX_CHUNK_BYTES) {
            if self.table.as_ref().is_some_and(EncodedChunks::is_full) {
                self.table = None; // first, so that there are never two
                self.table = Some(vocabulary.try_clone()?);
            }
            let Some(table) = &mut self.table else { break };
            table.insert(chunk, key, ids)?;
        }
        Ok(())
    }
}

/// The caches that are not in use.
///
/// Its locks are never waited for. If a process is forked while another thread holds a lock, the lock stays locked in
/// the child forever. A thread that does not get a lock skips the slot.
#[derive(Default)]
pub struct CachePool {
    pub(super) slots: [Mutex<Option<Box<ChunkCache>>>; POOL_SIZE],
}

impl CachePool {
    /// Takes a cache from the pool, or creates one. Dropping the guard returns it.
    pub fn take(&self) -> CacheGuard<'_> {
        let cache = self.slots.iter().find_map(|slot| slot.try_lock().ok()?.take());
        CacheGuard { cache: Some(cache.unwrap_or_default()), pool: self }
    }
}

/// A cache in use.
pub struct CacheGuard<'a> {
    cache: Option<Box<ChunkCache>>,
    pool: &'a CachePool,
}

impl CacheGuard<'_> {
    pub fn cache(&mut self) -> &mut ChunkCache {
        self.cache.as_mut().expect("only `drop` takes it")
    }
}

impl Drop for CacheGuard<'_> {
    fn drop(&mut self) {
        let free = self.pool.slots.iter().filter_map(|slot| slot.try_lock().ok()).find(|slot| slot.is_none());
        if let Some(mut slot) = free {
            *slot = self.cache.take();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// Otherwise it would be full from the start, and copied again for every chunk.
    #[test]
    fn a_large_vocabulary_is_not_copied() {
        let mut copied = [1, 200].into_iter().map(|chunks| {
            let mut cache = ChunkCache::default();
            let vocabulary = EncodedChunks::with_capacity(chunks).expect("enough memory");
            cache.start(MIN_OWN_BYTES, &vocabulary).expect("enough memory");
            cache.table.is_some()
        });
        assert_eq!((copied.next(), copied.next()), (Some(true), Some(false)));
    }

    proptest! {
        #[test]
        fn a_table_returns_what_was_inserted(
            entries in vec((vec(b'a'..=b'c', 1..24), vec(any::<u32>(), 1..9)), 0..200),
            absent in vec(b'a'..=b'd', 1..24),
        ) {
            let mut table = EncodedChunks::with_capacity(1).expect("enough memory");
            let mut expected: BTreeMap<Vec<u8>, Vec<u32>> = BTreeMap::new();
            for (chunk, ids) in entries {
                table.insert(&chunk, Key::of(&chunk), &ids).expect("enough memory");
                expected.entry(chunk).or_insert(ids);
            }
            let copy = table.try_clone().expect("enough memory");
            for (chunk, ids) in &expected {
                let key = Key::of(chunk);
                prop_assert_eq!(copy.get(chunk, key), Some(&ids[..]));
                let found = table.get_inline(key).map(|(ids, count)| &ids[..count]);
                let is_inline = chunk.len() < 16 && ids.len() <= INLINE_IDS;
                prop_assert_eq!(found, is_inline.then_some(&ids[..]));
            }
            if !expected.contains_key(&absent) {
                prop_assert_eq!(table.get(&absent, Key::of(&absent)), None);
                prop_assert!(table.get_inline(Key::of(&absent)).is_none());
            }
        }
    }
}

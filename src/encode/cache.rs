//! Caches of encoded chunks: chunk → ids.
//!
//! Each thread uses a cache of its own, so that look-ups need no lock. After a call the caches return to a pool, from
//! which later calls take them.

use std::sync::Mutex;

use crate::chunk_map::{ChunkMap, Key};
use crate::error::{Result, try_reserve};

/// A cache that reaches this many chunks or bytes is cleared.
const MAX_CHUNKS: usize = if cfg!(test) { 1 << 6 } else { 1 << 18 };
const MAX_BYTES: usize = 1 << 26;
/// Longer chunks are not cached.
pub const MAX_CHUNK_BYTES: usize = 1 << 12;
/// The number of caches that the pool keeps for later calls.
const POOL_SIZE: usize = 32;

/// The cache of one thread.
#[derive(Default)]
pub struct ChunkCache {
    /// chunk → span in `ids`: the start in the high 32 bits, the length in the low 32 bits.
    spans: ChunkMap,
    ids: Vec<u32>,
    /// Scratch space for the ranks of a chunk while it is merged.
    pub ranks: Vec<u32>,
}

impl ChunkCache {
    /// Returns the ids of a cached chunk.
    #[inline(always)]
    pub fn get(&self, chunk: &[u8], key: Key) -> Option<&[u32]> {
        let span = self.spans.get_with_key(chunk, key)?;
        let start = (span >> 32) as usize;
        Some(&self.ids[start..start + (span & 0xFFFF_FFFF) as usize])
    }

    pub fn insert(&mut self, chunk: &[u8], key: Key, ids: &[u32]) -> Result<()> {
        if self.is_full() {
            self.spans = ChunkMap::default();
            self.ids = Vec::new();
        }
        // Before the span is stored: a cache is still used after an error.
        try_reserve(&mut self.ids, ids.len())?;
        *self.spans.entry_with_key(chunk, key)? = (self.ids.len() as u64) << 32 | ids.len() as u64;
        self.ids.extend_from_slice(ids);
        Ok(())
    }

    fn is_full(&self) -> bool {
        let bytes = self.spans.memory() + size_of::<u32>() * self.ids.capacity();
        self.spans.len() >= MAX_CHUNKS || bytes >= MAX_BYTES
    }
}

/// The caches that are not in use.
///
/// Its locks are never waited for. If a process is forked while another thread holds a lock, the lock stays locked in
/// the child forever. A thread that does not get a lock skips the slot.
#[derive(Default)]
pub struct CachePool {
    pub(super) slots: [Mutex<Option<ChunkCache>>; POOL_SIZE],
}

impl CachePool {
    /// Takes a cache from the pool, or creates one. Dropping the guard returns it.
    pub fn take(&self) -> CacheGuard<'_> {
        let cache = self.slots.iter().find_map(|slot| slot.try_lock().ok()?.take());
        CacheGuard { cache: cache.unwrap_or_default(), pool: self }
    }
}

/// A cache in use.
pub struct CacheGuard<'a> {
    pub cache: ChunkCache,
    pool: &'a CachePool,
}

impl Drop for CacheGuard<'_> {
    fn drop(&mut self) {
        self.cache.ranks = Vec::new();
        let free = self.pool.slots.iter().filter_map(|slot| slot.try_lock().ok()).find(|slot| slot.is_none());
        if let Some(mut slot) = free {
            *slot = Some(std::mem::take(&mut self.cache));
        }
    }
}

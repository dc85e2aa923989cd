//! The core's only hash function: a folded multiply with two seeds.
//!
//! Keys come from texts and model files. If their author could predict which keys collide, they could make every table
//! take quadratic time. `randomize` therefore draws random seeds once per process. No result depends on the seeds.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static SEEDS: [AtomicU64; 2] = [AtomicU64::new(0x9E37_79B9_7F4A_7C15), AtomicU64::new(0xD6E8_FEB8_6659_FD93)];

pub type HashMap<K, V> = std::collections::HashMap<K, V, BuildHasherDefault<FoldHasher>>;
pub type HashSet<K> = std::collections::HashSet<K, BuildHasherDefault<FoldHasher>>;

/// Replaces the fixed seeds with random ones on the first call. Call it before any map is created: a map cannot find
/// its keys after the seeds change. The Python module calls it on import; the Rust tests keep the fixed seeds.
pub fn randomize() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let random = RandomState::new();
        for (i, seed) in SEEDS.iter().enumerate() {
            seed.store(random.hash_one(i) | 1, Relaxed);
        }
    });
}

/// The seeds of this process. Inner loops keep a copy, because the compiler does not hoist atomic loads out of loops.
#[derive(Clone, Copy)]
pub struct Seeds(u64, u64);

impl Seeds {
    #[inline(always)]
    pub fn get() -> Self {
        Self(SEEDS[0].load(Relaxed), SEEDS[1].load(Relaxed))
    }

    #[inline(always)]
    pub fn fold(self, a: u64, b: u64) -> u64 {
        let product = u128::from(a ^ self.0) * u128::from(b ^ self.1);
        product as u64 ^ (product >> 64) as u64
    }
}

/// `Seeds::fold` as a hasher for the standard library's maps. It is designed for integer keys.
#[derive(Default)]
pub struct FoldHasher(u64);

impl Hasher for FoldHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    #[inline]
    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        self.0 = Seeds::get().fold(self.0, value);
    }

    #[inline]
    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

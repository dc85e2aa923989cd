//! Merges several short chunks at once.
//!
//! Each merge has to wait for the look-ups that follow from the one before. Chunks do not depend on each other, so
//! while one waits, the processor merges the others.

use super::pair_ranks::{BORDER, PairRanks};

/// Chunks of at most this many bytes can be merged in lanes.
pub const MAX_BYTES: usize = 255;
/// The number of chunks that are merged at once.
const LANES: usize = 4;
const PLACE_BITS: u32 = 8;
/// At least as large as any entry of `Lane::pairs` that cannot be merged, and larger than all others.
const NO_PAIR: u32 = 1 << 30;

/// A chunk of fewer than `W` bytes that is being merged. A token is at the place of its first byte, and linked to its
/// neighbors. The place after the last byte contains `BORDER`, which merges with nothing; it is also the place before
/// the first byte, so that no token lacks a neighbor.
struct Lane<const W: usize> {
    /// For each place: the rank of the pair that starts there in the high bits, and the place in the low bits. The
    /// minimum of these numbers is the pair to merge, and computing it needs no branches.
    pairs: [u32; W],
    tokens: [u32; W],
    next: [u8; W],
    previous: [u8; W],
    n: usize,
    /// The index of the chunk.
    chunk: usize,
}

impl<const W: usize> Lane<W> {
    const EMPTY: Self =
        Self { pairs: [NO_PAIR; W], tokens: [BORDER; W], next: [0; W], previous: [0; W], n: 0, chunk: 0 };

    #[inline(always)]
    fn pack(rank: u32, place: usize) -> u32 {
        // Without the highest bit, the minimum is the same for signed numbers, for which SSE2 and AVX have
        // instructions.
        (rank << PLACE_BITS | place as u32) & (u32::MAX >> 1)
    }

    #[inline(always)]
    fn load(&mut self, index: usize, chunk: &[u8], byte_pairs: &[u32]) {
        debug_assert!(chunk.len() < W);
        self.pairs = [NO_PAIR; W];
        for (place, pair) in chunk.windows(2).enumerate() {
            let rank = byte_pairs[usize::from(pair[0]) << 8 | usize::from(pair[1])];
            self.pairs[place] = Self::pack(rank, place);
        }
        for place in 0..W {
            self.next[place] = (place as u8).wrapping_add(1);
            self.previous[place] = (place as u8).wrapping_sub(1);
        }
        self.previous[0] = chunk.len() as u8;
        for (token, &byte) in self.tokens.iter_mut().zip(chunk) {
            *token = u32::from(byte);
        }
        self.tokens[chunk.len()] = BORDER;
        (self.n, self.chunk) = (chunk.len(), index);
    }

    /// Merges a pair. Returns false if there is none to merge.
    #[inline(always)]
    fn step(&mut self, ranks: &PairRanks) -> bool {
        let least = self.pairs.iter().fold(i32::MAX, |least, &pair| least.min(pair as i32)) as u32;
        if least >= NO_PAIR {
            return false;
        }
        // Every place is below `W`; the masks let the compiler see it.
        let place = least as usize % W;
        let token = least >> PLACE_BITS;
        let last = usize::from(self.next[place]) % W;
        let after = usize::from(self.next[last]) % W;
        let before = usize::from(self.previous[place]) % W;
        self.tokens[place] = token;
        self.next[place] = after as u8;
        self.previous[after] = place as u8;
        self.pairs[last] = NO_PAIR;
        self.pairs[place] = Self::pack(ranks.get(token, self.tokens[after]), place);
        self.pairs[before] = Self::pack(ranks.get(self.tokens[before], token), before);
        true
    }

    /// Returns the tokens that are left when no pair can be merged.
    #[inline(always)]
    fn finish(&mut self) -> &[u32] {
        let (mut place, mut len) = (0, 0);
        while place < self.n {
            self.tokens[len % W] = self.tokens[place % W];
            place = usize::from(self.next[place % W]);
            len += 1;
        }
        &self.tokens[..len]
    }
}

/// The ranks of all pairs.
pub struct Ranks {
    /// (first byte, last byte) → rank
    pub byte_pairs: Vec<u32>,
    pub pairs: PairRanks,
}

/// Merges the chunks `chunk(0)` to `chunk(count - 1)`, each of at least one byte, and calls `done` with the index and
/// the ranks of each, in any order. Skips those of more than `MAX_BYTES` bytes.
pub fn merge_all<'t>(ranks: &Ranks, count: usize, chunk: impl Fn(usize) -> &'t [u8], done: impl FnMut(usize, &[u32])) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2") {
        // SAFETY: the processor supports these instructions. Without them: +9% instructions to encode new chunks.
        return unsafe { merge_all_avx2(ranks, count, chunk, done) };
    }
    merge_all_portably(ranks, count, chunk, done);
}

/// `merge_all_portably`, compiled for processors with AVX2 and BMI2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi2")]
fn merge_all_avx2<'t>(ranks: &Ranks, count: usize, chunk: impl Fn(usize) -> &'t [u8], done: impl FnMut(usize, &[u32])) {
    merge_all_portably(ranks, count, chunk, done);
}

#[inline(always)]
fn merge_all_portably<'t>(
    ranks: &Ranks,
    count: usize,
    chunk: impl Fn(usize) -> &'t [u8],
    mut done: impl FnMut(usize, &[u32]),
) {
    let shorter = |least: usize, end: usize| {
        (0..count).map(|index| (index, chunk(index))).filter(move |(_, chunk)| (least..end).contains(&chunk.len()))
    };
    merge::<16>(ranks, shorter(1, 16), &mut done);
    merge::<64>(ranks, shorter(16, 64), &mut done);
    merge::<256>(ranks, shorter(64, 256), &mut done);
}

/// Merges chunks of fewer than `W` bytes.
#[inline(always)]
fn merge<'t, const W: usize>(
    ranks: &Ranks,
    chunks: impl Iterator<Item = (usize, &'t [u8])>,
    done: &mut impl FnMut(usize, &[u32]),
) {
    let mut chunks = chunks.peekable();
    if chunks.peek().is_none() {
        return;
    }
    let mut lanes = [const { Lane::<W>::EMPTY }; LANES];
    let mut live = 0;
    for (lane, (index, chunk)) in lanes.iter_mut().zip(&mut chunks) {
        lane.load(index, chunk, &ranks.byte_pairs);
        live += 1;
    }
    while live > 0 {
        for lane in &mut lanes {
            if lane.step(&ranks.pairs) || lane.n == 0 {
                continue;
            }
            done(lane.chunk, lane.finish());
            match chunks.next() {
                Some((index, chunk)) => lane.load(index, chunk, &ranks.byte_pairs),
                None => {
                    lane.n = 0;
                    live -= 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::encode::tests::{merges, ranked};

    proptest! {
        /// The first runs on this processor, and the second on processors without AVX2.
        #[test]
        fn both_instruction_sets_agree(merges in merges(), chunks in vec(vec(b'a'..=b'd', 1..300), 0..20)) {
            let merges = &ranked(&merges).merges;
            let chunk = |index: usize| &chunks[index][..];
            let (mut fast, mut portable) = (vec![Vec::new(); chunks.len()], vec![Vec::new(); chunks.len()]);
            merge_all(&merges.ranks, chunks.len(), chunk, |index, ranks| fast[index] = ranks.to_vec());
            merge_all_portably(&merges.ranks, chunks.len(), chunk, |index, ranks| portable[index] = ranks.to_vec());
            prop_assert_eq!(&fast, &portable);
            for (chunk, ranks) in chunks.iter().zip(fast) {
                prop_assert_eq!(ranks.is_empty(), chunk.len() > MAX_BYTES);
            }
        }
    }
}

//! Phrases: tokens for sequences of chunks, such as " of the".
//!
//! A phrase replaces neighboring chunks that are single tokens. At each such chunk, the longest phrase that starts
//! there is taken, from left to right. Whether a chunk is a single token is known only while it is looked up, so the
//! ids of such chunks are marked (`WHOLE`), and phrases are found in the marked ids.

use crate::error::{Cancel, Error, Result, try_reserve, try_with_capacity};
use crate::table::hash::{HashMap, Seeds};
use crate::table::prefetch::prefetch;

/// Marks an id that is a whole chunk.
pub const WHOLE: u32 = 1 << 31;
/// Marks an id whose chunk starts where the one before it ends.
pub const TOUCHES: u32 = 1 << 30;
/// The bits of an id (see `MAX_ID`).
pub const ID: u32 = TOUCHES - 1;
/// The number of ids that are examined at once, between two checks of `Cancel`.
const BLOCK: usize = 64;

/// A phrase: the ids of its chunks, and its own.
pub type Phrase = (Vec<u32>, u32);

/// All phrases as a tree: the children of a node are the chunks that can follow.
pub struct Phrases {
    /// (node, id of the chunk that follows) → edge. Open addressing; the size is a power of two.
    edges: Vec<Edge>,
    /// Which pairs of chunks start a phrase: bits at the hashes of pairs. Most pairs do not, and this is small enough
    /// for the processor's cache.
    starts: Vec<u64>,
    factors: [u32; 2],
    shift: u32,
    seeds: Seeds,
}

#[derive(Clone, Copy)]
struct Edge {
    node: u32,
    id: u32,
    /// Which chunks may follow in longer phrases: a bit for each (see `next_bit`).
    next: u32,
    /// The phrase that ends here, or `NONE`.
    phrase: u32,
}

const NONE: u32 = u32::MAX;
const EMPTY: Edge = Edge { node: NONE, id: 0, next: 0, phrase: NONE };

impl Phrases {
    /// Returns `None` if there are no phrases. Each must have two chunks or more.
    pub fn new(phrases: &[Phrase]) -> Result<Option<Self>> {
        if phrases.is_empty() {
            return Ok(None);
        }
        /// An edge while the tree is built: its number, what follows, and its phrase.
        type Built = (u32, u32, u32);
        // The node after the first chunk is named like the chunk. Other nodes are named like the edges to them.
        let mut tree: HashMap<(u32, u32), Built> = HashMap::default();
        for (ids, phrase) in phrases {
            let [first, rest @ ..] = &ids[..] else { return Err(Error::invalid("a phrase is empty")) };
            let mut node = *first;
            for (place, &id) in rest.iter().enumerate() {
                let number = tree.len() as u32;
                let edge = tree.entry((node, id)).or_insert((number, 0, NONE));
                node = WHOLE | edge.0;
                match rest.get(place + 1) {
                    Some(&next) => edge.1 |= next_bit(next),
                    None => edge.2 = *phrase,
                }
            }
        }
        let size = (2 * tree.len()).next_power_of_two();
        let mut edges = try_with_capacity(size)?;
        edges.resize(size, EMPTY);
        let mut starts = try_with_capacity(size / 8 + 2)?;
        starts.resize((size / 8).max(2), 0u64);
        let seeds = Seeds::get();
        let factors = [0, 1].map(|n| seeds.fold(n, n) as u32 | 1);
        let shift = 32 - (64 * starts.len()).trailing_zeros();
        let mut phrases = Self { edges, starts, factors, shift, seeds };
        let mut built: Vec<((u32, u32), Built)> = tree.into_iter().collect();
        built.sort_unstable_by_key(|(_, edge)| edge.0); // an edge comes after the one that leads to it
        let mut slots = try_with_capacity(built.len())?;
        for ((node, id), (_, next, phrase)) in built {
            let node = if node < WHOLE { node } else { WHOLE | slots[(node ^ WHOLE) as usize] };
            if node < WHOLE {
                let bit = phrases.start_bit(node, id) as usize;
                phrases.starts[bit / 64] |= 1 << (bit % 64);
            }
            let mut at = phrases.hash(node, id) & (size - 1);
            while phrases.edges[at].node != NONE {
                at = (at + 1) & (size - 1);
            }
            phrases.edges[at] = Edge { node, id, next, phrase };
            slots.push(at as u32);
        }
        Ok(Some(phrases))
    }

    #[inline(always)]
    fn hash(&self, node: u32, id: u32) -> usize {
        self.seeds.fold(u64::from(node), u64::from(id)) as usize
    }

    /// Returns an edge and its place.
    #[inline(always)]
    fn edge(&self, node: u32, id: u32) -> Option<(usize, &Edge)> {
        let mut at = self.hash(node, id) & (self.edges.len() - 1);
        loop {
            let edge = &self.edges[at];
            if (edge.node ^ node) | (edge.id ^ id) == 0 {
                return Some((at, edge));
            }
            if edge.node == NONE {
                return None;
            }
            at = (at + 1) & (self.edges.len() - 1);
        }
    }

    /// Returns the place of a pair of chunks in `starts`.
    #[inline(always)]
    fn start_bit(&self, first: u32, second: u32) -> u32 {
        first.wrapping_mul(self.factors[0]).wrapping_add(second.wrapping_mul(self.factors[1])) >> self.shift
    }

    /// Appends `marked` to `ids`, with phrases in place of their chunks and without marks. `marked` ends with a value
    /// that does not count.
    ///
    /// The work is done in blocks and in steps, most of them without branches that depend on the text: which chunks may
    /// start a phrase, the longest phrase at each of those, and which ids remain.
    pub fn replace(&self, marked: &[u32], ids: &mut Vec<u32>, cancel: &Cancel) -> Result<()> {
        let len = marked.len() - 1;
        try_reserve(ids, len)?;
        let (mut read, mut covered) = (0, 0);
        while read < len {
            cancel.check()?;
            let block = &marked[read..=len.min(read + BLOCK)];
            let mut bits = [0; BLOCK];
            for (bit, pair) in bits.iter_mut().zip(block.windows(2)) {
                *bit = self.start_bit(pair[0] & ID, pair[1] & ID);
            }
            let mut starts = 0u64;
            for (place, (&bit, pair)) in bits.iter().zip(block.windows(2)).enumerate() {
                let are_neighbors = (pair[0] & pair[1] & pair[1] << 1) >> 31;
                // SAFETY: `shift` leaves as many bits as `starts` has (see `new`). Checked: +2% instructions in
                // encoding.
                let word = unsafe { *self.starts.get_unchecked(bit as usize / 64) };
                starts |= (word >> (bit % 64) & u64::from(are_neighbors)) << place;
            }
            let mut rest = starts;
            while rest != 0 {
                let place = rest.trailing_zeros() as usize;
                prefetch(&self.edges, self.hash(block[place] & ID, block[place + 1] & ID) & (self.edges.len() - 1));
                rest &= rest - 1;
            }
            // Phrases at different places do not depend on each other, so the processor finds several at once.
            let (mut tokens, mut sizes) = ([0; BLOCK], [0; BLOCK]);
            for (token, id) in tokens.iter_mut().zip(block) {
                *token = id & ID;
            }
            let mut rest = starts;
            while rest != 0 {
                let place = rest.trailing_zeros() as usize;
                (sizes[place], tokens[place]) = self.longest(&marked[read + place..len]);
                rest &= rest - 1;
            }
            // Which ids a phrase before them covers.
            let size = block.len() - 1;
            let mut covered_ids = low_bits(covered);
            covered = covered.saturating_sub(size);
            starts &= !covered_ids;
            while starts != 0 {
                let place = starts.trailing_zeros() as usize;
                let others = sizes[place] - 1;
                covered_ids |= low_bits(others) << 1 << place;
                covered = covered.max((place + 1 + others).saturating_sub(size));
                starts &= (starts - 1) & !covered_ids;
            }
            let mut kept = 0;
            for place in 0..size {
                tokens[kept % BLOCK] = tokens[place];
                kept += (!covered_ids >> place & 1) as usize;
            }
            ids.extend_from_slice(&tokens[..kept]);
            read += size;
        }
        Ok(())
    }

    /// Returns how many of `marked`, which starts with two neighbors, are replaced, and with which id.
    #[inline]
    fn longest(&self, marked: &[u32]) -> (usize, u32) {
        let mut node = marked[0] & ID;
        let mut best = (1, node);
        for (place, &id) in marked.iter().enumerate().skip(1) {
            let Some((at, edge)) = self.edge(node, id & ID) else { break };
            if edge.phrase != NONE {
                best = (place + 1, edge.phrase);
            }
            match marked.get(place + 1) {
                Some(&next) if next >= WHOLE | TOUCHES && edge.next & next_bit(next & ID) != 0 => {}
                _ => break,
            }
            node = WHOLE | at as u32;
        }
        best
    }
}

/// Returns a number with the lowest `n` bits set, or all.
#[inline(always)]
fn low_bits(n: usize) -> u64 {
    if n < 64 { (1 << n) - 1 } else { u64::MAX }
}

/// Returns the bit of a chunk in `Edge::next`.
#[inline(always)]
fn next_bit(id: u32) -> u32 {
    1 << (id.wrapping_mul(0x9e37_79b9) >> 27)
}

//! The sets of characters of a pattern that is run by backtracking.

use std::collections::HashMap;

use regex_syntax::hir::ClassUnicode;

/// The most bits for the sets of a pattern.
pub const MAX_BITS: usize = 1 << 25;
/// The number of code points in a block.
const BLOCK: usize = 64;

/// The classes into which the sets of a pattern divide all characters. Unlike `ClassTable`, it has room for any number.
pub struct Sets {
    ascii: [u16; 128],
    /// The number of the block of each 64 code points.
    index: Vec<u16>,
    blocks: Vec<[u16; BLOCK]>,
    /// For each set, `words` words with a bit for each class.
    pub bits: Vec<u64>,
    pub words: usize,
}

impl Sets {
    /// Returns `None` if there are too many sets.
    pub fn new(sets: &[ClassUnicode]) -> Option<Sets> {
        // Where any set starts or ends, and the class from there on. Each set divides the classes.
        let mut bounds: Vec<u32> = vec![0];
        for range in sets.iter().flat_map(ClassUnicode::iter) {
            bounds.extend([range.start() as u32, range.end() as u32 + 1]);
        }
        bounds.sort_unstable();
        bounds.dedup();
        if bounds.len().saturating_mul(sets.len()) > MAX_BITS {
            return None;
        }
        let mut class_of = vec![0u16; bounds.len()];
        let mut count = 1;
        for set in sets {
            let mut divided: HashMap<u16, u16> = HashMap::new();
            for range in set.iter() {
                let from = bounds.partition_point(|&bound| bound < range.start() as u32);
                let to = bounds.partition_point(|&bound| bound <= range.end() as u32);
                for class in &mut class_of[from..to] {
                    *class = *divided.entry(*class).or_insert_with(|| {
                        count += 1;
                        count as u16 - 1
                    });
                }
            }
            if count > usize::from(u16::MAX) {
                return None;
            }
        }
        // Sets that were divided completely are unused.
        let mut numbers: HashMap<u16, u16> = HashMap::new();
        for class in &mut class_of {
            let next = numbers.len() as u16;
            *class = *numbers.entry(*class).or_insert(next);
        }
        let words = numbers.len().div_ceil(64);
        if sets.len() * words * 64 > MAX_BITS {
            return None;
        }
        let mut bits = vec![0; sets.len() * words];
        for (set, bits) in sets.iter().zip(bits.chunks_mut(words)) {
            for range in set.iter() {
                let from = bounds.partition_point(|&bound| bound < range.start() as u32);
                let to = bounds.partition_point(|&bound| bound <= range.end() as u32);
                for &class in &class_of[from..to] {
                    bits[usize::from(class) / 64] |= 1 << (class % 64);
                }
            }
        }
        Some(Self::with_table(&bounds, &class_of, bits, words))
    }

    fn with_table(bounds: &[u32], class_of: &[u16], bits: Vec<u64>, words: usize) -> Self {
        let mut flat = vec![0; char::MAX as usize + 1];
        let ends = bounds[1..].iter().copied().chain([char::MAX as u32 + 1]);
        for ((&start, end), &class) in bounds.iter().zip(ends).zip(class_of) {
            if (start as usize) < flat.len() {
                flat[start as usize..end as usize].fill(class);
            }
        }
        let mut ascii = [0; 128];
        ascii.copy_from_slice(&flat[..128]);
        let (mut index, mut blocks): (_, Vec<[u16; BLOCK]>) = (Vec::new(), Vec::new());
        let mut known = HashMap::new();
        let mut last: Option<(&[u16; BLOCK], u16)> = None;
        for block in flat.as_chunks::<BLOCK>().0 {
            let number = match last {
                Some((same, number)) if same == block => number,
                _ => *known.entry(block).or_insert_with(|| {
                    blocks.push(*block);
                    blocks.len() as u16 - 1
                }),
            };
            last = Some((block, number));
            index.push(number);
        }
        Self { ascii, index, blocks, bits, words }
    }

    pub fn bits(&self, set: u32) -> &[u64] {
        &self.bits[set as usize * self.words..][..self.words]
    }

    #[inline(always)]
    fn contains(&self, set: u32, class: u16) -> bool {
        self.bits[set as usize * self.words + usize::from(class) / 64] >> (class % 64) & 1 != 0
    }

    #[inline(always)]
    fn class(&self, c: char) -> u16 {
        match self.ascii.get(c as usize) {
            Some(&class) => class,
            None => self.blocks[usize::from(self.index[c as usize / BLOCK])][c as usize % BLOCK],
        }
    }

    /// Returns the length of the character after `at`, or before it if `back`, if it is in a set.
    #[inline(always)]
    pub fn step(&self, text: &str, at: usize, back: bool, set: u32) -> Option<usize> {
        let bytes = text.as_bytes();
        let byte = if back { *bytes[..at].last()? } else { *bytes.get(at)? };
        if byte < 0x80 {
            return self.contains(set, self.ascii[usize::from(byte)]).then_some(1);
        }
        let c = if back { text[..at].chars().next_back()? } else { text[at..].chars().next()? };
        self.contains(set, self.class(c)).then_some(c.len_utf8())
    }
}

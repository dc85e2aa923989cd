//! Encodes text at random, to train language models on many encodings of the same text. Each chunk is sampled
//! separately: by dropping merges (BPE-dropout), or uniformly from all its segmentations. Phrases are not applied.
//!
//! The random numbers of a chunk depend only on the seed, the number of its text and its position in the text. The ids
//! therefore do not depend on the threads, or on where a text is cut for them.

use std::sync::atomic::Ordering::Relaxed;

use super::batch::append;
use super::merge::PlaceHeap;
use super::phrases::ID;
use super::{Encoder, MISSING, Piece, SpecialRules, hidden, text_blocks};
use crate::error::{Cancel, Error, Result, try_push, try_reserve, try_with_capacity};
use crate::parallel;
use crate::split::Spans;
use crate::table::chunk_key::Key;
use crate::table::hash::HashMap;

/// The number of bytes of a chunk that are sampled between two checks of `Cancel`.
const BLOCK: usize = 1 << 12;
/// Random fractions are multiples of 1 / `FRACTIONS`, which a float represents exactly.
const FRACTIONS: f64 = (1u64 << 53) as f64;

pub struct Sampling<'t> {
    pub method: Method<'t>,
    pub seed: u64,
}

pub enum Method<'t> {
    /// At each step, each possible merge is dropped with this probability.
    Dropout(f64),
    /// All segmentations into these tokens are equally likely.
    Uniform(&'t TokenTree),
}

/// A part of a text, with what its random numbers depend on.
struct Part<'t> {
    piece: Piece<'t>,
    text_seed: Random,
    /// The number of bytes of normalized text before it, without special and added tokens.
    position: usize,
}

/// Buffers for a chunk.
#[derive(Default)]
struct Buffers {
    present: Vec<u8>,
    cells: Vec<u32>,
    places: PlaceHeap,
    hidden: hidden::Buffers,
    ratios: Vec<f64>,
}

impl Encoder {
    /// Encodes texts at random, in parallel. Returns what `encode_batch` does.
    pub fn encode_sampled(
        &self,
        texts: &[&str],
        special: &SpecialRules,
        sampling: &Sampling,
        threads: usize,
        cancel: &Cancel,
    ) -> Result<(Vec<u32>, Vec<i64>)> {
        let (mut parts, mut ends) = (Vec::new(), try_with_capacity(texts.len())?);
        for (text, number) in texts.iter().zip(0..) {
            let (text_seed, mut position) = (Random(sampling.seed).stream(number), 0);
            for piece in self.pieces(text, special)? {
                let piece = match piece {
                    Piece::Raw(text) => Piece::Text(self.splitter.normalize_characters(text), 0),
                    piece => piece,
                };
                let size = piece.len();
                try_push(&mut parts, Part { piece, text_seed, position })?;
                position += size;
            }
            ends.push(parts.len());
        }
        let encoded = parallel::map(
            &text_blocks(&parts, |part| part.piece.len(), threads)?,
            threads,
            || (Buffers::default(), Box::<Spans>::default()),
            |(buffers, spans), block| {
                let (mut ids, mut sizes) = (Vec::new(), try_with_capacity(block.len())?);
                for part in *block {
                    let start = ids.len();
                    self.sample_part(part, &sampling.method, buffers, spans, &mut ids, cancel)?;
                    sizes.push((ids.len() - start) as i64);
                }
                Ok((ids, sizes))
            },
        )?;
        let (ids, sizes): (Vec<_>, Vec<_>) = encoded.into_iter().unzip();
        let sizes = parallel::concat(sizes, 1)?;
        let (mut offsets, mut done, mut offset) = (try_with_capacity(texts.len() + 1)?, 0, 0);
        offsets.push(0);
        for end in ends {
            offset += sizes[done..end].iter().sum::<i64>();
            offsets.push(offset);
            done = end;
        }
        Ok((parallel::concat(ids, threads)?, offsets))
    }

    fn sample_part(
        &self,
        part: &Part,
        method: &Method,
        buffers: &mut Buffers,
        spans: &mut Spans,
        ids: &mut Vec<u32>,
        cancel: &Cancel,
    ) -> Result<()> {
        let text: &str = match &part.piece {
            Piece::Raw(text) => text,
            Piece::Text(text, _) => text,
            Piece::Token(id, _) => return Ok(try_push(ids, *id)?),
        };
        let dropped = self.splitter.split_in_batches(text, spans, cancel, |chunks| {
            cancel.check()?;
            for (index, chunk) in chunks.iter().enumerate() {
                let random = part.text_seed.stream((part.position + chunks.span(index).0) as u64);
                self.sample_chunk(chunk.as_bytes(), random, method, buffers, ids, cancel)?;
            }
            Ok(())
        })?;
        if dropped > 0 {
            self.dropped.fetch_add(dropped, Relaxed);
        }
        Ok(())
    }

    /// A stop word acts as one more merge, which is tried first, or as one more segmentation.
    fn sample_chunk(
        &self,
        chunk: &[u8],
        mut random: Random,
        method: &Method,
        buffers: &mut Buffers,
        ids: &mut Vec<u32>,
        cancel: &Cancel,
    ) -> Result<()> {
        let Buffers { present, cells, places, hidden, ratios } = buffers;
        let stop_word = self.stop_words.get(chunk).map(|id| id as u32);
        let mut chunk = chunk;
        if self.has_missing_bytes {
            present.clear();
            try_reserve(present, chunk.len())?;
            present.extend(chunk.iter().filter(|&&byte| self.ids[usize::from(byte)] != MISSING));
            if present.len() < chunk.len() {
                if let Some(id) = stop_word {
                    return Ok(try_push(ids, id)?); // anything else would lose bytes
                }
                self.missing.fetch_add(chunk.len() - present.len(), Relaxed);
                chunk = present;
            }
        }
        match *method {
            Method::Uniform(tree) => tree.sample(chunk, stop_word, random, ratios, ids, cancel),
            Method::Dropout(probability) => {
                let is_dropped = |random: &mut Random| random.fraction() < probability;
                if let Some(id) = stop_word
                    && !is_dropped(&mut random)
                {
                    return Ok(try_push(ids, id)?);
                }
                // If no merge is dropped, a token is made by one merge less than it has bytes. Looking it up is faster
                // than merging. A chunk that lacks bytes could be found as a stop word.
                let mut ahead = random;
                if stop_word.is_none()
                    && !self.has_missing_bytes
                    && (1..chunk.len()).all(|_| !is_dropped(&mut ahead))
                    && let Some(found) = self.vocabulary.get(chunk, Key::of(chunk))
                {
                    append(ids, found.iter().map(|id| id & ID))?;
                    return Ok(());
                }
                cells.clear();
                append(cells, chunk.iter().map(|&byte| u32::from(byte)))?;
                self.merges.apply_by_place(cells, places, || is_dropped(&mut random), cancel)?;
                append(ids, self.ids_of(self.hidden.replace(cells, &self.merges, hidden)?))?;
                Ok(())
            }
        }
    }

    /// Returns the tokens that a chunk can be segmented into.
    pub fn token_tree(&self) -> Result<TokenTree> {
        let mut tree = TokenTree::default();
        for &id in &self.ids {
            // There are none for bytes that are not tokens, and for hidden tokens.
            if let Some(token) = self.tokens.ordinary(id) {
                tree.insert(token, id)?;
            }
        }
        Ok(tree)
    }
}

/// Tokens as a tree with an edge for each byte. All bytes of the chunks to sample must be tokens.
#[derive(Default)]
pub struct TokenTree {
    /// (node, byte) → the next node, and the id of the token that ends there, or `MISSING`. The root is node 0.
    edges: HashMap<(u32, u8), (u32, u32)>,
}

impl TokenTree {
    /// Adds a token, unless there is one with the same bytes.
    fn insert(&mut self, token: &[u8], id: u32) -> Result<()> {
        self.edges.try_reserve(token.len()).map_err(|_| Error::OutOfMemory(size_of_val(token)))?;
        let mut node = 0;
        for (&byte, length) in token.iter().zip(1..) {
            let next = self.edges.len() as u32 + 1;
            let edge = self.edges.entry((node, byte)).or_insert((next, MISSING));
            if length == token.len() && edge.1 == MISSING {
                edge.1 = id;
            }
            node = edge.0;
        }
        Ok(())
    }

    /// Appends the ids of a random segmentation of a chunk, of which a stop word is one.
    ///
    /// Let `n(i)` be the number of segmentations of the chunk from byte i on. It is the sum of all `n(i + length)` for
    /// the tokens that start there, and would overflow in a long chunk. `ratios[i]` is `n(i + 1) / n(i)`, which is at
    /// most 1. The product of such ratios is the weight of a token, so all weights are relative to that of a byte. All
    /// terms are positive, so errors do not grow: two segmentations of a chunk of n bytes have the same probability up
    /// to a factor of 1 ± n × longest token × 2^-52.
    fn sample(
        &self,
        chunk: &[u8],
        stop_word: Option<u32>,
        mut random: Random,
        ratios: &mut Vec<f64>,
        ids: &mut Vec<u32>,
        cancel: &Cancel,
    ) -> Result<()> {
        ratios.clear();
        try_reserve(ratios, chunk.len())?;
        ratios.resize(chunk.len(), 0.0);
        let mut is_token = false;
        for start in (0..chunk.len()).rev() {
            if start.is_multiple_of(BLOCK) {
                cancel.check()?;
            }
            let mut total = 0.0;
            self.for_each_token(chunk, start, ratios, |end, _, weight| {
                total += weight;
                is_token |= end - start == chunk.len();
                true
            });
            ratios[start] = 1.0 / total;
        }
        if let Some(id) = stop_word
            && !is_token
        {
            let weight: f64 = ratios.iter().product(); // relative to all other segmentations
            if random.fraction() * (1.0 + weight) < weight {
                return Ok(try_push(ids, id)?);
            }
        }
        let mut start = 0;
        while start < chunk.len() {
            let (mut rest, mut chosen) = (random.fraction() / ratios[start], (start, MISSING));
            self.for_each_token(chunk, start, ratios, |end, id, weight| {
                chosen = (end, id);
                rest -= weight;
                rest >= 0.0
            });
            let (end, id) = chosen;
            try_push(ids, stop_word.filter(|_| end - start == chunk.len()).unwrap_or(id))?;
            start = end;
        }
        Ok(())
    }

    /// Calls `found` with the end, the id and the weight of each token that starts at a place, shortest first, until it
    /// returns false.
    #[inline(always)]
    fn for_each_token(
        &self,
        chunk: &[u8],
        start: usize,
        ratios: &[f64],
        mut found: impl FnMut(usize, u32, f64) -> bool,
    ) {
        let (mut node, mut weight) = (0, 1.0);
        for at in start..chunk.len() {
            let Some(&(next, id)) = self.edges.get(&(node, chunk[at])) else { return };
            if at > start {
                weight *= ratios[at];
            }
            // A weight of zero is one below 1e-308. Tokens that long would make long chunks slow.
            if weight == 0.0 || id != MISSING && !found(at + 1, id, weight) {
                return;
            }
            node = next;
        }
    }
}

/// SplitMix64 (Steele, Lea and Flood, 2014).
#[derive(Clone, Copy)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    /// Returns a generator for something numbered, independent of those for other numbers.
    fn stream(mut self, number: u64) -> Self {
        Self(self.next() ^ number)
    }

    /// Returns a number of at least 0 and less than 1.
    fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / FRACTIONS
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::tests::{allow_all, encoder, merges};
    use super::*;
    use crate::error::NEVER;

    const PATTERN: &str = r"\s+|\S+";

    fn sample(encoder: &Encoder, text: &str, method: Method, seed: u64, threads: usize) -> Vec<u32> {
        let sampling = Sampling { method, seed };
        encoder.encode_sampled(&[text], &allow_all(), &sampling, threads, &NEVER).expect("nothing fails").0
    }

    /// Merges one pair at a time, with the random numbers that the core uses: of the pairs in the order of their ranks,
    /// the first that is not dropped.
    fn merge_simply(chunk: &str, merges: &[(u32, u32, u32)], dropout: f64, mut random: Random) -> Vec<u32> {
        let mut tokens: Vec<u32> = chunk.bytes().map(u32::from).collect();
        loop {
            let rank = |pair: &[u32]| merges.iter().position(|merge| [merge.0, merge.1] == *pair);
            let mut pairs: Vec<(usize, usize)> =
                tokens.windows(2).zip(0..).filter_map(|(pair, at)| Some((rank(pair)?, at))).collect();
            pairs.sort_unstable();
            let Some((rank, at)) = pairs.into_iter().find(|_| random.fraction() >= dropout) else { return tokens };
            tokens[at] = merges[rank].2;
            tokens.remove(at + 1);
        }
    }

    proptest! {
        /// Texts of more than 128 bytes are cut into pieces here, and tokens of more than 8 bytes are not looked up.
        #[test]
        fn the_core_drops_what_a_simple_loop_drops(
            merges in merges(),
            words in vec("[a-d]{1,12}", 0..40),
            dropout in 0.0..=1.0,
            seed in any::<u64>(),
            threads in 1..4usize,
        ) {
            let (encoder, text) = (encoder(PATTERN, &merges, &[], &[]), words.join("\n"));
            let mut expected = Vec::new();
            encoder.splitter.split(&text, &NEVER, |chunk| {
                let position = chunk.as_ptr() as u64 - text.as_ptr() as u64;
                let random = Random(seed).stream(0).stream(position);
                expected.extend(merge_simply(chunk, &merges, dropout, random));
                Ok(())
            }).expect("nothing fails");
            prop_assert_eq!(sample(&encoder, &text, Method::Dropout(dropout), seed, threads), expected);
        }

        #[test]
        fn a_text_that_is_cut_has_the_ids_of_its_chunks(
            merges in merges(),
            words in vec("[a-d]{1,12}", 0..40),
            seed in any::<u64>(),
            threads in 1..4usize,
        ) {
            let (encoder, text) = (encoder(PATTERN, &merges, &["ab", "abba"], &[]), words.join("\n"));
            let tree = encoder.token_tree().expect("enough memory");
            let (mut expected, mut buffers) = (Vec::new(), Buffers::default());
            encoder.splitter.split(&text, &NEVER, |chunk| {
                let random = Random(seed).stream(0).stream(chunk.as_ptr() as u64 - text.as_ptr() as u64);
                let method = Method::Uniform(&tree);
                encoder.sample_chunk(chunk.as_bytes(), random, &method, &mut buffers, &mut expected, &NEVER)
            }).expect("nothing fails");
            prop_assert_eq!(encoder.decode(&expected, &NEVER).expect("known ids"), text.as_bytes());
            prop_assert_eq!(sample(&encoder, &text, Method::Uniform(&tree), seed, threads), expected);
        }
    }

    /// The first numbers of the reference implementation for the seed 1234567.
    #[test]
    fn the_generator_is_splitmix64() {
        let mut random = Random(1_234_567);
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!(std::array::from_fn(|_| random.next()), expected);
    }

    #[test]
    fn long_chunks_neither_overflow_nor_take_long() {
        let merges: Vec<(u32, u32, u32)> =
            (0..9).map(|n| if n == 0 { (97, 97, 256) } else { (255 + n, 255 + n, 256 + n) }).collect();
        let encoder = encoder(PATTERN, &merges, &[], &[]);
        let text = "a".repeat(100_000);
        let tree = encoder.token_tree().expect("enough memory");
        let ids = sample(&encoder, &text, Method::Uniform(&tree), 1, 1);
        let mut counts: HashMap<u32, usize> = HashMap::new();
        ids.iter().for_each(|&id| *counts.entry(id).or_default() += 1);
        // In the limit, a token of n bytes has the probability x^n, where x + x^2 + x^4 + x^8 … = 1.
        let x: f64 = 0.566_123_792_684_559_6;
        for (token, length) in [(97, 1), (256, 2), (257, 4), (258, 8)] {
            let expected = x.powi(length) * ids.len() as f64;
            let found = counts.get(&token).copied().unwrap_or(0) as f64;
            assert!((found - expected).abs() < 4.0 * expected.sqrt(), "{token}: {found}, expected {expected}");
        }
    }
}

//! The core of batchbpe, in the order in which text goes through it:
//!
//! 1. `split`: a pattern cuts text into chunks;
//! 2. `count`: chunks are counted, in parallel;
//! 3. `train`: the pairs of tokens in those chunks are counted and merged, batch by batch;
//! 4. `encode`: text to ids with the merges so found, and ids to bytes.
//!
//! `python` holds all of PyO3: nothing else here knows Python. Which pairs are merged is decided there too.

pub mod chunk_map;
pub mod count;
pub mod counts_csv;
pub mod encode;
pub mod error;
pub mod hash;
pub mod parallel;
mod prefetch;
#[cfg(feature = "python")]
mod python;
pub mod special;
pub mod split;
pub mod train;

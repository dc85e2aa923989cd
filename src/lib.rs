//! The core of batchbpe. Its modules, in the order in which data flows through them:
//!
//! 1. `split` cuts text into chunks, as a pattern describes them.
//! 2. `count` counts the chunks in parallel.
//! 3. `train` counts the pairs of tokens within those chunks and merges them, batch by batch.
//! 4. `encode` turns text into ids with the resulting merges, and ids back into bytes.
//!
//! `python` contains all of the PyO3 code; no other module depends on Python. The core never chooses which pairs to
//! merge: the training loop and its policies are written in Python.

mod chunk_key;
pub mod chunk_map;
pub mod count;
pub mod counts_csv;
pub mod encode;
pub mod error;
pub mod hash;
mod huge_pages;
pub mod parallel;
mod prefetch;
#[cfg(feature = "python")]
mod python;
pub mod rank_file;
pub mod special;
pub mod split;
pub mod train;

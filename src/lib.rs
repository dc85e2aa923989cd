//! The core of batchbpe. Its modules, in the order in which data flows through them:
//!
//! 1. `split` cuts text into chunks, as a pattern describes them.
//! 2. `count` counts the chunks in parallel.
//! 3. `train` counts the pairs of tokens within those chunks and merges them, batch by batch.
//! 4. `encode` turns text into ids with the resulting merges, and ids back into bytes.
//!
//! `ngram` predicts the ids of a text, to compare vocabularies.
//!
//! `table` has the hash tables that these use, and `files` reads formats of other tools.
//!
//! `python` contains all of the PyO3 code; no other module depends on Python. The core never chooses which pairs to
//! merge: the training loop and its policies are written in Python.

pub mod count;
pub mod encode;
pub mod error;
pub mod files;
pub mod ngram;
pub mod parallel;
#[cfg(feature = "python")]
mod python;
mod special_matcher;
pub mod split;
pub mod table;
pub mod train;

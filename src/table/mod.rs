//! Hash tables whose keys are chunks, and what makes them fast: keys of fixed size, a seeded hash, and hints to the
//! processor and the system about memory.

pub mod chunk_key;
pub mod chunk_map;
pub mod hash;
pub mod huge_pages;
pub mod prefetch;

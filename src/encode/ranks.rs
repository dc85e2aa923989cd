//! From a list of tokens in the order of their ranks to the merges that made them.

use crate::chunk_map::ChunkMap;
use crate::error::{Error, Result};

/// For each token where it is cut: the two parts that its bytes merge to when only the tokens before it
/// are known. `tokens` are those of more than one byte, by rank.
pub fn cuts<T: AsRef<[u8]>>(tokens: &[T]) -> Result<Vec<usize>> {
    let mut ranks = ChunkMap::with_capacity(tokens.len());
    let mut result = Vec::with_capacity(tokens.len());
    for (rank, token) in tokens.iter().enumerate() {
        let token = token.as_ref();
        let mut ends: Vec<usize> = (0..=token.len()).collect();
        while ends.len() > 3 {
            let lowest = (0..ends.len() - 2).filter_map(|i| Some((ranks.get(&token[ends[i]..ends[i + 2]])?, i))).min();
            let Some((_, at)) = lowest else { break };
            ends.remove(at + 1);
        }
        let taken = ranks.get(token).is_some();
        if ends.len() != 3 || taken {
            let token = String::from_utf8_lossy(token);
            let why = if taken { "is there twice" } else { "is not made of two tokens of lower rank" };
            return Err(Error::invalid(format!("the token {token:?} {why}: these ranks are of no BPE vocabulary")));
        }
        result.push(ends[1]);
        *ranks.entry(token) = rank as u64;
    }
    Ok(result)
}

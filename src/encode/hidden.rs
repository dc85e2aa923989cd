//! Hidden tokens: merges that are only steps to other tokens. They take part in merging and are replaced afterwards.

use std::borrow::Cow;

use super::merge::MergeTable;
use super::ranked::{MISSING, RankedTokens};
use crate::error::{Result, try_collect, try_push, try_reserve};
use crate::table::hash::HashSet;

/// Which tokens are hidden.
pub struct Hidden {
    /// rank → whether the token is hidden. Empty if none is.
    is_hidden: Vec<bool>,
}

/// Memory for `Hidden::replace`.
#[derive(Default)]
pub struct Buffers {
    /// Ranks that are not examined yet, the next one last.
    waiting: Vec<u32>,
    visible: Vec<u32>,
}

impl Hidden {
    /// `hidden` are ids. Those that no merge makes are ignored.
    pub fn new(tokens: &RankedTokens, hidden: &[u32]) -> Result<Self> {
        let hidden: HashSet<u32> = hidden.iter().copied().collect();
        let ids = if hidden.is_empty() { &[][..] } else { &tokens.ids };
        let is_hidden = try_collect(ids.iter().enumerate().map(|(rank, id)| rank >= 256 && hidden.contains(id)))?;
        Ok(Self { is_hidden })
    }

    /// Returns the ids of all ranks, with `MISSING` in place of those that are hidden.
    pub fn visible<'t>(&self, ids: &'t [u32]) -> Result<Cow<'t, [u32]>> {
        if self.is_hidden.is_empty() {
            return Ok(Cow::Borrowed(ids));
        }
        let visible = ids.iter().zip(&self.is_hidden).map(|(&id, &is_hidden)| if is_hidden { MISSING } else { id });
        Ok(Cow::Owned(try_collect(visible)?))
    }

    /// Replaces each hidden token by the two that it was merged from, until there are only visible tokens. There are
    /// never more of them than the chunk has bytes.
    pub fn replace<'a>(&self, ranks: &'a [u32], merges: &MergeTable, buffers: &'a mut Buffers) -> Result<&'a [u32]> {
        if self.is_hidden.is_empty() || !ranks.iter().any(|&rank| self.is_hidden[rank as usize]) {
            return Ok(ranks);
        }
        let Buffers { waiting, visible } = buffers;
        visible.clear();
        try_reserve(waiting, ranks.len())?;
        waiting.extend(ranks.iter().rev());
        while let Some(rank) = waiting.pop() {
            if self.is_hidden[rank as usize] {
                let (first, last) = merges.pairs[rank as usize - 256];
                try_push(waiting, last)?;
                try_push(waiting, first)?;
            } else {
                try_push(visible, rank)?;
            }
        }
        Ok(visible)
    }
}

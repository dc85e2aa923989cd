//! The special and added tokens of an encoder, and which special tokens to recognize in a text.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, RwLock};

use aho_corasick::AhoCorasick;

use crate::error::{Result, try_push};
use crate::special_matcher::special_matcher;

/// The number of subsets whose matchers are kept.
const MAX_SUBSETS: usize = 8;

/// A set of special tokens.
pub enum SpecialSet {
    All,
    These(Vec<String>),
}

/// How to treat special tokens in a text: allowed ones become tokens, disallowed ones are an error, and all others are
/// ordinary text.
pub struct SpecialRules {
    pub allowed: SpecialSet,
    pub disallowed: SpecialSet,
}

/// Finds special or added tokens. `None` if there are none to find.
type Matcher = Option<Arc<AhoCorasick>>;

/// Some special tokens and their matcher.
type Subset = (Vec<String>, Matcher);

pub struct SpecialTokens {
    /// The ids of special and added tokens.
    ids: HashMap<String, u32>,
    special_ids: HashSet<u32>,
    all: Matcher,
    /// Finds added tokens, in the text between special tokens.
    pub added: Matcher,
    /// The most recent subsets. As in `CachePool`, these locks are never waited for: a thread that does not get one
    /// builds its own matcher.
    pub(super) subsets: [RwLock<Option<Subset>>; MAX_SUBSETS],
    next_subset: AtomicUsize,
}

impl SpecialTokens {
    pub fn new(special: Vec<(String, u32)>, added: Vec<(String, u32)>) -> Result<Self> {
        let matcher = |tokens: &[(String, u32)]| -> Result<Matcher> {
            let names: Vec<String> = tokens.iter().map(|token| token.0.clone()).collect();
            Ok(special_matcher(&names)?.map(Arc::new))
        };
        Ok(Self {
            all: matcher(&special)?,
            added: matcher(&added)?,
            special_ids: special.iter().map(|token| token.1).collect(),
            ids: special.into_iter().chain(added).collect(),
            subsets: Default::default(),
            next_subset: AtomicUsize::new(0),
        })
    }

    /// Returns the id of a special or added token that a matcher has found.
    pub fn id(&self, token: &str) -> u32 {
        self.ids[token]
    }

    /// Returns `ids` without those of special tokens.
    pub fn removed_from(&self, ids: &[u32]) -> Result<Vec<u32>> {
        let mut others = Vec::new();
        for &id in ids.iter().filter(|id| !self.special_ids.contains(id)) {
            try_push(&mut others, id)?;
        }
        Ok(others)
    }

    pub fn contain_newline(&self) -> bool {
        self.ids.keys().any(|token| token.contains('\n'))
    }

    pub fn matcher(&self, set: &SpecialSet) -> Result<Matcher> {
        let tokens = match set {
            SpecialSet::All => return Ok(self.all.clone()),
            SpecialSet::These(tokens) if tokens.is_empty() => return Ok(None),
            SpecialSet::These(tokens) => tokens,
        };
        for slot in &self.subsets {
            if let Ok(subset) = slot.try_read()
                && let Some((_, matcher)) = subset.as_ref().filter(|subset| subset.0 == *tokens)
            {
                return Ok(matcher.clone());
            }
        }
        let matcher = special_matcher(tokens)?.map(Arc::new);
        let oldest = self.next_subset.fetch_add(1, Relaxed) % MAX_SUBSETS;
        if let Ok(mut slot) = self.subsets[oldest].try_write() {
            *slot = Some((tokens.clone(), matcher.clone()));
        }
        Ok(matcher)
    }
}

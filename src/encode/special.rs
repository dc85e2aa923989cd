//! The special tokens of an encoder, and which of them to recognize in a text.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, RwLock};

use aho_corasick::AhoCorasick;

use crate::error::Result;
use crate::special::special_matcher;

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

/// Finds special tokens. `None` if there are none to find.
type Matcher = Option<Arc<AhoCorasick>>;

/// Some special tokens and their matcher.
type Subset = (Vec<String>, Matcher);

pub struct SpecialTokens {
    ids: HashMap<String, u32>,
    all: Matcher,
    /// The most recent subsets. As in `CachePool`, these locks are never waited for: a thread that does not get one
    /// builds its own matcher.
    pub(super) subsets: [RwLock<Option<Subset>>; MAX_SUBSETS],
    next_subset: AtomicUsize,
}

impl SpecialTokens {
    pub fn new(tokens: Vec<(String, u32)>) -> Result<Self> {
        let names: Vec<String> = tokens.iter().map(|token| token.0.clone()).collect();
        Ok(Self {
            all: special_matcher(&names)?.map(Arc::new),
            ids: tokens.into_iter().collect(),
            subsets: Default::default(),
            next_subset: AtomicUsize::new(0),
        })
    }

    /// Returns the id of a special token that a matcher has found.
    pub fn id(&self, token: &str) -> u32 {
        self.ids[token]
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

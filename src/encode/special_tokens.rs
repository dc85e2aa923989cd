//! The special and added tokens of an encoder: which of them to find in a text, and where.
//!
//! They are found as Hugging Face finds added tokens, in two passes: those that are not `normalized` in the text as it
//! is, and the others in the normalized text between them. If several match at the same position, the longest wins.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, RwLock};

use aho_corasick::AhoCorasick;
use regex_syntax::is_word_character;

use crate::error::{Result, try_push};
use crate::special_matcher::special_matcher;
use crate::split::Splitter;

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

/// A special or added token.
#[derive(Clone)]
pub struct FoundToken {
    pub name: String,
    pub id: u32,
    pub flags: Flags,
}

/// How a token is found.
#[derive(Clone, Copy, Default)]
pub struct Flags {
    /// Whether the whitespace before it belongs to it.
    pub lstrip: bool,
    /// Whether the whitespace after it belongs to it.
    pub rstrip: bool,
    /// Whether it is found only where no letter, digit or underscore is next to it.
    pub single_word: bool,
    /// Whether it is found in normalized text, after all tokens that are not.
    pub normalized: bool,
}

/// Finds tokens in one pass over a text.
pub struct Matcher {
    automaton: AhoCorasick,
    /// The id and the flags of each token.
    tokens: Vec<(u32, Flags)>,
}

/// What `Matcher::cut` cuts a text into.
/// Where the text of a token is, including whitespace that it strips.
#[derive(Clone, Copy)]
pub struct Place {
    /// How far it starts before the end of what comes before it: that may have stripped whitespace of this token.
    back: usize,
    len: usize,
}

impl Place {
    /// Returns where the text starts and ends. What comes before it ends at `end`.
    pub fn after(self, end: usize) -> (usize, usize) {
        (end - self.back, end - self.back + self.len)
    }
}

pub enum Cut<'t> {
    Text(&'t str),
    Token(u32, Place),
}

impl Matcher {
    fn new<'a>(
        tokens: impl Iterator<Item = &'a FoundToken>,
        splitter: &Splitter,
        normalized: bool,
    ) -> Result<Option<Self>> {
        let tokens: Vec<&FoundToken> = tokens.filter(|token| token.flags.normalized == normalized).collect();
        let name = |token: &&FoundToken| {
            if normalized { splitter.normalize_characters(&token.name).into_owned() } else { token.name.clone() }
        };
        let names: Vec<String> = tokens.iter().map(name).collect();
        let tokens = tokens.iter().map(|token| (token.id, token.flags)).collect();
        Ok(special_matcher(&names)?.map(|automaton| Self { automaton, tokens }))
    }

    /// Calls `piece` with the tokens in a text and the text between them, which is never empty.
    pub fn cut<'t>(&self, text: &'t str, mut piece: impl FnMut(Cut<'t>) -> Result<()>) -> Result<()> {
        let mut done = 0;
        for found in self.automaton.find_iter(text) {
            let (mut start, mut end) = (found.start(), found.end());
            let (before, after) = (&text[..start], &text[end..]);
            let (id, flags) = self.tokens[found.pattern()];
            let is_in_word =
                || before.chars().next_back().is_some_and(is_word_character) || after.starts_with(is_word_character);
            if flags.single_word && is_in_word() {
                continue;
            }
            if flags.lstrip {
                start = before.trim_end().len().max(done);
            }
            if flags.rstrip {
                end = text.len() - after.trim_start().len();
            }
            if start == end {
                continue; // the token before has stripped all of it
            }
            if done < start {
                piece(Cut::Text(&text[done..start]))?;
            }
            piece(Cut::Token(id, Place { back: done.saturating_sub(start), len: end - start }))?;
            done = end;
        }
        if done < text.len() { piece(Cut::Text(&text[done..])) } else { Ok(()) }
    }
}

/// The matchers of the two passes. `None` if there are no tokens to find.
pub struct Passes {
    pub raw: Option<Matcher>,
    pub normalized: Option<Matcher>,
}

pub struct SpecialTokens {
    special: Vec<FoundToken>,
    added: Vec<FoundToken>,
    special_ids: HashSet<u32>,
    /// Finds all special tokens.
    all_names: Option<Arc<AhoCorasick>>,
    /// Find added tokens, with all special tokens or with none.
    all: Arc<Passes>,
    none: Arc<Passes>,
    /// The most recent subsets that were disallowed and allowed.
    names: Recent<Option<Arc<AhoCorasick>>>,
    pub(super) passes: Recent<Arc<Passes>>,
}

impl SpecialTokens {
    pub fn new(special: Vec<FoundToken>, added: Vec<FoundToken>, splitter: &Splitter) -> Result<Self> {
        let passes = |special: &[FoundToken]| passes(special.iter().chain(&added), splitter);
        let all = passes(&special)?;
        let are_same =
            special.iter().all(|token| !token.flags.normalized) && added.iter().all(|token| token.flags.normalized);
        let all_names = if are_same {
            all.raw.as_ref().map(|matcher| Arc::new(matcher.automaton.clone())) // shares its memory
        } else {
            let names: Vec<String> = special.iter().map(|token| token.name.clone()).collect();
            special_matcher(&names)?.map(Arc::new)
        };
        Ok(Self {
            all_names,
            none: passes(&[])?,
            all,
            special_ids: special.iter().map(|token| token.id).collect(),
            special,
            added,
            names: Recent::default(),
            passes: Recent::default(),
        })
    }

    /// Returns `ids` without those of special tokens.
    pub fn removed_from(&self, ids: &[u32]) -> Result<Vec<u32>> {
        let mut others = Vec::new();
        for &id in ids.iter().filter(|id| !self.special_ids.contains(id)) {
            try_push(&mut others, id)?;
        }
        Ok(others)
    }

    /// Returns whether a token, with the whitespace that it strips, may contain a newline.
    pub fn may_contain_newline(&self) -> bool {
        let may = |token: &FoundToken| token.flags.lstrip || token.flags.rstrip || token.name.contains('\n');
        self.special.iter().chain(&self.added).any(may)
    }

    /// Returns what finds the names of special tokens in a text, whatever their flags.
    pub fn names(&self, set: &SpecialSet) -> Result<Option<Arc<AhoCorasick>>> {
        match set {
            SpecialSet::All => Ok(self.all_names.clone()),
            SpecialSet::These(names) if names.is_empty() => Ok(None),
            SpecialSet::These(names) => self.names.get(names, || Ok(special_matcher(names)?.map(Arc::new))),
        }
    }

    /// Returns what finds special tokens, and all added tokens.
    pub fn passes(&self, set: &SpecialSet, splitter: &Splitter) -> Result<Arc<Passes>> {
        match set {
            SpecialSet::All => Ok(self.all.clone()),
            SpecialSet::These(names) if names.is_empty() => Ok(self.none.clone()),
            SpecialSet::These(names) => self.passes.get(names, || {
                let names: HashSet<&str> = names.iter().map(String::as_str).collect();
                let special = self.special.iter().filter(|token| names.contains(&token.name[..]));
                passes(special.chain(&self.added), splitter)
            }),
        }
    }
}

fn passes<'a>(tokens: impl Iterator<Item = &'a FoundToken> + Clone, splitter: &Splitter) -> Result<Arc<Passes>> {
    let raw = Matcher::new(tokens.clone(), splitter, false)?;
    Ok(Arc::new(Passes { raw, normalized: Matcher::new(tokens, splitter, true)? }))
}

type Slot<T> = RwLock<Option<(Vec<String>, T)>>;

/// The most recent values for sets of names. As in `CachePool`, these locks are never waited for: a thread that does
/// not get one builds its own value.
pub(super) struct Recent<T> {
    pub slots: [Slot<T>; MAX_SUBSETS],
    next: AtomicUsize,
}

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self { slots: Default::default(), next: AtomicUsize::new(0) }
    }
}

impl<T: Clone> Recent<T> {
    fn get(&self, names: &[String], build: impl FnOnce() -> Result<T>) -> Result<T> {
        for slot in &self.slots {
            if let Ok(subset) = slot.try_read()
                && let Some((_, value)) = subset.as_ref().filter(|subset| subset.0 == names)
            {
                return Ok(value.clone());
            }
        }
        let value = build()?;
        let oldest = self.next.fetch_add(1, Relaxed) % MAX_SUBSETS;
        if let Ok(mut slot) = self.slots[oldest].try_write() {
            *slot = Some((names.to_vec(), value.clone()));
        }
        Ok(value)
    }
}

//! Recognizes the patterns of the GPT family, which differ only in a few details. One scanner runs them all.
//!
//! Their alternatives are, in this order: contractions, words, numbers, symbols and whitespace.

use std::collections::BTreeSet;

use once_cell::race::OnceBox;
use regex_syntax::hir::ClassUnicode;

use super::named::{NAMED, named};
use super::parse;
use super::syntax::{self, Alternative, Node, Repeat};

/// What distinguishes a pattern from the others of its family.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Family {
    /// Contractions that are separate chunks.
    pub contractions: Contractions,
    /// Contractions at the end of words.
    pub suffixes: Contractions,
    pub prefix: Prefix,
    pub words: Words,
    /// The maximum number of digits in a chunk, or 0 if there is none.
    pub digits: u8,
    /// Whether a space before a number belongs to it.
    pub spaced_numbers: bool,
    /// Whether marks (`\p{M}`) are symbols.
    pub marks_are_symbols: bool,
    pub tail: Tail,
    pub white: White,
    /// Whether a run of whitespace before a number is one chunk: `\s+(?![^\s\p{N}])` instead of `\s+(?!\S)`.
    pub whole_before_numbers: bool,
    /// Whether long numbers are cut into groups of three digits from the right, unless a word character follows, and
    /// a run of whitespace before such a number is one chunk. See `command-a` in `named`.
    pub numbers_from_right: bool,
}

/// `'s 't 're 've 'm 'll 'd`
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Contractions {
    None,
    Lower,
    AnyCase,
}

/// The optional character before a word.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Prefix {
    None,
    Space,
    /// `[^\r\n\p{L}\p{N}]`
    Any,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Words {
    /// `\p{L}+`
    Letters,
    /// `[\p{L}\p{M}]+`
    LettersAndMarks,
    /// Those of o200k: a new word starts where lower case changes to upper case.
    Cased,
}

/// What belongs to the symbols before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tail {
    None,
    /// `[\r\n]*`
    Newlines,
    /// `[\r\n/]*`
    NewlinesAndSlashes,
}

/// The alternatives for whitespace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum White {
    /// `\s+(?!\S)|\s+`
    Plain,
    /// `\s*[\r\n]|\s+(?!\S)|\s+`
    Newlines,
    /// `\s++$|\s*[\r\n]|\s+(?!\S)|\s+`
    NewlinesUnlessLast,
}

const GPT2: Family = Family {
    contractions: Contractions::Lower,
    suffixes: Contractions::None,
    prefix: Prefix::Space,
    words: Words::Letters,
    digits: 0,
    spaced_numbers: true,
    marks_are_symbols: true,
    tail: Tail::None,
    white: White::Plain,
    whole_before_numbers: false,
    numbers_from_right: false,
};
const GPT4: Family = Family {
    contractions: Contractions::AnyCase,
    suffixes: Contractions::None,
    prefix: Prefix::Any,
    words: Words::Letters,
    digits: 3,
    spaced_numbers: false,
    marks_are_symbols: true,
    tail: Tail::Newlines,
    white: White::Newlines,
    whole_before_numbers: false,
    numbers_from_right: false,
};
const CL100K: Family = Family { white: White::NewlinesUnlessLast, ..GPT4 };
const O200K: Family = Family {
    contractions: Contractions::None,
    suffixes: Contractions::AnyCase,
    words: Words::Cased,
    tail: Tail::NewlinesAndSlashes,
    ..GPT4
};
/// The pattern `command-a`, which is not regular.
pub const COMMAND_A: Family = Family { numbers_from_right: true, ..O200K };
/// The pattern `smollm` in ASCII text: that of `starcoder`.
pub const SMOLLM_ASCII: Family = Family { digits: 1, spaced_numbers: false, whole_before_numbers: true, ..GPT2 };
/// The pattern `deepseek` in ASCII text without control characters.
pub const DEEPSEEK_ASCII: Family = Family { contractions: Contractions::None, whole_before_numbers: true, ..GPT4 };
/// The pattern `kimi` in ASCII text: it differs from `o200k` after symbols, and in Chinese.
pub const KIMI_ASCII: Family = Family { tail: Tail::Newlines, ..O200K };
/// The first patterns of `NAMED`. Those are known without parsing them, and the scanner is compiled for each.
pub const PUBLISHED: [Family; 4] = [GPT2, GPT4, CL100K, O200K];

/// The named patterns that are family members in ASCII text only, parsed.
static IN_ASCII: OnceBox<[(Vec<Alternative>, Family); 3]> = OnceBox::new();

impl Family {
    /// Returns the family member that a named pattern is, if that is known without parsing it.
    pub fn published(pattern: &str) -> Option<Self> {
        if pattern == named("command-a") {
            return Some(COMMAND_A);
        }
        NAMED.iter().zip(PUBLISHED).find(|((_, published), _)| *published == pattern).map(|(_, family)| family)
    }

    /// Returns the family member that a pattern is in ASCII text without control characters.
    ///
    /// Proof: in such text, their alternatives match the same as those of the family member. Where other characters
    /// follow, the scanner has decided only about starts of chunks that do not depend on them: a chunk of these
    /// patterns ends before the same ASCII characters.
    pub fn in_ascii(alternatives: &[Alternative]) -> Option<Self> {
        let known = IN_ASCII.get_or_init(|| {
            let parsed = |name| syntax::alternatives(&parse::parse(named(name)).expect("valid")).expect("regular");
            Box::new([
                (parsed("deepseek"), DEEPSEEK_ASCII),
                (parsed("kimi"), KIMI_ASCII),
                (parsed("smollm"), SMOLLM_ASCII),
            ])
        });
        known.iter().find(|(known, _)| known == alternatives).map(|(_, family)| *family)
    }

    /// Returns the family member that a pattern is, if it is one.
    pub fn of(alternatives: &[Alternative]) -> Option<Self> {
        let sets = Sets::get();
        let mut rest = alternatives;
        let mut literals = BTreeSet::new();
        while let Some((alternative, others)) = rest.split_first()
            && alternative.ahead.is_none()
            && let Some(found) = strings(&alternative.node)
        {
            literals.extend(found);
            rest = others;
        }
        let contractions = sets.contractions(&literals)?;

        let (prefix, words, suffixes);
        (prefix, words, suffixes, rest) = sets.words(rest)?;
        let [numbers, symbols, white @ ..] = rest else { return None };
        let (digits, spaced_numbers) = sets.numbers(items(numbers)?)?;
        let (marks_are_symbols, tail) = sets.symbols(items(symbols)?)?;
        if words == Words::Letters && !marks_are_symbols {
            return None; // marks would be in no chunk
        }
        let (white, whole_before_numbers) = sets.white(white)?;
        if whole_before_numbers && spaced_numbers {
            return None;
        }
        Some(Self {
            contractions,
            suffixes,
            prefix,
            words,
            digits,
            spaced_numbers,
            marks_are_symbols,
            tail,
            white,
            whole_before_numbers,
            numbers_from_right: false,
        })
    }

    /// Describes the family member.
    pub fn describe(&self) -> String {
        let case = |contractions| if contractions == Contractions::Lower { "lower case" } else { "any case" };
        let mut parts = Vec::new();
        if self.contractions != Contractions::None {
            parts.push(format!("contractions in {}", case(self.contractions)));
        }
        let words = match self.words {
            Words::Letters => "words of letters",
            Words::LettersAndMarks => "words of letters and marks",
            Words::Cased => "words that end where lower case changes to upper case",
        };
        let prefix = match self.prefix {
            Prefix::None => "",
            Prefix::Space => " with the space before them",
            Prefix::Any => " with the character before them",
        };
        parts.push(format!("{words}{prefix}"));
        if self.suffixes != Contractions::None {
            parts.push(format!("contractions in {} at the end of words", case(self.suffixes)));
        }
        parts.push(match self.digits {
            0 => "numbers of any length".to_owned(),
            1 => "single digits".to_owned(),
            digits if self.numbers_from_right => format!("numbers in groups of {digits} digits from the right"),
            digits => format!("numbers of up to {digits} digits"),
        });
        parts.push(match self.tail {
            Tail::None => "symbols".to_owned(),
            Tail::Newlines => "symbols with the newlines after them".to_owned(),
            Tail::NewlinesAndSlashes => "symbols with the newlines and slashes after them".to_owned(),
        });
        parts.push("whitespace".to_owned());
        parts.join(", ")
    }
}

/// Returns the items that an alternative concatenates.
fn items(alternative: &Alternative) -> Option<&[Node]> {
    match (&alternative.node, &alternative.ahead) {
        (_, Some(_)) => None,
        (Node::Concat(nodes), _) => Some(nodes),
        (node, _) => Some(std::slice::from_ref(node)),
    }
}

/// Returns the strings that a node matches, if they are few and short.
fn strings(node: &Node) -> Option<Vec<String>> {
    const MAX: usize = 64;
    let found: Vec<String> = match node {
        Node::Class(class) => {
            let count: u32 = class.iter().map(|range| range.end() as u32 - range.start() as u32 + 1).sum();
            if count as usize > MAX {
                return None;
            }
            class.iter().flat_map(|range| range.start()..=range.end()).map(String::from).collect()
        }
        Node::Alt(nodes) => nodes.iter().map(strings).collect::<Option<Vec<_>>>()?.concat(),
        Node::Concat(nodes) => nodes.iter().try_fold(vec![String::new()], |starts, node| {
            let ends = strings(node)?;
            let all = starts.iter().flat_map(|start| ends.iter().map(move |end| format!("{start}{end}")));
            Some(all.take(MAX + 1).collect())
        })?,
        _ => return None,
    };
    (found.len() <= MAX).then_some(found)
}

/// The sets of characters and strings that the patterns of the family consist of.
struct Sets {
    letters: ClassUnicode,
    letters_marks: ClassUnicode,
    upper: ClassUnicode,
    lower: ClassUnicode,
    numbers: ClassUnicode,
    space: ClassUnicode,
    prefix: ClassUnicode,
    symbols: ClassUnicode,
    symbols_not_marks: ClassUnicode,
    white: ClassUnicode,
    not_white: ClassUnicode,
    not_white_or_number: ClassUnicode,
    newlines: ClassUnicode,
    newlines_slashes: ClassUnicode,
    contractions: BTreeSet<String>,
    contractions_any_case: BTreeSet<String>,
}

static SETS: OnceBox<Sets> = OnceBox::new();

impl Sets {
    fn get() -> &'static Sets {
        fn node(regex: &str) -> Node {
            let parsed = parse::parse(regex).expect("a valid constant");
            syntax::alternatives(&parsed).expect("a regular constant").remove(0).node
        }
        fn set(regex: &str) -> ClassUnicode {
            let Node::Class(class) = node(regex) else { unreachable!("{regex} is not a class") };
            class
        }
        fn all(regex: &str) -> BTreeSet<String> {
            strings(&node(regex)).expect("few strings").into_iter().collect()
        }
        SETS.get_or_init(|| {
            Box::new(Sets {
                letters: set(r"\p{L}"),
                letters_marks: set(r"[\p{L}\p{M}]"),
                upper: set(r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"),
                lower: set(r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"),
                numbers: set(r"\p{N}"),
                space: set(" "),
                prefix: set(r"[^\r\n\p{L}\p{N}]"),
                symbols: set(r"[^\s\p{L}\p{N}]"),
                symbols_not_marks: set(r"[^\s\p{L}\p{M}\p{N}]"),
                white: set(r"\s"),
                not_white: set(r"\S"),
                not_white_or_number: set(r"[^\s\p{N}]"),
                newlines: set(r"[\r\n]"),
                newlines_slashes: set(r"[\r\n/]"),
                contractions: all(r"'(?:[sdmt]|ll|ve|re)"),
                contractions_any_case: all(r"'(?i:[sdmt]|ll|ve|re)"),
            })
        })
    }

    fn contractions(&self, found: &BTreeSet<String>) -> Option<Contractions> {
        match found {
            found if found.is_empty() => Some(Contractions::None),
            found if *found == self.contractions => Some(Contractions::Lower),
            found if *found == self.contractions_any_case => Some(Contractions::AnyCase),
            _ => None,
        }
    }

    fn words<'a>(&self, alternatives: &'a [Alternative]) -> Option<(Prefix, Words, Contractions, &'a [Alternative])> {
        let (alternative, rest) = alternatives.split_first()?;
        let (prefix, word, suffixes) = self.word(alternative)?;
        let plain = [(&self.letters, Words::Letters), (&self.letters_marks, Words::LettersAndMarks)];
        if let Some((_, words)) = plain.into_iter().find(|(set, _)| *word == [repeat(set, 1)]) {
            return Some((prefix, words, suffixes, rest));
        }
        let (other, rest) = rest.split_first()?;
        let first = [repeat(&self.upper, 0), repeat(&self.lower, 1)];
        let second = [repeat(&self.upper, 1), repeat(&self.lower, 0)];
        let is_cased = *word == first && self.word(other)? == (prefix, &second[..], suffixes);
        is_cased.then_some((prefix, Words::Cased, suffixes, rest))
    }

    /// Returns the prefix of a word, what it consists of, and its suffixes.
    fn word<'a>(&self, alternative: &'a Alternative) -> Option<(Prefix, &'a [Node], Contractions)> {
        let (prefix, items) = self.prefix(items(alternative)?)?;
        if let [word @ .., Node::Repeat(Repeat { child, min: 0, max: Some(1), greedy: true })] = items
            && let Some(found) = strings(child)
        {
            return Some((prefix, word, self.contractions(&found.into_iter().collect())?));
        }
        Some((prefix, items, Contractions::None))
    }

    fn prefix<'a>(&self, items: &'a [Node]) -> Option<(Prefix, &'a [Node])> {
        let [Node::Repeat(Repeat { child, min: 0, max: Some(1), greedy: true }), rest @ ..] = items else {
            return Some((Prefix::None, items));
        };
        match &**child {
            Node::Class(set) if *set == self.space => Some((Prefix::Space, rest)),
            Node::Class(set) if *set == self.prefix => Some((Prefix::Any, rest)),
            _ => None,
        }
    }

    fn numbers(&self, items: &[Node]) -> Option<(u8, bool)> {
        let (prefix, items) = self.prefix(items)?;
        let digits = match items {
            [Node::Class(set)] if *set == self.numbers => 1,
            [Node::Repeat(Repeat { child, min: 1, max, greedy: true })]
                if **child == Node::Class(self.numbers.clone()) =>
            {
                match max {
                    None => 0,
                    Some(max @ 1..=3) => *max as u8,
                    Some(_) => return None,
                }
            }
            _ => return None,
        };
        match (prefix, digits) {
            (Prefix::None, _) => Some((digits, false)),
            (Prefix::Space, 0) => Some((digits, true)),
            _ => None,
        }
    }

    fn symbols(&self, items: &[Node]) -> Option<(bool, Tail)> {
        let (Prefix::Space, [symbols, tail @ ..]) = self.prefix(items)? else { return None };
        let marks_are_symbols = match symbols {
            symbols if *symbols == repeat(&self.symbols, 1) => true,
            symbols if *symbols == repeat(&self.symbols_not_marks, 1) => false,
            _ => return None,
        };
        let tail = match tail {
            [] => Tail::None,
            [tail] if *tail == repeat(&self.newlines, 0) => Tail::Newlines,
            [tail] if *tail == repeat(&self.newlines_slashes, 0) => Tail::NewlinesAndSlashes,
            _ => return None,
        };
        Some((marks_are_symbols, tail))
    }

    fn white(&self, alternatives: &[Alternative]) -> Option<(White, bool)> {
        let (start, [before_word, last]) = alternatives.split_last_chunk()?;
        let ahead = before_word.ahead.as_ref().filter(|ahead| ahead.negative)?;
        let whole_before_numbers = ahead.class == self.not_white_or_number;
        let is_before_word = before_word.node == repeat(&self.white, 1)
            && !before_word.possessive
            && (whole_before_numbers || ahead.class == self.not_white);
        // The last alternative gets a single character: longer runs match the one before it.
        let is_last = last.ahead.is_none()
            && (last.node == repeat(&self.white, 1) || last.node == Node::Class(self.white.clone()));
        if !is_before_word || !is_last {
            return None;
        }
        let is = |alternative: &Alternative, nodes: Vec<Node>| {
            alternative.ahead.is_none() && alternative.node == Node::Concat(nodes)
        };
        let is_end = |alternative: &Alternative| is(alternative, vec![repeat(&self.white, 1), Node::End]);
        // `\s*` takes all newlines but the last, so it does not matter if that may be repeated.
        let is_newline = |alternative: &Alternative| {
            is(alternative, vec![repeat(&self.white, 0), Node::Class(self.newlines.clone())])
                || is(alternative, vec![repeat(&self.white, 0), repeat(&self.newlines, 1)])
        };
        let white = match start {
            [] => White::Plain,
            [end] if is_end(end) => White::Plain,
            [newline] if is_newline(newline) => White::Newlines,
            [end, newline] if is_end(end) && is_newline(newline) => White::NewlinesUnlessLast,
            _ => return None,
        };
        Some((white, whole_before_numbers))
    }
}

/// A greedy repetition without a maximum.
fn repeat(set: &ClassUnicode, min: u32) -> Node {
    Node::Repeat(Repeat { child: Box::new(Node::Class(set.clone())), min, max: None, greedy: true })
}

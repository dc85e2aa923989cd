//! Parses a pattern.
//!
//! The parser is that of `fancy_regex`, of which nothing else is used. All engines run what it returns, so they agree
//! on what a pattern means. Constructs that they do not support are refused.

use std::collections::HashMap;

use fancy_regex::{Assertion, BacktrackingControlVerb, Expr, LookAround};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind};

use super::syntax::{Assert, Irregular, Node, Repeat, concat};
use crate::error::{Error, Result};

/// A bound for the recursion. The parser has a lower one.
const MAX_DEPTH: usize = 100;
/// A bound for the memory and time to compile a pattern: the number of nodes and of ranges of characters in them.
const MAX_SIZE: usize = 1 << 17;
/// The number of different sets of characters: parsing one can take a millisecond.
const MAX_SETS: usize = 1 << 9;

/// A parsed pattern.
pub struct Parsed {
    pub node: Node,
    /// The number of nodes and of ranges of characters in them.
    pub size: usize,
}

/// Parses a pattern.
pub fn parse(pattern: &str) -> Result<Parsed> {
    // Each node takes a character at least, except for those between others.
    if pattern.len() > 4 * MAX_SIZE {
        return Err(unsupported("it is too large"));
    }
    if changes_flags_in_a_group(pattern) {
        return Err(unsupported("it changes flags within a group; write (?i:a) instead of (?i)a"));
    }
    let tree = Expr::parse_tree(pattern).map_err(|error| Error::invalid(error.to_string()))?;
    let mut converter = Converter {
        is_referenced: &|group| tree.backrefs.contains(group),
        groups: 0,
        references: Vec::new(),
        sets: HashMap::new(),
        size: 0,
    };
    let node = converter.convert(&tree.expr, 0)?;
    if let Some(group) = converter.references.iter().find(|&&group| group > converter.groups || group == 0) {
        return Err(unsupported(format!("invalid back reference to group {group}")));
    }
    Ok(Parsed { node, size: converter.size })
}

/// The error for a pattern that is valid elsewhere.
pub fn unsupported(reason: impl Into<String>) -> Error {
    Error::invalid(format!("Unsupported pattern: {}", reason.into()))
}

/// Returns whether a flag such as `(?i)` is within a group: the parser applies it to what follows the group as well.
fn changes_flags_in_a_group(pattern: &str) -> bool {
    let is_flag = |c: char| c.is_ascii_alphabetic() || c == '-';
    let (mut groups, mut sets) = (0usize, 0usize);
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            '[' => {
                sets += 1;
                // A bracket at the start of a set does not close it.
                let start = ["^]", "^", "]"].into_iter().find(|start| chars.as_str().starts_with(start));
                chars = chars.as_str()[start.map_or(0, str::len)..].chars();
            }
            ']' => sets = sets.saturating_sub(1),
            '(' if sets == 0 => {
                let flags = chars.as_str().strip_prefix('?').map(|rest| rest.trim_start_matches(is_flag));
                if groups > 0 && flags.is_some_and(|rest| rest.starts_with(')')) {
                    return true;
                }
                groups += 1;
            }
            ')' if sets == 0 => groups = groups.saturating_sub(1),
            _ => {}
        }
    }
    false
}

struct Converter<'a> {
    is_referenced: &'a dyn Fn(usize) -> bool,
    /// The number of groups so far.
    groups: usize,
    references: Vec<usize>,
    /// The sets parsed so far, by their regular expression and whether case is ignored.
    sets: HashMap<(&'a str, bool), ClassUnicode>,
    size: usize,
}

impl<'a> Converter<'a> {
    fn convert(&mut self, expr: &'a Expr, depth: usize) -> Result<Node> {
        if depth > MAX_DEPTH {
            return Err(unsupported("it has too many nested groups"));
        }
        let node = self.node(expr, depth + 1)?;
        self.size += if let Node::Class(class) = &node { class.ranges().len() } else { 1 };
        if self.size > MAX_SIZE {
            return Err(unsupported("it is too large"));
        }
        Ok(node)
    }

    fn node(&mut self, expr: &'a Expr, depth: usize) -> Result<Node> {
        let not_supported = |what: &str| Err(unsupported(format!("it has {what}, which is not supported")));
        Ok(match expr {
            Expr::Empty => Node::Concat(Vec::new()),
            Expr::Any { newline, crlf } => {
                let mut class = ClassUnicode::empty();
                for (newline, excluded) in [('\n', !newline), ('\r', !newline && *crlf)] {
                    if excluded {
                        class.push(ClassUnicodeRange::new(newline, newline));
                    }
                }
                class.negate();
                Node::Class(class)
            }
            Expr::Assertion(assertion) => Node::Irregular(Irregular::Assert(match assertion {
                Assertion::EndText => return Ok(Node::End),
                Assertion::StartText => Assert::Start,
                Assertion::StartLine { crlf: false } => Assert::LineStart,
                Assertion::EndLine { crlf: false } => Assert::LineEnd,
                Assertion::WordBoundary => Assert::WordBoundary,
                Assertion::NotWordBoundary => Assert::NotWordBoundary,
                Assertion::EndTextIgnoreTrailingNewlines { .. } => {
                    return Err(unsupported(r"\Z has a different meaning in each engine; write \z"));
                }
                _ => return not_supported("an anchor other than ^, $, \\A, \\z, \\b and \\B"),
            })),
            Expr::Literal { val, casei } => {
                let node = |c: char| {
                    let mut class = ClassUnicode::new([ClassUnicodeRange::new(c, c)]);
                    if *casei {
                        class.try_case_fold_simple().map_err(|error| unsupported(error.to_string()))?;
                    }
                    Ok(Node::Class(class))
                };
                concat(val.chars().map(node).collect::<Result<_>>()?)
            }
            Expr::Delegate { inner, casei } => Node::Class(self.set(inner, *casei)?),
            Expr::GeneralNewline { .. } => {
                let newline = |regex| parse_class(regex, false).map(Node::Class);
                let pair = Node::Concat(vec![newline("\r")?, newline("\n")?]);
                let any = newline(r"[\n\x0b\x0c\r\x85\u2028\u2029]")?;
                Node::Atomic(Box::new(Node::Alt(vec![pair, any])))
            }
            Expr::Concat(exprs) => concat(self.children(exprs, depth)?),
            Expr::Alt(exprs) => {
                let mut nodes = Vec::new();
                for node in self.children(exprs, depth)? {
                    match node {
                        Node::Alt(inner) => nodes.extend(inner),
                        node => nodes.push(node),
                    }
                }
                Node::Alt(nodes)
            }
            Expr::Group(inner) => {
                self.groups += 1;
                let number = self.groups;
                let child = self.convert(inner, depth)?;
                if !(self.is_referenced)(number) {
                    return Ok(child);
                }
                Node::Irregular(Irregular::Group(number, Box::new(child)))
            }
            Expr::AtomicGroup(inner) => Node::Atomic(Box::new(self.convert(inner, depth)?)),
            Expr::Repeat { child, lo, hi, greedy } => {
                if lo > hi {
                    return Err(Error::invalid("Invalid repetition: its minimum is larger than its maximum"));
                }
                let bound = |number: usize| {
                    u32::try_from(number).map_err(|_| unsupported(format!("it has {number} repetitions of something")))
                };
                let max = if *hi == usize::MAX { None } else { Some(bound(*hi)?) };
                let child = Box::new(self.convert(child, depth)?);
                Node::Repeat(Repeat { child, min: bound(*lo)?, max, greedy: *greedy })
            }
            Expr::LookAround(inner, kind) => Node::Irregular(Irregular::Around {
                child: Box::new(self.convert(inner, depth)?),
                behind: matches!(kind, LookAround::LookBehind | LookAround::LookBehindNeg),
                negative: matches!(kind, LookAround::LookAheadNeg | LookAround::LookBehindNeg),
            }),
            Expr::Backref { group, casei: false } => {
                self.references.push(*group);
                Node::Irregular(Irregular::BackReference(*group))
            }
            Expr::Backref { .. } => return not_supported("a back-reference that ignores case"),
            Expr::BacktrackingControlVerb(BacktrackingControlVerb::Fail) => Node::Class(ClassUnicode::empty()),
            Expr::BacktrackingControlVerb(_) => return not_supported("a backtracking control verb"),
            Expr::SubroutineCall(_) | Expr::DefineGroup { .. } => return not_supported("a subroutine call"),
            Expr::BackrefWithRelativeRecursionLevel { .. } => return not_supported("a recursive back-reference"),
            Expr::KeepOut => return not_supported("\\K"),
            Expr::ContinueFromPreviousMatchEnd => return not_supported("\\G"),
            Expr::Conditional { .. } | Expr::BackrefExistsCondition { .. } => return not_supported("a condition"),
            Expr::Absent(_) => return not_supported("an absence operator"),
            Expr::LiteralBytes { .. } | Expr::AstNode(..) => return not_supported("a construct"),
        })
    }

    fn children(&mut self, exprs: &'a [Expr], depth: usize) -> Result<Vec<Node>> {
        exprs.iter().map(|expr| self.convert(expr, depth)).collect()
    }

    fn set(&mut self, regex: &'a str, ignore_case: bool) -> Result<ClassUnicode> {
        if let Some(set) = self.sets.get(&(regex, ignore_case)) {
            return Ok(set.clone());
        }
        if self.sets.len() >= MAX_SETS {
            return Err(unsupported("it has too many different sets of characters"));
        }
        let set = parse_class(regex, ignore_case)?;
        self.sets.insert((regex, ignore_case), set.clone());
        Ok(set)
    }
}

/// Parses a set of characters.
pub fn parse_class(regex: &str, ignore_case: bool) -> Result<ClassUnicode> {
    let unknown = || Error::invalid("Invalid set: regex error");
    let parsed = ParserBuilder::new().case_insensitive(ignore_case).build().parse(regex);
    match parsed.map_err(|_| unknown())?.into_kind() {
        HirKind::Class(Class::Unicode(class)) => Ok(class),
        HirKind::Class(Class::Bytes(class)) if class.is_ascii() => {
            Ok(ClassUnicode::new(class.iter().map(|r| ClassUnicodeRange::new(r.start().into(), r.end().into()))))
        }
        HirKind::Literal(literal) => {
            let mut chars = std::str::from_utf8(&literal.0).map_err(|_| unknown())?.chars();
            match (chars.next(), chars.next()) {
                (Some(c), None) => Ok(ClassUnicode::new([ClassUnicodeRange::new(c, c)])),
                _ => Err(unknown()),
            }
        }
        _ => Err(unknown()),
    }
}

/// Returns the sets of characters that a pattern is written with, each with a regular expression for it.
pub fn sets(pattern: &str) -> Result<Vec<(String, ClassUnicode)>> {
    fn visit(expr: &Expr, sets: &mut Vec<(String, ClassUnicode)>) -> Result<()> {
        let mut add = |regex: &str, ignore_case: bool| -> Result<()> {
            let set = parse_class(regex, ignore_case)?;
            if !sets.iter().any(|other| other.1 == set) {
                let regex = regex.replace('\r', r"\r").replace('\n', r"\n").replace('\t', r"\t");
                sets.push((if ignore_case { format!("(?i:{regex})") } else { regex }, set));
            }
            Ok(())
        };
        match expr {
            Expr::Literal { val, casei } => {
                for c in val.chars() {
                    let regex = if r"\.+*?()|[]{}^$".contains(c) { format!(r"\{c}") } else { c.to_string() };
                    add(&regex, *casei && c.is_alphabetic())?;
                }
            }
            Expr::Delegate { inner, casei } => add(inner, *casei)?,
            Expr::Any { newline: true, .. } => add(r"[\s\S]", false)?,
            Expr::Any { crlf, .. } => add(if *crlf { "[^\r\n]" } else { "[^\n]" }, false)?,
            _ => {}
        }
        expr.children_iter().try_for_each(|child| visit(child, sets))
    }
    let tree = Expr::parse_tree(pattern).map_err(|error| Error::invalid(error.to_string()))?;
    let mut sets = Vec::new();
    visit(&tree.expr, &mut sets)?;
    Ok(sets)
}

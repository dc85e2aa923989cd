//! Parses a pattern, and rewrites it until it is regular: without look-ahead, possessive repetitions or atomic groups.
//!
//! The parser is that of `fancy_regex`, so all engines agree on what a pattern means. A pattern that cannot be rewritten
//! is left to the engine that backtracks (`backtracking`).

use fancy_regex::{Assertion, Expr, LookAround};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind};

/// What keeps a pattern from being rewritten, as the object of "it has …".
pub type Obstacle = &'static str;
type Result<T> = std::result::Result<T, Obstacle>;

/// A bound for the recursion. The parser has a lower one.
const MAX_DEPTH: usize = 100;

#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// One character.
    Class(ClassUnicode),
    Concat(Vec<Node>),
    Alt(Vec<Node>),
    Repeat(Repeat),
    /// The end of the text.
    End,
    /// A group that is not backtracked into. `regular` removes it.
    Atomic(Box<Node>),
    /// A look-ahead at one character. `regular` removes it.
    Ahead(Ahead),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Repeat {
    pub child: Box<Node>,
    pub min: u32,
    pub max: Option<u32>,
    pub greedy: bool,
}

/// The next character must be in a class, or must not be in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Ahead {
    pub class: ClassUnicode,
    pub negative: bool,
}

/// One of the alternatives that a pattern tries in order. It matches at least one character.
#[derive(Clone, Debug, PartialEq)]
pub struct Alternative {
    /// Regular.
    pub node: Node,
    /// A look-ahead at the end. The node is then a greedy repetition of a class that has no character in common with
    /// that of the look-ahead.
    pub ahead: Option<Ahead>,
    /// Whether the repetition before `ahead` is possessive: it cannot give back a character to satisfy the look-ahead.
    pub possessive: bool,
}

/// Returns whether a pattern contains a repetition such as `{2,1}`, of which the engines make different things.
pub fn has_impossible_repetition(pattern: &str) -> bool {
    fn is_in(expr: &Expr) -> bool {
        matches!(expr, Expr::Repeat { lo, hi, .. } if lo > hi) || expr.children_iter().any(is_in)
    }
    Expr::parse_tree(pattern).is_ok_and(|tree| is_in(&tree.expr))
}

/// Returns the alternatives of a pattern.
pub fn parse(pattern: &str) -> Result<Vec<Alternative>> {
    let tree = Expr::parse_tree(pattern).map_err(|_| "a syntax error")?;
    let alternatives = match convert(&tree.expr, 0)? {
        Node::Alt(nodes) => nodes,
        node => vec![node],
    };
    alternatives.into_iter().map(alternative).collect()
}

/// Returns the sets of characters that a pattern is written with, each with a regular expression for it.
pub fn sets(pattern: &str) -> Result<Vec<(String, ClassUnicode)>> {
    fn visit(expr: &Expr, sets: &mut Vec<(String, ClassUnicode)>) -> Result<()> {
        let mut add = |regex: &str, expr: Expr| -> Result<()> {
            if let Node::Class(class) = convert(&expr, 0)?
                && !sets.iter().any(|set| set.1 == class)
            {
                sets.push((regex.replace('\r', r"\r").replace('\n', r"\n").replace('\t', r"\t"), class));
            }
            Ok(())
        };
        let in_case = |regex: String, casei: bool| if casei { format!("(?i:{regex})") } else { regex };
        match expr {
            Expr::Literal { val, casei } => {
                for c in val.chars() {
                    let escaped = if r"\.+*?()|[]{}^$".contains(c) { format!(r"\{c}") } else { c.to_string() };
                    add(
                        &in_case(escaped, *casei && c.is_alphabetic()),
                        Expr::Literal { val: c.into(), casei: *casei },
                    )?;
                }
            }
            Expr::Delegate { inner, casei } => add(&in_case(inner.clone(), *casei), expr.clone())?,
            Expr::Any { newline: true, .. } => add(r"[\s\S]", expr.clone())?,
            Expr::Any { crlf, .. } => add(if *crlf { "[^\r\n]" } else { "[^\n]" }, expr.clone())?,
            _ => {}
        }
        expr.children_iter().try_for_each(|child| visit(child, sets))
    }
    let tree = Expr::parse_tree(pattern).map_err(|_| "a syntax error")?;
    let mut sets = Vec::new();
    visit(&tree.expr, &mut sets)?;
    Ok(sets)
}

fn alternative(node: Node) -> Result<Alternative> {
    let mut items = match node {
        Node::Concat(items) => items,
        node => vec![node],
    };
    let ahead = match items.pop() {
        Some(Node::Ahead(ahead)) => Some(ahead),
        last => {
            items.extend(last);
            None
        }
    };
    let Some(ahead) = ahead else {
        let node = regular(Node::Concat(items), &Rest::nothing())?;
        if nullable(&node) || first(&node).ranges().is_empty() {
            return Err("an alternative that can be empty");
        }
        return Ok(Alternative { node, ahead: None, possessive: false });
    };
    const MISPLACED: Obstacle = "a look-ahead after something other than one repeated class";
    let Some(item) = items.pop().filter(|_| items.is_empty()) else { return Err(MISPLACED) };
    let (item, possessive) = match item {
        Node::Atomic(inner) => (*inner, true),
        node => (node, false),
    };
    let node = regular(item, &Rest::nothing())?;
    let repeated = match &node {
        Node::Class(class) => class,
        Node::Repeat(Repeat { child, min: 1.., greedy: true, .. }) => match &**child {
            Node::Class(class) => class,
            _ => return Err(MISPLACED),
        },
        _ => return Err(MISPLACED),
    };
    if !disjoint(repeated, &ahead.class) {
        return Err("a look-ahead for characters that the repetition before it also matches");
    }
    Ok(Alternative { node, ahead: Some(ahead), possessive })
}

fn convert(expr: &Expr, depth: usize) -> Result<Node> {
    if depth > MAX_DEPTH {
        return Err("too many nested groups");
    }
    let child = |expr: &Expr| convert(expr, depth + 1);
    let children = |exprs: &[Expr]| exprs.iter().map(child).collect::<Result<Vec<_>>>();
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
        Expr::Assertion(Assertion::EndText) => Node::End,
        Expr::Assertion(_) => return Err("an anchor or a word boundary"),
        Expr::Literal { val, casei } => {
            let node = |c: char| {
                let mut class = ClassUnicode::new([ClassUnicodeRange::new(c, c)]);
                if *casei {
                    class.try_case_fold_simple().map_err(|_| "case folding")?;
                }
                Ok(Node::Class(class))
            };
            concat(val.chars().map(node).collect::<Result<_>>()?)
        }
        Expr::Delegate { inner, casei } => Node::Class(parse_class(inner, *casei)?),
        Expr::Concat(exprs) => concat(children(exprs)?),
        Expr::Alt(exprs) => {
            let mut nodes = Vec::new();
            for node in children(exprs)? {
                match node {
                    Node::Alt(inner) => nodes.extend(inner),
                    node => nodes.push(node),
                }
            }
            Node::Alt(nodes)
        }
        Expr::Group(inner) => child(inner)?,
        Expr::AtomicGroup(inner) => Node::Atomic(Box::new(child(inner)?)),
        Expr::Repeat { child: inner, lo, hi, greedy } => {
            let bound = |number: usize| u32::try_from(number).map_err(|_| "too many repetitions");
            let max = if *hi == usize::MAX { None } else { Some(bound(*hi)?) };
            Node::Repeat(Repeat { child: Box::new(child(inner)?), min: bound(*lo)?, max, greedy: *greedy })
        }
        Expr::LookAround(inner, LookAround::LookAhead) => ahead(child(inner)?, false)?,
        Expr::LookAround(inner, LookAround::LookAheadNeg) => ahead(child(inner)?, true)?,
        Expr::LookAround(..) => return Err("a look-behind"),
        Expr::Backref { .. } | Expr::BackrefWithRelativeRecursionLevel { .. } => return Err("a back-reference"),
        _ => return Err("a construct that needs backtracking"),
    })
}

/// Concatenates nodes, without nesting.
fn concat(nodes: Vec<Node>) -> Node {
    let mut flat = Vec::new();
    for node in nodes {
        match node {
            Node::Concat(inner) => flat.extend(inner),
            node => flat.push(node),
        }
    }
    if flat.len() == 1 { flat.remove(0) } else { Node::Concat(flat) }
}

fn ahead(node: Node, negative: bool) -> Result<Node> {
    let class = match regular(node, &Rest::nothing())? {
        Node::Class(class) => class,
        Node::Alt(nodes) => {
            let mut union = ClassUnicode::empty();
            for node in nodes {
                let Node::Class(class) = node else { return Err("a look-ahead at more than one character") };
                union.union(&class);
            }
            union
        }
        _ => return Err("a look-ahead at more than one character"),
    };
    Ok(Node::Ahead(Ahead { class, negative }))
}

fn parse_class(regex: &str, ignore_case: bool) -> Result<ClassUnicode> {
    let hir =
        ParserBuilder::new().case_insensitive(ignore_case).build().parse(regex).map_err(|_| "an unknown class")?;
    match hir.into_kind() {
        HirKind::Class(Class::Unicode(class)) => Ok(class),
        HirKind::Class(Class::Bytes(class)) if class.is_ascii() => {
            Ok(ClassUnicode::new(class.iter().map(|r| ClassUnicodeRange::new(r.start().into(), r.end().into()))))
        }
        HirKind::Literal(literal) => {
            let mut chars = std::str::from_utf8(&literal.0).map_err(|_| "bytes that are not UTF-8")?.chars();
            match (chars.next(), chars.next()) {
                (Some(c), None) => Ok(ClassUnicode::new([ClassUnicodeRange::new(c, c)])),
                _ => Err("an unknown class"),
            }
        }
        _ => Err("an unknown class"),
    }
}

/// What can follow a node within its alternative.
#[derive(Clone)]
struct Rest {
    /// The characters with which it can start.
    first: ClassUnicode,
    /// Whether it always matches, if only nothing.
    cannot_fail: bool,
}

impl Rest {
    fn nothing() -> Self {
        Self { first: ClassUnicode::empty(), cannot_fail: true }
    }

    /// Returns what follows the node before `node`, if this follows `node`.
    fn before(&self, node: &Node) -> Self {
        let mut first = first(node);
        if nullable(node) {
            first.union(&self.first);
        }
        Self { first, cannot_fail: self.cannot_fail && nullable(node) }
    }
}

/// Returns a node that matches the same if followed by `rest`, and is regular.
fn regular(node: Node, rest: &Rest) -> Result<Node> {
    match node {
        Node::Class(_) | Node::End => Ok(node),
        Node::Ahead(_) => Err("a look-ahead that is not followed by one character"),
        Node::Alt(nodes) => Ok(Node::Alt(nodes.into_iter().map(|node| regular(node, rest)).collect::<Result<_>>()?)),
        Node::Concat(nodes) => {
            // Both from the last node to the first; `rests` has what follows each node, and what follows the next one.
            let (mut done, mut rests) = (Vec::new(), vec![rest.clone()]);
            for node in nodes.into_iter().rev() {
                let node = match node {
                    Node::Ahead(ahead) => {
                        rests.pop();
                        restrict(done.pop(), &ahead)?
                    }
                    node => regular(node, &rests[done.len()])?,
                };
                rests.push(rests[done.len()].before(&node));
                done.push(node);
            }
            done.reverse();
            Ok(concat(done))
        }
        Node::Repeat(Repeat { child, min, max, greedy }) => {
            let mut after = Rest { cannot_fail: rest.cannot_fail && min <= 1, ..rest.clone() };
            if max != Some(1) {
                after.first.union(&first(&child));
            }
            let child = regular(*child, &after)?;
            if nullable(&child) {
                return Err("a repetition of something that can be empty");
            }
            Ok(Node::Repeat(Repeat { child: Box::new(child), min, max, greedy }))
        }
        Node::Atomic(inner) => {
            let node = regular(*inner, &Rest::nothing())?;
            let has_one_match = match &node {
                Node::Class(_) | Node::End => true,
                Node::Concat(nodes) => nodes.iter().all(|node| matches!(node, Node::Class(_))),
                // To give back a character helps only if what follows can start with it.
                Node::Repeat(Repeat { child, min, max, greedy }) => match &**child {
                    Node::Class(class) => *max == Some(*min) || *greedy && disjoint(class, &rest.first),
                    _ => false,
                },
                _ => false,
            };
            if rest.cannot_fail || has_one_match { Ok(node) } else { Err("a possessive repetition or an atomic group") }
        }
    }
}

/// Returns `node` with its first character restricted by the look-ahead before it.
fn restrict(node: Option<Node>, ahead: &Ahead) -> Result<Node> {
    let restricted = |mut class: ClassUnicode| {
        if ahead.negative {
            class.difference(&ahead.class)
        } else {
            class.intersect(&ahead.class)
        }
        Node::Class(class)
    };
    match node {
        Some(Node::Class(class)) => Ok(restricted(class)),
        Some(Node::Concat(mut nodes)) if matches!(nodes.first(), Some(Node::Class(_))) => {
            let first = nodes.remove(0);
            nodes.insert(0, restrict(Some(first), ahead)?);
            Ok(concat(nodes))
        }
        Some(Node::Repeat(Repeat { child, min: min @ 1.., max, greedy })) if matches!(*child, Node::Class(_)) => {
            let Node::Class(class) = (*child).clone() else { unreachable!("just matched") };
            let more = Repeat { child, min: min - 1, max: max.map(|max| max.saturating_sub(1)), greedy };
            Ok(concat(vec![restricted(class), Node::Repeat(more)]))
        }
        _ => Err("a look-ahead that is not followed by one character"),
    }
}

/// Returns the characters with which a match can start.
pub fn first(node: &Node) -> ClassUnicode {
    match node {
        Node::Class(class) => class.clone(),
        Node::End | Node::Ahead(_) => ClassUnicode::empty(),
        Node::Atomic(node) => first(node),
        Node::Repeat(repeat) => first(&repeat.child),
        Node::Alt(nodes) => union(nodes.iter().map(first)),
        Node::Concat(nodes) => {
            let optional = nodes.iter().take_while(|node| nullable(node)).count();
            union(nodes.iter().take(optional + 1).map(first))
        }
    }
}

fn union(classes: impl Iterator<Item = ClassUnicode>) -> ClassUnicode {
    classes.fold(ClassUnicode::empty(), |mut all, class| {
        all.union(&class);
        all
    })
}

/// Returns whether a node can match nothing.
pub fn nullable(node: &Node) -> bool {
    match node {
        Node::Class(_) | Node::End => false,
        Node::Ahead(_) => true,
        Node::Atomic(node) => nullable(node),
        Node::Repeat(repeat) => repeat.min == 0 || nullable(&repeat.child),
        Node::Alt(nodes) => nodes.iter().any(nullable),
        Node::Concat(nodes) => nodes.iter().all(nullable),
    }
}

pub fn contains(class: &ClassUnicode, c: char) -> bool {
    class
        .ranges()
        .binary_search_by(|range| match () {
            () if range.end() < c => std::cmp::Ordering::Less,
            () if range.start() > c => std::cmp::Ordering::Greater,
            () => std::cmp::Ordering::Equal,
        })
        .is_ok()
}

fn disjoint(a: &ClassUnicode, b: &ClassUnicode) -> bool {
    let mut common = a.clone();
    common.intersect(b);
    common.ranges().is_empty()
}

/// Calls `visit` with each class in a node.
pub fn for_each_class(node: &Node, visit: &mut impl FnMut(&ClassUnicode)) {
    match node {
        Node::Class(class) => visit(class),
        Node::Ahead(ahead) => visit(&ahead.class),
        Node::End => {}
        Node::Atomic(node) => for_each_class(node, visit),
        Node::Repeat(repeat) => for_each_class(&repeat.child, visit),
        Node::Alt(nodes) | Node::Concat(nodes) => nodes.iter().for_each(|node| for_each_class(node, visit)),
    }
}

/// Returns the characters that can follow `c` within a match of a regular node, of which `next` can follow the match.
pub fn followers(node: &Node, c: char, next: &ClassUnicode) -> ClassUnicode {
    match node {
        Node::Class(class) if contains(class, c) => next.clone(),
        Node::Class(_) | Node::End | Node::Ahead(_) => ClassUnicode::empty(),
        Node::Atomic(node) => followers(node, c, next),
        Node::Alt(nodes) => union(nodes.iter().map(|node| followers(node, c, next))),
        Node::Repeat(repeat) => {
            let mut next = next.clone();
            if repeat.max != Some(1) {
                next.union(&first(&repeat.child));
            }
            followers(&repeat.child, c, &next)
        }
        Node::Concat(nodes) => {
            let (mut found, mut next) = (ClassUnicode::empty(), next.clone());
            for node in nodes.iter().rev() {
                found.union(&followers(node, c, &next));
                let mut before = first(node);
                if nullable(node) {
                    before.union(&next);
                }
                next = before;
            }
            found
        }
    }
}

/// Returns whether a node contains `$`.
pub fn has_end(node: &Node) -> bool {
    match node {
        Node::End => true,
        Node::Class(_) | Node::Ahead(_) => false,
        Node::Atomic(node) => has_end(node),
        Node::Repeat(repeat) => has_end(&repeat.child),
        Node::Alt(nodes) | Node::Concat(nodes) => nodes.iter().any(has_end),
    }
}

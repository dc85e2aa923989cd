//! Rewrites a pattern until it is regular: without look-ahead, possessive repetitions or atomic groups.
//!
//! A pattern that cannot be rewritten is left to the engine that backtracks (`backtracking`).

use regex_syntax::hir::ClassUnicode;

use super::parse::Parsed;

/// What keeps a pattern from being rewritten, as the object of "it has …".
pub type Obstacle = &'static str;
type Result<T> = std::result::Result<T, Obstacle>;

/// To rewrite a larger pattern could take seconds.
const MAX_SIZE: usize = 1 << 14;

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
    /// Only the engine that backtracks can run it.
    Irregular(Irregular),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Irregular {
    Assert(Assert),
    /// A look-ahead or a look-behind.
    Around {
        child: Box<Node>,
        behind: bool,
        negative: bool,
    },
    /// A group that has back-references.
    Group(usize, Box<Node>),
    BackReference(usize),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Assert {
    /// The start of the text.
    Start,
    LineStart,
    LineEnd,
    WordBoundary,
    NotWordBoundary,
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
    /// that of the look-ahead, or such that no shorter match satisfies the look-ahead.
    pub ahead: Option<Ahead>,
    /// Whether the node cannot give back a character to satisfy the look-ahead.
    pub possessive: bool,
}

/// Returns the alternatives of a pattern, if it is regular.
pub fn alternatives(parsed: &Parsed) -> Result<Vec<Alternative>> {
    if parsed.size > MAX_SIZE {
        return Err("too many characters");
    }
    let alternatives = match lower(&parsed.node)? {
        Node::Alt(nodes) => nodes,
        node => vec![node],
    };
    alternatives.into_iter().map(alternative).collect()
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
    if let Ok(Node::Concat(nodes)) = regular(Node::Concat(items.clone()), &Rest::nothing())
        && let [Node::Repeat(Repeat { child, max: None, greedy: true, .. }), Node::Class(last)] = &nodes[..]
        && let Node::Class(repeated) = &**child
        && [repeated, last].into_iter().all(|class| rejects_all(&ahead, class))
    {
        // `a*b(?![ab])`: the first match to be tried is the longest, and all others are followed by an a or b.
        return Ok(Alternative { node: Node::Concat(nodes), ahead: Some(ahead), possessive: true });
    }
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

fn rejects_all(ahead: &Ahead, class: &ClassUnicode) -> bool {
    let mut accepted = class.clone();
    match ahead.negative {
        true => accepted.difference(&ahead.class),
        false => accepted.intersect(&ahead.class),
    }
    accepted.ranges().is_empty()
}

/// Returns a node without groups, and with look-aheads at one character only, if it has nothing else that is irregular.
fn lower(node: &Node) -> Result<Node> {
    let all = |nodes: &[Node]| nodes.iter().map(lower).collect::<Result<Vec<_>>>();
    Ok(match node {
        Node::Class(_) | Node::End | Node::Ahead(_) => node.clone(),
        Node::Concat(nodes) => concat(all(nodes)?),
        Node::Alt(nodes) => Node::Alt(all(nodes)?),
        Node::Repeat(repeat) => Node::Repeat(Repeat { child: Box::new(lower(&repeat.child)?), ..*repeat }),
        Node::Atomic(child) => Node::Atomic(Box::new(lower(child)?)),
        Node::Irregular(Irregular::Group(_, child)) => lower(child)?,
        Node::Irregular(Irregular::Around { child, behind: false, negative }) => ahead(lower(child)?, *negative)?,
        Node::Irregular(Irregular::Around { .. }) => return Err("a look-behind"),
        Node::Irregular(Irregular::Assert(_)) => return Err("an anchor or a word boundary"),
        Node::Irregular(Irregular::BackReference(_)) => return Err("a back-reference"),
    })
}

/// Concatenates nodes, without nesting.
pub fn concat(nodes: Vec<Node>) -> Node {
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

/// What can follow a node within its alternative.
#[derive(Clone)]
struct Rest {
    /// The characters with which it can start.
    first: ClassUnicode,
    /// Whether it always matches, possibly the empty string.
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
        Node::Irregular(_) => unreachable!("lowered"),
        Node::Alt(nodes) => Ok(Node::Alt(nodes.into_iter().map(|node| regular(node, rest)).collect::<Result<_>>()?)),
        Node::Concat(nodes) => {
            // From the last node to the first: the nodes done, what follows the last of them, and what follows the
            // next.
            let (mut done, mut after, mut rest) = (Vec::new(), rest.clone(), rest.clone());
            for node in nodes.into_iter().rev() {
                let node = match node {
                    Node::Ahead(ahead) => {
                        rest = after;
                        restrict(done.pop(), &ahead)?
                    }
                    node => regular(node, &rest)?,
                };
                let before = rest.before(&node);
                after = std::mem::replace(&mut rest, before);
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
        Node::End | Node::Ahead(_) | Node::Irregular(_) => ClassUnicode::empty(),
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
        Node::Ahead(_) | Node::Irregular(_) => true,
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
        Node::Irregular(Irregular::Group(_, child) | Irregular::Around { child, .. }) => for_each_class(child, visit),
        Node::Irregular(_) => {}
        Node::Atomic(node) => for_each_class(node, visit),
        Node::Repeat(repeat) => for_each_class(&repeat.child, visit),
        Node::Alt(nodes) | Node::Concat(nodes) => nodes.iter().for_each(|node| for_each_class(node, visit)),
    }
}

/// Returns the characters that can follow `c` within a match of a regular node. `next` are those that can follow the
/// match.
pub fn followers(node: &Node, c: char, next: &ClassUnicode) -> ClassUnicode {
    match node {
        Node::Class(class) if contains(class, c) => next.clone(),
        Node::Class(_) | Node::End | Node::Ahead(_) | Node::Irregular(_) => ClassUnicode::empty(),
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
        Node::Class(_) | Node::Ahead(_) | Node::Irregular(_) => false,
        Node::Atomic(node) => has_end(node),
        Node::Repeat(repeat) => has_end(&repeat.child),
        Node::Alt(nodes) | Node::Concat(nodes) => nodes.iter().any(has_end),
    }
}

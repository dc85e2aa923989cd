//! Maps each character to its class: the characters that a pattern does not distinguish.
//!
//! The classes come from the Unicode tables of `regex-syntax`. The engine that backtracks uses the same tables, so all
//! engines agree on every character.

use once_cell::race::OnceBox;
use regex_syntax::hir::{Class, HirKind};

/// `\p{Lu}` and `\p{Lt}`.
pub const UPPER: u8 = 1;
/// `\p{Ll}`.
pub const LOWER: u8 = 1 << 1;
/// `\p{Lm}` and `\p{Lo}`.
pub const CASELESS: u8 = 1 << 2;
/// `\p{M}`.
pub const MARK: u8 = 1 << 3;
/// `\p{N}`.
pub const NUMBER: u8 = 1 << 4;
/// Whitespace other than `\r` and `\n`.
pub const SPACE: u8 = 1 << 5;
/// `\r` and `\n`.
pub const NEWLINE: u8 = 1 << 6;
/// Everything else.
pub const OTHER: u8 = 1 << 7;

/// `\p{L}`.
pub const LETTER: u8 = UPPER | LOWER | CASELESS;
/// `\s`.
pub const WHITE: u8 = SPACE | NEWLINE;
/// `[^\s\p{L}\p{N}]`.
pub const SYMBOL: u8 = MARK | OTHER;

/// `\p{Nd}`, in the table of `ClassTable::decimals`.
pub const DECIMAL: u8 = 1;
/// The word characters of Oniguruma, including decimals.
pub const WORD: u8 = 1 << 1 | DECIMAL;

/// The number of code points in a block.
const BLOCK: usize = 64;
/// The capacity for distinct blocks. The classes above need about 350.
const BLOCKS: usize = 1 << 11;
/// The number of blocks in the 2²¹ code points that a four-byte sequence can encode.
const INDEX: usize = (1 << 21) / BLOCK;

/// The class of each character, in two stages: the code points are divided into blocks of 64, and equal blocks are
/// stored only once. The lengths of both stages are powers of two, so that look-ups need no bounds checks.
pub struct ClassTable {
    ascii: [u8; 256],
    index: Box<[u16; INDEX]>,
    blocks: Box<[[u8; BLOCK]; BLOCKS]>,
}

/// Threads that need the table at the same time may each build it; one result is kept. `OnceLock` would make them wait
/// for each other, and a process forked in the meantime would wait forever.
static GENERAL: OnceBox<ClassTable> = OnceBox::new();
static DECIMALS: OnceBox<ClassTable> = OnceBox::new();

impl ClassTable {
    /// Returns the table of the classes above, which the scanners use.
    pub fn general() -> &'static ClassTable {
        GENERAL.get_or_init(|| {
            Box::new(ClassTable::of(&[
                (r"[\s\S]", OTHER),
                (r"[\p{Lu}\p{Lt}]", UPPER),
                (r"\p{Ll}", LOWER),
                (r"[\p{Lm}\p{Lo}]", CASELESS),
                (r"\p{M}", MARK),
                (r"\p{N}", NUMBER),
                (r"\s", SPACE),
                (r"[\r\n]", NEWLINE),
            ]))
        })
    }

    /// Returns the table of `DECIMAL` and `WORD`.
    pub fn decimals() -> &'static ClassTable {
        DECIMALS.get_or_init(|| {
            let words = r"[\p{Alphabetic}\p{M}\p{Pc}²³¹¼-¾]";
            Box::new(ClassTable::of(&[(words, WORD & !DECIMAL), (r"\p{Nd}", DECIMAL)]))
        })
    }

    /// Takes sets of characters and their classes. The last set of a character counts.
    fn of(sets: &[(&str, u8)]) -> ClassTable {
        let of_set = |&(regex, class): &(_, u8)| {
            ranges(regex).into_iter().map(move |(first, last)| (first as u32, last as u32, class))
        };
        ClassTable::new(sets.iter().flat_map(of_set).collect()).expect("Unicode has outgrown the class table")
    }

    /// `ranges` are (first, last, class), the last range of a code point counts. Returns `None` if there are too many.
    pub fn new(ranges: Vec<(u32, u32, u8)>) -> Option<ClassTable> {
        let mut flat = vec![0; char::MAX as usize + 1];
        for (first, last, class) in ranges {
            flat[first as usize..=last as usize].fill(class);
        }
        let mut ascii = [0; 256];
        ascii[..128].copy_from_slice(&flat[..128]);
        let mut index = Box::new([0; INDEX]);
        let mut blocks: Vec<[u8; BLOCK]> = Vec::new();
        let mut known = std::collections::HashMap::new();
        let (all_blocks, _) = flat.as_chunks::<BLOCK>();
        // Long stretches of code points have equal blocks: comparing with the last one saves hashing them.
        let mut last = (&[0xff; BLOCK], 0);
        for (entry, block) in index.iter_mut().zip(all_blocks) {
            if last.0 != block {
                let number = *known.entry(block).or_insert_with(|| {
                    blocks.push(*block);
                    blocks.len() as u16 - 1
                });
                last = (block, number);
            }
            *entry = last.1;
        }
        if blocks.len() > BLOCKS {
            return None;
        }
        blocks.resize(BLOCKS, [0; BLOCK]);
        let blocks = blocks.into_boxed_slice().try_into();
        Some(ClassTable { ascii, index, blocks: blocks.expect("resized to this length") })
    }

    /// Returns the class of an ASCII byte, or 0 for any other byte.
    #[inline(always)]
    pub fn of_byte(&self, byte: u8) -> u8 {
        self.ascii[byte as usize]
    }

    /// Returns the class of a code point below 2²¹.
    #[inline(always)]
    pub fn of_code(&self, code: u32) -> u8 {
        let block = self.index[code as usize / BLOCK % INDEX];
        self.blocks[block as usize % BLOCKS][code as usize % BLOCK]
    }

    pub fn of_char(&self, c: char) -> u8 {
        self.of_code(c as u32)
    }
}

/// A text as the scanners and automata see it. Positions are byte offsets and always character boundaries.
#[derive(Clone, Copy)]
pub struct Text<'t> {
    /// Valid UTF-8.
    pub bytes: &'t [u8],
    pub classes: &'t ClassTable,
}

impl Text<'_> {
    /// Returns the class of the character at `pos` and its length in bytes, or (0, 0) at the end of the text.
    #[inline(always)]
    pub fn class(self, pos: usize) -> (u8, usize) {
        match self.bytes.get(pos) {
            Some(&byte) if byte < 0x80 => (self.classes.of_byte(byte), 1),
            Some(&byte) => self.multibyte_class(byte, pos),
            None => (0, 0),
        }
    }

    /// Implements `class` for a character of several bytes, the first of which is `lead`.
    #[inline(always)]
    fn multibyte_class(self, lead: u8, pos: usize) -> (u8, usize) {
        let low = |i: usize| u32::from(self.bytes[pos + i] & 0x3f);
        let lead = u32::from(lead);
        if lead < 0xe0 {
            return (self.classes.of_code((lead & 0x1f) << 6 | low(1)), 2);
        }
        if lead < 0xf0 {
            let code = (lead & 0xf) << 12 | low(1) << 6 | low(2);
            return (self.classes.of_code(code), 3);
        }
        let code = (lead & 7) << 18 | low(1) << 12 | low(2) << 6 | low(3);
        (self.classes.of_code(code), 4)
    }
}

/// Returns the ranges of characters that a character class matches.
fn ranges(regex: &str) -> Vec<(char, char)> {
    let hir = regex_syntax::parse(regex).expect("a valid constant");
    match hir.kind() {
        HirKind::Class(Class::Unicode(class)) => class.iter().map(|r| (r.start(), r.end())).collect(),
        other => unreachable!("{regex} is not a character class: {other:?}"),
    }
}

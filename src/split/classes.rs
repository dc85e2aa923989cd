//! Maps each character to its class, as far as the named patterns distinguish characters.
//!
//! The classes come from the Unicode tables of `regex-syntax`. The engine for custom patterns uses the same tables, so
//! both agree on every character.

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
/// White space other than `\r` and `\n`.
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

/// The number of code points in a block.
const BLOCK: usize = 64;
/// The capacity for distinct blocks. Unicode 16 needs about 350.
const BLOCKS: usize = 512;
/// The number of blocks in the 2²¹ code points that a four-byte sequence can encode.
const INDEX: usize = (1 << 21) / BLOCK;

/// A two-stage table: the code points are divided into blocks of 64, and equal blocks are stored only once. The lengths
/// of both stages are powers of two, so that look-ups need no bounds checks.
pub struct Classes {
    ascii: [u8; 256],
    index: Box<[u16; INDEX]>,
    blocks: Box<[[u8; BLOCK]; BLOCKS]>,
}

/// Threads that need the table at the same time may each build it; one result is kept. `OnceLock` would make them wait
/// for each other, and a process forked in the meantime would wait forever.
static CLASSES: OnceBox<Classes> = OnceBox::new();

impl Classes {
    pub fn get() -> &'static Classes {
        CLASSES.get_or_init(|| Box::new(Classes::build()))
    }

    fn build() -> Classes {
        let mut flat = vec![OTHER; char::MAX as usize + 1];
        for (regex, class) in [
            (r"[\p{Lu}\p{Lt}]", UPPER),
            (r"\p{Ll}", LOWER),
            (r"[\p{Lm}\p{Lo}]", CASELESS),
            (r"\p{M}", MARK),
            (r"\p{N}", NUMBER),
            (r"\s", SPACE),
            (r"[\r\n]", NEWLINE),
        ] {
            for (first, last) in ranges(regex) {
                flat[first as usize..=last as usize].fill(class);
            }
        }

        let mut ascii = [0; 256];
        ascii[..128].copy_from_slice(&flat[..128]);
        let mut index = Box::new([0; INDEX]);
        let mut blocks: Vec<[u8; BLOCK]> = Vec::with_capacity(BLOCKS);
        let mut known = std::collections::HashMap::new();
        let (all_blocks, _) = flat.as_chunks::<BLOCK>();
        // Long stretches of code points have equal blocks: comparing with the last one saves hashing them.
        let mut last = (&[0; BLOCK], 0);
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
        assert!(blocks.len() <= BLOCKS, "Unicode has outgrown the class table");
        blocks.resize(BLOCKS, [OTHER; BLOCK]);
        let blocks = blocks.into_boxed_slice().try_into();
        Classes { ascii, index, blocks: blocks.expect("resized to this length") }
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

/// Returns the ranges of characters that a character class matches.
fn ranges(regex: &str) -> Vec<(char, char)> {
    let hir = regex_syntax::parse(regex).expect("a valid constant");
    match hir.kind() {
        HirKind::Class(Class::Unicode(class)) => class.iter().map(|r| (r.start(), r.end())).collect(),
        other => unreachable!("{regex} is not a character class: {other:?}"),
    }
}

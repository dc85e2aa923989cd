//! The class of a character, as far as the named patterns tell characters apart.
//!
//! The data are those of `regex-syntax`, the tables of the engine that runs custom patterns, so
//! that both agree on every character. Nothing here knows about chunks.

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
/// What is left.
pub const OTHER: u8 = 1 << 7;

/// `\p{L}`.
pub const LETTER: u8 = UPPER | LOWER | CASELESS;
/// `\s`.
pub const WHITE: u8 = SPACE | NEWLINE;
/// `[^\s\p{L}\p{N}]`.
pub const SYMBOL: u8 = MARK | OTHER;

const BLOCK: usize = 64;
/// Unicode 16 needs about 350 different blocks.
const BLOCKS: usize = 512;
/// The numbers of 64 code points that a four-byte sequence can spell.
const INDEX: usize = (1 << 21) / BLOCK;

/// One class bit for each character, in two stages: 64 code points share a block, and equal blocks
/// are stored once. Both arrays are a power of two long, so that no look-up needs a bounds check.
pub struct Classes {
    ascii: [u8; 256],
    index: Box<[u16; INDEX]>,
    blocks: Box<[[u8; BLOCK]; BLOCKS]>,
}

/// Threads that come at the same time each build it, and one is kept: nobody waits, so a process that is forked
/// meanwhile does not wait forever.
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
        let (whole, _) = flat.as_chunks::<BLOCK>();
        let mut last = (&[0; BLOCK], 0);
        for (entry, block) in index.iter_mut().zip(whole) {
            if last.0 != block {
                let number = *known.entry(block).or_insert_with(|| {
                    blocks.push(*block);
                    blocks.len() as u16 - 1
                });
                last = (block, number);
            }
            *entry = last.1;
        }
        assert!(blocks.len() <= BLOCKS, "Unicode outgrew the class table");
        blocks.resize(BLOCKS, [OTHER; BLOCK]);
        let blocks = blocks.into_boxed_slice().try_into();
        Classes { ascii, index, blocks: blocks.expect("resized to this length") }
    }

    /// The class of an ASCII byte; 0 for any other byte.
    #[inline(always)]
    pub fn of_byte(&self, byte: u8) -> u8 {
        self.ascii[byte as usize]
    }

    /// The class of a code point below 2²¹.
    #[inline(always)]
    pub fn of_code(&self, code: u32) -> u8 {
        let block = self.index[code as usize / BLOCK % INDEX];
        self.blocks[block as usize % BLOCKS][code as usize % BLOCK]
    }

    pub fn of_char(&self, c: char) -> u8 {
        self.of_code(c as u32)
    }
}

/// The characters that a regular expression for one character matches.
fn ranges(regex: &str) -> Vec<(char, char)> {
    let hir = regex_syntax::parse(regex).expect("a constant class of this module");
    match hir.kind() {
        HirKind::Class(Class::Unicode(class)) => class.iter().map(|r| (r.start(), r.end())).collect(),
        other => unreachable!("{regex} is no class: {other:?}"),
    }
}

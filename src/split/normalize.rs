//! Unicode normalization. Only the parts of a text that may change are normalized, so a text that is already normalized
//! costs little.
//!
//! A character is inert if it is a starter (its combining class is 0) and its quick check is "yes": it is in no way
//! changed by what is before it, and starts a part of the text that can be normalized on its own (UAX #15, section 9).

use std::borrow::Cow;
use std::iter;

use once_cell::race::OnceBox;
use unicode_normalization::char::{canonical_combining_class, compose, decompose_canonical, decompose_compatible};
use unicode_normalization::{IsNormalized, UnicodeNormalization};
use unicode_normalization::{is_nfc_quick, is_nfd_quick, is_nfkc_quick, is_nfkd_quick};

use super::blocks::{BLOCK, high_bits};
use super::chunks::Span;
use super::classes::{ClassTable, Text};

/// A normalization form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Nfc,
    Nfd,
    Nfkc,
    Nfkd,
}

impl Form {
    pub const ALL: [(&'static str, Form); 4] =
        [("NFC", Form::Nfc), ("NFD", Form::Nfd), ("NFKC", Form::Nfkc), ("NFKD", Form::Nfkd)];

    fn quick_check(self, c: char) -> IsNormalized {
        let c = iter::once(c);
        match self {
            Form::Nfc => is_nfc_quick(c),
            Form::Nfd => is_nfd_quick(c),
            Form::Nfkc => is_nfkc_quick(c),
            Form::Nfkd => is_nfkd_quick(c),
        }
    }

    #[inline(never)]
    fn normalize_all(self, text: &str, normalized: &mut String) {
        match self {
            Form::Nfc => normalized.extend(text.nfc()),
            Form::Nfd => normalized.extend(text.nfd()),
            Form::Nfkc => normalized.extend(text.nfkc()),
            Form::Nfkd => normalized.extend(text.nfkd()),
        }
    }

    /// Returns a text in this form.
    pub fn normalize(self, text: &str) -> Cow<'_, str> {
        let (mut normalized, mut copied) = (String::new(), 0);
        self.for_each_change(text, |(start, end), part| {
            normalized.push_str(&text[copied..start]);
            normalized.push_str(part);
            copied = end;
        });
        if copied == 0 {
            return Cow::Borrowed(text);
        }
        normalized.push_str(&text[copied..]);
        Cow::Owned(normalized)
    }

    /// Calls `change` with each part of a text that is not in this form, where it starts and ends, and what it becomes.
    pub fn for_each_change(self, text: &str, mut change: impl FnMut(Span, &str)) {
        let mut normalized = String::new();
        Properties::of(self).for_each_part(text, |(start, end)| {
            normalized.clear();
            self.normalize_all(&text[start..end], &mut normalized);
            if normalized != text[start..end] {
                change((start, end), &normalized);
            }
        });
    }

    /// Returns the characters of a text in this form, each with the place of the character that it stands for.
    ///
    /// This is what Hugging Face's library does: a character counts as replaced by the first one of its decomposition,
    /// those after it are inserted, and a character that is composed with the one before it is removed. What is left
    /// replaces the characters of the text in order, and what is inserted has the place of the one before it.
    pub fn aligned(self, text: &str) -> Vec<(char, Span)> {
        let mut decomposed: Vec<(char, isize)> = Vec::new();
        let mut starter = 0;
        for c in text.chars() {
            let mut inserted = 0;
            let mut push = |c| {
                if canonical_combining_class(c) == 0 {
                    decomposed[starter..].sort_by_key(|(c, _)| canonical_combining_class(*c));
                    starter = decomposed.len();
                }
                decomposed.push((c, inserted));
                inserted = 1;
            };
            match self {
                Form::Nfc | Form::Nfd => decompose_canonical(c, &mut push),
                Form::Nfkc | Form::Nfkd => decompose_compatible(c, &mut push),
            }
        }
        decomposed[starter..].sort_by_key(|(c, _)| canonical_combining_class(*c));
        let characters = if matches!(self, Form::Nfc | Form::Nfkc) { composed(decomposed) } else { decomposed };
        let mut places = text.char_indices().map(|(at, c)| (at, at + c.len_utf8()));
        let mut place = (0, 0);
        let aligned = characters.into_iter().map(|(c, change)| {
            if change <= 0 {
                place = places.next().unwrap_or(place);
            }
            let aligned = (c, place);
            for _ in change..0 {
                place = places.next().unwrap_or(place);
            }
            aligned
        });
        aligned.collect()
    }

    /// Returns whether a character is inert.
    pub fn is_inert(self, c: char) -> bool {
        Properties::of(self).classes.of_char(c) == INERT
    }
}

/// Composes decomposed characters. The second value of each is 1 if it is inserted, and less the more are removed.
fn composed(decomposed: Vec<(char, isize)>) -> Vec<(char, isize)> {
    let mut composed: Vec<(char, isize)> = Vec::new();
    let mut starter = None; // the index of the last one, with which others are composed
    for (c, change) in decomposed {
        let class = canonical_combining_class(c);
        if let Some(index) = starter {
            let (before, change_before): (char, isize) = composed[index];
            let last = (composed.len() > index + 1).then(|| canonical_combining_class(composed[composed.len() - 1].0));
            let is_blocked = last.is_some_and(|last| last >= class);
            if let Some(both) = compose(before, c).filter(|_| !is_blocked) {
                composed[index] = (both, change_before + change - 1);
                continue;
            }
        }
        if class == 0 {
            starter = Some(composed.len());
        }
        composed.push((c, change));
    }
    composed
}

/// The class of inert characters. Other characters whose quick check is "yes" have their combining class.
const INERT: u8 = 0;
/// The class of characters whose quick check is "no" or "maybe". No character has this combining class.
const UNSURE: u8 = 255;

/// The first bytes of most characters in many languages: those below U+0300, Cyrillic, Chinese and Korean. These are
/// inert in NFC.
const FREQUENT: [(u8, u8); 4] = [(0, 0xcb), (0xd0, 0xd1), (0xe4, 0xe9), (0xeb, 0xed)];
/// ASCII characters, which are always inert, and bytes that start no character.
const INERT_BYTES: (u8, u8) = (0, 0xbf);

/// What a form needs to know about each character.
struct Properties {
    classes: ClassTable,
    /// The characters of several bytes that are not inert: for the lower six bits of the first and the second byte, a
    /// bit for each value of those of the third. Characters of two bytes set all 64, and fourth bytes are ignored.
    others: Box<[[u64; 64]; 64]>,
    /// Ranges of bytes that start no such character, as the first one and the number of those after it.
    skipped: [(u8, u8); 4],
}

impl Properties {
    fn of(form: Form) -> &'static Self {
        // See `ClassTable::general` about this type.
        static ALL: [OnceBox<Properties>; 4] = [const { OnceBox::new() }; 4];
        ALL[form as usize].get_or_init(|| Box::new(Self::new(form)))
    }

    fn new(form: Form) -> Self {
        // All others are inert. The tests check this.
        let others = ['\0'..='\u{2ffff}', '\u{e0000}'..='\u{e0fff}'].into_iter().flatten().filter_map(|c| {
            let class = match form.quick_check(c) {
                IsNormalized::Yes => canonical_combining_class(c),
                _ => UNSURE,
            };
            (class != INERT).then_some((c, class))
        });
        let others: Vec<(char, u8)> = others.collect();
        let ranges = others.iter().map(|&(c, class)| (c as u32, c as u32, class)).collect();
        let mut bits = Box::new([[0; 64]; 64]);
        for (c, _) in &others {
            let mut bytes = [0; 4];
            c.encode_utf8(&mut bytes);
            let [first, second, third, _] = bytes.map(|byte| byte as usize % 64);
            bits[first][second] |= if c.len_utf8() == 2 { u64::MAX } else { 1 << third };
        }
        let is_skipped = |byte| byte <= INERT_BYTES.1 || bits[byte as usize % 64] == [0; 64];
        let skipped = FREQUENT.map(|range| if (range.0..=range.1).all(is_skipped) { range } else { INERT_BYTES });
        let skipped = skipped.map(|(first, last)| (first, last - first));
        let classes = ClassTable::new(ranges).expect("Unicode has outgrown the class table");
        Self { classes, others: bits, skipped }
    }

    /// Returns a mask of the first 64 bytes: where characters start that are not inert, or only differ from such a
    /// character in their fourth byte.
    #[inline(always)]
    fn others(&self, bytes: &[u8]) -> u64 {
        let mut padded = [0; BLOCK + 2];
        let block = bytes.first_chunk().unwrap_or_else(|| {
            padded[..bytes.len()].copy_from_slice(bytes);
            &padded
        });
        if block.is_ascii() {
            return 0;
        }
        // The compiler vectorizes this. It leaves few bytes to look up.
        let mut flags = [0; BLOCK];
        for (flag, byte) in flags.iter_mut().zip(block) {
            let is_in = |&(first, after): &(u8, u8)| byte.wrapping_sub(first) <= after;
            let is_skipped = self.skipped.iter().fold(false, |any, range| any | is_in(range));
            *flag = if is_skipped { 0 } else { 0xff };
        }
        let (mut rest, mut others) = (high_bits(&flags), 0);
        while rest != 0 {
            let i = rest.trailing_zeros() as usize % BLOCK;
            let [first, second, third] = [block[i], block[i + 1], block[i + 2]].map(|byte| byte as usize % 64);
            others |= (self.others[first][second] >> third & 1) << i;
            rest &= rest - 1;
        }
        others
    }

    /// Calls `part` with each part of a text that is possibly not normalized. Both of its ends are before an inert
    /// character, or at an end of the text.
    ///
    /// Characters that are not inert need no work if they follow each other in the order of their combining classes and
    /// their quick check is "yes".
    #[inline]
    fn for_each_part(&self, text: &str, mut part: impl FnMut(Span)) {
        let scanned = Text { bytes: text.as_bytes(), classes: &self.classes };
        // The last characters that are not inert and follow each other, and the class of the last one.
        let (mut start, mut end, mut last_class) = (0, 0, INERT);
        for at in (0..text.len()).step_by(BLOCK) {
            let mut others = self.others(&scanned.bytes[at..]);
            while others != 0 {
                let pos = at + others.trailing_zeros() as usize;
                others &= others - 1;
                let (class, len) = scanned.class(pos);
                if pos < end || class == INERT {
                    continue; // it is in the last part, or `others` is not exact
                }
                if pos > end {
                    (start, last_class) = (pos, INERT);
                }
                end = pos + len;
                if class == UNSURE || class < last_class {
                    while let (class, len) = scanned.class(end)
                        && class != INERT
                    {
                        end += len; // the end of the text has the class `INERT` as well
                    }
                    // The inert character before them may be composed with them.
                    part((text.floor_char_boundary(start.saturating_sub(1)), end));
                }
                last_class = class;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Strings in which many characters change or interact: letters, marks, jamo, syllables, compatibility characters.
    fn texts() -> impl Strategy<Value = String> {
        let c = prop_oneof![
            proptest::char::range('a', 'e'),
            proptest::char::range('\u{300}', '\u{34f}'),
            proptest::char::range('\u{c0}', '\u{ff}'),
            proptest::char::range('\u{591}', '\u{5c7}'),
            proptest::char::range('\u{93c}', '\u{94d}'),
            proptest::char::range('\u{1100}', '\u{11ff}'),
            proptest::char::range('\u{ac00}', '\u{ac1f}'),
            proptest::char::range('\u{2100}', '\u{212f}'),
            proptest::char::range('\u{f900}', '\u{fb4f}'),
            proptest::char::range('\u{1d15e}', '\u{1d180}'),
            any::<char>(),
        ];
        proptest::collection::vec(prop_oneof![c.prop_map(String::from), "[a-z ]{0,40}"], 0..20)
            .prop_map(|all| all.concat())
    }

    proptest! {
        /// Characters stand for characters of the text in order, each for a whole one.
        #[test]
        fn aligned_characters_are_the_normalized_text(text in texts()) {
            for (_, form) in Form::ALL {
                let aligned = form.aligned(&text);
                let characters: String = aligned.iter().map(|(c, _)| c).collect();
                prop_assert_eq!(&characters, &form.normalize(&text));
                for (_, (start, end)) in &aligned {
                    prop_assert_eq!(text[*start..*end].chars().count(), 1);
                }
                prop_assert!(aligned.is_sorted_by_key(|(_, span)| *span));
            }
        }

        /// Parts that are normalized separately give what the library makes of the whole.
        #[test]
        fn parts_are_normalized_like_the_whole(text in texts()) {
            for (_, form) in Form::ALL {
                let mut expected = String::new();
                form.normalize_all(&text, &mut expected);
                let found = form.normalize(&text);
                prop_assert_eq!(&found, &expected);
                prop_assert_eq!(matches!(found, Cow::Borrowed(_)), expected == text);
            }
        }
    }

    /// Marks in order or not, in parts that are shorter or longer than a block, at all places in a block.
    #[test]
    fn parts_are_found_at_every_position() {
        let marks = format!("ב{}", "\u{5b1}".repeat(BLOCK));
        let changed = ["e\u{301}", "\u{2126}", "\u{1d15e}", "\u{11131}\u{11127}", &format!("{marks}\u{5b0}")];
        for (n, changed) in (0..=BLOCK).flat_map(|n| changed.map(|changed| (n, changed))) {
            // The last character differs only in its fourth byte from some that are not inert.
            let text = format!("{}{changed}{marks}{changed}\u{1d140}{changed}", "a".repeat(n));
            let mut expected = String::new();
            Form::Nfc.normalize_all(&text, &mut expected);
            assert_eq!(Form::Nfc.normalize(&text), expected);
            let mut parts = Vec::new();
            Form::Nfc.for_each_change(&text, |(start, end), _| parts.push(&text[start..end]));
            assert_eq!(parts.len(), 3, "{text:?} {parts:?}");
        }
    }

    /// Others would only cost time.
    #[test]
    fn text_in_nfc_has_no_parts() {
        let properties = Properties::of(Form::Nfc);
        properties.for_each_part("ב\u{5b0}\u{5b1} ב\u{5b0}", |part| panic!("{part:?}"));
        assert_eq!(properties.skipped, FREQUENT.map(|(first, last)| (first, last - first)));
    }

    #[test]
    fn all_characters_have_their_class() {
        for (_, form) in Form::ALL {
            for c in '\0'..=char::MAX {
                let is_inert = canonical_combining_class(c) == 0 && form.quick_check(c) == IsNormalized::Yes;
                assert_eq!(form.is_inert(c), is_inert, "{c:?} {form:?}");
            }
        }
    }
}

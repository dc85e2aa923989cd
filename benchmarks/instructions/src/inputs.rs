//! Texts that are the same on every machine: made-up words whose frequencies fall with their rank, as in real text.

/// A linear congruential generator.
struct Numbers(u64);

impl Numbers {
    /// Returns a number below `end`.
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize * end) >> 31
    }

    /// Returns a number below `end`. Small numbers are much more frequent.
    fn rank(&mut self, end: usize) -> usize {
        self.below(end) * self.below(end) / end
    }
}

const LATIN: [&str; 24] = [
    "th", "e", "in", "er", "a", "on", "re", "st", "o", "al", "ed", "it", "i", "or", "en", "at", "s", "an", "ou", "ly",
    "t", "ing", "m", "c",
];
const OTHERS: [&str; 24] = [
    "при", "о", "ст", "на", "ко", "е", "ра", "во", "語", "文", "の", "日", "本", "か", "ら", "한", "국", "ü", "ö", "é",
    "ßt", "κα", "ि", "क",
];

/// Makes 20,000 words, and then `size` bytes of text from words and what `between` puts between them.
fn text(size: usize, syllables: &[&[&str]], between: &[&str]) -> String {
    let mut numbers = Numbers(42);
    let words: Vec<String> = (0..20_000)
        .map(|_| {
            let list = syllables[numbers.below(syllables.len())];
            (0..=numbers.below(4)).map(|_| list[numbers.rank(list.len())]).collect()
        })
        .collect();
    let mut text = String::new();
    while text.len() < size {
        text += &words[numbers.rank(words.len())];
        text += between[numbers.rank(between.len())];
        if numbers.below(50) == 0 {
            text += &numbers.below(100_000).to_string();
        }
    }
    text
}

pub fn latin(size: usize) -> String {
    text(size, &[&LATIN], &[" ", " ", " ", ", ", ". ", "\n", "'s ", " (", ") ", ".\n\n", "—"])
}

pub fn mixed(size: usize) -> String {
    text(size, &[&LATIN, &OTHERS, &OTHERS], &[" ", " ", ", ", "。", "", ". ", "\n", "、", " «", "» "])
}

pub fn code(size: usize) -> String {
    text(size, &[&LATIN], &["_", " = ", "(", "\n    ", ")\n        ", ".", ", ", ":\n", "[\"", "\"] ", " == ", "  # "])
}

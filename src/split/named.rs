//! The named patterns.

/// Name and regular expression. docs/patterns.md says where each comes from. Where a model splits in several steps, or
/// with a set operation that Python's `regex` lacks, this is one regular expression that gives the same chunks.
///
/// The `$` of cl100k matches only at the very end in tiktoken, but in Python also before a final newline. This makes no
/// difference, because the possessive `\s++` has already consumed that newline.
///
/// `smollm` has the digits of Unicode 17 that Hugging Face's `Digits` knows, unlike `\p{N}` in the same library: U+11DE0
/// to U+11DE9 and U+16FF4 to U+16FF6. Not all engines have an escape for these.
/// `command-a` spells out `\b` after a digit as Oniguruma understands it. The last alternative of `bloom` never gets to
/// match; with it, the automaton can prove that a text can be cut after a newline.
pub const NAMED: [(&str, &str); 20] = [
    ("gpt2", r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"),
    (
        "gpt4",
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
    ),
    (
        "cl100k",
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    ),
    (
        "o200k",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
    (
        "llama3",
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
    (
        "qwen2",
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
    (
        "deepseek",
        r"\p{N}{1,3}|(?:(?=[一-龥぀-ゟ゠-ヿ])[^\p{L}\p{P}\p{S}])?(?:(?=[一-龥぀-ゟ゠-ヿ])[\p{L}\p{M}])+|(?:(?=[一-龥぀-ゟ゠-ヿ])[\p{P}\p{S}])+|(?:(?=[一-龥぀-ゟ゠-ヿ])[^\p{L}\p{M}\p{P}\p{S}])+(?!(?=[一-龥぀-ゟ゠-ヿ])[\p{L}\p{M}])|[!-/:-@\[-`{-~][A-Za-z]+|(?:(?![一-龥぀-ゟ゠-ヿ])[^\r\n\p{L}\p{N}\p{P}\p{S}])?(?:(?![一-龥぀-ゟ゠-ヿ])[\p{L}\p{M}])+| ?(?:(?![一-龥぀-ゟ゠-ヿ])[\p{P}\p{S}])+[\r\n]*|\s*[\r\n]+|\s+(?![^\s\p{N}一-龥぀-ゟ゠-ヿ])|\s+|(?:(?![一-龥぀-ゟ゠-ヿ])[^\s\p{L}\p{M}\p{N}\p{P}\p{S}])+(?!(?![一-龥぀-ゟ゠-ヿ])[\p{L}\p{M}])",
    ),
    (
        "nanochat",
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,2}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
    ),
    ("starcoder", r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?![^\s\p{N}])|\s+"),
    (
        "kimi",
        r"\p{Han}+|[^\r\n\p{L}\p{N}]?(?:(?!\p{Han})[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])*(?:(?!\p{Han})[\p{Ll}\p{Lm}\p{Lo}\p{M}])+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?(?:(?!\p{Han})[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])+(?:(?!\p{Han})[\p{Ll}\p{Lm}\p{Lo}\p{M}])*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
    (
        "qwen3.5",
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
    (
        "tekken",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
    ("smollm", r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+|[\p{N}𑷠-𑷩𖿴-𖿶]| ?[^\s\p{L}\p{N}𑷠-𑷩𖿴-𖿶]+|\s+(?![^\s\p{N}𑷠-𑷩𖿴-𖿶])|\s+"),
    (
        "minicpm",
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?![^\s\p{N}])|\s+",
    ),
    (
        "command-a",
        r"\p{Nd}{1,3}(?=(?:\p{Nd}{3})*(?![\p{Alphabetic}\p{M}\p{Nd}\p{Pc}²³¹¼-¾]))|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|(?:(?!\p{Nd}+(?![\p{Alphabetic}\p{M}\p{Nd}\p{Pc}²³¹¼-¾]))\p{N}){1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!(?!\p{Nd}+(?![\p{Alphabetic}\p{M}\p{Nd}\p{Pc}²³¹¼-¾]))\S)|\s+",
    ),
    (
        "bloom",
        r"[ ]?[^(\s|.,!?…。，、।۔،)]+|[(\s|.,!?…。，、।۔،)]*(?! )[(\s|.,!?…。，、।۔،)](?![(\s|.,!?…。，、।۔،)])|[(\s|.,!?…。，、।۔،)]+(?![^(\s|.,!?…。，、।۔،)])|\s",
    ),
    (
        "cl100k-1digit",
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    ),
    (
        "cl100k-2digits",
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,2}| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    ),
    (
        "o200k-1digit",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
    (
        "o200k-2digits",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,2}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ),
];

/// Returns the regular expression of a named pattern.
pub fn named(name: &str) -> &'static str {
    NAMED.iter().find(|(other, _)| *other == name).expect("a name in `NAMED`").1
}

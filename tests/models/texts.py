"""Texts to encode: real ones, and strings generated from what tokenizers disagree about."""

import random
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from helpers import every_character
from tokenizers import normalizers, pre_tokenizers

from batchbpe import split
from batchbpe.patterns import Split

REAL_BYTES = 5_000_000
FORMS = ("NFC", "NFD", "NFKC", "NFKD")
PIECES = (
    # combining marks, alone and in any order, and characters that are composed of them
    ["e\u0301", "a\u0327\u0301", "q\u0307\u0323", "\u0301", "\u0344", "\xc5", "\u212b", "\u1ebf", "क\u093c", "\u0958"],
    # Hangul letters, syllables, and both together
    ["\u1100\u1161\u11a8", "\uac00\u11a8", "\uac01", "\u1100", "\u1161\u1161", "\u3131\u314f", "\uffa1", "한국어"],
    # compatibility characters
    ["\xa0", "\u3000", "ﬁ", "①", "½", "㎏", "Ａ１", "ｱ\uff9e", "²", "…", "™", "ſ", "㈱", "ﷺ", "ⅷ", "ĳ", "\u0e33"],
    ["\n", "\r\n", "\r", "\r\r\n", "\n\n", " \n ", "\u2028", "\u2029", "\x85", "\x0b", "\x0c"],
    [" ", "  ", "   ", "        ", "\t", " \t ", "\n    "],
    ["👩\u200d💻", "🏳\ufe0f\u200d🌈", "👍🏽", "🇩🇪🇫🇷", "1\ufe0f\u20e3", "😀", "\u200d", "\ufe0f"],
    ["ꦄ", "𐤀𐤁", "𑀅𑀓", "ᚠᛇᚻ", "ⴰⵎⴰ", "ᠮᠣᠩ", "𒀀", "߀߁", "٣٤", "੩", "Ⅷ", "ꓐ", "𞤀", "𑁦", "ǅ", "ʰ"],
    ["the", "don't", "I'LL", "we’re", "'sſ", "CamelCase", "HTML", "12345", "3.14", "1,000,000", "a_b", "x²"],
    ["https://a.b/c?d=e", "==", "?!", "//", "naïve", "Straße", "привет", "语言", "日本語", "ไทย", "नमस्ते", "مرحبا"],
    [chr(code) for code in [*range(32), *range(0x7F, 0xA0)]],
    # characters with the rare first bytes of UTF-8: EE to F4
    ["\U00040000", "\U000a0000", "\U000e0041", "\U000f0000", "\U0010fffd", "\ue000", "\ufffd", "\ufeff", "\uffff"],
)
"""Kinds of pieces. Bytes that are missing from a vocabulary are mostly those of control and rare characters."""


@cache
def real(folder: Path) -> tuple[str, ...]:
    """Return documents of about 20,000 characters: the translations, and code up to 5 MB in total."""
    content = (folder / "translations.txt").read_bytes()
    content += (folder / "code.txt").read_bytes()[: REAL_BYTES - len(content)]
    text = content.decode(errors="ignore")
    return tuple(text[start : start + 20_000] for start in range(0, len(text), 20_000))


def generated(number: int, added_tokens: Iterable[str], without: Iterable[str] = "", seed: int = 1) -> list[str]:
    """Return random strings of up to 12 pieces, without some characters."""
    chance = random.Random(seed)
    kinds: list[Sequence[str]] = [*PIECES, everything := every_character()]
    if names := sorted(added_tokens):
        # A file may have a thousand placeholders, and then few of the others would be drawn.
        kinds += 2 * [names, sorted(names, key=len)[:20]]
    left_out = dict.fromkeys(map(ord, without))

    def piece() -> str:
        chosen = chance.choice(chance.choice(kinds))
        change = chance.random()
        if change < 0.04:
            return chosen[: chance.randrange(len(chosen)) or 1]
        if change < 0.08:
            return unicodedata.normalize(chance.choice(["NFC", "NFD"]), chosen)
        if change < 0.12:
            return chosen.swapcase()
        if change < 0.2:
            return chance.choice("aé1_ .") + chosen + chance.choice("bü2- '")
        return chosen * chance.choice([1, 1, 1, 1, 1, 2, 3, 7])

    strings = ["".join(piece() for _ in range(chance.randint(1, 12))) for _ in range(number - 100)]
    strings += ["".join(chance.choices(everything, k=20)) for _ in range(100)]
    return [string.translate(left_out) for string in strings]


@cache
def newer_characters(form: str) -> frozenset[str]:
    """Return the characters that this package normalizes and `tokenizers`, whose tables are of 2016, does not know.

    Marks after the letter show decomposition and composition, and whether a character has a combining class.
    """
    characters = every_character().replace("\x01", "")
    probes = "\x01".join(f"q\u0301{character}\u0334" for character in characters)
    theirs = getattr(normalizers, form)().normalize_str(probes).split("\x01")
    ours = "".join(split(probes, Split(r"[\s\S]+", normalization=form))).split("\x01")
    newer = {character for character, a, b in zip(characters, theirs, ours, strict=True) if a != b}
    for character, probe in zip(characters, theirs, strict=True):
        if character in newer:
            # It is a difference between versions of Unicode: they leave the character alone, and it is not an old one.
            assert probe == f"q\u0301{character}\u0334", hex(ord(character))
            assert unicodedata.ucd_3_2_0.category(character) == "Cn", hex(ord(character))
    # What a new character is composed of must be left out too.
    return frozenset(newer | set("".join(split("".join(newer), Split(r"[\s\S]+", normalization="NFD")))))


@cache
def newer_punctuation() -> frozenset[str]:
    """Return the punctuation that `Punctuation` of `tokenizers`, whose tables are older, classifies differently."""
    characters = every_character().replace("a", "")
    pieces = pre_tokenizers.Punctuation("isolated").pre_tokenize_str("a" + "a".join(characters) + "a")
    theirs = {piece for piece, _ in pieces if len(piece) == 1} - {"a"}
    ours = set("".join(split(characters, r"[!-/:-@\[-`{-~\p{P}]")))
    newer = ours ^ theirs
    # U+166D has become a symbol. The others are new.
    assert all(unicodedata.ucd_3_2_0.category(character) == "Cn" for character in newer - {"\u166d"})
    return frozenset(newer)

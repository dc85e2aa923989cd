r"""Texts that engines encode differently if anything differs: built-in hard cases, and texts made from a model.

The characters are old: engines have different versions of Unicode, and disagree about those that were added recently.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from ..model import Model

MAX_FOUND = 24
"""Number of special tokens, and of added tokens, that texts are made from."""
MAX_LEARNED = 12
"""Number of stop words, of phrases, and of longest tokens that texts are made from."""
MAX_SPREAD = 2048
"""Number of tokens, spread over the vocabulary, that are lines of texts."""
LINES = 16
"""Number of tokens in such a text."""
MAX_TOKEN_BYTES = 200
"""Longer tokens are left out, to keep the file small."""

_WORDS = "don't I'll we're you've he'd she's I'm CAN'T I'LL WE'RE YOU'VE HE'D SHE'S I'M 'tis o'clock rock'n'roll 's 'S"
_TYPOGRAPHIC = "don’t CAN’T we’re ‘quoted’ “quoted” l’été L’ÉTÉ ʼn d‘accord"
_NUMBERS = (
    "0 7 42 123 1234 12345 123456 1234567 3.14 1,000,000.00 1e-9 0x1F 2nd 50% $9.99 -1 +1 1/2 10:30 2024-01-31 "
    "192.168.0.1 v1.2.3 a1b2c3 x² H₂O ½ ¾ Ⅷ ⅻ ① ٣٤٥٦ १२३४ ๑๒๓ 一二三 １２３４ 𝟏𝟐𝟑"
)
_SCRIPTS = (
    "Straße, naïve façade, coöperate, Ångström, œuvre, fjord, Łódź, İstanbul ıIiİ",
    "Съешь ещё этих мягких французских булок",
    "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία",
    "שָׁלוֹם עוֹלָם, מה שלומך?",
    "مرحبا بالعالم، كيف حالك؟ السَّلامُ عَلَيْكُم",
    "نمی‌دانم می\u200cخواهم",
    "नमस्ते दुनिया, क्षत्रिय हिन्दी",
    "வணக்கம் உலகம்",
    "สวัสดีชาวโลก น้ำ",
    "ສະບາຍດີ မင်္ဂလာပါ សួស្តី",
    "გამარჯობა Բարեւ ሰላም",
    "你好，世界！今天天气很好。中文没有空格",
    "こんにちは世界。カタカナとひらがな、ｶﾀｶﾅ",
    "안녕하세요 세계, 한국어",
    "Tiếng Việt có dấu",
    "ABCабв123语ไทย",
)
_MARKS = (
    "café cafe\u0301",
    "ÅÅ A\u030a \u212b",
    "한글 \u1112\u1161\u11ab\u1100\u1173\u11af",
    "e\u0301\u0327 e\u0327\u0301 \u1e69 s\u0323\u0307",
    "\u0301 \u0301a",
    "n\u0303o \u0958 \u0915\u093c \u0f43",
    "ﬁ ﬀ ™ № ㎏ ｆｕｌｌ １",
)
_SPACES = (
    " ",
    "  ",
    "   ",
    "        ",
    "a b  c   d    e",
    " a",
    "  a",
    "   a",
    "a ",
    "a  ",
    "a   ",
    "\t",
    "\t\t",
    "a\tb\t\tc",
    " \ta\t b",
    "\tif x:\n\t\treturn y",
    "a\u00a0b\u00a0\u00a0c \u00a0d",
    "\u00a0",
    "a\u2003b\u2009c\u202fd\u3000e\u3000\u3000f\u1680g\u205fh",
    "a\u200bb\u200cc\u200dd\u2060e\ufefff",
    "a\u2028b\u2029c\u0085d\u000be\u000cf",
)
_LINES = (
    "\n",
    "\n\n",
    "\n\n\n",
    "\r\n",
    "\r\n\r\n",
    "\r",
    "a\nb",
    "a\n\nb",
    "a\n\n\n\nb",
    "a\r\nb\r\n\r\nc",
    "a\rb",
    "a \n b",
    "a  \n\n  b",
    "a\n b\n  c\n   d",
    "a \n \n \nb",
    " \n",
    "\n ",
    "\n\na",
    "a\n",
    "a\n\n",
    "a \n",
    "\t\n",
    "1\n2\n\n3",
    ".\n.\n\n.",
    "\u00a0\n",
)
_EMOJI = (
    "😀 😀😀 a😀b",
    "👍🏽 👩🏿",
    "👨\u200d👩\u200d👧\u200d👦 👩\u200d💻 🏳\ufe0f\u200d🌈",
    "🇩🇪🇫🇷 1\ufe0f\u20e3 ❤\ufe0f ❤",
    "☃ ★ ♥ → ∑ √ ≠ ∞ € £ ¥ ₹ © ® °",
)
_CODE = (
    "def f(x: int = 3) -> list[str]:\n    return [str(i) for i in range(x)]\n",
    'if (a != b && !c || d >>= 2) { printf("%d\\n", *p++); } // comment\r\n',
    "<div class='a-b'>&nbsp;<br/></div><!-- x -->",
    "SELECT * FROM t WHERE a='b' AND c<>5;",
    '{"key": [1, 2.5, null, true], "k\\u00e9y": "\\n"}',
    "\\frac{a}{b} $x_i^2$ \\\\ \\n",
    "snake_case camelCase PascalCase SCREAMING_CASE kebab-case HTTPServer2Go iPhone",
    "#include <stdio.h>\n#define X(a) ((a)*(a))",
    "$ ls -la ~/dir/*.txt | grep -v '^#' > out 2>&1",
    "https://user:pw@www.example.com:8080/a/b-c_d.html?x=1&y=%20z#frag",
    "name.surname+tag@example.co.uk @user #tag /usr/local/bin C:\\Windows\\",
    "2+2=4; x**2; a//b; i++; !!x; ...args; a?.b ?? c; <=> :: -> => |>",
)
_PUNCTUATION = (
    "!",
    "!!",
    "!!!",
    "...",
    "…",
    "----------",
    "==========",
    "________",
    "# ## ### ####",
    "***bold*** _it_ ~~x~~ `c`",
    " !",
    "  !",
    "a!b?c.d,e;f:g",
    "(a) [b] {c} <d>",
    "¿Qué? ¡Olé! «guillemets» — – ‐ „x“",
    "。、！？「」『』",
    "a / b // c\n/ d /\n",
    "word.\n\nWord!\n",
    ".\n",
    "!\r\n\r\n!",
)
_UNUSUAL = (
    "",
    "a",
    "\x00",
    "a\x00b\x00\x00",
    "\x01\x02\x04\x06\x13\x14\x16\x1b[0m\x1d\x7f",
    "\u0080\u0081\u009f",
    "\ufeff",
    "\ufeffa",
    "a\ufeffb",
    "\u0378 \u0379a",
    "\ue000 \uf8ff a\U000f0000 \U0010fffd",
    "\ufffe \uffff \U0001ffff",
    "\ufffd\ufffd a\ufffd",
    "a\u202eb\u202cc\u2066d\u2069 \u200e\u200f",
    "a\u00adb ſ K Ω µ ß ẞ ǅ ʰ",
    "𐍈𝒜𝕬 𠀀𪚥 𓀀",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "The quick brown fox jumps over the lazy dog. THE QUICK BROWN FOX!",
    "supercalifragilisticexpialidocious Donaudampfschifffahrtsgesellschaft",
)
HARD: tuple[str, ...] = (
    *_UNUSUAL,
    *_WORDS.split(),
    _WORDS,
    *_TYPOGRAPHIC.split(),
    *_NUMBERS.split(),
    _NUMBERS,
    *_SPACES,
    *_LINES,
    *_MARKS,
    *_SCRIPTS,
    *_EMOJI,
    *_CODE,
    *_PUNCTUATION,
)
"""The texts that are the same for every model."""


def texts_for(model: Model) -> list[str]:
    """Return the hard cases and texts made from the tokens of a model, without repetitions.

    >>> texts = texts_for(Model(split=r"\\w+", merges={(97, 97): 256}, special_tokens={"<s>": 257}))
    >>> "don't" in texts, "a<s>b" in texts, "aa" in texts
    (True, True, True)
    """
    found = chain(_first(model.special_tokens, MAX_FOUND), _first(model.added_tokens, MAX_FOUND))
    surrounded = (
        (name, f"a{name}b", f"Hello {name} world", f"{name}{name}", f" {name}\n{name} \n", name[:-1]) for name in found
    )
    return list(dict.fromkeys(chain(HARD, *surrounded, _learned(model))))


def _first(tokens: Mapping[str, int], number: int) -> list[str]:
    return [name for name in sorted(tokens, key=tokens.__getitem__) if len(name) <= MAX_TOKEN_BYTES][:number]


def _learned(model: Model) -> Iterator[str]:
    """Yield stop words, phrases, the longest tokens, and tokens spread over the vocabulary."""
    vocab = model.vocab
    for ids in (model.stop_words.values(), model.phrases.values()):
        for text in _as_texts(vocab[token] for token in list(ids)[:MAX_LEARNED]):
            yield from (text, f"{text}s", f"x{text} {text}")
    merged = [model.vocab_with_hidden[token] for token in model.merges.values()]
    longest = sorted(
        (value for value in merged if len(value) <= MAX_TOKEN_BYTES), key=lambda value: (-len(value), value)
    )
    yield from _as_texts(longest[:MAX_LEARNED])
    spread = [*_as_texts(merged[:: max(1, len(merged) // MAX_SPREAD)])]
    yield from ("\n".join(spread[start : start + LINES]) for start in range(0, len(spread), LINES))


def _as_texts(values: Iterable[bytes]) -> Iterator[str]:
    """Yield tokens as texts, without those that are not valid UTF-8, or too long."""
    for value in values:
        if len(value) <= MAX_TOKEN_BYTES:
            try:
                yield value.decode()
            except UnicodeDecodeError:
                continue

"""How llama.cpp encodes: its pre-tokenizers by name, and where it differs from a model.

The table follows `llm_tokenizer_bpe` and `llama_vocab::impl::load` in llama-vocab.cpp (as in llama-cpp-python 0.3.36).
llama.cpp implements some patterns by hand, and others with std::regex, in which \\p{Lu} is any letter. `differs` says
where the result is not that of the pattern. Two differences are not counted: (?i:'s) matches 'ſ, but not in llama.cpp,
and its tables are those of Unicode 15.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from .._core import canonical_pattern
from ..errors import short
from ..model import Model
from ..patterns import PATTERNS, Split, Step
from .byte_level import from_byte_level
from .chains import DIGITS
from .names import unmerged_token
from .portability import WHOLE_TEXT
from .spelling import PUNCTUATION


class PreTokenizer(NamedTuple):
    """A pre-tokenizer of llama.cpp."""

    name: str
    """The value of `tokenizer.ggml.pre`."""
    split: Split
    ignore_merges: bool = False
    """Whether a chunk that is a token is looked up instead of merged."""
    adds_bos: bool = False
    """Whether a BOS token is added to a text unless `tokenizer.ggml.add_bos_token` says otherwise."""
    differs: str = ""
    """What llama.cpp splits differently, if anything."""


def _named(
    name: str, pattern: str, ignore_merges: bool = False, adds_bos: bool = False, differs: str = ""
) -> PreTokenizer:
    return PreTokenizer(name, Split.of(pattern), ignore_merges, adds_bos, differs)


def _steps(name: str, *steps: Step | str, differs: str) -> PreTokenizer:
    isolated = tuple(step if isinstance(step, Step) else Step(step) for step in steps)
    return PreTokenizer(name, Split(WHOLE_TEXT, isolated), differs=differs)


_MARKS = "words with combining marks, and capital letters outside ASCII"
_SPACES = "U+2028 and U+3000"
_CJK = "[一-龥ࠀ-一가-\ud7ff]+"
_DEEPSEEK_LETTERS = (  # escaped where NFC would change it
    "\\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\u1f7dᾀ"
    "-ᾴᾶ-ᾼ\u1fbeῂ-ῄῆ-ῌῐ-\u1fd3ῖ-\u1fdbῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\u2126ℨ\u212a-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+"
)
KNOWN = (
    _named("gpt-2", "gpt2"),
    _named("dbrx", "gpt4"),
    _named("smaug-bpe", "llama3"),
    _named("llama-bpe", "llama3", ignore_merges=True, adds_bos=True),
    _named("qwen2", "qwen2"),
    _named("qwen35", "qwen3.5"),
    _named("deepseek-v3", "deepseek"),
    _named("starcoder", "starcoder"),
    _named("smollm", "smollm"),
    _named("minicpm5", "minicpm", ignore_merges=True),
    _named("bloom", "bloom"),
    _named("granite-embed-multi-97m", "o200k", ignore_merges=True, differs="capital letters outside ASCII"),
    _named("gpt-4o", "o200k", differs=_MARKS),
    _named("tekken", "tekken", ignore_merges=True, adds_bos=True, differs=_MARKS),
    _named("kimi-k2", "kimi", differs="words with combining marks or several capital letters, and some Han characters"),
    _named("tiny_aya", "command-a", differs="capital letters inside words, and numbers"),
    _steps(
        "falcon",
        Step(PUNCTUATION, "Contiguous"),
        PATTERNS["gpt2"],
        "[0-9]+",
        "[0-9][0-9][0-9]",
        differs="spaces before numbers, and numerals other than 0 to 9",
    ),
    _steps("deepseek-coder", "[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _CJK, DIGITS, differs=_SPACES),
    _steps(
        "deepseek-llm",
        "[\r\n]",
        _DEEPSEEK_LETTERS,
        "\\s?[!-/:-~！-／：-～‘-‟\u3000-。]+",
        r"\s+(?![^\n])",
        _CJK,
        DIGITS,
        differs=f"{_SPACES}, and numbers",
    ),
)
"""The pre-tokenizers, in the order in which an export tries them."""
_ALIASES = {
    "gpt-2": "a.x-4.0 exaone4 gigachat granite-docling jais jina-de jina-es jina-v1-en jina-v2-code jina-v2-de "
    "jina-v2-es mellum modern-bert mpt olmo phi-2 roberta-bpe trillion",
    "dbrx": "chatglm-bpe",
    "llama-bpe": "falcon-h1 falcon3 glm4 glm5 jina-v5-nano lfm2 llama-v3 llama3 midm-2.0",
    "qwen2": "bailingmoe bailingmoe2 deepseek-r1-qwen f2llmv2 grok-2 hunyuan kormo llada-moe megrez solar-open "
    "stablelm2",
    "deepseek-v3": "hunyuan-dense hy_v4 joyai-llm",
    "starcoder": "codeshell",
    "smollm": "command-r exaone mellum2 minerva-7b refact",
    "bloom": "gpt3-finnish poro-chat",
    "gpt-4o": "kanana2 llama4 minimax-m2 talkie",
    "tiny_aya": "cohere2moe",
}
"""Other names with the same pattern."""
_WITHOUT_BOS = ("glm4", "glm5")
"""Aliases of llama-bpe that do not add a BOS token by default."""
_LINE_END = "whitespace with a line break at the end of a text"
_CLOSE = {"cl100k": ("gpt4", _LINE_END), "cl100k-1digit": ("qwen2", _LINE_END)}
"""Named patterns that llama.cpp does not know, with the most similar one, and what that splits differently."""


def by_name() -> Mapping[str, PreTokenizer]:
    """Return the pre-tokenizers by the names that a file can have.

    >>> by_name()["glm4"].ignore_merges, by_name()["glm4"].adds_bos
    (True, False)
    """
    known = {each.name: each for each in KNOWN}
    aliases = {alias: known[name] for name, names in _ALIASES.items() for alias in names.split()}
    return known | aliases | {name: aliases[name]._replace(adds_bos=False) for name in _WITHOUT_BOS}


def for_split(split: Split) -> list[PreTokenizer]:
    """Return the pre-tokenizers that split text in a way, or in the most similar way. Normalization is ignored.

    >>> [each.name for each in for_split(Split.of("gpt4"))]
    ['dbrx', 'smaug-bpe', 'llama-bpe']
    >>> for_split(Split.of("cl100k"))[0].differs
    'whitespace with a line break at the end of a text'
    >>> for_split(Split.of("nanochat"))
    []
    """
    bare = replace(split, normalization="none", prefix_space=False)
    name = None if bare.steps else canonical_pattern(bare.pattern)
    name, differs = _CLOSE.get(name or "", (name, ""))
    splits = [Split.of(name)] if name else [bare]
    if name in ("gpt4", "llama3"):  # two spellings of the same pattern
        splits += (Split.of(other) for other in ("gpt4", "llama3") if other != name)
    found = [each for wanted in splits for each in KNOWN if each.split == wanted]
    return [each._replace(differs=differs) for each in found] if differs else found


NOT_IN_UTF8 = frozenset((0xC0, 0xC1, *range(0xF5, 0x100)))


def differences(model: Model, pre: PreTokenizer) -> Iterator[str]:
    """Yield what llama.cpp encodes differently, except because of names (see `token_types`), as clauses.

    >>> model = Model(Split.of("NFC > gpt2"), {}, added_tokens={"ab": 256, "bcd": 257})
    >>> for clause in differences(model, for_split(model.split)[0]):
    ...     print(clause)
    does not normalize text (NFC)
    finds the longest special and added tokens first, and therefore others in 'abcd'
    """
    if model.split.normalization != "none":
        yield f"does not normalize text ({model.split.normalization})"
    if model.split.prefix_space:
        yield "does not add a space before a text"
    if pre.differs:
        yield f"splits {pre.differs} differently (pre-tokenizer {pre.name})"
    if pre.ignore_merges and (unmerged := unmerged_token(model)):
        value, count = unmerged
        yield f"encodes the chunk {short(value)} as one token, and batchbpe as {count} (pre-tokenizer {pre.name})"
    missing = [byte for byte, token in enumerate(model.byte_ids) if token is None and byte not in NOT_IN_UTF8]
    if missing:
        yield f"does not merge what is next to a byte that the vocabulary lacks (0x{missing[0]:02X})"
    for name in model.special_tokens:
        if pre.ignore_merges and _is_chunk(from_byte_level(name), model.split):
            yield f"encodes text as {short(name)} even if no special tokens are allowed"
    text = _found_otherwise(model)
    if text is not None:
        yield f"finds the longest special and added tokens first, and therefore others in {short(text)}"


def _is_chunk(token: bytes | None, split: Split) -> bool:
    """Return whether a text is a single chunk."""
    try:
        text = token.decode() if token else ""
    except UnicodeDecodeError:
        return False
    return split.chunks(text) == [text]


def _found_otherwise(model: Model) -> str | None:
    """Return a text in which special or added tokens overlap, and llama.cpp finds others than this package."""
    encoder = None
    modes: tuple[tuple[Mapping[str, int], Any], ...] = ((model.found_tokens, "all"), (model.added_tokens, "none"))
    for names, allowed in modes:
        for text in _overlaps([*names]):
            encoder = encoder or model.encoder()
            found = {*names.values()}
            expected = [token for token in encoder.encode(text, allowed, 1) if token in found]
            if any(_longest_first(text, names, ordered) != expected for ordered in (names, reversed([*names]))):
                return text
    return None


def _overlaps(names: list[str]) -> Iterator[str]:
    """Yield texts in which tokens overlap, and tokens that contain others.

    The automaton of Aho and Corasick finds them with memory linear in the size of the names.
    """
    following: list[dict[str, int]] = [{}]
    starting: list[list[str]] = [[]]  # for each state, which is a prefix, the names that start with it
    states: dict[str, int] = {}
    for name in names:
        state = 0
        for character in name:
            state = following[state].setdefault(character, len(following))
            if state == len(following):
                following.append({})
                starting.append([])
            starting[state].append(name)
        states[name] = state
    ends, size = {*states.values()}, len(following)
    sizes, fallback, contains = [0] * size, [0] * size, [False] * size
    queue = [0]
    for state in queue:
        for character, after in following[state].items():
            queue.append(after)
            sizes[after] = sizes[state] + 1
            shorter = fallback[state]
            while shorter and character not in following[shorter]:
                shorter = fallback[shorter]
            fallback[after] = shorter = following[shorter].get(character, 0) if state else 0
            contains[after] = contains[state] or contains[shorter] or state in ends or shorter in ends
    for name, state in states.items():
        if contains[state]:
            yield name
        while state := fallback[state]:
            yield from (name + other[sizes[state] :] for other in starting[state] if other != name)


def _longest_first(text: str, names: Mapping[str, int], ordered: Iterable[str]) -> list[int]:
    """Return the tokens that llama.cpp finds in a text. The order is that of names with the same length."""
    pieces: list[str | int] = [text]
    for name in sorted(ordered, key=lambda name: len(name.encode()), reverse=True):
        if name in text:
            split: list[str | int] = []
            for piece in pieces:
                first, *others = piece.split(name) if isinstance(piece, str) else [piece]
                split += (first, *(part for other in others for part in (names[name], other)))
            pieces = split
    return [piece for piece in pieces if isinstance(piece, int)]

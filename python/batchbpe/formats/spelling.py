"""Write a `Split` as the pre-tokenizer and normalizer of a tokenizer.json, in the spelling that published models use.

Version 1.0 of Hugging Face's library has no general regular expression engine: it knows the pre-tokenizers of published
models by their spelling, and refuses others. A named pattern that means the same as a published pre-tokenizer is
therefore written as that. Any other split is written for Oniguruma, the engine of earlier versions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from ..errors import DataError, Message, Setting
from ..patterns import PATTERNS, Split, Step
from .chains import CHAINS, DIGITS
from .portability import WHOLE_TEXT, check_portable

PUNCTUATION = r"[!-/:-@\[-`{-~\p{P}]"
"""What the pre-tokenizer Punctuation splits at."""
_KIMI = PATTERNS["kimi"].replace(r"\p{Han}+|", r"[\p{Han}]+|", 1)
for _classes in (r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"):
    _KIMI = _KIMI.replace(rf"(?:(?!\p{{Han}})[{_classes}])", rf"[{_classes}&&[^\p{{Han}}]]")
KNOWN_TO_VERSION_1 = ("gpt2", "gpt4", "llama3", "qwen2", "o200k", "tekken", "kimi", "deepseek", "smollm")
"""The named patterns whose spelling version 1.0.0rc3 of Hugging Face's library knows."""
_REMEDY: Message = ("use ", Setting("format", "transformers"), " or ", Setting("format", "batchbpe"))


def normalizer(split: Split) -> dict[str, Any] | None:
    """Return the normalizer of a split.

    >>> normalizer(Split(r"\\w+", normalization="NFC"))
    {'type': 'NFC'}
    """
    return None if split.normalization == "none" else {"type": split.normalization}


def pre_tokenizer(split: Split, pattern_with_phrases: str | None = None, *, portable: bool = True) -> dict[str, Any]:
    """Return the pre-tokenizer of a split.

    Raise if Oniguruma may interpret a pattern differently and the result must be `portable`.

    >>> pre_tokenizer(Split.of("gpt2"))
    {'type': 'ByteLevel', 'add_prefix_space': False, 'trim_offsets': True, 'use_regex': True}
    """
    published = deepcopy(_WRITTEN.get(split.pattern))
    if portable:
        regexes = [step.pattern for step in split.steps if _step(step)["type"] == "Split"]
        for pattern in regexes + [split.pattern] * (published is None):
            check_portable(_LINE_ENDS.sub("", pattern), "Oniguruma")
    if pattern_with_phrases or published is None:  # text between matches is dropped, as by the core
        published = [_regex(for_oniguruma(pattern_with_phrases or split.pattern), "Removed", invert=True)]
    parts = [*map(_step, split.steps), *published]
    *parts, byte_level = parts if parts and parts[-1]["type"] == "ByteLevel" else [*parts, _byte_level(use_regex=False)]
    if split.prefix_space and parts:  # ByteLevel would add one to each part of a text
        reason = f"tokenizer.json cannot store a prefix space with the pattern {split}"
        raise DataError(reason, remedy=_REMEDY)
    byte_level = byte_level | {"add_prefix_space": split.prefix_space}
    return {"type": "Sequence", "pretokenizers": [*parts, byte_level]} if parts else byte_level


def written_as(parts: Sequence[Mapping[str, Any]], *, use_regex: bool) -> str | None:
    """Return the pattern that `pre_tokenizer` writes as these parts and a ByteLevel after them.

    >>> written_as([{"type": "Digits", "individual_digits": True}], use_regex=True) == PATTERNS["smollm"]
    True
    """
    given = [*parts, *[_byte_level(use_regex=True)] * use_regex]
    return next((pattern for pattern, written in _WRITTEN.items() if written == given), None)


def for_oniguruma(pattern: str) -> str:
    """Translate the named patterns to the dialect of Oniguruma, the engine that Hugging Face used until version 1.0.

    >>> "{1,3}+" in PATTERNS["cl100k"], "{1,3}+" in for_oniguruma(PATTERNS["cl100k"])
    (True, False)
    """
    return _LINE_ENDS.sub(lambda end: "^" if end[0] == "(?m:^)" else "$", _translated(pattern, _FOR_ONIGURUMA))


def named_from_oniguruma(pattern: str) -> str:
    """Undo the translation of named patterns."""
    return _translated(pattern, {translated: regex for regex, translated in _FOR_ONIGURUMA.items()})


def _translated(pattern: str, translations: Mapping[str, str]) -> str:
    for regex, translated in translations.items():
        if pattern == regex or pattern.endswith(f")|{regex}"):  # after phrases
            return pattern.removesuffix(regex) + translated
    return pattern


def _byte_level(*, use_regex: bool) -> dict[str, Any]:
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": use_regex}


def _regex(pattern: str, behavior: str = "Isolated", invert: bool = False) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": behavior, "invert": invert}


def _step(step: Step) -> dict[str, Any]:
    if step.pattern == DIGITS and step.behavior in ("Isolated", "Contiguous") and not step.invert:
        return {"type": "Digits", "individual_digits": step.behavior == "Isolated"}
    if step.pattern == PUNCTUATION and not step.invert:
        return {"type": "Punctuation", "behavior": step.behavior}
    return _regex(for_oniguruma(step.pattern), step.behavior, step.invert)


# Oniguruma interprets {1,3}+ as a repetition of {1,3}, and ^ and $ as the ends of any line.
_LINE_ENDS = re.compile(r"\(\?m:\^\)|\(\?!\[\^\\n\]\)")
_FOR_ONIGURUMA = {regex: regex.replace("{1,3}+", "{1,3}").replace("$|", r"\z|") for regex in PATTERNS.values()}
_WRITTEN: dict[str, list[dict[str, Any]]] = {
    **{regex: [_regex(written, "Removed", invert=True)] for regex, written in _FOR_ONIGURUMA.items()},
    **{PATTERNS[name]: [_regex(PATTERNS[name])] for name in ("llama3", "qwen2", "o200k", "qwen3.5", "tekken")},
    # The same pattern in Llama 3's spelling. The other behavior distinguishes it when the file is loaded.
    PATTERNS["gpt4"]: [_regex(PATTERNS["llama3"], "Removed", invert=True)],
    PATTERNS["kimi"]: [_regex(_KIMI)],
    **{PATTERNS[name]: [_regex(step) for step in CHAINS[name]] for name in ("minicpm", "command-a", "bloom")},
    # DeepSeek's files have literal line breaks, and version 1.0 knows no others.
    PATTERNS["deepseek"]: [_regex(step.replace(r"\r", "\r").replace(r"\n", "\n")) for step in CHAINS["deepseek"]],
    PATTERNS["gpt2"]: [_byte_level(use_regex=True)],
    PATTERNS["starcoder"]: [_regex(r"\p{N}"), _byte_level(use_regex=True)],
    PATTERNS["smollm"]: [{"type": "Digits", "individual_digits": True}, _byte_level(use_regex=True)],
    WHOLE_TEXT: [],
}
"""How patterns are written, without a ByteLevel that only spells bytes."""

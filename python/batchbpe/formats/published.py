"""Published rank files: what the file does not store, its pattern and its special tokens.

A file is recognized by its number of ranks and by the rank of "hello", not by its name: Meta calls its files
tokenizer.model, and a copy may have any name. A checksum would be stricter, but would also reject a file with other
line ends, and it cannot be stated for files that the authors of this table have not seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..choices import Normalization
from ..patterns import PATTERNS, Split


@dataclass(frozen=True)
class Published:
    """A published rank file."""

    pattern: str
    """The name of the pattern."""
    ranks: int
    """The number of ranks."""
    hello: int | None
    """The rank of "hello", or None if it is not known."""
    special_tokens: Mapping[str, int]
    normalization: Normalization = "none"

    @property
    def split(self) -> Split:
        """How the tokenizer that the file belongs to splits text."""
        return Split(PATTERNS[self.pattern], normalization=self.normalization)


def _numbered(first: int, names: Iterable[str]) -> dict[str, int]:
    return {name: first + position for position, name in enumerate(names)}


def _reserved(start: int, stop: int, kind: str = "") -> list[str]:
    return [f"<|{kind}reserved_special_token_{number}|>" for number in range(start, stop)]


def _marked(names: str) -> list[str]:
    return [f"<|{name}|>" for name in names.split()]


_END = "<|endoftext|>"
_LLAMA3 = [
    *_marked("begin_of_text end_of_text"),
    *_reserved(0, 2),
    *_marked("finetune_right_pad_id step_id start_header_id end_header_id eom_id eot_id python_tag image"),
    *_reserved(2, 246),
]
_TEXT, _VISION, _REASONING = "text_post_train_", "vision_", "reasoning_"
_LLAMA4 = [
    *_marked("begin_of_text end_of_text fim_prefix fim_middle fim_suffix header_start header_end eom eot step"),
    *_reserved(0, 6, _TEXT),
    *_marked("python_start python_end finetune_right_pad"),
    *_reserved(8, 69, _TEXT),
    *_marked("image_start image_end"),
    *_reserved(0, 2, _VISION),
    *_marked("tile_x_separator tile_y_separator"),
    *_reserved(2, 6, _VISION),
    *_marked("image"),
    *_reserved(6, 7, _VISION),
    *_marked("patch"),
    *_reserved(7, 1048, _VISION),
    *_reserved(0, 8, _REASONING),
    *_marked("reasoning_thinking_start reasoning_thinking_end"),
]
_LLAMA4 += _reserved(0, 2048 - len(_LLAMA4))
_GLM4 = (
    f"{_END} [MASK] [gMASK] [sMASK] <sop> <eop> <|system|> <|user|> <|assistant|> <|observation|> "
    "<|begin_of_image|> <|end_of_image|> <|begin_of_video|> <|end_of_video|>"
)
_KIMI = {number: f"<|reserved_token_{number}|>" for number in range(163584, 163840)}
_KIMI |= {163584: "[BOS]", 163585: "[EOS]", 163593: "[EOT]", 163838: "[UNK]", 163839: "[PAD]"}
_KIMI |= dict(enumerate(_marked("im_end im_user im_assistant"), 163586))
_KIMI |= dict(enumerate(_marked("start_header_id end_header_id"), 163590))
_KIMI |= dict(
    enumerate(
        _marked(
            "im_system tool_calls_section_begin tool_calls_section_end tool_call_begin tool_call_argument_begin "
            "tool_call_end"
        ),
        163594,
    )
)
_KIMI[163601] = "<|im_middle|>"

OPENAI: Mapping[str, Published] = {
    "r50k_base": Published("gpt2", 50256, 31373, {_END: 50256}),
    "p50k_base": Published("gpt2", 50280, 31373, {_END: 50256}),
    "cl100k_base": Published(
        "cl100k",
        100256,
        15339,
        _numbered(100257, [_END, *_marked("fim_prefix fim_middle fim_suffix")]) | {"<|endofprompt|>": 100276},
    ),
    "o200k_base": Published("o200k", 199998, 24912, {_END: 199999, "<|endofprompt|>": 200018}),
}
"""The encodings that tiktoken downloads by name."""
PUBLISHED: Mapping[str, Published] = {
    **OPENAI,
    "Llama 3": Published("llama3", 128000, 15339, _numbered(128000, _LLAMA3)),
    "Llama 4": Published("o200k", 200000, 25681, _numbered(200000, _LLAMA4)),
    "Qwen": Published(
        "qwen2",
        151643,
        14990,
        _numbered(151643, [_END, *_marked("im_start im_end"), *(f"<|extra_{number}|>" for number in range(205))]),
        normalization="NFC",
    ),
    "GLM 4": Published("llama3", 151329, 14978, _numbered(151329, _GLM4.split())),
    "Kimi K2": Published("kimi", 163584, None, {name: number for number, name in _KIMI.items()}),
}
"""All rank files that are recognized."""


def recognize(ranks: int, hello: int | None) -> Published | None:
    """Return the published file with this number of ranks and this rank of "hello".

    >>> recognize(128000, hello=15339).pattern
    'llama3'
    >>> recognize(128000, hello=300)
    """
    files = (each for each in PUBLISHED.values() if each.ranks == ranks and each.hello in (hello, None))
    return next(files, None)

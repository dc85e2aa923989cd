"""Make a tokenizer.json from a vocabulary of llama.cpp, for families that no package ships as tokenizer.json.

Only the vocabulary is in the file. The steps before it are those of the published tokenizer.json of each family.
"""

import json
from pathlib import Path
from typing import Any

from batchbpe.formats import gguf_metadata

BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
DIGITS = {"type": "Digits", "individual_digits": True}
NFC = {"type": "NFC"}
QWEN35 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)


def split(pattern: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


FAMILIES: dict[str, tuple[Any, list[Any]]] = {
    "gpt-2": (None, [BYTE_LEVEL]),
    "mpt": (NFC, [BYTE_LEVEL]),
    "starcoder": (None, [DIGITS, BYTE_LEVEL]),
    "refact": (None, [DIGITS, BYTE_LEVEL]),
    "command-r": (NFC, [DIGITS, BYTE_LEVEL]),
    "qwen35": (None, [split(QWEN35), BYTE_LEVEL | {"use_regex": False}]),
    "falcon": (
        None,
        [
            {"type": "Punctuation", "behavior": "Contiguous"},
            BYTE_LEVEL,
            {"type": "Digits", "individual_digits": False},
            split("[0-9][0-9][0-9]"),
        ],
    ),
}
"""Normalizer and pre-tokenizers by the name of llama.cpp's vocabulary."""
CONTROL, USER_DEFINED = 3, 4


def tokenizer_json(path: Path, family: str) -> str:
    metadata = gguf_metadata.read(path, "tokenizer.")
    tokens, kinds = metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.token_type"]
    normalizer, steps = FAMILIES[family]
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip"), False)
    added = [
        {"id": token, "content": content, **flags, "normalized": kind == USER_DEFINED, "special": kind == CONTROL}
        for token, (content, kind) in enumerate(zip(tokens, kinds, strict=True))
        if kind in (CONTROL, USER_DEFINED)
    ]
    model = {
        "type": "BPE",
        "vocab": {content: token for token, content in enumerate(tokens)},
        "merges": metadata["tokenizer.ggml.merges"],
    }
    parts = {
        "version": "1.0",
        "added_tokens": added,
        "normalizer": normalizer,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": steps} if len(steps) > 1 else steps[0],
        "post_processor": None,
        "decoder": BYTE_LEVEL,
        "model": model,
    }
    return json.dumps(parts, ensure_ascii=False)

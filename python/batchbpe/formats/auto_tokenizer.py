"""How `AutoTokenizer` loads an exported folder, which depends on the model's config.json next to it.

Next to a config.json of a type in `REPLACED`, transformers 5 ignores `tokenizer_class` and builds a class with its own
pattern and normalization, without a warning. An `auto_map` prevents this: AutoTokenizer then loads
`PreTrainedTokenizerFast`, or with `trust_remote_code=True` the class in the folder, which gives the same ids.
`tests/test_formats_auto_tokenizer.py` compares the ids for every model type that transformers knows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from ..errors import parse_json, warn
from . import native
from .carried import TEMPLATE

CHECKED = "5.23.0"
"""The latest version of transformers that was checked."""
REPLACED = (
    "hyperclovax_vision_v2",
    "qwen2",
    "qwen3_5",
    "qwen3_5_moe",
    "qwen3_5_moe_text",
    "qwen4_exp",
    "siglip2",
)
"""The model types for which transformers ignores the class that tokenizer_config.json names."""
STALE = ("added_tokens.json", "special_tokens_map.json", "tekken.json")
"""Files of another tokenizer that transformers reads besides tokenizer.json, or instead of it."""
CLASS = "PreTrainedTokenizerFast"
"""The class has the name of its base, so that `save_pretrained` writes a folder that loads without the code."""
FILE = "tokenization_fast.py"
OWN_CLASS = "BatchBPETokenizer"
OWN_FILE = "tokenization_batchbpe.py"
OWN_CODE = f'''"""The tokenizer of this folder, which tokenizer.json cannot represent. It requires batchbpe."""

from batchbpe.transformers import {OWN_CLASS}

__all__ = ["{OWN_CLASS}"]
'''
CODE = f'''"""The tokenizer of this folder: the ids of tokenizer.json, with the core of batchbpe if it is installed.

Without this file, transformers replaces the pattern next to a config.json of some model types, such as qwen2.
"""

try:
    from batchbpe.transformers import {OWN_CLASS} as {CLASS}
except ImportError:
    import transformers

    class {CLASS}(transformers.{CLASS}):
        pass
'''


def needs_code(folder: Path) -> bool:
    """Return whether AutoTokenizer may ignore the class that tokenizer_config.json names.

    Without a config.json in the folder, the answer is yes, since the files may be copied next to any other.
    """
    try:
        config = parse_json((folder / "config.json").read_bytes())
    except (OSError, ValueError):
        return True
    if not isinstance(config, Mapping) or "model_name" in config:  # transformers looks up both names
        return True
    return not isinstance(config.get("model_type"), str) or config["model_type"] in REPLACED


def fast_class(with_code: bool) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the code and the settings of a folder with a tokenizer.json.

    >>> fast_class(with_code=False)[1]["batchbpe"][:33]
    'Checked with transformers 5.23.0:'
    """
    settings = {"tokenizer_class": CLASS, "batchbpe": _statement(exceptions=not with_code)}
    if not with_code:
        return {}, settings
    return {FILE: CODE}, settings | {"auto_map": {"AutoTokenizer": [None, f"{Path(FILE).stem}.{CLASS}"]}}


def own_class() -> tuple[dict[str, str], dict[str, Any]]:
    """Return the code and the settings of a folder with a model that tokenizer.json cannot represent."""
    reference = f"{Path(OWN_FILE).stem}.{OWN_CLASS}"
    settings = {"tokenizer_class": OWN_CLASS, "auto_map": {"AutoTokenizer": [reference, None]}}
    return {OWN_FILE: OWN_CODE}, settings | {"batchbpe": _statement(trust=True)}


def remove_stale(folder: Path, written: Collection[str]) -> None:
    """Remove the files of another tokenizer that transformers would load. Those of other programs cause a warning."""
    for name in {"tokenizer.json", native.IN_FOLDER, FILE, OWN_FILE} - {*written}:
        (folder / name).unlink(missing_ok=True)
    if removed := [name for name in STALE if (folder / name).is_file()]:
        for name in removed:
            (folder / name).unlink()
        warn(f"{folder}: removed {', '.join(removed)}, from which transformers would load other tokens")
    if TEMPLATE not in written and (folder / TEMPLATE).is_file():
        warn(f"{folder / TEMPLATE}: kept, but it is not from this tokenizer; transformers uses it")


def _statement(*, exceptions: bool = False, trust: bool = False) -> str:
    """Return what tokenizer_config.json says about the checks."""
    types = f"any model type except {', '.join(REPLACED)}" if exceptions else "any model type"
    argument = " with trust_remote_code=True" * trust
    text = f"Checked with transformers {CHECKED}: next to a config.json of {types}, AutoTokenizer{argument} gives the"
    remedy = " For the exceptions, export into the folder with the config.json." * exceptions
    return f"{text} ids of batchbpe.{remedy}"

"""How `AutoTokenizer` loads an exported folder, which depends on the model's config.json next to it.

Next to a config.json of a type in `REPLACED`, transformers 5 ignores `tokenizer_class` and builds a class with its own
pattern and normalization, without a warning. An `auto_map` prevents this: AutoTokenizer then loads
`PreTrainedTokenizerFast`, or with `trust_remote_code=True` the class in the folder, which gives the same ids.
`tests/test_formats_auto_tokenizer.py` compares the ids for every model type that transformers knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import parse_json

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
STALE = ("added_tokens.json", "special_tokens_map.json", "tekken.json")
"""Files of another tokenizer that transformers reads besides tokenizer.json, or instead of it."""
CLASS = "PreTrainedTokenizerFast"
"""The class has the name of its base, so that `save_pretrained` writes a folder that loads without the code."""
FILE = "tokenization_fast.py"
OWN_CODE, OWN_CLASS = Path(__file__).parent / "tokenization_batchbpe.py", "BatchBPETokenizer"
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


def keeps_class(folder: Path) -> bool:
    """Return whether the folder has a config.json with which AutoTokenizer loads the class that is specified.

    Without a config.json, the files may be copied next to any other, so the answer is no.
    """
    try:
        config = parse_json((folder / "config.json").read_bytes())
    except (OSError, ValueError):
        return False
    if not isinstance(config, Mapping) or "model_name" in config:  # transformers looks up both names
        return False
    return isinstance(config.get("model_type"), str) and config["model_type"] not in REPLACED


def fast_class(keeps_class: bool) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the files and settings of a folder with a tokenizer.json. `keeps_class` is what the function returns.

    >>> fast_class(keeps_class=True)[1]["batchbpe"][:33]
    'Checked with transformers 5.23.0:'
    """
    settings = {"tokenizer_class": CLASS, "batchbpe": _statement(exceptions=keeps_class)}
    if keeps_class:
        return {}, settings
    return {FILE: CODE}, settings | {"auto_map": {"AutoTokenizer": [None, f"{Path(FILE).stem}.{CLASS}"]}}


def own_class() -> tuple[dict[str, str], dict[str, Any]]:
    """Return the files and settings of a folder with a model that needs `batchbpe.transformers.BatchBPETokenizer`."""
    reference = f"{OWN_CODE.stem}.{OWN_CLASS}"
    settings = {"tokenizer_class": OWN_CLASS, "auto_map": {"AutoTokenizer": [reference, None]}}
    files = {OWN_CODE.name: OWN_CODE.read_text(encoding="utf-8")}
    return files, settings | {"batchbpe": _statement(trust=True)}


def _statement(*, exceptions: bool = False, trust: bool = False) -> str:
    """Return what tokenizer_config.json says about the checks."""
    types = f"any model type except {', '.join(REPLACED)}" if exceptions else "any model type"
    argument = " with trust_remote_code=True" * trust
    text = f"Checked with transformers {CHECKED}: next to a config.json of {types}, AutoTokenizer{argument} gives the"
    remedy = " For the exceptions, export into the folder with the config.json." * exceptions
    return f"{text} ids of batchbpe.{remedy}"

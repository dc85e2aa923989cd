"""A folder that `AutoTokenizer.from_pretrained` of transformers loads.

A model that tokenizer.json can hold is one. Any other goes with a class that calls this package, which transformers
asks to be trusted: `AutoTokenizer.from_pretrained(folder, trust_remote_code=True)`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..files import replacing
from ..model import Model
from . import huggingface, native

_END = "<|endoftext|>"
_CODE = Path(__file__).parent.parent / "tokenization_batchbpe.py"


def save(model: Model, folder: Path, *, allow_inexact: bool = False) -> None:
    """Write the folder, which is made if it is not there."""
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"{folder} is a file: give a folder, which may be a new one")
    config: dict[str, Any] = {"clean_up_tokenization_spaces": False, "model_max_length": int(1e30)}
    if _END in model.special_tokens:
        config |= dict.fromkeys(("bos_token", "eos_token"), _END)
    if not folder.parent.is_dir():
        raise FileNotFoundError(f"cannot write {folder}: there is no folder {folder.parent}; make it first")
    own = not allow_inexact and not _fits(model)
    fields = None if own else huggingface.described(model, allow_inexact=allow_inexact)
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise type(error)(f"cannot write {folder}: {error.strerror}") from None
    for stale in ("tokenizer.json",) if own else (native.IN_FOLDER, _CODE.name):
        (folder / stale).unlink(missing_ok=True)
    if own:
        native.save(model, folder / native.IN_FOLDER)
        _write(folder / _CODE.name, _CODE.read_text(encoding="utf-8"))
        name = "BatchBPETokenizer"
        config |= {"tokenizer_class": name, "auto_map": {"AutoTokenizer": [f"{_CODE.stem}.{name}", None]}}
    else:
        _write(folder / "tokenizer.json", json.dumps(fields, ensure_ascii=False))
        config["tokenizer_class"] = "PreTrainedTokenizerFast"
    _write(folder / "tokenizer_config.json", json.dumps(config, indent=2))


def _fits(model: Model) -> bool:
    try:
        huggingface.check(model)
    except ValueError:
        return False
    return True


def _write(path: Path, text: str) -> None:
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")

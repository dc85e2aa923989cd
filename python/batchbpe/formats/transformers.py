"""A folder that `transformers.AutoTokenizer.from_pretrained` loads.

A model that tokenizer.json can represent is written as one. Any other model is written with a tokenizer class that
calls this package, which transformers runs only with `AutoTokenizer.from_pretrained(folder, trust_remote_code=True)`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import warn
from ..model import Model
from ..storage.atomic import new_folder, replacing_all, writing
from ..storage.locks import check_parent
from . import huggingface, native
from .ignored import CONFIG, END, ignored_settings, read_config
from .placeholders import unused_tokens

_CODE = Path(__file__).parent / "tokenization_batchbpe.py"


def save(model: Model, folder: Path, *, allow_inexact: bool = False) -> None:
    """Write the folder, creating it if necessary.

    A new folder appears with all its files. In an existing folder, which may contain other files such as weights,
    files are replaced once all new files are complete.
    """
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"cannot write {folder}: it is a file, but this format needs a folder")
    check_parent(folder)
    files = _files(model, allow_inexact)
    if folder.is_dir():
        replaced = ignored_settings(read_config(folder))
        _write(files, folder)
        if replaced:
            warn(f"{folder / CONFIG}: replaced, without its {', '.join(replaced)}")
        for stale in {"tokenizer.json", native.IN_FOLDER, _CODE.name} - files.keys():
            (folder / stale).unlink(missing_ok=True)
        return
    with new_folder(folder) as temporary:
        _write(files, temporary)


def _files(model: Model, allow_inexact: bool) -> dict[str, str]:
    """Return the content of each file. The configuration comes last, because it refers to the others."""
    config: dict[str, Any] = {"clean_up_tokenization_spaces": False, "model_max_length": int(1e30)}
    if END in model.special_tokens:
        config |= dict.fromkeys(("bos_token", "eos_token"), END)
    if allow_inexact or _fits_tokenizer_json(model):
        fields = huggingface.to_json(model, allow_inexact=allow_inexact, fill_gaps=True)
        files = {"tokenizer.json": json.dumps(fields, ensure_ascii=False)}
        config["tokenizer_class"] = "PreTrainedTokenizerFast"
    else:
        unused_tokens(model)  # raises the error that loading the folder would raise
        files = {native.IN_FOLDER: native.render(model), _CODE.name: _CODE.read_text(encoding="utf-8")}
        name = "BatchBPETokenizer"
        config |= {"tokenizer_class": name, "auto_map": {"AutoTokenizer": [f"{_CODE.stem}.{name}", None]}}
    return {**files, CONFIG: json.dumps(config, indent=2)}


def _write(files: Mapping[str, str], folder: Path) -> None:
    with replacing_all([folder / name for name in files]) as temporaries:
        for (name, text), temporary in zip(files.items(), temporaries, strict=True):
            with writing(folder / name):
                temporary.write_text(text, encoding="utf-8")


def _fits_tokenizer_json(model: Model) -> bool:
    try:
        huggingface.check(model)
    except ValueError:
        return False
    return True

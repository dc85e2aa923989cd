"""A folder that `transformers.AutoTokenizer.from_pretrained` loads.

A model that tokenizer.json can represent is written as one, with what AutoTokenizer needs to use it (see
auto_tokenizer.py). Any other model is written with a tokenizer class that calls this package, which transformers runs
only with `AutoTokenizer.from_pretrained(folder, trust_remote_code=True)`.
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
from . import auto_tokenizer, huggingface, native
from .carried import CONFIG, END, TEMPLATE, described, of_folder
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
    files = _files(model, allow_inexact, auto_tokenizer.keeps_class(folder))
    if folder.is_dir():
        replaced = [name for name in _settings(folder) if name not in described(model.carried)]
        _write(files, folder)
        if replaced:
            warn(f"{folder / CONFIG}: replaced, without its {', '.join(replaced)}")
        for stale in {"tokenizer.json", native.IN_FOLDER, _CODE.name, auto_tokenizer.FILE} - files.keys():
            (folder / stale).unlink(missing_ok=True)
        if removed := [name for name in auto_tokenizer.STALE if (folder / name).is_file()]:
            for name in removed:
                (folder / name).unlink()
            warn(f"{folder}: removed {', '.join(removed)}, from which transformers would load other tokens")
        return
    with new_folder(folder) as temporary:
        _write(files, temporary)


def _settings(folder: Path) -> list[str]:
    """Name the settings of a folder."""
    try:
        return described({"tokenizer_config": of_folder(folder).get("tokenizer_config")})
    except ValueError:  # a damaged file is replaced
        return []


def _files(model: Model, allow_inexact: bool, keeps_class: bool) -> dict[str, str]:
    """Return the content of each file. The configuration comes last, because it refers to the others.

    `keeps_class` says whether AutoTokenizer loads the class that the configuration names.
    """
    config: dict[str, Any] = {"clean_up_tokenization_spaces": False, "model_max_length": int(1e30)}
    if END in model.special_tokens:
        config |= dict.fromkeys(("bos_token", "eos_token"), END)
    config = dict(model.carried.get("tokenizer_config", config))
    for name in ("auto_map", "batchbpe", "fix_mistral_regex"):  # the last replaces the pattern
        config.pop(name, None)
    if isinstance(decoder := config.get("added_tokens_decoder"), dict):  # the tokens may have changed since
        ids = {name: str(token) for name, token in model.found_tokens.items()}
        used = {*map(str, model.vocab)}
        config["added_tokens_decoder"] = {
            token: entry
            for token, entry in decoder.items()
            if ids.get(entry.get("content"), token if token not in used else None) == token
        }
    if allow_inexact or _fits_tokenizer_json(model):
        fields = huggingface.to_json(model, allow_inexact=allow_inexact, fill_gaps=True)
        files = {"tokenizer.json": json.dumps(fields, ensure_ascii=False)}
        # Classes such as Qwen2Tokenizer would replace the pattern and the normalization with their own.
        config["tokenizer_class"] = auto_tokenizer.CLASS
        if not allow_inexact:
            config["batchbpe"] = auto_tokenizer.statement(exceptions=keeps_class)
        if not keeps_class:
            files[auto_tokenizer.FILE] = auto_tokenizer.CODE
            reference = f"{Path(auto_tokenizer.FILE).stem}.{auto_tokenizer.CLASS}"
            config["auto_map"] = {"AutoTokenizer": [None, reference]}
    else:
        unused_tokens(model)  # raises the error that loading the folder would raise
        files = {native.IN_FOLDER: native.render(model), _CODE.name: _CODE.read_text(encoding="utf-8")}
        name = "BatchBPETokenizer"
        config |= {"tokenizer_class": name, "auto_map": {"AutoTokenizer": [f"{_CODE.stem}.{name}", None]}}
        config["batchbpe"] = auto_tokenizer.statement(trust=True)
    if "chat_template" in model.carried:
        files[TEMPLATE] = model.carried["chat_template"]
    return {**files, CONFIG: json.dumps(config, indent=2, ensure_ascii=False)}


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

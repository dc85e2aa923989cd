"""A folder that `transformers.AutoTokenizer.from_pretrained` loads.

A model that tokenizer.json can represent is written as one, with what AutoTokenizer needs to use it (see
auto_tokenizer.py). Any other model is written with a tokenizer class that calls this package, which transformers runs
only with `AutoTokenizer.from_pretrained(folder, trust_remote_code=True)`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from ..errors import warn
from ..model import Model
from ..storage.atomic import new_folder, replacing_all, writing
from ..storage.locks import check_parent
from . import auto_tokenizer, golden, huggingface, native
from .carried import CONFIG, TEMPLATE, described, of_folder
from .placeholders import unused_tokens
from .roles import config_of


def save(model: Model, folder: Path, *, allow_inexact: bool = False) -> None:
    """Write the folder, creating it if necessary.

    A new folder appears with all its files. In an existing folder, which may contain other files such as weights,
    files are replaced once all new files are complete.
    """
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"cannot write {folder}: it is a file, but this format needs a folder")
    check_parent(folder)
    golden.check_replaceable(folder / golden.IN_FOLDER)
    files = _files(model, allow_inexact, auto_tokenizer.needs_code(folder))
    if folder.is_dir():
        kept = described({**model.carried, "tokenizer_config": config_of(model)})
        replaced = [name for name in _settings(folder) if name not in kept]
        _write(files, folder)
        if replaced:
            warn(f"{folder / CONFIG}: replaced, without its {', '.join(replaced)}")
        auto_tokenizer.remove_stale(folder, files)
        return
    with new_folder(folder) as temporary:
        _write(files, temporary)


def _settings(folder: Path) -> list[str]:
    """Name the settings of a folder."""
    try:
        return described({"tokenizer_config": of_folder(folder).get("tokenizer_config")})
    except ValueError:  # a damaged file is replaced
        return []


def _files(model: Model, allow_inexact: bool, with_code: bool) -> dict[str, str]:
    """Return the content of each file. The configuration comes last, because it refers to the others."""
    config = config_of(model)
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
        code, settings = auto_tokenizer.fast_class(with_code)
        if allow_inexact:
            settings.pop("batchbpe")
    else:
        unused_tokens(model)  # raises the error that loading the folder would raise
        files = {native.IN_FOLDER: native.render(model)}
        code, settings = auto_tokenizer.own_class()
    files |= code
    config |= settings
    if "chat_template" in model.carried:
        files[TEMPLATE] = model.carried["chat_template"]
    files[golden.IN_FOLDER] = golden.render(model)
    return {**files, CONFIG: json.dumps(config, indent=2, ensure_ascii=False)}


def _write(files: Mapping[str, str], folder: Path) -> None:
    with replacing_all([folder / name for name in files]) as temporaries:
        for (name, text), temporary in zip(files.items(), temporaries, strict=True):
            with writing(folder / name):
                temporary.write_text(text, encoding="utf-8", newline="\n")


def _fits_tokenizer_json(model: Model) -> bool:
    try:
        huggingface.check(model)
    except ValueError:
        return False
    return True

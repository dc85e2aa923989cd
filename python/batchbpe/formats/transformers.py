"""A folder that `AutoTokenizer.from_pretrained` of transformers loads.

A model that tokenizer.json can hold is one. Any other goes with a class that calls this package, which transformers
asks to be trusted: `AutoTokenizer.from_pretrained(folder, trust_remote_code=True)`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import short
from ..model import Model
from ..storage.atomic import new_folder, replacing_all, writing
from . import huggingface, native

MAX_UNUSED = 1 << 16
"""Ids below the largest that no token has: transformers needs a name for each."""
_END = "<|endoftext|>"
_CODE = Path(__file__).parent / "tokenization_batchbpe.py"


def save(model: Model, folder: Path, *, allow_inexact: bool = False) -> None:
    """Write the folder, which is made if it is not there.

    A new folder appears with all files in it. In one that is there already, which may hold other files such as weights,
    no file is replaced before all are written.
    """
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"{folder} is a file: give a folder, which may be a new one")
    if not folder.parent.is_dir():
        raise FileNotFoundError(f"cannot write {folder}: there is no folder {folder.parent}; make it first")
    files = _files(model, allow_inexact)
    if folder.is_dir():
        _write(files, folder)
        for stale in {"tokenizer.json", native.IN_FOLDER, _CODE.name} - files.keys():
            (folder / stale).unlink(missing_ok=True)
        return
    with new_folder(folder) as aside:
        _write(files, aside)


def check_unused(model: Model) -> None:
    """Raise if so many ids are unused that their names would take gigabytes."""
    unused = model.n_vocab - len(model.vocab)
    if unused > MAX_UNUSED:
        last = model.n_vocab - 1
        name = next((short(name) for name, token in model.special_tokens.items() if token == last), "the last token")
        raise ValueError(
            f"{name} has the id {last}, and {unused:,} ids below it are unused; "
            f"transformers needs a name for each, up to {MAX_UNUSED:,}: give it a smaller id"
        )


def _files(model: Model, allow_inexact: bool) -> dict[str, Callable[[Path], object]]:
    """Say what writes each file of the folder. The configuration is last: it tells what the others are."""
    config: dict[str, Any] = {"clean_up_tokenization_spaces": False, "model_max_length": int(1e30)}
    if _END in model.special_tokens:
        config |= dict.fromkeys(("bos_token", "eos_token"), _END)
    files: dict[str, Callable[[Path], object]]
    if allow_inexact or _fits(model):
        fields = huggingface.described(model, allow_inexact=allow_inexact)
        files = {"tokenizer.json": _text(json.dumps(fields, ensure_ascii=False))}
        config["tokenizer_class"] = "PreTrainedTokenizerFast"
    else:
        check_unused(model)
        files = {native.IN_FOLDER: partial(native.write, model), _CODE.name: _text(_CODE.read_text(encoding="utf-8"))}
        name = "BatchBPETokenizer"
        config |= {"tokenizer_class": name, "auto_map": {"AutoTokenizer": [f"{_CODE.stem}.{name}", None]}}
    return {**files, "tokenizer_config.json": _text(json.dumps(config, indent=2))}


def _write(files: Mapping[str, Callable[[Path], object]], folder: Path) -> None:
    with replacing_all([folder / name for name in files]) as temporaries:
        for (name, write), temporary in zip(files.items(), temporaries, strict=True):
            with writing(folder / name):
                write(temporary)


def _text(text: str) -> Callable[[Path], object]:
    return lambda path: path.write_text(text, encoding="utf-8")


def _fits(model: Model) -> bool:
    try:
        huggingface.check(model)
    except ValueError:
        return False
    return True

"""Files of models and of chunk counts, one format a file. They know `Model` and nothing else of the package."""

from __future__ import annotations

import codecs
import os
import re
from pathlib import Path
from typing import Literal

from ..model import Model
from . import native

Format = Literal["batchbpe", "tiktoken", "huggingface", "transformers", "minbpe", "batchbpe-v1"]
FORMATS = ("batchbpe", "tiktoken", "huggingface", "transformers", "minbpe", "batchbpe-v1")


def load_file(path: str | os.PathLike[str]) -> Model:
    """Read a model in the format that the file's content is of."""
    from . import huggingface, minbpe, tiktoken

    path = _path(path)
    if path.is_dir():
        return huggingface.load(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no model file {path}")
    content = path.read_bytes().removeprefix(codecs.BOM_UTF8)
    if content.lstrip()[:1] == b"{":
        own = re.search(rb'"format"\s*:\s*"batchbpe"', content)
        return native.load(path) if own else huggingface.load(path)
    if content.startswith(tuple(version.encode() for version in minbpe.VERSIONS)):
        return minbpe.load(path)
    if tiktoken.is_rank(content.split(b"\n", 1)[0]):
        return tiktoken.load(path)
    raise ValueError(f"{path} is no model file: it is in none of the formats {', '.join(FORMATS)}")


def _path(path: str | os.PathLike[str]) -> Path:
    if not os.fspath(path):
        raise ValueError("the path is empty: give the name of a file")
    return Path(path)


def save_file(model: Model, path: str | os.PathLike[str], format: Format, *, allow_inexact: bool = False) -> None:
    """Write a model in a format."""
    from . import huggingface, minbpe, tiktoken, transformers

    path = _path(path)
    if format == "batchbpe":
        native.save(model, path)
    elif format == "tiktoken":
        tiktoken.save(model, path, allow_inexact=allow_inexact)
    elif format == "huggingface":
        huggingface.save(model, path, allow_inexact=allow_inexact)
    elif format == "transformers":
        transformers.save(model, path, allow_inexact=allow_inexact)
    elif format == "minbpe":
        minbpe.save(model, path, "minbpe v1")
    elif format == "batchbpe-v1":
        minbpe.save(model, path, "BatchBPE v1")
    else:
        raise ValueError(f"format={format!r}: give one of {', '.join(FORMATS)}")

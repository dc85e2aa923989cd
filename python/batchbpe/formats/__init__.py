"""File formats of models and chunk counts, one module per format. They depend on `Model`, not on `Tokenizer`."""

from __future__ import annotations

import codecs
import os
import re
from pathlib import Path
from typing import Literal

from ..arguments import check_path
from ..errors import ArgumentError, DataError
from ..model import Model
from . import huggingface, minbpe, native, tiktoken, transformers
from .file_errors import check_model_path, locate_errors, not_found

Format = Literal["batchbpe", "tiktoken", "huggingface", "transformers", "minbpe", "batchbpe-v1"]
FORMATS = ("batchbpe", "tiktoken", "huggingface", "transformers", "minbpe", "batchbpe-v1")


def load_file(path: str | os.PathLike[str]) -> Model:
    """Load a model from a file or folder. The format is detected from the content.

    >>> load_file("nowhere.model")
    Traceback (most recent call last):
    ...
    FileNotFoundError: model file not found: nowhere.model
    """
    check_model_path("path", path)
    given, path = path, Path(path)
    if path.is_dir():
        return huggingface.load(path)
    if not path.is_file():
        if given in tiktoken.PUBLISHED:
            raise not_found(given, f"use Tokenizer.from_tiktoken({tiktoken.DOWNLOADED})")
        raise not_found(given, f"use Tokenizer.from_huggingface({huggingface.DOWNLOADED})")
    with locate_errors(path):
        content = path.read_bytes().removeprefix(codecs.BOM_UTF8)
    if content.lstrip()[:1] == b"{":
        is_native = re.search(rb'"format"\s*:\s*"batchbpe"', content)
        return native.load(path) if is_native else huggingface.load(path)
    if content.startswith(tuple(version.encode() for version in minbpe.VERSIONS)):
        return minbpe.load(path)
    if tiktoken.is_rank(content.split(b"\n", 1)[0]):
        return tiktoken.load(path)
    raise DataError(f"not a model file in any of the formats {', '.join(FORMATS)}", where=str(path))


def is_rank_file(path: Path) -> bool:
    """Return whether a file is a rank file of tiktoken, which does not state its pattern.

    >>> is_rank_file(Path(__file__))
    False
    """
    with locate_errors(path), path.open("rb") as file:
        return tiktoken.is_rank(file.readline(1 << 16).rstrip(b"\r\n"))


def save_file(model: Model, path: str | os.PathLike[str], format: Format, *, allow_inexact: bool = False) -> None:
    """Write a model in a format.

    `allow_inexact` writes the model even if the format cannot represent it exactly.

    >>> import tempfile
    >>> model = Model(split=r"\\w+", merges={(97, 97): 256})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_file(model, f"{folder}/a.model", "minbpe")
    ...     load_file(f"{folder}/a.model") == model
    True
    """
    check_path("path", path)
    path = Path(path)
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
        raise ArgumentError("format", format, f"must be one of {', '.join(FORMATS)}")

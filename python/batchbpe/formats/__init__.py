"""Model and chunk count file formats, one module per format. They depend on `Model`, not on `Tokenizer`."""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from ..arguments import check_path
from ..errors import ArgumentError, ArgumentTypeError, DataError, Message
from ..model import Model
from . import gguf, golden, huggingface, minbpe, native, tekken, tiktoken, transformers
from .file_errors import check_model_path, locate_errors, not_found
from .published import OPENAI
from .roles import RoleOptions, with_roles

Format = Literal["batchbpe", "tiktoken", "tekken", "huggingface", "transformers", "gguf", "minbpe", "batchbpe-v1"]
"""The names in `FORMATS`, for type checkers."""


class _Save(Protocol):
    def __call__(self, model: Model, path: Path, /, *, allow_inexact: bool) -> None: ...


class ModelFormat(NamedTuple):
    """How files of a model format are recognized, read and written."""

    is_format: Callable[[bytes], bool] | None
    """Whether the content of a file is in this format, or None if the format is a folder."""
    load: Callable[[Path], Model]
    save: _Save
    stores_roles: bool = False
    """Whether the format has roles of special tokens and a chat template."""


FORMATS: Mapping[str, ModelFormat] = {
    "batchbpe": ModelFormat(native.is_format, native.load, native.save, stores_roles=True),
    "tiktoken": ModelFormat(tiktoken.is_format, tiktoken.load, tiktoken.save),
    "tekken": ModelFormat(tekken.is_format, tekken.load, tekken.save),
    "huggingface": ModelFormat(huggingface.is_format, huggingface.load, huggingface.save),
    "transformers": ModelFormat(None, huggingface.load, transformers.save, stores_roles=True),
    "gguf": ModelFormat(gguf.is_format, gguf.load, gguf.save, stores_roles=True),
    "minbpe": ModelFormat(minbpe.is_format, minbpe.load, minbpe.save),
    "batchbpe-v1": ModelFormat(minbpe.is_format, minbpe.load, partial(minbpe.save, version=minbpe.PAPER)),
}
"""The model formats. If the content of a file matches several, it is in the first of them."""


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
        if given in OPENAI:
            raise not_found(given, f"use Tokenizer.from_tiktoken({tiktoken.DOWNLOADED})")
        raise not_found(given, f"use Tokenizer.from_huggingface({huggingface.DOWNLOADED})")
    name = format_of(path)
    if name is None:
        raise DataError(f"not a model file in any of the formats {', '.join(FORMATS)}", where=str(path))
    return FORMATS[name].load(path)


def format_of(path: Path) -> str | None:
    """Return the format of a file, or None if no format recognizes its content.

    >>> format_of(Path(__file__))
    """
    with locate_errors(path), path.open("rb") as file:
        content = file.read(len(codecs.BOM_UTF8) + 1)
        if not gguf.is_format(content):  # such a file may have gigabytes of weights
            content = (content + file.read()).removeprefix(codecs.BOM_UTF8)
    return next((name for name, format in FORMATS.items() if format.is_format and format.is_format(content)), None)


class HasModel(Protocol):
    """A tokenizer of this package."""

    @property
    def model(self) -> Model:
        """Its model."""


class HasContent(Protocol):
    """A tokenizer of `tokenizers`."""

    def to_str(self, pretty: bool = ...) -> str:
        """Return the content of its tokenizer.json."""


class HasBackend(Protocol):
    """A fast tokenizer of transformers."""

    @property
    def backend_tokenizer(self) -> Any:
        """A tokenizer of `tokenizers`."""


Loadable: TypeAlias = "Model | HasModel | str | os.PathLike[str] | HasContent | HasBackend"
"""Everything that `load_any` accepts."""


def load_any(parameter: str, source: Loadable, remedy: Message = "use a byte-level tokenizer") -> Model:
    """Return the model of a tokenizer, of a path, or of an object of `tokenizers` or transformers.

    `parameter` is the argument that errors name. `remedy` is added to an error about the contents, unless the file is damaged.

    >>> load_any("base", 3)
    Traceback (most recent call last):
    ...
    batchbpe.errors.ArgumentTypeError: base must be a Tokenizer, a Model, a path, or a fast tokenizer of tokenizers or transformers, got 3
    """  # noqa: E501  the last line is an error message
    model = getattr(source, "model", source)
    if isinstance(model, Model):
        return model
    try:
        return load_file(source) if isinstance(source, str | os.PathLike) else huggingface.load(source)
    except ArgumentTypeError:
        reason = "must be a Tokenizer, a Model, a path, or a fast tokenizer of tokenizers or transformers"
        raise ArgumentTypeError(parameter, source, reason) from None
    except DataError as error:
        if "damaged" not in str(error):
            error.remedy = error.remedy or remedy
        raise


def is_rank_file(path: Path) -> bool:
    """Return whether a file is a tiktoken rank file, which does not store its pattern."""
    with locate_errors(path), path.open("rb") as file:
        return tiktoken.is_format(file.readline(1 << 16))


def save_file(
    model: Model,
    path: str | os.PathLike[str],
    format: Format,
    *,
    allow_inexact: bool = False,
    roles: RoleOptions | None = None,
) -> None:
    """Write a model in a format, and a test file next to it or in the folder: see `golden`.

    `allow_inexact` writes the model even if the format cannot represent it exactly. `roles` are added to those that the
    model carries; formats that do not store them raise an error.

    >>> import tempfile
    >>> model = Model(split=r"\\w+", merges={(97, 97): 256})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_file(model, f"{folder}/a.model", "minbpe")
    ...     load_file(f"{folder}/a.model") == model
    True
    """
    check_path("path", path)
    if format not in [*FORMATS]:  # it may not be hashable
        raise ArgumentError("format", format, f"must be one of {', '.join(FORMATS)}")
    if roles:
        if not FORMATS[format].stores_roles:
            roles.refuse(format)
        model = with_roles(model, roles)
    path, save = Path(path), FORMATS[format].save
    if FORMATS[format].is_format is None:  # a folder, which contains the test file
        save(model, path, allow_inexact=allow_inexact)
        return
    with golden.beside(model, path):
        save(model, path, allow_inexact=allow_inexact)

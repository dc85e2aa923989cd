"""The table of engines that `verify` compares with this core: which files each reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata

from .. import __version__
from ..choices import EngineName
from . import adapters, llama_cpp
from .adapters import FOLDER, Export, Loaded


@dataclass(frozen=True)
class Engine:
    """How an engine is found, which files it reads, and how it loads them."""

    name: EngineName
    package: str
    """The name in the package registry."""
    files: str
    """The files that it reads, for error messages."""
    reads: Callable[[Export], object]
    load: Callable[[Export], Loaded]

    @property
    def version(self) -> str | None:
        """The version that is installed, if any."""
        if self.package == "batchbpe":
            return __version__
        try:
            return metadata.version(self.package)
        except metadata.PackageNotFoundError:
            return None


def _has_format(format: str) -> Callable[[Export], bool]:
    return lambda export: export.format == format


ENGINES: tuple[Engine, ...] = (
    Engine("batchbpe", "batchbpe", "every format", lambda _: True, adapters.load_batchbpe),
    Engine(
        "tokenizers",
        "tokenizers",
        "tokenizer.json files, and folders with one",
        adapters.tokenizer_json,
        adapters.load_tokenizers,
    ),
    Engine("transformers", "transformers", "folders", _has_format(FOLDER), adapters.load_transformers),
    Engine("transformers", "transformers", "folders", adapters.has_auto_map, adapters.load_transformers_with_code),
    Engine("tiktoken", "tiktoken", ".tiktoken files", _has_format("tiktoken"), adapters.load_tiktoken),
    Engine("llama.cpp", "llama-cpp-python", ".gguf files", _has_format("gguf"), llama_cpp.load),
    Engine("mistral-common", "mistral-common", "tekken.json files", adapters.tekken_json, adapters.load_mistral_common),
    Engine(
        "gigatoken",
        "gigatoken",
        "tokenizer.json and .tiktoken files",
        lambda export: adapters.tokenizer_json(export) or export.format == "tiktoken",
        adapters.load_gigatoken,
    ),
)
"""All engines. transformers loads a folder with code twice: without and with `trust_remote_code=True`."""

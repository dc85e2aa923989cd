"""Token files: the ids that language models are trained on. Each format is one class, which writes and reads it."""

from __future__ import annotations

from pathlib import Path

from ...choices import TokenFormat
from .base import AnyIds, Part, TokenFile, companion
from .indexed import DatatroveFile, MegatronFile, OlmoFile
from .parquet import ParquetFile
from .raw import BinFile, LlmcFile, NanogptFile, NpyFile

FORMATS: dict[TokenFormat, type[TokenFile]] = {
    "megatron": MegatronFile,
    "llm.c": LlmcFile,
    "nanogpt": NanogptFile,
    "bin": BinFile,
    "olmo": OlmoFile,
    "npy": NpyFile,
    "datatrove": DatatroveFile,
    "parquet": ParquetFile,
}
"""The formats by name. The first one that recognizes a file reads it."""

SUFFIXES = tuple(sorted({format.suffixes[0] for format in FORMATS.values()}))
"""Suffixes of token files."""


def format_of(path: Path) -> TokenFormat | None:
    """Return the format of a file, or None if no format recognizes it.

    >>> format_of(Path("tokens/shard_000000.ds"))
    'datatrove'
    """
    return next((name for name, format in FORMATS.items() if format.recognizes(path)), None)


__all__ = ["FORMATS", "SUFFIXES", "AnyIds", "Part", "TokenFile", "companion", "format_of"]

"""The options of an encoding, and the report about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ..arguments import check_bool, check_integer
from ..choices import TokenFormat
from ..errors import ArgumentError, DataError, Setting
from ..tokenizer import Tokenizer
from . import SHARD_TOKENS
from .encoded import DocumentEncoder
from .marks import Mark, check_mark, marks_of
from .resume import JobOptions
from .shards import Layout
from .token_files import FORMATS, Part
from .validation import check_fraction


@dataclass(frozen=True)
class EncodeOptions(JobOptions):
    """Options that determine the files. A job can only be resumed with the same ones.

    >>> EncodeOptions("nanogpt")
    Traceback (most recent call last):
    ...
    batchbpe.errors.ArgumentError: validation is required by the format nanogpt (train.bin and val.bin), got None; set validation=0.01
    """  # noqa: E501  the last line is an error message

    format: TokenFormat = "bin"
    append_eos: Mark = False
    """Put the special token with the role eos, or the one with this name, after each document."""
    prepend_bos: Mark = False
    """Put the special token with the role bos, or the one with this name, before each document."""
    allow_special: bool = False
    """Encode special tokens in the text as tokens, instead of as plain text."""
    shard_tokens: int = SHARD_TOKENS
    """A shard ends with the first document at which it has this many tokens."""
    split_documents: bool = False
    """End a shard after exactly `shard_tokens` tokens, even inside a document."""
    validation: float | None = None
    """Fraction of the documents for validation, chosen by a hash of their text."""

    def __post_init__(self) -> None:
        """Check the values."""
        for name in ("allow_special", "split_documents"):
            check_bool(name, getattr(self, name))
        for name in ("append_eos", "prepend_bos"):
            check_mark(name, getattr(self, name))
        check_fraction(self.validation)
        if self.format not in [*FORMATS]:  # a list, since the value may not be hashable
            raise ArgumentError("format", self.format, f"must be one of {', '.join(FORMATS)}")
        format = FORMATS[self.format]
        check_integer("shard_tokens", self.shard_tokens, least=1)
        most, whose = format.max_tokens, f"the format {self.format}"
        if self.split_documents and format.max_document < most:  # a document may fill a shard
            most, whose = format.max_document, f"{whose} if documents are split"
        if self.shard_tokens > most:
            remedy = ("set ", Setting("shard_tokens", most))
            raise ArgumentError("shard_tokens", self.shard_tokens, f"must be at most {most} for {whose}", remedy=remedy)
        if not format.is_sharded:
            self._check_without_shards()

    def _check_without_shards(self) -> None:
        names = f"the format {self.format} (train.bin and val.bin)"
        if self.validation is None:
            remedy = ("set ", Setting("validation", 0.01))
            raise ArgumentError("validation", None, f"is required by {names}", remedy=remedy)
        for name, default in (("shard_tokens", SHARD_TOKENS), ("split_documents", False)):
            if getattr(self, name) != default:
                remedy = ("remove it, or use ", format_setting("bin"))
                raise ArgumentError(name, getattr(self, name), f"has no effect on {names}", remedy=remedy)

    def layout(self, folder: Path, tokenizer: Tokenizer) -> Layout:
        """Return the files to write. A vocabulary that is too large for the format is an error."""
        format = FORMATS[self.format]
        check_ids_fit(self.format, tokenizer)
        parts: tuple[Part, ...] = ("",) if self.validation is None else ("train", "validation")
        return Layout(folder, format, format.dtype_for(tokenizer.n_vocab), parts)

    def encoder(self, tokenizer: Tokenizer, threads: int | None = None) -> DocumentEncoder:
        """Return what encodes the documents."""
        marks = marks_of(tokenizer, self.append_eos, self.prepend_bos)
        return DocumentEncoder(tokenizer, marks, self.allow_special, self.reading.errors, self.validation, threads)


def check_ids_fit(name: TokenFormat, tokenizer: Tokenizer) -> None:
    """Raise if a format cannot store all ids of a vocabulary.

    >>> check_ids_fit("nanogpt", Tokenizer.train("to be", 256))
    """
    most = FORMATS[name].max_vocab - 1
    if tokenizer.n_vocab - 1 > most:
        problem = f"the model has ids up to {tokenizer.n_vocab - 1:,}, but {name} files store ids up to {most:,}"
        raise DataError(problem, remedy=("use ", format_setting("bin"), " or ", format_setting("npy")))


def format_setting(name: TokenFormat) -> Setting:
    """Return the setting that chooses a format, for a remedy.

    >>> print(DataError("too many ids", remedy=("use ", format_setting("bin"))))
    too many ids; use format="bin"
    """
    return Setting("token_format", name, call=f'format="{name}"')


@dataclass
class EncodeReport:
    """What a job has written."""

    files: list[str] = field(default_factory=list)
    """Names of the token files."""
    sizes: dict[str, int] = field(default_factory=dict)
    """Bytes of each token file, and of the files of its index."""
    tokens: int = 0
    documents: int = 0
    validation_tokens: int = 0
    """How many of the tokens are for validation."""
    validation_documents: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    """Files that could not be read, and why."""
    finished: bool = False

    def add(self, part: Part, tokens: int, documents: int) -> None:
        """Count the tokens and the documents of a part of the data.

        >>> report = EncodeReport()
        >>> report.add("validation", 5, 1)
        >>> report.tokens, report.validation_tokens
        (5, 5)
        """
        self.tokens += tokens
        self.documents += documents
        if part == "validation":
            self.validation_tokens += tokens
            self.validation_documents += documents

"""What `verify` returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ..analysis.tables import Table, Tabular
from ..errors import plural

TEST_FILE = "test file"
"""The engine of test files."""
Status = Literal["equal", "different", "cannot load", "not installed"]
Kind = Literal[
    "error", "test file", "special token", "normalization", "missing token", "ids", "pattern", "merges", "decoding"
]
"""The likely cause of a difference."""


@dataclass(frozen=True)
class Token:
    """A token of a text."""

    id: int
    text: str
    """The token in quotes, on one line."""


@dataclass(frozen=True)
class Difference:
    """A text that an engine encodes or decodes differently.

    It is the first that is encoded differently, shortened while it still differs. If only decoding differs, or for a
    test file, it is the shortest.
    """

    text: str
    ours: list[Token]
    """The tokens of the reference."""
    theirs: list[Token]
    """The tokens of the engine; those of the reference if only decoding differs."""
    kind: Kind
    cause: str
    """A sentence about the likely cause."""


@dataclass(frozen=True)
class Result:
    """How one engine compares with the reference on one file."""

    engine: str
    version: str | None
    file: str
    status: Status
    asked: bool = False
    """Whether the engine was asked for by name, so that it is an error if it cannot load the file."""
    reason: str = ""
    """Why the file could not be loaded."""
    detail: str = ""
    """What the engine has chosen itself, such as a class, or special tokens as text."""
    vocab_size: int | None = None
    texts: int = 0
    """Number of texts compared."""
    tokens: int = 0
    """Number of tokens of the engine."""
    different: int = 0
    """Number of texts that differ."""
    seconds: float = 0.0
    """Time that the engine needed."""
    difference: Difference | None = None

    @property
    def summary(self) -> str:
        """The result in a few words.

        >>> Result("tiktoken", "0.14.0", "mine.tiktoken", "different", texts=340, different=12).summary
        '12 of 340 texts differ'
        """
        if self.status == "different":
            one, several = ("is", "are") if self.is_decoding else ("differs", "differ")
            verb = (one if self.different == 1 else several) + " decoded differently" * self.is_decoding
            return f"{self.different:,} of {plural(self.texts, 'text')} {verb}"
        return f"{self.status}: {self.reason}" if self.reason else self.status

    @property
    def is_decoding(self) -> bool:
        """Whether the ids are equal, and only decoding differs."""
        return self.difference is not None and self.difference.kind == "decoding"

    @property
    def is_shortened(self) -> bool:
        """Whether the text of the difference was shortened."""
        return self.engine != TEST_FILE and not self.is_decoding


@dataclass(frozen=True, repr=False)
class Verification(Tabular):
    """The reference, what each engine gave, and what is wrong with the configuration of the model."""

    reference: str
    version: str
    vocab_size: int
    n_vocab: int
    results: list[Result]
    problems: list[str] = field(default_factory=list)
    """What makes the files unusable together, such as a config.json with a smaller vocabulary."""
    notes: list[str] = field(default_factory=list)

    def table(self) -> Table:
        """Return a row for the reference, and for each result."""
        rows = [["batchbpe", self.version, self.reference, "", "", "reference"]]
        for each in self.results:
            numbers = [f"{number:,}" if number else "" for number in (each.texts, each.tokens)]
            summary = f"{each.summary} ({each.detail})" if each.detail else each.summary
            rows.append([each.engine, each.version or "", each.file, *numbers, summary])
        return ["engine", "version", "file", "texts", "tokens", "result"], rows

    def tables(self) -> list[Table]:
        """Return the results, what was noticed, and the conclusion."""
        remarks = [["note", each] for each in self.notes] + [["problem", each] for each in self.problems]
        return [self.table(), (["", ""], [*remarks, ["conclusion", self.conclusion]])]

    @property
    def differences(self) -> list[Result]:
        """The results with a difference."""
        return [result for result in self.results if result.status == "different"]

    @property
    def compared(self) -> list[Result]:
        """The results of engines that have loaded a file."""
        return [result for result in self.results if result.status in ("equal", "different")]

    @property
    def failed(self) -> list[Result]:
        """The results of engines that were asked for and could not load the file."""
        return [result for result in self.results if result.status == "cannot load" and result.asked]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong: no difference, no problem, and all engines asked for have loaded their files."""
        return not (self.differences or self.failed or self.problems)

    @property
    def conclusion(self) -> str:
        """A sentence about the result.

        >>> Verification("mine.model", "0.1.0", 600, 600, []).conclusion
        'Nothing was compared with another engine: install one, or pass a file that one reads.'
        """
        others = [result for result in self.compared if result.engine not in ("batchbpe", TEST_FILE)]
        engines = list(dict.fromkeys(result.engine for result in others))
        if self.differences:
            names = dict.fromkeys(f"{result.engine} ({result.file})" for result in self.differences)
            return f"{', '.join(names)} {'differs' if len(names) == 1 else 'differ'} from batchbpe."
        files = dict.fromkeys(result.file for result in self.results if result.engine != TEST_FILE)
        unchecked = [file for file in files if file not in [result.file for result in others]]
        left = f" No other engine has read {', '.join(unchecked)}." if unchecked and engines else ""
        if not self.ok:
            return f"The files do not fit together: see above.{left}"
        if not engines:
            return "Nothing was compared with another engine: install one, or pass a file that one reads."
        texts = max(result.texts for result in others)
        verb = "gives" if len(engines) == 1 else "give"
        return f"{', '.join(engines)} {verb} the ids of batchbpe for all {plural(texts, 'text')}.{left}"

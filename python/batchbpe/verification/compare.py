"""Compare an engine with the reference on texts, and shorten the first text that differs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..analysis.display import quoted_token
from ..errors import short
from ..formats import golden
from .adapters import Export, Loaded
from .cause import Case, cause_of
from .engines import Engine
from .reference import Reference
from .results import TEST_FILE, Difference, Result, Token

MAX_TRIES = 3000
"""Limit of shortening a text; not a time, so that every run prints the same."""


def failure(error: BaseException) -> str:
    """Return why an engine failed, on one line. Panics of Rust code are not instances of `Exception`.

    >>> failure(ValueError("two" + chr(10) + "lines"))
    'two lines'
    """
    if isinstance(error, KeyboardInterrupt | SystemExit | GeneratorExit):
        raise error
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 300 else f"{text[:300]}…"


@dataclass
class Run:
    """An engine with a file that it has loaded, and what has been compared."""

    engine: Engine
    export: Export
    loaded: Loaded
    reference: Reference
    asked: bool = False
    texts: int = 0
    tokens: int = 0
    different: int = 0
    seconds: float = 0.0
    first: str | None = None
    """The first text that differs."""
    shortest_decoded: list[int] | None = None
    """The fewest ids that are decoded differently."""
    decoded_differently: int = 0

    def compare(self, texts: list[str], ours: list[list[int]], *, decoding: bool = False) -> None:
        """Encode texts and compare them with the ids of the reference; `decoding` also compares their texts."""
        self.texts += len(texts)
        for text, one, other in zip(texts, ours, self._timed(texts), strict=True):
            self.tokens += len(other or ())
            if one != other:
                self.different += 1
                self.first = text if self.first is None else self.first
            elif decoding and self._decoded(one) != self.reference.tokenizer.decode(one):
                self.decoded_differently += 1
                self.shortest_decoded = min(self.shortest_decoded or one, one, key=len)

    def _decoded(self, ids: list[int]) -> str | None:
        """Decode ids. Return None if the engine fails."""
        try:
            return self.loaded.decode(ids)
        except BaseException as error:
            failure(error)
            return None

    def _timed(self, texts: list[str]) -> list[list[int] | None]:
        start = time.perf_counter()
        try:
            found: list[list[int] | None] = [*self.loaded.encode(texts)]
        except BaseException as error:
            failure(error)
            found = [self._one(text)[0] for text in texts]
        self.seconds += time.perf_counter() - start
        return found

    def _one(self, text: str) -> tuple[list[int] | None, str]:
        """Encode one text. Return None and the reason if the engine fails."""
        try:
            return self.loaded.encode([text])[0], ""
        except BaseException as error:
            return None, failure(error)

    def _ours(self, text: str) -> list[int]:
        return self.reference.encode([text], self.loaded.parses_special)[0]

    def result(self, texts: Sequence[str]) -> Result:
        """Return the result. `texts` are those that a likely cause is checked with."""
        status = "different" if self.different or self.decoded_differently else "equal"
        difference = None
        if self.first is not None:
            difference = self._difference(self.first, texts)
        elif self.shortest_decoded is not None:
            difference = self._decoding(self.shortest_decoded)
        return Result(
            self.engine.name,
            self.engine.version,
            str(self.export.path),
            status,  # type: ignore[arg-type]
            asked=self.asked,
            detail=self.loaded.detail,
            vocab_size=self.loaded.size,
            texts=self.texts,
            tokens=self.tokens,
            different=self.different or self.decoded_differently,
            seconds=round(self.seconds, 3),
            difference=difference,
        )

    def _difference(self, text: str, texts: Sequence[str]) -> Difference:
        text = shortened(text, lambda each: self._one(each)[0] != self._ours(each))
        ours, (theirs, reason) = self._ours(text), self._one(text)
        if theirs is None:
            return Difference(text, self._named(ours), [], "error", f"{self.engine.name} raises an error: {reason}")
        case = Case(self.reference, self.engine.name, self.loaded, text, ours, theirs, texts)
        try:
            kind, cause = cause_of(case)
        except BaseException as error:  # the engine fails for one of the other texts
            kind, cause = "error", f"{self.engine.name} raises an error: {failure(error)}"
        return Difference(text, self._named(ours), self._named(theirs, theirs=True), kind, cause)

    def _decoding(self, ids: list[int]) -> Difference:
        found = self._decoded(ids)
        what = "raises an error for them" if found is None else f"decodes them to {short(found)}"
        tokens = self._named(ids)
        cause = f"The ids are equal, but {self.engine.name} {what}."
        return Difference(self.reference.tokenizer.decode(ids), tokens, tokens, "decoding", cause)

    def _named(self, ids: list[int], *, theirs: bool = False) -> list[Token]:
        return _named(ids, self.loaded.token if theirs else self.reference.tokenizer.vocab.get)


def _named(ids: list[int], value_of: Callable[[int], bytes | None]) -> list[Token]:
    return [Token(token, quoted_token(value_of(token) or b"")) for token in ids]


def golden_result(path: Path, reference: Reference) -> Result:
    """Compare the ids in a test file. Its texts cannot be shortened, so the shortest is shown."""
    try:
        test = golden.load(path)
    except (OSError, ValueError) as error:
        return Result(TEST_FILE, None, str(path), "cannot load", asked=True, reason=failure(error))
    ours = dict(zip(test.cases, reference.encode([*test.cases], True), strict=True))
    wrong = [text for text, ids in test.cases.items() if ids != ours[text]]
    difference = None
    vocab, identity = reference.tokenizer.vocab, reference.tokenizer.model.identity
    changed = "" if test.model == identity else f"the tokenizer is not the one that was exported ({test.model})"
    if wrong:
        text = min(wrong, key=len)
        same = "the test file is of this model, but its ids differ"
        cause = f"One of them has been changed: {changed or same}."
        tokens, expected = (_named(ids, vocab.get) for ids in (ours[text], test.cases[text]))
        difference = Difference(text, tokens, expected, "test file", cause)
    return Result(
        TEST_FILE,
        None,
        str(path),
        "different" if wrong else "equal",
        asked=True,
        detail=changed,
        vocab_size=test.vocab_size,
        texts=len(test.cases),
        tokens=sum(map(len, test.cases.values())),
        different=len(wrong),
        difference=difference,
    )


def shortened(text: str, differs: Callable[[str], bool]) -> str:
    """Remove parts of a text, from halves to single characters, as long as it still differs.

    >>> shortened("to be or not to be", lambda text: "or" in text)
    'or'
    """
    tries = 0
    size = len(text) // 2
    while size:
        start = 0
        while start < len(text):
            shorter = text[:start] + text[start + size :]
            tries += 1
            if tries > MAX_TRIES:
                return text
            if shorter and differs(shorter):
                text = shorter
            else:
                start += size
        size //= 2
    return text

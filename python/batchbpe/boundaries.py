r"""Where the chunks of a pattern end, computed from the automaton that finds them: the basis for exporting phrases.

The automaton (`src/split/automaton.rs`) reads characters from the start of a chunk. The chunk ends where it was last in
a state that matches, before it died. The pattern does not look behind, so the state is all that matters, and characters
that no set of the pattern distinguishes are in the same class. There are few states and few classes. Hence:

- A text can be part of a chunk if and only if it leads from any state to a state that is alive: an alive state is
  reached by the characters before the text, and leads to a match by those after it. See `is_inside`.
- The chunks of a text stay the same whatever follows it, except those during which the automaton is still alive at the
  end of the text. They change if and only if what follows leads one of those states to a match. The strings that do are
  a regular language, and `condition` writes it as a regular expression.

Alternatives that end in a look-ahead or in `$` match depending on what follows. They are for whitespace. A phrase is
supported if they match only where the text itself decides.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TypeAlias

from ._core import automaton, split_text

DEAD = 0
"""The state in which no match is possible."""
_ALWAYS = 1
"""How a state matches if that does not depend on what follows."""
_MAX_STATES = 1 << 10
_MAX_CONDITION = 1 << 10
"""Larger automata and longer conditions are not supported."""
_ANY = r"[\s\S]"
_UNDECIDED = "cannot be found exactly: where its whitespace ends depends on what follows"
_TOO_COMPLEX = "cannot be found exactly: what must not follow it is too complex"


States: TypeAlias = "frozenset[int]"
"""The states that the automaton may be in, without `DEAD`."""


class NotSupportedError(ValueError):
    """The ends of chunks cannot be computed."""


class Boundaries:
    r"""The ends of the chunks of a pattern.

    >>> gpt2 = boundaries_of(r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")
    >>> gpt2.is_inside("'v"), gpt2.is_inside("e'v")
    (True, False)
    >>> gpt2.chunks(" of the'")
    [' of', ' the', "'"]
    >>> gpt2.condition(" of the"), gpt2.condition(" he's"), gpt2.condition("he'")
    ('\\p{L}', '', '[^\\s\\p{L}\\p{N}]|[sdmt]|ll|(?:v|r)e')
    """

    def __init__(self, pattern: str) -> None:
        """Compute the automaton. Raise `NotSupportedError` if the pattern is not regular."""
        try:
            obstacle, sets, members, ranges, stages = automaton(pattern)
        except ValueError as error:
            raise NotSupportedError(str(error)) from None
        if obstacle or sum(map(len, stages)) > _MAX_STATES:
            raise NotSupportedError(f"it has {obstacle or 'repetitions that need too large an automaton'}")
        self.pattern = pattern
        self._range_starts, self._range_classes = zip(*ranges, strict=True)
        self._sets = _Sets(sets, members)
        self._next, self._matches, self._starts = _joined(stages)
        self._class_of: dict[str, int] = {}
        self.anywhere: States = frozenset(range(len(self._next))) - {DEAD}
        """All states: those that any position in a chunk may have."""
        self._after: dict[tuple[States, int], States] = {}
        self._conditions: dict[States, str] = {}
        self._last: tuple[str, tuple[list[str], States | None]] = ("", ([], frozenset()))
        """The last text that was analyzed, and the result."""

    @property
    def n_classes(self) -> int:
        """The number of character classes."""
        return len(self._next[0])

    def classes(self, text: str) -> list[int]:
        """Return the class of each character."""
        found = []
        for character in text:
            number = self._class_of.get(character)
            if number is None:
                number = self._range_classes[bisect(self._range_starts, ord(character)) - 1]
                self._class_of[character] = number
            found.append(number)
        return found

    def after(self, states: States, classes: Iterable[int]) -> States:
        """Return the states that characters of these classes lead to. There are none if no chunk can contain them."""
        for number in classes:
            following = self._after.get((states, number))
            if following is None:
                following = frozenset(self._next[state][number] for state in states) - {DEAD}
                self._after[states, number] = following
            states = following
        return states

    def is_inside(self, text: str) -> bool:
        """Return whether a chunk can contain a text, or be equal to it."""
        return bool(self.after(self.anywhere, self.classes(text)))

    def is_chunk(self, text: str) -> bool:
        """Return whether a text is a chunk if suitable text follows. At the end of a document, it may not be one."""
        classes = self.classes(text)
        return any(self._matches[self._follow(start, classes)[0]] for start in self._starts)

    def _follow(self, state: int, classes: Sequence[int], start: int = 0) -> tuple[int, int, int]:
        """Return the state after reading classes from `start` on, the end of the last match, and how it matches."""
        end, how = start, 0
        for index in range(start, len(classes)):
            state = self._next[state][classes[index]]
            if state == DEAD:
                break
            if self._matches[state]:
                end, how = index + 1, self._matches[state]
        return state, end, how

    def chunks(self, text: str) -> list[str]:
        """Return the chunks of a text, or an empty list if they are not all of it."""
        return self._analyze(text)[0]

    def condition(self, text: str) -> str:
        """Return a regular expression for what changes the chunks of a text if it follows, or "" if nothing does.

        The text must consist of chunks. Raise `NotSupportedError` if no such expression exists.
        """
        alive = self._analyze(text)[1]
        if alive is None:
            raise NotSupportedError(_UNDECIDED)
        return self._expression(alive)

    def _analyze(self, text: str) -> tuple[list[str], States | None]:
        """Return the chunks, and the states at the end of the text that are still alive, or `None` if unsupported."""
        last, result = self._last
        if text == last:
            return result
        classes = self.classes(text)
        alive: set[int] | None = set()
        chunks: list[str] = []
        known: list[str] | None = None
        start = 0
        while start < len(text):
            state, end, how = self._follow(self._starts[0], classes, start)
            if how != _ALWAYS:
                known = split_text(self.pattern, text) if known is None else known
                if "".join(known) != text:
                    return [], None
                end = start + len(known[len(chunks)])
                if any(self._follow(first, classes, start)[0] != DEAD for first in self._starts):
                    alive = None
            elif state != DEAD and alive is not None:
                alive.add(state)
            chunks.append(text[start:end])
            start = end
        result = chunks, None if alive is None else frozenset(alive)
        self._last = text, result
        return result

    def _expression(self, states: States, path: tuple[States, ...] = ()) -> str:
        """Return a regular expression for strings that lead any of the states to a match.

        A match is found once one of its beginnings is, so classes that lead to a match at once may be added to any
        other transition. That makes the sets simpler to write.
        """
        if states in self._conditions:
            return self._conditions[states]
        if states in path:
            raise NotSupportedError(_TOO_COMPLEX)
        at_once = repeated = 0  # sets of classes
        others: dict[States, int] = {}
        for number in range(self.n_classes):
            following = self.after(states, [number])
            matches = {self._matches[state] for state in following}
            if not matches <= {0, _ALWAYS}:
                raise NotSupportedError(_UNDECIDED)
            if _ALWAYS in matches:
                at_once |= 1 << number
            elif following == states:
                repeated |= 1 << number
            elif following:
                others[following] = others.get(following, 0) | 1 << number
        found = self._sets.write(at_once)
        for target, classes in others.items():
            rest = self._expression(target, (*path, states))
            found.append(_group(self._sets.write(classes, at_once)) + (f"(?:{rest})" if "|" in rest else rest))
        expression = "|".join(found)
        if repeated:
            expression = f"(?:{'|'.join(self._sets.write(repeated, at_once))})*{_group(found)}"
        if len(expression) > _MAX_CONDITION:
            raise NotSupportedError(_TOO_COMPLEX)
        self._conditions[states] = expression
        return expression


_Stage = Sequence[tuple[list[int], bool, int]]


def _joined(stages: Sequence[_Stage]) -> tuple[list[list[int]], list[int], list[int]]:
    """Return the next state by state and class, how each state matches, and the first state of each stage.

    All stages become one automaton. States that match the same strings are the same state.
    """
    rows = [[state and first + state for state in row] for first, stage in _offsets(stages) for row, _, _ in stage]
    matches = [how for stage in stages for _, _, how in stage]
    starts = [first + number for first, stage in _offsets(stages) for number, state in enumerate(stage) if state[1]]
    blocks = [0 if not how and not any(row) else how + 1 for row, how in zip(rows, matches, strict=True)]
    while True:  # states are in the same block as long as no string is known that distinguishes them
        keys = [(block, *map(blocks.__getitem__, row)) for block, row in zip(blocks, rows, strict=True)]
        numbers = {key: number for number, key in enumerate(sorted({*keys}))}
        if len(numbers) == len({*blocks}):
            break
        blocks = [numbers[key] for key in keys]
    merged = {block: state for state, block in reversed([*enumerate(blocks)])}
    following = [[blocks[state] for state in rows[merged[block]]] for block in sorted(merged)]
    return following, [matches[merged[block]] for block in sorted(merged)], [blocks[start] for start in starts]


def _offsets(stages: Sequence[_Stage]) -> Iterator[tuple[int, _Stage]]:
    """Return each stage with the number of states before it."""
    first = 0
    for stage in stages:
        yield first, stage
        first += len(stage)


class _Sets:
    """Sets of classes, written with the character sets of a pattern. A set of classes is an integer, one bit each."""

    def __init__(self, sets: Sequence[str], members: Sequence[int]) -> None:
        self._all = (1 << len(members)) - 1
        regexes = [re.sub(r"(?<=\\[pP]\{)\w", lambda match: match[0].upper(), regex) for regex in sets]
        self._classes = {
            regex: sum((member >> bit & 1) << number for number, member in enumerate(members))
            for bit, regex in enumerate(regexes)
        }

    def write(self, required: int, optional: int = 0) -> list[str]:
        """Return alternatives that match one character of any required class, and otherwise only optional classes."""
        allowed = required | optional
        within = {regex: classes for regex, classes in self._classes.items() if not classes & ~allowed}
        bits = [1 << number for number in range(required.bit_length()) if required >> number & 1]
        within |= dict(self._intersection(bit, allowed) for bit in bits)
        alternatives: list[str] = []
        while required:
            best = max(within, key=lambda regex: ((within[regex] & required).bit_count(), -len(regex)))
            alternatives.append(best)
            required &= ~within[best]
        return alternatives

    def _intersection(self, wanted: int, allowed: int) -> tuple[str, int]:
        """Return an intersection of sets and complements that contains one class, and otherwise only allowed ones."""
        written, classes = "", self._all
        while classes & ~allowed:
            pieces = [
                (f"(?={regex})", other) if other & wanted else (f"(?!{regex})", ~other)
                for regex, other in self._classes.items()
            ]
            regex, other = min(pieces, key=lambda piece: (classes & piece[1] & ~allowed).bit_count())
            written += regex
            classes &= other
        return written + _ANY, classes


def _group(alternatives: Sequence[str]) -> str:
    return alternatives[0] if len(alternatives) == 1 else f"(?:{'|'.join(alternatives)})"


@lru_cache(maxsize=16)
def boundaries_of(pattern: str) -> Boundaries:
    """Return the ends of the chunks of a pattern. Raise `NotSupportedError` if it is not regular."""
    return Boundaries(pattern)

"""Shared by several test files: text, characters that differ between Unicode versions, and the command line."""

import os
import random
from collections.abc import Iterator
from functools import cache

import regex
from hypothesis import settings
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from batchbpe import Model, split
from batchbpe.cli import app

HANG = 600
"""Seconds after which a process is considered to hang. No test takes this long on a slow or busy machine."""
FUZZ_SEED = int(os.environ.get("BATCHBPE_FUZZ_SEED", "0"))
"""0 for the same cases on every run. `make fuzz` sets another seed and prints it."""
FUZZ_FACTOR = int(os.environ.get("BATCHBPE_FUZZ_FACTOR", "1"))
"""How many times as many examples Hypothesis draws."""


def examples(number: int) -> settings:
    """Let Hypothesis draw another number of examples than 100."""
    return settings(max_examples=number * FUZZ_FACTOR)


CLASSES = ("Lu", "Ll", "Lt", "Lm", "Lo", "N", "M", "P", "S", "Han")


@cache
def every_character() -> str:
    return "".join(map(chr, [*range(0xD800), *range(0xE000, 0x110000)]))


@cache
def changed_characters() -> frozenset[str]:
    """Characters to which the core and the `regex` package, whose Unicode is newer, assign different classes."""
    changed: set[str] = set()
    for name in CLASSES:
        ours, theirs = (
            set("".join(find(rf"\p{{{name}}}+", every_character())))
            for find in (lambda pattern, text: split(text, pattern), regex.findall)
        )
        changed |= ours ^ theirs
    return frozenset(changed)


def without_changed(text: str) -> str:
    return "".join(c for c in text if c not in changed_characters())


_ANY = st.text(max_size=40).map(without_changed)
_NASTY = st.text("aAbsStTſlLvVeErR'’ \t\n\r\x0b\x85\xa0\u2028\u3000.,!/=_019٣Ⅷéßǅʰ\u0301\u200d語😀\0", max_size=40)
_RUNS = st.lists(
    st.tuples(
        st.sampled_from(["a", " ", "\n", "\r\n", "\r", "'", "7", "=", "é", "語", "ab", "\u0301"]), st.integers(1, 60)
    ),
    max_size=6,
).map(lambda runs: "".join(text * times for text, times in runs))

texts = st.lists(st.one_of(_ANY, _NASTY, _RUNS), max_size=4).map("".join)
"""Any Unicode, characters that matter to patterns, and long runs, concatenated."""


def reference_of(model: Model) -> tuple[dict[tuple[int, int], int], dict[str, int]]:
    """Return the arguments for the reference's `encode`."""
    return dict(model.merges), {word.decode(): token for word, token in model.stop_words.items()}


SCRIPTS = (
    "абвгдежзиклмнопрстуфхцчшщ",
    "αβγδεζηθικλμνξοπρστυφχψω",
    "的一是不了在人有我他这中大来上",
    "กขคงจฉชซญดตถทธนบปผพฟมยรลวสหอ",
    "אבגדהוזחטיכלמנסעפצקרשת",
    "あいうえおかきくけこさしすせそ",
    "กำาิีึืุู",
    "éèêëàâäôöûüç",
)


def multilingual(size: int, seed: int = 1) -> str:
    """Made-up words in many scripts."""
    chance = random.Random(seed)
    words = []
    while size > 0:
        script = chance.choice(SCRIPTS)
        words.append("".join(chance.choices(script, k=1 + int(chance.expovariate(0.4)))) + chance.choice(" .\n,"))
        size -= len(words[-1])
    return " ".join(words)


END = "<|endoftext|>"
TEXT = "To be, or not to be: that is the question. " * 20 + multilingual(2000)


def run(command: str | list[str], text: str | bytes | None = None) -> Result:
    return CliRunner().invoke(app, command.split() if isinstance(command, str) else command, input=text)


def slashes(text: str) -> str:
    """Return a message with paths as on posix."""
    return text.replace(os.sep, "/")


def untouched() -> Iterator[str]:
    """Data that must not be read."""
    raise AssertionError("the data was read")
    yield ""

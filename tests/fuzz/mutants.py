"""Damaged copies of a file. Equal seeds produce equal copies."""

import os
import random
import struct
from collections.abc import Iterator

from helpers import FUZZ_SEED

MUTANTS = int(os.environ.get("BATCHBPE_FUZZ_MUTANTS", "0"))
"""Number of mutants of each file; 0 for the default of each test."""
EXTREMES = [0, 1, -1, 127, -128, 255, 2**15, 2**16 - 1, 2**31 - 1, -(2**31), 2**32 - 1, 2**62, 2**63 - 1, -(2**63)]


def mutants(data: bytes, number: int, seed: int = 0) -> Iterator[bytes]:
    """Yield `number` copies of `data`, each damaged in one to three places."""
    chance = random.Random(seed + FUZZ_SEED)
    for _ in range(MUTANTS or number):
        mutant = bytearray(data)
        for _ in range(chance.choice([1, 1, 2, 3])):
            chance.choice(WAYS)(mutant, chance)
        yield bytes(mutant)


def _flip(data: bytearray, chance: random.Random) -> None:
    """Flip a bit."""
    if data:
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def _overwrite(data: bytearray, chance: random.Random) -> None:
    """Overwrite 1 to 8 bytes, mostly aligned ones, with an extreme integer."""
    size = chance.choice([1, 2, 4, 4, 8, 8])
    value = (chance.choice(EXTREMES) + chance.choice([0, 0, 0, 1, -1])) % (1 << 8 * size)
    if len(data) >= size:
        at = chance.randrange(len(data) - size + 1)
        at -= at % size if chance.random() < 0.8 else 0
        data[at : at + size] = struct.pack("<Q", value)[:size]


def _truncate(data: bytearray, chance: random.Random) -> None:
    del data[chance.randrange(len(data) + 1) :]


def _remove(data: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(data) + 1)
    del data[at : at + chance.choice([1, 2, 4, 8, 64])]


def _duplicate(data: bytearray, chance: random.Random) -> None:
    at, to = chance.randrange(len(data) + 1), chance.randrange(len(data) + 1)
    data[to:to] = data[at : at + chance.choice([1, 4, 8, 64, 512])]


WAYS = [_flip, _flip, _overwrite, _overwrite, _overwrite, _truncate, _remove, _duplicate]

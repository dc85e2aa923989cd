"""Ids in a file, in a terminal, and back to text."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .encode_files import dtype_of
from .files import replacing
from .inspection import shown
from .shards import HEADERS, BinShard, Encoded, NpyShard
from .tokenizer import Tokenizer

Ids = npt.NDArray[Any]
_COLOURS = ("on #d7e8ff", "on #ffe2c7", "on #d9f2d0", "on #f4d9ec", "on #fff3b8")


def save_ids(
    encoded: Iterable[Encoded],
    path: Path,
    tokenizer: Tokenizer,
    end: int | None = None,
    moved: Callable[[int], object] = lambda _: None,
) -> int:
    """Write ids as one .npy or .bin file, and give their number, as `moved` gets it again and again."""
    kind = NpyShard if path.suffix == ".npy" else BinShard
    with replacing(path) as temporary, kind(temporary, dtype_of(tokenizer)) as file:
        for some in encoded:
            file.add(some, end)
            moved(file.tokens)
    return file.tokens


def load_ids(path: Path, tokenizer: Tokenizer) -> Ids:
    """Read the ids of a .npy file, or of a .bin file as `tokenizer` writes them.

    >>> load_ids(Path("a.txt"), Tokenizer.train("aaab", 257))
    Traceback (most recent call last):
    ...
    ValueError: a.txt: ids are read from .npy and .bin files, or as numbers from standard input
    """
    if path.suffix in (".npy", ".bin") and not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    if path.suffix == ".npy":
        try:
            ids = np.load(path, allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise ValueError(f"{path} is no .npy file, or a damaged one: {error}") from None
        if ids.ndim != 1 or ids.dtype.kind not in "iu":
            raise ValueError(f"{path} is an array of {ids.dtype} with {ids.ndim} dimensions, not a row of ids")
        return np.asarray(ids)
    if path.suffix != ".bin":
        raise ValueError(f"{path}: ids are read from .npy and .bin files, or as numbers from standard input")
    dtype = dtype_of(tokenizer)
    if path.stat().st_size % dtype.itemsize:
        raise ValueError(f"{path} is no file of {dtype.name}: it has {path.stat().st_size} bytes")
    ids = np.fromfile(path, dtype)
    begins = int.from_bytes(ids[:2].tobytes()[:4], "little")
    return ids[1024 // dtype.itemsize :] if begins == HEADERS[dtype.itemsize][0] else ids


def parse_ids(text: str) -> Ids:
    """Read numbers that are separated by anything but digits.

    >>> parse_ids("[258, 100]\\n97").tolist()
    [258, 100, 97]
    """
    words = text.replace(",", " ").replace("[", " ").replace("]", " ").split()
    wrong = next((word for word in words if not word.isdecimal()), None)
    if wrong is not None:
        raise ValueError(f"{wrong!r} is no id: give whole numbers")
    long = next((word for word in words if len(word) > 18), None)
    if long is not None:
        raise ValueError(f"there is no token {long}")
    return np.array(list(map(int, words)), np.int64)


def decoded(tokenizer: Tokenizer, ids: Ids) -> Iterator[bytes]:
    """Give the bytes of ids, part by part."""
    for start in range(0, len(ids), 1 << 20):
        part = ids[start : start + (1 << 20)]
        wide = part.astype(np.uint32) if not len(part) or (part.min() >= 0 and part.max() < 1 << 32) else part
        yield tokenizer.decode_bytes(wide)


def print_ids(tokenizer: Tokenizer, encoded: Iterable[Encoded], end: int | None, *, show: bool, as_json: bool) -> None:
    """Print a line of ids for each document, or its text in coloured tokens."""
    waiting: list[int] = []
    for some in encoded:
        start = 0
        for stop in some.ends.tolist():
            line = [*waiting, *some.ids[start:stop].tolist(), *([] if end is None else [end])]
            _print(tokenizer, line, show, as_json)
            waiting, start = [], stop
        waiting += some.ids[start:].tolist()


def _print(tokenizer: Tokenizer, ids: list[int], show: bool, as_json: bool) -> None:
    if not show:
        sys.stdout.write((str(ids) if as_json else " ".join(map(str, ids))) + "\n")
        return
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    if console.is_terminal:
        console.print(coloured(tokenizer, ids))
    else:
        sys.stdout.write("|".join(shown(tokenizer.vocab[token])[1:-1] for token in ids) + "\n")


def coloured(tokenizer: Tokenizer, ids: Iterable[int]) -> Any:
    """Give a text of rich, each token in the next colour; bytes that are no character of their own in hexadecimal.

    >>> coloured(Tokenizer.train("aaabdaaabac", 259), [258, 195, 10]).plain
    'aaab\\\\xc3\\n'
    """
    from rich.text import Text

    text = Text()
    for place, token in enumerate(ids):
        value = tokenizer.vocab[token]
        try:
            decoded = value.decode("utf-8")
            piece = "".join(c if c.isprintable() or c in "\n\t" else repr(c)[1:-1] for c in decoded)
        except UnicodeDecodeError:
            piece = repr(value)[2:-1]
        text.append(piece, style=f"black {_COLOURS[place % len(_COLOURS)]}")
    return text

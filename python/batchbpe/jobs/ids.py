"""Ids in a file, in a terminal, and back to text."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..analysis.view import Encoding
from ..errors import short
from ..storage.atomic import remove_stale, replacing
from ..storage.locks import locked
from ..tokenizer import Tokenizer
from .encode import dtype_of
from .shards import HEADERS, BinShard, Encoded, NpyShard

Ids = npt.NDArray[Any]


def save_ids(
    encoded: Iterable[Encoded],
    path: Path,
    tokenizer: Tokenizer,
    end: int | None = None,
    moved: Callable[[int], object] = lambda _: None,
) -> int:
    """Write ids as one .npy or .bin file, and give their number, as `moved` gets it again and again."""
    kind = NpyShard if path.suffix == ".npy" else BinShard
    with locked(path):
        remove_stale(path, age=0)
        with replacing(path) as temporary, kind(temporary, dtype_of(tokenizer)) as file:
            for some in encoded:
                file.add(some, end)
                moved(file.tokens)
    return file.tokens


def load_ids(path: Path, tokenizer: Tokenizer) -> Ids:
    """Give the ids in a .npy file, or in a .bin file as `tokenizer` writes them, without reading them yet.

    >>> load_ids(Path("a.txt"), Tokenizer.train("aaab", 257))
    Traceback (most recent call last):
    ...
    ValueError: a.txt: ids are read from .npy and .bin files, or as numbers from standard input
    """
    if path.suffix in (".npy", ".bin") and not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    if path.suffix == ".npy":
        try:
            ids = np.load(path, mmap_mode="r", allow_pickle=False)
        except PermissionError:
            raise
        except Exception as error:  # the header is evaluated as Python, and fails in as many ways
            reason = "" if "pickle" in str(error) else f": {error}"  # which is no advice to follow
            raise ValueError(f"{path} is no .npy file, or a damaged one{reason}") from None
        if not isinstance(ids, np.ndarray):  # an archive has been opened, whatever its name is
            ids.close()
            raise ValueError(f"{path} is an .npz archive; save one of its arrays as .npy")
        if ids.ndim != 1 or ids.dtype.kind not in "iu":
            raise ValueError(f"{path} is an array of {ids.dtype} with {ids.ndim} dimensions, not a row of ids")
        return np.asarray(ids)
    if path.suffix != ".bin":
        raise ValueError(f"{path}: ids are read from .npy and .bin files, or as numbers from standard input")
    dtype = dtype_of(tokenizer)
    if path.stat().st_size % dtype.itemsize:
        raise ValueError(f"{path} is no file of {dtype.name}: it has {path.stat().st_size} bytes")
    ids = np.memmap(path, dtype, "r") if path.stat().st_size else np.zeros(0, dtype)
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
        raise ValueError(f"{short(wrong)} is no id: give whole numbers")
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
    Encoding(tokenizer, ids).show()

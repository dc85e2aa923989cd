"""Save the ids of all documents as one array in a file, load such files, and decode ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import ArgumentError, DataError, UserError, opening, plural, short
from ..storage.atomic import remove_stale, replacing
from ..storage.locks import locked
from ..tokenizer import Tokenizer
from .encoded import Encoded, id_dtype
from .shards import HEADERS, BinShard, NpyShard

Ids = npt.NDArray[Any]


def save_ids(
    encoded: Iterable[Encoded],
    path: Path,
    tokenizer: Tokenizer,
    end: int | None = None,
    on_progress: Callable[[int], object] = lambda _: None,
) -> int:
    """Write ids as one .npy or .bin file and return their number, which `on_progress` receives while it grows."""
    kind = NpyShard if path.suffix == ".npy" else BinShard
    with locked(path):
        remove_stale(path, age=0)
        with replacing(path) as temporary, kind(temporary, id_dtype(tokenizer)) as file:
            for batch in encoded:
                file.add(batch, end)
                on_progress(file.tokens)
    return file.tokens


def load_ids(path: Path, tokenizer: Tokenizer) -> Ids:
    """Map the ids in a .npy file, or in a .bin file for `tokenizer`, into memory.

    >>> load_ids(Path("a.txt"), Tokenizer.train("aaab", 257))
    Traceback (most recent call last):
    ...
    batchbpe.errors.ArgumentError: path must end in .npy or .bin, got 'a.txt'
    """
    if path.suffix not in (".npy", ".bin"):
        raise ArgumentError("path", str(path), "must end in .npy or .bin")
    if not path.is_file():
        raise FileNotFoundError(f"file not found: {path}")
    with opening(path):
        return _load_npy(path) if path.suffix == ".npy" else _load_bin(path, id_dtype(tokenizer))


def _load_npy(path: Path) -> Ids:
    try:
        ids = np.load(path, mmap_mode="r", allow_pickle=False)
    except PermissionError:
        raise
    except Exception as error:  # numpy evaluates the header as Python, which fails in many ways
        raise DataError("not a .npy file, or damaged", where=str(path)) from error
    if not isinstance(ids, np.ndarray):
        ids.close()
        raise DataError("an .npz archive instead of a .npy file", where=str(path), remedy="save one of its arrays")
    if ids.ndim != 1 or ids.dtype.kind not in "iu":
        shape = f"{ids.ndim}-dimensional array of {ids.dtype}"
        raise DataError(f"expected a one-dimensional array of integers, got a {shape}", where=str(path))
    return np.asarray(ids)


def _load_bin(path: Path, dtype: np.dtype[Any]) -> Ids:
    size = path.stat().st_size
    if size % dtype.itemsize:
        problem = f"expected {dtype.name} values of {dtype.itemsize} bytes, got a file of {plural(size, 'byte')}"
        raise DataError(problem, where=str(path))
    ids = np.memmap(path, dtype, "r") if size else np.zeros(0, dtype)
    magic = int.from_bytes(ids[:2].tobytes()[:4], "little")
    return ids[1024 // dtype.itemsize :] if magic == HEADERS[dtype.itemsize][0] else ids


def parse_ids(text: str) -> Ids:
    """Parse integers that are separated by whitespace, commas or brackets.

    >>> parse_ids("[258, 100]\\n97").tolist()
    [258, 100, 97]
    """
    words = text.replace(",", " ").replace("[", " ").replace("]", " ").split()
    invalid = next((word for word in words if not word.isdecimal() or len(word) > 18), None)
    if invalid is not None:
        raise DataError(f"ids must be non-negative integers, got {short(invalid)}")
    return np.array(list(map(int, words)), np.int64)


def decoded(tokenizer: Tokenizer, ids: Ids, where: str = "", *, skip_special_tokens: bool = False) -> Iterator[bytes]:
    """Decode ids, a million at a time. Errors name `where` they come from.

    >>> b"".join(decoded(Tokenizer.train("aaab", 257), np.array([256, 98])))
    b'aab'
    """
    step = 1 << 20
    for start in range(0, len(ids), step):
        part = ids[start : start + step]
        fits = not len(part) or (part.min() >= 0 and part.max() < 1 << 32)
        try:
            part = part.astype(np.uint32) if fits else part
            yield tokenizer.decode_bytes(part, skip_special_tokens=skip_special_tokens)
        except UserError as error:
            error.where = where
            raise


def documents_of(encoded: Iterable[Encoded], end: int | None = None) -> Iterator[list[int]]:
    """Yield the ids of each document, followed by `end`.

    >>> list(documents_of([Encoded(np.array([7, 8, 9], np.uint32), np.array([1, 3]))], end=0))
    [[7, 0], [8, 9, 0]]
    """
    started: list[int] = []
    for batch in encoded:
        start = 0
        for stop in batch.ends.tolist():
            yield [*started, *batch.ids[start:stop].tolist(), *([] if end is None else [end])]
            started, start = [], stop
        started += batch.ids[start:].tolist()

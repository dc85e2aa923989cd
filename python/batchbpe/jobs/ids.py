"""Save the ids of all documents in one token file, read token files and folders of them, and decode ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np

from ..errors import ArgumentError, DataError, UserError, opening, short, warn
from ..storage.atomic import remove_stale, replacing
from ..storage.checked_json import load_sealed
from ..storage.locks import locked
from ..tokenizer import Tokenizer
from .encode import RECORD
from .encoded import Encoded
from .resume import RESUME, VERSION
from .token_files import FORMATS, SUFFIXES, AnyIds, companion, format_of


def save_ids(
    encoded: Iterable[Encoded],
    path: Path,
    tokenizer: Tokenizer,
    on_progress: Callable[[int], object] = lambda _: None,
) -> int:
    """Write ids as one .npy or .bin file and return their number, which `on_progress` receives while it grows."""
    kind = FORMATS["npy" if path.suffix == ".npy" else "bin"]
    with locked(path):
        remove_stale(path, age=0)
        with replacing(path) as temporary, kind([temporary], kind.dtype_for(tokenizer.n_vocab)) as file:
            for batch in encoded:
                file.add(batch)
                on_progress(file.tokens)
    return file.tokens


def read_ids(path: Path, tokenizer: Tokenizer) -> Iterator[tuple[Path, AnyIds]]:
    """Yield the ids in a file, or in a folder in the order of names, in arrays of limited size, each with its file.

    Files whose format does not tell the type of ids must have the one for `tokenizer`.

    >>> list(read_ids(Path("a.txt"), Tokenizer.train("aaab", 257)))
    Traceback (most recent call last):
    ...
    batchbpe.errors.ArgumentError: path must be a folder or end in .bin, .ds, .npy, .parquet, got 'a.txt'
    """
    if path.is_dir():
        files = _files_in(path, tokenizer)
    elif not path.name.endswith(SUFFIXES):
        raise ArgumentError("path", str(path), f"must be a folder or end in {', '.join(SUFFIXES)}")
    elif not path.is_file():
        raise FileNotFoundError(f"file not found: {path}")
    else:
        files = [path]
    for file in files:
        with opening(file):
            name = format_of(file)
            assert name is not None
            for ids in FORMATS[name].read(file, tokenizer.n_vocab):
                yield file, ids


def belongs_to(path: Path, file: Path) -> bool:
    """Return whether a file is a token file, the index of one, or in a folder of them.

    >>> belongs_to(Path("tokens/a.bin"), Path("tokens/a.bin")), belongs_to(Path("a.bin"), Path("a.txt"))
    (True, False)
    """
    if path.is_dir():
        return file.resolve().is_relative_to(path.resolve())
    same = {companion(path, format.suffixes[0], suffix) for format in FORMATS.values() for suffix in format.suffixes}
    return file.resolve() in {each.resolve() for each in (path, *same)}


def _files_in(folder: Path, tokenizer: Tokenizer) -> list[Path]:
    """Return the token files in a folder, which must be complete and of one format."""
    _check_record(folder, tokenizer)
    resolved = folder.resolve()
    if resolved.name in ("train", "validation"):
        _check_record(resolved.parent, tokenizer)
    inside = sorted(path.relative_to(folder) for path in folder.rglob("*"))
    visible = [folder / path for path in inside if not any(name.startswith((".", "_")) for name in path.parts)]
    files = [path for path in visible if path.name.endswith(SUFFIXES) and path.is_file()]
    is_of_spark = any(path.match("part-*.parquet") for path in files)
    if any("_temporary" in path.parts for path in inside) or (is_of_spark and not (folder / "_SUCCESS").exists()):
        problem = "the folder is not complete: Spark has not finished, or was stopped"
        raise DataError(problem, where=str(folder), remedy="wait for it, or encode again")
    if not files:
        problem = f"the folder contains no token files ({', '.join(SUFFIXES)})"
        raise DataError(problem, where=str(folder), remedy="pass a folder that encode has written")
    formats = {format_of(path): path for path in files}
    if len(formats) > 1:
        (one, first), (other, second), *_ = formats.items()
        problem = (
            f"the folder mixes formats: {first.relative_to(folder)} is {one}, {second.relative_to(folder)} is {other}"
        )
        raise DataError(problem, where=str(folder), remedy="pass the files of one format")
    (name,) = formats
    assert name is not None
    suffix, *others = FORMATS[name].suffixes
    for path, index in ((path, index) for path in visible for index in others if path.name.endswith(index)):
        data = companion(path, index, suffix)
        if not data.exists():
            raise DataError(f"{data.name} is missing, but {path.name} exists", where=str(folder), remedy="encode again")
    return files


def _check_record(folder: Path, tokenizer: Tokenizer) -> None:
    """Raise if a job has not finished the folder, or if a file has another size than when it was written.

    Warn if it was another tokenizer, which may have the same ids: checksums depend on the version, and on the format.
    """
    record = folder / RECORD
    if not record.exists():
        return
    fields = load_sealed(record, VERSION, f"remove {record} to read the folder without checks")
    if not fields["finished"]:
        raise DataError("the folder is not complete: the job was stopped", where=str(folder), remedy=RESUME)
    if fields["options"]["model"] != tokenizer.model.identity:
        warn(f"{folder} was encoded with another model, or by another version of batchbpe")
    for name, size in fields["sizes"].items():
        path = folder / name
        if not path.is_file():
            raise DataError("the file is missing", where=str(path), remedy=f"encode into {folder} again")
        if path.stat().st_size != size:
            problem = f"the file is damaged: it has {path.stat().st_size} bytes, expected {size}"
            raise DataError(problem, where=str(path), remedy=f"encode into {folder} again")


def parse_ids(text: str) -> AnyIds:
    """Parse integers that are separated by whitespace, commas or brackets.

    >>> parse_ids("[258, 100]\\n97").tolist()
    [258, 100, 97]
    """
    words = text.replace(",", " ").replace("[", " ").replace("]", " ").split()
    invalid = next((word for word in words if not word.isdecimal() or len(word) > 18), None)
    if invalid is not None:
        raise DataError(f"ids must be non-negative integers, got {short(invalid)}")
    return np.array(list(map(int, words)), np.int64)


def decoded(
    tokenizer: Tokenizer, arrays: Iterable[tuple[Path | str, AnyIds]], *, skip_special_tokens: bool = False
) -> Iterator[bytes]:
    """Decode arrays of ids, some ids at a time, because tokens may be long. Errors name where the ids come from.

    >>> b"".join(decoded(Tokenizer.train("aaab", 257), [("", np.array([256, 98]))]))
    b'aab'
    """
    step = 1 << 16
    for where, ids in arrays:
        for start in range(0, len(ids), step):
            part = ids[start : start + step]
            fits = part.min() >= 0 and part.max() < 1 << 32
            try:
                part = part.astype(np.uint32) if fits else part
                yield tokenizer.decode_bytes(part, skip_special_tokens=skip_special_tokens)
            except UserError as error:
                error.where = str(where)
                raise


def documents_of(encoded: Iterable[Encoded]) -> Iterator[list[int]]:
    """Yield the ids of each document.

    >>> list(documents_of([Encoded(np.array([7, 8, 9], np.uint32), np.array([1, 3]))]))
    [[7], [8, 9]]
    """
    started: list[int] = []
    for batch in encoded:
        start = 0
        for stop in batch.ends.tolist():
            yield [*started, *batch.ids[start:stop].tolist()]
            started, start = [], stop
        started += batch.ids[start:].tolist()

"""`tokenizer.test.json`: texts with their ids, written next to each export, to check any engine without this package.

It is JSON in ASCII, so that no editor normalizes the texts, with one case per line: see
https://batchbpe.github.io/batchbpe/verify.html#test-files. The ids are those of the model: with `allow_inexact`, the
exported file may give others.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import DataError, OutputExistsError, parse_json, short
from ..model import Model
from ..model.checks import check_special_tokens
from ..patterns import Split
from ..storage.atomic import replacing, writing
from ..storage.locks import check_parent
from .file_errors import check_version, locate_errors
from .golden_texts import texts_for

FORMAT = "batchbpe-test"
VERSION = 1
SUFFIX = ".test.json"
IN_FOLDER = f"tokenizer{SUFFIX}"
"""Name of the file in a folder."""
ENCODING = "Special tokens in a text are encoded as tokens. Nothing is added: no bos, no eos."


@dataclass(frozen=True)
class Golden:
    """The content of a test file."""

    model: str
    """`Model.identity` of the model that encoded the texts."""
    vocab_size: int
    n_vocab: int
    cases: dict[str, list[int]]
    """The ids of each text."""
    split: Split | None
    """How text is split, unless there are several steps. Rank files do not store it."""
    special_tokens: dict[str, int]
    """Rank files do not store these either."""


def path_beside(path: Path) -> Path:
    """Return the path of the test file of an exported file or folder.

    >>> path_beside(Path("mine.tiktoken")).name
    'mine.tiktoken.test.json'
    >>> path_beside(Path("tokenizer.json")).name
    'tokenizer.test.json'
    """
    return path / IN_FOLDER if path.is_dir() else path.with_name(f"{path.name.removesuffix('.json')}{SUFFIX}")


def render(model: Model) -> str:
    """Return the content of the test file of a model.

    >>> print(render(Model(split=r"\\w+", merges={(97, 97): 256})).splitlines()[12])
    {"text":"a","ids":[97]},
    """
    texts = texts_for(model)
    head = {
        "format": FORMAT,
        "version": VERSION,
        "encoding": ENCODING,
        "model": model.identity,
        "vocab_size": model.vocab_size,
        "n_vocab": model.n_vocab,
        "normalization": model.split.normalization,
        "pattern": None if model.split.steps else model.pattern,
        "special_tokens": dict(model.special_tokens),
    }
    lines = "".join(f"{json.dumps(name)}: {json.dumps(value)},\n" for name, value in head.items())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some patterns do not match all of the texts
        ids = model.encoder().encode_batch(texts, "all", None)
    encoded = zip(texts, ids, strict=True)
    cases = ",\n".join(json.dumps({"text": text, "ids": each}, separators=(",", ":")) for text, each in encoded)
    return f'{{\n{lines}"cases": [\n{cases}\n]\n}}\n'


@contextmanager
def beside(model: Model, path: Path) -> Iterator[None]:
    """Write the test file of an exported file, if the caller writes that file.

    If one cannot be written, neither is replaced.
    Nothing is written next to pipes and other special files.
    """
    check_parent(path)  # so that an error names the file that was asked for
    if path.exists() and not path.is_file():
        yield
        return
    target = path_beside(path)
    check_replaceable(target)
    content = render(model)
    with replacing(target) as temporary:
        with writing(target), temporary.open("w", encoding="ascii", newline="\n") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())  # a full disk is noticed before the export is replaced
        yield


def check_replaceable(path: Path) -> None:
    """Raise if a file exists that is not a test file: the user has not asked to replace it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     check_replaceable(Path(folder) / "tokenizer.test.json")
    """
    if not path.exists():
        return
    with locate_errors(path), path.open("rb") as file:
        is_ours = f'"{FORMAT}"'.encode() in file.read(200)
    if not is_ours:
        reason = f"{path} exists and is not a test file of batchbpe, which is written next to the export"
        raise OutputExistsError(reason, remedy="rename it, or choose another name for the export")


def load(path: Path) -> Golden:
    """Read a test file. Errors name the file and the case.

    >>> import tempfile
    >>> model = Model(split=r"\\w+", merges={(97, 97): 256})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with beside(model, Path(folder) / "mine.gguf"):
    ...         pass
    ...     load(Path(folder) / "mine.gguf.test.json").cases["aa"]
    [256]
    """
    with locate_errors(path):
        fields = parse_json(path.read_bytes(), "not a test file of batchbpe, or damaged: ")
        if not isinstance(fields, dict) or fields.get("format") != FORMAT:
            raise DataError(f'not a test file of batchbpe: expected an object with "format": "{FORMAT}"')
        check_version(fields.get("version"), VERSION)
        cases: dict[str, list[int]] = {}
        rows = _field(fields, "cases", list)
        for number, row in enumerate(rows):
            is_case = isinstance(row, dict) and isinstance(row.get("text"), str) and isinstance(row.get("ids"), list)
            if not is_case or not all(type(token) is int and token >= 0 for token in row["ids"]):
                raise DataError(f"expected a text and its ids, got {short(row)}", where=f"case {number}")
            if re.search("[\ud800-\udfff]", row["text"]):
                raise DataError(f"the text has a surrogate: {short(row['text'])}", where=f"case {number}")
            if cases.setdefault(row["text"], row["ids"]) != row["ids"]:
                raise DataError(f"the text {short(row['text'])} has other ids before", where=f"case {number}")
        if not cases:
            raise DataError("there are no cases", remedy="export the model again")
        model = _field(fields, "model", str)
        sizes = _field(fields, "vocab_size", int), _field(fields, "n_vocab", int)
        pattern = fields.get("pattern")
        split = None if pattern is None else Split.of(_field(fields, "pattern", str), fields.get("normalization"))
        special = _field(fields, "special_tokens", dict)
        check_special_tokens(special)
        return Golden(model, *sizes, cases, split, special)


def _field(fields: dict[str, Any], name: str, kind: type) -> Any:
    if type(fields.get(name)) is not kind:
        names = {list: "an array", int: "an integer", str: "a string", dict: "an object"}
        raise DataError(f"must be {names[kind]}, got {short(fields.get(name))}", where=f'field "{name}"')
    return fields[name]

"""Which engines can load an exact export of a model, found by trying the export in memory. No engine is run.

`batchbpe verify` runs the engines and compares their ids.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ...errors import DataError, UserError
from ...formats import gguf, huggingface, minbpe, placeholders, spelling, tekken, tiktoken
from ...model import Model
from ...patterns import PATTERNS


@dataclass(frozen=True)
class Export:
    """Whether an engine can load an exact export of a model.

    >>> exports_of(Model(split=r"[a-z]+", merges={}, special_tokens={"a b": 256}))["minbpe"]
    Export(exact=False, reason='minbpe v1 does not support whitespace in special tokens')
    """

    exact: bool
    reason: str = ""
    """Why not, or under which condition."""


def exports_of(model: Model) -> dict[str, Export]:
    """Return whether each engine can load an exact export of a model.

    >>> {engine: each.exact for engine, each in exports_of(Model(split=r"[a-z]+", merges={(97, 97): 256})).items()}
    {'tiktoken': True, 'tokenizers 0.23': True, 'tokenizers 1.0': False, 'transformers': True, 'llama.cpp': False, 'mistral-common': True, 'minbpe': True}
    """  # noqa: E501  the last line is the result
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about chat templates and other parts that do not change ids
        found = {engine: _tried(attempt, model) for engine, attempt in _ATTEMPTS.items()}
    json = found["tokenizers 0.23"]
    known = _problem_of_version_1(model)
    found["tokenizers 1.0"] = Export(False, known) if json.exact and known else json
    found["transformers"] = json if json.exact else _tried(_own_class, model)
    return {engine: found[engine] for engine in ENGINES}


def _tried(attempt: Callable[[Model], str], model: Model) -> Export:
    try:
        return Export(True, attempt(model))
    except UserError as error:
        return Export(False, without_remedy(error))


def without_remedy(error: Exception, source: str | None = None) -> str:
    """Return what is wrong, without how to fix it, and without the path of the source at the start.

    >>> without_remedy(DataError("unknown pattern", where="a.json", remedy="pass one"))
    'a.json: unknown pattern'
    >>> without_remedy(DataError("unknown pattern", where="a.json, line 3"), "a.json")
    'line 3: unknown pattern'
    """
    if not isinstance(error, UserError):
        return str(error)
    plain = str(DataError(error.reason, where=error.where))
    starts = (f"{source}{mark}" for mark in (": ", ", "))
    return next((plain.removeprefix(start) for start in starts if plain.startswith(start)), plain)


def _tiktoken(model: Model) -> str:
    tiktoken.ranks_of(model)
    return ""


def _tokenizer_json(model: Model) -> str:
    huggingface.to_json(model)
    return ""


def _own_class(model: Model) -> str:
    placeholders.unused_tokens(model)
    return "with trust_remote_code=True, which runs batchbpe"


def _gguf(model: Model) -> str:
    gguf.to_values(model)
    return ""


def _tekken(model: Model) -> str:
    tekken.to_json(model)
    return ""


def _minbpe(model: Model) -> str:
    with tempfile.TemporaryDirectory() as folder:
        minbpe.save(model, Path(folder, "a.model"))
    return ""


_ATTEMPTS: Mapping[str, Callable[[Model], str]] = {
    "tiktoken": _tiktoken,
    "tokenizers 0.23": _tokenizer_json,
    "llama.cpp": _gguf,
    "mistral-common": _tekken,
    "minbpe": _minbpe,
}
ENGINES = ("tiktoken", "tokenizers 0.23", "tokenizers 1.0", "transformers", "llama.cpp", "mistral-common", "minbpe")


def _problem_of_version_1(model: Model) -> str:
    """Return why version 1.0 of tokenizers cannot load the tokenizer.json of a model, or ""."""
    split, known = model.split, spelling.KNOWN_TO_VERSION_1
    if split.steps or split.prefix_space or model.phrases or split.pattern not in [PATTERNS[name] for name in known]:
        pattern = "a pattern with phrases" if model.phrases else str(split)
        return f"version 1.0.0rc3 knows the patterns {', '.join(known)}, not {pattern}"
    if any(value in model.token_ids for value in model.decode_only.values()):
        return "version 1.0.0rc3 confuses decode-only tokens with tokens of the same bytes"
    return ""


def reasons(exports: Mapping[str, Export]) -> Iterator[tuple[str, str]]:
    """Yield the engines with a reason.

    >>> list(reasons({"tiktoken": Export(True), "minbpe": Export(False, "it has phrases")}))
    [('minbpe', 'it has phrases')]
    """
    return ((engine, each.reason) for engine, each in exports.items() if each.reason)

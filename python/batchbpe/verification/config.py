"""A model's `config.json`: does it fit the tokenizer?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..analysis.display import quoted_token
from ..errors import DataError, parse_json, plural, short
from ..formats.file_errors import locate_errors
from ..formats.roles import roles_of
from ..model import Model

NESTED = ("text_config", "llm_config", "language_config", "thinker_config")
"""Where the settings of the language model are in the configuration of a multimodal model."""
ROLES = ("bos", "eos", "pad")


def check_config(path: Path, model: Model, *, is_required: bool) -> tuple[list[str], list[str]]:
    """Return what is wrong with a configuration, and what is worth knowing.

    `is_required` raises an error if it has no vocabulary size.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "config.json").write_text('{"vocab_size": 300}')
    ...     problems, notes = check_config(Path(folder) / "config.json", Model(r"\\w+", {}), is_required=True)
    >>> problems, notes[0].partition("config.json: ")[2]
    ([], 'vocab_size is 300, so 44 rows of the embeddings are not used by the tokenizer')
    """
    with locate_errors(path):
        fields = parse_json(path.read_bytes(), "not a valid config.json: ")
        sections = [*_sections(fields)] if isinstance(fields, Mapping) else []
        found = ((name, section["vocab_size"]) for name, section in sections if "vocab_size" in section)
        name, size = next(found, ("vocab_size", None))
        if size is None and is_required:
            raise DataError("there is no vocab_size", remedy="pass the config.json of the model")
        if size is not None and type(size) is not int:
            raise DataError(f"must be an integer, got {short(size)}", where=f'field "{name}"')
    problems, notes = _check_roles(path, sections, model)
    if size is not None and size < model.n_vocab:
        problems.append(
            f"{path}: {name} is {size:,}, but the largest id is {model.n_vocab - 1:,}; resize the embeddings of the "
            f"model to at least {model.n_vocab:,}, or use the tokenizer that the model was trained with"
        )
    elif size is not None and size > model.n_vocab:
        unused = plural(size - model.n_vocab, "row")
        notes.append(f"{path}: {name} is {size:,}, so {unused} of the embeddings are not used by the tokenizer")
    return problems, notes


def _sections(fields: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the configuration and those inside it, each with the name of its vocabulary size."""
    yield f"{prefix}vocab_size", fields
    for name in NESTED:
        if isinstance(fields.get(name), Mapping):
            yield from _sections(fields[name], f"{prefix}{name}.")


def _check_roles(
    path: Path, sections: list[tuple[str, Mapping[str, Any]]], model: Model
) -> tuple[list[str], list[str]]:
    """Return problems with the ids of roles, which must be tokens, and notes about those that differ.

    An unused id for padding is common and harmless.
    """
    problems: list[str] = []
    notes: list[str] = []
    names = roles_of(model)
    for role in ROLES:
        key = f"{role}_token_id"
        given = next((section[key] for _, section in sections if section.get(key) is not None), None)
        ids: list[Any] = given if isinstance(given, list) else [given]
        if given is None:
            continue
        if wrong := [each for each in ids if type(each) is not int or each not in model.vocab]:
            kind = notes if role == "pad" else problems
            kind.append(f"{path}: {key} is {short(wrong[0])}, which is not the id of a token; correct it")
        elif role in names and (token := model.found_tokens.get(names[role])) not in ids:
            others = ", ".join(quoted_token(model.vocab[each]) for each in ids)
            expected = f"{token} ({short(names[role])})"
            notes.append(
                f"{path}: {key} is {short(given)} ({others}), but the {role} token of the tokenizer is {expected}"
            )
    return problems, notes

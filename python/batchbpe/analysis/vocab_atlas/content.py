"""The results of an atlas as one JSON-ready value. The page shows nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ... import __version__
from ..evaluation_table import EvaluationTable
from ..group_evaluation import GroupComparison
from .exports import without_remedy
from .facts import Facts, Tokens

FORMAT, VERSION = "batchbpe-atlas", 1
MAX_IDS = 20_000
"""Above this number, the ids are not listed."""


def content_of(
    facts: Mapping[str, Facts],
    shared: npt.NDArray[np.int64],
    failures: Mapping[str, Exception],
    evaluation: EvaluationTable | None = None,
    sources: Mapping[str, Path] | None = None,
    text_files: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the content of the JSON file: see https://batchbpe.github.io/batchbpe/atlas.html for its fields.

    >>> content_of({}, np.zeros((0, 0), np.int64), {"a.json": ValueError("damaged")})["failures"]
    [{'name': 'a.json', 'source': None, 'error': 'damaged'}]
    """
    groups = evaluation.groups if evaluation else None
    paths = {name: str(path) for name, path in (sources or {}).items()}
    return {
        "format": FORMAT,
        "version": VERSION,
        "batchbpe": __version__,
        "text": None if evaluation is None else {"files": list(text_files), **_text(evaluation)},
        "vocabularies": [
            {
                "name": name,
                "source": paths.get(name),
                "same_as": [other for other in facts if other != name and facts[other].identity == each.identity],
                **_facts(each),
                "metrics": None if evaluation is None else evaluation[name].metrics(evaluation[0]),
                "groups": None if groups is None else groups.metrics(name),
                "gini": None if groups is None else groups.tokenizers[name].gini,
            }
            for name, each in facts.items()
        ],
        "shared": shared.tolist(),
        "failures": [
            {"name": name, "source": paths.get(name), "error": without_remedy(error, paths.get(name))}
            for name, error in failures.items()
        ],
    }


def _text(evaluation: EvaluationTable) -> dict[str, Any]:
    first, groups = evaluation[0], evaluation.groups
    return {
        "bytes": first.bytes,
        "characters": first.characters,
        "words": first.words,
        "reference": first.name,
        "groups": None if groups is None else _groups(groups),
    }


def _groups(groups: GroupComparison) -> dict[str, Any]:
    first = next(iter(groups.tokenizers.values()))
    return {
        "unit": groups.unit,
        "cost": groups.cost_name,
        "reference": groups.reference_group,
        "empty": list(groups.empty_groups),
        "sizes": {
            name: {"bytes": each.bytes, "characters": each.characters} for name, each in first.evaluations.items()
        },
    }


def _facts(facts: Facts) -> dict[str, Any]:
    values = {each.name: getattr(facts, each.name) for each in fields(facts)}
    values["causes"] = {cause: _tokens(found) for cause, found in facts.causes.items()}
    values["missing_utf8_bytes"] = facts.missing_utf8_bytes
    values["longest"] = list(map(asdict, facts.longest))
    values["exports"] = {engine: asdict(each) for engine, each in facts.exports.items()}
    return {name: _tokens(value) if isinstance(value, Tokens) else value for name, value in values.items()}


def _tokens(found: Tokens) -> dict[str, Any]:
    number = len(found.ids)
    return {
        "number": number,
        "examples": list(map(asdict, found.examples)),
        "ids": found.ids if number <= MAX_IDS else None,
    }

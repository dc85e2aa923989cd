"""The results of an atlas as one JSON-ready value. The page shows nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ... import __version__
from ...model import Model
from ...tokenizer import Tokenizer
from ..evaluation_table import EvaluationTable
from ..group_evaluation import GroupComparison
from .exports import without_remedy
from .facts import Facts, described

FORMAT, VERSION = "batchbpe-atlas", 1
MAX_EXAMPLES = 12
"""Number of tokens of a kind that are described; the ids of all are listed."""
MAX_IDS = 20_000
"""Above this number, the ids are not listed."""


def content_of(
    tokenizers: Mapping[str, Tokenizer],
    facts: Mapping[str, Facts],
    shared: npt.NDArray[np.int64],
    failures: Mapping[str, Exception],
    evaluation: EvaluationTable | None,
    sources: Mapping[str, Path],
) -> dict[str, Any]:
    """Return the content of the JSON file: see docs/atlas.md for its fields.

    >>> content_of({}, {}, np.zeros((0, 0), np.int64), {"a.json": ValueError("damaged")}, None, {})["failures"]
    [{'name': 'a.json', 'source': None, 'error': 'damaged'}]
    """
    groups = evaluation.groups if evaluation else None

    def source(name: str) -> str | None:
        return str(sources[name]) if name in sources else None

    return {
        "format": FORMAT,
        "version": VERSION,
        "batchbpe": __version__,
        "text": None if evaluation is None else _text(evaluation),
        "vocabularies": [
            {
                "name": name,
                "source": source(name),
                **_facts(tokenizers[name].model, each),
                **_metrics(tokenizers[name].model, name, evaluation, each),
                "groups": None if groups is None else groups.metrics(name),
                "gini": None if groups is None else groups.tokenizers[name].gini,
            }
            for name, each in facts.items()
        ],
        "shared": shared.tolist(),
        "failures": [
            {"name": name, "source": source(name), "error": without_remedy(error)} for name, error in failures.items()
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


def _facts(model: Model, facts: Facts) -> dict[str, Any]:
    unreachable = [token for tokens in facts.unreachable.values() for token in tokens]
    return {
        "format": facts.format,
        "split": facts.split,
        "pattern": model.pattern,
        "same_as": list(facts.same_as),
        "numbers": dict(facts.numbers),
        "mean_bytes": facts.mean_bytes,
        "contents": dict(facts.contents),
        "unreachable": {
            **_tokens(model, sorted(unreachable)),
            "causes": {cause: _tokens(model, tokens) for cause, tokens in facts.unreachable.items()},
        },
        "duplicates": _tokens(model, facts.duplicates),
        "partial_utf8": _tokens(model, facts.partial_utf8),
        "missing_bytes": facts.missing_bytes,
        "missing_utf8_bytes": facts.missing_utf8_bytes,
        "longest": list(map(asdict, facts.longest)),
        "exports": {engine: asdict(each) for engine, each in facts.exports.items()},
    }


def _metrics(model: Model, name: str, evaluation: EvaluationTable | None, facts: Facts) -> dict[str, Any]:
    """Return what is known only from the text; None if there is none."""
    if evaluation is None:
        return dict.fromkeys(("metrics", "unused", "scaffolds", "residues", "unreachable_in_text"))
    audit, frequencies = evaluation.audits[name], evaluation[name].frequencies
    used = set(np.flatnonzero(frequencies).tolist())
    in_text = [token for tokens in facts.unreachable.values() for token in tokens if token in used]
    return {
        "metrics": evaluation[name].metrics(evaluation[0]),
        "unused": _tokens(model, audit.unused or ()),
        "scaffolds": _tokens(model, audit.scaffolds or ()),
        "residues": _tokens(model, audit.residues or ()),
        "unreachable_in_text": _tokens(model, sorted(in_text)),
    }


def _examples(model: Model, ids: list[int]) -> list[int]:
    """Return the first tokens, those of several bytes before single bytes, which say little."""
    return sorted(ids, key=lambda token: len(model.vocab[token]) == 1)[:MAX_EXAMPLES]


def _tokens(model: Model, tokens: Iterable[int]) -> dict[str, Any]:
    ids = list(tokens)
    return {
        "number": len(ids),
        "examples": list(map(asdict, described(model, _examples(model, ids)))),
        "ids": ids if len(ids) <= MAX_IDS else None,
    }

"""Compare tokenizers, audit and inspect vocabularies, and display tokens.

>>> from batchbpe import Tokenizer
>>> from batchbpe.analysis import audit
>>> audit(Tokenizer.train("to be or not to be", 258)).longest[:2]
[256, 257]

Names are imported on first use, so that `batchbpe.analysis.display` does not import numpy or pyarrow.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .auditing import Audit, audit
    from .display import Encoding
    from .evaluation import evaluate
    from .evaluation_table import EvaluationTable
    from .evaluator import TextEncoder
    from .group_evaluation import GroupComparison, GroupEvaluation
    from .id_map import IdMap
    from .inspection import CountsSummary, ModelSummary, TokenInfo, find_tokens, inspect_counts, inspect_model
    from .merge_runs import BatchingSigns, batching_signs
    from .metrics import METRICS, Evaluation, gini, parity, renyi_entropy
    from .vocab_changes import Changes, changes

_MODULES = {
    "auditing": ["Audit", "audit"],
    "display": ["Encoding"],
    "evaluation": ["evaluate"],
    "evaluation_table": ["EvaluationTable"],
    "evaluator": ["TextEncoder"],
    "group_evaluation": ["GroupComparison", "GroupEvaluation"],
    "id_map": ["IdMap"],
    "inspection": ["CountsSummary", "ModelSummary", "TokenInfo", "find_tokens", "inspect_counts", "inspect_model"],
    "merge_runs": ["BatchingSigns", "batching_signs"],
    "metrics": ["METRICS", "Evaluation", "gini", "parity", "renyi_entropy"],
    "vocab_changes": ["Changes", "changes"],
}

__all__ = [
    "METRICS",
    "Audit",
    "BatchingSigns",
    "Changes",
    "CountsSummary",
    "Encoding",
    "Evaluation",
    "EvaluationTable",
    "GroupComparison",
    "GroupEvaluation",
    "IdMap",
    "ModelSummary",
    "TextEncoder",
    "TokenInfo",
    "audit",
    "batching_signs",
    "changes",
    "evaluate",
    "find_tokens",
    "gini",
    "inspect_counts",
    "inspect_model",
    "parity",
    "renyi_entropy",
]


def __getattr__(name: str) -> object:
    """Import a public name on first use."""
    for module, names in _MODULES.items():
        if name in names:
            return globals().setdefault(name, getattr(import_module(f".{module}", __name__), name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

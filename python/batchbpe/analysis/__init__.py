"""Compare tokenizers, audit and inspect vocabularies, and display tokens.

>>> from batchbpe import Tokenizer
>>> from batchbpe.analysis import evaluate
>>> tokenizer = Tokenizer.train("to be or not to be", 258)
>>> evaluate({"mine": tokenizer}, "to be")[0].tokens
3

Names are imported on first use, so that `batchbpe.analysis.display` does not import numpy or pyarrow.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .auditing import Audit, audit
    from .display import Encoding
    from .evaluation import TextEncoder, evaluate
    from .group_evaluation import GroupComparison, GroupEvaluation, evaluate_groups
    from .inspection import CountsSummary, ModelSummary, TokenInfo, find_tokens, inspect_counts, inspect_model
    from .metrics import METRICS, Evaluation, gini, parity, renyi_entropy

_MODULES = {
    "METRICS": "metrics",
    "Audit": "auditing",
    "CountsSummary": "inspection",
    "Encoding": "display",
    "Evaluation": "metrics",
    "GroupComparison": "group_evaluation",
    "GroupEvaluation": "group_evaluation",
    "ModelSummary": "inspection",
    "TextEncoder": "evaluation",
    "TokenInfo": "inspection",
    "audit": "auditing",
    "evaluate": "evaluation",
    "evaluate_groups": "group_evaluation",
    "find_tokens": "inspection",
    "gini": "metrics",
    "inspect_counts": "inspection",
    "inspect_model": "inspection",
    "parity": "metrics",
    "renyi_entropy": "metrics",
}

__all__ = [
    "METRICS",
    "Audit",
    "CountsSummary",
    "Encoding",
    "Evaluation",
    "GroupComparison",
    "GroupEvaluation",
    "ModelSummary",
    "TextEncoder",
    "TokenInfo",
    "audit",
    "evaluate",
    "evaluate_groups",
    "find_tokens",
    "gini",
    "inspect_counts",
    "inspect_model",
    "parity",
    "renyi_entropy",
]


def __getattr__(name: str) -> object:
    """Import a public name on first use."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals().setdefault(name, getattr(import_module(f".{_MODULES[name]}", __name__), name))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

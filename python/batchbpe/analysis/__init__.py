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
    from .auditing import Audit, audit, final_shares, residues
    from .display import Encoding
    from .evaluation import evaluate
    from .evaluation_table import EvaluationTable
    from .evaluator import TextEncoder
    from .group_evaluation import GroupComparison, GroupEvaluation
    from .id_map import IdMap
    from .inspection import CountsSummary, ModelSummary, TokenInfo, find_tokens, inspect_counts, inspect_model
    from .lower_bound import Bound, bound
    from .merge_runs import BatchingSigns, batching_signs
    from .metrics import METRICS, Evaluation, gini, parity, renyi_entropy
    from .ngram import NgramBits, ngram_bits
    from .vocab_atlas import Atlas, atlas
    from .vocab_changes import Changes, changes

_MODULES = {
    "auditing": ["Audit", "audit", "final_shares", "residues"],
    "display": ["Encoding"],
    "evaluation": ["evaluate"],
    "evaluation_table": ["EvaluationTable"],
    "evaluator": ["TextEncoder"],
    "group_evaluation": ["GroupComparison", "GroupEvaluation"],
    "id_map": ["IdMap"],
    "inspection": ["CountsSummary", "ModelSummary", "TokenInfo", "find_tokens", "inspect_counts", "inspect_model"],
    "lower_bound": ["Bound", "bound"],
    "merge_runs": ["BatchingSigns", "batching_signs"],
    "metrics": ["METRICS", "Evaluation", "gini", "parity", "renyi_entropy"],
    "ngram": ["NgramBits", "ngram_bits"],
    "vocab_atlas": ["Atlas", "atlas"],
    "vocab_changes": ["Changes", "changes"],
}

__all__ = [
    "METRICS",
    "Atlas",
    "Audit",
    "BatchingSigns",
    "Bound",
    "Changes",
    "CountsSummary",
    "Encoding",
    "Evaluation",
    "EvaluationTable",
    "GroupComparison",
    "GroupEvaluation",
    "IdMap",
    "ModelSummary",
    "NgramBits",
    "TextEncoder",
    "TokenInfo",
    "atlas",
    "audit",
    "batching_signs",
    "bound",
    "changes",
    "evaluate",
    "final_shares",
    "find_tokens",
    "gini",
    "inspect_counts",
    "inspect_model",
    "ngram_bits",
    "parity",
    "renyi_entropy",
    "residues",
]


def __getattr__(name: str) -> object:
    """Import a public name on first use."""
    for module, names in _MODULES.items():
        if name in names:
            return globals().setdefault(name, getattr(import_module(f".{module}", __name__), name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

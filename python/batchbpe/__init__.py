"""Train byte-pair-encoding tokenizers in safe batches. Rust counts and merges, Python chooses."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import policies
    from .analysis.evaluation import evaluate
    from .counts import ChunkCounts
    from .counts.mixture import Mixture
    from .model import Model
    from .patterns import PATTERNS, split
    from .phrases.learning import train_phrases
    from .phrases.runs import RunCounts
    from .tokenizer import Tokenizer
    from .tokenizer.paper import BatchTokenizer, QuickTokenizer
    from .training.loop import Batch
    from .training.table import PairTable
    from .training.train import train

__version__ = "0.1.0"

__all__ = [
    "PATTERNS",
    "Batch",
    "BatchTokenizer",
    "ChunkCounts",
    "Mixture",
    "Model",
    "PairTable",
    "QuickTokenizer",
    "RunCounts",
    "Tokenizer",
    "evaluate",
    "policies",
    "split",
    "train",
    "train_phrases",
]

_MODULES = {
    "PATTERNS": "patterns",
    "Batch": "training.loop",
    "BatchTokenizer": "tokenizer.paper",
    "ChunkCounts": "counts",
    "Mixture": "counts.mixture",
    "Model": "model",
    "PairTable": "training.table",
    "QuickTokenizer": "tokenizer.paper",
    "RunCounts": "phrases.runs",
    "Tokenizer": "tokenizer",
    "evaluate": "analysis.evaluation",
    "split": "patterns",
    "train": "training.train",
    "train_phrases": "phrases.learning",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used, so that `import batchbpe` does not import numpy."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f".{_MODULES.get(name, name)}", __name__)
    return globals().setdefault(name, getattr(module, name, module))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

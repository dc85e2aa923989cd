"""Train byte-pair-encoding tokenizers in safe batches. Rust counts and merges, Python chooses."""

from . import policies
from .chunks import PATTERNS, ChunkCounts, split
from .model import Model
from .tokenizer import BatchTokenizer, QuickTokenizer, Tokenizer
from .training import Batch, train

__version__ = "0.1.0"

__all__ = [
    "PATTERNS",
    "Batch",
    "BatchTokenizer",
    "ChunkCounts",
    "Model",
    "QuickTokenizer",
    "Tokenizer",
    "policies",
    "split",
    "train",
]

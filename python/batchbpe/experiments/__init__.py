"""The paper's experiments, each a function that returns tables and figures, and a few that go beyond it.

>>> from batchbpe.experiments import Data, freq_cutoff
>>> result = freq_cutoff(Data.of("to be or not to be " * 50, seed=1), vocab_size=260, cutoffs=[1, 2])
>>> result.table.column_names
['freq_cutoff', 'unique', 'unique_kept', 'vocab_size', 'tokens', 'change', 'seconds']
"""

from collections.abc import Callable

from .batching import batching
from .chunks import chunks
from .data import Data
from .freq_cutoff import freq_cutoff
from .report import report
from .result import Result
from .stop_words import stop_words
from .sweep import sweep

EXPERIMENTS: dict[str, Callable[..., Result]] = {
    "chunks": chunks,
    "stop-words": stop_words,
    "freq-cutoff": freq_cutoff,
    "batching": batching,
    "sweep": sweep,
}
"""The experiments by the names they have on the command line."""

__all__ = ["EXPERIMENTS", "Data", "Result", "batching", "chunks", "freq_cutoff", "report", "stop_words", "sweep"]

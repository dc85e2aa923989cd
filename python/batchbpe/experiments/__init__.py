"""The paper's experiments, others on phrases and mixtures, and a parameter sweep: functions that return a `Result`.

>>> from batchbpe.experiments import ExperimentData, freq_cutoff
>>> data = ExperimentData.of("to be or not to be " * 50, seed=1)
>>> freq_cutoff(data, vocab_size=260, cutoffs=[1, 2]).table.column_names
['freq_cutoff', 'unique', 'unique_kept', 'vocab_size', 'tokens', 'change', 'seconds']
"""

from .batching import batching
from .chunks import chunks
from .data import ExperimentData
from .freq_cutoff import freq_cutoff
from .language_model import language_model
from .mixture import mixture
from .mixture_inference import mixture_inference
from .phrases import phrases
from .report import report
from .result import Result
from .stop_words import stop_words
from .sweep import sweep

__all__ = [
    "ExperimentData",
    "Result",
    "batching",
    "chunks",
    "freq_cutoff",
    "language_model",
    "mixture",
    "mixture_inference",
    "phrases",
    "report",
    "stop_words",
    "sweep",
]

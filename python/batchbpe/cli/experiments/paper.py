"""The paper's experiments, and that on phrases, as commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .common import VOCAB_SIZE, VocabSize, experiment

if TYPE_CHECKING:
    from ...experiments import Result


@experiment("heldout", "heldout_share", "seed", "resume")
def chunks(*, given: dict[str, Any]) -> Result:
    """Measure how often chunks occur.

    Example: batchbpe experiment chunks --data data -o chunks
    """
    from ...experiments import chunks

    return chunks(**given)


@experiment("resume")
def stop_words(*, vocab_size: VocabSize = VOCAB_SIZE, given: dict[str, Any]) -> Result:
    """Compare numbers of stop words.

    Example: batchbpe experiment stop-words --data data -o stop-words
    """
    from ...experiments import ExperimentData, stop_words

    return stop_words(ExperimentData.of(**given), vocab_size=vocab_size, progress=given["progress"])


@experiment("resume")
def freq_cutoff(*, vocab_size: VocabSize = VOCAB_SIZE, given: dict[str, Any]) -> Result:
    """Compare frequency cutoffs.

    Example: batchbpe experiment freq-cutoff --data data -o freq-cutoff
    """
    from ...experiments import ExperimentData, freq_cutoff

    return freq_cutoff(ExperimentData.of(**given), vocab_size=vocab_size, progress=given["progress"])


@experiment("resume")
def batching(*, vocab_size: VocabSize = VOCAB_SIZE, given: dict[str, Any]) -> Result:
    """Compare policies with one merge at a time.

    Example: batchbpe experiment batching --data data -o batching
    """
    from ...experiments import ExperimentData, batching

    return batching(ExperimentData.of(**given), vocab_size=vocab_size, progress=given["progress"])


@experiment("resume", takes_counts=False)
def phrases(*, vocab_size: VocabSize = VOCAB_SIZE, given: dict[str, Any]) -> Result:
    """Compare numbers of phrases.

    Example: batchbpe experiment phrases --data data -o phrases
    """
    from ...experiments import phrases

    return phrases(vocab_sizes=[vocab_size], **given)

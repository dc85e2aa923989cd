"""`train`: count the data, and train merges and phrases on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

from ..arguments import check_function
from ..counts import ChunkCounts, count_corpus
from ..data.corpus import Corpus, Data, Files
from ..data.options import MAX_DOCUMENT_BYTES, ReadOptions
from ..data.paths import is_word
from ..data.sampling import Sampling
from ..model import Model
from ..phrases.counting import PhraseChunks, RunReader, check_rereadable
from ..phrases.training import train_with_phrases
from ..policies import Policy
from ..util.progress import training_bar
from ..util.surrogates import Errors
from .loop import Batch
from .merges import both, train_on_counts
from .options import HasModel, PhraseOptions, Ties, TrainingOptions, check_room, pattern_for


def train(
    data: Data | None = None,
    vocab_size: int | None = None,
    *,
    texts: str | Iterable[str] | None = None,
    files: Files | None = None,
    pattern: str | None = None,
    stop_list_size: int = 0,
    freq_cutoff: int = 1,
    special_tokens: Sequence[str] | Mapping[str, int] = (),
    cap_divisor: int = 2,
    max_batch_size: int = 0,
    policy: Policy | str = "continue_search",
    overlapping: bool = False,
    ties: Ties = "ids",
    base: Model | HasModel | None = None,
    phrases: int | Literal["auto"] = 0,
    phrase_chunks: PhraseChunks = "letters",
    max_words: int = 4,
    phrase_sample: float | None = None,
    text_column: str = "text",
    jsonl_field: str | None = None,
    errors: Errors = "strict",
    max_document_bytes: int = MAX_DOCUMENT_BYTES,
    sample: float = 1.0,
    seed: int = 0,
    limit_bytes: int | None = None,
    progress: Callable[[int], object] | bool | None = None,
    on_counts: Callable[[ChunkCounts], object] | None = None,
    on_batch: Callable[[Batch], object] | None = None,
    threads: int | None = None,
) -> Model:
    """Train a vocabulary of `vocab_size` tokens, or of fewer if no pairs are left to merge.

    Parameters
    ----------
    data, pattern, texts, files, text_column, jsonl_field, errors, max_document_bytes, sample, seed, limit_bytes: what
        to train on; see `ChunkCounts.count`.
    vocab_size, …, base: how to train; see `TrainingOptions`.
    phrases, phrase_chunks, max_words, phrase_sample: tokens across chunks; see `PhraseOptions`.
    progress: True shows progress bars; a function is called with the number of bytes read so far.
    on_counts: called with the counts before training.
    on_batch: called with a `Batch` after each batch.
    threads: number of threads; all cores by default.

    >>> dict(train("aaabdaaabac", 259).merges)
    {(97, 97): 256, (97, 98): 257, (256, 257): 258}

    """
    if vocab_size is None:  # `data` is optional, so this must be too
        raise TypeError("vocab_size is required: the total number of tokens, such as 32768")
    options = TrainingOptions(
        vocab_size=vocab_size,
        stop_list_size=stop_list_size,
        freq_cutoff=freq_cutoff,
        special_tokens=special_tokens,
        cap_divisor=cap_divisor,
        max_batch_size=max_batch_size,
        policy=policy,
        overlapping=overlapping,
        ties=ties,
        base=base,  # type: ignore[arg-type]  # a tokenizer is replaced with its model
    )
    check_function("on_counts", on_counts)
    check_function("on_batch", on_batch)
    if isinstance(data, str) and texts is files is None and _is_toy(data, options):
        data, texts = None, data
    reading = ReadOptions(text_column, jsonl_field, errors, max_document_bytes)
    sampling = Sampling(sample, seed, limit_bytes)
    corpus = Corpus(data, texts, files, reading, sampling)
    phrase_options = PhraseOptions(phrases, phrase_chunks, max_words, phrase_sample)
    folder = corpus.counts_folder
    if folder:  # may contain far more rare chunks than fit into memory
        corpus = Corpus(ChunkCounts.load(folder, freq_cutoff=options.freq_cutoff), options=reading, sampling=sampling)
    if phrases:
        check_room(phrase_options, options)
        check_rereadable(corpus)
    counts = count_corpus(corpus, pattern_for(options, pattern), options.found_tokens, progress, threads)
    if on_counts:
        on_counts(counts)
    if phrases:
        reader = RunReader(corpus, options.found_tokens, progress is True, threads)
        return train_with_phrases(counts, options, phrase_options, reader, on_batch)
    with training_bar(show=progress is True) as show:
        handed_over = [counts]
        del data, corpus, counts  # so that training can free them
        return train_on_counts(handed_over.pop(), options, on_batch=both(show, on_batch), threads=threads)


def _is_toy(data: str, options: TrainingOptions) -> bool:
    """Return whether a single word is long enough to train on, as in `train("aaabdaaabac", 259)`.

    In real training it is not, so it can only be the name of a missing file.
    """
    known = options.base.vocab_size if options.base else 256
    return is_word(data) and len(data) > options.vocab_size - known

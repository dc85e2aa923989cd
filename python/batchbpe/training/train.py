"""`train`: count the data, and train merges and phrases on it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from ..arguments import check_function
from ..choices import Normalization, Ties
from ..counts import ChunkCounts, count_corpus
from ..counts.mixture import Mixture
from ..data.corpus import Corpus, Data, Files
from ..data.options import Reading, ReadOptions, Sampling
from ..data.paths import is_word
from ..errors import ArgumentError, ArgumentTypeError, Setting
from ..formats import Loadable
from ..formats.roles import RoleOptions, with_roles
from ..model import Model
from ..options import accepting, documented, picked
from ..patterns import Split
from ..phrases.counting import RunReader, check_rereadable
from ..phrases.options import PhraseChunks, PhraseOptions, check_room
from ..phrases.training import train_with_phrases
from ..policies import Policy
from ..util.progress import training_bar
from .like import fixed_split
from .loop import Batch
from .merges import both, train_merges, warn_if_smaller
from .options import TrainingOptions, split_for

if TYPE_CHECKING:
    from typing_extensions import Unpack


@accepting(ReadOptions, Sampling)
@documented(options=[TrainingOptions, RoleOptions, PhraseOptions])
def train(
    data: Data | Mixture | None = None,
    vocab_size: int | None = None,
    *,
    add_tokens: int | None = None,
    texts: str | Iterable[str] | None = None,
    files: Files | None = None,
    groups: Mapping[str, Data] | None = None,
    pattern: Split | str | None = None,
    normalization: Normalization | None = None,
    stop_list_size: int = 0,
    freq_cutoff: int = 1,
    special_tokens: Sequence[str] | Mapping[str, int] = (),
    cap_divisor: int = 2,
    max_batch_size: int = 0,
    policy: Policy | str = "continue_search",
    overlapping: bool = False,
    ties: Ties = "ids",
    base: Loadable | None = None,
    like: Loadable | None = None,
    bos: str | None = None,
    eos: str | None = None,
    pad: str | None = None,
    unk: str | None = None,
    mask: str | None = None,
    cls: str | None = None,
    sep: str | None = None,
    chat_template: str | os.PathLike[str] | None = None,
    phrases: int | Literal["auto"] = 0,
    phrase_chunks: PhraseChunks = "letters",
    max_words: int = 4,
    phrase_sample: float | None = None,
    progress: Callable[[int], object] | bool | None = None,
    on_counts: Callable[[ChunkCounts], object] | None = None,
    on_batch: Callable[[Batch], object] | None = None,
    threads: int | None = None,
    **reading: Unpack[Reading],
) -> Model:
    """Train a vocabulary of `vocab_size` tokens, or of fewer if no pairs are left to merge.

    `base` and `like` can be tokenizers of this package, of `tokenizers` or of transformers, models, or paths.

    Parameters
    ----------
    data: a text, path, glob, folder or URL; chunk counts; arrow data, data frames or datasets; an iterable of
        strings; or a list of any of these; see https://batchbpe.github.io/batchbpe/data.html. Or a `Mixture`, to
        whose parts `freq_cutoff` and the options for reading apply.
    texts: strings to train on instead of `data`, even if they look like paths.
    files: paths, globs, folders or URLs to train on instead of `data`.
    groups: data by name, such as languages, to train on instead of `data`: the policy can compare their counts.
        `freq_cutoff` applies to each group.
    pattern: name or regular expression; by default that of `base`, of `like` or of the counts in `data`, or gpt4.
    normalization: Unicode normalization form of the text, such as NFC; by default that of `base`, of `like` or of the
        counts, or none. Decoding then returns the normalized text.
    {options}
    policy and phrase_chunks may also be functions; see https://batchbpe.github.io/batchbpe/policies.html and
    https://batchbpe.github.io/batchbpe/phrases.html. chat_template is the text of a template, or a path object such as
    `Path("chat.jinja")`.
    {reading}
    progress: True shows progress bars; a function is called with the number of bytes read so far.
    on_counts: called with the chunk counts before training.
    on_batch: called with a `Batch` after each batch; for phrases, once all of them have been learned.
    threads: number of threads; all cores by default.

    >>> dict(train("aaabdaaabac", 259).merges)
    {(97, 97): 256, (97, 98): 257, (256, 257): 258}

    """
    given = locals()
    if vocab_size is None and add_tokens is None:
        raise TypeError("vocab_size is required: the total number of tokens, such as 32768; or add_tokens, with base")
    options, phrase_options = picked(TrainingOptions, given), picked(PhraseOptions, given)
    roles = picked(RoleOptions, given)
    roles.check(options.all_special_tokens)
    given.clear()  # it would keep the data in memory
    check_function("on_counts", on_counts)
    check_function("on_batch", on_batch)
    split = split_for(options.given_models, pattern, normalization)
    if groups is not None:
        _check_only_groups(data=data, texts=texts, files=files, phrases=phrases or None)
        with fixed_split(options.given_models):
            counts_of = _count_groups(groups, options, split, reading, progress, threads)
        return with_roles(_trained(counts_of, options, progress is True, on_batch, threads), roles)
    if isinstance(data, str) and texts is files is None and _is_toy(data, options):
        data, texts = None, data
    mixture = data if isinstance(data, Mixture) else None
    if mixture and phrases:
        raise ArgumentError("phrases", phrases, "must be 0 for a mixture, whose counts are relative")
    corpus = Corpus.of(data, texts, files, reading)  # type: ignore[arg-type]
    folder = None if mixture else corpus.counts_folder
    if folder:  # may contain far more rare chunks than fit into memory
        corpus = Corpus.of(ChunkCounts.load(folder, freq_cutoff=options.freq_cutoff), None, None, reading)
    if phrases:
        check_room(phrase_options, options)
        check_rereadable(corpus)
    weights: dict[str, float] = {}
    with fixed_split(options.given_models):
        if mixture:
            found = options.found_tokens
            counts, weights = mixture.mixed(split, options.freq_cutoff, found, progress, threads, reading)
        else:
            counts = count_corpus(corpus, split, options.found_tokens, progress, threads)
    if on_counts:
        on_counts(counts)
    if phrases:
        reader = RunReader(corpus, options.found_tokens, progress is True, threads)
        return with_roles(train_with_phrases(counts, options, phrase_options, reader, on_batch), roles)
    handed_over = [counts]
    del data, mixture, corpus, counts  # so that training can free them
    model = _trained(handed_over.pop(), options, progress is True, on_batch, threads)
    if weights:
        model = replace(model, training={**model.training, "mixture": weights})
    return with_roles(model, roles)


def _trained(
    counts: ChunkCounts | Mapping[str, ChunkCounts],
    options: TrainingOptions,
    show_progress: bool,
    on_batch: Callable[[Batch], object] | None,
    threads: int | None,
) -> Model:
    handed_over = [counts]
    del counts
    with training_bar(show=show_progress) as show:
        model, _ = train_merges(handed_over.pop(), options, both(show, on_batch), threads)
    warn_if_smaller(model, options.vocab_size)
    return model


def _count_groups(
    groups: Mapping[str, Data],
    options: TrainingOptions,
    split: Split | None,
    reading: Reading,
    progress: Callable[[int], object] | bool | None,
    threads: int | None,
) -> dict[str, ChunkCounts]:
    """Count the data of each group."""
    if not isinstance(groups, Mapping) or isinstance(groups, ChunkCounts) or not groups:
        raise ArgumentTypeError("groups", groups, "must be a dict of names and their data")
    for name, data in groups.items():
        if data is None:
            raise ArgumentTypeError(f"groups[{name!r}]", data, "must be text, files or other data")
    corpora = {str(name): Corpus.of(data, None, None, reading) for name, data in groups.items()}
    return {name: count_corpus(each, split, options.found_tokens, progress, threads) for name, each in corpora.items()}


def _check_only_groups(**others: Any) -> None:
    """Raise if something is given that cannot be combined with groups."""
    for name, value in others.items():
        if value is not None:
            raise ArgumentError(name, value, ("cannot be combined with ", Setting("groups")))


def _is_toy(data: str, options: TrainingOptions) -> bool:
    """Return whether a single word is long enough to train on, as in `train("aaabdaaabac", 259)`.

    In real training it is not, so it can only be the name of a missing file.
    """
    known = options.base.vocab_size if options.base else 256
    return is_word(data) and len(data) > options.vocab_size - known
